//! As much of a URL as a request needs. What it means is decided by the host's gate.

use crate::ToolError;
use std::fmt::Write as _;

/// Bytes of a URL. Servers refuse longer ones, and a model that writes one is confused.
const MAX_URL: usize = 8 * 1024;

/// An `http` or `https` URL, split where the wire format splits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    secure: bool,
    authority: String,
    target: String,
}

impl Url {
    /// Splits a URL. The fragment is dropped; a user name is refused.
    ///
    /// # Errors
    ///
    /// [`ToolError::InvalidArguments`] that names the URL.
    pub fn parse(text: &str) -> Result<Url, ToolError> {
        let bad = |why: &str| {
            let shown: String = text.chars().take(200).collect();
            ToolError::InvalidArguments(format!("`{shown}` {why}"))
        };
        if text.len() > MAX_URL {
            return Err(bad("is too long for a URL"));
        }
        if text.chars().any(|c| c.is_control() || c == ' ' || c == '\\') {
            return Err(bad("holds a character that a URL cannot; percent-encode it"));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| bad(EXPECTED))?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(bad(EXPECTED)),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let split = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(split);
        if authority.is_empty() {
            return Err(bad("names no host"));
        }
        if authority.contains('@') {
            return Err(bad("holds a user name, which is not sent"));
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Url {
            secure,
            authority: authority.to_owned(),
            target: format!("{slash}{}", ascii(target)),
        })
    }

    /// Whether the scheme is `https`.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// `host[:port]` as written.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.authority
    }

    /// The path with the query; starts with `/`.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }
}

const EXPECTED: &str = "is not a URL; it starts with `http://` or `https://`";

/// Percent-encodes what is not ASCII: the wire knows nothing else.
fn ascii(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii() {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// `name=value&..` with everything but letters, digits and `-._~` percent-encoded.
#[must_use]
pub fn encode_query(pairs: &[(&str, &str)]) -> String {
    let mut query = String::new();
    for (name, value) in pairs {
        if !query.is_empty() {
            query.push('&');
        }
        component(&mut query, name);
        query.push('=');
        component(&mut query, value);
    }
    query
}

fn component(query: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            let _ = write!(query, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, secure: bool, authority: &str, target: &str) {
        let url = Url::parse(text).unwrap();
        assert_eq!((url.secure, url.host(), url.target()), (secure, authority, target));
    }

    #[test]
    fn a_url_is_split_where_the_wire_splits_it() {
        check("https://example.org", true, "example.org", "/");
        check("HTTP://example.org:81/a?b=c#d", false, "example.org:81", "/a?b=c");
        check("https://example.org?q=1", true, "example.org", "/?q=1");
        check("https://[::1]/ä", true, "[::1]", "/%C3%A4");
    }

    #[test]
    fn what_is_not_a_plain_web_url_is_refused() {
        for text in [
            "",
            "example.org",
            "file:///etc/passwd",
            "https://",
            "https:///x",
            "https://u:p@example.org/",
            "https://example.org/a b",
            "http://a\r\nb/",
        ] {
            assert!(matches!(Url::parse(text), Err(ToolError::InvalidArguments(_))), "{text}");
        }
    }

    #[test]
    fn a_query_is_encoded() {
        assert_eq!(encode_query(&[("q", "a b&c=ü"), ("n", "1")]), "q=a%20b%26c%3D%C3%BC&n=1");
    }
}
