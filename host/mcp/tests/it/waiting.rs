//! Calls that wait for a person, and calls that wait for those. The clock is the test's own, and stands still
//! but where the test moves it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belljar_mcp::{
    AcceptedTools, CallSpec, Connection, ListedTool, QuestionAnswer, SampleRequest, SampledText,
    SamplingGrant, Server, ServerGrants, ServerQuestion, ServerResponder,
};
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Limits, ToolName};
use belljar_sandbox::{
    CallResult, CancellationToken, HttpOptions, OutputPart, Sandbox, SandboxConfig, SecretStore,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::Here;

/// A person who answers when the test says so.
#[derive(Default)]
struct Person {
    asked: Notify,
    answers: Notify,
}

#[async_trait]
impl ServerResponder for Person {
    async fn ask_person(&self, _: &ServerQuestion<'_>) -> QuestionAnswer {
        self.asked.notify_one();
        self.answers.notified().await;
        QuestionAnswer::Words("Yes".to_owned())
    }

    async fn sample_text(
        &self,
        _: &str,
        _: &SamplingGrant,
        _: &SampleRequest,
    ) -> Result<SampledText, String> {
        Err("no model".to_owned())
    }

    fn is_muted(&self, _: &str) -> bool {
        false
    }

    async fn mute_server(&self, _: &str) {}

    fn is_given_up(&self, _: &str) -> bool {
        false
    }

    fn record_attendance(&self, _: &str, _: bool) {}
}

/// A request: its verb, and its body.
async fn read(stream: &mut TcpStream) -> (String, Value) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).unwrap_or("0");
            let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
            if body.len() >= length {
                let verb = head.split(' ').next().unwrap().to_owned();
                return (verb, serde_json::from_str(body).unwrap_or_default());
            }
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "{text}");
    }
}

async fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

async fn status(stream: &mut TcpStream, status: &str) {
    send(stream, &format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"))
        .await;
}

/// A server whose call `first` asks the person for a yes; gives its address.
async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let answered = Arc::<Notify>::default();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&answered)));
        }
    });
    url
}

async fn serve(mut stream: TcpStream, answered: Arc<Notify>) {
    let (verb, body) = read(&mut stream).await;
    let said = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let event = |message: Value| format!("data: {message}\n\n");
    let result = match body["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
        "tools/list" => json!({"tools": [listed()]}),
        "tools/call" if body["params"]["arguments"]["text"] == "first" => {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            send(&mut stream, head).await;
            let schema = json!({"type": "object", "properties": {}});
            let params = json!({"message": "sure?", "requestedSchema": schema});
            let ask = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params});
            send(&mut stream, &event(ask)).await;
            answered.notified().await;
            let result = said("first");
            let answer = json!({"jsonrpc": "2.0", "id": body["id"], "result": result});
            return send(&mut stream, &event(answer)).await;
        }
        "tools/call" => said("second"),
        _ if body["id"] == "q" => {
            status(&mut stream, "202 Accepted").await;
            return answered.notify_one();
        }
        _ if verb == "get" => return status(&mut stream, "405 Method Not Allowed").await,
        _ => return status(&mut stream, "202 Accepted").await,
    };
    let text = json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string();
    let length = text.len();
    let head = format!("content-type: application/json\r\ncontent-length: {length}\r\n");
    send(&mut stream, &format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{head}\r\n{text}")).await;
}

fn listed() -> Value {
    json!({"name": "echo", "description": "d", "inputSchema": {"type": "object"}})
}

fn told(result: CallResult) -> String {
    match result.outcome.unwrap().parts.last() {
        Some(OutputPart::Text(text)) => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// Seconds of a call.
const LIMIT: u64 = 30;

#[tokio::test(start_paused = true)]
async fn a_person_who_takes_their_time_costs_neither_the_call_nor_those_behind_it() {
    // While something blocks, the clock does not move by itself.
    let (still, held) = std::sync::mpsc::channel::<()>();
    #[expect(clippy::disallowed_methods, reason = "a test that waits for a channel")]
    let held = tokio::task::spawn_blocking(move || held.recv());
    let url = server().await;
    let rule = url.trim_end_matches("/mcp").parse().unwrap();
    let tool: ListedTool = serde_json::from_value(
        json!({"name": "echo", "description": "d", "schema": {"type": "object"}}),
    )
    .unwrap();
    let server = Server::new("s", &url, rule, BTreeSet::new(), None).unwrap();
    let server = server
        .with_grants(ServerGrants { elicitation: true, ..ServerGrants::default() })
        .with_accepted(&url, AcceptedTools::from_tools(&url, vec![tool]));
    let http = HttpOptions::default().with_resolver(Here);
    let sandbox = Sandbox::new(SandboxConfig { http, ..SandboxConfig::default() }).unwrap();
    let (secrets, cancel) = (SecretStore::default(), CancellationToken::new());
    let limits = Limits { call_timeout_seconds: LIMIT, ..Limits::default() };
    let budget = Budget::new_root(BudgetLevel::Session, BudgetCaps::unlimited());
    let person = Person::default();
    let spec = || {
        let alone = CallSpec::from_parts(&sandbox, &secrets, &budget, &limits, &cancel);
        CallSpec { answers: Some(&person), ..alone }
    };
    let connection = Connection::new(Arc::new(server));
    let name = ToolName::new("mcp__s__echo").unwrap();
    let calls = |text: &'static str| {
        let arguments = json!({ "text": text }).to_string();
        let (connection, name, spec) = (&connection, &name, spec());
        async move { connection.call_tool(name, &arguments, spec).await }
    };
    let thinks = async {
        person.asked.notified().await;
        tokio::time::advance(Duration::from_secs(LIMIT * 10)).await;
        person.answers.notify_one();
    };
    let (first, second, ()) = tokio::join!(calls("first"), calls("second"), thinks);
    assert_eq!(told(first), "first");
    assert_eq!(told(second), "second");
    drop(still);
    assert!(held.await.unwrap().is_err());
}
