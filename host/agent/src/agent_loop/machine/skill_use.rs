//! Keeps which skills a conversation has loaded in its present turn.

use std::sync::Arc;

use belljar_definition::UseTerms;
use belljar_definition::builtin_tools::USE_SKILL;
use belljar_model::{ChatMessage, ToolCall};

use super::{AgentLoop, prompt_bytes};
use crate::tools::answer::CallAnswer;
use crate::tools::builtin::arguments::BuiltinCall;
use crate::tools::builtin::tool::BuiltinTool;
use crate::tools::call::arguments;

impl AgentLoop {
    /// INV-653: a skill that this step has loaded narrows the rights from the next step on.
    pub(super) fn note_skills(&mut self, answers: &[CallAnswer]) {
        let calls = self.calls().into_iter().zip(answers);
        let loaded = calls.filter(|(call, answer)| call.name == USE_SKILL && !answer.is_error);
        let name = |call: &ToolCall| match BuiltinCall::parse(BuiltinTool::Skill, arguments(call)) {
            Ok(BuiltinCall::Skill { name }) => Some(name),
            Ok(_) | Err(_) => None,
        };
        let names: Vec<String> = loaded.filter_map(|(call, _)| name(call)).collect();
        for name in names {
            self.dispatcher.use_skill(&name);
        }
    }

    /// Narrows the agent to the tools that these terms leave. `what` explains refusals.
    pub(crate) fn use_terms(&mut self, terms: &UseTerms, what: &str) {
        self.dispatcher.use_terms(terms, what);
    }

    /// The length of the first message's text, before notes are added to it.
    pub(crate) fn task_bytes(&self) -> usize {
        match self.request.messages.last() {
            Some(ChatMessage::User { text, .. }) => text.len(),
            Some(_) | None => 0,
        }
    }

    /// Replaces a text in the first `within` bytes of the first message, before the model is asked. Notes behind
    /// them, for example of hooks, may have the same text.
    pub(crate) fn replace_task(&mut self, from: &str, to: &str, within: usize) {
        let request = Arc::make_mut(&mut self.request);
        if let Some(ChatMessage::User { text, .. }) = request.messages.last_mut()
            && let Some(own) = text.get(..within).filter(|_| !from.is_empty())
            && let Some(at) = own.rfind(from)
        {
            text.replace_range(at..at + from.len(), to);
        }
        self.bytes = prompt_bytes(&self.request);
    }
}
