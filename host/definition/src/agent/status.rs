//! What can be said of an agent at a glance.

use belljar_policy::{Grants, LIMITS, Narrowing, Shown};

use super::AgentDefinition;
use super::narrowed::HINT;
use crate::diagnostic::{Diagnostic, Severity};

/// Whether an agent can run, and what stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It gets all that it asks for.
    Ready,
    /// It runs; its author meant some of it otherwise.
    ReadyWithWarnings {
        /// What, one a line.
        warnings: Vec<String>,
    },
    /// It was understood, and asks for something that it does not get. `run` refuses it
    /// without `--partial`, and nobody may delegate to it.
    Blocked {
        /// What is missing, one a line.
        reasons: Vec<String>,
    },
}

impl Status {
    /// Whether it may run without `--partial`.
    pub fn is_ready(&self) -> bool {
        match self {
            Self::Ready | Self::ReadyWithWarnings { .. } => true,
            Self::Blocked { .. } => false,
        }
    }

    /// One or two words for a list.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::ReadyWithWarnings { .. } => "ready with warnings",
            Self::Blocked { .. } => "blocked",
        }
    }
}

/// The status of a definition under its grants. `notes` are those of
/// [`belljar_policy::Rights::effective`], `diagnostics` those of its file.
pub fn status(
    definition: &AgentDefinition,
    grants: &Grants,
    notes: &[Narrowing],
    diagnostics: &[Diagnostic],
) -> Status {
    let mut reasons: Vec<String> = notes.iter().map(Narrowing::to_string).collect();
    for name in &definition.unknown_tools {
        reasons.push(format!("tool `{name}` does not exist"));
    }
    for tool in &definition.unavailable {
        reasons.push(format!("tool `{}` is not available: {}", tool.name, tool.why));
    }
    for it in &definition.not_kept {
        let path = Shown::new(&definition.path.to_string_lossy()).to_string();
        let (line, text) = (it.line, &it.text);
        reasons.push(format!(
            "{path}:{line}: `{text}` speaks of a limit that is not understood; {HINT}"
        ));
    }
    if definition.disabled {
        reasons.push("its file says `disable: true`".to_owned());
    }
    if !reasons.is_empty() {
        return Status::Blocked { reasons };
    }
    let warnings = diagnostics.iter().filter(|found| found.severity >= Severity::Warning);
    let mut warnings: Vec<String> = warnings.map(|found| found.message.clone()).collect();
    for row in LIMITS {
        let asked = definition.asked.limits.get(row.key);
        let granted = grants.limits.get(row.key).unwrap_or(0);
        if let Some(asked) = asked.filter(|asked| *asked > granted) {
            let key = row.key;
            warnings.push(format!("asks for `{key}` = {asked}; the grants give {granted}"));
        }
    }
    if warnings.is_empty() { Status::Ready } else { Status::ReadyWithWarnings { warnings } }
}
