//! MCP over HTTP: its sessions, and which caller each belongs to.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use belljar_session::Service;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::model::InitializeRequestParams;
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;

use super::client::{ProtocolClient, refusal_error};
use super::handler::{ClientLookup, McpHandler};
use super::state::SealedStates;
use crate::http::problem::Problem;
use crate::http::respond::MAX_BODY;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The most simultaneous MCP sessions of one key.
const MAX_SESSIONS: usize = 64;

/// The most simultaneous MCP sessions of one tenant, because an issuer's rule may admit any number of
/// subjects, and each counts as a key.
const MAX_SESSIONS_OF_TENANT: usize = 256;

/// The time after its last message for which a client outside of sessions keeps its jar.
const IDLE: Duration = Duration::from_secs(300);

/// The most characters of the name that a client states.
const MAX_NAME: usize = 100;

/// The owner of an MCP session: the tenant's id, and the caller's name in the audit log.
type Key = (Arc<str>, Arc<str>);

/// The authenticated caller of a request to `/mcp`, known before the message is parsed.
#[derive(Clone)]
pub(crate) struct McpGuest {
    pub(crate) service: Service,
    pub(crate) tenant: Arc<str>,
    pub(crate) actor: Arc<str>,
}

impl McpGuest {
    fn owner_key(&self) -> Key {
        (Arc::clone(&self.tenant), Arc::clone(&self.actor))
    }
}

/// The library's implementation of MCP over HTTP, independent of the type of its handler.
#[async_trait]
trait HttpProtocol: Send + Sync {
    async fn answer_request(&self, request: Request) -> Response<BoxBody<Bytes, Infallible>>;
}

#[async_trait]
impl<H: ServerHandler> HttpProtocol for StreamableHttpService<H, LocalSessionManager> {
    async fn answer_request(&self, request: Request) -> Response<BoxBody<Bytes, Infallible>> {
        self.handle::<Body>(request).await
    }
}

/// The entrance `/mcp` of a server.
pub(crate) struct McpDoor {
    protocol: Box<dyn HttpProtocol>,
    sessions: Arc<LocalSessionManager>,
    /// The owner of each open session, by the session's id.
    owners: Mutex<HashMap<String, Key>>,
}

impl McpDoor {
    /// INV-299: host names and origins are checked before every route (`guard.rs`), so the library's
    /// own check is switched off.
    pub(crate) fn new<H: ServerHandler>(
        stopped: CancellationToken,
        make: impl Fn(McpHandler) -> H + Send + Sync + 'static,
    ) -> Result<Self, getrandom::Error> {
        let (states, sessions, pool) =
            (Arc::new(SealedStates::new()?), AtomicU64::default(), Mutex::default());
        let keys = Arc::new(KeyedClients { states, sessions, pool });
        let sessions = Arc::new(LocalSessionManager::default());
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_cancellation_token(stopped)
            .with_max_request_body_bytes(MAX_BODY);
        let handler = move || Ok(make(McpHandler::new(Arc::<KeyedClients>::clone(&keys))));
        let service = StreamableHttpService::new(handler, Arc::clone(&sessions), config);
        Ok(Self { protocol: Box::new(service), sessions, owners: Mutex::default() })
    }

    fn lock_owners(&self) -> MutexGuard<'_, HashMap<String, Key>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request of an authenticated caller.
    pub(crate) async fn answer_guest(
        &self,
        guest: McpGuest,
        mut request: Request,
    ) -> Result<Response<BoxBody<Bytes, Infallible>>, Problem> {
        let whose = guest.owner_key();
        let named = request.headers().get(SESSION).map(|id| id.to_str().unwrap_or("").to_owned());
        if let Some(id) = &named
            && self.lock_owners().get(id) != Some(&whose)
        {
            // INV-296: a session of another key is answered like a missing one.
            let mut none = Response::new(Full::from("Not Found: Session not found").boxed());
            *none.status_mut() = StatusCode::NOT_FOUND;
            return Ok(none);
        }
        let ends = request.method() == Method::DELETE;
        request.extensions_mut().insert(guest);
        let mut response = self.protocol.answer_request(request).await;
        let begun = response.headers().get(SESSION).and_then(|id| id.to_str().ok());
        if let Some(id) = begun.filter(|_| named.is_none())
            && let Err(full) = self.record_owner(id, whose).await
        {
            // The session began but is over the limit, so no client may use it.
            let _ = self.sessions.close_session(&id.into()).await;
            return Err(Problem::too_many(full, Duration::from_secs(30)));
        }
        // Ending a session that is shutting down counts as done, because clients of the protocol accept
        // only these two statuses.
        if ends && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        Ok(response)
    }

    /// Notes the owner of a new session, unless the key or its tenant has too many open ones. INV-383:
    /// a tenant with any number of subjects cannot use up the sessions of other tenants.
    async fn record_owner(&self, id: &str, whose: Key) -> Result<(), String> {
        // Locked until the owner is noted, so no session begins in between and is removed at once as unknown.
        let alive = self.sessions.sessions.read().await;
        let mut owners = self.lock_owners();
        owners.retain(|id, _| alive.contains_key(id.as_str()));
        let of_key = owners.values().filter(|owner| **owner == whose).count();
        if of_key >= MAX_SESSIONS {
            return Err(format!("this key has {MAX_SESSIONS} sessions; end one of them"));
        }
        let of_tenant = owners.values().filter(|(tenant, _)| *tenant == whose.0).count();
        if of_tenant >= MAX_SESSIONS_OF_TENANT {
            return Err(format!(
                "this tenant has {MAX_SESSIONS_OF_TENANT} sessions, those of its other keys and subjects \
                 included; one of them has to end first"
            ));
        }
        owners.insert(id.to_owned(), whose);
        Ok(())
    }
}

/// The clients of a server, by tenant and key.
struct KeyedClients {
    states: Arc<SealedStates>,
    /// The number of sessions that have begun; numbers the next one.
    sessions: AtomicU64,
    /// The clients outside of sessions, with the time of their last message.
    pool: Mutex<HashMap<Key, (Arc<ProtocolClient>, Instant)>>,
}

impl KeyedClients {
    fn make_client(&self, guest: &McpGuest, name: String) -> ProtocolClient {
        let name = name.chars().take(MAX_NAME).collect();
        let (service, actor) = (guest.service.clone(), Arc::clone(&guest.actor));
        ProtocolClient::new(service, actor, Arc::clone(&self.states), name)
    }

    /// Returns the client for a key's messages outside of sessions, and drops clients that were silent
    /// for too long.
    fn pooled_client(&self, guest: &McpGuest, name: String) -> Arc<ProtocolClient> {
        let whose = guest.owner_key();
        let now = Instant::now();
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.retain(|_, (client, at)| Arc::strong_count(client) > 1 || now - *at < IDLE);
        let entry =
            pool.entry(whose).or_insert_with(|| (Arc::new(self.make_client(guest, name)), now));
        entry.1 = now;
        Arc::clone(&entry.0)
    }
}

fn guest_of_request(cx: &RequestContext<RoleServer>) -> Result<McpGuest, ErrorData> {
    let parts = cx.extensions.get::<Parts>();
    let guest = parts.and_then(|parts| parts.extensions.get::<McpGuest>().cloned());
    guest.ok_or_else(|| ErrorData::internal_error("the server failed; its log says why", None))
}

#[async_trait]
impl ClientLookup for KeyedClients {
    /// Makes the client of a new MCP session.
    async fn begin_session(
        &self,
        info: &InitializeRequestParams,
        cx: &RequestContext<RoleServer>,
    ) -> Result<Arc<ProtocolClient>, ErrorData> {
        let guest = guest_of_request(cx)?;
        let named = &info.client_info;
        let mut client = self.make_client(&guest, format!("{} {}", named.name, named.version));
        client.session = Some(self.sessions.fetch_add(1, Ordering::Relaxed));
        Ok(Arc::new(client))
    }

    /// Finds the client for a message outside of sessions, and makes its jar if necessary.
    async fn for_message(
        &self,
        cx: &RequestContext<RoleServer>,
    ) -> Result<Arc<ProtocolClient>, ErrorData> {
        let guest = guest_of_request(cx)?;
        let named = cx.client_info();
        let named = named.map_or_else(String::new, |it| format!("{} {}", it.name, it.version));
        let client = self.pooled_client(&guest, named);
        // The jar is made now, so this request reports a tenant that has no free place.
        if let Err(error) = client.direct_session().await {
            // A client that got no jar is removed, so refused callers use no memory.
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            // It stays if another request of the key has got a jar meanwhile.
            if let Entry::Occupied(entry) = pool.entry(guest.owner_key())
                && Arc::ptr_eq(&entry.get().0, &client)
                && !client.is_placed()
            {
                entry.remove();
            }
            return Err(refusal_error(&error));
        }
        Ok(client)
    }

    /// True if a request comes from the same tenant and actor as the client.
    fn may_be(&self, client: &ProtocolClient, cx: &RequestContext<RoleServer>) -> bool {
        let tenant = client.service.store().tenant_id();
        let same = |guest: McpGuest| {
            guest.actor == client.actor && tenant.is_none_or(|id| *id == *guest.tenant)
        };
        guest_of_request(cx).is_ok_and(same)
    }
}
