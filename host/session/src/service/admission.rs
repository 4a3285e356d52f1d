//! The jars of the whole host, shared fairly by the tenants. A turn begins when there is room for the largest
//! number of jars that it may use at a time, so no turn waits in its middle.
//!
//! Tenants alternate in the queue, one waiting turn each: a tenant with a thousand waiting turns delays
//! another tenant's first turn by one turn.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The jars of the whole host.
#[derive(Debug)]
pub struct Admission {
    capacity: usize,
    most_waiting: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    waiting: usize,
    /// The tenants with waiting turns; the first one is next.
    tenants: VecDeque<(Arc<str>, VecDeque<Waiter>)>,
}

#[derive(Debug)]
struct Waiter {
    jars: usize,
    go: oneshot::Sender<Permit>,
}

/// The right to a number of simultaneous jars. Dropping the permit frees the room.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    jars: usize,
}

/// The queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Admission {
    /// Room for `jars` simultaneous jars and `waiting` queued turns. A turn that may need more jars than
    /// exist waits for all of them.
    pub fn new(jars: usize, waiting: usize) -> Arc<Self> {
        let state = State { free: jars.max(1), waiting: 0, tenants: VecDeque::new() };
        Arc::new(Self { capacity: jars.max(1), most_waiting: waiting, state: Mutex::new(state) })
    }

    /// The jars that turns have reserved.
    pub fn in_use(&self) -> usize {
        self.capacity - self.state().free
    }

    /// The number of jars.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Turns that wait.
    pub fn waiting(&self) -> usize {
        self.state().waiting
    }

    /// Waits for room for `jars`; an error if too many wait already, unless the turn is `sure` to be
    /// admitted. Dropping the future leaves the queue.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        tenant: &str,
        jars: usize,
        sure: bool,
    ) -> Result<Permit, Full> {
        let jars = jars.clamp(1, self.capacity);
        let waiting = {
            let mut state = self.state();
            if state.tenants.is_empty() && state.free >= jars {
                state.free -= jars;
                return Ok(Permit { admission: Arc::clone(self), jars });
            }
            if state.waiting >= self.most_waiting && !sure {
                return Err(Full);
            }
            let (go, waiting) = oneshot::channel();
            state.waiting += 1;
            let waiter = Waiter { jars, go };
            match state.tenants.iter_mut().find(|(name, _)| &**name == tenant) {
                Some((_, queue)) => queue.push_back(waiter),
                None => state.tenants.push_back((tenant.into(), VecDeque::from([waiter]))),
            }
            waiting
        };
        let _left = Left(self);
        waiting.await.map_err(|_| Full)
    }

    /// Admits the next waiting turns, as long as there is room.
    fn next(self: &Arc<Self>) {
        loop {
            let (waiter, permit) = {
                let mut state = self.state();
                // Waiters who have left are skipped.
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
                // The other tenants are served before this tenant's next turn.
                if let Some((name, queue)) = state.tenants.pop_front()
                    && !queue.is_empty()
                {
                    state.tenants.push_back((name, queue));
                }
                let permit = Permit { admission: Arc::clone(self), jars: waiter.jars };
                (waiter, permit)
            };
            // If the waiter leaves at this moment, dropping the permit here frees the room.
            drop(waiter.go.send(permit));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard of a waiting turn. Dropping the guard offers the free room to the next turn, because the turn in
/// front may have left.
struct Left<'a>(&'a Arc<Admission>);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.0.next();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.state().free += self.jars;
        self.admission.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tenants_take_turns_and_the_bound_holds() {
        let admission = Admission::new(2, 10);
        let first = admission.enter("a", 2, false).await.unwrap();
        assert_eq!(admission.in_use(), 2);
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for tenant in ["a", "a", "a", "b"] {
            let (admission, order) = (Arc::clone(&admission), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let permit = admission.enter(tenant, 2, false).await.unwrap();
                assert!(admission.in_use() <= 2);
                order.lock().unwrap().push(tenant);
                drop(permit);
            }));
            tokio::task::yield_now().await;
        }
        assert_eq!(admission.waiting(), 4);
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["a", "b", "a", "a"], "b waits for one of a's");
        assert_eq!((admission.in_use(), admission.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_whoever_leaves_makes_room() {
        let admission = Admission::new(1, 1);
        let first = admission.enter("a", 9, false).await.unwrap();
        let waiting = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move { admission.enter("a", 1, false).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(admission.enter("b", 1, false).await.map(drop), Err(Full));
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        assert_eq!(admission.in_use(), 1);
        drop(first);
        assert_eq!(admission.in_use(), 0);
        drop(admission.enter("b", 1, false).await.unwrap());
    }
}
