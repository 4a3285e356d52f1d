//! One request and its answer over streamable HTTP. The answer is a JSON text or an event of a stream, and a
//! stream may have other messages first.

use std::sync::Arc;

use belljar_policy::{DenyCode, Shown};
use belljar_received::sse::EventTooLong;
use belljar_received::whole::unsigned;
use belljar_sandbox::{HttpReply, Outgoing, OutgoingError, Progress};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::challenge::Challenge;
use crate::demands::Talk;
use crate::limits::{
    FAREWELL, MAX_ASKED, MAX_MESSAGE, MAX_MESSAGES, MAX_RESUMED, MAX_SESSION, MAX_SHOWN,
};
use crate::message::{Ids, Message, RpcError, is_of_protocol, reply};
use crate::revision::Revision;
use crate::sse::Events;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const LAST_EVENT: &str = "last-event-id";
const EVENTS: &str = "text/event-stream";

/// An id that this client never uses.
const NO_ID: u64 = 0;

/// Headers of a request without a session: its method, and the object's name.
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Most logged events of one request that are no messages. Twenty are enough to find the fault.
const MAX_STRAYS: usize = 20;

/// The URL of requests, and the session.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) url: Uri,
    pub(crate) session: Option<HeaderValue>,
    /// The agreed revision's name, for example `2025-06-18`.
    pub(crate) version: Option<HeaderValue>,
    /// The protocol revision of the server.
    pub(crate) revision: Revision,
    pub(crate) ids: Arc<Ids>,
}

/// The reason of a request without an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The server cannot be reached, or the gate refuses the request.
    #[error("it cannot be reached: {0}")]
    Unreached(#[from] OutgoingError),
    /// The server answers with another status.
    #[error("it answers with status {0}")]
    Status(StatusCode),
    /// Redirects are not followed.
    #[error("it redirects, which is not followed")]
    Redirect,
    /// The server wants a token, or a token with more rights.
    #[error("it wants to be asked with a token")]
    Unauthorized(Challenge),
    /// The session is over.
    #[error("it has ended the session")]
    SessionOver,
    /// The server breaks the protocol.
    #[error("{0}")]
    Broken(&'static str),
    /// The server answers with an error.
    #[error("it answers with error {}: {}", .0.code, Shown::clipped(&.0.message, MAX_SHOWN))]
    Rpc(RpcError),
    /// Nothing here can confine a program.
    #[error(
        "it is a command, and such are run in the OS sandbox alone, which this process is without"
    )]
    NoSandbox,
    /// The program's digest differs from the accepted one.
    #[error("its program is another than the one that was accepted")]
    OtherProgram,
    /// The program cannot be started.
    #[error("it cannot be started: {0}")]
    NotStarted(String),
    /// The program ended before the request was sent.
    #[error("it has ended")]
    EndedBefore,
    /// The program has ended.
    #[error("it has ended")]
    Ended,
}

impl From<EventTooLong> for Fault {
    fn from(_: EventTooLong) -> Self {
        Self::Broken("a message is too long")
    }
}

/// Data that goes with a request, and messages of the server beside its answer.
#[derive(Default)]
pub(crate) struct Aside<'a> {
    /// Headers of the request.
    pub(crate) headers: HeaderMap,
    /// The call of the request, with its respondent.
    talk: Option<&'a Talk<'a>>,
    /// True after the server has announced that its tools changed.
    pub(crate) tools_changed: bool,
    /// The session named by the server.
    pub(crate) session: Option<HeaderValue>,
    messages: usize,
    asked: usize,
    strays: usize,
}

impl<'a> Aside<'a> {
    /// The data for a request within a call.
    pub(crate) fn of_call(talk: &'a Talk<'a>) -> Self {
        Self { talk: Some(talk), ..Self::default() }
    }

    /// Answers a request of the server. INV-314, INV-360: too many such requests end the call, and outside of
    /// a call every request is refused.
    pub(crate) async fn answer(
        &mut self,
        gate: &Outgoing,
        id: &Value,
        method: &str,
        params: &Value,
    ) -> Result<Value, Fault> {
        self.asked += 1;
        if self.asked > MAX_ASKED {
            return Err(Fault::Broken("it asks for too much"));
        }
        if let Some(talk) = self.talk {
            // Boxed, because the stack is deep here, and a question to a model or a person needs much of it.
            return Ok(Box::pin(talk.reply(gate, id, method, params)).await);
        }
        if method != "ping" {
            let shown = Shown::clipped(method, 80);
            let facts = format!("it asks for `{shown}` outside of a call, which is refused");
            gate.deny(DenyCode::RequestNotAllowed, "request of a server", facts);
        }
        Ok(reply(id, method))
    }

    /// Counts a message. Too many messages end the call.
    pub(crate) fn count(&mut self) -> Result<(), Fault> {
        self.messages += 1;
        match self.messages > MAX_MESSAGES {
            true => Err(Fault::Broken("it sends too many messages")),
            false => Ok(()),
        }
    }
}

/// Sends the request with this id, and returns the answer. In a call, a server with a session may also send
/// requests on a stream of its own.
pub(crate) async fn ask(
    gate: &Outgoing,
    to: &Address,
    id: u64,
    request: &Value,
    aside: &mut Aside<'_>,
) -> Result<Value, Fault> {
    let is_session = to.revision == Revision::Sessions;
    let talk = aside.talk.filter(|talk| is_session && talk.grants_something());
    let mut answer = Box::pin(request_answer(gate, to, id, request, aside));
    let Some(talk) = talk else { return answer.await };
    let Some(stream) = overhear(gate, to).await else { return answer.await };
    tokio::select! {
        answer = &mut answer => answer,
        ended = Box::pin(answer_beside(gate, to, stream, talk)) => {
            ended?;
            answer.await
        }
    }
}

async fn request_answer(
    gate: &Outgoing,
    to: &Address,
    id: u64,
    request: &Value,
    aside: &mut Aside<'_>,
) -> Result<Value, Fault> {
    let mut got = post(gate, to, request, std::mem::take(&mut aside.headers)).await?;
    if let Some(session) = got.headers.get(SESSION) {
        let fits = session.len() <= MAX_SESSION && session.to_str().is_ok();
        aside.session = Some(session.clone()).filter(|_| fits);
    }
    match kind(&got).as_str() {
        "application/json" => {
            let messages = Message::read_all(&whole(&mut got).await?).map_err(Fault::Broken)?;
            answer_among(messages, id)
        }
        EVENTS => streamed(gate, to, id, got, aside).await,
        _ => Err(Fault::Broken("it answers with neither JSON nor events")),
    }
}

/// Finds the answer to the request with this id among the messages of one text.
fn answer_among(messages: Vec<Message>, id: u64) -> Result<Value, Fault> {
    let mut fault = "it does not answer";
    for message in messages {
        match message {
            Message::Answer(Some(own), answer) if own == id => return answer.map_err(Fault::Rpc),
            Message::Answer(..) => fault = "it answers another request",
            Message::Asked { .. } | Message::Told { .. } => {}
        }
    }
    Err(Fault::Broken(fault))
}

/// Sends a message without an answer.
pub(crate) async fn tell(gate: &Outgoing, to: &Address, message: &Value) -> Result<(), Fault> {
    post(gate, to, message, HeaderMap::new()).await.map(drop)
}

/// Ends the session. A server need not know the method.
pub(crate) async fn leave(gate: &Outgoing, to: &Address) -> Result<(), Fault> {
    let request = headed(to, Method::DELETE, Bytes::new())?;
    gate.send(request).await.map(drop).map_err(Fault::Unreached)
}

/// Opens the stream for messages that belong to no answer. A server with a session may lack such a stream,
/// and the wait for one is short.
async fn overhear(gate: &Outgoing, to: &Address) -> Option<HttpReply> {
    let got = timeout(FAREWELL, gate.send(listening(to, None).ok()?)).await.ok()?.ok()?;
    (got.status == StatusCode::OK && kind(&got) == EVENTS).then_some(got)
}

/// Answers what the server asks for there, until the stream ends.
async fn answer_beside(
    gate: &Outgoing,
    to: &Address,
    mut got: HttpReply,
    talk: &Talk<'_>,
) -> Result<(), Fault> {
    let (mut events, mut aside) = (Events::default(), Aside::of_call(talk));
    match until_its_end(gate, to, NO_ID, &mut got, &mut events, &mut aside).await {
        Ok(_) | Err(Fault::Unreached(_)) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// A request for a stream; `last` = the stream continues after this event.
fn listening(to: &Address, last: Option<HeaderValue>) -> Result<Request<Bytes>, Fault> {
    let mut request = headed(to, Method::GET, Bytes::new())?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(EVENTS));
    if let Some(last) = last {
        request.headers_mut().insert(LAST_EVENT, last);
    }
    Ok(request)
}

async fn post(
    gate: &Outgoing,
    to: &Address,
    message: &Value,
    headers: HeaderMap,
) -> Result<HttpReply, Fault> {
    let mut request = headed(to, Method::POST, message.to_string().into())?;
    request.headers_mut().extend(headers);
    if to.revision == Revision::Stateless {
        let about = [(METHOD, message.get("method")), (NAME, message.pointer("/params/name"))];
        for (header, text) in about {
            if let Some(text) = text.and_then(Value::as_str) {
                let value = HeaderValue::from_str(text);
                let value =
                    value.map_err(|_| Fault::Broken("its tool has no name for a header"))?;
                request.headers_mut().insert(header, value);
            }
        }
    }
    let mut got = gate.send(request).await?;
    match got.status {
        status if status.is_success() => Ok(got),
        status if status.is_redirection() => {
            let facts =
                format!("`{}` answers with status {status}: no redirect is followed", to.url);
            gate.deny(DenyCode::HostNotAllowed, "redirect", facts);
            Err(Fault::Redirect)
        }
        StatusCode::NOT_FOUND if to.session.is_some() => Err(Fault::SessionOver),
        StatusCode::UNAUTHORIZED => Err(Fault::Unauthorized(Challenge::of(&got.headers))),
        StatusCode::FORBIDDEN if Challenge::of(&got.headers).insufficient => {
            Err(Fault::Unauthorized(Challenge::of(&got.headers)))
        }
        status if to.revision == Revision::Stateless && kind(&got) == "application/json" => {
            match Message::read(&whole(&mut got).await?) {
                Ok(Message::Answer(_, Err(error))) => Err(Fault::Rpc(error)),
                Ok(_) | Err(_) => Err(Fault::Status(status)),
            }
        }
        status => Err(Fault::Status(status)),
    }
}

fn headed(to: &Address, method: Method, body: Bytes) -> Result<Request<Bytes>, Fault> {
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
    request.body(body).map_err(|_| Fault::Broken("its address is none"))
}

async fn whole(got: &mut HttpReply) -> Result<Vec<u8>, Fault> {
    at_most(got, MAX_MESSAGE).await
}

/// The body of a reply, at most `most` bytes.
pub(crate) async fn at_most(got: &mut HttpReply, most: usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    while let Some(piece) = got.chunk().await? {
        if bytes.len().saturating_add(piece.len()) > most {
            return Err(Fault::Broken("a message is too long"));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// The media type of a reply.
pub(crate) fn kind(got: &HttpReply) -> String {
    let kind = got.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// Reads events until the answer arrives. A stream that ends early, but has named a point to resume from, is
/// asked for the rest.
async fn streamed(
    gate: &Outgoing,
    to: &Address,
    id: u64,
    mut got: HttpReply,
    aside: &mut Aside<'_>,
) -> Result<Value, Fault> {
    let mut events = Events::default();
    for _ in 0..=MAX_RESUMED {
        let ended = until_its_end(gate, to, id, &mut got, &mut events, aside).await;
        let ended = match ended {
            Ok(Some(answer)) => return answer.map_err(Fault::Rpc),
            Ok(None) => Fault::Broken("it ends without an answer"),
            Err(fault @ Fault::Unreached(_)) => fault,
            Err(fault) => return Err(fault),
        };
        let resumed = events.resumed_from().filter(|_| to.revision == Revision::Sessions);
        let Some((last, wait)) = resumed else { return Err(ended) };
        sleep(wait).await;
        got = gate.send(listening(to, Some(last))?).await?;
        if got.status != StatusCode::OK || kind(&got) != EVENTS {
            return Err(ended);
        }
        events.begin_anew();
    }
    Err(Fault::Broken("its stream ends again and again"))
}

/// Reads a stream to its end, or to the answer. An answer to another request is passed over.
async fn until_its_end(
    gate: &Outgoing,
    to: &Address,
    id: u64,
    got: &mut HttpReply,
    events: &mut Events,
    aside: &mut Aside<'_>,
) -> Result<Option<Result<Value, RpcError>>, Fault> {
    while let Some(piece) = got.chunk().await? {
        let mut piece = &piece[..];
        while let Some(data) = events.next_data(&mut piece)? {
            for message in read_event(gate, &data, aside)? {
                aside.count()?;
                match message {
                    Message::Answer(Some(own), answer) if own == id => return Ok(Some(answer)),
                    Message::Answer(..) => {}
                    // Without a session it has no way to be answered.
                    Message::Asked { .. } if to.revision == Revision::Stateless => {
                        return Err(Fault::Broken("it asks for something within its answer"));
                    }
                    Message::Asked { id, method, params } => {
                        let answer = aside.answer(gate, &id, &method, &params).await?;
                        tell(gate, to, &answer).await?;
                    }
                    Message::Told { method, params } => told(&method, &params, id, aside),
                }
            }
        }
    }
    Ok(None)
}

/// Parses the messages of an event. An event that is no message, for example `ping` or `[DONE]`, is logged
/// and skipped.
fn read_event(gate: &Outgoing, data: &[u8], aside: &mut Aside<'_>) -> Result<Vec<Message>, Fault> {
    match Message::read_all(data) {
        Ok(messages) => Ok(messages),
        Err(why) if is_of_protocol(data) => Err(Fault::Broken(why)),
        Err(_) => {
            aside.count()?;
            if aside.strays < MAX_STRAYS {
                aside.strays += 1;
                let wrote = String::from_utf8_lossy(data);
                let wrote = Shown::clipped(&wrote, MAX_SHOWN);
                gate.log("stream", &format!("not a message, so it is passed over: `{wrote}`"));
            }
            Ok(Vec::new())
        }
    }
}

/// Handles a notification that arrives before the answer to the request with this id: a changed list of
/// tools, or a progress report.
pub(crate) fn told(method: &str, params: &Value, id: u64, aside: &mut Aside<'_>) {
    match method {
        "notifications/tools/list_changed" => aside.tools_changed = true,
        "notifications/progress" if params.get("progressToken").and_then(unsigned) == Some(id) => {
            let number = |name: &str| params.get(name).and_then(Value::as_f64).map(|n| n as u64);
            let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
            if let Some(progress) = aside.talk.and_then(|talk| talk.progress.as_ref()) {
                let message = Shown::clipped(message, MAX_SHOWN).to_string();
                let done = number("progress").unwrap_or_default();
                progress(Progress { done, total: number("total"), message });
            }
        }
        _ => {}
    }
}
