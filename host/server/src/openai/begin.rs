//! The beginning of a turn from one of these wires.

use belljar_agent::{BroughtError, Unfit};
use belljar_session::{RunningTurn, ServiceError, TurnRequest};
use tracing::Instrument as _;

use crate::api::turn::note_begun;
use crate::app::Ctx;
use crate::http::problem::Problem;
use crate::openai::errors;

/// The two wires, as the audit log names them.
pub(crate) const CHAT: &str = "chat-completions";
pub(crate) const RESPONSES: &str = "responses";

/// Begins a turn, and notes it in the audit log even where its caller goes away meanwhile.
pub(crate) async fn begin(
    ctx: Ctx,
    request: TurnRequest,
    model: &str,
    by: &'static str,
) -> Result<(Ctx, RunningTurn), Problem> {
    let model = model.to_owned();
    let beginning = async move {
        hold_schemas(&ctx, &request, by).await?;
        let turn = ctx.service.begin(request).await;
        let turn = turn.map_err(|error| match error {
            ServiceError::Unfit(unfit) => unfit_at(unfit, by),
            ServiceError::Images(why) => Problem::from(ServiceError::Images(why))
                .param(if by == RESPONSES { "input" } else { "messages" })
                .code("invalid_value"),
            other => errors::of_service(other, &model),
        })?;
        note_begun(&ctx, &turn, by).await;
        Ok((ctx, turn))
    };
    let begun = tokio::spawn(beginning.in_current_span()).await;
    begun.map_err(|error| Problem::bug(&format!("a turn ended early: {error}")))?
}

/// INV-402: the bytes that the request's schemas take when they are compiled are in flight until its turn has
/// ended, also where its answer has gone out before.
async fn hold_schemas(ctx: &Ctx, request: &TurnRequest, by: &str) -> Result<(), Problem> {
    let caller = &ctx.caller;
    let bytes = request.brought.memory(&caller.tenant).await.map_err(|error| match error {
        BroughtError::Unfit(unfit) => unfit_at(unfit, by),
        BroughtError::Work(error) => error.into(),
    })?;
    if bytes > 0 {
        let flight = ctx.app.flights().of(&caller.tenant, caller.bounded_as());
        flight.hold(bytes).await?;
        request.brought.schemas.keep(Box::new(flight));
    }
    Ok(())
}

/// Something that the caller brings does not fit: named as its wire names it.
fn unfit_at(unfit: Unfit, by: &str) -> Problem {
    let at = match unfit.at.as_str() {
        "form" if by == RESPONSES => "text.format.schema".to_owned(),
        "form" => "response_format".to_owned(),
        _ => unfit.at,
    };
    let unfit = Unfit { at: at.clone(), why: unfit.why };
    Problem::from(ServiceError::Unfit(unfit)).param(at).code("invalid_value")
}
