//! Looks for a new version of settings and tools, and puts the version in force.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use belljar_agent::Host;
use belljar_policy::Shown;
use belljar_store::TENANT;
use serde_json::json;

use super::types::ServiceError;
use super::versions::{Look, Looking, Renew, Renewed, Version};
use super::{Inner, Service};

impl Service {
    /// Sets the maker of new versions. Without a maker, the first version stays in force.
    #[must_use]
    pub fn renewed_by(self, renew: Arc<dyn Renew>) -> Self {
        // Set once, before anybody else has it.
        let _ = self.0.versions.renew.set(renew);
        self
    }

    /// Calls `call` with each later version, before any turn uses the version.
    pub fn before_each_version(&self, call: impl Fn(&Host) + Send + Sync + 'static) {
        let _ = self.0.versions.before_each.set(Box::new(call));
    }

    /// INV-156: checks whether the operator has changed settings or tools. When `look` returns, the files as
    /// of the call are in force for every new turn, or are invalid, with one line in the log.
    pub async fn look(&self, look: Look) {
        if self.0.versions.renew.get().is_none() {
            return;
        }
        let inner = Arc::clone(&self.0);
        // In a task: the caller may go away, and the result must not be lost then.
        let looked = self.spawn(async move { inner.look(look).await }).await;
        if let Err(error) = looked {
            tracing::error!(target: "belljar::session", %error, "looking at settings failed");
        }
    }

    /// As [`Service::look`], unless the last look is younger than `age`.
    pub async fn look_within(&self, age: Duration) {
        if !self.0.versions.is_fresh(age) {
            self.look(Look::IfChanged).await;
        }
    }

    /// Returns whether an earlier version of the settings is in force because the present files are invalid.
    pub fn is_on_older_settings(&self) -> bool {
        self.0.versions.invalid.load(Ordering::Relaxed)
    }

    /// Loads the stored agents. Must be called once at the start, and after each change.
    pub async fn reload_agents(&self) -> Result<(), ServiceError> {
        // A version that is being made would miss the change.
        let _looking = self.0.versions.looking.lock().await;
        self.0.bring_agents(&self.0.host()).await
    }
}

impl Inner {
    /// The version in force.
    pub(super) fn host(&self) -> Arc<Host> {
        Arc::clone(&self.versions.host.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn look(&self, look: Look) {
        let Some(renew) = self.versions.renew.get() else { return };
        let mut looking = self.versions.looking.lock().await;
        let now = Instant::now();
        match renew.renew(look).await {
            Renewed::Same => {}
            Renewed::New(version) => {
                looking.next = Some(version);
                looking.said = None;
                self.versions.invalid.store(false, Ordering::Relaxed);
            }
            Renewed::Invalid(why) => self.keep(&mut looking, why),
        }
        if let Some(next) = looking.next.take()
            && let Err(next) = self.take_over(next).await
        {
            looking.next = Some(next);
            return;
        }
        *self.versions.looked() = Some(now);
    }

    /// Keeps the version in force, and logs the reason once.
    fn keep(&self, looking: &mut Looking, why: String) {
        self.versions.invalid.store(true, Ordering::Relaxed);
        if looking.said.as_ref() == Some(&why) {
            return;
        }
        let (tenant, shown) = (self.store.tenant(), Shown::multiline(&why).to_string());
        tracing::error!(
            target: "belljar::session",
            tenant,
            why = %shown,
            "the settings are not valid; those that were valid last stay in force"
        );
        looking.said = Some(why);
    }

    /// Puts a version in force; returns the version if the stored agents cannot be read.
    async fn take_over(&self, version: Box<Version>) -> Result<(), Box<Version>> {
        let tenant = self.store.tenant();
        if let Err(error) = self.bring_agents(&version.host).await {
            tracing::error!(
                target: "belljar::session",
                tenant,
                %error,
                "new settings are not in force yet: the agents of the API cannot be read"
            );
            return Err(version);
        }
        let Version { host, limits } = *version;
        let host = host.knowing_the_bills_of(&self.host());
        if let Some(call) = self.versions.before_each.get() {
            call(&host);
        }
        self.allowance.limit_to(limits);
        *self.versions.host.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(host);
        tracing::info!(
            target: "belljar::session",
            tenant,
            "the settings were read again; turns that run keep those they began with"
        );
        self.audit(TENANT, "settings_reloaded", "belljar.toml".to_owned(), json!({}));
        Ok(())
    }
}
