//! A running turn, event by event, for a stream.

use belljar_session::{EventWatch, RunningTurn};
use belljar_store::SessionEvent;

use crate::app::HandlerContext;
use crate::stream::pump::EventPump;
use crate::stream::sse::{FrameSender, StreamClock};

/// A receiver of a turn's events that sends them on to a client.
pub(crate) trait EventListener: Send {
    /// Sends on an event of the turn; returns false if the client has disconnected.
    async fn handle_event(&mut self, event: &SessionEvent, frames: &FrameSender) -> bool;
}

/// Passes the events of a running turn to `listener` until the turn has ended and its last event was sent.
/// Returns `None` if the client has disconnected, or its key is no longer valid.
pub(crate) async fn follow_turn(
    ctx: &HandlerContext,
    turn: &RunningTurn,
    frames: &FrameSender,
    to: &mut impl EventListener,
) -> Option<()> {
    let ended = async {
        turn.wait_for_end().await;
    };
    let hearing = FollowedTurn { session: &turn.session, message: &turn.message, last: None };
    hearing.until_its_end(ctx, turn.watch_events(), ended, frames, to).await
}

/// Like [`follow_turn`], for a turn that has ended: passes on its stored events.
pub(crate) async fn follow_past(
    ctx: &HandlerContext,
    session: &str,
    message: &str,
    frames: &FrameSender,
    to: &mut impl EventListener,
) -> Option<()> {
    let last = Some(ctx.store().last_event(session).await.unwrap_or(0));
    let watch = ctx.service.watch_session(session, Some(0)).await.ok()?;
    let hearing = FollowedTurn { session, message, last };
    hearing.until_its_end(ctx, watch, std::future::pending(), frames, to).await
}

/// A turn whose events are being passed on.
struct FollowedTurn<'a> {
    session: &'a str,
    message: &'a str,
    /// The id of the session's last event, once the turn has ended.
    last: Option<i64>,
}

impl FollowedTurn<'_> {
    /// Passes on events until the turn has ended and its last event was sent; `None` if the client has
    /// disconnected or its key is no longer valid.
    async fn until_its_end(
        mut self,
        ctx: &HandlerContext,
        watch: EventWatch,
        ended: impl Future<Output = ()>,
        frames: &FrameSender,
        to: &mut impl EventListener,
    ) -> Option<()> {
        let mut events = EventPump::start_pump(watch);
        tokio::pin!(ended);
        let mut pulse = StreamClock::new(ctx);
        let mut sent = 0;
        while self.last.is_none_or(|last| sent < last) {
            tokio::select! {
                biased;
                () = frames.wait_until_closed() => return None,
                // Checked before the events, because there may always be one more event.
                due = pulse.wait_for_due() => {
                    // INV-286: a caller whose key was revoked reads no more.
                    if !due.is_met(ctx, frames).await {
                        return None;
                    }
                }
                event = events.next() => {
                    // The service has shut down. The turn's state so far is in its stored row.
                    let Some(event) = event else { return Some(()) };
                    sent = event.id;
                    if *event.message == *self.message && !to.handle_event(&event, frames).await {
                        return None;
                    }
                }
                () = &mut ended, if self.last.is_none() => {
                    // All events of the turn were stored before it ended, so no event of the turn is later
                    // than this one.
                    self.last = Some(ctx.store().last_event(self.session).await.unwrap_or(0));
                }
                () = ctx.app.stopped_token().cancelled(), if self.last.is_none() => return Some(()),
            }
        }
        Some(())
    }
}
