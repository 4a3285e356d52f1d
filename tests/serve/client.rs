//! A client without manners of its own: what a test says is what is sent.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use belljar_received::sse::EventDecoder;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpSocket;

/// No answer of a test takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// No event of a test is this long.
const MAX_EVENT: usize = 64 << 20;

/// A request being written.
pub(crate) struct Call {
    address: SocketAddr,
    request: hyper::http::request::Builder,
    host: bool,
    body: Vec<u8>,
    from: IpAddr,
}

/// The answer that came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// An answer that is still coming.
pub(crate) struct Stream {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    events: EventDecoder,
    /// The received part that no event has ended in.
    piece: Bytes,
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<i64>,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

pub(crate) fn call(address: SocketAddr, method: &str, path: &str) -> Call {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = Request::builder().method(method).uri(path);
    Call { address, request, host: true, body: Vec::new(), from: Ipv4Addr::LOCALHOST.into() }
}

impl Call {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.host &= !name.eq_ignore_ascii_case("host");
        self.request = self.request.header(name, value);
        self
    }

    /// From another address of this machine.
    pub(crate) fn from(self, from: IpAddr) -> Self {
        Self { from, ..self }
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.bytes("application/json", body.to_string().as_bytes())
    }

    pub(crate) fn bytes(mut self, kind: &str, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self.header("content-type", kind)
    }

    pub(crate) async fn send(self) -> Answer {
        let stream = self.open().await;
        let (status, headers) = (stream.status, stream.headers);
        let body = tokio::time::timeout(PATIENCE, stream.body.collect()).await.unwrap();
        Answer { status, headers, body: body.unwrap().to_bytes().to_vec() }
    }

    pub(crate) async fn open(self) -> Stream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(self.from, 0)).unwrap();
        let io = TokioIo::new(socket.connect(self.address).await.unwrap());
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let mut request = self.request;
        if self.host {
            request = request.header("host", self.address.to_string());
        }
        let request = request.body(Full::new(Bytes::from(self.body))).unwrap();
        let sent = tokio::time::timeout(PATIENCE, sender.send_request(request)).await;
        let response = sent.expect("the server did not answer in time").unwrap();
        let (parts, body) = response.into_parts();
        let (events, piece) = (EventDecoder::new(MAX_EVENT), Bytes::new());
        Stream { status: parts.status.as_u16(), headers: parts.headers, body, events, piece }
    }
}

impl Answer {
    /// The data of each event of a stream.
    pub(crate) fn data(&self) -> Vec<String> {
        let (mut events, mut piece) = (EventDecoder::new(MAX_EVENT), &self.body[..]);
        let next = || events.next_event(&mut piece).unwrap();
        let data = std::iter::from_fn(next).filter_map(|event| event.data);
        data.map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    /// Fails the test with the whole answer unless the status is this one.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        self
    }

    /// Fails the test unless it is problem details of this type.
    #[track_caller]
    pub(crate) fn problem(&self, name: &str) -> Value {
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let body = self.json();
        assert_eq!(body["type"], format!("/problems/{name}"), "{body}");
        assert_eq!(body["status"], self.status);
        for field in ["title", "detail"] {
            assert!(body[field].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        }
        body
    }
}

impl Stream {
    /// The next event; `None` = the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            let mut piece = &self.piece[..];
            let event = self.events.next_event(&mut piece).unwrap();
            self.piece = self.piece.slice_ref(piece);
            if let Some(event) = event {
                return Some(Event::from(event));
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let frame = frame.expect("the stream stood still")?.ok()?;
            self.piece = frame.into_data().unwrap_or_default();
        }
    }

    /// Reads what it has, whatever that is, to its end.
    pub(crate) async fn rest(mut self) {
        while self.body.frame().await.is_some_and(|frame| frame.is_ok()) {}
    }

    pub(crate) async fn all(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

impl From<belljar_received::sse::SseEvent> for Event {
    fn from(event: belljar_received::sse::SseEvent) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self {
            id: event.id.map(|id| text(id).parse().unwrap()),
            kind: text(event.name),
            data: serde_json::from_slice(&event.data.unwrap()).unwrap(),
        }
    }
}
