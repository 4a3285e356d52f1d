//! Tokens of an issuer that the operator trusts, beside belljar's own keys.
//!
//! ```text
//! token ──> seen.rs: its form, whose it says it is ──> settings.rs, keys.rs: its issuer, and the keys of
//! that
//!       ──> check.rs: signature, audience, times ──> rules.rs: the operator's word on its holder
//! ```
//!
//! INV-371: a token's rights are the operator's rules. Without a rule the holder is refused, and a claim widens
//! nothing by itself. For example, a rule with the scope `member` for the subject `ci` admits only that subject,
//! and never as an admin, whatever its token claims.

mod check;
mod keys;
mod provider;
mod rules;
mod seen;
mod settings;
mod trusted;

use std::sync::Arc;
use std::time::Duration;

use belljar_definition::{IssuerSetting, SignatureKind};
use sha2::{Digest as _, Sha256};

use self::check::{CheckedToken, check_signature};
use self::keys::{IssuerKey, IssuerKeyrings, KeyLookup};
pub(crate) use self::rules::TokenRights;
use self::seen::UnverifiedToken;
use self::settings::IssuerSettingCache;
pub use self::trusted::IssuerSource;
use crate::http::problem::{Problem, ProblemKind};

/// The holder of a token that passed all checks, whether or not a rule of the operator admits the
/// holder.
#[derive(Debug, Clone)]
pub(crate) struct TokenHolder {
    /// The digest of the token's text, as an id.
    pub(crate) id: Arc<str>,
    issuer: Arc<str>,
    checked: Arc<CheckedToken>,
    /// The key that verified the signature, and the algorithm.
    key: Arc<IssuerKey>,
    algorithm: SignatureKind,
}

/// The holder of an accepted token, with the rights of the rule that matches.
#[derive(Debug)]
pub(crate) struct AdmittedHolder {
    pub(crate) holder: TokenHolder,
    pub(crate) given: TokenRights,
}

/// The reason why a token is refused.
#[derive(Debug)]
pub(crate) enum TokenRefusal {
    /// The token is malformed, of an unsupported kind, or without a valid signature of a trusted issuer.
    Invalid(&'static str),
    /// The token is signed by its issuer, but for another server, or expired.
    Past(&'static str),
    /// The token is valid, but no rule admits its holder.
    Nobody(Box<TokenHolder>),
    /// The token cannot be checked at present, for example because its issuer does not answer.
    Unknown(Problem),
}

/// Checks the tokens of all trusted issuers.
pub(crate) struct TokenGate {
    settings: IssuerSettingCache,
    keyring: IssuerKeyrings,
}

impl TokenGate {
    /// Accepts tokens of the given issuers. The operator's settings of issuers are read at most once in the
    /// interval `every`.
    pub(crate) fn new(issuers: Arc<dyn IssuerSource>, every: Duration) -> Self {
        provider::install_provider();
        Self {
            settings: IssuerSettingCache::new(issuers, every),
            keyring: IssuerKeyrings::default(),
        }
    }

    /// The addresses of the trusted issuers; empty if the settings cannot be read.
    pub(crate) async fn issuer_addresses(&self) -> Vec<String> {
        let Ok(issuers) = self.settings.in_force().await else { return Vec::new() };
        issuers.iter().map(|issuer| issuer.url.clone()).collect()
    }

    /// Returns whether any issuer is trusted; `None` if the settings cannot be read.
    pub(crate) async fn are_trusted(&self) -> Option<bool> {
        self.settings.in_force().await.ok().map(|issuers| !issuers.is_empty())
    }

    /// Checks a token and finds the rule for its holder. `now` is in seconds since 1970.
    pub(crate) async fn admit_token(
        &self,
        text: &str,
        now: i64,
    ) -> Result<AdmittedHolder, TokenRefusal> {
        let seen = UnverifiedToken::from_text(text)
            .ok_or(TokenRefusal::Invalid("it is no token that is taken here"))?;
        let issuers = self.trusted_issuers().await?;
        let issuer = issuers.iter().find(|issuer| issuer.url == seen.issuer);
        let issuer =
            issuer.ok_or(TokenRefusal::Invalid("its issuer is none that is trusted here"))?;
        if !issuer.algorithms.contains(&seen.algorithm) {
            return Err(TokenRefusal::Invalid("its algorithm is none that is taken of its issuer"));
        }
        self.keyring.forget_all_but(&issuers);
        let key = match self.keyring.find_key(self.settings.issuers(), &issuer.url, &seen).await {
            KeyLookup::Key(key) => key,
            KeyLookup::None => {
                return Err(TokenRefusal::Invalid("its key is none of its issuer's"));
            }
            KeyLookup::Unreached(wait) => {
                return Err(TokenRefusal::Unknown(unreached_issuer(wait)));
            }
        };
        let checked = check_signature(text, &seen, issuer, &key)?;
        checked.is_of_now(now).map_err(TokenRefusal::Past)?;
        let holder = TokenHolder {
            id: token_digest(text),
            issuer: issuer.url.as_str().into(),
            checked: Arc::new(checked),
            key: Arc::from(key),
            algorithm: seen.algorithm,
        };
        match rules::rights_from_rules(issuer, &holder.checked) {
            Some(given) => Ok(AdmittedHolder { holder, given }),
            None => Err(TokenRefusal::Nobody(Box::new(holder))),
        }
    }

    /// The rights of a token's holder by the present settings; `None` if the holder is no longer
    /// admitted.
    pub(crate) async fn current_rights(
        &self,
        holder: &TokenHolder,
        now: i64,
    ) -> Option<TokenRights> {
        let issuers = self.settings.in_force().await.ok()?;
        let issuer = issuers.iter().find(|issuer| *issuer.url == *holder.issuer)?;
        let fits = holder.checked.is_unexpired(now)
            && holder.checked.is_for(issuer)
            && issuer.algorithms.contains(&holder.algorithm)
            && self.keyring.still_has(&issuer.url, &holder.key, holder.algorithm);
        fits.then(|| rules::rights_from_rules(issuer, &holder.checked)).flatten()
    }

    /// The issuers in force. While the settings cannot be read, every token is refused.
    async fn trusted_issuers(&self) -> Result<Arc<[IssuerSetting]>, TokenRefusal> {
        self.settings.in_force().await.map_err(|why| {
            tracing::error!("no token is taken while the settings cannot be read: {why}");
            let detail = "whose tokens are taken cannot be read just now";
            TokenRefusal::Unknown(Problem::unavailable(detail, SETTINGS_AGAIN))
        })
    }
}

/// The time after which another attempt may succeed if the settings could not be read.
const SETTINGS_AGAIN: Duration = Duration::from_secs(10);

/// The issuer that a token names, unverified.
pub(crate) fn issuer_of(text: &str) -> Option<Arc<str>> {
    UnverifiedToken::from_text(text).map(|seen| seen.issuer.into())
}

impl TokenHolder {
    pub(crate) fn issuer(&self) -> &Arc<str> {
        &self.issuer
    }

    /// The holder's name in the audit log, also the owner of the holder's sessions. INV-375: no two
    /// subjects have the same name, because no issuer's address contains `#`.
    pub(crate) fn actor(&self) -> Arc<str> {
        format!("token:{}#{}", self.issuer, self.checked.subject).into()
    }
}

/// The problem of an issuer whose keys cannot be fetched; a new token would not help.
fn unreached_issuer(wait: Duration) -> Problem {
    Problem::unavailable("the issuer of this token cannot be asked for its keys", wait)
}

/// The problem of an invalid token.
pub(crate) fn invalid_token(why: &str) -> Problem {
    Problem::new(ProblemKind::NoKey, format!("the token is not valid: {why}"))
        .with_hint("get a new one from an issuer that this server's metadata names")
}

/// The problem of a valid token for whose holder there is no rule.
pub(crate) fn unknown_holder() -> Problem {
    Problem::new(ProblemKind::NoKey, "the token is valid, and nobody has let its subject in").with_hint(
        "the operator of this server writes who is let in, under `allow` of `[server.issuers.NAME]`",
    )
}

fn token_digest(text: &str) -> Arc<str> {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use belljar_definition::{TokenRule, TokenScope};
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    use serde_json::{Value, json};
    use std::sync::Mutex;

    const URL: &str = "https://id.test";
    const NOW: i64 = 1_000_000;

    /// A fake issuer that signs with one key and publishes a set of keys.
    struct Fake {
        pair: Ed25519KeyPair,
        setting: Mutex<IssuerSetting>,
        published: Mutex<Vec<Value>>,
    }

    #[async_trait]
    impl IssuerSource for Fake {
        async fn in_force(&self) -> Result<Vec<IssuerSetting>, String> {
            Ok(vec![self.setting.lock().unwrap().clone()])
        }

        async fn issuer_keys(&self, _: &str) -> Result<Value, String> {
            Ok(json!({ "keys": *self.published.lock().unwrap() }))
        }
    }

    fn pair(seed: u8) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
    }

    fn published(kid: &str, pair: &Ed25519KeyPair) -> Value {
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": x})
    }

    impl Fake {
        fn new() -> Arc<Self> {
            let rule = TokenRule {
                subject: Some("alice".to_owned()),
                claim: None,
                tenant: "blue".to_owned(),
                scope: TokenScope::Member,
            };
            let setting = IssuerSetting {
                name: "corp".to_owned(),
                url: URL.to_owned(),
                audience: vec!["a".to_owned()],
                algorithms: SignatureKind::USUAL.to_vec(),
                allow: vec![rule],
            };
            let published = Mutex::new(vec![published("one", &pair(1))]);
            Arc::new(Self { pair: pair(1), setting: Mutex::new(setting), published })
        }

        fn token(&self, kid: &str, pair: &Ed25519KeyPair) -> String {
            let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let claims = json!({"iss": URL, "sub": "alice", "aud": "a", "exp": NOW + 300});
            let text = format!("{}.{}", part(json!({"alg": "EdDSA", "kid": kid})), part(claims));
            let signature = pair.sign(text.as_bytes());
            format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
        }
    }

    /// An issuer, and the holder of its token `alice`, who was accepted.
    async fn alice() -> (Arc<Fake>, TokenGate, TokenHolder) {
        let fake = Fake::new();
        let tokens = TokenGate::new(Arc::<Fake>::clone(&fake), Duration::ZERO);
        let admitted = tokens.admit_token(&fake.token("one", &fake.pair), NOW).await.unwrap();
        assert_eq!(admitted.given.tenant, "blue");
        (fake, tokens, admitted.holder)
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_let_in_is_out_with_the_end_of_its_token() {
        let (_, tokens, holder) = alice().await;
        for (at, lasts) in [(0, true), (299, true), (329, true), (330, false), (9_999, false)] {
            assert_eq!(tokens.current_rights(&holder, NOW + at).await.is_some(), lasts, "{at}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_let_in_is_out_with_its_algorithm() {
        let (fake, tokens, holder) = alice().await;
        fake.setting.lock().unwrap().algorithms = vec![SignatureKind::Es256];
        assert_eq!(tokens.current_rights(&holder, NOW).await, None);
        fake.setting.lock().unwrap().algorithms = vec![SignatureKind::EdDsa];
        assert!(tokens.current_rights(&holder, NOW).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_let_in_is_out_with_its_key_also_where_another_has_its_name() {
        let (fake, tokens, holder) = alice().await;
        for (one, lasts) in [(pair(1), true), (pair(3), false)] {
            *fake.published.lock().unwrap() =
                vec![published("one", &one), published("two", &pair(2))];
            assert!(tokens.current_rights(&holder, NOW).await.is_some(), "nobody has asked");
            // A later token with an unknown key has the keys fetched again.
            tokio::time::advance(Duration::from_secs(3_600)).await;
            tokens.admit_token(&fake.token("two", &pair(2)), NOW).await.unwrap();
            assert_eq!(tokens.current_rights(&holder, NOW).await.is_some(), lasts);
        }
    }
}
