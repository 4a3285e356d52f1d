//! The settings, grants and tools of a tenant's turns: one version at a time, made anew when the operator has
//! changed a source file.
//!
//! ```text
//! look ──> VersionMaker: has anything changed? ──> a new version ──> in force for every turn from now on
//!                                             └──> not valid     ──> the one before stays, and the log says so
//! ```
//!
//! A turn, with its subagents, keeps the version in force at its beginning to the end. For example, a removed
//! grant still holds for running turns.

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
    /// The limits at a time and in a day.
    pub limits: ServiceLimits,
}

/// The condition for a new version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookDepth {
    /// Makes a new version if a file has changed.
    IfChanged,
    /// A new version is made in any case.
    Anew,
}

/// The result of a look.
#[derive(Debug)]
pub enum RenewalOutcome {
    /// No source has changed since the last look.
    Same,
    /// The new version, in force from now on.
    New(Box<SettingsVersion>),
    /// The files are not valid, and why: the version before stays in force. For the
    /// operator's log.
    Invalid(String),
}

/// Makes the versions of one tenant.
#[async_trait]
pub trait VersionMaker: Send + Sync {
    /// Checks whether a source of the version in force has changed. Never called twice at a time, and the
    /// result is never dropped, so an implementation may rely on its use.
    async fn renew_version(&self, look: LookDepth) -> RenewalOutcome;
}

/// Called with a version before any turn can have it.
type BeforeEach = Box<dyn Fn(&Host) + Send + Sync>;

/// The version in force, and how the next one is found.
pub(crate) struct VersionSource {
    pub(super) host: RwLock<Arc<Host>>,
    pub(super) renew: OnceLock<Arc<dyn VersionMaker>>,
    pub(super) before_each: OnceLock<BeforeEach>,
    /// A lock, held during a look for changes and during a change of the stored agents.
    pub(super) looking: tokio::sync::Mutex<LookState>,
    /// The time of the last look.
    looked: Mutex<Option<Instant>>,
    /// The files are not valid.
    pub(super) invalid: AtomicBool,
}

#[derive(Default)]
pub(super) struct LookState {
    /// A version that is not in force yet, because the store did not answer.
    pub(super) next: Option<Box<SettingsVersion>>,
    /// The reason why the present files are invalid, as logged.
    pub(super) said: Option<String>,
}

impl VersionSource {
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
