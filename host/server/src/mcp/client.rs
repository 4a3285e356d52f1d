//! A client of `/mcp`: its tenant's service, its name, and its jar.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_session::{DirectSession, Service, ServiceError};
use rmcp::ErrorData;
use tokio::sync::OnceCell;

use super::flow::WaitingRequests;
use super::state::SealedStates;
use super::watch::ResourceChanges;

/// The name of the agent in the home whose grants all MCP clients get, with or without a file of that
/// name.
pub const MCP_IDENTITY: &str = "mcp";

/// An MCP client, for the duration of its session.
pub(crate) struct ProtocolClient {
    pub(crate) service: Service,
    /// The client's name in the audit log: `key:<id>` or `local`.
    pub(crate) actor: Arc<str>,
    /// The sealed states that this client may send back.
    pub(crate) states: Arc<SealedStates>,
    /// The client's requests that wait without a time limit, for a person or an agent.
    pub(crate) waits: Arc<WaitingRequests>,
    /// The readable resources that changed in this client's session.
    pub(crate) touched: ResourceChanges,
    /// True if no other door can answer a question, so only this client's person can.
    pub(crate) alone: bool,
    /// The number of the client's MCP session, unique in this process; `None` for messages outside of
    /// sessions.
    pub(crate) session: Option<u64>,
    /// The name that the client states for itself.
    name: String,
    direct: OnceCell<DirectSession>,
    calls: AtomicU64,
}

impl ProtocolClient {
    /// A client without a session and without a jar, which is made on the first call.
    pub(crate) fn new(
        service: Service,
        actor: Arc<str>,
        states: Arc<SealedStates>,
        name: String,
    ) -> Self {
        let (direct, calls) = (OnceCell::new(), AtomicU64::new(0));
        let (waits, touched) = (Arc::default(), ResourceChanges::default());
        let (alone, session) = (false, None);
        Self { service, actor, states, waits, touched, alone, session, name, direct, calls }
    }

    /// The client's jar with its session, made on the first call.
    pub(crate) async fn direct_session(&self) -> Result<&DirectSession, ServiceError> {
        let open = || self.service.begin_direct(MCP_IDENTITY, &self.name, &self.actor);
        self.direct.get_or_try_init(open).await
    }

    /// Returns whether the client's jar exists already.
    pub(crate) fn is_placed(&self) -> bool {
        self.direct.initialized()
    }

    /// The tenant's id, or its name if there is no id.
    pub(crate) fn tenant_id(&self) -> &str {
        let store = self.service.store();
        store.tenant_id().unwrap_or(store.tenant())
    }

    /// The id of the client's next call.
    pub(crate) fn next_call(&self) -> String {
        format!("mcp-{}", self.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// What the client's sealed states are bound to: its tenant, key and session.
    pub(crate) fn bound_to(&self) -> String {
        let session = self.session.map_or_else(String::new, |session| session.to_string());
        format!("{}/{session}/{}", self.tenant_id(), self.actor)
    }

    /// Ends the client's running calls; on return, all their effects are stored.
    pub(crate) async fn close_session(&self) {
        if let Some(direct) = self.direct.get() {
            direct.close_jar().await;
        }
    }
}

/// The protocol's error for a refused request. It contains remedies for the caller; the rest is only in
/// the operator's log.
pub(crate) fn refusal_error(error: &ServiceError) -> ErrorData {
    match error {
        ServiceError::NoSession(_)
        | ServiceError::NoAgent(_)
        | ServiceError::Invalid(_)
        | ServiceError::Unfit(_)
        | ServiceError::Caller(_)
        | ServiceError::Images(_)
        | ServiceError::GoneOn(_)
        | ServiceError::Unanswered(_)
        | ServiceError::NoQuestion(_) => ErrorData::invalid_params(error.to_string(), None),
        ServiceError::Busy(_)
        | ServiceError::Blocked { .. }
        | ServiceError::NoModel
        | ServiceError::Agent(_)
        | ServiceError::TenantFull { .. }
        | ServiceError::HostFull { .. }
        | ServiceError::StorageFull { .. }
        | ServiceError::DayUsed { .. }
        | ServiceError::Work(_)
        | ServiceError::Draining => ErrorData::internal_error(error.to_string(), None),
        ServiceError::Store(_) | ServiceError::Review(_) | ServiceError::Session(_) => {
            tracing::error!(target: "belljar::mcp", "{error}");
            ErrorData::internal_error("the server failed; its log says why", None)
        }
    }
}
