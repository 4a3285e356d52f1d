//! The settings, grants and tools of a tenant's turns: one version at a time, made anew when the operator has changed
//! what it is made of.
//!
//! ```text
//! look ──> Renew: has anything changed? ──> a new version ──> in force for every turn from now on
//!                                      └──> not valid     ──> the one before stays, and the log says so
//! ```
//!
//! A turn takes the version in force when it begins and has it to its end, its subagents included.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use belljar_agent::Host;

use super::types::ServiceLimits;

/// One version of what a tenant's turns work with.
#[derive(Debug)]
pub struct Version {
    /// Its agents, grants, tools and models.
    pub host: Host,
    /// Its limits at a time and in a day.
    pub limits: ServiceLimits,
}

/// How closely it is looked whether something has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A new version is made where a file is not what it was.
    IfChanged,
    /// A new version is made in any case.
    Anew,
}

/// The result of a look.
#[derive(Debug)]
pub enum Renewed {
    /// All is as it was at the last look.
    Same,
    /// This holds from now on.
    New(Box<Version>),
    /// The files are not valid, and why: the version before stays in force. For the
    /// operator's log.
    Invalid(String),
}

/// Makes the versions of one tenant.
#[async_trait]
pub trait Renew: Send + Sync {
    /// Looks whether what the version in force was made of has changed. Never called twice at a
    /// time, and its result is never lost, so that it may count on being looked at.
    async fn renew(&self, look: Look) -> Renewed;
}

/// Called with a version before any turn can have it.
type BeforeEach = Box<dyn Fn(&Host) + Send + Sync>;

/// The version in force, and how the next one is found.
pub(crate) struct Versions {
    pub(super) host: RwLock<Arc<Host>>,
    pub(super) renew: OnceLock<Arc<dyn Renew>>,
    pub(super) before_each: OnceLock<BeforeEach>,
    /// Held by whoever looks, and by whoever changes what the store holds of agents.
    pub(super) looking: tokio::sync::Mutex<Looking>,
    /// When it was looked at last.
    looked: Mutex<Option<Instant>>,
    /// The files are not valid.
    pub(super) invalid: AtomicBool,
}

#[derive(Default)]
pub(super) struct Looking {
    /// A version that could not be taken over yet: the store did not answer.
    pub(super) next: Option<Box<Version>>,
    /// Why what is there now is not valid, as the log has it.
    pub(super) said: Option<String>,
}

impl Versions {
    pub(super) fn new(host: Host) -> Self {
        Self {
            host: RwLock::new(Arc::new(host)),
            renew: OnceLock::new(),
            before_each: OnceLock::new(),
            looking: tokio::sync::Mutex::default(),
            looked: Mutex::default(),
            invalid: AtomicBool::new(false),
        }
    }

    pub(super) fn looked(&self) -> MutexGuard<'_, Option<Instant>> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_fresh(&self, age: Duration) -> bool {
        self.looked().is_some_and(|at| at.elapsed() < age)
    }
}
