//! The parts of a token that are read before its signature is verified: its form, and the issuer that
//! it names.

use std::str::FromStr as _;

use belljar_definition::SignatureKind;
use jsonwebtoken::dangerous::insecure_decode;
use jsonwebtoken::decode_header;
use serde::Deserialize;
use serde_json::Value;

/// The most bytes of a token. Tokens of issuers that list a person's groups need some thousands.
const MAX_TOKEN: usize = 8 << 10;

/// The most bytes of a key's id.
const MAX_KID: usize = 512;

/// The accepted values of a token's `typ`: for access, or unstated. Other tokens of an issuer, for a
/// logout or a person's identity, are signed with the same keys and must not be accepted.
const KINDS: [&str; 3] = ["at+jwt", "application/at+jwt", "jwt"];

/// The content of a token whose signature is not verified yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnverifiedToken {
    pub(super) issuer: String,
    pub(super) algorithm: SignatureKind,
    /// The id of the key that signed the token.
    pub(super) kid: Option<String>,
}

#[derive(Deserialize)]
struct IssuerClaim {
    iss: String,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
    /// The critical extensions that the token's reader must understand (`crit`).
    crit: Option<Value>,
}

impl UnverifiedToken {
    /// Returns whether a text has roughly the form of a token.
    pub(super) fn is_like(text: &str) -> bool {
        text.starts_with("ey") && text.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    /// Parses a token without verifying it; `None` if it is malformed or of an unaccepted kind.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        if text.len() > MAX_TOKEN || !Self::is_like(text) {
            return None;
        }
        let head = parse_header(text)?;
        // The head is parsed by two parsers, which must agree, so no difference between them can be
        // exploited.
        let algorithm = SignatureKind::from_str(&head.alg).ok()?;
        let other = decode_header(text).ok()?;
        if format!("{:?}", other.alg) != algorithm.as_str() || head.crit.is_some() {
            return None;
        }
        let kind = head.typ.unwrap_or_else(|| "jwt".to_owned()).to_ascii_lowercase();
        let kid = head.kid.filter(|kid| !kid.is_empty());
        let short = kid.as_ref().is_none_or(|kid| kid.len() <= MAX_KID);
        if !short || !KINDS.contains(&kind.as_str()) {
            return None;
        }
        let IssuerClaim { iss } = insecure_decode(text).ok()?.claims;
        Some(Self { issuer: iss, algorithm, kid })
    }
}

/// Decodes and parses the head of a token.
fn parse_header(text: &str) -> Option<TokenHeader> {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    let (head, _) = text.split_once('.')?;
    let head = URL_SAFE_NO_PAD.decode(head).ok()?;
    serde_json::from_slice(&head).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    fn token(head: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.c2ln", part(head), part(claims))
    }

    #[test]
    fn a_token_is_read_as_far_as_it_shows_itself() {
        let claims = json!({"iss": "https://id.test", "sub": "a"});
        let seen =
            UnverifiedToken::from_text(&token(&json!({"alg": "ES256", "kid": "1"}), &claims))
                .unwrap();
        assert_eq!(seen.issuer, "https://id.test");
        assert_eq!((seen.algorithm, seen.kid.as_deref()), (SignatureKind::Es256, Some("1")));
        for typ in ["at+jwt", "AT+JWT", "application/at+jwt", "JWT"] {
            assert!(
                UnverifiedToken::from_text(&token(&json!({"alg": "RS256", "typ": typ}), &claims))
                    .is_some()
            );
        }
        let long = "a".repeat(MAX_TOKEN);
        for head in [
            json!({"alg": "none"}),
            json!({"alg": "None"}),
            json!({"alg": "HS256"}),
            json!({"alg": "ES512"}),
            json!({"alg": ""}),
            json!({"typ": "JWT"}),
            json!({"alg": "ES256", "typ": "logout+jwt"}),
            json!({"alg": "ES256", "typ": "dpop+jwt"}),
            json!({"alg": "ES256", "crit": ["exp"]}),
            json!({"alg": "ES256", "kid": "k".repeat(MAX_KID + 1)}),
            json!({"alg": "ES256", "x": long}),
        ] {
            assert_eq!(UnverifiedToken::from_text(&token(&head, &claims)), None, "{head}");
        }
        let head = json!({"alg": "ES256"});
        for claims in [json!({}), json!({"iss": ["https://id.test"]}), json!([]), json!("a")] {
            assert_eq!(UnverifiedToken::from_text(&token(&head, &claims)), None, "{claims}");
        }
        for text in ["", ".", "..", "a.b.c", "ey", "ey.ey", "ey.ey.ey.ey", "ey.é.é"] {
            assert_eq!(UnverifiedToken::from_text(text), None, "{text}");
        }
    }
}
