//! The capabilities of an editor that matter here.

use agent_client_protocol::v1::schema::ClientCapabilities;

/// The capabilities of an editor that change what it is sent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EditorCapabilities {
    /// True if the editor shows subagents as separate sessions.
    pub(crate) subagents: bool,
    /// True if the editor shows notices beside the conversation.
    pub(crate) notices: bool,
    /// True if the editor shows a summary in place of older turns.
    pub(crate) compaction: bool,
    /// True if the editor can ask a question with a form.
    pub(crate) forms: bool,
    /// True if the editor can display output as a terminal; nothing runs in it.
    pub(crate) terminals: bool,
}

impl EditorCapabilities {
    /// Reads the capabilities that an editor states.
    pub(crate) fn from_stated(stated: &ClientCapabilities) -> Self {
        let session = stated.session.as_ref();
        Self {
            subagents: stated.subagents.is_some(),
            notices: session.is_some_and(|session| session.notices.is_some()),
            compaction: session.is_some_and(|session| session.compaction.is_some()),
            terminals: stated.meta.as_ref().is_some_and(|meta| {
                meta.get("terminal_output").and_then(serde_json::Value::as_bool) == Some(true)
            }),
            forms: stated.elicitation.as_ref().is_some_and(|it| it.supports_form()),
        }
    }
}
