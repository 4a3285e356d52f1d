//! The supported revisions of MCP, and the fields that each requires in a message.

use http::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The revision of MCP that a server uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProtocolRevision {
    /// A revision with sessions, which begin with `initialize`.
    #[default]
    #[serde(rename = "2025-11-25")]
    Sessions,
    /// The revision without sessions, in which each request is complete in itself.
    #[serde(rename = "2026-07-28")]
    Stateless,
}

/// The names of revisions that a server with sessions may choose. Only features of the newest are used.
const OF_SESSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The fields of each stateless request that name the revision and the client.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

impl ProtocolRevision {
    /// All revisions, newest first.
    pub const ALL: [Self; 2] = [Self::Stateless, Self::Sessions];

    /// The revision's name, which is a date.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sessions => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }

    /// The revision with the given name; `None` if it is not supported.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// The revision's name as a header.
    pub(crate) fn header_value(self) -> HeaderValue {
        HeaderValue::from_static(self.as_str())
    }

    /// The name of the revision that a server with sessions has chosen, as a header; `None` if it is not
    /// supported.
    pub(crate) fn supported_header(name: &str) -> Option<HeaderValue> {
        let spoken = OF_SESSIONS.into_iter().find(|spoken| *spoken == name);
        spoken.map(HeaderValue::from_static)
    }

    /// The parameters of a request, with the fields that the revision requires in every request.
    pub(crate) fn add_parameters(self, parameters: Value, capabilities: &Value) -> Value {
        let (Self::Stateless, Value::Object(mut fields)) = (self, parameters.clone()) else {
            return parameters;
        };
        let meta = fields.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(meta) = meta {
            meta.insert(VERSION.to_owned(), json!(self.as_str()));
            meta.insert(CLIENT.to_owned(), client_info());
            meta.insert(CAPABILITIES.to_owned(), capabilities.clone());
        }
        Value::Object(fields)
    }
}

/// The name and version of this client.
pub(crate) fn client_info() -> Value {
    json!({"name": "belljar", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_a_session_says_who_asks_and_one_with_a_session_does_not() {
        let given = json!({"name": "a", "_meta": {"progressToken": 7}});
        assert_eq!(ProtocolRevision::Sessions.add_parameters(given.clone(), &json!({})), given);
        let full = ProtocolRevision::Stateless.add_parameters(given, &json!({"elicitation": {}}));
        assert_eq!(full["_meta"]["progressToken"], 7);
        assert_eq!(full["_meta"][VERSION], "2026-07-28");
        assert_eq!(full["_meta"][CAPABILITIES], json!({"elicitation": {}}));
        assert_eq!(full["_meta"][CLIENT]["name"], "belljar");
        assert_eq!(ProtocolRevision::from_name("2025-11-25"), Some(ProtocolRevision::Sessions));
        assert_eq!(ProtocolRevision::from_name("2024-11-05"), None);
    }
}
