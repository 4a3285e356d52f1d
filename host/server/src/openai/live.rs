//! A turn as a stream: the agent's text, step by step, and the end.

use belljar_agent::{Brought, EventKind};
use belljar_session::{RunningTurn, SessionEvent, StoredTurnOf};

use crate::app::Ctx;
use crate::http::problem::Problem;
use crate::openai::errors;
use crate::openai::finished::Finished;
use crate::openai::leaving::Awaited;
use crate::stream::follow::{Hears, follow, follow_past};
use crate::stream::sse::Frames;

/// A stream in the shape of one wire.
pub(crate) trait Wire: Send {
    /// The stream begins.
    async fn begin(&mut self, frames: &Frames) -> bool;

    /// Sends a text of the agent, never a blank one; `new` = the text begins a step. `false` = the client has
    /// disconnected.
    async fn text(&mut self, frames: &Frames, new: bool, text: &str) -> bool;

    /// Sends the end of the turn, after all its texts.
    async fn end(&mut self, frames: &Frames, finished: &Finished) -> bool;

    /// Ends the stream with a problem, before the end of the turn.
    async fn broken(&mut self, frames: &Frames, problem: &Problem) -> bool;
}

/// Returns whether to send a turn's text only when complete: earlier text may be an attempt without the
/// required form or call.
pub(crate) fn is_whole(brought: &Brought) -> bool {
    brought.form.is_some() || brought.choice.is_some()
}

/// The text of the present step.
#[derive(Default)]
struct Saying {
    /// Blank text so far. Held back, because a step with only blank text is no message.
    held: String,
    /// True after a text of this step was sent.
    begun: bool,
}

/// A streamed turn: live or stored, from the same events.
pub(crate) enum Source {
    /// A running turn with its caller. If the caller disconnects, the turn may be cancelled.
    Running(Box<RunningTurn>, Awaited),
    Past(Box<StoredTurnOf>),
}

/// Streams a turn to its end. `whole`: sends the text only when complete, because earlier text may not be the
/// answer.
pub(crate) async fn stream(
    ctx: Ctx,
    source: Source,
    frames: Frames,
    whole: bool,
    mut wire: impl Wire,
) {
    let _counted = ctx.app.metrics().streams.one();
    if !wire.begin(&frames).await {
        return;
    }
    let mut telling = Telling { saying: Saying::default(), whole, wire: &mut wire };
    let (told, message, agent) = match &source {
        Source::Running(turn, _) => {
            let told = follow(&ctx, turn, &frames, &mut telling).await;
            (told, &turn.message, &turn.agent)
        }
        Source::Past(stored) => {
            let (session, message) = (&stored.turn.state.session, &stored.turn.message);
            let told = follow_past(&ctx, &session.id, message, &frames, &mut telling).await;
            (told, message, &session.agent)
        }
    };
    if told.is_some() {
        end(&ctx, message, agent, &frames, whole, wire).await;
    }
    if let Source::Running(_, awaited) = source
        && !frames.is_closed()
    {
        // INV-286: a caller with a revoked key has not left, so the turn runs on.
        awaited.over();
    }
}

/// Sends the end of a stream, from the stored turn.
async fn end(
    ctx: &Ctx,
    message: &str,
    agent: &str,
    frames: &Frames,
    whole: bool,
    mut wire: impl Wire,
) {
    match ctx.service.stored_turn(message).await {
        Ok(stored) => {
            let finished = Finished::of(&stored);
            if whole {
                for text in &finished.texts {
                    if !wire.text(frames, true, text).await {
                        return;
                    }
                }
            }
            wire.end(frames, &finished).await;
        }
        Err(error) => {
            wire.broken(frames, &errors::of_service(error, agent)).await;
        }
    }
}

/// Forwards a turn's texts in the wire format of one API.
struct Telling<'a, W> {
    saying: Saying,
    whole: bool,
    wire: &'a mut W,
}

impl<W: Wire> Hears for Telling<'_, W> {
    async fn hears(&mut self, event: &SessionEvent, frames: &Frames) -> bool {
        self.whole || self.saying.hears(event, frames, self.wire).await
    }
}

impl Saying {
    /// Forwards an event; `false` = the client has disconnected.
    async fn hears(&mut self, event: &SessionEvent, frames: &Frames, wire: &mut impl Wire) -> bool {
        if !matches!(&*event.kind, "text_delta" | "step_started") {
            return true;
        }
        let Some(event) = event.read() else { return true };
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
        wire.text(frames, new, &text).await
    }
}
