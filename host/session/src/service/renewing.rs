//! Looks for a new version of settings and tools, and puts the version in force.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use belljar_agent::Host;
use belljar_policy::ShownText;
use belljar_store::TENANT;
use serde_json::json;

use super::types::ServiceError;
use super::versions::{LookDepth, LookState, RenewalOutcome, SettingsVersion, VersionMaker};
use super::{Service, ServiceInner};

impl Service {
    /// Sets the maker of new versions. Without a maker, the first version stays in force.
    #[must_use]
    pub fn renewed_by(self, renew: Arc<dyn VersionMaker>) -> Self {
        // The cell is still empty, because no other code has the new service yet.
        let _ = self.0.versions.renew.set(renew);
        self
    }

    /// Sets a function that is called with each later version, before any turn uses the version.
    pub fn before_each_version(&self, call: impl Fn(&Host) + Send + Sync + 'static) {
        let _ = self.0.versions.before_each.set(Box::new(call));
    }

    /// INV-156: checks whether the operator has changed settings or tools. On return, every new turn uses the
    /// files as they were at the call. If the files are invalid, the earlier settings stay in force, and the
    /// log has one line with the reason.
    pub async fn look_for_changes(&self, look: LookDepth) {
        if self.0.versions.renew.get().is_none() {
            return;
        }
        let inner = Arc::clone(&self.0);
        // A separate task, because the result must not be lost if the caller is dropped.
        let looked = self.spawn_task(async move { inner.look_for_changes(look).await }).await;
        if let Err(error) = looked {
            tracing::error!(target: "belljar::session", %error, "looking at settings failed");
        }
    }

    /// As [`Service::look_for_changes`], unless the last check is younger than `age`.
    pub async fn look_within(&self, age: Duration) {
        if !self.0.versions.is_fresh(age) {
            self.look_for_changes(LookDepth::IfChanged).await;
        }
    }

    /// Returns whether an earlier version of the settings is in force because the present files are invalid.
    pub fn is_on_older_settings(&self) -> bool {
        self.0.versions.invalid.load(Ordering::Relaxed)
    }

    /// Loads the stored agents. Must be called once at the start, and after each change.
    pub async fn reload_agents(&self) -> Result<(), ServiceError> {
        // Waits for a version that is being made, because that version would lack the change.
        let _looking = self.0.versions.looking.lock().await;
        self.0.bring_agents(&self.0.current_host()).await
    }
}

impl ServiceInner {
    /// The host with the settings that are in force.
    pub(super) fn current_host(&self) -> Arc<Host> {
        Arc::clone(&self.versions.host.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks the maker for a new version, and puts it in force. A version that cannot be put in force is kept
    /// for the next attempt.
    async fn look_for_changes(&self, look: LookDepth) {
        let Some(renew) = self.versions.renew.get() else { return };
        let mut looking = self.versions.looking.lock().await;
        let now = Instant::now();
        match renew.renew_version(look).await {
            RenewalOutcome::Same => {}
            RenewalOutcome::New(version) => {
                looking.next = Some(version);
                looking.said = None;
                self.versions.invalid.store(false, Ordering::Relaxed);
            }
            RenewalOutcome::Invalid(why) => self.keep_version(&mut looking, why),
        }
        if let Some(next) = looking.next.take()
            && let Err(next) = self.take_over(next).await
        {
            looking.next = Some(next);
            return;
        }
        *self.versions.lock_last_look() = Some(now);
    }

    /// Keeps the earlier version in force because the files are invalid, and logs the reason `why` once.
    fn keep_version(&self, looking: &mut LookState, why: String) {
        self.versions.invalid.store(true, Ordering::Relaxed);
        if looking.said.as_ref() == Some(&why) {
            return;
        }
        let (tenant, shown) = (self.store.tenant(), ShownText::multiline(&why).to_string());
        tracing::error!(
            target: "belljar::session",
            tenant,
            why = %shown,
            "the settings are not valid; those that were valid last stay in force"
        );
        looking.said = Some(why);
    }

    /// Puts a version in force. If the stored agents cannot be read, the version is returned and nothing
    /// changes.
    async fn take_over(&self, version: Box<SettingsVersion>) -> Result<(), Box<SettingsVersion>> {
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
        let SettingsVersion { host, limits } = *version;
        let host = host.knowing_the_bills_of(&self.current_host());
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
        self.record_audit(TENANT, "settings_reloaded", "belljar.toml".to_owned(), json!({}));
        Ok(())
    }
}
