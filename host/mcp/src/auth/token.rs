//! The request for a token to an issuer.

use belljar_policy::ShownText;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::AuthError;
use super::ask::{AuthRequester, PostedForm};
use super::client::{IssuerClient, secret_of};
use super::documents::read_text;
use crate::limits::MAX_WORD;

/// The known error codes of issuers. Only these are repeated to the operator.
const REASONS: [&str; 8] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "invalid_target",
    "temporarily_unavailable",
];

/// A token as the issuer sent it.
pub(super) struct IssuedToken {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
}

/// Requests a token with the parameters in `pairs`.
pub(super) async fn request_token(
    asking: &AuthRequester<'_>,
    endpoint: &str,
    client: &IssuerClient,
    mut pairs: Vec<(&'static str, String)>,
) -> Result<IssuedToken, AuthError> {
    let secret = secret_of(asking, client, endpoint)?;
    let authorization = client.add_proof(secret.as_deref(), &mut pairs)?;
    let body = Serializer::new(String::new()).extend_pairs(pairs).finish();
    let kind = "application/x-www-form-urlencoded";
    let (status, answer) =
        asking.post_form(endpoint, PostedForm { kind, body, authorization }).await?;
    if !status.is_success() {
        let why = read_text(&answer, "error").filter(|why| REASONS.contains(&why.as_str()));
        let why = why.map_or_else(String::new, |why| format!(" ({})", ShownText::new(&why)));
        return Err(AuthError(format!("its issuer gives out no token: {status}{why}")));
    }
    parse_token(&answer)
}

/// Checks an issuer's answer: a bearer token of printable letters.
fn parse_token(answer: &Value) -> Result<IssuedToken, AuthError> {
    let kind = read_text(answer, "token_type").unwrap_or_default();
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::new("its issuer gives out tokens of a kind that is not known"));
    }
    let token = |name: &str| {
        read_text(answer, name)
            .filter(|token| token.len() <= MAX_WORD && token.bytes().all(|b| b.is_ascii_graphic()))
    };
    let access =
        token("access_token").ok_or_else(|| AuthError::new("its issuer gives out no token"))?;
    Ok(IssuedToken { access, refresh: token("refresh_token") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_bearer_token_of_a_size_that_fits_is_taken() {
        let good = json!({"access_token": "token-12345", "token_type": "bearer"});
        assert_eq!(parse_token(&good).ok().unwrap().access, "token-12345");
        for wrong in [
            json!({"access_token": "token-12345"}),
            json!({"access_token": "token-12345", "token_type": "DPoP"}),
            json!({"token_type": "Bearer"}),
            json!({"access_token": "a b", "token_type": "Bearer"}),
            json!({"access_token": "a\r\nHost: b", "token_type": "Bearer"}),
            json!({"access_token": "x".repeat(MAX_WORD + 1), "token_type": "Bearer"}),
            json!({"access_token": 3, "token_type": "Bearer"}),
        ] {
            assert!(parse_token(&wrong).is_err(), "{wrong}");
        }
    }
}
