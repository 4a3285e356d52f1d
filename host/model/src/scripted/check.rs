//! Compares a request with the expectations of a transcript's turn.

use std::fmt;
use std::path::PathBuf;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::{list_names, quote_text};
use crate::{ChatMessage, ChatRequest, ToolResult};

/// The error for a request that differs from the transcript's expectations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "transcript `{}` does not match: agent `{}`, spawn {spawn}, turn {turn}: expected {expected}; got {got}",
    origin.display(), quote_text(agent)
)]
pub struct ScriptMismatch {
    /// The transcript's file.
    pub origin: PathBuf,
    /// The name of the calling agent.
    pub agent: String,
    /// How many subagents with this name the run had started before.
    pub spawn: u32,
    /// The number of the turn, from 1.
    pub turn: usize,
    /// What the transcript expects of the request; escaped.
    pub expected: String,
    /// What the request contains instead; escaped and cut.
    pub got: String,
}

/// A turn's expectations of the request. Absent fields are not checked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestExpectation {
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub(crate) system_contains: Texts,
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub(crate) last_user_contains: Texts,
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub(crate) last_message_contains: Texts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_tools: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) images: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) results: Option<Vec<ExpectResult>>,
}

/// A turn's expectations of one tool result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectResult {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub(crate) contains: Texts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) is_error: Option<bool>,
}

/// The first difference between a request and the expectations; both texts are escaped.
#[derive(Debug)]
pub(super) struct RequestDifference {
    pub(super) expected: String,
    pub(super) got: String,
}

impl RequestDifference {
    fn new(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { expected: expected.into(), got: got.into() }
    }
}

/// Compares a request with the expectations; the error is the first difference.
pub(super) fn check_request(
    expect: &RequestExpectation,
    request: &ChatRequest,
) -> Result<(), RequestDifference> {
    for text in &expect.system_contains.0 {
        if !request.system.iter().any(|block| block.contains(text.as_str())) {
            let expected = format!("a system block that contains `{}`", quote_text(text));
            return Err(RequestDifference::new(
                expected,
                format!("`{}`", quote_text(&request.system.join("\n\n"))),
            ));
        }
    }
    check_tools(expect, request)?;
    check_images(expect, request)?;
    check_last_user(expect, request)?;
    for text in &expect.last_message_contains.0 {
        if !request.messages.last().is_some_and(|last| message_contains(last, text)) {
            let expected = format!("a last message that contains `{}`", quote_text(text));
            return Err(RequestDifference::new(expected, describe_last(request)));
        }
    }
    match &expect.results {
        Some(results) => check_results(results, request),
        None => Ok(()),
    }
}

/// Compares the media types of the request's images with the expected ones. Images whose bytes are not loaded
/// do not count.
fn check_images(
    expect: &RequestExpectation,
    request: &ChatRequest,
) -> Result<(), RequestDifference> {
    let Some(images) = &expect.images else { return Ok(()) };
    let sent = request.messages.iter().flat_map(ChatMessage::images);
    let sent: Vec<&str> =
        sent.filter(|image| !image.data().is_empty()).map(crate::Image::media_type).collect();
    if sent.iter().eq(images.iter()) {
        return Ok(());
    }
    let expected = format!("the images {}", list_names(images.iter().map(String::as_str)));
    Err(RequestDifference::new(expected, format!("the images {}", list_names(sent))))
}

/// Compares the names of the advertised tools with the expected ones, in any order.
fn check_tools(
    expect: &RequestExpectation,
    request: &ChatRequest,
) -> Result<(), RequestDifference> {
    let sent = || list_names(request.tools.iter().map(|tool| tool.name.as_str()));
    if expect.no_tools && !request.tools.is_empty() {
        return Err(RequestDifference::new("no tools", format!("the tools {}", sent())));
    }
    let Some(tools) = &expect.tools else {
        return Ok(());
    };
    let mut expected: Vec<&str> = tools.iter().map(String::as_str).collect();
    let mut got: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    expected.sort_unstable();
    got.sort_unstable();
    if expected == got {
        return Ok(());
    }
    let expected = format!("the tools {}", list_names(tools.iter().map(String::as_str)));
    Err(RequestDifference::new(expected, format!("the tools {}", sent())))
}

/// Checks that the last user message contains all expected texts.
fn check_last_user(
    expect: &RequestExpectation,
    request: &ChatRequest,
) -> Result<(), RequestDifference> {
    if expect.last_user_contains.is_empty() {
        return Ok(());
    }
    let last = request.messages.iter().rev().find_map(|message| match message {
        ChatMessage::User { text, .. } => Some(text.as_str()),
        ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => None,
    });
    for text in &expect.last_user_contains.0 {
        if !last.is_some_and(|last| last.contains(text.as_str())) {
            let expected = format!("a last user message that contains `{}`", quote_text(text));
            let got = last
                .map_or_else(|| "no user message".into(), |last| format!("`{}`", quote_text(last)));
            return Err(RequestDifference::new(expected, got));
        }
    }
    Ok(())
}

/// Compares the tool results since the model's last answer with the expected ones, in order.
fn check_results(
    expected: &[ExpectResult],
    request: &ChatRequest,
) -> Result<(), RequestDifference> {
    let results = new_results(request);
    let names = || expected.iter().map(|result| result.name.as_str());
    if !names().eq(results.iter().map(|result| result.name.as_str())) {
        return Err(RequestDifference::new(
            format!("results of {}", list_names(names())),
            format!("results of {}", list_names(results.iter().map(|result| result.name.as_str()))),
        ));
    }
    for (expected, result) in expected.iter().zip(&results) {
        let got = || {
            let kind = if result.is_error { "the error" } else { "the result" };
            format!("{kind} `{}`", quote_text(&result.content))
        };
        if expected.is_error.is_some_and(|is_error| is_error != result.is_error) {
            let kind = if result.is_error { "a result" } else { "an error" };
            return Err(RequestDifference::new(
                format!("{kind} of `{}`", quote_text(&expected.name)),
                got(),
            ));
        }
        for text in &expected.contains.0 {
            if !result.content.contains(text.as_str()) {
                let name = quote_text(&expected.name);
                let expected = format!("a result of `{name}` that contains `{}`", quote_text(text));
                return Err(RequestDifference::new(expected, got()));
            }
        }
    }
    Ok(())
}

/// The tool results since the model's last answer, in order.
pub(crate) fn new_results(request: &ChatRequest) -> Vec<&ToolResult> {
    let after = request
        .messages
        .iter()
        .rposition(|message| matches!(message, ChatMessage::Assistant { .. }))
        .map_or(0, |index| index + 1);
    let new = request.messages.get(after..).unwrap_or_default();
    new.iter()
        .flat_map(|message| match message {
            ChatMessage::Tool { results } => results.as_slice(),
            ChatMessage::User { .. } | ChatMessage::Assistant { .. } => &[],
        })
        .collect()
}

/// True if the text of a message, or one of its tool results, contains `part`.
fn message_contains(message: &ChatMessage, part: &str) -> bool {
    match message {
        ChatMessage::User { text, .. } | ChatMessage::Assistant { text, .. } => text.contains(part),
        ChatMessage::Tool { results } => results.iter().any(|result| result.content.contains(part)),
    }
}

/// A description of the request's last message, for a person.
pub(super) fn describe_last(request: &ChatRequest) -> String {
    match request.messages.last() {
        None => "no message".to_owned(),
        Some(ChatMessage::User { text, .. }) => format!("the user message `{}`", quote_text(text)),
        Some(ChatMessage::Assistant { text, .. }) => {
            format!("the model's own message `{}`", quote_text(text))
        }
        Some(ChatMessage::Tool { results }) => {
            let results: Vec<String> =
                results.iter().map(|r| format!("{}: {}", r.name, r.content)).collect();
            format!("the results `{}`", quote_text(&results.join("; ")))
        }
    }
}

/// One text or a list of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts(pub(crate) Vec<String>);

impl Texts {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Texts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => serializer.serialize_str(one),
            many => many.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Texts, E> {
        Ok(Texts(vec![value.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Texts, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = seq.next_element()? {
            texts.push(text);
        }
        Ok(Texts(texts))
    }
}
