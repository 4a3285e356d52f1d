//! Notes about what a definition asked for and did not get, for a person and for `belljar grant`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{DecisionSource, HostRule, MountAsk, ShownText, ToolName};

/// A note about a right asked for and not granted. Each such right has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NarrowingNote {
    /// The source that refused the right.
    pub by: DecisionSource,
    /// The right, for a person to read, for example "tool `shell`".
    pub what: String,
    /// The right, for a program that grants it.
    pub wanted: WantedRight,
    /// The reason, if the source alone does not explain the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A right a definition can ask for by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WantedRight {
    /// The right to call this tool.
    Tool(ToolName),
    /// A mount, with its access.
    Mount(MountAsk),
    /// The network hosts of the rule.
    Host(HostRule),
}

impl NarrowingNote {
    pub(super) fn new(by: DecisionSource, wanted: WantedRight) -> Self {
        let what = match &wanted {
            WantedRight::Tool(name) => format!("tool `{name}`"),
            WantedRight::Mount(ask) => format!("mount `{}` ({})", ask.guest, ask.access),
            WantedRight::Host(rule) => {
                format!("host `{}`", ShownText::new(&rule.to_string()))
            }
        };
        Self { by, what, wanted, why: None }
    }

    /// Makes a note about a granted tool that cannot be offered to any agent, for this reason.
    pub fn for_withheld_tool(tool: ToolName, why: String) -> Self {
        Self { why: Some(why), ..Self::new(DecisionSource::Host, WantedRight::Tool(tool)) }
    }
}

impl fmt::Display for NarrowingNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Some(why) => f.write_str(why),
            None => write!(f, "{} is not given by {}", self.what, self.by),
        }
    }
}
