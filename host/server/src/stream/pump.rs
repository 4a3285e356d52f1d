//! Passes the events of a session from a watch to a stream, with a bounded queue between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use belljar_session::EventWatch;
use belljar_store::SessionEvent;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The most events that wait for a reader. For a slower reader, further events stay in the store until it has
/// read these.
const MAX_WAITING: usize = 32;

/// The most bytes of waiting events. A larger event waits alone.
const MAX_WAITING_BYTES: u32 = 64 << 10;

/// The reading end of the queue. Unlike with a watch, a caller may drop the wait for the next event and wait
/// again without losing one.
#[derive(Debug)]
pub(crate) struct EventPump(mpsc::Receiver<(SessionEvent, OwnedSemaphorePermit)>);

impl EventPump {
    /// Starts a task that moves events from the watch to the queue. It ends when the reading end is dropped,
    /// or with the watch.
    pub(crate) fn start_pump(mut watch: EventWatch) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let room = Arc::new(Semaphore::new(usize::try_from(MAX_WAITING_BYTES).unwrap_or(0)));
        tokio::spawn(async move {
            loop {
                let event = tokio::select! {
                    () = sender.closed() => return,
                    event = watch.next_event() => event,
                };
                let Some(event) = event else { return };
                let bytes = u32::try_from(event.json.len()).unwrap_or(u32::MAX);
                let room = tokio::select! {
                    () = sender.closed() => return,
                    room = Arc::clone(&room).acquire_many_owned(bytes.min(MAX_WAITING_BYTES)) => room,
                };
                // The semaphore is never closed, so this is no error in practice.
                let Ok(room) = room else { return };
                if sender.send((event, room)).await.is_err() {
                    return;
                }
            }
        });
        Self(receiver)
    }

    /// The next event; `None` if no more events follow.
    pub(crate) async fn next(&mut self) -> Option<SessionEvent> {
        self.0.recv().await.map(|(event, _)| event)
    }
}

/// A counter with an upper limit.
#[derive(Debug, Default)]
pub(crate) struct BoundedCounter(AtomicU32);

impl BoundedCounter {
    /// Adds one; returns false, without adding, if the count has reached `most`.
    pub(crate) fn try_add(&self, most: u32) -> bool {
        let more = |count: u32| (count < most).then(|| count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    pub(crate) fn subtract_one(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
