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

    /// Replaces a text of the first message, before the model is asked.
    pub(crate) fn replace_task(&mut self, from: &str, to: &str) {
        let request = Arc::make_mut(&mut self.request);
        if let Some(ChatMessage::User { text, .. }) = request.messages.last_mut()
            && let Some(at) = text.rfind(from).filter(|_| !from.is_empty())
        {
            text.replace_range(at..at + from.len(), to);
        }
        self.bytes = prompt_bytes(&self.request);
    }
}
