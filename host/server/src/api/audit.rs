//! The audit log: who changed something, and which calls were refused. The server writes lines; a
//! tenant's admins read them.

use belljar_agent::RunId;
use belljar_store::{AuditEntry, Store, StoreWrite};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::{App, HandlerContext};
use crate::http::auth::Caller;
use crate::http::page::{PAGE_BYTES, PageLimit, next_of};
use crate::http::problem::Problem;
use crate::http::respond::{JsonAnswer, QueryOf};

/// The query of `GET /v1/audit`: filter and page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    limit: Option<u32>,
    before: Option<String>,
    actor: Option<String>,
    action: Option<String>,
}

/// Lines of the audit log, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditPage {
    /// The lines.
    entries: Vec<AuditLine>,
    /// The value to send as `before` for older ones; absent where there are none. A page ends
    /// behind 2 MiB, with fewer than `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One line of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditLine {
    /// Its id; sorts by time.
    id: String,
    /// When, in milliseconds since 1970.
    at: i64,
    /// Who: `key:<id>`, `token:<issuer>#<subject>`, or `local`.
    actor: String,
    /// What: the name of the operation, or `refused`.
    action: String,
    /// On what.
    object: String,
    /// Everything else that is known.
    detail: Value,
}

/// `GET /v1/audit`: returns a page of the tenant's audit log, newest line first.
pub(crate) async fn read_audit(
    ctx: HandlerContext,
    QueryOf(query): QueryOf<AuditQuery>,
) -> Result<JsonAnswer<AuditPage>, Problem> {
    let limit = PageLimit::from_query(query.limit)?;
    let AuditQuery { actor, action, before, .. } = &query;
    let (actor, action, before) = (actor.as_deref(), action.as_deref(), before.as_deref());
    let page = ctx.store().audit_of(actor, action, before, limit.rows(), PAGE_BYTES).await?;
    let next = next_of(page.rows.last(), page.more, |entry| entry.id.clone());
    let line = |entry: AuditEntry| {
        let AuditEntry { id, at, actor, action, object, detail } = entry;
        AuditLine { id, at, actor, action, object, detail }
    };
    Ok(JsonAnswer(AuditPage { entries: page.rows.into_iter().map(line).collect(), next }))
}

impl App {
    /// Adds a line to the audit log of the caller's tenant, and waits until it is stored. The tenant is
    /// found by its id, so a later tenant of the same name does not get the line.
    pub(crate) async fn audit_caller(
        &self,
        caller: &Caller,
        action: &str,
        object: String,
        detail: Value,
    ) {
        let store = self.store().for_tenant_id(&caller.tenant, &caller.tenant_id);
        self.audit_of(&store, &caller.actor, action, object, detail).await;
    }

    /// Adds a line to the audit log of this store's tenant. If the line cannot be stored, the program's
    /// own log reports the loss.
    pub(crate) async fn audit_of(
        &self,
        store: &Store,
        actor: &str,
        action: &str,
        object: String,
        detail: Value,
    ) {
        let entry = AuditEntry {
            id: RunId::new(self.clock()).into(),
            at: self.now_millis(),
            actor: actor.to_owned(),
            action: action.to_owned(),
            object,
            detail,
        };
        let tenant = store.tenant();
        if let Err(error) = store.enqueue_writes(vec![StoreWrite::Audit(entry)]).await {
            tracing::error!(%error, tenant, actor, action, "a line of the audit log is lost");
        }
    }
}
