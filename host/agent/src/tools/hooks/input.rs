//! The input of a hook: one JSON object with the field names of Claude Code's hooks.

use std::path::Path;

use belljar_definition::HookEvent;
use belljar_policy::WORKSPACE;
use serde_json::{Map, Value, json};

use crate::agent_loop::job::AgentJob;
use crate::limits::{MAX_HOOK_RESPONSE, truncate_str};
use crate::tools::call::PlacedCall;

/// The word for a session that begins; matchers of `SessionStart` name it.
pub(crate) const NEW_SESSION: &str = "startup";

/// The JSON input of a hook about one event, still without the working directory, which differs between
/// hooks.
#[derive(Debug, Clone)]
pub(crate) struct HookInput(Map<String, Value>);

impl HookInput {
    /// The fields that every event has.
    fn new(job: &AgentJob, event: HookEvent) -> Self {
        let mut fields = Map::new();
        fields.insert("session_id".into(), job.shared.run.as_str().into());
        fields.insert("hook_event_name".into(), event.as_str().into());
        fields.insert("agent".into(), (&*job.path).into());
        if job.depth.is_child() {
            fields.insert("agent_id".into(), (&*job.path).into());
            fields.insert("agent_type".into(), job.agent.definition.name.as_str().into());
        }
        Self(fields)
    }

    /// The input before or after a call of `tool`.
    pub(crate) fn for_call(
        job: &AgentJob,
        event: HookEvent,
        call: PlacedCall<'_>,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Self {
        let mut input = Self::new(job, event);
        input.0.insert("tool_name".into(), tool.into());
        input.0.insert("tool_input".into(), Value::Object(arguments));
        input.0.insert("tool_use_id".into(), call.call.id.as_str().into());
        input
    }

    /// Adds the result of the call, cut at [`MAX_HOOK_RESPONSE`].
    pub(crate) fn with_response(mut self, content: &str) -> Self {
        let kept = truncate_str(content, MAX_HOOK_RESPONSE);
        let response = json!({ "content": kept, "truncated": kept.len() < content.len() });
        self.0.insert("tool_response".into(), response);
        self
    }

    pub(crate) fn for_start(job: &AgentJob) -> Self {
        Self::new(job, HookEvent::SubagentStart)
    }

    /// The input at the beginning of a session.
    pub(crate) fn for_session(job: &AgentJob) -> Self {
        let mut input = Self::new(job, HookEvent::SessionStart);
        input.0.insert("source".into(), NEW_SESSION.into());
        input.0.insert("model".into(), job.model.name.as_str().into());
        input
    }

    /// The input at a person's message, cut at a bound.
    pub(crate) fn for_prompt(job: &AgentJob) -> Self {
        let mut input = Self::new(job, HookEvent::UserPromptSubmit);
        input.0.insert("prompt".into(), truncate_str(&job.first, MAX_HOOK_RESPONSE).into());
        input
    }

    pub(crate) fn for_stop(job: &AgentJob, event: HookEvent, said: &str, again: bool) -> Self {
        let mut input = Self::new(job, event);
        let said = truncate_str(said, MAX_HOOK_RESPONSE);
        input.0.insert("last_assistant_message".into(), said.into());
        input.0.insert("stop_hook_active".into(), again.into());
        input
    }

    /// The input for a command, with the path of the workspace.
    pub(crate) fn for_command(&self, workspace: &Path) -> String {
        self.to_json(&workspace.to_string_lossy())
    }

    /// The input for a component, without any path of this machine.
    pub(crate) fn for_component(&self) -> String {
        self.to_json(WORKSPACE)
    }

    fn to_json(&self, directory: &str) -> String {
        let mut fields = self.0.clone();
        fields.insert("cwd".into(), directory.into());
        Value::Object(fields).to_string()
    }
}
