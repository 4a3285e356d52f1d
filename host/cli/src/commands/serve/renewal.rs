//! The versions of a tenant beside the operator's own: made anew when its own files have changed,
//! or what it has of the operator's.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use belljar_session::{Look, Renew, Renewed, Version};
use belljar_store::Tenant;

use super::opening::{Inherited, Opened, Opener};
use super::own::{files, say_late};
use super::watched::Watched;
use crate::setup::home::Places;

/// Makes the versions of one tenant.
pub(crate) struct TenantRenewal(Arc<Inner>);

struct Inner {
    opener: Arc<Opener>,
    tenant: Tenant,
    seen: Mutex<Seen>,
}

/// What the version in force was made of.
pub(crate) struct Seen {
    watched: Watched,
    inherited: Inherited,
    late: Vec<String>,
    /// Why the last read failed: it is tried again until it does not.
    invalid: Option<String>,
}

impl Seen {
    /// Finds the tenant's files as they are now; called before they are read.
    pub(crate) fn now(places: &Places, inherited: Inherited) -> Self {
        Self { watched: Watched::of(files(places)), inherited, late: Vec::new(), invalid: None }
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
        match self.opener.open_again(&self.tenant, &own) {
            Ok((Opened { host, limits, .. }, late)) => {
                say_late(&self.tenant.name, &seen.late, &late);
                seen.late = late;
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
        match tokio::task::spawn_blocking(move || inner.look(look)).await {
            Ok(renewed) => renewed,
            Err(error) => Renewed::Invalid(format!("they could not be read: {error}")),
        }
    }
}
