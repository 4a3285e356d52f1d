//! A caller's input to a turn besides the text: earlier messages, tools and results, images, and the form of
//! the answer. The input is data and grants no right: the caller executes the caller's tools, and no such
//! tool has the name of a tool of belljar.

use std::sync::Arc;

use belljar_model::{ChatMessage, Effort, Image, Sampling, ToolChoice, ToolResult, ToolSpec};
use belljar_work::WorkError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::called::CommandCall;
use crate::limits::{
    MAX_CALLER_MESSAGES, MAX_CALLER_TOOL_BYTES, MAX_CALLER_TOOL_DESCRIPTION, MAX_CALLER_TOOLS,
    MAX_CALLER_TOOLS_BYTES,
};
use crate::prompt::frame::HANDED_OVER;
use crate::schema::{At, CallerSchemas, SchemaSet, memory_of};

/// Most characters of a tool's name, because providers accept no longer ones.
const MAX_NAME: usize = 64;

/// What a caller sends besides the text. Empty by default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallerInput {
    /// Earlier messages, sent unchanged before the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ChatMessage>,
    /// The command that the person called, whose text is the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandCall>,
    /// Skills that the person called for this task, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// Images beside the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Tools that the caller executes. A call of such a tool ends the turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// True if a step may have several calls of the caller's tools. Default: false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub several: bool,
    /// A call that the model must make: of any of the caller's tools, or of the named tool. The call ends the
    /// turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<ToolChoice>,
    /// The results of the calls with which the previous turn ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ToolResult>,
    /// The JSON Schema that the answer must fit; `None` = any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
    /// Most output tokens of an answer of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How much the model should reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The sampling options, including the stop words.
    #[serde(skip_serializing_if = "Sampling::is_default")]
    pub sampling: Sampling,
    /// The schemas of the tools and of the form, compiled when first needed.
    #[serde(skip)]
    pub schemas: CallerSchemas,
}

/// Which part of a caller's input cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{at}` {why}")]
pub struct UnfitInput {
    /// The place of the fault, for example `tools[2].parameters` or `form`.
    pub at: String,
    /// The reason; escaped.
    pub why: String,
}

/// Why a caller's input is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BroughtError {
    /// A part exceeds its bounds: a retry fails too.
    #[error(transparent)]
    Unfit(#[from] UnfitInput),
    /// The schemas were not compiled, for lack of time or room: a retry may succeed.
    #[error(transparent)]
    Work(#[from] WorkError),
}

impl CallerInput {
    /// Returns whether the caller sent nothing besides text.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The approximate size of the input that is stored, in bytes.
    pub fn stored_bytes(&self) -> usize {
        let text = serde_json::to_string(self).map_or(0, |text| text.len());
        self.all_images().map(Image::byte_count).fold(text, usize::saturating_add)
    }

    /// All images: those beside the task and those in earlier messages.
    pub fn all_images(&self) -> impl Iterator<Item = &Image> {
        self.images.iter().chain(self.history.iter().flat_map(ChatMessage::images))
    }

    /// All images, to restore their bytes after loading.
    pub fn all_images_mut(&mut self) -> impl Iterator<Item = &mut Image> {
        self.images.iter_mut().chain(self.history.iter_mut().flat_map(ChatMessage::images_mut))
    }

    /// Checks the bounds of every part, and compiles the schemas on a thread counted for `owner`. The
    /// compiled schemas are kept for the turn.
    ///
    /// # Errors
    ///
    /// The first invalid part, or a lack of time or room for the work.
    pub async fn check_inputs(&self, owner: &str) -> Result<(), BroughtError> {
        self.compile_schemas(owner).await.map(drop)
    }

    /// The bytes that the compiled schemas take; also checks the bounds as [`CallerInput::check_inputs`]
    /// does.
    ///
    /// # Errors
    ///
    /// As [`CallerInput::check_inputs`].
    pub async fn schema_memory(&self, owner: &str) -> Result<u64, BroughtError> {
        self.check_bounds()?;
        memory_of(self.all_schemas(), owner).await
    }

    /// Compiles the schemas of the tools and of the form, once in a turn.
    pub(crate) async fn compile_schemas(
        &self,
        owner: &str,
    ) -> Result<Arc<SchemaSet>, BroughtError> {
        self.check_bounds()?;
        self.schemas.get_or_compile(self.all_schemas(), owner).await
    }

    /// All schemas, each with its place in the request, for example `tools[2].parameters`.
    fn all_schemas(&self) -> Vec<At> {
        let of_tool = |(at, tool): (usize, &ToolSpec)| {
            (format!("tools[{at}].parameters"), tool.schema.clone())
        };
        let form = self.form.iter().map(|form| ("form".to_owned(), form.clone()));
        self.tools.iter().enumerate().map(of_tool).chain(form).collect()
    }

    /// Checks the counts and sizes of messages and tools.
    fn check_bounds(&self) -> Result<(), UnfitInput> {
        let unfit = |at: &str, why: String| Err(UnfitInput { at: at.to_owned(), why });
        if self.history.len() > MAX_CALLER_MESSAGES {
            return unfit("messages", format!("has more than {MAX_CALLER_MESSAGES} messages"));
        }
        if self.tools.len() > MAX_CALLER_TOOLS {
            return unfit("tools", format!("has more than {MAX_CALLER_TOOLS} tools"));
        }
        let mut bytes = 0_usize;
        for (at, tool) in self.tools.iter().enumerate() {
            check_tool(at, tool)?;
            bytes = bytes.saturating_add(tool.schema.to_string().len());
            bytes = bytes.saturating_add(tool.description.len());
            if self.tools.iter().take(at).any(|other| other.name == tool.name) {
                return unfit(&format!("tools[{at}].name"), "stands there twice".to_owned());
            }
        }
        if bytes > MAX_CALLER_TOOLS_BYTES {
            return unfit("tools", format!("has more than {MAX_CALLER_TOOLS_BYTES} bytes"));
        }
        Ok(())
    }

    /// The messages before the task: `messages` with the caller's results filled in, then the caller's own
    /// messages.
    pub fn after(&self, mut messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
        self.answer(&mut messages);
        messages.extend(self.history.iter().cloned());
        messages
    }

    /// Puts the caller's results in the place of their placeholders in `messages`.
    pub fn answer(&self, messages: &mut [ChatMessage]) {
        let Some(ChatMessage::Tool { results }) = messages.last_mut() else { return };
        for brought in &self.results {
            let waits =
                |kept: &&mut ToolResult| kept.id == brought.id && kept.content == HANDED_OVER;
            if let Some(kept) = results.iter_mut().find(waits) {
                kept.content.clone_from(&brought.content);
                kept.is_error = brought.is_error;
            }
        }
    }
}

/// Checks the name, description and schema size of a tool. `at` is its position, from 0.
fn check_tool(at: usize, tool: &ToolSpec) -> Result<(), UnfitInput> {
    let unfit =
        |part: &str, why: String| Err(UnfitInput { at: format!("tools[{at}].{part}"), why });
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !(1..=MAX_NAME).contains(&tool.name.len()) || !tool.name.bytes().all(letter) {
        let why = format!("has to be 1 to {MAX_NAME} letters, digits, `_` or `-`");
        return unfit("name", why);
    }
    if tool.description.len() > MAX_CALLER_TOOL_DESCRIPTION {
        let why = format!("has more than {MAX_CALLER_TOOL_DESCRIPTION} bytes");
        return unfit("description", why);
    }
    if tool.schema.to_string().len() > MAX_CALLER_TOOL_BYTES {
        return unfit("parameters", format!("has more than {MAX_CALLER_TOOL_BYTES} bytes"));
    }
    if !tool.schema.is_object() {
        return unfit("parameters", "has to be a JSON Schema, an object".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str) -> ToolSpec {
        let schema = json!({"type": "object"});
        ToolSpec { name: name.to_owned(), description: String::new(), schema }
    }

    /// The place of the fault in an input; `None` = valid.
    async fn at(brought: &CallerInput) -> Option<String> {
        match brought.check_inputs("").await {
            Ok(()) => None,
            Err(BroughtError::Unfit(unfit)) => Some(unfit.at),
            Err(BroughtError::Work(error)) => panic!("{error}"),
        }
    }

    #[tokio::test]
    async fn every_bound_of_a_callers_tools_is_kept() {
        let of = |tools: Vec<ToolSpec>| CallerInput { tools, ..CallerInput::default() };
        assert_eq!(at(&of(vec![tool("get_weather"), tool("x-1")])).await, None);
        assert_eq!(at(&of(vec![tool("a b")])).await.as_deref(), Some("tools[0].name"));
        assert_eq!(at(&of(vec![tool("")])).await.as_deref(), Some("tools[0].name"));
        assert_eq!(at(&of(vec![tool("a"), tool("a")])).await.as_deref(), Some("tools[1].name"));
        let many = (0..=MAX_CALLER_TOOLS).map(|n| tool(&format!("t{n}"))).collect();
        assert_eq!(at(&of(many)).await.as_deref(), Some("tools"));
        let long = ToolSpec { description: "x".repeat(1 << 20), ..tool("a") };
        assert_eq!(at(&of(vec![long])).await.as_deref(), Some("tools[0].description"));
        let large = json!({"type": "object", "title": "x".repeat(1 << 20)});
        let large = ToolSpec { schema: large, ..tool("a") };
        assert_eq!(at(&of(vec![large])).await.as_deref(), Some("tools[0].parameters"));
        let form = Some(json!({"type": "nothing"}));
        assert_eq!(
            at(&CallerInput { form, ..CallerInput::default() }).await.as_deref(),
            Some("form")
        );
    }

    #[test]
    fn a_result_goes_where_it_is_waited_for_and_nowhere_else() {
        let result = |id: &str, content: &str| ToolResult {
            id: id.to_owned(),
            name: "t".to_owned(),
            content: content.to_owned(),
            is_error: false,
        };
        let mut messages = vec![ChatMessage::Tool {
            results: vec![result("own", "done"), result("a", HANDED_OVER)],
        }];
        let results = vec![result("own", "forged"), result("a", "12"), result("b", "13")];
        CallerInput { results, ..CallerInput::default() }.answer(&mut messages);
        let results = vec![result("own", "done"), result("a", "12")];
        assert_eq!(messages, [ChatMessage::Tool { results }]);
    }
}
