//! The format of `cases.yaml`, which contains the suite.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The text of the suite.
const CASES: &str = include_str!("cases.yaml");

/// Cases about a subject, for example `files`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseGroup {
    pub(crate) group: String,
    pub(crate) cases: Vec<Case>,
}

/// A case: calls in one jar, in order, in a workspace of their own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) calls: Vec<CaseCall>,
    /// The access to the workspace; default: `read`.
    #[serde(default)]
    pub(crate) access: WorkspaceRight,
    /// Limits that differ from the defaults, by name.
    #[serde(default)]
    pub(crate) limits: BTreeMap<String, u64>,
    /// Whether the component may call the suite's own tools.
    #[serde(default)]
    pub(crate) peers: bool,
    /// How many jars make the calls at the same time; default: 1.
    #[serde(default = "one")]
    pub(crate) together: usize,
    /// The expected files in the workspace after the calls, by path; null: there must be no such file.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, Option<String>>,
    /// The expected schema of a tool.
    pub(crate) schema: Option<SchemaExpectation>,
    /// The expected hints of tools: exactly these.
    #[serde(default)]
    pub(crate) hints: BTreeMap<String, Vec<String>>,
}

/// The access of a case to the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WorkspaceRight {
    #[default]
    Read,
    ReadWrite,
    None,
}

/// A call, and the expected result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseCall {
    pub(crate) tool: String,
    /// The name to call, if it is not the tool's own.
    #[serde(rename = "as")]
    pub(crate) alias: Option<String>,
    /// The arguments. In texts, `{peer}` stands for the allowed host and `{stranger}` for another host. An
    /// object with `repeat` and `times` stands for a long text or a long list.
    pub(crate) arguments: Value,
    #[serde(flatten)]
    pub(crate) expect: CallExpectation,
}

/// The expected result of a call. A missing field is not checked.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CallExpectation {
    /// One text part, exactly.
    pub(crate) text: Option<String>,
    /// One JSON part with exactly this value; `3` equals `3.0`. An object with `repeat` and `times` stands
    /// for a long list here too.
    pub(crate) json: Option<Value>,
    /// One JSON part, with texts of so many bytes under these keys.
    pub(crate) json_size: Option<BTreeMap<String, usize>>,
    /// One text part of so many bytes.
    pub(crate) size: Option<usize>,
    pub(crate) parts: Option<Vec<Value>>,
    /// A tool error of this kind, or of one of these kinds.
    pub(crate) error: Option<OneOrMore>,
    /// Words in the message of the error.
    pub(crate) says: Option<String>,
    /// How the call ended, in the words of receipts: one of these.
    pub(crate) ending: Option<OneOrMore>,
    /// The lines of the log.
    pub(crate) logs: Option<LogExpectation>,
    /// The number of progress reports, which are numbered from 1.
    pub(crate) progress: Option<u64>,
    /// Words in the stdout of the guest.
    pub(crate) stdout: Option<String>,
    /// Words in the stderr of the guest.
    pub(crate) stderr: Option<String>,
    /// A special check of the answer.
    pub(crate) check: Option<AnswerCheck>,
}

/// Special checks, for answers that differ each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AnswerCheck {
    /// `wall_ms` is near the host's clock, and `elapsed_ns` is not negative.
    Clock,
    /// `hex` is 16 bytes that did not occur in this case before.
    Random,
}

/// The expected lines of the log, which are all the same.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogExpectation {
    pub(crate) level: String,
    pub(crate) message: String,
    pub(crate) kept: usize,
    #[serde(default)]
    pub(crate) dropped: u64,
}

/// The expected schema of a tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchemaExpectation {
    pub(crate) tool: String,
    /// Values in the schema, by JSON pointer.
    pub(crate) at: BTreeMap<String, Value>,
    /// The required arguments, in any order.
    pub(crate) required: Option<Vec<String>>,
}

/// A single string, or a list of strings.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub(crate) fn has_word(&self, word: &str) -> bool {
        match self {
            Self::One(one) => one == word,
            Self::More(more) => more.iter().any(|one| one == word),
        }
    }
}

impl std::fmt::Display for OneOrMore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::One(one) => write!(f, "`{one}`"),
            Self::More(more) => write!(f, "`{}`", more.join("` or `")),
        }
    }
}

impl Case {
    /// The tools that a component has to offer, so that the case can be run.
    pub(crate) fn needed_tools(&self) -> impl Iterator<Item = &str> {
        let called = self.calls.iter().map(|call| call.tool.as_str());
        let described = self.schema.iter().map(|schema| schema.tool.as_str());
        called.chain(described).chain(self.hints.keys().map(String::as_str))
    }
}

/// Writes out an object with `repeat` and `times`, as a long text or a long list.
pub(crate) fn expand_repeated(value: &Value) -> Option<Value> {
    let times = usize::try_from(value.get("times")?.as_u64()?).ok()?;
    Some(match value.get("repeat")? {
        Value::Array(items) => Value::Array(vec![items.as_slice(); times].concat()),
        piece => Value::String(piece.as_str()?.repeat(times)),
    })
}

/// Parses the suite.
pub(crate) fn parse_suite() -> Result<Vec<CaseGroup>, String> {
    serde_yaml::from_str(CASES).map_err(|error| error.to_string())
}

fn one() -> usize {
    1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_suite_parses_and_no_two_cases_have_one_name() {
        let groups = parse_suite().unwrap();
        let names: Vec<&str> =
            groups.iter().flat_map(|group| &group.cases).map(|case| case.name.as_str()).collect();
        assert!(names.len() >= 40, "{}", names.len());
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let called = groups.iter().flat_map(|group| &group.cases);
        assert!(called.into_iter().all(|case| case.needed_tools().next().is_some()));
    }

    #[test]
    fn every_tool_of_the_suite_is_described_for_third_parties_and_no_other() {
        let groups = parse_suite().unwrap();
        let used: BTreeSet<&str> =
            groups.iter().flat_map(|group| &group.cases).flat_map(Case::needed_tools).collect();
        let page = include_str!("../../../tests/conformance/README.md");
        let listed: BTreeSet<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `conf_"))
            .filter_map(|line| line.split(['`', ' ']).next())
            .collect();
        let used: BTreeSet<&str> =
            used.iter().filter_map(|name| name.strip_prefix("conf_")).collect();
        assert_eq!(used, listed);
    }
}
