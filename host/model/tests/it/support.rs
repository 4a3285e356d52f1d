//! A test server on loopback that answers with given bytes, and helpers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use belljar_model::{
    CallContext, ChatMessage, ChatModel, ChatRequest, Image, ModelConfig, ModelError,
    ModelProvider, ModelReply, RetryPolicy, StreamEvent, ToolCall, ToolChoice, ToolResult,
    ToolSpec, WireModel,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// One part of a response.
pub(crate) enum Step {
    /// Bytes, written at once.
    Send(Vec<u8>),
    /// Bytes, written one by one.
    Trickle(Vec<u8>),
    /// The same bytes again and again until the client closes the connection.
    Endless(Vec<u8>),
    /// Nothing, until the client closes the connection.
    Hold,
}

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A server that answers one connection after another, each with the next response, and then closes it.
pub(crate) struct Server {
    pub(crate) base: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    left: Arc<Semaphore>,
}

impl Server {
    /// Starts a server with these responses, and records each request.
    pub(crate) async fn new(responses: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let left = Arc::new(Semaphore::new(0));
        let (log, gone) = (Arc::clone(&seen), Arc::clone(&left));
        tokio::spawn(async move {
            for response in responses {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read_request(&mut socket).await;
                log.lock().unwrap().push(request);
                if answer(&mut socket, response).await.is_none() {
                    gone.add_permits(1);
                }
            }
        });
        Self { base, seen, left }
    }

    /// The requests received so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until a client has closed a connection before its response ended.
    pub(crate) async fn client_left(&self) {
        let wait = self.left.acquire();
        tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap().unwrap().forget();
    }
}

async fn read_request(socket: &mut TcpStream) -> Seen {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = socket.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the request ended early");
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let seen = Seen { head: head.to_owned(), body: body.to_owned() };
        let length: usize = seen.header("content-length").unwrap().parse().unwrap();
        if seen.body.len() >= length {
            return seen;
        }
    }
}

/// Sends a response; `None` if the client closed the connection before its end.
async fn answer(socket: &mut TcpStream, response: Vec<Step>) -> Option<()> {
    for step in response {
        match step {
            Step::Send(bytes) => socket.write_all(&bytes).await.ok()?,
            Step::Trickle(bytes) => {
                socket.set_nodelay(true).unwrap();
                for byte in bytes {
                    socket.write_all(&[byte]).await.ok()?;
                    tokio::task::yield_now().await;
                }
            }
            Step::Endless(bytes) => loop {
                socket.write_all(&bytes).await.ok()?;
            },
            Step::Hold => {
                let mut byte = [0];
                while !matches!(socket.read(&mut byte).await, Ok(0) | Err(_)) {}
                return None;
            }
        }
    }
    socket.shutdown().await.ok()
}

const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A response that is a stream of events and ends with the connection.
pub(crate) fn stream(events: &[&str]) -> Vec<Step> {
    vec![Step::Send(stream_text(events).into_bytes())]
}

/// The bytes of [`stream`].
pub(crate) fn stream_text(events: &[&str]) -> String {
    let mut text = STREAM_HEAD.to_owned();
    for event in events {
        text.push_str(&format!("data: {event}\n\n"));
    }
    text
}

/// A response that is not a stream.
pub(crate) fn status(status: u16, headers: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Status\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n"
    );
    vec![Step::Send(format!("{head}{body}").into_bytes())]
}

pub(crate) fn config(provider: ModelProvider, base: &str) -> ModelConfig {
    let mut config = ModelConfig::new(provider, "m-1");
    config.base_url = Some(base.parse().unwrap());
    config
}

/// A model with at most three attempts and without waits between them.
pub(crate) fn build(config: &ModelConfig) -> WireModel {
    build_with(config, "sk-hunter2")
}

/// Like [`build`], with another key in the environment.
pub(crate) fn build_with(config: &ModelConfig, key: &str) -> WireModel {
    let env = |name: &str| (name == "KEY").then(|| key.to_owned());
    let retries = RetryPolicy { attempts: 3, min_delay: Duration::ZERO, max_delay: Duration::ZERO };
    config.build_wire(&env, &mut Vec::new()).unwrap().with_retries(retries)
}

pub(crate) fn openai(server: &Server) -> WireModel {
    build(&config(ModelProvider::OpenAi, &server.base))
}

pub(crate) fn anthropic(server: &Server) -> WireModel {
    build(&config(ModelProvider::Anthropic, &server.base))
}

/// Calls a model, and collects the events of its answer.
pub(crate) async fn chat(
    model: &dyn ChatModel,
    request: &ChatRequest,
    cx: &CallContext<'_>,
) -> (Result<ModelReply, ModelError>, Vec<StreamEvent>) {
    let mut events = Vec::new();
    let result = model.chat(request, cx, &mut |event| events.push(event)).await;
    (result, events)
}

/// Calls a model as agent `a` and expects an answer.
pub(crate) async fn reply(model: &dyn ChatModel, request: &ChatRequest) -> ModelReply {
    chat(model, request, &CallContext::new("a")).await.0.unwrap()
}

/// Calls a model as agent `a` and expects an error.
pub(crate) async fn error(model: &dyn ChatModel, request: &ChatRequest) -> ModelError {
    chat(model, request, &CallContext::new("a")).await.0.unwrap_err()
}

pub(crate) fn user(text: &str) -> ChatMessage {
    ChatMessage::from_user(text)
}

pub(crate) fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("does {name}"),
        schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    }
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

pub(crate) fn result(id: &str, name: &str, content: &str, is_error: bool) -> ToolResult {
    ToolResult { id: id.to_owned(), name: name.to_owned(), content: content.to_owned(), is_error }
}

/// A value as YAML: JSON in which every character that YAML does not allow unescaped is escaped.
pub(crate) fn yaml(value: &Value) -> String {
    let escape = |c: char| match c {
        ' '..='~' => c.to_string(),
        _ => format!("\\U{:08x}", u32::from(c)),
    };
    value.to_string().chars().map(escape).collect()
}

/// A first turn: two system blocks, two tools, one question.
pub(crate) fn first_turn() -> ChatRequest {
    ChatRequest {
        system: vec!["You read.".to_owned(), "Be brief.".to_owned()],
        messages: vec![user("what is in a and b?")],
        tools: vec![tool("file_read"), tool("file_list")],
        ..ChatRequest::default()
    }
}

/// The turn after [`first_turn`], in which one successful and one failed call were answered.
pub(crate) fn second_turn() -> ChatRequest {
    let mut request = first_turn();
    request.messages.push(ChatMessage::Assistant {
        text: String::new(),
        calls: vec![
            call("call-1", "file_read", r#"{"path": "a"}"#),
            call("call.2", "file read", r#"{"path": "#),
        ],
        reasoning: None,
    });
    request.messages.push(ChatMessage::Tool {
        results: vec![
            result("call-1", "file_read", "A", false),
            result("call.2", "file read", "no such tool", true),
        ],
    });
    request
}

/// The turn after [`second_turn`].
pub(crate) fn third_turn() -> ChatRequest {
    let mut request = second_turn();
    request.messages.push(ChatMessage::from_assistant("One more."));
    request.messages.push(user("go on"));
    request
}

/// An image of one pixel in base64.
pub(crate) const GIF: &str = "R0lGODlhAQABAAAAACw=";

/// The first turn with an image, and with a choice of the tool to call.
pub(crate) fn seeing(choice: ToolChoice) -> ChatRequest {
    let images = vec![Image::from_base64(GIF, Some("image/gif")).unwrap()];
    let mut request = first_turn();
    request.messages = vec![ChatMessage::User { text: "what is it?".to_owned(), images }];
    request.choice = Some(choice);
    request
}
