//! The public keys of issuers, as last fetched. INV-374: the senders of tokens decide neither how often
//! an issuer is asked nor how much of its answer is kept, and an issuer that does not respond delays no
//! caller whose key is known.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belljar_definition::{IssuerSetting, SignatureKind};
use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::seen::UnverifiedToken;
use super::trusted::IssuerSource;

/// The most keys kept for one issuer.
const MAX_KEYS: usize = 64;

/// The time for which fetched keys are used without fetching them again.
const FRESH: Duration = Duration::from_secs(10 * 60);

/// The time for which keys are used while their issuer does not answer.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// The interval before an issuer is asked again because a key is missing, or because the last fetch
/// failed.
const AGAIN: Duration = Duration::from_secs(60);
const AGAIN_AFTER_FAILURE: Duration = Duration::from_secs(10);

/// The time limit of a fetch of an issuer's keys.
const PATIENCE: Duration = Duration::from_secs(10);

/// The keys of all issuers, by the issuer's address.
#[derive(Default)]
pub(super) struct IssuerKeyrings(Mutex<HashMap<String, Arc<IssuerKeyring>>>);

/// The keys of one issuer.
#[derive(Default)]
struct IssuerKeyring {
    known: Mutex<FetchedKeys>,
    /// A lock that the fetching task holds, so only one fetch runs at a time.
    asking: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct FetchedKeys {
    keys: Vec<IssuerKey>,
    /// The time of the last successful fetch.
    at: Option<Instant>,
    /// The time of the last fetch, and whether the issuer answered it.
    asked: Option<(Instant, bool)>,
}

/// A public key of an issuer.
#[derive(Debug, Clone)]
pub(super) struct IssuerKey {
    kid: Option<String>,
    /// The algorithms that this key may verify.
    fits: Vec<SignatureKind>,
    decoding: DecodingKey,
    /// The key as the issuer publishes it.
    written: AlgorithmParameters,
}

/// The result of a search for the key that signed a token.
pub(super) enum KeyLookup {
    Key(Box<IssuerKey>),
    /// The issuer has no such key.
    None,
    /// The issuer cannot be reached; another attempt may succeed after this time.
    Unreached(Duration),
}

impl IssuerKey {
    pub(super) fn decoding_key(&self) -> &DecodingKey {
        &self.decoding
    }

    /// Parses a key of a key set (JWK); `None` if the key is not for signatures.
    fn from_jwk(value: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value.clone()).ok()?;
        let common = &jwk.common;
        let signs = common.public_key_use.as_ref().is_none_or(|it| *it == PublicKeyUse::Signature);
        let verifies = common
            .key_operations
            .as_ref()
            .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        if !signs || !verifies {
            return None;
        }
        let mut fits = algorithms_for_kind(&jwk.algorithm);
        if let Some(one) = &common.key_algorithm {
            fits.retain(|kind| kind.as_str() == one.to_string());
        }
        let decoding = DecodingKey::from_jwk(&jwk).ok().filter(|_| !fits.is_empty())?;
        Some(Self { kid: jwk.common.key_id, fits, decoding, written: jwk.algorithm })
    }
}

/// The algorithms that a kind of key may verify. A shared secret gets none, because a public document
/// must not contain one.
fn algorithms_for_kind(parameters: &AlgorithmParameters) -> Vec<SignatureKind> {
    use SignatureKind as Kind;
    match parameters {
        AlgorithmParameters::RSA(_) => {
            vec![Kind::Rs256, Kind::Rs384, Kind::Rs512, Kind::Ps256, Kind::Ps384, Kind::Ps512]
        }
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => vec![Kind::Es256],
            EllipticCurve::P384 => vec![Kind::Es384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            vec![Kind::EdDsa]
        }
        _ => Vec::new(),
    }
}

impl FetchedKeys {
    /// Finds the key of a token, if the keys were fetched no longer than `oldest` ago. A token without
    /// a key id matches if there is only one key for its algorithm.
    fn find_key(&self, seen: &UnverifiedToken, oldest: Duration) -> Option<IssuerKey> {
        self.at.filter(|at| at.elapsed() < oldest)?;
        let mut fit = self.keys.iter().filter(|key| key.fits.contains(&seen.algorithm));
        match &seen.kid {
            Some(kid) => fit.find(|key| key.kid.as_ref() == Some(kid)).cloned(),
            None => fit.next().filter(|_| fit.next().is_none()).cloned(),
        }
    }

    /// The time for which the issuer must not be asked again; `None` if it may be asked now.
    fn time_until_fetch(&self) -> Option<Duration> {
        let (at, answered) = self.asked?;
        let after = if answered { AGAIN } else { AGAIN_AFTER_FAILURE };
        after.checked_sub(at.elapsed()).filter(|left| !left.is_zero())
    }

    /// The result for a token whose key is not in the issuer's set.
    fn missing_key(&self) -> KeyLookup {
        match self.asked {
            Some((_, false)) => {
                KeyLookup::Unreached(self.time_until_fetch().unwrap_or(AGAIN_AFTER_FAILURE))
            }
            Some((_, true)) | None => KeyLookup::None,
        }
    }
}

impl IssuerKeyring {
    fn lock_keys(&self) -> MutexGuard<'_, FetchedKeys> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the keys by a fetched set, or notes a failed fetch. A key that is not in the new set
    /// verifies no further token.
    fn replace_keys(&self, set: Result<Value, String>) {
        let now = Instant::now();
        let keys = set.ok().and_then(|set| {
            let keys = set.get("keys")?.as_array()?;
            Some(keys.iter().filter_map(IssuerKey::from_jwk).take(MAX_KEYS).collect())
        });
        let mut known = self.lock_keys();
        known.asked = Some((now, keys.is_some()));
        if let Some(keys) = keys {
            (known.keys, known.at) = (keys, Some(now));
        }
    }
}

impl IssuerKeyrings {
    /// Removes all issuers that are no longer trusted, with their keys.
    pub(super) fn forget_all_but(&self, issuers: &[IssuerSetting]) {
        let trusted = |url: &String| issuers.iter().any(|issuer| issuer.url == *url);
        self.lock_keyrings().retain(|url, _| trusted(url));
    }

    fn lock_keyrings(&self) -> MutexGuard<'_, HashMap<String, Arc<IssuerKeyring>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a key was still in the issuer's last set. Sends no request: an issuer that
    /// cannot be reached removes no key.
    pub(super) fn still_has(&self, url: &str, key: &IssuerKey, algorithm: SignatureKind) -> bool {
        let Some(ring) = self.lock_keyrings().get(url).map(Arc::clone) else { return false };
        let known = ring.lock_keys();
        known.keys.iter().any(|it| it.written == key.written && it.fits.contains(&algorithm))
    }

    /// Finds the key of a token of this issuer. Fetches the issuer's keys first if they are too old or
    /// lack the key.
    pub(super) async fn find_key(
        &self,
        issuers: &Arc<dyn IssuerSource>,
        url: &str,
        seen: &UnverifiedToken,
    ) -> KeyLookup {
        let ring = Arc::clone(self.lock_keyrings().entry(url.to_owned()).or_default());
        if let Some(key) = ring.lock_keys().find_key(seen, FRESH) {
            return KeyLookup::Key(Box::new(key));
        }
        let kept = ring.lock_keys().find_key(seen, KEPT);
        if let Some(key) = kept {
            // A known key is used at once; newer keys are fetched in the background.
            if let Ok(asking) = Arc::clone(&ring.asking).try_lock_owned() {
                drop(ring.fetch_keys(Arc::clone(issuers), url, asking));
            }
            return KeyLookup::Key(Box::new(key));
        }
        let asking = Arc::clone(&ring.asking).lock_owned().await;
        if ring.lock_keys().find_key(seen, FRESH).is_none() {
            // The fetch stores its keys, or its failure, in the ring, where they are searched below.
            let _ = ring.fetch_keys(Arc::clone(issuers), url, asking).await;
        }
        let known = ring.lock_keys();
        known
            .find_key(seen, KEPT)
            .map_or_else(|| known.missing_key(), |key| KeyLookup::Key(Box::new(key)))
    }
}

impl IssuerKeyring {
    /// Fetches the issuer's keys, unless a fetch ended a moment ago. The fetch is a separate task that
    /// continues after the caller has disconnected: if it ended with the caller, it would not be noted
    /// as done, and each further caller could cause another one.
    fn fetch_keys(
        self: &Arc<Self>,
        issuers: Arc<dyn IssuerSource>,
        url: &str,
        asking: OwnedMutexGuard<()>,
    ) -> JoinHandle<()> {
        let (ring, url) = (Arc::clone(self), url.to_owned());
        tokio::spawn(async move {
            let _asking = asking;
            if ring.lock_keys().time_until_fetch().is_some() {
                return;
            }
            let asked = timeout(PATIENCE, issuers.issuer_keys(&url)).await;
            let asked = asked.unwrap_or_else(|_| Err("it does not answer in time".to_owned()));
            if let Err(why) = &asked {
                tracing::warn!(issuer = url, "its keys cannot be had: {why}");
            }
            ring.replace_keys(asked);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use serde_json::json;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    const URL: &str = "https://id.test";

    /// A fake issuer that publishes a set of keys, or does not answer.
    #[derive(Default)]
    struct Fake {
        set: Mutex<Option<Value>>,
        asked: AtomicUsize,
        hangs: AtomicBool,
    }

    impl Fake {
        fn with(kids: &[&str]) -> Arc<Self> {
            let fake = Arc::<Self>::default();
            fake.has(Some(kids));
            fake
        }

        fn has(&self, kids: Option<&[&str]>) {
            let keys = kids.map(|kids| kids.iter().map(|kid| ed(kid)).collect::<Vec<_>>());
            *self.set.lock().unwrap() = keys.map(|keys| json!({ "keys": keys }));
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::Relaxed)
        }
    }

    #[async_trait]
    impl IssuerSource for Fake {
        async fn in_force(&self) -> Result<Vec<IssuerSetting>, String> {
            Ok(Vec::new())
        }

        async fn issuer_keys(&self, _: &str) -> Result<Value, String> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if self.hangs.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            self.set.lock().unwrap().clone().ok_or_else(|| "down".to_owned())
        }
    }

    fn ed(kid: &str) -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "kid": kid,
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
    }

    fn seen(kid: Option<&str>) -> UnverifiedToken {
        let (issuer, kid) = (URL.to_owned(), kid.map(str::to_owned));
        UnverifiedToken { issuer, algorithm: SignatureKind::EdDsa, kid }
    }

    async fn find(ring: &IssuerKeyrings, fake: &Arc<Fake>, kid: &str) -> &'static str {
        let issuers: Arc<dyn IssuerSource> = Arc::<Fake>::clone(fake);
        match ring.find_key(&issuers, URL, &seen(Some(kid))).await {
            KeyLookup::Key(_) => "key",
            KeyLookup::None => "none",
            KeyLookup::Unreached(_) => "unreached",
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_unknown_keys_asks_the_issuer_once_a_minute() {
        let (ring, fake) = (IssuerKeyrings::default(), Fake::with(&["a"]));
        for number in 0..1_000 {
            assert_eq!(find(&ring, &fake, &format!("made-up-{number}")).await, "none");
            assert_eq!(find(&ring, &fake, "a").await, "key");
        }
        assert_eq!(fake.asked(), 1);
        tokio::time::advance(AGAIN).await;
        for number in 0..1_000 {
            assert_eq!(find(&ring, &fake, &format!("another-{number}")).await, "none");
        }
        assert_eq!(fake.asked(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_key_is_found_and_an_old_one_is_gone_with_it() {
        let (ring, fake) = (IssuerKeyrings::default(), Fake::with(&["old"]));
        assert_eq!(find(&ring, &fake, "old").await, "key");
        fake.has(Some(&["new"]));
        tokio::time::advance(AGAIN).await;
        assert_eq!(find(&ring, &fake, "new").await, "key");
        assert_eq!(find(&ring, &fake, "old").await, "none");
        // A key that no token uses is removed when the keys are next fetched.
        fake.has(Some(&[]));
        tokio::time::advance(FRESH).await;
        while find(&ring, &fake, "new").await == "key" {
            tokio::task::yield_now().await;
        }
        assert_eq!(find(&ring, &fake, "new").await, "none");
    }

    #[tokio::test(start_paused = true)]
    async fn an_issuer_that_never_answers_is_asked_once_and_holds_up_nobody_whose_key_is_known() {
        let (ring, fake) = (IssuerKeyrings::default(), Fake::with(&["a"]));
        assert_eq!(find(&ring, &fake, "a").await, "key");
        fake.hangs.store(true, Ordering::Relaxed);
        tokio::time::advance(FRESH).await;
        let began = Instant::now();
        for _ in 0..100 {
            assert_eq!(find(&ring, &fake, "a").await, "key");
            tokio::task::yield_now().await;
        }
        assert_eq!((began.elapsed(), fake.asked()), (Duration::ZERO, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_hang_up_have_the_issuer_asked_no_more_often() {
        let (ring, fake) = (IssuerKeyrings::default(), Arc::<Fake>::default());
        fake.hangs.store(true, Ordering::Relaxed);
        for _ in 0..100 {
            let left = timeout(Duration::from_millis(1), find(&ring, &fake, "a")).await;
            assert!(left.is_err(), "it waits for the issuer");
        }
        assert_eq!(fake.asked(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn keys_outlast_an_issuer_that_is_away_for_an_hour_and_no_longer() {
        let (ring, fake) = (IssuerKeyrings::default(), Arc::<Fake>::default());
        assert_eq!(find(&ring, &fake, "a").await, "unreached");
        assert_eq!(find(&ring, &fake, "a").await, "unreached");
        assert_eq!(fake.asked(), 1, "it is not asked again at once");
        fake.has(Some(&["a"]));
        tokio::time::advance(AGAIN_AFTER_FAILURE).await;
        assert_eq!(find(&ring, &fake, "a").await, "key");
        fake.has(None);
        tokio::time::advance(FRESH).await;
        assert_eq!(find(&ring, &fake, "a").await, "key");
        tokio::time::advance(KEPT).await;
        assert_eq!(find(&ring, &fake, "a").await, "unreached");
        let settings: [IssuerSetting; 0] = [];
        ring.forget_all_but(&settings);
        assert!(ring.lock_keyrings().is_empty());
    }

    #[test]
    fn only_keys_that_sign_are_taken_and_only_for_their_own_algorithms() {
        let with = |name: &str, value: Value| {
            let mut key = ed("a");
            key[name] = value;
            IssuerKey::from_jwk(&key)
        };
        assert_eq!(IssuerKey::from_jwk(&ed("a")).unwrap().fits, [SignatureKind::EdDsa]);
        assert!(with("use", json!("sig")).is_some() && with("alg", json!("EdDSA")).is_some());
        for (name, value) in [
            ("use", json!("enc")),
            ("key_ops", json!(["sign"])),
            ("alg", json!("RS256")),
            ("alg", json!("HS256")),
            ("crv", json!("X25519")),
            ("kty", json!("oct")),
            ("x", json!("!")),
        ] {
            assert!(with(name, value.clone()).is_none(), "{name} {value}");
        }
        let shared = json!({"kty": "oct", "k": "c2VjcmV0", "kid": "a", "alg": "HS256"});
        assert!(IssuerKey::from_jwk(&shared).is_none());
        let ring = IssuerKeyring::default();
        ring.replace_keys(Ok(json!({"keys": vec![ed("a"); MAX_KEYS + 10]})));
        assert_eq!(ring.lock_keys().keys.len(), MAX_KEYS);
        assert!(ring.lock_keys().find_key(&seen(None), FRESH).is_none(), "which of them?");
        ring.replace_keys(Ok(json!({"keys": [shared, ed("a"), {"kty": "x"}]})));
        assert!(ring.lock_keys().find_key(&seen(None), FRESH).is_some());
    }
}
