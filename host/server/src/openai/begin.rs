//! Begins a turn for a request of OpenAI's API.

use std::sync::Arc;

use belljar_agent::{BroughtError, UnfitInput};
use belljar_session::{RunningTurn, ServiceError, TurnRequest};
use tracing::Instrument as _;

use crate::api::grants::find_agent;
use crate::app::HandlerContext;
use crate::http::problem::{Problem, ProblemKind};
use crate::openai::errors;
use crate::openai::leaving::AwaitedTurn;
use crate::openai::left_out::IgnoredParts;

/// The names of the two APIs in the audit log.
pub(crate) const CHAT: &str = "chat-completions";
pub(crate) const RESPONSES: &str = "responses";

/// A parsed request whose turn is to begin.
pub(crate) struct ToBegin {
    pub(crate) request: TurnRequest,
    /// The agent, as the caller named it in `model`.
    pub(crate) model: String,
    /// The API that the request came through, for example [`CHAT`].
    pub(crate) by: &'static str,
    /// The parts of the request that are ignored, to be named in the answer.
    pub(crate) left: Arc<IgnoredParts>,
    /// True if the turn continues after its caller has disconnected.
    pub(crate) stays: bool,
}

/// A turn that has begun for a request.
pub(crate) struct BegunTurn {
    pub(crate) ctx: HandlerContext,
    pub(crate) turn: RunningTurn,
    /// The caller who waits for the turn; see [`AwaitedTurn`].
    pub(crate) awaited: AwaitedTurn,
}

/// Begins a turn. A caller who disconnects meanwhile is handled too: [`AwaitedTurn`] then decides about the
/// turn.
pub(crate) async fn begin_turn(
    ctx: HandlerContext,
    to_begin: ToBegin,
) -> Result<BegunTurn, Problem> {
    let beginning = async move {
        let ToBegin { mut request, model, by, left, stays } = to_begin;
        request.door = by;
        let unfit = |unfit| unfit_at(unfit, by, &left);
        let bytes = request.brought.schema_memory(&ctx.caller.tenant).await;
        let bytes = bytes.map_err(|error| match error {
            BroughtError::Unfit(why) => unfit(why),
            BroughtError::Work(error) => error.into(),
        })?;
        hold_schemas(&ctx, &request, bytes).await?;
        let turn = ctx.service.begin_turn(request).await;
        let turn = turn.map_err(|error| match error {
            ServiceError::Unfit(why) => unfit(why),
            ServiceError::Images(why) => Problem::from(ServiceError::Images(why))
                .with_param(if by == RESPONSES { "input" } else { "messages" })
                .with_code("invalid_value"),
            other => errors::problem_from_service(other, &model),
        })?;
        let awaited =
            if stays { AwaitedTurn::by_nobody() } else { AwaitedTurn::by_caller(&ctx, &turn) };
        Ok(BegunTurn { ctx, turn, awaited })
    };
    let begun = tokio::spawn(beginning.in_current_span()).await;
    begun.map_err(|error| Problem::bug(&format!("a turn ended early: {error}")))?
}

/// Chooses the error of an invalid request: an unknown model is reported before `problem`, as OpenAI does.
pub(crate) async fn first_unknown(ctx: &HandlerContext, model: &str, problem: Problem) -> Problem {
    if problem.kind() != ProblemKind::Invalid {
        return problem;
    }
    match find_agent(ctx, model.to_owned()).await {
        Err(unknown) if unknown.kind() == ProblemKind::NotFound => errors::no_model(model),
        Ok(_) | Err(_) => problem,
    }
}

/// INV-402: counts the bytes of the request's compiled schemas as in flight until the turn has ended, even if
/// the answer was sent before.
async fn hold_schemas(
    ctx: &HandlerContext,
    request: &TurnRequest,
    bytes: u64,
) -> Result<(), Problem> {
    let caller = &ctx.caller;
    if bytes > 0 {
        let flight = ctx.app.byte_bounds().begin_request(&caller.tenant, caller.bounded_as());
        flight.wait_to_hold(bytes).await?;
        request.brought.schemas.keep_claim(Box::new(flight));
    }
    Ok(())
}

/// The problem of an invalid input, with the parameter's name in the API that the request came through.
fn unfit_at(unfit: UnfitInput, by: &str, left: &IgnoredParts) -> Problem {
    let at = match unfit.at.as_str() {
        "form" if by == RESPONSES => "text.format.schema".to_owned(),
        "form" => "response_format".to_owned(),
        at => left.place_of(at),
    };
    let unfit = UnfitInput { at: at.clone(), why: unfit.why };
    Problem::from(ServiceError::Unfit(unfit)).with_param(at).with_code("invalid_value")
}
