//! Stricter rules for agent files of a person's own home: an unknown tool name is an error there, in any
//! program's format. In a stranger's file it is a warning, because the author may have other tools.

use crate::diagnostic::{Diagnostic, Severity};

use super::{AgentDefinition, ParsedAgentFile};

/// The code of the finding about an unknown tool name.
pub(super) const UNKNOWN: &str = "unknown-tool";

/// Advice on how to list the tools.
pub(super) const LIST: &str = "`belljar tools list` shows all tools";

/// The message about an unknown tool name.
pub(super) fn does_not_exist(name: &str) -> String {
    format!("tool `{name}` does not exist")
}

impl ParsedAgentFile {
    /// The same result with the rules for a person's own home: an unknown name in `tools` makes the file
    /// invalid.
    #[must_use]
    pub fn in_own_home(self) -> Self {
        match self {
            Self::Agent { definition, diagnostics } => {
                match refuse_unknown_tools(&definition, diagnostics) {
                    Ok(diagnostics) => Self::Agent { definition, diagnostics },
                    Err(diagnostics) => Self::Invalid { diagnostics },
                }
            }
            Self::Invalid { .. } | Self::NotAnAgent { .. } => self,
        }
    }
}

/// The findings of an agent of a person's own home.
///
/// # Errors
///
/// The findings, with errors, for a file that requests an unknown tool.
pub(crate) fn refuse_unknown_tools(
    agent: &AgentDefinition,
    mut findings: Vec<Diagnostic>,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let unknown: Vec<String> =
        agent.unknown_tools.iter().map(|name| does_not_exist(name)).collect();
    let Some(first) = unknown.first() else { return Ok(findings) };
    for found in findings.iter_mut().filter(|found| found.code == UNKNOWN) {
        if unknown.contains(&found.message) {
            found.severity = Severity::Error;
            found.hint.get_or_insert_with(|| LIST.to_owned());
        }
    }
    // Findings are bounded, so this one may only have been counted.
    if !findings.iter().any(|found| found.severity == Severity::Error) {
        let found = Diagnostic::for_file(&agent.path, UNKNOWN, first.clone());
        findings.push(Diagnostic { hint: Some(LIST.to_owned()), ..found });
    }
    Err(findings)
}
