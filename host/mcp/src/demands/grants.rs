//! What the operator grants to a server's requests during a call.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

/// The requests that a server may make during a call. By default, none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerGrants {
    /// True if the server's forms, and addresses to open, are shown to a person.
    pub elicitation: bool,
    /// The model that may write texts for the server; `None` = such requests are refused.
    pub sampling: Option<SamplingGrant>,
    /// The directories that are named to the server; `None` = such requests are refused.
    pub roots: Option<Vec<PathBuf>>,
}

/// The model that writes texts for a server, and a limit on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingGrant {
    /// The model's name in the settings. The server cannot choose another one.
    pub model: String,
    /// The most tokens, read and written, in one run with all its subagents.
    pub tokens: u64,
}

impl ServerGrants {
    /// Returns whether any request is granted.
    pub(crate) fn is_something(&self) -> bool {
        *self != Self::default()
    }

    /// The capabilities that are announced to the server. INV-360: only those that are granted.
    pub(crate) fn announced_capabilities(&self) -> Value {
        let mut all = Map::new();
        if self.elicitation {
            all.insert("elicitation".to_owned(), json!({"form": {}, "url": {}}));
        }
        if self.sampling.is_some() {
            all.insert("sampling".to_owned(), json!({}));
        }
        if self.roots.is_some() {
            all.insert("roots".to_owned(), json!({}));
        }
        Value::Object(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_announced_but_what_is_granted() {
        assert_eq!(ServerGrants::default().announced_capabilities(), json!({}));
        let forms = ServerGrants { elicitation: true, ..ServerGrants::default() };
        assert_eq!(forms.announced_capabilities(), json!({"elicitation": {"form": {}, "url": {}}}));
        let sampling = Some(SamplingGrant { model: "m".to_owned(), tokens: 1 });
        let rest = ServerGrants { sampling, roots: Some(Vec::new()), ..ServerGrants::default() };
        assert_eq!(rest.announced_capabilities(), json!({"sampling": {}, "roots": {}}));
    }
}
