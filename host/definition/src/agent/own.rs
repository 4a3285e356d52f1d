//! Agent files of a person's own home: a tool name that nobody knows is a slip of the person's, whichever
//! program the file is written for, and an error. In a stranger's file it is a warning: its author
//! may have tools that nobody has here.

use crate::diagnostic::{Diagnostic, Severity};

use super::{AgentDefinition, Parsed};

/// The code of the finding about a tool name that nobody knows.
pub(super) const UNKNOWN: &str = "unknown-tool";

/// Where the tools are listed.
pub(super) const LIST: &str = "`belljar tools list` shows all tools";

/// The message about a tool name that nobody knows.
pub(super) fn does_not_exist(name: &str) -> String {
    format!("tool `{name}` does not exist")
}

impl Parsed {
    /// The same reading where the file lies in a person's own home: a name in `tools` that nobody
    /// knows makes it invalid.
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
/// With the findings, errors among them, where it asks for a tool that nobody knows.
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
    // The findings about a file are bounded, and this one may be among those that are only counted.
    if !findings.iter().any(|found| found.severity == Severity::Error) {
        let found = Diagnostic::of_file(&agent.path, UNKNOWN, first.clone());
        findings.push(Diagnostic { hint: Some(LIST.to_owned()), ..found });
    }
    Err(findings)
}
