//! Streams a turn in the form of OpenAI's APIs: the agent's text, step by step, and the end.

use belljar_agent::{CallerInput, EventKind};
use belljar_session::{RunningTurn, StoredTurnOf, parse_event};
use belljar_store::SessionEvent;

use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::openai::errors;
use crate::openai::finished::FinishedTurn;
use crate::openai::leaving::AwaitedTurn;
use crate::stream::follow::{EventListener, follow_past, follow_turn};
use crate::stream::sse::FrameSender;

/// A stream in the form of one API. Methods that return false found that the client has disconnected.
pub(crate) trait WireStream: Send {
    /// Sends the first events of the stream.
    async fn begin_stream(&mut self, frames: &FrameSender) -> bool;

    /// Sends text of the agent that is not blank. `new` is true for the first text of a step.
    async fn send_text(&mut self, frames: &FrameSender, new: bool, text: &str) -> bool;

    /// Sends the end of the turn, after all its texts.
    async fn end_stream(&mut self, frames: &FrameSender, finished: &FinishedTurn) -> bool;

    /// Ends the stream with a problem, because the turn's end is unknown.
    async fn end_broken(&mut self, frames: &FrameSender, problem: &Problem) -> bool;
}

/// Returns whether the text may be sent only after the turn has ended, because earlier text may be an attempt
/// without the form or call that the caller requires.
pub(crate) fn is_whole(brought: &CallerInput) -> bool {
    brought.form.is_some() || brought.choice.is_some()
}

/// What is known about the text of the present step.
#[derive(Default)]
struct StepText {
    /// The blank text at the step's beginning. It is held back, because a step with only blank text is no
    /// message.
    held: String,
    /// True after text of this step was sent.
    begun: bool,
}

/// The turn of a stream, running or stored; both have the same events.
pub(crate) enum TurnSource {
    /// A running turn with its caller. If the caller disconnects, the turn may be cancelled.
    Running(Box<RunningTurn>, AwaitedTurn),
    Past(Box<StoredTurnOf>),
}

/// Streams a turn to its end. If `whole` is true, the text is sent only after the end, because earlier text
/// may not be the answer.
pub(crate) async fn stream_turn(
    ctx: HandlerContext,
    source: TurnSource,
    frames: FrameSender,
    whole: bool,
    mut wire: impl WireStream,
) {
    let _counted = ctx.app.metrics().streams.count_one();
    if !wire.begin_stream(&frames).await {
        return;
    }
    let mut telling = WireListener { saying: StepText::default(), whole, wire: &mut wire };
    let (told, message, agent) = match &source {
        TurnSource::Running(turn, _) => {
            let told = follow_turn(&ctx, turn, &frames, &mut telling).await;
            (told, &turn.message, &turn.agent)
        }
        TurnSource::Past(stored) => {
            let (session, message) = (&stored.turn.state.session, &stored.turn.message);
            let told = follow_past(&ctx, &session.id, message, &frames, &mut telling).await;
            (told, message, &session.agent)
        }
    };
    if told.is_some() {
        end_from_stored(&ctx, message, agent, &frames, whole, wire).await;
    }
    if let TurnSource::Running(_, awaited) = source
        && !frames.is_closed()
    {
        // INV-286: a caller whose key was revoked did not disconnect, so its turn is not cancelled.
        awaited.end_waiting();
    }
}

/// Sends the end of a stream, with the result as it is stored.
async fn end_from_stored(
    ctx: &HandlerContext,
    message: &str,
    agent: &str,
    frames: &FrameSender,
    whole: bool,
    mut wire: impl WireStream,
) {
    match ctx.service.stored_turn(message).await {
        Ok(stored) => {
            let finished = FinishedTurn::from_stored(&stored);
            if whole {
                for text in &finished.texts {
                    if !wire.send_text(frames, true, text).await {
                        return;
                    }
                }
            }
            wire.end_stream(frames, &finished).await;
        }
        Err(error) => {
            wire.end_broken(frames, &errors::problem_from_service(error, agent)).await;
        }
    }
}

/// Sends the texts in a turn's events to the client, in the form of one API.
struct WireListener<'a, W> {
    saying: StepText,
    whole: bool,
    wire: &'a mut W,
}

impl<W: WireStream> EventListener for WireListener<'_, W> {
    async fn handle_event(&mut self, event: &SessionEvent, frames: &FrameSender) -> bool {
        self.whole || self.saying.forward_event(event, frames, self.wire).await
    }
}

impl StepText {
    /// Sends the text of one event; returns false if the client has disconnected.
    async fn forward_event(
        &mut self,
        event: &SessionEvent,
        frames: &FrameSender,
        wire: &mut impl WireStream,
    ) -> bool {
        if !matches!(&*event.kind, "text_delta" | "step_started") {
            return true;
        }
        let Some(event) = parse_event(event) else { return true };
        // Texts of subagents are for their parent, not for the client.
        if event.agent.contains('/') {
            return true;
        }
        let EventKind::TextDelta { text } = event.kind else {
            *self = Self::default();
            return true;
        };
        self.held.push_str(&text);
        if self.held.trim().is_empty() && !self.begun {
            return true;
        }
        let (new, text) = (!self.begun, std::mem::take(&mut self.held));
        self.begun = true;
        wire.send_text(frames, new, &text).await
    }
}
