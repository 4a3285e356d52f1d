//! A caller that waits for its turn, and the turn's fate when the caller disconnects.

use belljar_session::{RunningTurn, Service};
use tokio_util::sync::CancellationToken;

use crate::app::HandlerContext;

/// A caller that waits for a turn whose result is neither stored for later nor in the background. INV-492:
/// dropped before [`AwaitedTurn::end_waiting`], it cancels exactly that turn, unless the server itself is stopping.
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
    /// No waiting caller: a disconnect has no effect.
    pub(crate) fn by_nobody() -> Self {
        Self(None)
    }

    /// The caller of a turn. By the operator's setting, a disconnect cancels the turn or has no effect.
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

    /// Ends the wait: the turn was answered, or the caller does not wait any more.
    pub(crate) fn end_waiting(mut self) {
        self.0 = None;
    }
}

impl Drop for AwaitedTurn {
    fn drop(&mut self) {
        let Some(waiting) = self.0.take() else { return };
        if waiting.stopped.is_cancelled() {
            // The connection ended with the server: the turn is resumed at the next start.
            return;
        }
        let mut running = waiting.service.running_turns().into_iter();
        if running.any(|turn| turn.message == waiting.message) {
            let _ = waiting.service.cancel_turn(&waiting.session, &waiting.actor);
        }
    }
}
