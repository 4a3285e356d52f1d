//! The HTTP door's sessions, with their owners.

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

/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";

/// Simultaneous sessions of one key.
const MAX_SESSIONS: usize = 64;

/// Simultaneous sessions of one tenant: an issuer's rule may admit any number of subjects, and each counts as
/// a key.
const MAX_SESSIONS_OF_TENANT: usize = 256;

/// How long a client outside of sessions keeps its jar after the last message.
const IDLE: Duration = Duration::from_secs(300);

/// Characters of a client's name.
const MAX_NAME: usize = 100;

/// The caller: a tenant's id, and a name in the audit log.
type Key = (Arc<str>, Arc<str>);

/// The admitted caller of a request, known before the message is parsed.
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

/// The protocol over HTTP, with any handler.
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

/// The door of a server.
pub(crate) struct McpDoor {
    protocol: Box<dyn HttpProtocol>,
    sessions: Arc<LocalSessionManager>,
    /// The owner of each session.
    owners: Mutex<HashMap<String, Key>>,
}

impl McpDoor {
    /// INV-299: names and origins are checked by the guard before every route, so the protocol's own check is
    /// off.
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

    /// Answers a request of this guest.
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
            // INV-296: another key's session is answered like a missing one.
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
            // No client may use the new session.
            let _ = self.sessions.close_session(&id.into()).await;
            return Err(Problem::too_many(full, Duration::from_secs(30)));
        }
        // A running shutdown counts as finished: clients of the protocol accept only these two statuses.
        if ends && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        Ok(response)
    }

    /// Notes the owner of a session, unless the key or its tenant has too many open ones. INV-383: a tenant
    /// with any number of subjects leaves the places of other tenants free.
    async fn record_owner(&self, id: &str, whose: Key) -> Result<(), String> {
        // Held, so that none begins in between and is forgotten at once.
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

/// The clients of a server, by their keys.
struct KeyedClients {
    states: Arc<SealedStates>,
    /// The number of sessions begun so far.
    sessions: AtomicU64,
    /// The clients outside sessions.
    pool: Mutex<HashMap<Key, (Arc<ProtocolClient>, Instant)>>,
}

impl KeyedClients {
    fn make_client(&self, guest: &McpGuest, name: String) -> ProtocolClient {
        let name = name.chars().take(MAX_NAME).collect();
        let (service, actor) = (guest.service.clone(), Arc::clone(&guest.actor));
        ProtocolClient::new(service, actor, Arc::clone(&self.states), name)
    }

    /// The client of a key outside of sessions; long silent clients are dropped.
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

    async fn for_message(
        &self,
        cx: &RequestContext<RoleServer>,
    ) -> Result<Arc<ProtocolClient>, ErrorData> {
        let guest = guest_of_request(cx)?;
        let named = cx.client_info();
        let named = named.map_or_else(String::new, |it| format!("{} {}", it.name, it.version));
        let client = self.pooled_client(&guest, named);
        // Made now, so that a full tenant is reported here.
        if let Err(error) = client.direct_session().await {
            // A client without a place is removed, so that refused callers use no memory.
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            // Unless another request of the key has found a place meanwhile.
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

    fn may_be(&self, client: &ProtocolClient, cx: &RequestContext<RoleServer>) -> bool {
        let tenant = client.service.store().tenant_id();
        let same = |guest: McpGuest| {
            guest.actor == client.actor && tenant.is_none_or(|id| *id == *guest.tenant)
        };
        guest_of_request(cx).is_ok_and(same)
    }
}
