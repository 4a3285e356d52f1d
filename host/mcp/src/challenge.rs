//! Parses the header `WWW-Authenticate`, with which a server demands a token.

use http::{HeaderMap, header::WWW_AUTHENTICATE};

use crate::limits::MAX_CHALLENGE;

/// A demand for a token, or for one with more scopes. Every field is the server's unverified statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TokenChallenge {
    /// The address of the document in which the server names its issuer.
    pub(crate) metadata: Option<String>,
    /// The scopes that a token must have, separated by blanks.
    pub(crate) scope: Option<String>,
    /// True if the token that was sent has too few scopes.
    pub(crate) insufficient: bool,
}

impl TokenChallenge {
    /// Parses the headers of a reply. An unreadable header counts as missing.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let mut challenge = Self::default();
        for value in headers.get_all(WWW_AUTHENTICATE) {
            let text = value.to_str().ok().filter(|text| text.len() <= MAX_CHALLENGE);
            let bearer = text.and_then(|text| text.trim_start().split_once(' '));
            let Some((_, rest)) = bearer.filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"))
            else {
                continue;
            };
            for (name, value) in parse_fields(rest) {
                match name.to_ascii_lowercase().as_str() {
                    "resource_metadata" => challenge.metadata = Some(value),
                    "scope" => challenge.scope = Some(value).filter(|scope| is_scope(scope)),
                    "error" => challenge.insufficient = value == "insufficient_scope",
                    _ => {}
                }
            }
        }
        challenge
    }
}

/// Returns whether a text is a list of scopes with single blanks between them, which may be part of a token
/// request and a command line.
pub(crate) fn is_scope(scope: &str) -> bool {
    let right = |name: &str| {
        let fits =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'\'' | b'`');
        !name.is_empty() && name.len() <= 200 && !name.starts_with('-') && name.bytes().all(fits)
    };
    scope.len() <= MAX_CHALLENGE && scope.split(' ').all(right)
}

/// Parses fields of the form `name=value, name="value"`.
fn parse_fields(mut rest: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',', '\t']).to_owned();
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => match parse_quoted(quoted) {
                Some(both) => both,
                None => break,
            },
            None => {
                let end = after.find(',').unwrap_or(after.len());
                let (value, left) = after.split_at(end);
                (value.trim().to_owned(), left)
            }
        };
        found.push((name, value));
        rest = left;
    }
    found
}

/// Parses a quoted text up to its closing quote; also returns the rest.
fn parse_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn read(text: &str) -> TokenChallenge {
        let mut headers = HeaderMap::new();
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_str(text).unwrap());
        TokenChallenge::from_headers(&headers)
    }

    #[test]
    fn a_challenge_says_where_to_ask_and_for_which_rights() {
        let found = read(
            r#"Bearer error="insufficient_scope", scope="a b:c", resource_metadata="https://m.test/x", error_description="no, \"not\" this""#,
        );
        assert_eq!(found.scope.as_deref(), Some("a b:c"));
        assert_eq!(found.metadata.as_deref(), Some("https://m.test/x"));
        assert!(found.insufficient);
        let plain = read("bearer scope=one, error=invalid_token");
        assert_eq!((plain.scope.as_deref(), plain.insufficient), (Some("one"), false));
        for nothing in ["Basic realm=\"x\"", "Bearer", "", "Bearer scope=\"open", "Bearer ===,,,"] {
            assert_eq!(read(nothing).scope, None, "{nothing}");
        }
        for scope in ["a  b", "a\\\\nb", "$(x)`y`", "--yes", ""] {
            assert_eq!(read(&format!("Bearer scope=\"{scope}\"")).scope, None, "{scope}");
        }
    }
}
