//! A cached check that the store answers, for `/readyz`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use belljar_store::Store;
use tokio::time::Instant;

/// The time for which a result is reused, because callers need no key and so must not cause a check
/// each.
const FRESH: Duration = Duration::from_secs(1);

/// The time that a check waits for the store's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time and result of the last check.
#[derive(Debug, Default)]
pub(crate) struct LastCheck(Mutex<Option<(Instant, bool)>>);

impl LastCheck {
    /// Returns whether the store answered at the last check, or now if that check is too old.
    pub(crate) async fn is_well(&self, store: &Store) -> bool {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, well)) = known
            && at.elapsed() < FRESH
        {
            return well;
        }
        let registry = store.tenant_registry();
        let asked =
            tokio::time::timeout(PATIENCE, registry.find_tenant(belljar_store::TENANT)).await;
        let well = matches!(asked, Ok(Ok(_)));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), well));
        well
    }
}
