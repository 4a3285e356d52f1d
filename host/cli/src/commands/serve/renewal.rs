//! The versions of a tenant other than the operator's own: made anew when its own files have changed, or its
//! inherited settings.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use belljar_session::{Look, Renew, Renewed, Version};
use belljar_store::Tenant;

use super::opening::{Inherited, Opened, Opener};
use super::own::{Own, OwnVersion, besides, files};
use super::tenancy::Checked;
use super::watched::Watched;
use crate::setup::home::Places;
use crate::setup::secrets;

/// Makes the versions of one tenant.
pub(crate) struct TenantRenewal(Arc<Inner>);

struct Inner {
    opener: Arc<Opener>,
    tenant: Tenant,
    seen: Mutex<Seen>,
}

/// The files that the version in force was made from.
pub(crate) struct Seen {
    watched: Watched,
    inherited: Inherited,
    /// Why the last read failed: it is retried until it succeeds.
    invalid: Option<String>,
}

impl Seen {
    /// Notes the present files of the tenant; called before they are read.
    pub(crate) fn now(places: &Places, inherited: Inherited) -> Self {
        Self { watched: Watched::of(files(places)), inherited, invalid: None }
    }

    /// Watches the files of the tenant's secrets and keys, before they are read.
    pub(crate) fn values_of(&mut self, checked: &Checked, own: &Own, version: &OwnVersion) {
        let Checked { places, settings, .. } = checked;
        let inherits = settings.models.is_empty();
        let keys = inherits.then(|| secrets::key_files(&version.settings, own.places()));
        let keys = keys.into_iter().flatten();
        self.watched.besides(keys.chain(besides(settings, places)));
    }
}

impl TenantRenewal {
    pub(crate) fn new(opener: Arc<Opener>, tenant: Tenant, seen: Seen) -> Self {
        Self(Arc::new(Inner { opener, tenant, seen: Mutex::new(seen) }))
    }
}

impl Inner {
    fn look(&self, look: Look) -> Renewed {
        let own = self.opener.own.look(Look::IfChanged).now;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let inherited = Inherited::of(&own);
        let same =
            !seen.watched.have_changed() && seen.inherited == inherited && look == Look::IfChanged;
        if same && seen.invalid.is_none() {
            return Renewed::Same;
        }
        seen.inherited = inherited;
        let again = self.opener.check(&self.tenant).and_then(|checked| {
            seen.values_of(&checked, &self.opener.own, &own);
            self.opener.put_together(checked, &self.tenant, &own)
        });
        match again {
            Ok(Opened { host, limits, .. }) => {
                seen.invalid = None;
                Renewed::New(Box::new(Version { host, limits }))
            }
            Err(error) => {
                let why = error.to_string();
                if same && seen.invalid.as_ref() == Some(&why) {
                    return Renewed::Same;
                }
                seen.invalid = Some(why.clone());
                Renewed::Invalid(why)
            }
        }
    }
}

#[async_trait]
impl Renew for TenantRenewal {
    async fn renew(&self, look: Look) -> Renewed {
        let inner = Arc::clone(&self.0);
        #[expect(
            clippy::disallowed_methods,
            reason = "settings that the operator wrote, behind one lock; tools that are read meanwhile \
                      need places of the operator's"
        )]
        let looked = tokio::task::spawn_blocking(move || inner.look(look)).await;
        match looked {
            Ok(renewed) => renewed,
            Err(error) => Renewed::Invalid(format!("they could not be read: {error}")),
        }
    }
}
