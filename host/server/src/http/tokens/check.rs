//! Checks that a token was signed by its issuer, for this server, and is valid now. INV-372: claims count
//! only after the signature was verified with a key of the issuer's, made for that algorithm.

use std::collections::HashSet;

use belljar_definition::IssuerSetting;
use jsonwebtoken::{Validation, decode};
use serde_json::{Map, Value};

use super::Refused;
use super::keys::Key;
use super::provider::library_name;
use super::seen::Seen;

/// Seconds by which the clocks of an issuer and this machine may differ.
pub(super) const LEEWAY: i64 = 30;

/// Most bytes of a subject, the bound of OpenID Connect.
const MAX_SUBJECT: usize = 255;

/// A token whose signature, audience and times were right.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(super) subject: String,
    pub(super) audience: Vec<String>,
    /// The time of expiry, in seconds since 1970.
    expires: i64,
    /// The first valid time: the later of `nbf` and `iat`.
    begins: Option<i64>,
    pub(super) claims: Map<String, Value>,
}

impl Checked {
    /// Returns whether the token has not expired.
    pub(super) fn lasts(&self, now: i64) -> bool {
        now < self.expires.saturating_add(LEEWAY)
    }

    /// Checks the token's times at this second since 1970.
    pub(super) fn is_of_now(&self, now: i64) -> Result<(), &'static str> {
        if !self.lasts(now) {
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

/// Checks a token, except for its times. A token that its issuer signed but that is invalid here is
/// [`Refused::Past`], because its holder is not guessing.
pub(super) fn check(
    text: &str,
    seen: &Seen,
    issuer: &IssuerSetting,
    key: &Key,
) -> Result<Checked, Refused> {
    let mut validation = Validation::new(library_name(seen.algorithm));
    validation.set_issuer(&[&issuer.url]);
    validation.set_audience(&issuer.audience);
    let required = ["exp", "iss", "aud", "sub"];
    validation.required_spec_claims = HashSet::from(required.map(str::to_owned));
    // With this server's clock, below.
    validation.validate_exp = false;
    validation.leeway = 0;
    let decoded = decode::<Map<String, Value>>(text, key.decoding(), &validation);
    let claims = decoded.map_err(|error| why(&error))?.claims;
    of_claims(claims, issuer).map_err(Refused::Past)
}

/// Checks the claims of a verified token.
fn of_claims(claims: Map<String, Value>, issuer: &IssuerSetting) -> Result<Checked, &'static str> {
    if claims.get("iss").and_then(Value::as_str) != Some(issuer.url.as_str()) {
        return Err("it is of another issuer");
    }
    let expires = time(&claims, "exp")?.ok_or("it does not say when it ends")?;
    let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default().to_owned();
    let printable = subject.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if !printable || subject.trim().is_empty() || subject.len() > MAX_SUBJECT {
        return Err("its subject is no name");
    }
    if claims.contains_key("cnf") {
        return Err("it is bound to a proof that is not asked for here");
    }
    let begins = time(&claims, "nbf")?.max(time(&claims, "iat")?);
    let audience = texts(claims.get("aud"));
    let checked = Checked { subject, audience, expires, begins, claims };
    if !checked.is_for(issuer) {
        return Err("it is for another audience");
    }
    Ok(checked)
}

/// The texts of a claim: a single one, or a list.
pub(super) fn texts(claim: Option<&Value>) -> Vec<String> {
    match claim {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(all)) => {
            all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// A time of a token. An invalid time makes the token invalid.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, &'static str> {
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
fn why(error: &jsonwebtoken::errors::Error) -> Refused {
    use jsonwebtoken::errors::ErrorKind;
    match error.kind() {
        ErrorKind::InvalidSignature => Refused::Invalid("its signature is not its issuer's"),
        ErrorKind::InvalidAudience => Refused::Past("it is for another audience"),
        ErrorKind::InvalidIssuer => Refused::Past("it is of another issuer"),
        ErrorKind::MissingRequiredClaim(_) => {
            Refused::Past("it lacks a claim that every token has")
        }
        _ => Refused::Invalid("it is no token that is taken here"),
    }
}
