//! The events of one turn on the way to the store and to watchers: numbered within the session, stored in
//! blocks, and shown once stored.
//!
//! ```text
//! run ──push──> pending ──flush──> store ──committed──> watchers
//! ```
//!
//! A step is stored only after its earlier events (`flush`), so that a resumed run has lost no event of a
//! stored step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_store::{CommitHandle, EventBlock, SessionEvent, Store, StoreWrite};
use serde::Serialize;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use crate::record::hub::{Block, WatchHub};
use crate::record::place::TurnPlace;
use belljar_agent::Clock;
use belljar_agent::events::{Event, EventKind};

/// Most stored blocks that wait to be shown. Far more than there are subagents that store a step at the same
/// time.
const MAX_UNPUBLISHED: usize = 1_024;

/// The bytes of waiting events at which a block is stored.
const MAX_BLOCK: usize = 1 << 20;

/// Numbers, stores and then shows the events of one turn.
pub(crate) struct EventLog {
    inner: Arc<EventLogInner>,
    pump: Mutex<Option<JoinHandle<()>>>,
}

/// The part of the log that its listener and its storing task share.
struct EventLogInner {
    store: Store,
    clock: Arc<dyn Clock>,
    session: Arc<str>,
    message: Arc<str>,
    state: Mutex<EventLogState>,
    wake: Notify,
}

/// The events that are not stored yet.
struct EventLogState {
    /// The id of the next event.
    next: i64,
    pending: Vec<SessionEvent>,
    bytes: usize,
    /// Blocks waiting for their commit, in order; `None` after the end.
    publish: Option<mpsc::Sender<(Block, CommitHandle)>>,
}

/// An event in its stored form.
#[derive(Serialize)]
struct WireEvent<'a> {
    event_id: i64,
    /// The time of the event, in milliseconds since 1970.
    at: i64,
    session: &'a str,
    message: &'a str,
    #[serde(flatten)]
    event: &'a Event,
}

impl EventLog {
    /// Makes the log of a turn. `last` = the id of the session's last event before the turn.
    pub(crate) fn new(turn: &TurnPlace, hub: Arc<WatchHub>, last: i64) -> Self {
        let (publish, committed) = mpsc::channel(MAX_UNPUBLISHED);
        let state =
            EventLogState { next: last + 1, pending: Vec::new(), bytes: 0, publish: Some(publish) };
        let inner = Arc::new(EventLogInner {
            store: turn.store.clone(),
            clock: Arc::clone(&turn.clock),
            session: turn.session.as_str().into(),
            message: turn.message.as_str().into(),
            state: Mutex::new(state),
            wake: Notify::new(),
        });
        let pump = tokio::spawn(pump_blocks(Arc::clone(&inner), hub, committed));
        Self { inner, pump: Mutex::new(Some(pump)) }
    }

    /// A listener that adds each event of the run to the log.
    pub(crate) fn event_listener(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let inner = Arc::clone(&self.inner);
        move |event| inner.push_event(event)
    }

    /// Enqueues the waiting events for the store. A later write is stored only if these events are stored.
    pub(crate) fn flush(&self) {
        self.inner.flush();
    }

    /// Stores and shows the remaining events, and returns the id of the last one. No event may be pushed
    /// afterwards.
    pub(crate) async fn close(&self) -> i64 {
        self.inner.flush();
        self.inner.lock_state().publish = None;
        self.inner.wake.notify_one();
        let pump = self.pump.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(pump) = pump {
            // The task fails only while the runtime ends, when no watcher is left.
            let _ = pump.await;
        }
        self.inner.lock_state().next - 1
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        // The turn was dropped: the showing task ends after the last stored event.
        self.inner.lock_state().publish = None;
    }
}

impl EventLogInner {
    /// Numbers an event and adds it to the waiting ones. A full block is stored at once.
    fn push_event(&self, event: &Event) {
        let mut state = self.lock_state();
        let id = state.next;
        let at = self.clock.now().as_millisecond();
        let wire =
            WireEvent { event_id: id, at, session: &self.session, message: &self.message, event };
        let json = match serde_json::to_string(&wire) {
            Ok(json) => json,
            Err(error) => {
                tracing::error!(target: "belljar::session", "an event is not JSON: {error}");
                return;
            }
        };
        state.next += 1;
        state.bytes += json.len();
        let kind = event.kind.name().into();
        let message = Arc::clone(&self.message);
        state.pending.push(SessionEvent { id, message, kind, json: json.into() });
        let full = state.bytes >= MAX_BLOCK;
        drop(state);
        if full {
            self.flush();
        }
        // The event `RunFinished` is stored later, with the outcome of the turn.
        if !matches!(event.kind, EventKind::RunFinished { .. }) {
            self.wake.notify_one();
        }
    }

    /// Stores the waiting events as one block. The lock is held until the block is enqueued, so that blocks
    /// reach the store in order.
    fn flush(&self) {
        let mut state = self.lock_state();
        let Some(first) = state.pending.first() else { return };
        let block = EventBlock {
            first_seq: first.id,
            events: state.pending.iter().map(|event| event.json.as_ref().to_owned()).collect(),
        };
        let (session, message) = (self.session.to_string(), self.message.to_string());
        let committed =
            self.store.enqueue_writes(vec![StoreWrite::Events { session, message, block }]);
        let block: Block = std::mem::take(&mut state.pending).into();
        state.bytes = 0;
        if let Some(publish) = &state.publish {
            // The send fails if too many blocks wait, or while the runtime ends. Watchers then notice the
            // gap, and read the block from the store.
            let _ = publish.try_send((block, committed));
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, EventLogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows stored blocks in order. Stores the waiting events whenever no write is running, so that events which
/// arrive during a write share the next block.
async fn pump_blocks(
    inner: Arc<EventLogInner>,
    hub: Arc<WatchHub>,
    mut committed: mpsc::Receiver<(Block, CommitHandle)>,
) {
    let mut lost = 0_u64;
    loop {
        tokio::select! {
            biased;
            next = committed.recv() => {
                let Some((block, stored)) = next else { break };
                if let Err(error) = stored.await {
                    // An unstored event is not shown either, so that watchers and later readers see the same.
                    // Logged once, because no further block of a deleted session can be stored.
                    if lost == 0 {
                        tracing::error!(
                            target: "belljar::session",
                            session = %inner.session,
                            "events could not be stored: {error}"
                        );
                    }
                    lost += 1;
                    continue;
                }
                hub.publish_block(&inner.session, &block);
            }
            () = inner.wake.notified() => inner.flush(),
        }
    }
    if lost > 1 {
        tracing::error!(
            target: "belljar::session",
            session = %inner.session,
            blocks = lost,
            "so many blocks of events could not be stored"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_agent::{Event, EventKind, FixedClock, RunId};

    #[test]
    fn no_field_of_an_event_is_called_as_one_of_its_turn() {
        let clock = FixedClock::new("2026-11-20T10:00:00Z".parse().unwrap());
        let message = || "words".to_owned();
        let progress = EventKind::ToolProgress {
            call_id: "1".to_owned(),
            tool: "count".to_owned(),
            done: 1,
            total: None,
            message: message(),
        };
        for kind in [progress, EventKind::Warning { message: message() }] {
            let run = RunId::new(&clock);
            let event = Event { v: 3, run, seq: 0, agent: "main".into(), kind };
            let wire =
                WireEvent { event_id: 1, at: 2, session: "s", message: "turn", event: &event };
            let json = serde_json::to_string(&wire).unwrap();
            assert_eq!(json.matches("\"message\":").count(), 1, "{json}");
            let read: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!((&read["message"], &read["text"]), (&"turn".into(), &"words".into()));
        }
    }
}
