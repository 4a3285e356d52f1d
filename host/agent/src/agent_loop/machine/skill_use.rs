//! The skills that a conversation has loaded in its present turn.

use belljar_definition::builtin_tools::USE_SKILL;
use belljar_model::ToolCall;

use super::AgentLoop;
use crate::tools::answer::CallAnswer;
use crate::tools::builtin::arguments::BuiltinCall;
use crate::tools::builtin::tool::BuiltinTool;
use crate::tools::call::arguments;

impl AgentLoop {
    /// INV-653: a skill that a call of this step has loaded is in use from the next step on.
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
}
