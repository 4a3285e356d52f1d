//! The beginning of a turn from one of these wires.

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
        let turn = ctx.service.begin(request).await;
        let turn = turn.map_err(|error| match error {
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
