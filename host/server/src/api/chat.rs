//! `POST /v1/chat`: one turn, answered at its end, event by event, or as soon as a person is asked.
//!
//! A turn belongs to its session, not to the request that began the turn. When the caller disconnects, the
//! turn runs on until it ends or is cancelled.

use axum::extract::{FromRequest as _, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use belljar_session::{RunningTurn, SessionEvent};

use crate::api::questions;
use crate::api::turn::{Answered, ChatBody};
use crate::app::Ctx;
use crate::http::problem::Problem;
use crate::http::respond::{JsonBody, accepts, json_as};
use crate::stream::follow::{Hears, follow};
use crate::stream::sse::Frames;

/// The header with the session of an answer.
const SESSION: HeaderName = HeaderName::from_static("belljar-session");

/// The header with the agent's message, and so the turn.
const MESSAGE: HeaderName = HeaderName::from_static("belljar-message");

/// The media type that asks for a stream.
const EVENT_STREAM: &str = "text/event-stream";

/// `POST /v1/chat`.
pub(crate) async fn chat(ctx: Ctx, request: Request) -> Result<Response, Problem> {
    let wants_stream = accepts(request.headers(), EVENT_STREAM);
    let JsonBody(body) = JsonBody::<ChatBody>::from_request(request, &()).await?;
    let (stream, wait) = (body.stream || wants_stream, body.wait);
    let request = body.request(&ctx.caller, "http")?;
    if let Some(session) = &request.session {
        ctx.session(session).await?;
    }
    let turn = ctx.service.begin(request).await?;
    if stream {
        let about = turn.clone();
        return Ok(named(&about, streamed(ctx, turn)));
    }
    let answered = answered(&ctx, &turn, wait).await?;
    // 202: the turn is stored and unfinished, so the caller must not send it again.
    let status = if answered.is_in_flight() { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(named(&turn, json_as(status, "application/json", &answered)))
}

/// Waits for the end of a turn. Without `wait`, a question to a person ends the wait too, and the answer has
/// the questions (INV-511).
async fn answered(ctx: &Ctx, turn: &RunningTurn, wait: bool) -> Result<Answered, Problem> {
    loop {
        let asked = tokio::select! {
            biased;
            _ = turn.ended() => false,
            // A turn that has not ended by now is reported as in flight, and resumed at the next start.
            () = ctx.app.stopped().cancelled() => false,
            () = ctx.service.asked(turn), if !wait => true,
        };
        let answered = Answered::of(turn, ctx.store()).await?;
        if !asked || !answered.is_in_flight() {
            return Ok(answered);
        }
        let questions = questions::of_turn(ctx, turn);
        // No open question: the question was answered meanwhile.
        if !questions.is_empty() {
            return Ok(answered.asking(questions));
        }
    }
}

/// The events of the turn, then its result as `done`.
fn streamed(ctx: Ctx, turn: RunningTurn) -> Response {
    let (frames, response) = Frames::new(ctx.app.outward());
    tokio::spawn(async move {
        let _counted = ctx.app.metrics().streams.one();
        if follow(&ctx, &turn, &frames, &mut Whole).await.is_none() {
            return;
        }
        let (kind, json) = match Answered::of(&turn, ctx.store()).await {
            Ok(answered) => ("done", serde_json::to_string(&answered)),
            Err(problem) => ("problem", serde_json::to_string(&problem.body())),
        };
        if let Ok(json) = json {
            frames.send(None, kind, json).await;
        }
    });
    response
}

/// Sends events unchanged.
struct Whole;

impl Hears for Whole {
    async fn hears(&mut self, event: &SessionEvent, frames: &Frames) -> bool {
        frames.send(Some(event.id), &event.kind, event.json.to_string()).await
    }
}

/// Adds the turn's ids to the head of an answer, before any of the body.
fn named(turn: &RunningTurn, mut response: Response) -> Response {
    for (name, id) in [(SESSION, &turn.session), (MESSAGE, &turn.message)] {
        if let Ok(value) = HeaderValue::from_str(id) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
