//! Operations of the host, for example a file copy, that may run on after their call has ended.
//! [`crate::Jar::close`] waits for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The running operations of a jar.
#[derive(Debug, Default)]
pub(crate) struct JarOperations {
    state: Mutex<OperationsState>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct OperationsState {
    next: u64,
    names: BTreeMap<u64, String>,
}

/// A running operation; it ends when this guard is dropped.
#[derive(Debug)]
pub(crate) struct OperationGuard {
    id: u64,
    all: Arc<JarOperations>,
}

impl JarOperations {
    /// Registers a running operation. `name` is shown to the operator if it does not end.
    pub(crate) fn begin_operation(self: &Arc<Self>, name: &str) -> OperationGuard {
        let mut state = self.lock_state();
        let id = state.next;
        state.next += 1;
        state.names.insert(id, name.to_owned());
        OperationGuard { id, all: Arc::clone(self) }
    }

    /// The names of running operations.
    pub(crate) fn running_names(&self) -> Vec<String> {
        self.lock_state().names.values().cloned().collect()
    }

    /// Waits until no operation is running.
    pub(crate) async fn wait_ended(&self) {
        loop {
            let changed = self.ended.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.lock_state().names.is_empty() {
                return;
            }
            changed.await;
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, OperationsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OperationGuard {
    fn drop(&mut self) {
        self.all.lock_state().names.remove(&self.id);
        self.all.ended.notify_waiters();
    }
}
