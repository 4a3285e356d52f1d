//! Checks that a token was signed by its issuer, for this server, and is valid now. INV-372: a claim is
//! used only after the signature was verified with a key of the issuer, made for that algorithm.

use std::collections::HashSet;

use belljar_definition::IssuerSetting;
use jsonwebtoken::{Validation, decode};
use serde_json::{Map, Value};

use super::TokenRefusal;
use super::keys::IssuerKey;
use super::provider::library_name;
use super::seen::UnverifiedToken;

/// The seconds by which the clocks of an issuer and of this machine may differ.
pub(super) const LEEWAY: i64 = 30;

/// The most bytes of a token's subject, as in OpenID Connect.
const MAX_SUBJECT: usize = 255;

/// A token whose signature, audience and times were valid.
#[derive(Debug)]
pub(crate) struct CheckedToken {
    pub(super) subject: String,
    pub(super) audience: Vec<String>,
    /// The time at which the token expires, in seconds since 1970.
    expires: i64,
    /// The time from which the token is valid, in seconds since 1970: the later of `nbf` and `iat`.
    begins: Option<i64>,
    pub(super) claims: Map<String, Value>,
}

impl CheckedToken {
    /// Returns whether the token has not expired at `now`, in seconds since 1970.
    pub(super) fn is_unexpired(&self, now: i64) -> bool {
        now < self.expires.saturating_add(LEEWAY)
    }

    /// Checks that the token is valid at `now`, in seconds since 1970; the error is a reason for the
    /// caller.
    pub(super) fn is_of_now(&self, now: i64) -> Result<(), &'static str> {
        if !self.is_unexpired(now) {
            return Err("it has expired");
        }
        match self.begins.is_some_and(|since| since > now.saturating_add(LEEWAY)) {
            true => Err("it is not valid yet"),
            false => Ok(()),
        }
    }

    /// Returns whether the token's audience is this server.
    pub(super) fn is_for(&self, issuer: &IssuerSetting) -> bool {
        self.audience.iter().any(|one| issuer.audience.contains(one))
    }
}

/// Checks a token's form, signature and claims, but not its times. A token that the issuer signed but
/// that is invalid here is [`TokenRefusal::Past`], because its sender is not guessing.
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
    // The times are checked separately, with this server's clock.
    validation.validate_exp = false;
    validation.leeway = 0;
    let decoded = decode::<Map<String, Value>>(text, key.decoding_key(), &validation);
    let claims = decoded.map_err(|error| refusal_from_error(&error))?.claims;
    check_claims(claims, issuer).map_err(TokenRefusal::Past)
}

/// Checks the claims of a token whose signature was verified.
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

/// The texts of a claim, which may be a single text or a list.
pub(super) fn claim_texts(claim: Option<&Value>) -> Vec<String> {
    match claim {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(all)) => {
            all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// The time in a claim, in seconds since 1970. A time that is no number makes the whole token invalid.
fn claim_time(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, &'static str> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let whole = value.as_i64().or_else(|| {
        let seconds = value.as_f64()?;
        // The accepted range ends with the year 9999, in which the conversion to an integer is exact.
        (0.0..=253_402_300_799.0).contains(&seconds).then_some(seconds as i64)
    });
    whole.map(Some).ok_or("one of its times is none")
}

/// The refusal for an error of the library that checks tokens. An error about claims means: the signature was
/// valid, because the library checks claims afterwards.
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
