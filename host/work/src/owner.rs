//! The threads and the queue of each owner.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    MAX_RUNNING, MAX_RUNNING_OF_OPERATOR, MAX_RUNNING_PER_OWNER, MAX_WAITING_PER_OWNER, OPERATOR,
};

/// The limits of the process, because its threads are shared.
static ALL: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_RUNNING)));
static OWNERS: LazyLock<Mutex<HashMap<String, Weak<Owner>>>> = LazyLock::new(Mutex::default);

/// The size of [`OWNERS`] beyond which owners without a job are removed.
const TIDY_AT: usize = 1024;

#[derive(Debug)]
struct Owner {
    is_operator: bool,
    running: Arc<Semaphore>,
    /// The running and the waiting jobs.
    present: Arc<Semaphore>,
}

/// A place in an owner's queue.
pub(crate) struct Place {
    owner: Arc<Owner>,
    present: OwnedSemaphorePermit,
}

/// A thread, reserved until the job has returned.
#[expect(dead_code, reason = "the permits are held for their drop alone")]
pub(crate) struct Slot {
    running: OwnedSemaphorePermit,
    all: Option<OwnedSemaphorePermit>,
    place: OwnedSemaphorePermit,
    owner: Arc<Owner>,
}

/// Reserves a place in the queue of `name`; `None` = the queue is full.
pub(crate) fn queue(name: &str) -> Option<Place> {
    let mut owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
    let owner = owners.get(name).and_then(Weak::upgrade);
    let owner = owner.unwrap_or_else(|| {
        if owners.len() >= TIDY_AT {
            owners.retain(|_, owner| owner.strong_count() > 0);
        }
        let (running, present) = match name {
            OPERATOR => (MAX_RUNNING_OF_OPERATOR, Semaphore::MAX_PERMITS),
            _ => (MAX_RUNNING_PER_OWNER, MAX_RUNNING_PER_OWNER + MAX_WAITING_PER_OWNER),
        };
        let owner = Arc::new(Owner {
            is_operator: name == OPERATOR,
            running: Arc::new(Semaphore::new(running)),
            present: Arc::new(Semaphore::new(present)),
        });
        owners.insert(name.to_owned(), Arc::downgrade(&owner));
        owner
    });
    drop(owners);
    let present = Arc::clone(&owner.present).try_acquire_owned().ok()?;
    Some(Place { owner, present })
}

impl Place {
    /// Waits for a thread of the owner, then for one of the process, in the order of requests.
    pub(crate) async fn slot(self) -> Slot {
        let running = acquire(&self.owner.running).await;
        let all = match self.owner.is_operator {
            true => None,
            false => Some(acquire(&ALL).await),
        };
        Slot { running, all, place: self.present, owner: self.owner }
    }
}

/// A permit of the semaphore, which is never closed.
async fn acquire(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    loop {
        if let Ok(permit) = Arc::clone(semaphore).acquire_owned().await {
            return permit;
        }
        tokio::task::yield_now().await;
    }
}
