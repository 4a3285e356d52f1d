//! How much a tenant has stored.

use sqlx::Row as _;

use crate::error::StoreError;
use crate::open::Store;

impl Store {
    /// Bytes of this tenant's sessions, with all that belongs to them, of its agents and of its lines in
    /// the audit log: their texts, and a little for each row. Lines about callers that were refused do
    /// not count: others cause them. The file itself is larger: it has indexes, and keeps the room of what was deleted
    /// for what comes.
    pub async fn stored_bytes(&self) -> Result<u64, StoreError> {
        let select = "SELECT COALESCE(SUM(bytes), 0) FROM tenant_bytes WHERE tenant = $1";
        let failed = |error| self.failed("look how much is stored", &error);
        let row = sqlx::query(select).bind(&*self.tenant).fetch_one(&self.pool).await;
        let bytes: i64 = row.map_err(failed)?.try_get(0).map_err(failed)?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }
}
