//! The watchers of each session. A watcher receives an event once it is stored, so a client that reads on
//! from the last id it saw misses no event and sees no event twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_agent::Event;
use belljar_store::{SessionEvent, Store, StoreError};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Most blocks in memory for one slow watcher. A watcher that is further behind reads from the store, so its
/// memory does not grow.
const MAX_BEHIND: usize = 64;

/// The number of events that a watcher reads from the store at a time.
const PAGE: u32 = 500;

/// Parses a stored event; `None` = a newer version of belljar stored an event of an unknown type.
pub fn parse_event(event: &SessionEvent) -> Option<Event> {
    serde_json::from_str(&event.json).ok()
}

/// Events that were stored together, in order.
pub(crate) type Block = Arc<[SessionEvent]>;

/// The watchers of one tenant's sessions.
#[derive(Debug, Default)]
pub(crate) struct WatchHub(Mutex<HashMap<Arc<str>, broadcast::Sender<Block>>>);

/// The events of one session: stored events after a position, then new events as they arrive, without gap or
/// repeat.
#[derive(Debug)]
pub struct EventWatch {
    hub: Arc<WatchHub>,
    store: Store,
    session: Arc<str>,
    live: Option<broadcast::Receiver<Block>>,
    /// The id of the last event that was returned.
    last: i64,
    ready: VecDeque<SessionEvent>,
    /// True if the store may have events that this watcher has not read.
    behind: bool,
}

impl WatchHub {
    /// Sends a stored block to all watchers of the session.
    pub(crate) fn publish_block(&self, session: &str, block: &Block) {
        if let Some(sender) = self.lock_sessions().get(session) {
            // The send fails if the last watcher has just left.
            let _ = sender.send(Arc::clone(block));
        }
    }

    /// Watches a session after the event `after`; `None` = only new events. An id that is not stored yet
    /// counts as `None`, because no watcher has seen such an event.
    pub(crate) async fn watch_session(
        self: &Arc<Self>,
        store: &Store,
        session: &str,
        after: Option<i64>,
    ) -> Result<EventWatch, StoreError> {
        let mut watch = self.watch_behind(store, session, after.unwrap_or(0));
        // INV-112: the client chose the number, so it is checked against the store.
        let newest = store.last_event(&watch.session).await?;
        if after.is_none_or(|after| after >= newest) {
            watch.behind = false;
            watch.last = newest;
        }
        Ok(watch)
    }

    /// Watches the events of a session after event `last`.
    pub(crate) fn watch_behind(
        self: &Arc<Self>,
        store: &Store,
        session: &str,
        last: i64,
    ) -> EventWatch {
        let session: Arc<str> = session.into();
        // Subscribed before the store is read, so that no event between the two is missed.
        let live = {
            let mut sessions = self.lock_sessions();
            let sender = sessions.entry(Arc::clone(&session));
            sender.or_insert_with(|| broadcast::channel(MAX_BEHIND).0).subscribe()
        };
        EventWatch {
            hub: Arc::clone(self),
            store: store.clone(),
            session,
            live: Some(live),
            last,
            ready: VecDeque::new(),
            behind: true,
        }
    }

    /// Ends the watches of a session that has no more events.
    pub(crate) fn end_session(&self, session: &str) {
        self.lock_sessions().remove(session);
    }

    /// Ends all watches.
    pub(crate) fn end_all(&self) {
        self.lock_sessions().clear();
    }

    fn lock_sessions(&self) -> MutexGuard<'_, HashMap<Arc<str>, broadcast::Sender<Block>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventWatch {
    /// Waits for the next event; `None` = the host shuts down, the session was deleted, or the store failed.
    /// Dropping the future loses no event.
    pub async fn next_event(&mut self) -> Option<SessionEvent> {
        loop {
            if let Some(event) = self.next_stored().await? {
                return Some(event);
            }
            match self.live.as_mut()?.recv().await {
                Ok(block) => self.add_block(&block),
                Err(RecvError::Lagged(_)) => self.behind = true,
                Err(RecvError::Closed) => {
                    self.live = None;
                    // No further events will be sent, but the last stored ones still have to be read.
                    self.behind = true;
                }
            }
        }
    }

    /// The next event that is stored already, without waiting. Outer `None` = the watch has ended; inner
    /// `None` = there is no further stored event yet.
    pub async fn next_stored(&mut self) -> Option<Option<SessionEvent>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.last = event.id;
                return Some(Some(event));
            }
            if !self.behind {
                return if self.live.is_some() { Some(None) } else { None };
            }
            let page = self.store.events_after(&self.session, self.last, PAGE).await;
            let page = page.inspect_err(|error| {
                tracing::error!(target: "belljar::session", session = %self.session, "{error}");
            });
            let page = page.ok()?;
            self.behind = !page.is_empty();
            self.ready.extend(page);
        }
    }

    /// The id of the last event that was returned.
    pub fn last_id(&self) -> i64 {
        self.last
    }

    /// Adds a block's new events to the ready ones. If events before the block are missing, the store is read
    /// instead.
    fn add_block(&mut self, block: &Block) {
        match block.first() {
            // Events between the last one read and this block are missing.
            Some(first) if first.id > self.last.saturating_add(1) => self.behind = true,
            Some(_) => {
                let new = block.iter().filter(|event| event.id > self.last);
                self.ready.extend(new.cloned());
            }
            None => {}
        }
    }
}

impl Drop for EventWatch {
    fn drop(&mut self) {
        self.live = None;
        let mut sessions = self.hub.lock_sessions();
        if sessions.get(&self.session).is_some_and(|sender| sender.receiver_count() == 0) {
            sessions.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_an_unknown_type_is_watched_and_not_parsed() {
        for json in [r#"{"event_id":1,"type":"of_a_later_program"}"#, r#"{"type":"todos"}"#, "[]"] {
            let event = SessionEvent::from_json(1, &"m".into(), json);
            assert!(parse_event(&event).is_none(), "{json}");
        }
    }
}
