//! Belljar against llama.cpp's own server, with a tiny model of random weights.
//!
//! Run by `cargo xtask test llama`, which starts the server and names it in
//! `BELLJAR_LLAMA_URL`. What such a model says is noise, but the wire is real: streaming,
//! grammar-forced tool calls, cached tokens.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::{Command, Output};

use belljar_model::{
    CallContext, ChatMessage, ChatModel, ChatRequest, ModelConfig, ModelProvider, ModelReply,
    Sampling, StreamEvent, ToolResult, ToolSpec,
};
use serde_json::{Value, json};

fn server() -> String {
    std::env::var("BELLJAR_LLAMA_URL")
        .expect("BELLJAR_LLAMA_URL names the server; `cargo xtask test llama` sets it")
}

fn model(extra: Value) -> std::sync::Arc<dyn ChatModel> {
    let mut config = ModelConfig::new(ModelProvider::OpenAi, "tiny");
    config.base_url = Some(server().parse().unwrap());
    config.max_output_tokens = Some(1000);
    config.temperature = Some(0.0);
    config.extra_body = extra.as_object().unwrap().clone();
    config.build_model(&|_| None, &mut Vec::new()).unwrap()
}

async fn chat(model: &dyn ChatModel, request: &ChatRequest) -> (ModelReply, Vec<StreamEvent>) {
    let mut events = Vec::new();
    let context = CallContext::new("peer");
    let reply = model.chat(request, &context, &mut |event| events.push(event)).await.unwrap();
    (reply, events)
}

fn request(text: &str) -> ChatRequest {
    ChatRequest {
        system: vec!["You are a test.".to_owned(), "A second block.".to_owned()],
        messages: vec![ChatMessage::from_user(text)],
        tools: vec![ToolSpec {
            name: "file_read".to_owned(),
            description: "Reads a file.".to_owned(),
            schema: json!({
                "type": "object",
                "properties": { "path": { "type": "string", "enum": ["README.md"] } },
                "required": ["path"],
                "additionalProperties": false,
            }),
        }],
        choice: None,
        max_output_tokens: None,
        temperature: None,
        effort: None,
        sampling: Sampling::default(),
        foreign: false,
    }
}

#[tokio::test]
async fn a_forced_tool_call_arrives_whole_and_the_next_turn_hits_the_servers_cache() {
    let model = model(json!({ "tool_choice": "required" }));
    let mut request = request("Read the file README.md and say what it is about.");
    let (reply, events) = chat(&*model, &request).await;
    assert!(matches!(events.first(), Some(StreamEvent::Started)), "{events:?}");
    let call = reply.calls.first().expect("the grammar forces a call").clone();
    assert_eq!(call.name, "file_read");
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
    assert_eq!(arguments["path"], "README.md");
    assert!(reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0);

    let prompt = reply.usage.input_tokens;
    request.messages.push(ChatMessage::Assistant {
        text: reply.text,
        calls: reply.calls,
        reasoning: reply.reasoning,
    });
    let result = ToolResult {
        id: call.id,
        name: call.name,
        content: "# belljar".to_owned(),
        is_error: false,
    };
    request.messages.push(ChatMessage::Tool { results: vec![result] });
    let (second, _) = chat(&*model, &request).await;
    // The server itself says how much of the prompt it had seen before: the prefix is stable.
    assert!(
        second.usage.cached_tokens * 10 >= prompt * 8,
        "{} of {prompt} tokens were cached",
        second.usage.cached_tokens
    );
}

#[tokio::test]
async fn a_fork_finds_its_parents_prompt_in_the_servers_cache() {
    let model = model(json!({ "tool_choice": "required" }));
    let mut parent = request("Have the file README.md looked at from two sides.");
    let (reply, _) = chat(&*model, &parent).await;
    let prompt = reply.usage.input_tokens;
    let pending = ChatMessage::Assistant {
        text: reply.text,
        calls: reply.calls.clone(),
        reasoning: reply.reasoning,
    };
    parent.messages.push(pending);
    // As the session starts a fork: the open calls answered alike, then the task.
    let placeholder = |call: &belljar_model::ToolCall| ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        content: belljar_agent::frame::FORK_PLACEHOLDER.to_owned(),
        is_error: false,
    };
    let results = reply.calls.iter().map(placeholder).collect();
    parent.messages.push(ChatMessage::Tool { results });
    let mut sizes = Vec::new();
    for task in ["Look at its first line.", "Look at its last line."] {
        let mut fork = parent.clone();
        fork.messages.push(ChatMessage::from_user(task));
        let (said, _) = chat(&*model, &fork).await;
        let cached = said.usage.cached_tokens;
        assert!(cached * 10 >= prompt * 8, "{cached} of {prompt} tokens were cached");
        sizes.push(cached);
    }
    assert!(sizes[1] >= sizes[0], "the second fork shares its sibling's prefix too: {sizes:?}");
}

#[test]
fn a_run_through_the_binary_ends_with_an_outcome() {
    let home = tempfile::tempdir().unwrap();
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("README.md"), "# A tiny workspace\n").unwrap();
    let settings = format!(
        "[models.tiny]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"tiny\"\n\
         max_output_tokens = 120\n[roles]\nmain = \"tiny\"\n",
        server()
    );
    std::fs::write(home.path().join("belljar.toml"), settings).unwrap();
    // One byte is one token for this model: the stock agents' tools would fill its context.
    let agent = "---\nname: tiny\ndescription: Says anything.\ntools: [file_read]\n---\nSay it.\n";
    std::fs::create_dir(home.path().join("agents")).unwrap();
    std::fs::write(home.path().join("agents/tiny.md"), agent).unwrap();
    let arguments = ["run", "--agent", "tiny", "--max-steps", "3", "--json", "Say anything."];
    let output = belljar(home.path(), workspace.path(), &arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    // Such a model may well end at once, which is an outcome like any other; that the server
    // read the prompt shows that the turn took place.
    let status = report["status"].as_str();
    assert!(matches!(status, Some("completed" | "partial" | "failed")), "{report:#}");
    assert!(report["usage"]["input_tokens"].as_u64() > Some(0), "{report:#}");
}

fn belljar(home: &Path, workspace: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_belljar"))
        .args(arguments)
        .env("BELLJAR_HOME", home)
        .current_dir(workspace)
        .output()
        .unwrap()
}
