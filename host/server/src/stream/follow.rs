//! A running turn, event by event, for a stream.

use belljar_session::{RunningTurn, SessionEvent, Watch};

use crate::app::Ctx;
use crate::stream::pump::Pump;
use crate::stream::sse::{Frames, Pulse};

/// A receiver of a turn's events, which sends them on to a client.
pub(crate) trait Hears: Send {
    /// Forwards an event of the turn; `false` = the client has disconnected.
    async fn hears(&mut self, event: &SessionEvent, frames: &Frames) -> bool;
}

/// Passes on the events of a turn until the turn and its events have ended; `None` = the client has
/// disconnected, or is no longer admitted.
pub(crate) async fn follow(
    ctx: &Ctx,
    turn: &RunningTurn,
    frames: &Frames,
    to: &mut impl Hears,
) -> Option<()> {
    let ended = async {
        turn.ended().await;
    };
    let hearing = Hearing { session: &turn.session, message: &turn.message, last: None };
    hearing.until_its_end(ctx, turn.watch(), ended, frames, to).await
}

/// Hands the stored events of a turn that has ended over; `None` as in [`follow`].
pub(crate) async fn follow_past(
    ctx: &Ctx,
    session: &str,
    message: &str,
    frames: &Frames,
    to: &mut impl Hears,
) -> Option<()> {
    let last = Some(ctx.store().last_event(session).await.unwrap_or(0));
    let watch = ctx.service.watch(session, Some(0)).await.ok()?;
    let hearing = Hearing { session, message, last };
    hearing.until_its_end(ctx, watch, std::future::pending(), frames, to).await
}

/// A turn whose events are passed on.
struct Hearing<'a> {
    session: &'a str,
    message: &'a str,
    /// The id of the last event, once known.
    last: Option<i64>,
}

impl Hearing<'_> {
    async fn until_its_end(
        mut self,
        ctx: &Ctx,
        watch: Watch,
        ended: impl Future<Output = ()>,
        frames: &Frames,
        to: &mut impl Hears,
    ) -> Option<()> {
        let mut events = Pump::start(watch);
        tokio::pin!(ended);
        let mut pulse = Pulse::new(ctx);
        let mut sent = 0;
        while self.last.is_none_or(|last| sent < last) {
            tokio::select! {
                biased;
                () = frames.closed() => return None,
                // Before the events, because there may always be one more event.
                due = pulse.tick() => {
                    // INV-286: a caller with a revoked key reads no more.
                    if !due.is_met(ctx, frames).await {
                        return None;
                    }
                }
                event = events.next() => {
                    // The service has shut down: the turn's state so far is in its row.
                    let Some(event) = event else { return Some(()) };
                    sent = event.id;
                    if *event.message == *self.message && !to.hears(&event, frames).await {
                        return None;
                    }
                }
                () = &mut ended, if self.last.is_none() => {
                    // Events are stored before the turn ends, so this is the turn's last event, or a later
                    // turn's.
                    self.last = Some(ctx.store().last_event(self.session).await.unwrap_or(0));
                }
                () = ctx.app.stopped().cancelled(), if self.last.is_none() => return Some(()),
            }
        }
        Some(())
    }
}
