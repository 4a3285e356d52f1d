//! The last check that the store answers.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use belljar_store::Store;
use tokio::time::Instant;

/// How long an answer of the store is reused. Callers need no key, so a check must cost nothing.
const FRESH: Duration = Duration::from_secs(1);

/// How long a check waits for the store.
const PATIENCE: Duration = Duration::from_secs(2);

/// The last answer of the store.
#[derive(Debug, Default)]
pub(crate) struct LastCheck(Mutex<Option<(Instant, bool)>>);

impl LastCheck {
    /// Returns whether the store answers.
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
