//! The beginning of a turn over OpenAI's API.

use std::sync::Arc;

use belljar_agent::{BroughtError, Unfit};
use belljar_session::{RunningTurn, ServiceError, TurnRequest};
use tracing::Instrument as _;

use crate::api::grants::find;
use crate::app::Ctx;
use crate::http::problem::{Kind, Problem};
use crate::openai::errors;
use crate::openai::leaving::Awaited;
use crate::openai::left_out::Unserved;

/// The two APIs, by their names in the audit log.
pub(crate) const CHAT: &str = "chat-completions";
pub(crate) const RESPONSES: &str = "responses";

/// A turn to be begun.
pub(crate) struct ToBegin {
    pub(crate) request: TurnRequest,
    /// The agent, by the caller's name for it.
    pub(crate) model: String,
    /// The wire.
    pub(crate) by: &'static str,
    /// The parts of the request that are left out.
    pub(crate) left: Arc<Unserved>,
    /// True if the turn continues after its caller has disconnected.
    pub(crate) stays: bool,
}

/// A turn that has begun.
pub(crate) struct Begun {
    pub(crate) ctx: Ctx,
    pub(crate) turn: RunningTurn,
    /// The caller.
    pub(crate) awaited: Awaited,
}

/// Begins a turn, with [`Awaited`] even if its caller goes away meanwhile.
pub(crate) async fn begin(ctx: Ctx, to_begin: ToBegin) -> Result<Begun, Problem> {
    let beginning = async move {
        let ToBegin { mut request, model, by, left, stays } = to_begin;
        request.door = by;
        let unfit = |unfit| unfit_at(unfit, by, &left);
        let bytes = request.brought.memory(&ctx.caller.tenant).await;
        let bytes = bytes.map_err(|error| match error {
            BroughtError::Unfit(why) => unfit(why),
            BroughtError::Work(error) => error.into(),
        })?;
        hold_schemas(&ctx, &request, bytes).await?;
        let turn = ctx.service.begin(request).await;
        let turn = turn.map_err(|error| match error {
            ServiceError::Unfit(why) => unfit(why),
            ServiceError::Images(why) => Problem::from(ServiceError::Images(why))
                .param(if by == RESPONSES { "input" } else { "messages" })
                .code("invalid_value"),
            other => errors::of_service(other, &model),
        })?;
        let awaited = if stays { Awaited::by_nobody() } else { Awaited::by_caller(&ctx, &turn) };
        Ok(Begun { ctx, turn, awaited })
    };
    let begun = tokio::spawn(beginning.in_current_span()).await;
    begun.map_err(|error| Problem::bug(&format!("a turn ended early: {error}")))?
}

/// The fault of an invalid request: an unknown model first, as at OpenAI.
pub(crate) async fn first_unknown(ctx: &Ctx, model: &str, problem: Problem) -> Problem {
    if problem.kind() != Kind::Invalid {
        return problem;
    }
    match find(ctx, model.to_owned()).await {
        Err(unknown) if unknown.kind() == Kind::NotFound => errors::no_model(model),
        Ok(_) | Err(_) => problem,
    }
}

/// INV-402: the bytes of the request's compiled schemas are in flight until the turn has ended, even if the
/// answer was sent before.
async fn hold_schemas(ctx: &Ctx, request: &TurnRequest, bytes: u64) -> Result<(), Problem> {
    let caller = &ctx.caller;
    if bytes > 0 {
        let flight = ctx.app.flights().of(&caller.tenant, caller.bounded_as());
        flight.hold(bytes).await?;
        request.brought.schemas.keep(Box::new(flight));
    }
    Ok(())
}

/// The problem of an invalid input, named as in the request's API.
fn unfit_at(unfit: Unfit, by: &str, left: &Unserved) -> Problem {
    let at = match unfit.at.as_str() {
        "form" if by == RESPONSES => "text.format.schema".to_owned(),
        "form" => "response_format".to_owned(),
        at => left.place_of(at),
    };
    let unfit = Unfit { at: at.clone(), why: unfit.why };
    Problem::from(ServiceError::Unfit(unfit)).param(at).code("invalid_value")
}
