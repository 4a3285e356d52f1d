//! `POST /v1/chat`: runs one turn. The answer comes at the turn's end, as a stream of events, or as
//! soon as an agent asks the person.
//!
//! A turn belongs to its session, not to the request that began it. When the caller disconnects, the
//! turn runs on until it ends or is cancelled.

use axum::extract::{FromRequest as _, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use belljar_session::RunningTurn;
use belljar_store::SessionEvent;

use crate::api::questions;
use crate::api::turn::{Answered, ChatBody};
use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::http::respond::{JsonBody, accepts_media_type, json_as};
use crate::stream::follow::{EventListener, follow_turn};
use crate::stream::sse::FrameSender;

/// The answer's header with the session's id.
const SESSION: HeaderName = HeaderName::from_static("belljar-session");

/// The answer's header with the id of the agent's message. The id also names the turn.
const MESSAGE: HeaderName = HeaderName::from_static("belljar-message");

/// The media type in `Accept` with which a caller requests a stream of events.
const EVENT_STREAM: &str = "text/event-stream";

/// `POST /v1/chat`: begins a turn, and answers with its result or with a stream of its events.
pub(crate) async fn begin_chat(ctx: HandlerContext, request: Request) -> Result<Response, Problem> {
    let wants_stream = accepts_media_type(request.headers(), EVENT_STREAM);
    let JsonBody(body) = JsonBody::<ChatBody>::from_request(request, &()).await?;
    let (stream, wait) = (body.stream || wants_stream, body.wait);
    let request = body.into_request(&ctx.caller, "http")?;
    if let Some(session) = &request.session {
        ctx.find_session(session).await?;
    }
    let turn = ctx.service.begin_turn(request).await?;
    if stream {
        let about = turn.clone();
        return Ok(add_turn_ids(&about, stream_turn(ctx, turn)));
    }
    let answered = answer_when_due(&ctx, &turn, wait).await?;
    // Status 202 = the turn is stored and goes on, so the caller must not send the message again.
    let status = if answered.is_in_flight() { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(add_turn_ids(&turn, json_as(status, "application/json", &answered)))
}

/// Waits for the turn's end and returns the answer's body. Unless `wait` is true, a question to the
/// person ends the waiting too, and the body contains the questions (INV-511).
async fn answer_when_due(
    ctx: &HandlerContext,
    turn: &RunningTurn,
    wait: bool,
) -> Result<Answered, Problem> {
    loop {
        let asked = tokio::select! {
            biased;
            _ = turn.wait_for_end() => false,
            // If the server stops before the turn has ended, the answer states that the turn is in
            // flight; the next start of the server resumes it.
            () = ctx.app.stopped_token().cancelled() => false,
            () = ctx.service.wait_for_question(turn), if !wait => true,
        };
        let answered = Answered::from_turn(turn, ctx.store()).await?;
        if !asked || !answered.is_in_flight() {
            return Ok(answered);
        }
        let questions = questions::list_turn_questions(ctx, turn);
        // If no question is open any more, it was answered meanwhile, and the loop waits again.
        if !questions.is_empty() {
            return Ok(answered.with_questions(questions));
        }
    }
}

/// A stream of the turn's events, ended by the turn's result as an event named `done`.
fn stream_turn(ctx: HandlerContext, turn: RunningTurn) -> Response {
    let (frames, response) = FrameSender::new(ctx.app.place_hider());
    tokio::spawn(async move {
        let _counted = ctx.app.metrics().streams.count_one();
        if follow_turn(&ctx, &turn, &frames, &mut UnchangedEvents).await.is_none() {
            return;
        }
        let (kind, json) = match Answered::from_turn(&turn, ctx.store()).await {
            Ok(answered) => ("done", serde_json::to_string(&answered)),
            Err(problem) => ("problem", serde_json::to_string(&problem.to_body())),
        };
        if let Ok(json) = json {
            frames.send_event(None, kind, json).await;
        }
    });
    response
}

/// An event filter for streams that changes nothing: every event is sent as it was stored.
struct UnchangedEvents;

impl EventListener for UnchangedEvents {
    async fn handle_event(&mut self, event: &SessionEvent, frames: &FrameSender) -> bool {
        frames.forward_event(event).await
    }
}

/// Adds the ids of the session and the message to the answer's headers, so the caller has them before the
/// body.
fn add_turn_ids(turn: &RunningTurn, mut response: Response) -> Response {
    for (name, id) in [(SESSION, &turn.session), (MESSAGE, &turn.message)] {
        if let Ok(value) = HeaderValue::from_str(id) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
