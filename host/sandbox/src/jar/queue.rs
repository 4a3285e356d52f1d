//! The order of calls in a jar.
//!
//! Calls of a component wait for each other. Calls of different components overlap only if both tools are
//! hinted read-only; any other call runs alone in the jar. Calls start in the order of their requests; a
//! call may overtake an earlier one only if the two may overlap.
//!
//! One queue serves all stores of a jar. A task for each store would mean as many tasks and channels as
//! there are jars and tools, and each call would cross threads twice. A store still has one owner at any
//! time, because a call takes it out of the jar; dropping the call drops the store.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

/// The most calls that wait in one jar: a model's step makes a few dozen.
const MAX_WAITING: usize = 1_024;

/// The calls of a jar that run or wait.
#[derive(Debug, Default)]
pub(crate) struct CallQueue {
    state: Mutex<QueueState>,
    idle: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    running: Vec<QueueEntry>,
    waiting: VecDeque<(QueueEntry, oneshot::Sender<()>)>,
    next: u64,
}

/// A call in the queue. `lane` is the component's slot; `shared` means that the call is read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct QueueEntry {
    id: u64,
    lane: usize,
    shared: bool,
}

/// A call's entry in the queue, waiting or running. Dropping the ticket removes the entry and starts the
/// next calls.
#[derive(Debug)]
pub(crate) struct QueueTicket<'a> {
    queue: &'a CallQueue,
    id: u64,
}

/// The queue already has [`MAX_WAITING`] waiting calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl CallQueue {
    /// Waits until a call of the component `lane` may run. A `shared` call may overlap with shared calls of
    /// other lanes.
    pub(crate) async fn enter_lane(
        &self,
        lane: usize,
        shared: bool,
    ) -> Result<QueueTicket<'_>, QueueFull> {
        let (ticket, turn) = self.request_entry(lane, shared)?;
        if let Some(turn) = turn {
            // The sender is in the queue until the ticket is dropped, so this cannot fail.
            let _ = turn.await;
        }
        Ok(ticket)
    }

    /// Waits until the queue is empty.
    pub(crate) async fn wait_idle(&self) {
        loop {
            let changed = self.idle.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.lock_state().is_idle() {
                return;
            }
            changed.await;
        }
    }

    fn request_entry(
        &self,
        lane: usize,
        shared: bool,
    ) -> Result<(QueueTicket<'_>, Option<oneshot::Receiver<()>>), QueueFull> {
        let mut state = self.lock_state();
        let entry = QueueEntry { id: state.next, lane, shared };
        state.next += 1;
        let ticket = QueueTicket { queue: self, id: entry.id };
        if state.waiting.is_empty() && state.may_run(&entry) {
            state.running.push(entry);
            return Ok((ticket, None));
        }
        if state.waiting.len() >= MAX_WAITING {
            // The ticket never entered the queue, so dropping it must not remove an entry.
            std::mem::forget(ticket);
            return Err(QueueFull);
        }
        let (start, turn) = oneshot::channel();
        state.waiting.push_back((entry, start));
        state.start_waiting();
        Ok((ticket, Some(turn)))
    }

    fn remove_entry(&self, id: u64) {
        let mut state = self.lock_state();
        state.running.retain(|entry| entry.id != id);
        state.waiting.retain(|(entry, _)| entry.id != id);
        state.start_waiting();
        if state.is_idle() {
            self.idle.notify_waiters();
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    fn may_run(&self, entry: &QueueEntry) -> bool {
        self.running.iter().all(|other| entry.may_overlap(other))
    }

    /// Starts every waiting call that may run beside the running calls, and beside all calls that wait before
    /// it.
    fn start_waiting(&mut self) {
        let mut passed: Vec<QueueEntry> = Vec::new();
        let mut waiting = VecDeque::with_capacity(self.waiting.len());
        for (entry, start) in std::mem::take(&mut self.waiting) {
            let first = passed.iter().all(|earlier| entry.may_overlap(earlier));
            if first && self.may_run(&entry) {
                self.running.push(entry);
                // If the receiver is gone, its ticket is being dropped; that drop waits for this lock, and
                // then removes the entry.
                let _ = start.send(());
            } else {
                passed.push(entry);
                waiting.push_back((entry, start));
            }
        }
        self.waiting = waiting;
    }
}

impl QueueEntry {
    fn may_overlap(&self, other: &Self) -> bool {
        self.lane != other.lane && self.shared && other.shared
    }
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        self.queue.remove_entry(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(turn: &mut Option<oneshot::Receiver<()>>) -> bool {
        turn.as_mut().is_none_or(|turn| turn.try_recv().is_ok())
    }

    #[test]
    fn calls_of_one_lane_run_in_the_order_asked() {
        let queue = CallQueue::default();
        let (a, _) = queue.request_entry(0, true).unwrap();
        let (b, mut b_turn) = queue.request_entry(0, true).unwrap();
        let (_c, mut c_turn) = queue.request_entry(0, true).unwrap();
        assert!(!started(&mut b_turn));
        drop(a);
        assert!(started(&mut b_turn) && !started(&mut c_turn));
        drop(b);
        assert!(started(&mut c_turn));
    }

    #[test]
    fn only_shared_calls_of_different_lanes_overlap() {
        let queue = CallQueue::default();
        let (a, _) = queue.request_entry(0, true).unwrap();
        let (b, mut b_turn) = queue.request_entry(1, true).unwrap();
        assert!(started(&mut b_turn));
        let (w, mut w_turn) = queue.request_entry(2, false).unwrap();
        let (_r, mut r_turn) = queue.request_entry(3, true).unwrap();
        drop(a);
        assert!(!started(&mut w_turn));
        drop(b);
        assert!(started(&mut w_turn) && !started(&mut r_turn), "a writer runs alone");
        drop(w);
        assert!(started(&mut r_turn));
    }

    #[test]
    fn an_earlier_read_of_a_busy_lane_is_not_overtaken_by_a_write() {
        let queue = CallQueue::default();
        let (a1, _) = queue.request_entry(0, true).unwrap();
        let (a2, mut a2_turn) = queue.request_entry(0, true).unwrap();
        let (_w, mut w_turn) = queue.request_entry(1, false).unwrap();
        let (_r, mut r_turn) = queue.request_entry(2, true).unwrap();
        drop(a1);
        assert!(started(&mut a2_turn) && !started(&mut w_turn) && !started(&mut r_turn));
        drop(a2);
        assert!(started(&mut w_turn) && !started(&mut r_turn));
    }

    #[test]
    fn a_dropped_waiter_holds_nobody_up() {
        let queue = CallQueue::default();
        let (a, _) = queue.request_entry(0, false).unwrap();
        let (b, _turn) = queue.request_entry(0, false).unwrap();
        let (_c, mut c_turn) = queue.request_entry(0, false).unwrap();
        drop(b);
        drop(a);
        assert!(started(&mut c_turn));
    }

    #[test]
    fn the_queue_is_bounded_and_recovers() {
        let queue = CallQueue::default();
        let (a, _) = queue.request_entry(0, false).unwrap();
        let waiting: Vec<_> =
            (0..MAX_WAITING).map(|_| queue.request_entry(0, false).unwrap()).collect();
        assert_eq!(queue.request_entry(0, false).err(), Some(QueueFull));
        drop((a, waiting));
        assert!(queue.request_entry(0, false).unwrap().1.is_none());
    }
}
