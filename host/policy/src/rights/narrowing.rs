//! Notes about requests that an intersection denied, for a person and for `belljar grant`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{DecisionSource, HostRule, MountAsk, ShownText, ToolName};

/// A note about a denied request. Every narrowing has such a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NarrowingNote {
    /// The source that refused.
    pub by: DecisionSource,
    /// The request, as a person reads it.
    pub what: String,
    /// The request in a form by which a program can grant it.
    pub wanted: WantedRight,
    /// The reason, where the source alone does not explain the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A right that a definition asks for by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WantedRight {
    /// A tool, by its name.
    Tool(ToolName),
    /// A mount, with this access.
    Mount(MountAsk),
    /// Hosts.
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

    /// A granted tool that cannot be offered to any agent, for this reason.
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
