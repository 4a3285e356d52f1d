//! Writes a request for chat completions.
//!
//! Messages come last and in their order, so the body of a later turn begins with the bytes of the earlier
//! body.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::wire::form::RequestForm;
use crate::wire::history::{LOST_IMAGE, arguments_text, tool_name};
use crate::wire::{MaxTokensField, RequestSettings};
use crate::{
    ChatMessage, ChatRequest, Effort, Image, Reasoning, ToolCall, ToolChoice, ToolResult, ToolSpec,
};

/// The JSON body of a request.
pub(crate) fn request_body(
    request: &ChatRequest,
    settings: &RequestSettings,
    field: MaxTokensField,
    form: RequestForm,
) -> Result<Vec<u8>, serde_json::Error> {
    let limit = request.max_output_tokens.or(settings.max_output_tokens);
    let (max_tokens, max_completion_tokens) = match field {
        MaxTokensField::MaxTokens => (limit, None),
        MaxTokensField::MaxCompletionTokens => (None, limit),
    };
    serde_json::to_vec(&OpenAiBody {
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
        reasoning_effort: request.effort.or(settings.effort).map(effort_word),
        tools: request.tools.iter().map(wire_tool).collect(),
        tool_choice: choice_field(request),
        extra: settings.extra_fields(request).collect(),
        messages: wire_messages(request, form, &settings.identity),
    })
}

#[derive(Serialize)]
struct OpenAiBody<'a> {
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
    tools: Vec<OpenAiTool<'a>>,
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
struct OpenAiTool<'a> {
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
    /// The content; `null` in a message of the model that only calls tools.
    content: Option<OpenAiContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    /// The reasoning, in the fields in which the answer had it.
    #[serde(flatten)]
    reasoning: Option<&'a Map<String, Value>>,
}

/// A text, or a list of parts if there are images. A text is sent as such, because every server accepts it.
#[derive(Serialize)]
#[serde(untagged)]
enum OpenAiContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<OpenAiPart<'a>>),
    /// The parts as the model sent them, including its reasoning.
    Own(Vec<Value>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OpenAiPart<'a> {
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
    /// The reasoning fields of the call, for example its signature.
    #[serde(flatten)]
    signed: Option<&'a Map<String, Value>>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

/// The value of `reasoning_effort`.
fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        // Not every server knows a level above `high`.
        Effort::High | Effort::Max => "high",
    }
}

/// The value of `tool_choice`; `None` if the request has no tools.
fn choice_field(request: &ChatRequest) -> Option<Value> {
    let choice = request.choice.as_ref().filter(|_| !request.tools.is_empty())?;
    Some(match choice {
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => json!({"type": "function", "function": {"name": name}}),
    })
}

/// A tool as the API expects it.
fn wire_tool(spec: &ToolSpec) -> OpenAiTool<'_> {
    OpenAiTool {
        r#type: "function",
        function: ToolFunction {
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.schema,
        },
    }
}

/// The messages of a request: the system text, then the conversation.
fn wire_messages<'a>(
    request: &'a ChatRequest,
    form: RequestForm,
    model: &str,
) -> Vec<WireMessage<'a>> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if let Some(text) = system_text(&request.system) {
        messages.push(text_message("system", text));
    }
    for entry in &request.messages {
        match entry {
            ChatMessage::User { text, images } if images.is_empty() => {
                messages.push(text_message("user", Cow::Borrowed(text)));
            }
            ChatMessage::User { text, images } => messages.push(WireMessage {
                content: Some(OpenAiContent::Parts(content_parts(text, images))),
                ..text_message("user", Cow::Borrowed(""))
            }),
            ChatMessage::Assistant { text, calls, reasoning } => {
                let own = reasoning.as_ref().filter(|own| own.model == model);
                let carried = form.carried_reasoning(own, calls, model);
                messages.push(assistant_message(text, calls, carried, own));
            }
            ChatMessage::Tool { results } => messages.extend(results.iter().map(result_message)),
        }
    }
    messages
}

/// Joins the system blocks to one text, with an empty line between two.
fn system_text(blocks: &[String]) -> Option<Cow<'_, str>> {
    match blocks {
        [] => None,
        [one] => Some(Cow::Borrowed(one)),
        many => Some(Cow::Owned(many.join("\n\n"))),
    }
}

fn text_message<'a>(role: &'static str, content: Cow<'a, str>) -> WireMessage<'a> {
    let content = Some(OpenAiContent::Text(content));
    WireMessage { role, content, tool_calls: Vec::new(), tool_call_id: None, reasoning: None }
}

/// The parts of a user's message: its images, then its text.
fn content_parts<'a>(text: &'a str, images: &'a [Image]) -> Vec<OpenAiPart<'a>> {
    let image = |image: &Image| match image.to_base64() {
        Some(data) => {
            let url = format!("data:{};base64,{data}", image.media_type());
            OpenAiPart::ImageUrl { image_url: ImageUrl { url } }
        }
        None => OpenAiPart::Text { text: LOST_IMAGE },
    };
    let parts = images.iter().map(image);
    parts.chain((!text.is_empty()).then_some(OpenAiPart::Text { text })).collect()
}

/// A message of the model. `own` is all of its reasoning, `carried` the part that this server accepts.
/// Signatures of calls are always sent.
fn assistant_message<'a>(
    text: &'a str,
    calls: &'a [ToolCall],
    carried: Option<&'a Reasoning>,
    own: Option<&'a Reasoning>,
) -> WireMessage<'a> {
    let only_calls = text.is_empty() && !calls.is_empty();
    let thoughts = carried.map(|carried| carried.blocks.as_slice()).unwrap_or_default();
    let content = match thoughts {
        [] => (!only_calls).then_some(OpenAiContent::Text(Cow::Borrowed(text))),
        thoughts => {
            let parts = thoughts.iter().map(|placed| Value::Object(placed.block.clone()));
            let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
            Some(OpenAiContent::Own(parts.chain(text).collect()))
        }
    };
    let signed = |at: usize| {
        let fields = own?.calls.iter().find(|signed| signed.call == at)?;
        Some(&fields.fields)
    };
    WireMessage {
        role: "assistant",
        content,
        tool_calls: calls.iter().enumerate().map(|(at, one)| wire_call(one, signed(at))).collect(),
        tool_call_id: None,
        reasoning: carried.map(|carried| &carried.fields),
    }
}

/// A tool call of an earlier answer, with its signature.
fn wire_call<'a>(call: &'a ToolCall, signed: Option<&'a Map<String, Value>>) -> WireCall<'a> {
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

/// The message with the result of a tool call.
fn result_message(result: &ToolResult) -> WireMessage<'_> {
    WireMessage {
        role: "tool",
        content: Some(OpenAiContent::Text(Cow::Borrowed(&result.content))),
        tool_calls: Vec::new(),
        tool_call_id: Some(&result.id),
        reasoning: None,
    }
}
