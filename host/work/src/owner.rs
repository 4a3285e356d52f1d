//! The threads and the waiting jobs of each owner.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    MAX_RUNNING, MAX_RUNNING_OF_OPERATOR, MAX_RUNNING_PER_OWNER, MAX_WAITING_PER_OWNER, OPERATOR,
};

/// The free threads of the process, which all owners but the operator share.
static ALL: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_RUNNING)));
static OWNERS: LazyLock<Mutex<HashMap<String, Weak<OwnerLimits>>>> = LazyLock::new(Mutex::default);

/// The number of entries of [`OWNERS`] at which owners without a job are removed.
const TIDY_AT: usize = 1024;

/// The limits of an owner: permits for running jobs, and for jobs running or waiting.
#[derive(Debug)]
struct OwnerLimits {
    is_operator: bool,
    running: Arc<Semaphore>,
    /// Permits for the owner's running and waiting jobs together.
    present: Arc<Semaphore>,
}

/// A waiting job in the queue of its owner.
pub(crate) struct QueuePlace {
    owner: Arc<OwnerLimits>,
    present: OwnedSemaphorePermit,
}

/// A thread for a job, reserved until the job returns.
#[expect(dead_code, reason = "the permits are held for their drop alone")]
pub(crate) struct ThreadSlot {
    running: OwnedSemaphorePermit,
    all: Option<OwnedSemaphorePermit>,
    /// The owner's permit for a job that waits or runs.
    place: OwnedSemaphorePermit,
    owner: Arc<OwnerLimits>,
}

/// Adds a job to the queue of the owner `name`; `None`: the queue is full.
pub(crate) fn enter_queue(name: &str) -> Option<QueuePlace> {
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
        let owner = Arc::new(OwnerLimits {
            is_operator: name == OPERATOR,
            running: Arc::new(Semaphore::new(running)),
            present: Arc::new(Semaphore::new(present)),
        });
        owners.insert(name.to_owned(), Arc::downgrade(&owner));
        owner
    });
    drop(owners);
    let present = Arc::clone(&owner.present).try_acquire_owned().ok()?;
    Some(QueuePlace { owner, present })
}

impl QueuePlace {
    /// Waits for a free thread of the owner, then for a free thread of the process, in the order of requests.
    pub(crate) async fn acquire_slot(self) -> ThreadSlot {
        let running = acquire_permit(&self.owner.running).await;
        let all = match self.owner.is_operator {
            true => None,
            false => Some(acquire_permit(&ALL).await),
        };
        ThreadSlot { running, all, place: self.present, owner: self.owner }
    }
}

/// A permit of a semaphore that is never closed.
async fn acquire_permit(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    loop {
        if let Ok(permit) = Arc::clone(semaphore).acquire_owned().await {
            return permit;
        }
        tokio::task::yield_now().await;
    }
}
