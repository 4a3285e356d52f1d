//! Checks that a token was signed by its issuer, for this server, and is valid now. INV-372: claims count
//! only after the signature was verified with a key of the issuer's, made for that algorithm.

use std::collections::HashSet;

use belljar_definition::IssuerSetting;
use jsonwebtoken::{Validation, decode};
use serde_json::{Map, Value};

use super::TokenRefusal;
use super::keys::IssuerKey;
use super::provider::library_name;
use super::seen::UnverifiedToken;

/// Seconds by which the clocks of an issuer and this machine may differ.
pub(super) const LEEWAY: i64 = 30;

/// Most bytes of a subject, the bound of OpenID Connect.
const MAX_SUBJECT: usize = 255;

/// A token whose signature, audience and times were right.
#[derive(Debug)]
pub(crate) struct CheckedToken {
    pub(super) subject: String,
    pub(super) audience: Vec<String>,
    /// The time of expiry, in seconds since 1970.
    expires: i64,
    /// The first valid time: the later of `nbf` and `iat`.
    begins: Option<i64>,
    pub(super) claims: Map<String, Value>,
}

impl CheckedToken {
    /// Returns whether the token has not expired.
    pub(super) fn is_unexpired(&self, now: i64) -> bool {
        now < self.expires.saturating_add(LEEWAY)
    }

    /// Checks the token's times at this second since 1970.
    pub(super) fn is_of_now(&self, now: i64) -> Result<(), &'static str> {
        if !self.is_unexpired(now) {
            return Err("it has expired");
        }
        match self.begins.is_some_and(|since| since > now.saturating_add(LEEWAY)) {
            true => Err("it is not valid yet"),
            false => Ok(()),
        }
    }

    /// Returns whether the token was made for this server.
    pub(super) fn is_for(&self, issuer: &IssuerSetting) -> bool {
        self.audience.iter().any(|one| issuer.audience.contains(one))
    }
}

/// Checks a token, except for its times. A token that the issuer signed but that is invalid here is
/// [`TokenRefusal::Past`], because the sender is not guessing.
pub(super) fn check_signature(
    text: &str,
    seen: &UnverifiedToken,
    issuer: &IssuerSetting,
    key: &IssuerKey,
) -> Result<CheckedToken, TokenRefusal> {
    let mut validation = Validation::new(library_name(seen.algorithm));
    validation.set_issuer(&[&issuer.url]);
    validation.set_audience(&issuer.audience);
    let required = ["exp", "iss", "aud", "sub"];
    validation.required_spec_claims = HashSet::from(required.map(str::to_owned));
    // With this server's clock, below.
    validation.validate_exp = false;
    validation.leeway = 0;
    let decoded = decode::<Map<String, Value>>(text, key.decoding_key(), &validation);
    let claims = decoded.map_err(|error| refusal_from_error(&error))?.claims;
    check_claims(claims, issuer).map_err(TokenRefusal::Past)
}

/// Checks the claims of a verified token.
fn check_claims(
    claims: Map<String, Value>,
    issuer: &IssuerSetting,
) -> Result<CheckedToken, &'static str> {
    if claims.get("iss").and_then(Value::as_str) != Some(issuer.url.as_str()) {
        return Err("it is of another issuer");
    }
    let expires = claim_time(&claims, "exp")?.ok_or("it does not say when it ends")?;
    let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default().to_owned();
    let printable = subject.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if !printable || subject.trim().is_empty() || subject.len() > MAX_SUBJECT {
        return Err("its subject is no name");
    }
    if claims.contains_key("cnf") {
        return Err("it is bound to a proof that is not asked for here");
    }
    let begins = claim_time(&claims, "nbf")?.max(claim_time(&claims, "iat")?);
    let audience = claim_texts(claims.get("aud"));
    let checked = CheckedToken { subject, audience, expires, begins, claims };
    if !checked.is_for(issuer) {
        return Err("it is for another audience");
    }
    Ok(checked)
}

/// The texts of a claim: a single one, or a list.
pub(super) fn claim_texts(claim: Option<&Value>) -> Vec<String> {
    match claim {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(all)) => {
            all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// A time of a token. An invalid time makes the token invalid.
fn claim_time(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, &'static str> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let whole = value.as_i64().or_else(|| {
        let seconds = value.as_f64()?;
        // Every time until the year 9999 is well below.
        (0.0..=253_402_300_799.0).contains(&seconds).then_some(seconds as i64)
    });
    whole.map(Some).ok_or("one of its times is none")
}

/// The refusal for an error of the library. An error about claims means that the signature was valid, because
/// claims are checked afterwards.
fn refusal_from_error(error: &jsonwebtoken::errors::Error) -> TokenRefusal {
    use jsonwebtoken::errors::ErrorKind;
    match error.kind() {
        ErrorKind::InvalidSignature => TokenRefusal::Invalid("its signature is not its issuer's"),
        ErrorKind::InvalidAudience => TokenRefusal::Past("it is for another audience"),
        ErrorKind::InvalidIssuer => TokenRefusal::Past("it is of another issuer"),
        ErrorKind::MissingRequiredClaim(_) => {
            TokenRefusal::Past("it lacks a claim that every token has")
        }
        _ => TokenRefusal::Invalid("it is no token that is taken here"),
    }
}
