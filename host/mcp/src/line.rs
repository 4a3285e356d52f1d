//! The queue of one agent's calls to one server: the first caller uses the session alone. INV-365: the
//! session is kept for the next call only if the caller has called `settle`. A call that ends early, for
//! example because its future was dropped, ends the session.

use std::ops::{Deref, DerefMut};

use tokio::sync::{Mutex, MutexGuard};

/// A session that one caller at a time may use; others wait in the order in which they came.
#[derive(Debug)]
pub(crate) struct SessionQueue<T>(Mutex<Option<T>>);

/// The right to use the session, until dropped.
#[derive(Debug)]
pub(crate) struct QueueFront<'a, T> {
    session: MutexGuard<'a, Option<T>>,
    settled: bool,
}

impl<T> SessionQueue<T> {
    /// Waits until all earlier callers are done.
    pub(crate) async fn wait_for_front(&self) -> QueueFront<'_, T> {
        QueueFront { session: self.0.lock().await, settled: false }
    }
}

impl<T> Default for SessionQueue<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> QueueFront<'_, T> {
    /// Keeps the session, if there is one, for the next caller.
    pub(crate) fn settle(mut self) {
        self.settled = true;
    }
}

impl<T> Deref for QueueFront<'_, T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.session
    }
}

impl<T> DerefMut for QueueFront<'_, T> {
    fn deref_mut(&mut self) -> &mut Option<T> {
        &mut self.session
    }
}

impl<T> Drop for QueueFront<'_, T> {
    fn drop(&mut self) {
        if !self.settled {
            *self.session = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn a_call_that_is_dropped_leaves_its_session_to_nobody_who_waits() {
        let line = Arc::<SessionQueue<u32>>::default();
        let mut first = line.wait_for_front().await;
        *first = Some(7);
        first.settle();
        let (begun, own) = (Arc::<Notify>::default(), Arc::clone(&line));
        let begins = Arc::clone(&begun);
        let call = tokio::spawn(async move {
            let front = own.wait_for_front().await;
            assert_eq!(*front, Some(7));
            begins.notify_one();
            std::future::pending::<()>().await;
        });
        begun.notified().await;
        let mut next = Box::pin(line.wait_for_front());
        // The next call waits in the queue while the other one still runs.
        assert!(is_waiting(&mut next).await);
        call.abort();
        assert_eq!(*next.await, None);
    }

    async fn is_waiting<F: Future + Unpin>(future: &mut F) -> bool {
        tokio::select! {
            biased;
            _ = future => false,
            () = std::future::ready(()) => true,
        }
    }
}
