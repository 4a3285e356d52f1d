//! Stored responses: read, delete, cancel, and list the input.

use axum::response::{IntoResponse as _, Response};
use belljar_session::{CancelOutcome, ServiceError, StoredTurnOf};
use belljar_store::MessageStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::Ctx;
use crate::http::problem::{Kind, Problem};
use crate::http::respond::{Json, PathOf, QueryOf, Told};
use crate::openai::finished::Finished;
use crate::openai::ids;
use crate::openai::leaving::Awaited;
use crate::openai::live::{self, Source};
use crate::openai::params::invalid;
use crate::openai::resource::{Echo, ResponseBody};
use crate::openai::response_stream::ResponseStream;
use crate::stream::sse::Frames;

/// Items of an input in one page.
const MAX_ITEMS: usize = 100;

/// Default number of items in a page.
const ITEMS: usize = 20;

/// How long a request waits for the end of a cancelled response.
const CANCEL_WAIT: std::time::Duration = std::time::Duration::from_secs(20);

/// The query of a request for a response.
#[derive(Debug, Deserialize)]
pub(crate) struct ReadQuery {
    stream: Option<bool>,
    /// The number of the last event that the caller has.
    starting_after: Option<u64>,
}

/// The page of items.
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

/// The problem of a missing or foreign response.
fn none(id: &str) -> Problem {
    Problem::not_found("response", id)
}

/// The turn of a response. INV-281: another tenant's, another entrance's and a missing one return the same
/// error.
async fn turn_of(ctx: &Ctx, id: &str) -> Result<(StoredTurnOf, Echo), Problem> {
    let message = ids::of_response(id).ok_or_else(|| none(id))?;
    let stored = match ctx.service.stored_turn(message).await {
        Ok(stored) => stored,
        Err(ServiceError::NoSession(_)) => return Err(none(id)),
        Err(error) => return Err(error.into()),
    };
    let echo = stored.turn.entrance().and_then(|echo| Echo::deserialize(echo).ok());
    Ok((stored, echo.ok_or_else(|| none(id))?))
}

/// The previous response of a request.
pub(crate) async fn previous(ctx: &Ctx, id: &str) -> Result<StoredTurnOf, Problem> {
    let found = turn_of(ctx, id).await;
    let found = found.map_err(|problem| match problem.kind() {
        Kind::NotFound => problem.param("previous_response_id").code("previous_response_not_found"),
        _ => problem,
    });
    Ok(found?.0)
}

/// The present state of a response's turn.
pub(crate) async fn known(ctx: &Ctx, message: &str) -> Result<(Finished, Echo), Problem> {
    let (stored, echo) = turn_of(ctx, &ids::response(message)).await?;
    Ok((Finished::of(&stored), echo))
}

/// The present response of a turn.
pub(crate) async fn shown(ctx: &Ctx, message: &str) -> Result<ResponseBody, Problem> {
    let (finished, echo) = known(ctx, message).await?;
    Ok(ResponseBody::of(&finished, &echo))
}

/// `GET /v1/responses/{response}`.
pub(crate) async fn read(
    ctx: Ctx,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<ReadQuery>,
) -> Result<Response, Problem> {
    let (stored, echo) = turn_of(&ctx, &id).await?;
    let finished = Finished::of(&stored);
    if query.stream != Some(true) {
        if query.starting_after.is_some() {
            return Err(invalid("starting_after", "only a stream has events to start after")
                .hint("add `stream=true`"));
        }
        return Ok(Json(ResponseBody::of(&finished, &echo)).into_response());
    }
    let whole = live::is_whole(&stored.turn.brought());
    let (frames, response) = Frames::new(ctx.app.outward());
    let wire = ResponseStream::new(&finished.running(), echo).after(query.starting_after);
    let message = &stored.turn.message;
    let running = ctx.service.running().into_iter().find(|turn| turn.message == *message);
    let source = match running {
        Some(turn) => Source::Running(Box::new(turn), Awaited::by_nobody()),
        None => Source::Past(Box::new(stored)),
    };
    tokio::spawn(live::stream(ctx, source, frames, whole, wire));
    Ok(response)
}

/// `DELETE /v1/responses/{response}`: deletes its session with all contents.
pub(crate) async fn delete(
    ctx: Ctx,
    PathOf(id): PathOf<String>,
) -> Result<Json<ResponseDeleted>, Problem> {
    let (stored, _) = turn_of(&ctx, &id).await?;
    let session = &stored.turn.state.session.id;
    if !stored.is_last {
        let detail = "later responses go on from this one, in the same session";
        return Err(
            Problem::new(Kind::Changed, detail).hint("delete the last of them, which deletes all")
        );
    }
    ctx.service.delete(session).await?;
    Ok(Json(ResponseDeleted { id, object: "response", deleted: true }))
}

/// `POST /v1/responses/{response}/cancel`.
pub(crate) async fn cancel(
    ctx: Ctx,
    PathOf(id): PathOf<String>,
) -> Result<Told<ResponseBody>, Problem> {
    let (stored, echo) = turn_of(&ctx, &id).await?;
    if !echo.background {
        return Err(invalid("response_id", "only a response in the background can be cancelled")
            .hint("`POST /v1/sessions/ID/cancel` ends any turn"));
    }
    let (session, message) = (&stored.turn.state.session.id, &stored.turn.message);
    let of_turn = ctx.service.running().into_iter().find(|turn| turn.message == *message);
    let cancelled = match &of_turn {
        Some(_) => ctx.service.cancel(session, &ctx.caller.actor),
        None => CancelOutcome::NotRunning,
    };
    if let Some(turn) = of_turn.filter(|_| cancelled.ends()) {
        // A response that has not ended by then is still in progress, and will be cancelled.
        let _ = tokio::time::timeout(CANCEL_WAIT, turn.ended()).await;
    }
    let body = shown(&ctx, message).await?;
    Ok(Told { body, changed: cancelled == CancelOutcome::Cancelled })
}

/// `GET /v1/responses/{response}/input_items`.
pub(crate) async fn input_items(
    ctx: Ctx,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<ItemsQuery>,
) -> Result<Json<InputItems>, Problem> {
    let (stored, echo) = turn_of(&ctx, &id).await?;
    let limit = query.limit.unwrap_or(ITEMS);
    if !(1..=MAX_ITEMS).contains(&limit) {
        return Err(invalid("limit", format!("`limit` must be 1 to {MAX_ITEMS}")));
    }
    let message = &stored.turn.message;
    let items = echo.input.into_iter().enumerate();
    let mut items: Vec<Value> = items.map(|(place, item)| with_id(item, message, place)).collect();
    match query.order.as_deref() {
        None | Some("desc") => items.reverse(),
        Some("asc") => {}
        Some(_) => return Err(invalid("order", "`order` can only be `asc` or `desc`")),
    }
    if let Some(after) = query.after {
        // After a missing item the page is empty.
        let seen = items.iter().position(|item| item["id"] == after.as_str());
        items.drain(..seen.map_or(items.len(), |seen| seen + 1));
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    let id_of = |item: Option<&Value>| item.and_then(|item| item["id"].as_str()).map(str::to_owned);
    let (first_id, last_id) = (id_of(items.first()), id_of(items.last()));
    Ok(Json(InputItems { object: "list", data: items, first_id, last_id, has_more }))
}

/// An item of an input, with an id.
fn with_id(mut item: Value, message: &str, place: usize) -> Value {
    if let Some(fields) = item.as_object_mut() {
        fields.insert("id".to_owned(), ids::item("in", message, place).into());
        fields.entry("type").or_insert_with(|| "message".into());
    }
    item
}

impl Finished {
    /// The response as it was while the turn ran.
    pub(crate) fn running(&self) -> Self {
        Self {
            status: MessageStatus::InFlight,
            texts: Vec::new(),
            calls: Vec::new(),
            error: None,
            ..self.clone()
        }
    }
}
