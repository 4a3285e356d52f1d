//! The URIs of MCP resources.

use crate::http::ids::is_id;

/// What a URI names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResourceName {
    /// A file of a session.
    Attachment { session: String, id: String },
    /// The receipts of a session.
    Receipts { session: String },
    /// The changes of a session, as a patch.
    Changes { session: String },
}

const SCHEME: &str = "belljar://sessions/";

pub(super) fn attachment_uri(session: &str, id: &str) -> String {
    format!("{SCHEME}{session}/attachments/{id}")
}

pub(super) fn receipts_uri(session: &str) -> String {
    format!("{SCHEME}{session}/receipts")
}

pub(super) fn changes_uri(session: &str) -> String {
    format!("{SCHEME}{session}/changes")
}

/// Parses a URI; `None` if it is not of this server.
pub(super) fn parse_uri(uri: &str) -> Option<ResourceName> {
    let mut parts = uri.strip_prefix(SCHEME)?.split('/');
    let session = parts.next().filter(|id| is_id(id))?.to_owned();
    let named = match (parts.next()?, parts.next()) {
        ("attachments", Some(id)) if is_id(id) => {
            ResourceName::Attachment { session, id: id.to_owned() }
        }
        ("receipts", None) => ResourceName::Receipts { session },
        ("changes", None) => ResourceName::Changes { session },
        _ => return None,
    };
    parts.next().is_none().then_some(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_thing_and_no_path_is_one() {
        let (session, id) = ("s1".to_owned(), "a1".to_owned());
        assert_eq!(
            parse_uri(&attachment_uri("s1", "a1")),
            Some(ResourceName::Attachment { session: session.clone(), id })
        );
        assert_eq!(
            parse_uri(&receipts_uri("s1")),
            Some(ResourceName::Receipts { session: session.clone() })
        );
        assert_eq!(parse_uri(&changes_uri("s1")), Some(ResourceName::Changes { session }));
        for other in [
            "file:///etc/passwd",
            "belljar://sessions/../receipts",
            "belljar://sessions/s1",
            "belljar://sessions/s1/receipts/x",
            "belljar://sessions/s1/attachments/..",
            "belljar://sessions//receipts",
        ] {
            assert_eq!(parse_uri(other), None, "{other}");
        }
    }
}
