//! The beginning of a turn from one of these wires.

use belljar_session::{RunningTurn, TurnRequest};
use tracing::Instrument as _;

use crate::api::turn::note_begun;
use crate::app::Ctx;
use crate::http::problem::Problem;
use crate::openai::errors;

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
        let turn = turn.map_err(|error| errors::of_service(error, &model))?;
        note_begun(&ctx, &turn, by).await;
        Ok((ctx, turn))
    };
    let begun = tokio::spawn(beginning.in_current_span()).await;
    begun.map_err(|error| Problem::bug(&format!("a turn ended early: {error}")))?
}
