//! The settings, grants and tools of a tenant's turns. One version is in force at a time; a new one is made
//! when the operator has changed a source file.
//!
//! ```text
//! look ──> VersionMaker: has anything changed? ──> a new version ──> in force for every turn from now on
//!                                             └──> not valid     ──> the one before stays, and the log says so
//! ```
//!
//! A turn, with its subagents, keeps the version that was in force when it began. For example, a running turn
//! still has the rights of a grant that was removed meanwhile.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use belljar_agent::Host;

use super::types::ServiceLimits;

/// One version of settings, grants and tools for a tenant's turns.
#[derive(Debug)]
pub struct SettingsVersion {
    /// The agents, grants, tools and models.
    pub host: Host,
    /// The tenant's limits of simultaneous turns, and of a day.
    pub limits: ServiceLimits,
}

/// When a new version of the settings is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookDepth {
    /// Only if a source file has changed.
    IfChanged,
    /// In any case, for example because a person asked for it.
    Anew,
}

/// What a check for changed settings found.
#[derive(Debug)]
pub enum RenewalOutcome {
    /// No source has changed since the last look.
    Same,
    /// The new version, in force from now on.
    New(Box<SettingsVersion>),
    /// The files are invalid, for this reason, which goes to the operator's log. The earlier version stays in
    /// force.
    Invalid(String),
}

/// Makes new versions of one tenant's settings.
#[async_trait]
pub trait VersionMaker: Send + Sync {
    /// Makes a new version if a source of the version in force has changed. Never called twice at a time, and
    /// its future is never dropped, so an implementation may keep state.
    async fn renew_version(&self, look: LookDepth) -> RenewalOutcome;
}

/// A function that is called with each new version before any turn uses the version.
type BeforeEach = Box<dyn Fn(&Host) + Send + Sync>;

/// The version in force, and the state of looking for the next one.
pub(crate) struct VersionSource {
    pub(super) host: RwLock<Arc<Host>>,
    pub(super) renew: OnceLock<Arc<dyn VersionMaker>>,
    pub(super) before_each: OnceLock<BeforeEach>,
    /// A lock, held during a look for changes and during a change of the stored agents.
    pub(super) looking: tokio::sync::Mutex<LookState>,
    /// The time of the last check.
    looked: Mutex<Option<Instant>>,
    /// True if the present files are invalid.
    pub(super) invalid: AtomicBool,
}

/// The results of the last check for changed settings.
#[derive(Default)]
pub(super) struct LookState {
    /// A new version that could not be put in force yet, because the store did not answer.
    pub(super) next: Option<Box<SettingsVersion>>,
    /// The reason for invalid files that was logged last, so that it is logged once.
    pub(super) said: Option<String>,
}

impl VersionSource {
    /// Starts with `host` as the version in force.
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

    pub(super) fn lock_last_look(&self) -> MutexGuard<'_, Option<Instant>> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_fresh(&self, age: Duration) -> bool {
        self.lock_last_look().is_some_and(|at| at.elapsed() < age)
    }
}
