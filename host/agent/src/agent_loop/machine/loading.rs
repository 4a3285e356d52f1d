//! Tools whose specifications are added to the request only when the agent has found them.

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_definition::builtin_tools::FIND_TOOL;
use belljar_model::ToolSpec;

use crate::agent_loop::machine::{AgentLoop, prompt_bytes};
use crate::finding::answers::loaded_names;
use crate::limits::MAX_TOOLS;
use crate::tools::answer::CallAnswer;

impl AgentLoop {
    /// Sets the specifications that wait, by the model's tool name.
    pub(crate) fn with_deferred(self, deferred: BTreeMap<String, ToolSpec>) -> Self {
        Self { deferred, ..self }
    }

    /// Adds the specifications of tools that the step has found or called. The list only grows, so a
    /// provider can cache its beginning. A resumed agent finds the same names in the stored answers.
    pub(super) fn load_tools(&mut self, answers: &[CallAnswer]) {
        if self.deferred.is_empty() || self.last_step.is_some() {
            return;
        }
        let calls = self.calls();
        let named = calls.iter().zip(answers).flat_map(|(call, answer)| {
            let found = call.name == FIND_TOOL && !answer.is_error;
            let found = found.then(|| loaded_names(&answer.content));
            found.into_iter().flatten().chain(std::iter::once(call.name.as_str()))
        });
        let named: Vec<String> = named.map(str::to_owned).collect();
        for name in named {
            if self.request.tools.len() >= MAX_TOOLS {
                return;
            }
            if let Some(spec) = self.deferred.remove(&name) {
                Arc::make_mut(&mut self.request).tools.push(spec);
                self.bytes = prompt_bytes(&self.request);
            }
        }
    }
}
