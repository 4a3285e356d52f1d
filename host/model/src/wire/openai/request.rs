//! A request as a chat-completions body.
//!
//! Messages come last and are not sorted, so the body of a later turn begins with the bytes of the earlier
//! body.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::wire::form::Form;
use crate::wire::history::{LOST_IMAGE, arguments_text, tool_name};
use crate::wire::{MaxTokensField, Settings};
use crate::{
    ChatRequest, Effort, Image, Message, Reasoning, ToolCall, ToolChoice, ToolResult, ToolSpec,
};

/// The body of one request.
pub(crate) fn body(
    request: &ChatRequest,
    settings: &Settings,
    field: MaxTokensField,
    form: Form,
) -> Result<Vec<u8>, serde_json::Error> {
    let limit = request.max_output_tokens.or(settings.max_output_tokens);
    let (max_tokens, max_completion_tokens) = match field {
        MaxTokensField::MaxTokens => (limit, None),
        MaxTokensField::MaxCompletionTokens => (None, limit),
    };
    serde_json::to_vec(&Body {
        model: &settings.model,
        stream: form.stream,
        stream_options: (form.stream && form.usage)
            .then_some(StreamOptions { include_usage: true }),
        max_tokens,
        max_completion_tokens,
        temperature: request.temperature.or(settings.temperature),
        top_p: request.sampling.top_p,
        presence_penalty: request.sampling.presence_penalty,
        frequency_penalty: request.sampling.frequency_penalty,
        seed: request.sampling.seed,
        stop: if form.stop { &request.sampling.stop } else { &[] },
        reasoning_effort: request.effort.or(settings.effort).map(effort),
        tools: request.tools.iter().map(tool).collect(),
        tool_choice: choice(request),
        extra: settings.extra(request).collect(),
        messages: messages(request, form, &settings.identity),
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(flatten)]
    extra: BTreeMap<&'a str, &'a serde_json::Value>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a serde_json::Value,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    /// `null` in an assistant message that only calls tools.
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    /// The reasoning, in the fields of the answer.
    #[serde(flatten)]
    reasoning: Option<&'a Map<String, Value>>,
}

/// A text, or parts if there are images. Not parts alone, because every server accepts a text.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
    /// The model's own parts, including its thoughts.
    Own(Vec<Value>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
    /// The signature.
    #[serde(flatten)]
    signed: Option<&'a Map<String, Value>>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

fn effort(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        // Nothing above `high` is understood everywhere.
        Effort::High | Effort::Max => "high",
    }
}

/// The choice of this request; `None` without tools.
fn choice(request: &ChatRequest) -> Option<Value> {
    let choice = request.choice.as_ref().filter(|_| !request.tools.is_empty())?;
    Some(match choice {
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => json!({"type": "function", "function": {"name": name}}),
    })
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    Tool {
        r#type: "function",
        function: ToolFunction {
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.schema,
        },
    }
}

fn messages<'a>(request: &'a ChatRequest, form: Form, model: &str) -> Vec<WireMessage<'a>> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if let Some(text) = system(&request.system) {
        messages.push(message("system", text));
    }
    for entry in &request.messages {
        match entry {
            Message::User { text, images } if images.is_empty() => {
                messages.push(message("user", Cow::Borrowed(text)));
            }
            Message::User { text, images } => messages.push(WireMessage {
                content: Some(Content::Parts(parts(text, images))),
                ..message("user", Cow::Borrowed(""))
            }),
            Message::Assistant { text, calls, reasoning } => {
                let own = reasoning.as_ref().filter(|own| own.model == model);
                let carried = form.carried(own, calls, model);
                messages.push(assistant(text, calls, carried, own));
            }
            Message::Tool { results } => messages.extend(results.iter().map(result)),
        }
    }
    messages
}

fn system(blocks: &[String]) -> Option<Cow<'_, str>> {
    match blocks {
        [] => None,
        [one] => Some(Cow::Borrowed(one)),
        many => Some(Cow::Owned(many.join("\n\n"))),
    }
}

fn message<'a>(role: &'static str, content: Cow<'a, str>) -> WireMessage<'a> {
    let content = Some(Content::Text(content));
    WireMessage { role, content, tool_calls: Vec::new(), tool_call_id: None, reasoning: None }
}

fn parts<'a>(text: &'a str, images: &'a [Image]) -> Vec<Part<'a>> {
    let image = |image: &Image| match image.base64() {
        Some(data) => {
            let url = format!("data:{};base64,{data}", image.media_type());
            Part::ImageUrl { image_url: ImageUrl { url } }
        }
        None => Part::Text { text: LOST_IMAGE },
    };
    let parts = images.iter().map(image);
    parts.chain((!text.is_empty()).then_some(Part::Text { text })).collect()
}

/// A message of the model. `own` = all of its reasoning; `carried` = the part that this server accepts.
/// Signatures of calls are always sent.
fn assistant<'a>(
    text: &'a str,
    calls: &'a [ToolCall],
    carried: Option<&'a Reasoning>,
    own: Option<&'a Reasoning>,
) -> WireMessage<'a> {
    let only_calls = text.is_empty() && !calls.is_empty();
    let thoughts = carried.map(|carried| carried.blocks.as_slice()).unwrap_or_default();
    let content = match thoughts {
        [] => (!only_calls).then_some(Content::Text(Cow::Borrowed(text))),
        thoughts => {
            let parts = thoughts.iter().map(|placed| Value::Object(placed.block.clone()));
            let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
            Some(Content::Own(parts.chain(text).collect()))
        }
    };
    let signed = |at: usize| {
        let fields = own?.calls.iter().find(|signed| signed.call == at)?;
        Some(&fields.fields)
    };
    WireMessage {
        role: "assistant",
        content,
        tool_calls: calls.iter().enumerate().map(|(at, one)| call(one, signed(at))).collect(),
        tool_call_id: None,
        reasoning: carried.map(|carried| &carried.fields),
    }
}

fn call<'a>(call: &'a ToolCall, signed: Option<&'a Map<String, Value>>) -> WireCall<'a> {
    WireCall {
        id: &call.id,
        r#type: "function",
        function: WireFunction {
            name: tool_name(&call.name),
            arguments: arguments_text(&call.arguments),
        },
        signed,
    }
}

fn result(result: &ToolResult) -> WireMessage<'_> {
    WireMessage {
        role: "tool",
        content: Some(Content::Text(Cow::Borrowed(&result.content))),
        tool_calls: Vec::new(),
        tool_call_id: Some(&result.id),
        reasoning: None,
    }
}
