//! Which other tools a tool may call.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ToolName;

/// The other tools of the agent that a tool's manifest asks to call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeersAsk {
    /// The tool calls no others.
    #[default]
    None,
    /// All tools of the agent.
    All,
    /// These tools, as far as the agent has them.
    Only(BTreeSet<ToolName>),
}

impl PeersAsk {
    /// Whether the tool is asked for.
    pub fn covers_tool(&self, tool: &ToolName) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Only(names) => names.contains(tool),
        }
    }
}
