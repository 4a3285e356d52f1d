//! The part of an editor's capabilities that matters here.

use agent_client_protocol::v1::schema::ClientCapabilities;

/// The capabilities of an editor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EditorCapabilities {
    /// True if the editor shows subagents as separate sessions.
    pub(crate) subagents: bool,
    /// Notices beside the conversation.
    pub(crate) notices: bool,
    /// True if the editor shows summaries in place of older turns.
    pub(crate) compaction: bool,
    /// Questions with a form.
    pub(crate) forms: bool,
    /// True if output can be shown as a terminal; nothing runs in that terminal.
    pub(crate) terminals: bool,
}

impl EditorCapabilities {
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
