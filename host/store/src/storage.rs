//! The size of a tenant's stored data.

use sqlx::Row as _;

use crate::error::StoreError;
use crate::open::Store;

impl Store {
    /// The bytes that count as stored for this tenant: its sessions with their contents, its agents, and its
    /// lines in the audit log, with a fixed amount for each row. Lines about refused callers do not count,
    /// because others cause them. The file itself is larger, because it contains indexes and keeps freed
    /// pages for reuse.
    pub async fn stored_bytes(&self) -> Result<u64, StoreError> {
        let select = "SELECT COALESCE(SUM(bytes), 0) FROM tenant_bytes WHERE tenant = $1";
        let failed = |error| self.database_error("look how much is stored", &error);
        let row = sqlx::query(select).bind(&*self.tenant).fetch_one(&self.pool).await;
        let bytes: i64 = row.map_err(failed)?.try_get(0).map_err(failed)?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }
}
