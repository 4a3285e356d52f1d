//! The names of fields by which files of other programs state a limit that is kept here. The names are data:
//! `[[stated]]` in `tables/restriction.toml`.

use serde::Deserialize;

use super::words::TABLES;

/// The statement of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FieldStatement {
    ReadOnly,
    PermissionMode,
    Sandbox,
    Approval,
    /// Whether the agent may write.
    Writes,
    /// Whether the agent may run programs.
    Runs,
    NoRuns,
    /// The access to files.
    Files,
    /// Whether the agent has a network.
    Network,
    NoNetwork,
    /// Whether the agent may delegate.
    Delegates,
    NoDelegates,
    Depth,
    Concurrent,
    Children,
    Steps,
    Millis,
    Seconds,
    Minutes,
    /// A time with a unit.
    Time,
    Tokens,
    /// A map of such fields.
    Nested,
}

/// The names of the fields with one statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatedFields {
    pub(super) states: FieldStatement,
    pub(super) names: Vec<String>,
}

/// The names of all fields, each with its statement.
pub(super) fn stated_names() -> impl Iterator<Item = (FieldStatement, &'static str)> {
    let fields = TABLES.iter().flat_map(|tables| &tables.stated);
    fields.flat_map(|row| row.names.iter().map(|name| (row.states, name.as_str())))
}
