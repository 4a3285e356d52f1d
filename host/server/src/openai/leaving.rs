//! A caller that waits for its turn, and the turn's fate when the caller disconnects.

use belljar_session::{RunningTurn, Service};
use tokio_util::sync::CancellationToken;

use crate::app::Ctx;

/// A caller that waits for a turn whose result is neither stored for later nor in the background. INV-492:
/// dropped before [`Awaited::over`], it cancels exactly that turn, unless the server itself is stopping.
#[derive(Debug)]
pub(crate) struct Awaited(Option<Waiting>);

struct Waiting {
    service: Service,
    stopped: CancellationToken,
    session: String,
    message: String,
    actor: String,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("message", &self.message).finish_non_exhaustive()
    }
}

impl Awaited {
    /// No waiting caller: a disconnect has no effect.
    pub(crate) fn by_nobody() -> Self {
        Self(None)
    }

    /// The caller of a turn. By the operator's setting, a disconnect cancels the turn or has no effect.
    pub(crate) fn by_caller(ctx: &Ctx, turn: &RunningTurn) -> Self {
        if ctx.app.config().finish_left_turns {
            return Self::by_nobody();
        }
        Self(Some(Waiting {
            service: ctx.service.clone(),
            stopped: ctx.app.stopped().clone(),
            session: turn.session.clone(),
            message: turn.message.clone(),
            actor: ctx.caller.actor.to_string(),
        }))
    }

    /// Ends the wait: the turn was answered, or the caller does not wait any more.
    pub(crate) fn over(mut self) {
        self.0 = None;
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        let Some(waiting) = self.0.take() else { return };
        if waiting.stopped.is_cancelled() {
            // The connection ended with the server: the turn is resumed at the next start.
            return;
        }
        let mut running = waiting.service.running().into_iter();
        if running.any(|turn| turn.message == waiting.message) {
            let _ = waiting.service.cancel(&waiting.session, &waiting.actor);
        }
    }
}
