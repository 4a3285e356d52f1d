//! The tools of an MCP server, word for word as a person has accepted them, in a file of the home. Models
//! read these stored descriptions, so no request is sent to a server before the first call of its tools.

use serde::{Deserialize, Serialize};

use crate::limits::MAX_TOOLS;
use crate::listing::{ListedTool, check_tool};
use crate::revision::ProtocolRevision;

const VERSION: u32 = 1;

/// The accepted tools of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedTools {
    version: u32,
    /// The server's address, for example `https://mcp.example.com/`. A server at another address is another
    /// server.
    pub url: String,
    /// The MCP revision that the server used when its tools were accepted.
    #[serde(default)]
    pub revision: ProtocolRevision,
    /// The tools.
    pub tools: Vec<ListedTool>,
}

/// The reason why a file of accepted tools is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not as belljar writes it: {0}")]
pub struct AcceptedError(String);

impl AcceptedTools {
    /// The most bytes of the file.
    pub const MAX_BYTES: u64 = 16 << 20;

    /// The accepted tools of the server at `url`.
    pub fn from_tools(url: &str, tools: Vec<ListedTool>) -> Self {
        Self { version: VERSION, url: url.to_owned(), revision: ProtocolRevision::default(), tools }
    }

    /// Sets the MCP revision of the server.
    #[must_use]
    pub fn spoken_to(self, revision: ProtocolRevision) -> Self {
        Self { revision, ..self }
    }

    /// The name of the file for the server named `server`.
    pub fn file_name(server: &str) -> String {
        format!("{server}.json")
    }

    /// Parses the text of such a file.
    ///
    /// # Errors
    /// When the text contains an entry that no person could have accepted, for example a malformed tool name.
    pub fn parse(server: &str, text: &[u8]) -> Result<Self, AcceptedError> {
        let accepted: Self = belljar_received::json::from_slice(text)
            .map_err(|error| AcceptedError(error.to_string()))?;
        if accepted.version != VERSION {
            return Err(AcceptedError(format!("version {} is not known", accepted.version)));
        }
        if accepted.tools.len() > MAX_TOOLS {
            return Err(AcceptedError(format!("more than {MAX_TOOLS} tools")));
        }
        for tool in &accepted.tools {
            check_tool(tool, server).map_err(AcceptedError)?;
        }
        Ok(accepted)
    }

    /// The text to write to the file.
    ///
    /// # Errors
    /// Never for values that were checked.
    pub fn to_text(&self) -> Result<String, AcceptedError> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|error| AcceptedError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_accepted_is_read_again_and_nothing_else_is() {
        let tool = |name: &str, description: &str| ListedTool {
            name: name.to_owned(),
            description: description.to_owned(),
            schema: json!({"type": "object"}),
        };
        let accepted = AcceptedTools::from_tools("https://m.test/mcp", vec![tool("a", "d")]);
        let text = accepted.to_text().unwrap();
        let newer = accepted.clone().spoken_to(ProtocolRevision::Stateless);
        assert_eq!(AcceptedTools::parse("s", newer.to_text().unwrap().as_bytes()), Ok(newer));
        let older = text.replace("  \"revision\": \"2025-11-25\",\n", "");
        assert_ne!(older, text, "an older program wrote no revision");
        assert_eq!(AcceptedTools::parse("s", older.as_bytes()).as_ref(), Ok(&accepted));
        assert_eq!(AcceptedTools::parse("s", text.as_bytes()), Ok(accepted));
        let forged =
            |tool| AcceptedTools::from_tools("https://m.test/mcp", vec![tool]).to_text().unwrap();
        for bad in [
            "{}".to_owned(),
            text.replace("\"version\": 1", "\"version\": 2"),
            forged(tool("a b", "d")),
            forged(tool("a", "d\u{202e}")),
        ] {
            assert!(AcceptedTools::parse("s", bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
