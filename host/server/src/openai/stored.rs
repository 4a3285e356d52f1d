//! Stored responses: reads, deletes and cancels them, and lists their input.

use axum::response::{IntoResponse as _, Response};
use belljar_session::{CancelOutcome, ServiceError, StoredTurnOf};
use belljar_store::MessageStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::HandlerContext;
use crate::http::problem::{Problem, ProblemKind};
use crate::http::respond::{ChangeAnswer, JsonAnswer, PathOf, QueryOf};
use crate::openai::finished::FinishedTurn;
use crate::openai::ids;
use crate::openai::leaving::AwaitedTurn;
use crate::openai::live::{self, TurnSource};
use crate::openai::params::invalid_value;
use crate::openai::resource::{RequestEcho, ResponseBody};
use crate::openai::response_stream::ResponseStream;
use crate::stream::sse::FrameSender;

/// The most items of an input in one page.
const MAX_ITEMS: usize = 100;

/// The number of items in a page if the caller requests no number.
const ITEMS: usize = 20;

/// The time that a request waits for a cancelled response to end.
const CANCEL_WAIT: std::time::Duration = std::time::Duration::from_secs(20);

/// The query of `GET /v1/responses/{response}`.
#[derive(Debug, Deserialize)]
pub(crate) struct ReadQuery {
    stream: Option<bool>,
    /// The number of the last event that the caller has, if a stream is requested.
    starting_after: Option<u64>,
}

/// The query of `GET /v1/responses/{response}/input_items`.
#[derive(Debug, Deserialize)]
pub(crate) struct ItemsQuery {
    limit: Option<usize>,
    order: Option<String>,
    after: Option<String>,
}

/// The items of an input.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InputItems {
    /// `list`.
    object: &'static str,
    data: Vec<Value>,
    first_id: Option<String>,
    last_id: Option<String>,
    has_more: bool,
}

/// That a response is gone.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResponseDeleted {
    id: String,
    /// `response`.
    object: &'static str,
    /// `true`.
    deleted: bool,
}

/// The problem of a response that does not exist or belongs to another tenant.
fn missing_response(id: &str) -> Problem {
    Problem::not_found("response", id)
}

/// Finds the turn of a response. INV-281: a response of another tenant, a turn of another API and a missing
/// one return the same error.
async fn turn_of(ctx: &HandlerContext, id: &str) -> Result<(StoredTurnOf, RequestEcho), Problem> {
    let message = ids::message_from_response(id).ok_or_else(|| missing_response(id))?;
    let stored = match ctx.service.stored_turn(message).await {
        Ok(stored) => stored,
        Err(ServiceError::NoSession(_)) => return Err(missing_response(id)),
        Err(error) => return Err(error.into()),
    };
    let echo = stored.turn.entrance_note().and_then(|echo| RequestEcho::deserialize(echo).ok());
    Ok((stored, echo.ok_or_else(|| missing_response(id))?))
}

/// Finds the turn of the response that a new request continues.
pub(crate) async fn find_previous(ctx: &HandlerContext, id: &str) -> Result<StoredTurnOf, Problem> {
    let found = turn_of(ctx, id).await;
    let found = found.map_err(|problem| match problem.kind() {
        ProblemKind::NotFound => {
            problem.with_param("previous_response_id").with_code("previous_response_not_found")
        }
        _ => problem,
    });
    Ok(found?.0)
}

/// Reads the stored state of a response's turn.
pub(crate) async fn find_finished(
    ctx: &HandlerContext,
    message: &str,
) -> Result<(FinishedTurn, RequestEcho), Problem> {
    let (stored, echo) = turn_of(ctx, &ids::response_id(message)).await?;
    Ok((FinishedTurn::from_stored(&stored), echo))
}

/// Reads a turn as a response, in its present state.
pub(crate) async fn find_response(
    ctx: &HandlerContext,
    message: &str,
) -> Result<ResponseBody, Problem> {
    let (finished, echo) = find_finished(ctx, message).await?;
    Ok(ResponseBody::from_finished(&finished, &echo))
}

/// `GET /v1/responses/{response}`: returns a response, or a stream of its events.
pub(crate) async fn read_response(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<ReadQuery>,
) -> Result<Response, Problem> {
    let (stored, echo) = turn_of(&ctx, &id).await?;
    let finished = FinishedTurn::from_stored(&stored);
    if query.stream != Some(true) {
        if query.starting_after.is_some() {
            return Err(invalid_value("starting_after", "only a stream has events to start after")
                .with_hint("add `stream=true`"));
        }
        return Ok(JsonAnswer(ResponseBody::from_finished(&finished, &echo)).into_response());
    }
    let whole = live::is_whole(&stored.turn.brought_input());
    let (frames, response) = FrameSender::new(ctx.app.place_hider());
    let wire =
        ResponseStream::new(&finished.to_running(), echo).starting_after(query.starting_after);
    let message = &stored.turn.message;
    let running = ctx.service.running_turns().into_iter().find(|turn| turn.message == *message);
    let source = match running {
        Some(turn) => TurnSource::Running(Box::new(turn), AwaitedTurn::by_nobody()),
        None => TurnSource::Past(Box::new(stored)),
    };
    tokio::spawn(live::stream_turn(ctx, source, frames, whole, wire));
    Ok(response)
}

/// `DELETE /v1/responses/{response}`: deletes the response's session with all contents.
pub(crate) async fn delete_response(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
) -> Result<JsonAnswer<ResponseDeleted>, Problem> {
    let (stored, _) = turn_of(&ctx, &id).await?;
    let session = &stored.turn.state.session.id;
    if !stored.is_last {
        let detail = "later responses go on from this one, in the same session";
        return Err(Problem::new(ProblemKind::Changed, detail)
            .with_hint("delete the last of them, which deletes all"));
    }
    ctx.service.delete_session(session).await?;
    Ok(JsonAnswer(ResponseDeleted { id, object: "response", deleted: true }))
}

/// `POST /v1/responses/{response}/cancel`: cancels a response in the background.
pub(crate) async fn cancel_response(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
) -> Result<ChangeAnswer<ResponseBody>, Problem> {
    let (stored, echo) = turn_of(&ctx, &id).await?;
    if !echo.background {
        return Err(invalid_value(
            "response_id",
            "only a response in the background can be cancelled",
        )
        .with_hint("`POST /v1/sessions/ID/cancel` ends any turn"));
    }
    let (session, message) = (&stored.turn.state.session.id, &stored.turn.message);
    let of_turn = ctx.service.running_turns().into_iter().find(|turn| turn.message == *message);
    let cancelled = match &of_turn {
        Some(_) => ctx.service.cancel_turn(session, &ctx.caller.actor),
        None => CancelOutcome::NotRunning,
    };
    if let Some(turn) = of_turn.filter(|_| cancelled.is_ending()) {
        // If the turn takes longer to end, the answer still states `in_progress`.
        let _ = tokio::time::timeout(CANCEL_WAIT, turn.wait_for_end()).await;
    }
    let body = find_response(&ctx, message).await?;
    Ok(ChangeAnswer { body, changed: cancelled == CancelOutcome::Cancelled })
}

/// `GET /v1/responses/{response}/input_items`: lists the input of a response's request.
pub(crate) async fn input_items(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<ItemsQuery>,
) -> Result<JsonAnswer<InputItems>, Problem> {
    let (stored, echo) = turn_of(&ctx, &id).await?;
    let limit = query.limit.unwrap_or(ITEMS);
    if !(1..=MAX_ITEMS).contains(&limit) {
        return Err(invalid_value("limit", format!("`limit` must be 1 to {MAX_ITEMS}")));
    }
    let message = &stored.turn.message;
    let items = echo.input.into_iter().enumerate();
    let mut items: Vec<Value> = items.map(|(place, item)| with_id(item, message, place)).collect();
    match query.order.as_deref() {
        None | Some("desc") => items.reverse(),
        Some("asc") => {}
        Some(_) => return Err(invalid_value("order", "`order` can only be `asc` or `desc`")),
    }
    if let Some(after) = query.after {
        // If the item named by `after` does not exist, the page is empty.
        let seen = items.iter().position(|item| item["id"] == after.as_str());
        items.drain(..seen.map_or(items.len(), |seen| seen + 1));
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    let id_of = |item: Option<&Value>| item.and_then(|item| item["id"].as_str()).map(str::to_owned);
    let (first_id, last_id) = (id_of(items.first()), id_of(items.last()));
    Ok(JsonAnswer(InputItems { object: "list", data: items, first_id, last_id, has_more }))
}

/// Adds an id to an item of an input that has none.
fn with_id(mut item: Value, message: &str, place: usize) -> Value {
    if let Some(fields) = item.as_object_mut() {
        fields.insert("id".to_owned(), ids::item_id("in", message, place).into());
        fields.entry("type").or_insert_with(|| "message".into());
    }
    item
}

impl FinishedTurn {
    /// The response as it was at the beginning of the turn, for the first event of a stream.
    pub(crate) fn to_running(&self) -> Self {
        Self {
            status: MessageStatus::InFlight,
            texts: Vec::new(),
            calls: Vec::new(),
            error: None,
            ..self.clone()
        }
    }
}
