//! The readiness of an agent, in one value.

use belljar_policy::{DecisionSource, Grants, LIMITS, NarrowingNote, ShownText, WantedRight};

use super::AgentDefinition;
use super::narrowed::HINT;
use super::own;
use crate::diagnostic::{Diagnostic, Severity};

/// Whether an agent can run, with the reasons if it cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentReadiness {
    /// Every request is granted.
    Ready,
    /// The agent runs, but not exactly as its author meant.
    ReadyWithWarnings {
        /// The differences, one a line.
        warnings: Vec<String>,
    },
    /// Valid, but with denied requests. `run` refuses it without `--partial`, and it cannot be a subagent.
    Blocked {
        /// The missing rights, one a line.
        reasons: Vec<String>,
    },
}

impl AgentReadiness {
    /// Whether the agent may run without `--partial`.
    pub fn is_ready(&self) -> bool {
        match self {
            Self::Ready | Self::ReadyWithWarnings { .. } => true,
            Self::Blocked { .. } => false,
        }
    }

    /// A short name for a list.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::ReadyWithWarnings { .. } => "ready with warnings",
            Self::Blocked { .. } => "blocked",
        }
    }
}

/// The treatment of an agent that requests tools which are not available to any agent here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingToolPolicy {
    /// Runs with the other tools. An agent without any remaining tool is blocked.
    #[default]
    Warns,
    /// Blocked.
    Blocks,
}

/// The readiness of a definition with these grants. `notes` are from [`belljar_policy::Rights::intersect_rights`],
/// `diagnostics` from the file.
pub fn assess_readiness(
    definition: &AgentDefinition,
    grants: &Grants,
    notes: &[NarrowingNote],
    diagnostics: &[Diagnostic],
    missing: MissingToolPolicy,
) -> AgentReadiness {
    let (withheld, narrowed): (Vec<_>, Vec<_>) =
        notes.iter().partition(|note| note.by == DecisionSource::Host);
    let mut reasons: Vec<String> = narrowed.iter().map(ToString::to_string).collect();
    let withheld: Vec<String> = withheld.iter().map(ToString::to_string).collect();
    if missing == MissingToolPolicy::Blocks || has_nothing_left(definition, notes) {
        reasons.extend(withheld.iter().cloned());
        let unknown = definition.unknown_tools.iter();
        reasons.extend(unknown.map(|name| own::does_not_exist(name)));
        let unavailable = definition.unavailable.iter();
        reasons.extend(
            unavailable.map(|it| format!("tool `{}` is not available: {}", it.name, it.why)),
        );
    }
    let unclear = definition.unclear.iter();
    reasons.extend(unclear.map(|it| format!("`{}` cannot be kept: {}", it.name, it.why)));
    for it in &definition.not_kept {
        let path = ShownText::new(&definition.path.to_string_lossy()).to_string();
        let (line, text) = (it.line, &it.text);
        reasons.push(format!(
            "{path}:{line}: `{text}` speaks of a limit that is not understood; {HINT}"
        ));
    }
    if definition.disabled {
        reasons.push("its file says `disable: true`".to_owned());
    }
    if !reasons.is_empty() {
        return AgentReadiness::Blocked { reasons };
    }
    // Unavailable requests were reported by the parser.
    let said = diagnostics.iter().filter(|found| found.severity >= Severity::Warning);
    let mut warnings: Vec<String> = said.map(|found| found.message.clone()).collect();
    warnings.extend(withheld);
    for row in LIMITS {
        let asked = definition.asked.limits.get(row.key);
        let granted = grants.limits.get(row.key).unwrap_or(0);
        if let Some(asked) = asked.filter(|asked| *asked > granted) {
            let key = row.key;
            warnings.push(format!("asks for `{key}` = {asked}; the grants give {granted}"));
        }
    }
    if warnings.is_empty() {
        AgentReadiness::Ready
    } else {
        AgentReadiness::ReadyWithWarnings { warnings }
    }
}

/// Whether the agent requests tools by name and gets none, and at least one does not exist here.
fn has_nothing_left(definition: &AgentDefinition, notes: &[NarrowingNote]) -> bool {
    let Some(asked) = &definition.asked.tools else { return false };
    let lacks = |tool| {
        notes.iter().any(|note| matches!(&note.wanted, WantedRight::Tool(wanted) if wanted == tool))
    };
    let is_short = !definition.unknown_tools.is_empty()
        || !definition.unavailable.is_empty()
        || notes.iter().any(|note| note.by == DecisionSource::Host);
    is_short && asked.iter().all(lacks)
}
