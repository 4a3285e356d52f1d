//! Sends one request over streamable HTTP and reads its answer, which is JSON or an event of a stream. A
//! stream may contain other messages before the answer.

use std::sync::Arc;

use belljar_policy::{DenyCode, ShownText};
use belljar_received::sse::EventTooLong;
use belljar_received::whole::to_unsigned;
use belljar_sandbox::{HttpReply, OutgoingError, OutgoingGate, ProgressReport};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::challenge::TokenChallenge;
use crate::demands::CallTalk;
use crate::limits::{
    FAREWELL, MAX_ASKED, MAX_MESSAGE, MAX_MESSAGES, MAX_RESUMED, MAX_SESSION, MAX_SHOWN,
};
use crate::message::{RequestIds, RpcError, RpcMessage, format_reply, is_of_protocol};
use crate::revision::ProtocolRevision;
use crate::sse::EventReader;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const LAST_EVENT: &str = "last-event-id";
const EVENTS: &str = "text/event-stream";

/// A request id that this client never uses.
const NO_ID: u64 = 0;

/// The headers of a request without a session: the method, and the name of the object.
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// The most logged events of one request that are no messages. Twenty are enough to find the fault.
const MAX_STRAYS: usize = 20;

/// The address of requests in one session.
#[derive(Debug, Clone)]
pub(crate) struct SessionAddress {
    pub(crate) url: Uri,
    pub(crate) session: Option<HeaderValue>,
    /// The name of the negotiated revision, for example `2025-06-18`.
    pub(crate) version: Option<HeaderValue>,
    /// The MCP revision that the server uses.
    pub(crate) revision: ProtocolRevision,
    pub(crate) ids: Arc<RequestIds>,
}

/// The reason why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeFault {
    /// The server cannot be reached, or the gate has refused the request.
    #[error("it cannot be reached: {0}")]
    Unreached(#[from] OutgoingError),
    /// The server answered with an unexpected status.
    #[error("it answers with status {0}")]
    Status(StatusCode),
    /// The server answered with a redirect, which is not followed.
    #[error("it redirects, which is not followed")]
    Redirect,
    /// The server requires a token, or one with more scopes.
    #[error("it wants to be asked with a token")]
    Unauthorized(TokenChallenge),
    /// The server does not know the session any more.
    #[error("it has ended the session")]
    SessionOver,
    /// The server does not follow MCP; the text states how.
    #[error("{0}")]
    Broken(&'static str),
    /// The server answered with a JSON-RPC error.
    #[error("it answers with error {}: {}", .0.code, ShownText::clip_line(&.0.message, MAX_SHOWN))]
    Rpc(RpcError),
    /// The server is a program, and this process has no OS sandbox to run it in.
    #[error(
        "it is a command, and such are run in the OS sandbox alone, which this process is without"
    )]
    NoSandbox,
    /// The program has another digest than the accepted one.
    #[error("its program is another than the one that was accepted")]
    OtherProgram,
    /// The program cannot be started.
    #[error("it cannot be started: {0}")]
    NotStarted(String),
    /// The program ended before the request was sent.
    #[error("it has ended")]
    EndedBefore,
    /// The program ended during the request.
    #[error("it has ended")]
    Ended,
}

impl From<EventTooLong> for ExchangeFault {
    fn from(_: EventTooLong) -> Self {
        Self::Broken("a message is too long")
    }
}

/// What belongs to one request besides its message: headers, the call, and what the server sends besides the
/// answer.
#[derive(Default)]
pub(crate) struct ExchangeContext<'a> {
    /// Further headers of the request.
    pub(crate) headers: HeaderMap,
    /// The call to which the request belongs; it answers the server's requests. `None` outside of a call.
    talk: Option<&'a CallTalk<'a>>,
    /// True after the server has announced that its tools have changed.
    pub(crate) tools_changed: bool,
    /// The id of the session, if the server sent one with the answer.
    pub(crate) session: Option<HeaderValue>,
    messages: usize,
    asked: usize,
    strays: usize,
}

impl<'a> ExchangeContext<'a> {
    /// The context of a request within a call.
    pub(crate) fn for_call(talk: &'a CallTalk<'a>) -> Self {
        Self { talk: Some(talk), ..Self::default() }
    }

    /// Answers a request of the server. INV-314, INV-360: too many such requests end the call, and outside of
    /// a call every request is refused.
    pub(crate) async fn answer_request(
        &mut self,
        gate: &OutgoingGate,
        id: &Value,
        method: &str,
        params: &Value,
    ) -> Result<Value, ExchangeFault> {
        self.asked += 1;
        if self.asked > MAX_ASKED {
            return Err(ExchangeFault::Broken("it asks for too much"));
        }
        if let Some(talk) = self.talk {
            // Boxed, because the stack is deep here, and asking a model or a person needs much of it.
            return Ok(Box::pin(talk.reply_to_request(gate, id, method, params)).await);
        }
        if method != "ping" {
            let shown = ShownText::clip_line(method, 80);
            let facts = format!("it asks for `{shown}` outside of a call, which is refused");
            gate.record_denial(DenyCode::RequestNotAllowed, "request of a server", facts);
        }
        Ok(format_reply(id, method))
    }

    /// Counts a message of the server; an error if there were too many, which ends the call.
    pub(crate) fn count_message(&mut self) -> Result<(), ExchangeFault> {
        self.messages += 1;
        match self.messages > MAX_MESSAGES {
            true => Err(ExchangeFault::Broken("it sends too many messages")),
            false => Ok(()),
        }
    }
}

/// Sends a request, and returns the answer with the given id. Within a call, a server with a session may also
/// send requests on a second stream.
pub(crate) async fn send_request(
    gate: &OutgoingGate,
    to: &SessionAddress,
    id: u64,
    request: &Value,
    aside: &mut ExchangeContext<'_>,
) -> Result<Value, ExchangeFault> {
    let is_session = to.revision == ProtocolRevision::Sessions;
    let talk = aside.talk.filter(|talk| is_session && talk.grants_something());
    let mut answer = Box::pin(request_answer(gate, to, id, request, aside));
    let Some(talk) = talk else { return answer.await };
    let Some(stream) = open_stream(gate, to).await else { return answer.await };
    tokio::select! {
        answer = &mut answer => answer,
        ended = Box::pin(answer_beside(gate, to, stream, talk)) => {
            ended?;
            answer.await
        }
    }
}

/// Posts the request, and reads the answer from a JSON body or a stream.
async fn request_answer(
    gate: &OutgoingGate,
    to: &SessionAddress,
    id: u64,
    request: &Value,
    aside: &mut ExchangeContext<'_>,
) -> Result<Value, ExchangeFault> {
    let mut got = post_message(gate, to, request, std::mem::take(&mut aside.headers)).await?;
    if let Some(session) = got.headers.get(SESSION) {
        let fits = session.len() <= MAX_SESSION && session.to_str().is_ok();
        aside.session = Some(session.clone()).filter(|_| fits);
    }
    match reply_media_type(&got).as_str() {
        "application/json" => {
            let messages =
                RpcMessage::read_all(&read_body(&mut got).await?).map_err(ExchangeFault::Broken)?;
            answer_among(messages, id)
        }
        EVENTS => read_stream(gate, to, id, got, aside).await,
        _ => Err(ExchangeFault::Broken("it answers with neither JSON nor events")),
    }
}

/// Finds the answer with the given id among the messages of one body.
fn answer_among(messages: Vec<RpcMessage>, id: u64) -> Result<Value, ExchangeFault> {
    let mut fault = "it does not answer";
    for message in messages {
        match message {
            RpcMessage::Answer(Some(own), answer) if own == id => {
                return answer.map_err(ExchangeFault::Rpc);
            }
            RpcMessage::Answer(..) => fault = "it answers another request",
            RpcMessage::Asked { .. } | RpcMessage::Told { .. } => {}
        }
    }
    Err(ExchangeFault::Broken(fault))
}

/// Sends a message that has no answer.
pub(crate) async fn send_notification(
    gate: &OutgoingGate,
    to: &SessionAddress,
    message: &Value,
) -> Result<(), ExchangeFault> {
    post_message(gate, to, message, HeaderMap::new()).await.map(drop)
}

/// Ends the session. The server may not support this.
pub(crate) async fn end_session(
    gate: &OutgoingGate,
    to: &SessionAddress,
) -> Result<(), ExchangeFault> {
    let request = build_request(to, Method::DELETE, Bytes::new())?;
    gate.send_request(request).await.map(drop).map_err(ExchangeFault::Unreached)
}

/// Opens the second stream, for messages that belong to no request. A server need not have one, so the wait
/// for it is short.
async fn open_stream(gate: &OutgoingGate, to: &SessionAddress) -> Option<HttpReply> {
    let got =
        timeout(FAREWELL, gate.send_request(stream_request(to, None).ok()?)).await.ok()?.ok()?;
    (got.status == StatusCode::OK && reply_media_type(&got) == EVENTS).then_some(got)
}

/// Answers the server's requests on the second stream, until it ends.
async fn answer_beside(
    gate: &OutgoingGate,
    to: &SessionAddress,
    mut got: HttpReply,
    talk: &CallTalk<'_>,
) -> Result<(), ExchangeFault> {
    let (mut events, mut aside) = (EventReader::default(), ExchangeContext::for_call(talk));
    match until_its_end(gate, to, NO_ID, &mut got, &mut events, &mut aside).await {
        Ok(_) | Err(ExchangeFault::Unreached(_)) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// A request for a stream; `last` = the id of the event after which the stream continues.
fn stream_request(
    to: &SessionAddress,
    last: Option<HeaderValue>,
) -> Result<Request<Bytes>, ExchangeFault> {
    let mut request = build_request(to, Method::GET, Bytes::new())?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(EVENTS));
    if let Some(last) = last {
        request.headers_mut().insert(LAST_EVENT, last);
    }
    Ok(request)
}

/// Posts a message; for a stateless server, adds the headers with its method and name. Any status other than
/// success is an error.
async fn post_message(
    gate: &OutgoingGate,
    to: &SessionAddress,
    message: &Value,
    headers: HeaderMap,
) -> Result<HttpReply, ExchangeFault> {
    let mut request = build_request(to, Method::POST, message.to_string().into())?;
    request.headers_mut().extend(headers);
    if to.revision == ProtocolRevision::Stateless {
        let about = [(METHOD, message.get("method")), (NAME, message.pointer("/params/name"))];
        for (header, text) in about {
            if let Some(text) = text.and_then(Value::as_str) {
                let value = HeaderValue::from_str(text);
                let value = value
                    .map_err(|_| ExchangeFault::Broken("its tool has no name for a header"))?;
                request.headers_mut().insert(header, value);
            }
        }
    }
    let mut got = gate.send_request(request).await?;
    match got.status {
        status if status.is_success() => Ok(got),
        status if status.is_redirection() => {
            let facts =
                format!("`{}` answers with status {status}: no redirect is followed", to.url);
            gate.record_denial(DenyCode::HostNotAllowed, "redirect", facts);
            Err(ExchangeFault::Redirect)
        }
        StatusCode::NOT_FOUND if to.session.is_some() => Err(ExchangeFault::SessionOver),
        StatusCode::UNAUTHORIZED => {
            Err(ExchangeFault::Unauthorized(TokenChallenge::from_headers(&got.headers)))
        }
        StatusCode::FORBIDDEN if TokenChallenge::from_headers(&got.headers).insufficient => {
            Err(ExchangeFault::Unauthorized(TokenChallenge::from_headers(&got.headers)))
        }
        status
            if to.revision == ProtocolRevision::Stateless
                && reply_media_type(&got) == "application/json" =>
        {
            match RpcMessage::from_bytes(&read_body(&mut got).await?) {
                Ok(RpcMessage::Answer(_, Err(error))) => Err(ExchangeFault::Rpc(error)),
                Ok(_) | Err(_) => Err(ExchangeFault::Status(status)),
            }
        }
        status => Err(ExchangeFault::Status(status)),
    }
}

/// Builds an HTTP request with the headers of the session.
fn build_request(
    to: &SessionAddress,
    method: Method,
    body: Bytes,
) -> Result<Request<Bytes>, ExchangeFault> {
    let mut request = Request::builder().method(method).uri(to.url.clone());
    if let Some(headers) = request.headers_mut() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        let named = [(SESSION, &to.session), (VERSION, &to.version)];
        for (name, value) in named {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
    }
    request.body(body).map_err(|_| ExchangeFault::Broken("its address is none"))
}

async fn read_body(got: &mut HttpReply) -> Result<Vec<u8>, ExchangeFault> {
    at_most(got, MAX_MESSAGE).await
}

/// The body of a reply; an error if it has more than `most` bytes.
pub(crate) async fn at_most(got: &mut HttpReply, most: usize) -> Result<Vec<u8>, ExchangeFault> {
    let mut bytes = Vec::new();
    while let Some(piece) = got.next_chunk().await? {
        if bytes.len().saturating_add(piece.len()) > most {
            return Err(ExchangeFault::Broken("a message is too long"));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// The media type of a reply, without parameters.
pub(crate) fn reply_media_type(got: &HttpReply) -> String {
    let kind = got.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// Reads events until the answer arrives. If the stream ends before, a new request continues it after the
/// last event with an id; without such an event, the early end is the error.
async fn read_stream(
    gate: &OutgoingGate,
    to: &SessionAddress,
    id: u64,
    mut got: HttpReply,
    aside: &mut ExchangeContext<'_>,
) -> Result<Value, ExchangeFault> {
    let mut events = EventReader::default();
    for _ in 0..=MAX_RESUMED {
        let ended = until_its_end(gate, to, id, &mut got, &mut events, aside).await;
        let ended = match ended {
            Ok(Some(answer)) => return answer.map_err(ExchangeFault::Rpc),
            Ok(None) => ExchangeFault::Broken("it ends without an answer"),
            Err(fault @ ExchangeFault::Unreached(_)) => fault,
            Err(fault) => return Err(fault),
        };
        let resumed = events.resumed_from().filter(|_| to.revision == ProtocolRevision::Sessions);
        let Some((last, wait)) = resumed else { return Err(ended) };
        sleep(wait).await;
        got = gate.send_request(stream_request(to, Some(last))?).await?;
        if got.status != StatusCode::OK || reply_media_type(&got) != EVENTS {
            return Err(ended);
        }
        events.begin_anew();
    }
    Err(ExchangeFault::Broken("its stream ends again and again"))
}

/// Reads a stream to the answer, or to its end. An answer to another request is skipped.
async fn until_its_end(
    gate: &OutgoingGate,
    to: &SessionAddress,
    id: u64,
    got: &mut HttpReply,
    events: &mut EventReader,
    aside: &mut ExchangeContext<'_>,
) -> Result<Option<Result<Value, RpcError>>, ExchangeFault> {
    while let Some(piece) = got.next_chunk().await? {
        let mut piece = &piece[..];
        while let Some(data) = events.next_data(&mut piece)? {
            for message in read_event(gate, &data, aside)? {
                aside.count_message()?;
                match message {
                    RpcMessage::Answer(Some(own), answer) if own == id => return Ok(Some(answer)),
                    RpcMessage::Answer(..) => {}
                    // A stateless server cannot receive an answer, so it must not send requests.
                    RpcMessage::Asked { .. } if to.revision == ProtocolRevision::Stateless => {
                        return Err(ExchangeFault::Broken(
                            "it asks for something within its answer",
                        ));
                    }
                    RpcMessage::Asked { id, method, params } => {
                        let answer = aside.answer_request(gate, &id, &method, &params).await?;
                        send_notification(gate, to, &answer).await?;
                    }
                    RpcMessage::Told { method, params } => {
                        handle_message(&method, &params, id, aside)
                    }
                }
            }
        }
    }
    Ok(None)
}

/// Parses the messages of an event. An event that is no message, for example `ping` or `[DONE]`, is logged
/// and skipped.
fn read_event(
    gate: &OutgoingGate,
    data: &[u8],
    aside: &mut ExchangeContext<'_>,
) -> Result<Vec<RpcMessage>, ExchangeFault> {
    match RpcMessage::read_all(data) {
        Ok(messages) => Ok(messages),
        Err(why) if is_of_protocol(data) => Err(ExchangeFault::Broken(why)),
        Err(_) => {
            aside.count_message()?;
            if aside.strays < MAX_STRAYS {
                aside.strays += 1;
                let wrote = String::from_utf8_lossy(data);
                let wrote = ShownText::clip_line(&wrote, MAX_SHOWN);
                gate.log_line("stream", &format!("not a message, so it is passed over: `{wrote}`"));
            }
            Ok(Vec::new())
        }
    }
}

/// Handles a notification that arrives before the answer: a changed list of tools, or a progress report for
/// the request with the given id.
pub(crate) fn handle_message(
    method: &str,
    params: &Value,
    id: u64,
    aside: &mut ExchangeContext<'_>,
) {
    match method {
        "notifications/tools/list_changed" => aside.tools_changed = true,
        "notifications/progress"
            if params.get("progressToken").and_then(to_unsigned) == Some(id) =>
        {
            let number = |name: &str| params.get(name).and_then(Value::as_f64).map(|n| n as u64);
            let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
            if let Some(progress) = aside.talk.and_then(|talk| talk.progress.as_ref()) {
                let message = ShownText::clip_line(message, MAX_SHOWN).to_string();
                let done = number("progress").unwrap_or_default();
                progress(ProgressReport { done, total: number("total"), message });
            }
        }
        _ => {}
    }
}
