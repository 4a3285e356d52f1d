//! A fake model that answers as an attack requires, as often as it is called.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use belljar_model::{
    CallContext, ChatModel, ChatRequest, ModelError, ModelRegistry, ModelReply, StopReason,
    StreamEvent, TokenUsage, ToolCall,
};
use serde_json::Value;

use super::request_results;
use crate::scene::AgentScene;

/// The function that makes an answer: its argument counts the answers to all agents from 0; it returns the
/// names and arguments of calls.
pub(super) type Lines = fn(usize) -> Vec<(&'static str, String)>;

/// The fake model. It never ends a run by itself.
pub(super) struct PuppetModel {
    lines: Lines,
    heard: Mutex<HeardMessages>,
}

/// What the model was sent so far.
#[derive(Default)]
struct HeardMessages {
    turns: usize,
    results: Vec<(String, bool)>,
}

/// The most results that are kept: an attack with more has proved its point.
const MAX_KEPT: usize = 10_000;

impl PuppetModel {
    /// Replaces all models of a scene by this one.
    pub(super) fn control_scene(scene: &mut AgentScene, lines: Lines) -> Arc<Self> {
        let puppet = Arc::new(Self { lines, heard: Mutex::default() });
        scene.host.models = Arc::new(ModelRegistry::from_single(puppet.clone()));
        puppet
    }

    /// How often the model was called.
    pub(super) fn turn_count(&self) -> usize {
        self.lock_heard().turns
    }

    /// The results of the calls that the model made: each text, and whether it is an error.
    pub(super) fn tool_results(&self) -> Vec<(String, bool)> {
        self.lock_heard().results.clone()
    }

    fn lock_heard(&self) -> std::sync::MutexGuard<'_, HeardMessages> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ChatModel for PuppetModel {
    fn id(&self) -> &str {
        "puppet"
    }

    /// Records the results in the request, and answers with the calls that the attack requires.
    async fn chat(
        &self,
        request: &ChatRequest,
        cx: &CallContext<'_>,
        events: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<ModelReply, ModelError> {
        let turn = {
            let mut heard = self.lock_heard();
            let room = MAX_KEPT.saturating_sub(heard.results.len());
            heard.results.extend(request_results(request).into_iter().take(room));
            heard.turns += 1;
            heard.turns - 1
        };
        events(StreamEvent::Started);
        let calls = (self.lines)(turn).into_iter().enumerate().map(|(n, (name, arguments))| {
            let id = format!("{}-{}-{turn}-{n}", cx.agent, cx.spawn_index);
            ToolCall { id, name: name.to_owned(), arguments }
        });
        let usage = TokenUsage { input_tokens: 10, cached_tokens: 0, output_tokens: 10 };
        let stop = StopReason::ToolUse;
        Ok(ModelReply {
            text: "on and on".to_owned(),
            calls: calls.collect(),
            reasoning: None,
            usage,
            stop,
        })
    }
}

pub(super) fn tool_call(name: &'static str, arguments: &Value) -> Vec<(&'static str, String)> {
    vec![(name, arguments.to_string())]
}
