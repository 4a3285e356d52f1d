//! The door on HTTP: `/mcp`, behind the same names, keys and rates as every other route.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use rmcp::model::InitializeRequestParams;
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer};
use serde::Serialize;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use super::client::{Client, refused};
use super::handler::{Clients, Handler};
use super::state::States;
use crate::app::Ctx;
use crate::http::auth::Caller;
use crate::http::outward::Outward;
use crate::http::problem::{Kind, Problem};
use crate::http::respond::{self, Json, MAX_BODY};

/// The path of the door.
pub(crate) const PATH: &str = "/mcp";

/// Where a client reads who gives keys for it.
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource/mcp";

/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";

/// Sessions of the protocol that one key has at a time.
const MAX_SESSIONS: usize = 64;

/// How long a client outside sessions keeps its jar behind its last message.
const IDLE: Duration = Duration::from_secs(300);

/// Characters of a client's name.
const MAX_NAME: usize = 100;

/// Who calls: a tenant by its id, and a name of the audit log.
type Key = (Arc<str>, Arc<str>);

type Service = StreamableHttpService<Handler<Keys>, LocalSessionManager>;

/// The door of a server.
pub(crate) struct Door {
    service: Service,
    sessions: Arc<LocalSessionManager>,
    /// Who began which session.
    owners: Mutex<HashMap<String, Key>>,
}

impl Door {
    /// INV-299: names and origins are checked by the guard that stands before every route, so the
    /// protocol's own check is left to it.
    pub(crate) fn new(stopped: CancellationToken) -> Result<Self, getrandom::Error> {
        let keys = Arc::new(Keys { states: Arc::new(States::new()?), pool: Mutex::default() });
        let sessions = Arc::new(LocalSessionManager::default());
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_cancellation_token(stopped)
            .with_max_request_body_bytes(MAX_BODY);
        let handler = move || Ok(Handler::new(Arc::clone(&keys)));
        let service = StreamableHttpService::new(handler, Arc::clone(&sessions), config);
        Ok(Self { service, sessions, owners: Mutex::default() })
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<String, Key>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sessions that are still there.
    async fn forget_ended(&self) {
        let alive = self.sessions.sessions.read().await;
        let ids: std::collections::HashSet<String> =
            alive.keys().map(|id| id.to_string()).collect();
        drop(alive);
        self.owners().retain(|id, _| ids.contains(id));
    }

    async fn answer(&self, ctx: &Arc<Ctx>, whose: Key, request: Request) -> Response {
        let named = request.headers().get(SESSION).map(|id| id.to_str().unwrap_or("").to_owned());
        match &named {
            // Another key's session is answered as one that is not there.
            Some(id) if self.owners().get(id) != Some(&whose) => {
                return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
            }
            Some(_) => {}
            None => {
                self.forget_ended().await;
                let own = self.owners().values().filter(|owner| **owner == whose).count();
                if own >= MAX_SESSIONS {
                    let detail = format!("this key has {MAX_SESSIONS} sessions; end one of them");
                    return Problem::too_many(detail, Duration::from_secs(30)).into_response();
                }
            }
        }
        let response = self.service.handle(request).await;
        let begun = response.headers().get(SESSION).and_then(|id| id.to_str().ok());
        if let Some(id) = begun.filter(|_| named.is_none()) {
            self.owners().insert(id.to_owned(), whose);
        }
        let outward = Arc::clone(ctx.app.outward());
        let over = while_admitted(ctx);
        response.map(|body| Body::new(Hidden { body, outward, line: BytesMut::new(), over }))
    }
}

/// `POST`, `GET` and `DELETE /mcp`.
pub(crate) async fn answer(ctx: Ctx, request: Request) -> Response {
    let whose = (Arc::clone(&ctx.caller.tenant_id), Arc::clone(&ctx.caller.actor));
    let (mut parts, body) = request.into_parts();
    // INV-115: held as every body is, and only then given to the protocol.
    let body = match parts.method {
        Method::POST => {
            let mut read = Request::new(body);
            *read.headers_mut() = parts.headers.clone();
            *read.extensions_mut() = parts.extensions.clone();
            match respond::json_bytes(read).await {
                Ok(bytes) => Body::from(bytes),
                Err(problem) => return problem.into_response(),
            }
        }
        _ => Body::empty(),
    };
    parts.extensions.insert(Arc::new(ctx));
    let Some(ctx) = parts.extensions.get::<Arc<Ctx>>().cloned() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    match ctx.app.mcp() {
        Ok(door) => door.answer(&ctx, whose, Request::from_parts(parts, body)).await,
        Err(problem) => problem.into_response(),
    }
}

/// Who gives the keys for this door: nobody but the operator, so no server is named.
#[derive(Debug, Serialize)]
pub(crate) struct Metadata {
    resource: String,
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

/// `GET /.well-known/oauth-protected-resource/mcp`.
pub(crate) async fn metadata(request: Request) -> Json<Metadata> {
    Json(Metadata {
        resource: format!("{}{PATH}", base(request.headers())),
        bearer_methods_supported: ["header"],
        resource_name: "belljar",
    })
}

/// The challenge to whoever comes to this door without a key that opens.
pub(crate) fn challenge(problem: &Problem, request: &Request) -> Option<HeaderValue> {
    if request.uri().path() != PATH || problem.kind() != Kind::NoKey {
        return None;
    }
    let metadata = format!("{}{METADATA_PATH}", base(request.headers()));
    HeaderValue::try_from(format!("Bearer resource_metadata=\"{metadata}\"")).ok()
}

/// Where this server is, as the client wrote it; the guard has checked the name.
fn base(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let proxied = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let scheme = if proxied { "https" } else { "http" };
    format!("{scheme}://{host}")
}

/// The clients of a server, by their keys.
struct Keys {
    states: Arc<States>,
    /// Those outside sessions.
    pool: Mutex<HashMap<Key, (Arc<Client>, Instant)>>,
}

impl Keys {
    fn make(&self, ctx: &Ctx, name: String) -> Arc<Client> {
        let name = name.chars().take(MAX_NAME).collect();
        let (service, actor) = (ctx.service.clone(), Arc::clone(&ctx.caller.actor));
        Arc::new(Client::new(service, actor, Arc::clone(&self.states), name))
    }

    /// The client of a key outside sessions; those that said nothing for long are let go.
    fn pooled(&self, ctx: &Ctx, name: String) -> Arc<Client> {
        let whose = (Arc::clone(&ctx.caller.tenant_id), Arc::clone(&ctx.caller.actor));
        let now = Instant::now();
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.retain(|_, (client, at)| Arc::strong_count(client) > 1 || now - *at < IDLE);
        let entry = pool.entry(whose).or_insert_with(|| (self.make(ctx, name), now));
        entry.1 = now;
        Arc::clone(&entry.0)
    }
}

fn context(cx: &RequestContext<RoleServer>) -> Result<Arc<Ctx>, ErrorData> {
    let parts = cx.extensions.get::<Parts>();
    let ctx = parts.and_then(|parts| parts.extensions.get::<Arc<Ctx>>().cloned());
    ctx.ok_or_else(|| ErrorData::internal_error("the server failed; its log says why", None))
}

#[async_trait]
impl Clients for Keys {
    async fn begin(
        &self,
        info: &InitializeRequestParams,
        cx: &RequestContext<RoleServer>,
    ) -> Result<Arc<Client>, ErrorData> {
        let ctx = context(cx)?;
        let named = &info.client_info;
        Ok(self.make(&ctx, format!("{} {}", named.name, named.version)))
    }

    async fn of(&self, cx: &RequestContext<RoleServer>) -> Result<Arc<Client>, ErrorData> {
        let ctx = context(cx)?;
        let named = cx.client_info();
        let named = named.map_or_else(String::new, |it| format!("{} {}", it.name, it.version));
        let client = self.pooled(&ctx, named);
        // Now, so that a tenant that is full says so here.
        client.direct().await.map_err(|error| refused(&error))?;
        Ok(client)
    }

    fn may_be(&self, client: &Client, cx: &RequestContext<RoleServer>) -> bool {
        let same = |caller: &Caller| {
            let store = client.service.store();
            caller.actor == client.actor
                && store.tenant_id().is_none_or(|id| *id == *caller.tenant_id)
        };
        context(cx).is_ok_and(|ctx| same(&ctx.caller))
    }
}

/// INV-297: ends when its caller may not be there any more, or is dropped with the body that it is for.
fn while_admitted(ctx: &Arc<Ctx>) -> Over {
    let (over, dropped) = (CancellationToken::new(), CancellationToken::new());
    let (ends, gone, ctx) = (over.clone(), dropped.clone(), Arc::clone(ctx));
    tokio::spawn(async move {
        let every = ctx.app.config().key_check;
        loop {
            if tokio::time::timeout(every, gone.cancelled()).await.is_ok() {
                return;
            }
            if !ctx.app.gatekeeper().admitted(&ctx.caller).await {
                return ends.cancel();
            }
        }
    });
    Over { over: Box::pin(over.cancelled_owned()), _dropped: dropped.drop_guard() }
}

/// When a body is over before its end.
struct Over {
    over: Pin<Box<WaitForCancellationFutureOwned>>,
    _dropped: DropGuard,
}

/// A body whose lines are made fit to leave, as every answer of this server is (INV-93).
struct Hidden {
    body: BoxBody<Bytes, Infallible>,
    outward: Arc<Outward>,
    /// The rest of what came, which is no whole line yet.
    line: BytesMut,
    over: Over,
}

impl Hidden {
    fn said(&self, text: &[u8]) -> Vec<u8> {
        let mut said = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let (start, json) = match line.strip_prefix(b"data: ") {
                Some(json) => (&b"data: "[..], json),
                None => (&b""[..], line),
            };
            let text = std::str::from_utf8(json).ok().filter(|json| json.starts_with('{'));
            said.extend_from_slice(start);
            match text {
                Some(json) => {
                    let end = if json.ends_with('\n') { "\n" } else { "" };
                    let public = self.outward.say(json.trim_end().to_owned());
                    said.extend_from_slice(public.as_str().as_bytes());
                    said.extend_from_slice(end.as_bytes());
                }
                None => said.extend_from_slice(json),
            }
        }
        said
    }
}

impl http_body::Body for Hidden {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.over.over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        loop {
            match ready!(http_body::Body::poll_frame(Pin::new(&mut self.body), cx)) {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.line.extend_from_slice(&data);
                    let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') else {
                        continue;
                    };
                    let whole = self.line.split_to(end + 1);
                    let said = self.said(&whole);
                    return Poll::Ready(Some(Ok(Frame::data(said.into()))));
                }
                Some(Err(error)) => match error {},
                None if self.line.is_empty() => return Poll::Ready(None),
                None => {
                    let rest = std::mem::take(&mut self.line);
                    let said = self.said(&rest);
                    return Poll::Ready(Some(Ok(Frame::data(said.into()))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.line.is_empty() && http_body::Body::is_end_stream(&self.body)
    }
}
