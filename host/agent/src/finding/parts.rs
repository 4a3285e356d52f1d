//! Divides an agent's first request into parts, each with its cost and the reason why it is there, for a
//! preview.

use belljar_model::ChatRequest;
use belljar_policy::ShownText;
use serde_json::Value;

use crate::finding::catalogue::EntryKind;
use crate::finding::plan::{LibraryPlan, estimate_tokens};

/// The heading of the prompt block that lists agents; below, of the block that lists skills.
const AGENTS: &str = "# Subagents";
const SKILLS: &str = "# Skills";

/// A part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPart {
    /// The kind.
    pub kind: PartKind,
    /// The role of a message, or the name of a tool; escaped.
    pub name: Option<String>,
    /// Bytes of the part.
    pub bytes: u64,
    /// Tokens, estimated from the bytes.
    pub tokens: u64,
    /// Why the part is in the request, or what it leaves out.
    pub why: Option<String>,
}

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartKind {
    /// The agent's own instructions.
    System,
    /// The list of agents to which the agent may delegate.
    Discovery,
    /// The skills that the agent can load.
    Skills,
    /// Another block of the host.
    Advice,
    /// A message.
    Message,
    /// The note behind a message, with library entries that fit its words.
    Matched,
    /// The specification of a tool.
    Tool,
}

impl PartKind {
    /// The name of the kind in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Discovery => "discovery",
            Self::Skills => "skills",
            Self::Advice => "advice",
            Self::Message => "message",
            Self::Matched => "matched",
            Self::Tool => "tool",
        }
    }
}

impl RequestPart {
    /// The parts of a request, in their order. `matched` is the note that will follow the last message.
    pub(crate) fn list_parts(
        request: &ChatRequest,
        plan: &LibraryPlan,
        matched: Option<&str>,
    ) -> Vec<Self> {
        let system = request.system.iter().enumerate().map(|(place, text)| {
            let kind = match place {
                0 => PartKind::System,
                _ if text.starts_with(AGENTS) => PartKind::Discovery,
                _ if text.starts_with(SKILLS) => PartKind::Skills,
                _ => PartKind::Advice,
            };
            let why = match kind {
                PartKind::Discovery => found_reason(plan, EntryKind::Agent),
                PartKind::Skills => found_reason(plan, EntryKind::Skill),
                _ => None,
            };
            Self::new(kind, None, text.len(), why)
        });
        let word = |value: &Value, name: &str| {
            let word = value.get(name).and_then(Value::as_str);
            word.map(|word| ShownText::clip_line(word, 80).to_string())
        };
        let messages = request.messages.iter().map(|message| {
            let message = serde_json::to_value(message).unwrap_or_default();
            let bytes = message.to_string().len();
            Self::new(PartKind::Message, word(&message, "role"), bytes, None)
        });
        let matched = matched.map(|text| {
            let why = "fits the words of the message, and is in no list".to_owned();
            Self::new(PartKind::Matched, None, text.len(), Some(why))
        });
        let tools = request.tools.iter().map(|tool| {
            let tool = serde_json::to_value(tool).unwrap_or_default();
            let name = word(&tool, "name");
            let kind = name.as_deref().and_then(EntryKind::from_finder_name);
            let why = kind.and_then(|kind| found_reason(plan, kind));
            Self::new(PartKind::Tool, name, tool.to_string().len(), why)
        });
        system.chain(messages).chain(matched).chain(tools).collect()
    }

    fn new(kind: PartKind, name: Option<String>, bytes: usize, why: Option<String>) -> Self {
        let tokens = estimate_tokens(bytes);
        Self { kind, name, bytes: u64::try_from(bytes).unwrap_or(u64::MAX), tokens, why }
    }
}

/// How many entries of a kind the context lists, and what finds the others; `None` = it lists all.
fn found_reason(plan: &LibraryPlan, kind: EntryKind) -> Option<String> {
    let all = plan.candidates_of(kind).count();
    let listed = plan.candidates_of(kind).filter(|it| plan.is_listed(it)).count();
    (all > listed).then(|| {
        let (plural, finder) = (kind.plural(), kind.finder_name());
        format!("{listed} of {all} {plural} are listed; `{finder}` finds the others")
    })
}
