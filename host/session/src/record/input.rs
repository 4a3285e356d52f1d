//! What a turn begins with.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use belljar_policy::LimitsRequest;

use crate::conversation::talk::Conversation;
use crate::record::open_turn::OpenTurn;
use crate::record::rows::History;

/// What a turn begins with.
pub(crate) struct TurnInput<'a> {
    /// Whom it is said to: an agent's or a team's identity.
    pub(crate) to: String,
    pub(crate) workspace: &'a Path,
    /// The model that was chosen instead of the agent's own.
    pub(crate) model: Option<&'a str>,
    pub(crate) limits: LimitsRequest,
    pub(crate) partial: bool,
    /// How much of the past it is sent.
    pub(crate) history: History,
    pub(crate) text: &'a str,
    pub(crate) context: Option<&'a str>,
}

impl<'a> TurnInput<'a> {
    /// What is said in a conversation.
    pub(crate) fn of(conversation: &'a Conversation, text: &'a str) -> Self {
        Self {
            to: conversation.agent().id.to_string(),
            workspace: conversation.workspace(),
            model: conversation.model(),
            limits: conversation.limits(),
            partial: conversation.partial(),
            history: conversation.history(),
            text,
            context: None,
        }
    }

    /// The turn that begins with this: `asked` and `message` are the ids of its two rows.
    pub(crate) fn opened(&self, asked: String, message: String) -> OpenTurn {
        OpenTurn {
            asked,
            run: message.clone().into(),
            message,
            text: self.text.to_owned(),
            context: self.context.map(str::to_owned),
            partial: self.partial,
            limits: self.limits,
            control: Arc::default(),
            replay: None,
            first_event: 0,
            before: Vec::new(),
            receipts: HashSet::new(),
        }
    }
}
