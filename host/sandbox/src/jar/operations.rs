//! Running host operations that may outlive their call. Closing a jar waits for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The operations of one jar.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    names: BTreeMap<u64, String>,
}

/// One operation; ends when dropped.
#[derive(Debug)]
pub(crate) struct Operation {
    id: u64,
    all: Arc<Operations>,
}

impl Operations {
    /// Begins an operation. `name` is for the operator.
    pub(crate) fn begin(self: &Arc<Self>, name: &str) -> Operation {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.names.insert(id, name.to_owned());
        Operation { id, all: Arc::clone(self) }
    }

    /// The names of running operations.
    pub(crate) fn names(&self) -> Vec<String> {
        self.state().names.values().cloned().collect()
    }

    /// Waits until no operation is running.
    pub(crate) async fn ended(&self) {
        loop {
            let changed = self.ended.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.state().names.is_empty() {
                return;
            }
            changed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        self.all.state().names.remove(&self.id);
        self.all.ended.notify_waiters();
    }
}
