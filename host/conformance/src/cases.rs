//! The form of `cases.yaml`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The suite.
const CASES: &str = include_str!("cases.yaml");

/// Cases about one subject.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseGroup {
    pub(crate) group: String,
    pub(crate) cases: Vec<Case>,
}

/// One case: some calls in one jar, in order, on a workspace of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) calls: Vec<CaseCall>,
    /// Of the workspace; without it, `read`.
    #[serde(default)]
    pub(crate) access: WorkspaceRight,
    /// Limits other than the defaults, by key.
    #[serde(default)]
    pub(crate) limits: BTreeMap<String, u64>,
    /// Whether the component may call the suite's own tools.
    #[serde(default)]
    pub(crate) peers: bool,
    /// So many jars make the calls at the same time; without it, one.
    #[serde(default = "one")]
    pub(crate) together: usize,
    /// Files of the workspace afterwards, by path; null = there is none.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, Option<String>>,
    /// A tool's schema.
    pub(crate) schema: Option<SchemaExpectation>,
    /// Tools with exactly these hints.
    #[serde(default)]
    pub(crate) hints: BTreeMap<String, Vec<String>>,
}

/// The right to the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WorkspaceRight {
    #[default]
    Read,
    ReadWrite,
    None,
}

/// A call and what has to come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseCall {
    pub(crate) tool: String,
    /// The name that is called instead of the tool's own.
    #[serde(rename = "as")]
    pub(crate) alias: Option<String>,
    /// In texts, `{peer}` is the host that is allowed and `{stranger}` one that is not. An object
    /// with `repeat` and `times` is a long text, or a long list.
    pub(crate) arguments: Value,
    #[serde(flatten)]
    pub(crate) expect: CallExpectation,
}

/// The expectations of one call; absent = not looked at.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CallExpectation {
    /// One text part, exactly.
    pub(crate) text: Option<String>,
    /// One JSON part, with exactly this value; a number is equal to the same number. A list may be
    /// written with `repeat` and `times` here too.
    pub(crate) json: Option<Value>,
    /// One JSON part, with texts of so many bytes under these keys.
    pub(crate) json_size: Option<BTreeMap<String, usize>>,
    /// One text part of so many bytes.
    pub(crate) size: Option<usize>,
    pub(crate) parts: Option<Vec<Value>>,
    /// A tool error of this kind, or of one of these.
    pub(crate) error: Option<OneOrMore>,
    /// Words in the error's message.
    pub(crate) says: Option<String>,
    /// How the call ended, as receipts say it: one of these.
    pub(crate) ending: Option<OneOrMore>,
    /// Lines of the log.
    pub(crate) logs: Option<LogExpectation>,
    /// Progress reports that arrived, numbered from one.
    pub(crate) progress: Option<u64>,
    /// Words on stdout.
    pub(crate) stdout: Option<String>,
    /// Words on stderr.
    pub(crate) stderr: Option<String>,
    /// A check of its own.
    pub(crate) check: Option<AnswerCheck>,
}

/// Checks of answers that are never the same twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AnswerCheck {
    /// `wall_ms` is near the host's clock, `elapsed_ns` is not negative.
    Clock,
    /// `hex` is 16 bytes, not seen before in this case.
    Random,
}

/// Lines of the log, all the same.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogExpectation {
    pub(crate) level: String,
    pub(crate) message: String,
    pub(crate) kept: usize,
    #[serde(default)]
    pub(crate) dropped: u64,
}

/// A tool's schema.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchemaExpectation {
    pub(crate) tool: String,
    /// Values by JSON pointer.
    pub(crate) at: BTreeMap<String, Value>,
    /// The required arguments, in any order.
    pub(crate) required: Option<Vec<String>>,
}

/// A word or several.
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
    /// The tools that a component has to offer for this case.
    pub(crate) fn needed_tools(&self) -> impl Iterator<Item = &str> {
        let called = self.calls.iter().map(|call| call.tool.as_str());
        let described = self.schema.iter().map(|schema| schema.tool.as_str());
        called.chain(described).chain(self.hints.keys().map(String::as_str))
    }
}

/// An object with `repeat` and `times`, as what it stands for: a long text or a long list.
pub(crate) fn expand_repeated(value: &Value) -> Option<Value> {
    let times = usize::try_from(value.get("times")?.as_u64()?).ok()?;
    Some(match value.get("repeat")? {
        Value::Array(items) => Value::Array(vec![items.as_slice(); times].concat()),
        piece => Value::String(piece.as_str()?.repeat(times)),
    })
}

/// The suite, parsed.
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
