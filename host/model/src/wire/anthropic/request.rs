//! Writes a request for Anthropic's messages API.
//!
//! The order is that of Anthropic's prompt cache: tools, system, messages. Messages come last and in their
//! order. So the request of a later turn begins with the same bytes as the earlier request, except for the
//! two cache markers at the end of the conversation.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::limits::ANTHROPIC_MAX_OUTPUT_TOKENS;
use crate::wire::RequestSettings;
use crate::wire::form::RequestForm;
use crate::wire::history::{LOST_IMAGE, arguments_object, sanitize_identifier, tool_name};
use crate::{ChatMessage, ChatRequest, Effort, Image, Reasoning, ToolCall, ToolChoice};

/// The number of messages with a cache marker: the last one, for the next turn, and the one before, whose
/// cache this turn uses. Anthropic allows four markers, and the tools and the system prompt have one each.
const MARKED_MESSAGES: usize = 2;

/// The most characters of a call's id that are sent; Anthropic states no limit.
const MAX_WIRE_ID: usize = 128;

/// The JSON body of a request.
pub(crate) fn request_body(
    request: &ChatRequest,
    settings: &RequestSettings,
    form: RequestForm,
) -> Result<Vec<u8>, serde_json::Error> {
    let limit = request.max_output_tokens.or(settings.max_output_tokens);
    let mut messages = wire_messages(request, form, &settings.identity);
    mark_cached(&mut messages);
    let (tools, tool_choice) = advertised_tools(request);
    serde_json::to_vec(&AnthropicBody {
        model: &settings.model,
        max_tokens: limit.unwrap_or(ANTHROPIC_MAX_OUTPUT_TOKENS),
        stream: form.stream,
        temperature: request.temperature.or(settings.temperature),
        top_p: request.sampling.top_p,
        stop_sequences: stop_sequences(request, form),
        output_config: request.effort.or(settings.effort).map(|effort| OutputConfig { effort }),
        tools,
        tool_choice,
        system: system_blocks(&request.system),
        extra: settings.extra_fields(request).collect(),
        messages,
    })
}

/// The stop words, without blank ones, because Anthropic refuses these.
fn stop_sequences(request: &ChatRequest, form: RequestForm) -> Vec<&str> {
    let words = request.sampling.stop.iter().map(String::as_str);
    words.filter(|word| form.stop && !word.trim().is_empty()).collect()
}

#[derive(Serialize)]
struct AnthropicBody<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<AnthropicTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<AnthropicChoice<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<AnthropicBlock<'a>>,
    #[serde(flatten)]
    extra: BTreeMap<&'a str, &'a Value>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: Effort,
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct AnthropicChoice<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<AnthropicBlock<'a>>,
}

#[derive(Serialize)]
struct AnthropicBlock<'a> {
    #[serde(flatten)]
    kind: BlockKind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockKind<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: ImageSource,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A block of reasoning, unchanged.
    #[serde(untagged)]
    Thought(&'a Map<String, Value>),
}

#[derive(Serialize)]
struct ImageSource {
    r#type: &'static str,
    media_type: &'static str,
    data: String,
}

#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    r#type: &'static str,
}

const EPHEMERAL: CacheControl = CacheControl { r#type: "ephemeral" };

impl<'a> AnthropicBlock<'a> {
    fn new(kind: BlockKind<'a>) -> Self {
        Self { kind, cache_control: None }
    }

    /// A text block; `None` if the text is blank, because Anthropic refuses blank blocks.
    fn from_text(text: &'a str) -> Option<Self> {
        (!text.trim().is_empty()).then(|| Self::new(BlockKind::Text { text }))
    }

    /// The block of an image; a text if its bytes are no longer stored.
    fn from_image(image: &Image) -> Self {
        Self::new(match image.to_base64() {
            Some(data) => {
                let media_type = image.media_type();
                BlockKind::Image { source: ImageSource { r#type: "base64", media_type, data } }
            }
            None => BlockKind::Text { text: LOST_IMAGE },
        })
    }
}

/// The tools to advertise, and the choice among them. If the request has no tools but the conversation has
/// calls, the API still requires the tools of these calls: each is declared without a schema, and the choice
/// is `none`.
fn advertised_tools(
    request: &ChatRequest,
) -> (Vec<AnthropicTool<'_>>, Option<AnthropicChoice<'_>>) {
    let tool = |name, description, input_schema| AnthropicTool {
        name,
        description,
        input_schema,
        cache_control: None,
    };
    let advertised = request.tools.iter().map(|spec| {
        tool(
            Cow::Borrowed(spec.name.as_str()),
            spec.description.as_str(),
            Cow::Borrowed(&spec.schema),
        )
    });
    let mut tools: Vec<AnthropicTool<'_>> = advertised.collect();
    let mut choice = request.choice.as_ref().map(|choice| match choice {
        ToolChoice::Required => AnthropicChoice { r#type: "any", name: None },
        ToolChoice::Named(name) => AnthropicChoice { r#type: "tool", name: Some(name) },
    });
    if tools.is_empty() {
        let mut named = HashSet::new();
        for message in &request.messages {
            let ChatMessage::Assistant { calls, .. } = message else { continue };
            for call in calls {
                let name = tool_name(&call.name);
                if named.insert(name.clone()) {
                    tools.push(tool(name, "", Cow::Owned(json!({"type": "object"}))));
                }
            }
        }
        choice = (!tools.is_empty()).then_some(AnthropicChoice { r#type: "none", name: None });
    }
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(EPHEMERAL);
    }
    (tools, choice)
}

/// The system prompt in blocks; the last one has a cache marker.
fn system_blocks(blocks: &[String]) -> Vec<AnthropicBlock<'_>> {
    let mut blocks: Vec<AnthropicBlock<'_>> =
        blocks.iter().filter_map(|text| AnthropicBlock::from_text(text)).collect();
    if let Some(last) = blocks.last_mut() {
        last.cache_control = Some(EPHEMERAL);
    }
    blocks
}

/// The conversation with alternating roles: consecutive messages of one role are joined.
fn wire_messages<'a>(
    request: &'a ChatRequest,
    form: RequestForm,
    model: &str,
) -> Vec<WireMessage<'a>> {
    let mut messages: Vec<WireMessage<'a>> = Vec::with_capacity(request.messages.len());
    for entry in &request.messages {
        let (role, content) = message_blocks(entry, form, model);
        if content.is_empty() {
            continue;
        }
        match messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            Some(_) | None => messages.push(WireMessage { role, content }),
        }
    }
    messages
}

/// The role and the blocks of one message.
fn message_blocks<'a>(
    message: &'a ChatMessage,
    form: RequestForm,
    model: &str,
) -> (&'static str, Vec<AnthropicBlock<'a>>) {
    match message {
        ChatMessage::User { text, images } => (
            "user",
            images
                .iter()
                .map(AnthropicBlock::from_image)
                .chain(AnthropicBlock::from_text(text))
                .collect(),
        ),
        ChatMessage::Assistant { text, calls, reasoning } => {
            let carried = form.carried_reasoning(reasoning.as_ref(), calls, model);
            ("assistant", answer_blocks(text, calls, carried))
        }
        ChatMessage::Tool { results } => {
            let results = results.iter().map(|result| {
                AnthropicBlock::new(BlockKind::ToolResult {
                    tool_use_id: sanitize_identifier(&result.id, MAX_WIRE_ID),
                    content: &result.content,
                    is_error: result.is_error,
                })
            });
            ("user", results.collect())
        }
    }
}

/// The blocks of an answer in the model's order, because the API refuses reasoning at another position.
fn answer_blocks<'a>(
    text: &'a str,
    calls: &'a [ToolCall],
    reasoning: Option<&'a Reasoning>,
) -> Vec<AnthropicBlock<'a>> {
    let call = |call: &'a ToolCall| {
        AnthropicBlock::new(BlockKind::ToolUse {
            id: sanitize_identifier(&call.id, MAX_WIRE_ID),
            name: tool_name(&call.name),
            input: arguments_object(&call.arguments),
        })
    };
    let (mut blocks, mut said, mut called) = (Vec::new(), 0, 0);
    for placed in reasoning.map(|own| own.blocks.as_slice()).unwrap_or_default() {
        // If the text was cut after it was stored, reasoning beyond its end follows the text.
        let until = if text.is_char_boundary(placed.text) { placed.text } else { text.len() };
        blocks.extend(text.get(said..until).and_then(AnthropicBlock::from_text));
        blocks.extend(calls.get(called..placed.calls).unwrap_or_default().iter().map(call));
        (said, called) = (said.max(until), called.max(placed.calls));
        blocks.push(AnthropicBlock::new(BlockKind::Thought(&placed.block)));
    }
    blocks.extend(text.get(said..).and_then(AnthropicBlock::from_text));
    blocks.extend(calls.get(called..).unwrap_or_default().iter().map(call));
    blocks
}

/// Sets the cache markers on the last [`MARKED_MESSAGES`] messages of the user.
fn mark_cached(messages: &mut [WireMessage<'_>]) {
    let users = messages.iter_mut().rev().filter(|message| message.role == "user");
    for message in users.take(MARKED_MESSAGES) {
        if let Some(block) = message.content.last_mut() {
            block.cache_control = Some(EPHEMERAL);
        }
    }
}
