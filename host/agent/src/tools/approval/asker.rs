//! The port for asking a person: permission for a call whose tool is granted as `ask`, and an agent's own
//! questions.

use async_trait::async_trait;
use belljar_policy::{Mount, ToolName, ToolRights};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A question whether a call may be made. Foreign text, which must be escaped before a person sees it.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalQuestion<'a> {
    /// The number of the question in the run, as in its event.
    pub id: u64,
    /// The path of the calling agent, for example `main` or `main/scout#0`.
    pub agent: &'a str,
    /// The tool.
    pub tool: &'a ToolName,
    /// The arguments, as the model wrote them.
    pub arguments: &'a str,
    /// What the call could touch.
    pub reach: &'a CallReach,
}

/// A question that a person answers in words. All but the number is foreign text.
#[derive(Debug, Clone, Copy)]
pub struct ClarificationQuestion<'a> {
    /// The number of the question in the run, as in its event.
    pub id: u64,
    /// The path of the agent that asks.
    pub agent: &'a str,
    /// The text of the question. If the question is private, it may repeat earlier answers.
    pub question: &'a str,
    /// INV-366: if the question is private, the text that is stored instead of it; of the answer, only the
    /// fact is stored. `None` = not private.
    pub noted: Option<&'a str>,
    /// Answers from which the person may choose; empty = only free text.
    pub options: &'a [String],
}

/// The directories, hosts and secrets that a call can touch, as a person may see them: without a directory's
/// place on the host and without a secret's value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallReach {
    /// Directories.
    pub mounts: Vec<ReachedMount>,
    /// Rules of hosts.
    pub hosts: Vec<String>,
    /// Names of secrets that the host would join to requests.
    pub secrets: Vec<String>,
}

/// A directory that a call can touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReachedMount {
    /// The path, as the agent sees it, for example `/workspace`.
    pub path: String,
    /// `read`, `overlay` or `read-write`.
    pub access: String,
}

impl CallReach {
    /// What a call with these rights could touch.
    pub(crate) fn from_rights(rights: &ToolRights) -> Self {
        let mount = |mount: &Mount| ReachedMount {
            path: mount.guest.to_string(),
            access: mount.access.to_string(),
        };
        Self {
            mounts: rights.mounts().iter().map(mount).collect(),
            hosts: rights.hosts().effective_rules().iter().map(ToString::to_string).collect(),
            secrets: rights.secrets().iter().map(ToString::to_string).collect(),
        }
    }
}

/// The person's word.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Approval {
    /// Go on, this once.
    Yes,
    /// Allow, and ask no more about this agent and tool in this run.
    ForRun,
    /// Do not.
    No,
    /// There is nobody to ask: the same as no, told apart in the refusal.
    Nobody,
    /// The question was closed without a word: the same as no, told apart in the refusal.
    Cancelled,
}

impl Approval {
    /// The word for the answer in events and records.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The person's answer in free text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClarificationAnswer {
    /// The person answered with this text.
    Words(String),
    /// The person left the field blank.
    Blank,
    /// The person declined to answer.
    No,
    /// No person is present.
    Nobody,
    /// The person closed the question without an answer.
    Cancelled,
}

impl ClarificationAnswer {
    /// Converts a text; blank or absent = [`Self::Blank`].
    pub fn from_words(words: Option<String>) -> Self {
        words.filter(|words| !words.trim().is_empty()).map_or(Self::Blank, Self::Words)
    }
}

/// Asks a person, for example at a terminal or on a page.
#[async_trait]
pub trait Asker: Send + Sync {
    /// Asks whether a call may be made, and waits for the answer. The run's time limit and its cancellation
    /// end the wait.
    async fn ask_approval(&self, question: ApprovalQuestion<'_>) -> Approval;

    /// Tells the asker to which call the question with this number belongs. By default, does nothing.
    fn link_question(&self, id: u64, call: &str) {
        let _ = (id, call);
    }

    /// Asks a question that is answered in words, and waits for the answer. By default, no person is present.
    async fn ask_clarification(&self, question: ClarificationQuestion<'_>) -> ClarificationAnswer {
        let _ = question;
        ClarificationAnswer::Nobody
    }
}

/// An asker that reaches no person: every question goes unanswered.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAsker;

#[async_trait]
impl Asker for NoAsker {
    async fn ask_approval(&self, _question: ApprovalQuestion<'_>) -> Approval {
        Approval::Nobody
    }
}
