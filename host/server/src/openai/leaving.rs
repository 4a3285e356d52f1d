//! Decides what happens to a turn when the caller who waits for it disconnects.

use belljar_session::{RunningTurn, Service};
use tokio_util::sync::CancellationToken;

use crate::app::HandlerContext;

/// A caller who waits for a turn that is neither stored for later nor in the background. INV-492: if this
/// value is dropped before [`AwaitedTurn::end_waiting`], exactly that turn is cancelled, unless the server
/// itself is stopping.
#[derive(Debug)]
pub(crate) struct AwaitedTurn(Option<WaitingCaller>);

struct WaitingCaller {
    service: Service,
    stopped: CancellationToken,
    session: String,
    message: String,
    actor: String,
}

impl std::fmt::Debug for WaitingCaller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitingCaller").field("message", &self.message).finish_non_exhaustive()
    }
}

impl AwaitedTurn {
    /// No caller waits, so a disconnect has no effect on the turn.
    pub(crate) fn by_nobody() -> Self {
        Self(None)
    }

    /// The caller waits. If the caller disconnects, the turn is cancelled or continues, by the operator's
    /// setting.
    pub(crate) fn by_caller(ctx: &HandlerContext, turn: &RunningTurn) -> Self {
        if ctx.app.config().finish_left_turns {
            return Self::by_nobody();
        }
        Self(Some(WaitingCaller {
            service: ctx.service.clone(),
            stopped: ctx.app.stopped_token().clone(),
            session: turn.session.clone(),
            message: turn.message.clone(),
            actor: ctx.caller.actor.to_string(),
        }))
    }

    /// Ends the waiting without cancelling the turn: it was answered, or the caller need not wait any more.
    pub(crate) fn end_waiting(mut self) {
        self.0 = None;
    }
}

impl Drop for AwaitedTurn {
    fn drop(&mut self) {
        let Some(waiting) = self.0.take() else { return };
        if waiting.stopped.is_cancelled() {
            // The server is stopping, and resumes the turn at its next start.
            return;
        }
        let mut running = waiting.service.running_turns().into_iter();
        if running.any(|turn| turn.message == waiting.message) {
            let _ = waiting.service.cancel_turn(&waiting.session, &waiting.actor);
        }
    }
}
