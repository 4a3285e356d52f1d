//! The jars of the whole host, shared fairly by the tenants. A turn begins when there is room for the largest
//! number of jars that it may use at a time, so that no turn has to wait in its middle.
//!
//! Each tenant has its own queue, and the queues take turns: a tenant with a thousand waiting turns delays
//! another tenant's first turn by one turn.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The places for jars of the whole host, with a queue of waiting turns for each tenant.
#[derive(Debug)]
pub struct Admission {
    capacity: usize,
    most_waiting: usize,
    state: Mutex<AdmissionState>,
}

/// The free places for jars, and the waiting turns.
#[derive(Debug)]
struct AdmissionState {
    free: usize,
    waiting: usize,
    /// Each tenant with waiting turns, and its queue; the first tenant's first turn is next.
    tenants: VecDeque<(Arc<str>, VecDeque<QueuedTurn>)>,
}

/// A waiting turn: the jars that it needs, and the sender of its permit.
#[derive(Debug)]
struct QueuedTurn {
    jars: usize,
    go: oneshot::Sender<JarPermit>,
}

/// The right to a number of simultaneous jars. Dropping the permit frees the room.
#[derive(Debug)]
pub(crate) struct JarPermit {
    admission: Arc<Admission>,
    jars: usize,
}

/// The error that too many turns wait already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl Admission {
    /// Room for `jars` simultaneous jars and `waiting` queued turns. A turn that may need more jars than
    /// exist waits for all of them.
    pub fn new(jars: usize, waiting: usize) -> Arc<Self> {
        let state = AdmissionState { free: jars.max(1), waiting: 0, tenants: VecDeque::new() };
        Arc::new(Self { capacity: jars.max(1), most_waiting: waiting, state: Mutex::new(state) })
    }

    /// The jars that turns have reserved.
    pub fn in_use(&self) -> usize {
        self.capacity - self.lock_state().free
    }

    /// The number of jars.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Turns that wait.
    pub fn waiting_turns(&self) -> usize {
        self.lock_state().waiting
    }

    /// Waits for room for `jars` jars. If too many turns wait, this is an error, unless `sure` = the turn
    /// must be admitted. Dropping the future leaves the queue.
    pub(crate) async fn wait_for_permit(
        self: &Arc<Self>,
        tenant: &str,
        jars: usize,
        sure: bool,
    ) -> Result<JarPermit, QueueFull> {
        let jars = jars.clamp(1, self.capacity);
        let waiting = {
            let mut state = self.lock_state();
            if state.tenants.is_empty() && state.free >= jars {
                state.free -= jars;
                return Ok(JarPermit { admission: Arc::clone(self), jars });
            }
            if state.waiting >= self.most_waiting && !sure {
                return Err(QueueFull);
            }
            let (go, waiting) = oneshot::channel();
            state.waiting += 1;
            let waiter = QueuedTurn { jars, go };
            match state.tenants.iter_mut().find(|(name, _)| &**name == tenant) {
                Some((_, queue)) => queue.push_back(waiter),
                None => state.tenants.push_back((tenant.into(), VecDeque::from([waiter]))),
            }
            waiting
        };
        let _left = QueueExitGuard(self);
        waiting.await.map_err(|_| QueueFull)
    }

    /// Admits the next waiting turns, as long as there is room.
    fn admit_next(self: &Arc<Self>) {
        loop {
            let (waiter, permit) = {
                let mut state = self.lock_state();
                // Skips waiting turns whose callers have gone away.
                while let Some((_, queue)) = state.tenants.front_mut() {
                    let gone = queue.iter().take_while(|waiter| waiter.go.is_closed()).count();
                    queue.drain(..gone);
                    let empty = queue.is_empty();
                    state.waiting = state.waiting.saturating_sub(gone);
                    if !empty {
                        break;
                    }
                    state.tenants.pop_front();
                }
                let free = state.free;
                let Some((_, queue)) = state.tenants.front_mut() else { return };
                if queue.front().is_none_or(|waiter| waiter.jars > free) {
                    return;
                }
                let Some(waiter) = queue.pop_front() else { return };
                state.waiting = state.waiting.saturating_sub(1);
                state.free -= waiter.jars;
                // This tenant goes to the end, so that each other tenant is served before its next turn.
                if let Some((name, queue)) = state.tenants.pop_front()
                    && !queue.is_empty()
                {
                    state.tenants.push_back((name, queue));
                }
                let permit = JarPermit { admission: Arc::clone(self), jars: waiter.jars };
                (waiter, permit)
            };
            // If the waiter leaves at this moment, dropping the permit here frees the room.
            drop(waiter.go.send(permit));
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// On drop, offers the free room to the next turn, because the waiting turn that is dropped may have been
/// first in the queue.
struct QueueExitGuard<'a>(&'a Arc<Admission>);

impl Drop for QueueExitGuard<'_> {
    fn drop(&mut self) {
        self.0.admit_next();
    }
}

impl Drop for JarPermit {
    fn drop(&mut self) {
        self.admission.lock_state().free += self.jars;
        self.admission.admit_next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tenants_take_turns_and_the_bound_holds() {
        let admission = Admission::new(2, 10);
        let first = admission.wait_for_permit("a", 2, false).await.unwrap();
        assert_eq!(admission.in_use(), 2);
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for tenant in ["a", "a", "a", "b"] {
            let (admission, order) = (Arc::clone(&admission), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let permit = admission.wait_for_permit(tenant, 2, false).await.unwrap();
                assert!(admission.in_use() <= 2);
                order.lock().unwrap().push(tenant);
                drop(permit);
            }));
            tokio::task::yield_now().await;
        }
        assert_eq!(admission.waiting_turns(), 4);
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["a", "b", "a", "a"], "b waits for one of a's");
        assert_eq!((admission.in_use(), admission.waiting_turns()), (0, 0));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_whoever_leaves_makes_room() {
        let admission = Admission::new(1, 1);
        let first = admission.wait_for_permit("a", 9, false).await.unwrap();
        let waiting = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move { admission.wait_for_permit("a", 1, false).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(admission.wait_for_permit("b", 1, false).await.map(drop), Err(QueueFull));
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        assert_eq!(admission.in_use(), 1);
        drop(first);
        assert_eq!(admission.in_use(), 0);
        drop(admission.wait_for_permit("b", 1, false).await.unwrap());
    }
}
