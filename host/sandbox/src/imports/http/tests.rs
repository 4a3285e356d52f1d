//! Tests of the HTTP gate with servers on this machine and a scripted resolver.

mod coded;
mod held;
mod limits;
mod observed;
mod refused;
mod secrets;
mod tls;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use belljar_kit::peers::{HttpPeer, Reply};
use belljar_policy::{
    Budget, BudgetCaps, BudgetLevel, DecisionSource, DenyCode, HostScope, Limits,
};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::gate::HttpGate;
use super::{ConnectionLimit, HttpCtx, HttpOptions, JarSecrets, NameResolver};
use crate::receipt::record::CallRecord;

/// A reply of these pieces, each in a write of its own.
fn in_pieces(pieces: &[&[u8]]) -> Reply {
    pieces.iter().fold(Reply::default(), |reply, piece| reply.then(piece))
}

/// A resolver that returns one list after the other, and then the last list each time. Counts the questions.
#[derive(Clone, Default)]
struct Names {
    answers: Arc<Mutex<VecDeque<Vec<IpAddr>>>>,
    asked: Arc<AtomicUsize>,
}

impl Names {
    fn of(answers: &[&[&str]]) -> Self {
        let parse = |list: &&[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect();
        let answers = Arc::new(Mutex::new(answers.iter().map(parse).collect()));
        Self { answers, asked: Arc::default() }
    }
}

#[async_trait::async_trait]
impl NameResolver for Names {
    async fn resolve_name(&self, _name: &str) -> std::io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        match answers.len() {
            0 => Err(std::io::ErrorKind::NotFound.into()),
            1 => Ok(answers.front().unwrap().clone()),
            _ => Ok(answers.pop_front().unwrap()),
        }
    }
}

/// The gate of one store.
struct Rig {
    gate: Arc<HttpGate>,
    record: Arc<CallRecord>,
    budget: Budget,
}

#[derive(Debug)]
struct ReceivedReply {
    status: StatusCode,
    headers: HeaderMap,
    /// The body as far as it arrived, or the error.
    body: Result<String, Error>,
    passed: Vec<u8>,
}

impl Rig {
    fn new(rules: &[&str]) -> Self {
        Self::with(rules, &Limits::default(), HttpOptions::default(), JarSecrets::default())
    }

    fn naming(rules: &[&str], names: Names) -> Self {
        let options = HttpOptions::default().with_resolver(names);
        Self::with(rules, &Limits::default(), options, JarSecrets::default())
    }

    fn with(rules: &[&str], limits: &Limits, options: HttpOptions, secrets: JarSecrets) -> Self {
        let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let scope = HostScope::from_rules(DecisionSource::Grants, rules);
        let budget = Budget::new_root(BudgetLevel::Subagent, BudgetCaps::for_agent(limits));
        let record = Arc::new(CallRecord::new(budget.clone(), 10));
        let ctx = {
            let jar = ConnectionLimit::from_limits(&Limits::default());
            HttpCtx::new(scope, secrets, limits, &jar, Arc::clone(&record), options)
        };
        Self { gate: ctx.hooks.gate, record, budget }
    }

    async fn get(&self, url: &str) -> Result<ReceivedReply, Error> {
        self.send(Request::get(url), "", None).await
    }

    async fn send(
        &self,
        request: http::request::Builder,
        body: &str,
        options: Option<RequestOptions>,
    ) -> Result<ReceivedReply, Error> {
        let request = request.body(full(body)).unwrap();
        let (reply, io) = Arc::clone(&self.gate).send_request(request, options).await?;
        let io = tokio::spawn(Box::into_pin(io));
        let (parts, mut body) = reply.into_parts();
        let mut passed = Vec::new();
        let mut end = Ok(());
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => passed.extend(frame.into_data().unwrap_or_default()),
                Err(error) => end = Err(error),
            }
        }
        io.abort();
        let _ = io.await;
        let text = String::from_utf8_lossy(&passed).into_owned();
        let body = end.map(|()| text);
        Ok(ReceivedReply { status: parts.status, headers: parts.headers, body, passed })
    }

    /// The codes of the refusals so far. Clears the list.
    fn denials(&self) -> Vec<DenyCode> {
        self.record.drain_lists().0.denials.into_iter().map(|denial| denial.code).collect()
    }
}

fn full(body: &str) -> WasiBody {
    let body = Bytes::copy_from_slice(body.as_bytes());
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// Asserts the kind of an error, because wasmtime's error type has no equality.
macro_rules! assert_error {
    ($result:expr, $pattern:pat) => {
        match $result {
            Err($pattern) => {}
            other => panic!("{other:?}"),
        }
    };
}
use assert_error;

#[tokio::test]
async fn an_allowed_request_arrives_with_path_and_host_and_is_recorded() {
    let server = HttpPeer::with_reply(Reply::bytes(OK));
    let rule = format!("http://{}", server.address);
    let rig = Rig::new(&[&rule]);
    let request = Request::post(server.url("/a/b?c=d")).header("x-own", "1");
    let reply = rig.send(request, "body", None).await.unwrap();
    assert_eq!((reply.status, reply.body.unwrap()), (StatusCode::OK, "hello".to_owned()));
    let head = server.heads().remove(0);
    assert!(head.starts_with("POST /a/b?c=d HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: {}\r\n", server.address)), "{head}");
    assert!(head.contains("x-own: 1\r\n") && head.contains("content-length: 4\r\n"), "{head}");
    let (lists, bytes, _) = rig.record.drain_lists();
    assert_eq!(lists.hosts.into_iter().collect::<Vec<_>>(), [rule]);
    assert_eq!(bytes.sent, head.len() as u64 + 4);
    assert_eq!(bytes.received, OK.len() as u64);
    assert_eq!(lists.denials, []);
}
