//! A model that says what an attack wants, for as long as it is asked.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use belljar_model::{
    CallContext, ChatModel, ChatRequest, ModelError, Models, Reply, StopReason, StreamEvent,
    TokenUsage, ToolCall,
};
use serde_json::Value;

use super::results;
use crate::scene::Scene;

/// Its answer on one turn, from 0 and counted over all agents: text and calls.
pub(super) type Lines = fn(usize) -> Vec<(&'static str, String)>;

/// It never comes to an end by itself.
pub(super) struct Puppet {
    lines: Lines,
    heard: Mutex<Heard>,
}

/// The messages to it so far.
#[derive(Default)]
struct Heard {
    turns: usize,
    results: Vec<(String, bool)>,
}

/// Results that are kept: an attack that makes more has shown its point.
const MAX_KEPT: usize = 10_000;

impl Puppet {
    /// Takes over all models of a scene.
    pub(super) fn over(scene: &mut Scene, lines: Lines) -> Arc<Self> {
        let puppet = Arc::new(Self { lines, heard: Mutex::default() });
        scene.host.models = Arc::new(Models::single(puppet.clone()));
        puppet
    }

    /// How often it was asked.
    pub(super) fn turns(&self) -> usize {
        self.heard().turns
    }

    /// The results of its calls: text, and whether it is an error.
    pub(super) fn results(&self) -> Vec<(String, bool)> {
        self.heard().results.clone()
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ChatModel for Puppet {
    fn id(&self) -> &str {
        "puppet"
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        cx: &CallContext<'_>,
        events: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<Reply, ModelError> {
        let turn = {
            let mut heard = self.heard();
            let room = MAX_KEPT.saturating_sub(heard.results.len());
            heard.results.extend(results(request).into_iter().take(room));
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
        Ok(Reply {
            text: "on and on".to_owned(),
            calls: calls.collect(),
            reasoning: None,
            usage,
            stop,
        })
    }
}

pub(super) fn call(name: &'static str, arguments: &Value) -> Vec<(&'static str, String)> {
    vec![(name, arguments.to_string())]
}
