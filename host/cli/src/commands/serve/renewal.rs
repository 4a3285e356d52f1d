//! Makes the versions of a tenant's settings, other than the operator's own: a new one when the tenant's
//! files or its inherited settings have changed.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use belljar_session::{LookDepth, RenewalOutcome, SettingsVersion, VersionMaker};
use belljar_store::Tenant;

use super::opening::{InheritedSettings, OpenedTenant, TenantOpeningContext};
use super::own::{OwnSettings, OwnVersion, further_files, settings_files};
use super::tenancy::CheckedTenant;
use super::watched::WatchedFiles;
use crate::setup::home::HomePaths;
use crate::setup::secrets;

/// Makes the versions of one tenant's settings.
pub(crate) struct TenantRenewal(Arc<TenantRenewalState>);

/// The state of a tenant's version maker, which its work on a separate thread shares.
struct TenantRenewalState {
    opener: Arc<TenantOpeningContext>,
    tenant: Tenant,
    seen: Mutex<SeenFiles>,
}

/// The files and settings from which the version in force was made.
pub(crate) struct SeenFiles {
    watched: WatchedFiles,
    inherited: InheritedSettings,
    /// The error of the last read; `None` = it succeeded. After an error the files are read again each time.
    invalid: Option<String>,
}

impl SeenFiles {
    /// Notes the present state of the tenant's files. Must be called before they are read.
    pub(crate) fn from_places(places: &HomePaths, inherited: InheritedSettings) -> Self {
        Self { watched: WatchedFiles::from_files(settings_files(places)), inherited, invalid: None }
    }

    /// Also watches the files of the tenant's secrets and keys. Must be called before they are read.
    pub(crate) fn values_of(
        &mut self,
        checked: &CheckedTenant,
        own: &OwnSettings,
        version: &OwnVersion,
    ) {
        let CheckedTenant { places, settings, .. } = checked;
        let inherits = settings.models.is_empty();
        let keys = inherits.then(|| secrets::key_files(&version.settings, own.operator_places()));
        let keys = keys.into_iter().flatten();
        self.watched.watch_further(keys.chain(further_files(settings, places)));
    }
}

impl TenantRenewal {
    pub(crate) fn new(opener: Arc<TenantOpeningContext>, tenant: Tenant, seen: SeenFiles) -> Self {
        Self(Arc::new(TenantRenewalState { opener, tenant, seen: Mutex::new(seen) }))
    }
}

impl TenantRenewalState {
    /// Makes a new version if the files or the inherited settings have changed. An error that was reported
    /// already is not reported again.
    fn renew_if_changed(&self, look: LookDepth) -> RenewalOutcome {
        let own = self.opener.own.look_at_files(LookDepth::IfChanged).now;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let inherited = InheritedSettings::from_own_version(&own);
        let same = !seen.watched.have_changed()
            && seen.inherited == inherited
            && look == LookDepth::IfChanged;
        if same && seen.invalid.is_none() {
            return RenewalOutcome::Same;
        }
        seen.inherited = inherited;
        let again = self.opener.check_tenant(&self.tenant).and_then(|checked| {
            seen.values_of(&checked, &self.opener.own, &own);
            self.opener.put_together(checked, &self.tenant, &own)
        });
        match again {
            Ok(OpenedTenant { host, limits, .. }) => {
                seen.invalid = None;
                RenewalOutcome::New(Box::new(SettingsVersion { host, limits }))
            }
            Err(error) => {
                let why = error.to_string();
                if same && seen.invalid.as_ref() == Some(&why) {
                    return RenewalOutcome::Same;
                }
                seen.invalid = Some(why.clone());
                RenewalOutcome::Invalid(why)
            }
        }
    }
}

#[async_trait]
impl VersionMaker for TenantRenewal {
    async fn renew_version(&self, look: LookDepth) -> RenewalOutcome {
        let inner = Arc::clone(&self.0);
        #[expect(
            clippy::disallowed_methods,
            reason = "settings that the operator wrote, behind one lock; tools that are read meanwhile \
                      need places of the operator's"
        )]
        let looked = tokio::task::spawn_blocking(move || inner.renew_if_changed(look)).await;
        match looked {
            Ok(renewed) => renewed,
            Err(error) => RenewalOutcome::Invalid(format!("they could not be read: {error}")),
        }
    }
}
