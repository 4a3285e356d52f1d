//! An issuer of tokens, and what its tokens open.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_definition::{IssuerSetting, SignatureKind, TokenRule, TokenScope};
use belljar_server::IssuerSource;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};

use crate::client::Answer;
use crate::kit::{Plan, World};
use crate::mcp::newer;

pub(crate) const URL: &str = "https://id.test/realms/corp";
/// A second issuer, whose key has the name that the first one's has.
pub(crate) const OTHER: &str = "https://other.test";
pub(crate) const AUDIENCE: &str = "https://jar.test/mcp";

/// An issuer, with the operator's word on it.
pub(crate) struct Issuer {
    pub(crate) settings: Mutex<Vec<IssuerSetting>>,
    /// The names of the keys that it publishes; `None` = it does not answer.
    published: Mutex<Option<Vec<&'static str>>>,
    pub(crate) keys: Vec<(&'static str, Ed25519KeyPair)>,
    pub(crate) curve: EcdsaKeyPair,
    asked: AtomicUsize,
    looked: AtomicUsize,
}

pub(crate) fn rule(subject: &str, tenant: &str, scope: TokenScope) -> TokenRule {
    let (subject, tenant) = (Some(subject.to_owned()), tenant.to_owned());
    TokenRule { subject, claim: None, tenant, scope }
}

impl Issuer {
    pub(crate) fn new() -> Arc<Self> {
        let random = SystemRandom::new();
        let key = || {
            let made = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
            Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap()
        };
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let curve = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let curve = EcdsaKeyPair::from_pkcs8(algorithm, curve.as_ref(), &random).unwrap();
        let groups = TokenRule {
            subject: None,
            claim: Some(("groups".to_owned(), "reds".to_owned())),
            tenant: "red".to_owned(),
            scope: TokenScope::Member,
        };
        let setting = IssuerSetting {
            name: "corp".to_owned(),
            url: URL.to_owned(),
            audience: vec![AUDIENCE.to_owned()],
            algorithms: SignatureKind::USUAL.to_vec(),
            allow: vec![
                rule("alice", "blue", TokenScope::Member),
                rule("anna", "blue", TokenScope::Member),
                rule("root", "blue", TokenScope::Admin),
                rule("gone", "closed", TokenScope::Admin),
                rule("lost", "nowhere", TokenScope::Admin),
                groups,
            ],
        };
        Arc::new(Self {
            settings: Mutex::new(vec![setting]),
            published: Mutex::new(Some(vec!["one", "curve"])),
            keys: vec![("one", key()), ("two", key()), ("stranger", key())],
            curve,
            asked: AtomicUsize::new(0),
            looked: AtomicUsize::new(0),
        })
    }

    /// The same claims for a subject, good now.
    pub(crate) fn claims(subject: &str) -> Value {
        let now = now();
        json!({"iss": URL, "sub": subject, "aud": AUDIENCE, "exp": now + 300, "nbf": now, "iat": now})
    }

    pub(crate) fn signed(&self, kid: &str, head: &Value, claims: &Value) -> String {
        let text = unsigned(head, claims);
        let (_, key) = self.keys.iter().find(|(name, _)| *name == kid).unwrap();
        with_signature(&text, key.sign(text.as_bytes()).as_ref())
    }

    /// A token of the first key.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.signed("one", &json!({"alg": "EdDSA", "kid": "one", "typ": "at+jwt"}), claims)
    }

    pub(crate) fn for_(&self, subject: &str) -> String {
        self.token(&Self::claims(subject))
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// How often the settings were looked at.
    pub(crate) fn looked(&self) -> usize {
        self.looked.load(Ordering::Relaxed)
    }

    pub(crate) fn says(&self, change: impl FnOnce(&mut IssuerSetting)) {
        change(&mut self.settings.lock().unwrap()[0]);
    }

    pub(crate) fn publishes(&self, kids: Option<&[&'static str]>) {
        *self.published.lock().unwrap() = kids.map(<[_]>::to_vec);
    }
}

#[async_trait]
impl IssuerSource for Issuer {
    async fn in_force(&self) -> Result<Vec<IssuerSetting>, String> {
        self.looked.fetch_add(1, Ordering::Relaxed);
        Ok(self.settings.lock().unwrap().clone())
    }

    async fn issuer_keys(&self, issuer: &str) -> Result<Value, String> {
        let is_own = issuer == URL;
        assert!(is_own || issuer == OTHER, "{issuer}");
        self.asked.fetch_add(1, Ordering::Relaxed);
        let published = self.published.lock().unwrap().clone();
        let published = published.ok_or_else(|| "it is down".to_owned())?;
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let key = |kid: &'static str| {
            if kid == "curve" {
                let point = self.curve.public_key().as_ref();
                return json!({"kty": "EC", "crv": "P-256", "kid": kid, "use": "sig",
                    "x": encode(&point[1..33]), "y": encode(&point[33..])});
            }
            let pair = if is_own { kid } else { "stranger" };
            let (_, pair) = self.keys.iter().find(|(name, _)| *name == pair).unwrap();
            json!({"kty": "OKP", "crv": "Ed25519", "kid": kid,
                "x": encode(pair.public_key().as_ref())})
        };
        Ok(json!({"keys": published.into_iter().map(key).collect::<Vec<_>>()}))
    }
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

pub(crate) fn unsigned(head: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(head), part(claims))
}

pub(crate) fn with_signature(text: &str, signature: &[u8]) -> String {
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

pub(crate) async fn world() -> (World, Arc<Issuer>) {
    let issuer = Issuer::new();
    let trusted: Arc<dyn IssuerSource> = Arc::<Issuer>::clone(&issuer);
    let world = World::with(Plan { issuers: Some(trusted), ..Plan::default() }).await;
    for tenant in ["blue", "red"] {
        let path = world.dir.path().join(tenant).join("workspace/note.txt");
        std::fs::write(path, format!("a note of {tenant}'s\n")).unwrap();
    }
    (world, issuer)
}

/// A call that reads the note of whoever's workspace it is.
pub(crate) async fn reads(world: &World, bearer: &str) -> Answer {
    let call = world.call("POST", "/mcp").key(bearer);
    let params = json!({"name": "file_read", "arguments": {"path": "note.txt"}});
    newer(call, "tools/call", params).send().await
}

pub(crate) async fn reads_of(world: &World, bearer: &str, tenant: &str) {
    let answer = reads(world, bearer).await.is(200);
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(text.contains(&format!("a note of {tenant}'s")), "{text}");
}

/// Refused at every door, without an effect, and the neighbour with a key is answered.
pub(crate) async fn opens_nothing(world: &World, why: &str, token: &str) {
    let refused = reads(world, token).await;
    let said = String::from_utf8_lossy(&refused.body).into_owned();
    assert_eq!(refused.status, 401, "{why}: {said}");
    assert!(!said.contains("a note of"), "{why}: {said}");
    let challenge = refused.headers["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains("resource_metadata=") && challenge.contains("invalid_token"));
    let session = crate::kit::session("blue");
    let ends = world.call("DELETE", &format!("/v1/sessions/{session}")).key(token).send().await;
    assert_eq!(ends.status, 401, "{why}");
    let there = world.store.for_tenant_name("blue").read_session(&session).await;
    assert!(there.is_ok(), "{why}: {there:?}");
    reads_of(world, &world.keys["red-member"], "red").await;
}
