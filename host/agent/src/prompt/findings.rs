//! Structured findings of an agent whose definition sets `emitStructuredFindings`: parsed from its last
//! message and checked.

use belljar_policy::ShownText;
use serde::{Deserialize, Serialize};

use crate::limits::{MAX_FINDING_BYTES, MAX_FINDINGS};

/// The language of the fenced block that has the findings.
const LANGUAGE: &str = "findings";

/// The findings of an agent, or the fault of its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Findings {
    /// The findings; may be empty.
    Valid {
        /// The findings in the agent's order.
        findings: Vec<Finding>,
    },
    /// The text has no block of findings, or a malformed one.
    Invalid {
        /// The reason.
        why: String,
    },
}

/// One finding. Foreign text, which must be escaped before a person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The finding in a few words.
    pub title: String,
    /// The finding in full.
    pub detail: String,
    /// The severity.
    pub severity: FindingSeverity,
    /// The file with the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// Good to know.
    Info,
    /// A blemish.
    Low,
    /// Should be seen to.
    Medium,
    /// Must be seen to.
    High,
    /// Must be seen to at once.
    Critical,
}

impl Findings {
    /// Parses the last fenced block with the language `findings`.
    pub(crate) fn from_text(text: &str) -> Self {
        match parse_findings(text) {
            Ok(findings) => Self::Valid { findings },
            Err(why) => Self::Invalid { why },
        }
    }

    /// A fenced block with as many findings as fit into `limit` bytes.
    pub(crate) fn to_block(&self, limit: usize) -> String {
        let Self::Valid { findings } = self else { return String::new() };
        let (mut lines, mut bytes) = (Vec::new(), 0usize);
        for finding in findings {
            let Ok(line) = serde_json::to_string(finding) else { break };
            bytes = bytes.saturating_add(line.len());
            if bytes > limit {
                break;
            }
            lines.push(line);
        }
        let left_out = findings.len() - lines.len();
        let note = match left_out {
            0 => String::new(),
            _ => format!("[cut: {left_out} findings more]\n"),
        };
        format!("```{LANGUAGE}\n[{}]\n```\n{note}", lines.join(",\n"))
    }

    /// The line about the number of findings in the message to a parent's model.
    pub(crate) fn to_line(&self) -> String {
        match self {
            Self::Valid { findings } => {
                format!("findings: {} checked\n", findings.len())
            }
            Self::Invalid { why } => format!("findings: not readable: {why}\n"),
        }
    }
}

/// Parses and checks the findings in a text.
fn parse_findings(text: &str) -> Result<Vec<Finding>, String> {
    let block = last_block(text).ok_or_else(|| format!("no fenced block `{LANGUAGE}`"))?;
    let found: Vec<Finding> = belljar_received::json::from_str(block)
        .map_err(|error| ShownText::clip_line(&error.to_string(), 200).to_string())?;
    if found.len() > MAX_FINDINGS {
        return Err(format!("{} findings; at most {MAX_FINDINGS} are kept", found.len()));
    }
    for (place, finding) in found.iter().enumerate() {
        let Finding { title, detail, path, line, .. } = finding;
        let long = [Some(title), Some(detail), path.as_ref()];
        if long.into_iter().flatten().any(|text| text.len() > MAX_FINDING_BYTES) {
            let most = format!("longer than {MAX_FINDING_BYTES} bytes");
            return Err(format!("finding {} has a text {most}", place + 1));
        }
        if title.trim().is_empty() {
            return Err(format!("finding {} has no title", place + 1));
        }
        if *line == Some(0) {
            return Err(format!("finding {} has line 0; lines count from 1", place + 1));
        }
    }
    Ok(found)
}

/// The content of the last fenced block with the language `findings`.
fn last_block(text: &str) -> Option<&str> {
    let open = format!("```{LANGUAGE}");
    let starts = text.match_indices(&open).filter(|(at, _)| {
        let before = text.get(..*at).unwrap_or_default();
        before.is_empty() || before.ends_with('\n')
    });
    let (at, _) = starts.last()?;
    let (_, body) = text.get(at..)?.split_once('\n')?;
    let end = body.find("\n```").or_else(|| body.starts_with("```").then_some(0))?;
    body.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings of a valid text.
    fn valid(text: &str) -> Vec<Finding> {
        match Findings::from_text(text) {
            Findings::Valid { findings } => findings,
            Findings::Invalid { why } => panic!("{why}"),
        }
    }

    /// The fault of an invalid text.
    fn why(text: &str) -> String {
        match Findings::from_text(text) {
            Findings::Invalid { why } => why,
            Findings::Valid { findings } => panic!("{findings:?}"),
        }
    }

    #[test]
    fn a_block_holds_as_many_as_fit_and_says_how_many_more_there_are() {
        let one = "{\"title\":\"t\",\"detail\":\"d\",\"severity\":\"low\"}";
        let findings = Findings::from_text(&format!("```findings\n[{one},{one},{one}]\n```"));
        assert_eq!(
            findings.to_block(1_000),
            format!("```findings\n[{one},\n{one},\n{one}]\n```\n")
        );
        assert_eq!(valid(&findings.to_block(2 * one.len())).len(), 2);
        assert!(findings.to_block(2 * one.len()).ends_with("[cut: 1 findings more]\n"));
        assert_eq!(valid(&findings.to_block(0)), []);
    }

    #[test]
    fn the_last_block_counts_and_is_typed() {
        let text = "Draft:\n```findings\n[]\n```\nFinal:\n```findings\n[{\"title\":\"t\",\
            \"detail\":\"d\",\"severity\":\"high\",\"path\":\"a.rs\",\"line\":3}]\n```\n";
        let findings = valid(text);
        assert_eq!((findings.len(), findings[0].line), (1, Some(3)));
        assert_eq!(findings[0].severity, FindingSeverity::High);
        assert_eq!(valid("```findings\n[]\n```"), []);
        assert_eq!(valid("```findings\n\n```\n```findings\n[]\n```"), []);
    }

    #[test]
    fn what_is_not_as_promised_is_said_and_not_guessed() {
        assert!(why("all is well").contains("no fenced block"));
        for bad in [
            r#"[{"title":"t","detail":"d","severity":"awful"}]"#,
            r#"[{"title":"t","detail":"d"}]"#,
            r#"[{"title":" ","detail":"d","severity":"low"}]"#,
            r#"[{"title":"t","detail":"d","severity":"low","line":0}]"#,
            r#"[{"title":"t","detail":"d","severity":"low","rights":"all"}]"#,
            r#"{"title":"t"}"#,
        ] {
            assert!(!why(&format!("```findings\n{bad}\n```")).is_empty(), "{bad}");
        }
        let many = vec![r#"{"title":"t","detail":"d","severity":"low"}"#; MAX_FINDINGS + 1];
        assert!(why(&format!("```findings\n[{}]\n```", many.join(","))).contains("at most"));
    }
}
