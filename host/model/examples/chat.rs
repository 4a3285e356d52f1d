//! Asks a model one question, offers it a tool, and answers the calls that it makes.
//!
//! ```text
//! cargo run -p belljar-model --example chat -- openai http://127.0.0.1:8080/v1 MODEL "which files are there?"
//! ```
//!
//! The key, if the server needs one, comes from the environment variable `MODEL_KEY`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use belljar_model::{
    CallContext, ChatMessage, ChatRequest, KeySource, ModelConfig, ModelProvider, ModelReply,
    StreamEvent, ToolResult, ToolSpec,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
// Builds the model from the arguments, sends the question, and answers each call with the same list of files,
// at most three times.
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, base_url, name, question] = arguments.as_slice() else {
        return Err("usage: chat openai|anthropic BASE_URL MODEL QUESTION".into());
    };
    let provider = match kind.as_str() {
        "openai" => ModelProvider::OpenAi,
        "anthropic" => ModelProvider::Anthropic,
        other => return Err(format!("no provider `{other}`").into()),
    };
    let mut config = ModelConfig::new(provider, name);
    config.base_url = Some(base_url.parse()?);
    config.max_output_tokens = Some(200);
    let env = |name: &str| std::env::var(name).ok();
    if env("MODEL_KEY").is_some() {
        config.key = KeySource::Env("MODEL_KEY".to_owned());
    }
    let model = config.build_model(&env, &mut Vec::new())?;

    let mut request = ChatRequest {
        system: vec!["You answer questions about a folder.".to_owned()],
        messages: vec![ChatMessage::from_user(question.clone())],
        tools: vec![ToolSpec {
            name: "file_list".to_owned(),
            description: "lists the files of a folder".to_owned(),
            schema: serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        }],
        ..ChatRequest::default()
    };
    for _ in 0..3 {
        let cx = CallContext::new("example");
        let reply = model.chat(&request, &cx, &mut |event| print_event(&event)).await?;
        println!("\n[{:?}, {:?}]", reply.stop, reply.usage);
        if reply.calls.is_empty() {
            break;
        }
        for call in &reply.calls {
            println!("[calls {} with {}]", call.name, call.arguments);
        }
        let results = reply.calls.iter().map(|call| ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            content: "README.md\nsrc/".to_owned(),
            is_error: false,
        });
        let results = results.collect();
        let ModelReply { text, calls, reasoning, .. } = reply;
        request.messages.push(ChatMessage::Assistant { text, calls, reasoning });
        request.messages.push(ChatMessage::Tool { results });
    }
    Ok(())
}

fn print_event(event: &StreamEvent) {
    match event {
        StreamEvent::TextDelta(text) => print!("{text}"),
        other => println!("[{other:?}]"),
    }
}
