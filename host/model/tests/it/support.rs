//! Models of a server on loopback, and shorthands.

use std::time::Duration;

use belljar_kit_peers::{HttpPeer, Reply};
use belljar_model::{
    CallContext, ChatMessage, ChatModel, ChatRequest, Image, ModelConfig, ModelError,
    ModelProvider, ModelReply, RetryPolicy, StreamEvent, ToolCall, ToolChoice, ToolResult,
    ToolSpec, WireModel,
};
use serde_json::{Value, json};

/// A stream of events that ends when the connection does.
pub(crate) fn stream(events: &[&str]) -> Reply {
    Reply::events(events)
}

/// A response that is not a stream.
pub(crate) fn status(status: u16, headers: &str, body: &str) -> Reply {
    Reply::new(&format!("{status} Status"), headers, body)
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

pub(crate) fn openai(server: &HttpPeer) -> WireModel {
    build(&config(ModelProvider::OpenAi, &server.url("/v1")))
}

pub(crate) fn anthropic(server: &HttpPeer) -> WireModel {
    build(&config(ModelProvider::Anthropic, &server.url("/v1")))
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
