//! The gate, which every request of a guest passes. It checks, in this order: the request's form, the
//! allowed hosts, the address, the budget, the secrets. It checks every reply too.

use std::sync::Arc;
use std::time::Duration;

use belljar_policy::{
    DenyCode, GUEST_MARK, HostScope, RequestTarget, SecretName, ShownText, UrlPermit,
};
use futures::future::{Either, select};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HOST, IF_RANGE, RANGE, TRANSFER_ENCODING};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use wasmtime_wasi_http::{Error, ForbiddenHeaderFilter, RequestOptions, WasiBody};

use super::body::{ReplyBody, RequestBody};
use super::connect::{CheckedConnection, HttpTimeouts, open_connection};
use super::decoded::{decode_reply, has_coding_request};
use super::metered::{FaultCell, MAX_REPLY, MeteredStream};
use super::options::{ConnectionLimit, HttpOptions};
use super::refusal::{MAX_PATH, broken_error, deny_request};
use super::secrets::{JarSecrets, Secret};
use super::whole;
use crate::receipt::record::CallRecord;

/// The permitted methods. `CONNECT` and `TRACE` are missing, because they are about connections, which the
/// host controls.
const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];
/// The most headers of a request, and of a reply.
const MAX_HEADERS: usize = 100;
/// The most bytes of all headers of a request, and of the whole head of a reply.
pub(crate) const MAX_HEADER_BYTES: usize = 64 << 10;
/// How long a connection may take to close after a complete reply. Only a connection that still sends the
/// request takes longer, and nobody needs the rest.
const MAX_CLOSING: Duration = Duration::from_secs(1);

/// A future that drives the connection of a request while its reply is read.
pub(crate) type Io = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// The gate for all requests of a store.
pub(crate) struct HttpGate {
    pub(crate) scope: HostScope,
    pub(crate) secrets: JarSecrets,
    pub(crate) forbidden: ForbiddenHeaderFilter,
    pub(crate) record: Arc<CallRecord>,
    pub(crate) options: HttpOptions,
    /// The free connections of the store, and those of the jar.
    pub(crate) connections: [ConnectionLimit; 2],
}

/// A request that passed all checks that need no network.
#[derive(Debug)]
pub(crate) struct CheckedRequest {
    permit: UrlPermit,
    path: PathAndQuery,
    joined: JoinedSecrets,
}

/// One connection, counted in the store and in the jar until dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    _store: OwnedSemaphorePermit,
    _jar: OwnedSemaphorePermit,
}

/// The secrets to add to one request. The reply is searched for all secrets of the run, not only for these.
#[derive(Debug, Clone, Default)]
struct JoinedSecrets(Vec<(SecretName, Arc<Secret>)>);

impl HttpGate {
    /// Checks and sends a request. The returned future drives the connection, which counts as open until the
    /// reply is read or dropped.
    pub(crate) async fn send_request(
        self: Arc<Self>,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
    ) -> Result<(Response<WasiBody>, Io), Error> {
        let checked = self.check_request(request.uri(), request.method(), request.headers())?;
        let place = self.acquire_connection()?;
        let times = HttpTimeouts::from_options(options);
        let connected =
            open_connection(&self.options, &checked.permit, &self.record, times.connect).await?;
        self.exchange_messages(request, checked, connected, times, place).await
    }

    /// Makes all checks of a request that need no network.
    pub(crate) fn check_request(
        &self,
        uri: &Uri,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<CheckedRequest, Error> {
        if !METHODS.contains(method) {
            let shown = ShownText::clip_line(method.as_str(), 32).to_string();
            return Err(self.deny_form(format!("method `{shown}`")));
        }
        let target = self.parse_target(uri)?;
        let path = origin_form(uri)?;
        self.check_headers(headers)?;
        let permit = self.scope.check_target(&target).map_err(|denied| {
            self.record.denied_request(&target, &denied);
            Error::HttpRequestDenied
        })?;
        let joined = self.join_secrets(&target, headers)?;
        Ok(CheckedRequest { permit, path, joined })
    }

    fn parse_target(&self, uri: &Uri) -> Result<RequestTarget, Error> {
        let scheme = uri.scheme_str().ok_or(Error::HttpRequestUriInvalid)?;
        let authority = uri.authority().ok_or(Error::HttpRequestUriInvalid)?.as_str();
        let url = format!("{scheme}://{authority}/");
        let shown = ShownText::clip_line(&url, 256);
        // Checked here, because a URL parser accepts an empty user name.
        if authority.contains('@') {
            return Err(self.deny_form(format!("`{shown}`: a user name in the URL")));
        }
        RequestTarget::parse(&url).map_err(|error| self.deny_form(format!("`{shown}`: {error}")))
    }

    /// Checks the headers. A guest's own `host` is refused, because the host writes that header: a second
    /// value could lead a proxy to another server than the checked one.
    fn check_headers(&self, headers: &HeaderMap) -> Result<(), Error> {
        if let Some(name) = headers.keys().find(|name| (self.forbidden)(name)) {
            return Err(
                self.deny_form(format!("header `{}`", ShownText::clip_line(name.as_str(), 64)))
            );
        }
        let bytes: usize = headers.iter().map(|(n, v)| n.as_str().len() + v.len() + 4).sum();
        if bytes > MAX_HEADER_BYTES || headers.len() > MAX_HEADERS {
            let size = u32::try_from(bytes).ok();
            return Err(Error::HttpRequestHeaderSectionSize(size));
        }
        Ok(())
    }

    /// Selects the secrets that are bound to the target. Refuses requests that would make a secret hard to
    /// find in the reply.
    fn join_secrets(
        &self,
        target: &RequestTarget,
        headers: &HeaderMap,
    ) -> Result<JoinedSecrets, Error> {
        let joined = JoinedSecrets(self.secrets.bound_to(target));
        let mut taken = Vec::new();
        for (name, secret) in &joined.0 {
            if taken.contains(&secret.header_name()) {
                let facts = format!("`{target}`: secret `{name}` needs a header that another has");
                return Err(self.deny_form(facts));
            }
            taken.push(secret.header_name());
        }
        let watch = self.secrets.secret_watch();
        // Half of a secret might be in each of two partial replies, and the search would miss it.
        let part = headers.contains_key(RANGE) || headers.contains_key(IF_RANGE);
        if part && !watch.is_empty() {
            return Err(
                self.deny_form(format!("`{target}`: a part of a reply, in a run with secrets"))
            );
        }
        if watch.is_used_up() {
            let facts = format!("`{target}`: too many replies of this run held a secret");
            return Err(deny_request(&self.record, DenyCode::LimitReached, facts));
        }
        Ok(joined)
    }

    /// Takes a free connection of the store and one of the jar. Refuses the request if either has none.
    pub(crate) fn acquire_connection(&self) -> Result<ConnectionSlot, Error> {
        let take =
            |connections: &ConnectionLimit| Arc::clone(&connections.0).try_acquire_owned().ok();
        let [store, jar] = &self.connections;
        match (take(store), take(jar)) {
            (Some(store), Some(jar)) => Ok(ConnectionSlot { _store: store, _jar: jar }),
            (None, _) | (_, None) => {
                let facts = "no more connections may be open at the same time".to_owned();
                deny_request(&self.record, DenyCode::LimitReached, facts);
                Err(Error::ConnectionLimitReached)
            }
        }
    }

    /// Sends a checked request over a connection, receives the reply's head, and checks it. In a run with
    /// secrets, also receives and searches the body.
    pub(crate) async fn exchange_messages(
        &self,
        request: Request<WasiBody>,
        checked: CheckedRequest,
        connected: CheckedConnection,
        times: HttpTimeouts,
        place: ConnectionSlot,
    ) -> Result<(Response<WasiBody>, Io), Error> {
        let target = checked.permit.target().to_string();
        let fault = FaultCell::default();
        let CheckedConnection { stream, here } = connected;
        let metered = MeteredStream::new(stream, Arc::clone(&self.record), fault.clone());
        let broken = |error: hyper::Error| broken_error(&fault, &error);
        let (mut sender, connection) = http1::Builder::new()
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEADER_BYTES)
            // The limit of the buffer alone would not do: it only stops the buffer's growth, so a somewhat
            // longer head might fit.
            .max_header_size(MAX_HEADER_BYTES)
            .handshake(TokioIo::new(metered))
            .await
            .map_err(broken)?;
        self.record.add_host(&target);
        let as_it_comes = has_coding_request(request.headers()) || request.method() == Method::HEAD;
        let request = self.finish_request(request, &checked, &target, here)?;
        let answer = Box::pin(timeout(times.first_byte, sender.send_request(request)));
        let (answer, connection) = match select(answer, Box::pin(connection)).await {
            Either::Left((answer, connection)) => (answer, Some(connection)),
            // The connection has ended: the reply is complete, or will never come.
            Either::Right((_, answer)) => (answer.await, None),
        };
        let reply = answer.map_err(|_| Error::ConnectionReadTimeout)?.map_err(broken)?;
        self.check_reply(&reply, &target)?;
        if !self.secrets.secret_watch().is_empty() {
            let silence = times.between_bytes;
            let reply = self.read_whole_reply(reply, sender, connection, silence, &fault).await?;
            return Ok((reply, Box::new(async { Ok(()) })));
        }
        let reply = reply
            .map(|incoming| ReplyBody::new(incoming, fault, times.between_bytes).boxed_unsync());
        let reply = if as_it_comes { reply } else { decode_reply(reply, &self.record)? };
        let io = async move {
            let _place = place;
            if let Some(connection) = connection {
                // The reader of the body gets an error of the connection too.
                let _ = connection.await;
            }
            Ok(())
        };
        Ok((reply, Box::new(io)))
    }

    /// Receives and searches a whole reply, in a run with secrets. Returns the reply, or its refusal if it
    /// contains a secret, only after the connection has closed or [`MAX_CLOSING`] has passed.
    async fn read_whole_reply<C: Future + Unpin>(
        &self,
        reply: Response<Incoming>,
        sender: http1::SendRequest<RequestBody>,
        connection: Option<C>,
        silence: Duration,
        fault: &FaultCell,
    ) -> Result<Response<WasiBody>, Error> {
        let watch = self.secrets.secret_watch();
        let broken = |error| broken_error(fault, &error);
        let taking = Box::pin(whole::read_reply(reply, watch, &self.record, silence, broken));
        let (taken, connection) = match connection {
            None => (taking.await, None),
            Some(connection) => match select(taking, connection).await {
                Either::Left((taken, connection)) => (taken, Some(connection)),
                Either::Right((_, taking)) => (taking.await, None),
            },
        };
        let searched = taken?;
        // The peer sees how and when the connection closes, so this must be the same whatever the reply
        // contains.
        drop(sender);
        if let Some(connection) = connection {
            let _ = timeout(MAX_CLOSING, connection).await;
        }
        searched.into_reply(watch, &self.record)
    }

    /// Makes the request as it is sent: the URL reduced to path and query, the host's own `Host` header, and
    /// the secrets last. A request to the local machine gets the mark of a guest (INV-114), because another
    /// belljar may receive it.
    fn finish_request(
        &self,
        request: Request<WasiBody>,
        checked: &CheckedRequest,
        target: &str,
        here: bool,
    ) -> Result<Request<RequestBody>, Error> {
        let (mut parts, inner) = request.into_parts();
        parts.uri = Uri::from(checked.path.clone());
        let host = target.split_once("://").map_or(target, |(_, host)| host);
        let host = HeaderValue::from_str(host).map_err(|_| Error::HttpRequestUriInvalid)?;
        parts.headers.insert(HOST, host);
        if here {
            parts.headers.insert(GUEST_MARK, HeaderValue::from_static("1"));
        }
        for (name, secret) in &checked.joined.0 {
            parts.headers.insert(secret.header_name().clone(), secret.header_value());
            self.record.secret_used(name.as_str());
        }
        if !self.secrets.secret_watch().is_empty() {
            parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        let record = Arc::clone(&self.record);
        Ok(Request::from_parts(parts, RequestBody { inner, record }))
    }

    /// Checks the head of a reply before the search. The result must not depend on secrets, and no text of
    /// the head is recorded.
    fn check_reply(&self, reply: &Response<Incoming>, target: &str) -> Result<(), Error> {
        if reply.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Error::HttpUpgradeFailed);
        }
        let length = http_body::Body::size_hint(reply.body()).exact();
        if let Some(length) = length.filter(|length| *length > MAX_REPLY) {
            let facts = format!("`{target}`: the reply has {length} bytes");
            deny_request(&self.record, DenyCode::LimitReached, facts);
            return Err(Error::HttpResponseBodySize(Some(length)));
        }
        if self.secrets.secret_watch().is_empty() {
            return Ok(());
        }
        // The facts do not name the coding, because the name may be a part of a secret.
        if reply_codings(reply.headers())
            .any(|coding| !matches!(&*coding, "identity" | "chunked" | ""))
        {
            let facts = format!("`{target}`: the run has secrets and the reply is compressed");
            deny_request(&self.record, DenyCode::SecretInReply, facts);
            return Err(Error::HttpResponseContentCoding(None));
        }
        if reply.status() == StatusCode::PARTIAL_CONTENT {
            let facts = format!("`{target}`: the run has secrets and the reply is a part");
            return Err(deny_request(&self.record, DenyCode::SecretInReply, facts));
        }
        Ok(())
    }

    /// Records that a request's form is not allowed, and returns the guest's error.
    fn deny_form(&self, facts: String) -> Error {
        deny_request(&self.record, DenyCode::RequestNotAllowed, facts)
    }
}

/// The path and query of a URL, for the request line.
fn origin_form(uri: &Uri) -> Result<PathAndQuery, Error> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    if path.len() > MAX_PATH {
        return Err(Error::HttpRequestUriTooLong);
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    path.parse().map_err(|_| Error::HttpRequestUriInvalid)
}

/// All codings a reply's headers name, in lower case, for example `gzip`.
fn reply_codings(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let all = headers.get_all(CONTENT_ENCODING).iter().chain(headers.get_all(TRANSFER_ENCODING));
    all.flat_map(|value| {
        let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        text.split(',').map(|coding| coding.trim().to_owned()).collect::<Vec<_>>()
    })
}
