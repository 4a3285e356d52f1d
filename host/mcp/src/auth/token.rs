//! Asking an issuer for a token.

use belljar_policy::Shown;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::AuthError;
use super::ask::{Asking, Posted};
use super::client::{Client, secret_of};
use super::documents::word;
use crate::limits::MAX_WORD;

/// The known error codes of an issuer; only these are repeated to the operator.
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

/// A token, as the issuer returned it.
pub(super) struct Given {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
}

/// Requests a token, with the parameters in `pairs`.
pub(super) async fn token(
    asking: &Asking<'_>,
    endpoint: &str,
    client: &Client,
    mut pairs: Vec<(&'static str, String)>,
) -> Result<Given, AuthError> {
    let secret = secret_of(asking, client, endpoint)?;
    let authorization = client.prove(secret.as_deref(), &mut pairs)?;
    let body = Serializer::new(String::new()).extend_pairs(pairs).finish();
    let kind = "application/x-www-form-urlencoded";
    let (status, answer) = asking.post(endpoint, Posted { kind, body, authorization }).await?;
    if !status.is_success() {
        let why = word(&answer, "error").filter(|why| REASONS.contains(&why.as_str()));
        let why = why.map_or_else(String::new, |why| format!(" ({})", Shown::new(&why)));
        return Err(AuthError(format!("its issuer gives out no token: {status}{why}")));
    }
    given(&answer)
}

fn given(answer: &Value) -> Result<Given, AuthError> {
    let kind = word(answer, "token_type").unwrap_or_default();
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::new("its issuer gives out tokens of a kind that is not known"));
    }
    let token = |name: &str| {
        word(answer, name)
            .filter(|token| token.len() <= MAX_WORD && token.bytes().all(|b| b.is_ascii_graphic()))
    };
    let access =
        token("access_token").ok_or_else(|| AuthError::new("its issuer gives out no token"))?;
    Ok(Given { access, refresh: token("refresh_token") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_bearer_token_of_a_size_that_fits_is_taken() {
        let good = json!({"access_token": "token-12345", "token_type": "bearer"});
        assert_eq!(given(&good).ok().unwrap().access, "token-12345");
        for wrong in [
            json!({"access_token": "token-12345"}),
            json!({"access_token": "token-12345", "token_type": "DPoP"}),
            json!({"token_type": "Bearer"}),
            json!({"access_token": "a b", "token_type": "Bearer"}),
            json!({"access_token": "a\r\nHost: b", "token_type": "Bearer"}),
            json!({"access_token": "x".repeat(MAX_WORD + 1), "token_type": "Bearer"}),
            json!({"access_token": 3, "token_type": "Bearer"}),
        ] {
            assert!(given(&wrong).is_err(), "{wrong}");
        }
    }
}
