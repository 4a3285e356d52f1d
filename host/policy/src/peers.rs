//! The tools that a tool may call.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ToolName;

/// The agent's other tools that a tool asks to call, by belljar's names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeersAsk {
    /// No tool.
    #[default]
    None,
    /// All tools of the agent.
    All,
    /// These tools, if the agent has them.
    Only(BTreeSet<ToolName>),
}

impl PeersAsk {
    /// Whether a tool is requested.
    pub fn covers_tool(&self, tool: &ToolName) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Only(names) => names.contains(tool),
        }
    }
}
