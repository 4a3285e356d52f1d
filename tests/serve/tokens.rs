//! Tokens of an issuer: what they open, and the many that open nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_definition::{IssuerSetting, SignatureKind, TokenRule, TokenScope};
use belljar_server::Issuers;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};

use crate::client::{Answer, PATIENCE};
use crate::kit::{Plan, World};
use crate::mcp::{answer_of, call_of, initialize, newer, of_task, older, tasks};

const URL: &str = "https://id.test/realms/corp";
const AUDIENCE: &str = "https://jar.test/mcp";

/// An issuer, with the operator's word on it.
pub(crate) struct Issuer {
    settings: Mutex<Vec<IssuerSetting>>,
    /// The names of the keys that it publishes; `None` = it does not answer.
    published: Mutex<Option<Vec<&'static str>>>,
    keys: Vec<(&'static str, Ed25519KeyPair)>,
    curve: EcdsaKeyPair,
    asked: AtomicUsize,
}

fn rule(subject: &str, tenant: &str, scope: TokenScope) -> TokenRule {
    let (subject, tenant) = (Some(subject.to_owned()), tenant.to_owned());
    TokenRule { subject, claim: None, tenant, scope }
}

impl Issuer {
    fn new() -> Arc<Self> {
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
        })
    }

    /// The same claims for a subject, good now.
    fn claims(subject: &str) -> Value {
        let now = now();
        json!({"iss": URL, "sub": subject, "aud": AUDIENCE, "exp": now + 300, "nbf": now, "iat": now})
    }

    fn signed(&self, kid: &str, head: &Value, claims: &Value) -> String {
        let text = unsigned(head, claims);
        let (_, key) = self.keys.iter().find(|(name, _)| *name == kid).unwrap();
        with_signature(&text, key.sign(text.as_bytes()).as_ref())
    }

    /// A token of the first key.
    fn token(&self, claims: &Value) -> String {
        self.signed("one", &json!({"alg": "EdDSA", "kid": "one", "typ": "at+jwt"}), claims)
    }

    fn for_(&self, subject: &str) -> String {
        self.token(&Self::claims(subject))
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn says(&self, change: impl FnOnce(&mut IssuerSetting)) {
        change(&mut self.settings.lock().unwrap()[0]);
    }

    fn publishes(&self, kids: Option<&[&'static str]>) {
        *self.published.lock().unwrap() = kids.map(<[_]>::to_vec);
    }
}

#[async_trait]
impl Issuers for Issuer {
    async fn in_force(&self) -> Result<Vec<IssuerSetting>, String> {
        Ok(self.settings.lock().unwrap().clone())
    }

    async fn keys(&self, issuer: &str) -> Result<Value, String> {
        assert_eq!(issuer, URL);
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
            let (_, pair) = self.keys.iter().find(|(name, _)| *name == kid).unwrap();
            json!({"kty": "OKP", "crv": "Ed25519", "kid": kid,
                "x": encode(pair.public_key().as_ref())})
        };
        Ok(json!({"keys": published.into_iter().map(key).collect::<Vec<_>>()}))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn unsigned(head: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(head), part(claims))
}

fn with_signature(text: &str, signature: &[u8]) -> String {
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

async fn world() -> (World, Arc<Issuer>) {
    let issuer = Issuer::new();
    let trusted: Arc<dyn Issuers> = Arc::<Issuer>::clone(&issuer);
    let world = World::with(Plan { issuers: Some(trusted), ..Plan::default() }).await;
    for tenant in ["blue", "red"] {
        let path = world.dir.path().join(tenant).join("workspace/note.txt");
        std::fs::write(path, format!("a note of {tenant}'s\n")).unwrap();
    }
    (world, issuer)
}

/// A call that reads the note of whoever's workspace it is.
async fn reads(world: &World, bearer: &str) -> Answer {
    let call = world.call("POST", "/mcp").key(bearer);
    let params = json!({"name": "file_read", "arguments": {"path": "note.txt"}});
    newer(call, "tools/call", params).send().await
}

async fn reads_of(world: &World, bearer: &str, tenant: &str) {
    let answer = reads(world, bearer).await.is(200);
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(text.contains(&format!("a note of {tenant}'s")), "{text}");
}

/// Refused at every door, without an effect, and the neighbour with a key is answered.
async fn opens_nothing(world: &World, why: &str, token: &str) {
    let refused = reads(world, token).await;
    let said = String::from_utf8_lossy(&refused.body).into_owned();
    assert_eq!(refused.status, 401, "{why}: {said}");
    assert!(!said.contains("a note of"), "{why}: {said}");
    let challenge = refused.headers["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains("resource_metadata=") && challenge.contains("invalid_token"));
    let session = crate::kit::session("blue");
    let ends = world.call("DELETE", &format!("/v1/sessions/{session}")).key(token).send().await;
    assert_eq!(ends.status, 401, "{why}");
    let there = world.store.of_tenant("blue").session(&session).await;
    assert!(there.is_ok(), "{why}: {there:?}");
    reads_of(world, &world.keys["red-member"], "red").await;
}

#[tokio::test]
async fn a_token_is_worth_what_the_operator_wrote_and_no_more() {
    let (world, issuer) = world().await;
    reads_of(&world, &issuer.for_("alice"), "blue").await;
    let me = world.call("GET", "/v1/me").key(&issuer.for_("alice")).send().await.is(200).json();
    assert_eq!((me["tenant"].as_str(), me["scope"].as_str()), (Some("blue"), Some("member")));
    assert_eq!(me["actor"], format!("token:{URL}#alice"));
    // By a claim, as a text and in a list.
    for groups in [json!("reds"), json!(["greens", "reds"])] {
        let mut claims = Issuer::claims("somebody");
        claims["groups"] = groups;
        reads_of(&world, &issuer.token(&claims), "red").await;
    }
    // INV-373: a token's own words narrow, and never widen.
    let mut claims = Issuer::claims("alice");
    claims["scope"] = json!("openid belljar:admin");
    let call = world.call("GET", "/v1/audit").key(&issuer.token(&claims)).send().await;
    call.is(403);
    claims["scope"] = json!("openid belljar:read-only");
    world.call("GET", "/v1/sessions").key(&issuer.token(&claims)).send().await.is(200);
    reads(&world, &issuer.token(&claims)).await.is(403);
    claims["scope"] = json!("openid belljar:readonly");
    reads(&world, &issuer.token(&claims)).await.is(403);
    claims["scope"] = json!("openid profile");
    reads_of(&world, &issuer.token(&claims), "blue").await;
    for (claim, value) in [("tenant", "red"), ("groups", "admin"), ("role", "admin")] {
        let mut claims = Issuer::claims("nobody");
        claims[claim] = json!(value);
        opens_nothing(&world, claim, &issuer.token(&claims)).await;
    }
    let metadata = world.call("GET", "/.well-known/oauth-protected-resource/mcp").send().await;
    assert_eq!(metadata.is(200).json()["authorization_servers"], json!([URL]));
}

#[tokio::test]
async fn a_token_that_is_not_its_issuers_opens_nothing() {
    let (world, issuer) = world().await;
    let claims = Issuer::claims("alice");
    let head = |alg: &str| json!({"alg": alg, "kid": "one", "typ": "at+jwt"});
    let good = issuer.token(&claims);
    let (text, _) = good.rsplit_once('.').unwrap();
    let other = issuer.signed("stranger", &head("EdDSA"), &claims);
    opens_nothing(&world, "signed by another", &other).await;
    opens_nothing(&world, "no signature", &format!("{text}.")).await;
    let root = unsigned(&head("EdDSA"), &Issuer::claims("root"));
    let (_, signature) = good.rsplit_once('.').unwrap();
    opens_nothing(&world, "another's signature", &format!("{root}.{signature}")).await;
    for alg in ["none", "None", "NONE"] {
        opens_nothing(&world, alg, &format!("{}.", unsigned(&head(alg), &claims))).await;
        opens_nothing(&world, alg, &with_signature(&unsigned(&head(alg), &claims), b"x")).await;
    }
    // The public key as a shared secret, in the forms that it has.
    let (_, pair) = &issuer.keys[0];
    let bytes = pair.public_key().as_ref().to_vec();
    let jwk = issuer.keys(URL).await.unwrap()["keys"][0].to_string().into_bytes();
    for secret in [bytes.clone(), URL_SAFE_NO_PAD.encode(bytes).into_bytes(), jwk] {
        let text = unsigned(&head("HS256"), &claims);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let token = with_signature(&text, hmac::sign(&key, text.as_bytes()).as_ref());
        opens_nothing(&world, "HS256 with the public key", &token).await;
    }
    // A key of one kind with the algorithm of another.
    let text = unsigned(&json!({"alg": "EdDSA", "kid": "curve"}), &claims);
    let signed = issuer.curve.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    opens_nothing(&world, "ES256 as EdDSA", &with_signature(&text, signed.as_ref())).await;
    let text = unsigned(&json!({"alg": "ES256", "kid": "curve"}), &claims);
    let signed = issuer.curve.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    let curve = with_signature(&text, signed.as_ref());
    reads_of(&world, &curve, "blue").await;
    issuer.says(|setting| setting.algorithms = vec![SignatureKind::EdDsa]);
    opens_nothing(&world, "an algorithm that is not taken", &curve).await;
    opens_nothing(&world, "too long", &format!("{good}{}", "A".repeat(9_000))).await;
    for typ in ["logout+jwt", "secevent+jwt"] {
        let head = json!({"alg": "EdDSA", "kid": "one", "typ": typ});
        opens_nothing(&world, typ, &issuer.signed("one", &head, &claims)).await;
    }
    reads_of(&world, &good, "blue").await;
}

#[tokio::test]
async fn a_token_for_another_server_or_another_time_opens_nothing() {
    let (world, issuer) = world().await;
    let with = |claim: &str, value: Value| {
        let mut claims = Issuer::claims("alice");
        claims[claim] = value;
        issuer.token(&claims)
    };
    let now = now();
    for (claim, value) in [
        ("aud", json!("https://other.test/mcp")),
        ("aud", json!([])),
        ("aud", json!(null)),
        ("aud", json!(format!("{AUDIENCE}/"))),
        ("iss", json!("https://id.test/realms/other")),
        ("iss", json!(format!("{URL}/"))),
        ("iss", json!([URL])),
        ("exp", json!(now - 3_600)),
        ("exp", json!(null)),
        ("exp", json!("9999999999")),
        ("nbf", json!(now + 3_600)),
        ("nbf", json!("0")),
        ("iat", json!(now + 3_600)),
        ("sub", json!(null)),
        ("sub", json!("")),
        ("sub", json!(["alice"])),
        ("sub", json!("alice\n")),
        ("sub", json!("a".repeat(300))),
        ("cnf", json!({"jkt": "x"})),
        ("exp", json!(-1)),
        ("exp", json!(1e300)),
    ] {
        opens_nothing(&world, &format!("{claim} {value}"), &with(claim, value)).await;
    }
    // Clocks differ by seconds.
    reads_of(&world, &with("exp", json!(now - 5)), "blue").await;
    reads_of(&world, &with("aud", json!(["https://other.test", AUDIENCE])), "blue").await;
}

#[tokio::test]
async fn a_token_that_its_issuer_signed_is_no_guess_at_keys() {
    let issuer = Issuer::new();
    let trusted: Arc<dyn Issuers> = Arc::<Issuer>::clone(&issuer);
    let plan = Plan { issuers: Some(trusted), failures: 3, ..Plan::default() };
    let world = World::with(plan).await;
    let asks = async |token: &str| world.call("GET", "/v1/sessions").key(token).send().await;
    for (claim, value) in [
        ("exp", json!(now() - 3_600)),
        ("nbf", json!(now() + 3_600)),
        ("aud", json!("https://other.test/mcp")),
        ("aud", json!(null)),
        ("sub", json!("")),
    ] {
        let mut claims = Issuer::claims("alice");
        claims[claim] = value;
        for _ in 0..3 {
            asks(&issuer.token(&claims)).await.is(401);
        }
    }
    asks(&issuer.for_("alice")).await.is(200);
    asks(&world.keys["red-member"]).await.is(200);
    // One that it did not sign is one.
    let head = json!({"alg": "EdDSA", "kid": "one"});
    let forged = issuer.signed("stranger", &head, &Issuer::claims("alice"));
    for _ in 0..3 {
        asks(&forged).await.is(401);
    }
    asks(&forged).await.is(429);
}

#[tokio::test]
async fn whoever_no_rule_names_is_refused_and_stands_in_the_operators_log() {
    let (world, issuer) = world().await;
    for subject in ["mallory", "gone", "lost", "Alice", "alice "] {
        opens_nothing(&world, subject, &issuer.for_(subject)).await;
    }
    let operator = &world.keys["local-admin"];
    let log = world.call("GET", "/v1/audit?limit=200").key(operator).send().await.is(200).json();
    let actors: Vec<&str> =
        log["entries"].as_array().unwrap().iter().filter_map(|it| it["actor"].as_str()).collect();
    assert!(actors.contains(&format!("token:{URL}#mallory").as_str()), "{actors:?}");
    assert!(!actors.iter().any(|actor| actor.ends_with("#alice")), "{actors:?}");
    // What is done by a token is noted by issuer and subject, in the log of its own tenant.
    let path = format!("/v1/sessions/{}", crate::kit::session("blue"));
    let ended = world.call("DELETE", &path).key(&issuer.for_("root")).send().await;
    assert!(ended.status < 300, "{}", ended.status);
    let log = world.call("GET", "/v1/audit").key(&issuer.for_("root")).send().await.is(200);
    let text = String::from_utf8_lossy(&log.body).into_owned();
    assert!(text.contains(&format!("token:{URL}#root")), "{text}");
}

#[tokio::test]
async fn subjects_of_an_issuer_whom_nobody_let_in_wait_for_each_other_and_for_nobody_else() {
    let issuer = Issuer::new();
    let trusted: Arc<dyn Issuers> = Arc::<Issuer>::clone(&issuer);
    let world = World::with(Plan { issuers: Some(trusted), rate: 2, ..Plan::default() }).await;
    let asks = async |token: &str| world.call("GET", "/v1/running").key(token).send().await;
    let mut past = Issuer::claims("alice");
    past["exp"] = json!(now() - 3_600);
    for token in [None, Some(issuer.token(&past))] {
        let mut last = None;
        for number in 0..30 {
            let token = token.clone().unwrap_or_else(|| issuer.for_(&format!("nobody-{number}")));
            let answer = asks(&token).await;
            if answer.status != 401 {
                last = Some(answer);
                break;
            }
        }
        let answer = last.expect("never told to wait").is(429);
        answer.problem("too-many");
        assert!(answer.headers.contains_key("retry-after"));
    }
    asks(&issuer.for_("alice")).await.is(200);
    asks(&world.keys["red-member"]).await.is(200);
}

#[tokio::test]
async fn subjects_whom_nobody_let_in_cost_an_issuers_few_lines_and_are_counted() {
    let issuer = Issuer::new();
    let trusted: Arc<dyn Issuers> = Arc::<Issuer>::clone(&issuer);
    let world = World::with(Plan { issuers: Some(trusted), rate: 1_000, ..Plan::default() }).await;
    for number in 0..120 {
        let token = issuer.for_(&format!("nobody-{number}"));
        world.call("GET", "/v1/running").key(&token).send().await.is(401);
    }
    let operator = &world.keys["local-admin"];
    let counted = async {
        loop {
            let log = world.call("GET", "/v1/audit?limit=200").key(operator).send().await.is(200);
            let log = log.json();
            let of = |actor: &str| {
                let entries = log["entries"].as_array().unwrap().iter();
                entries.filter(|it| it["actor"].as_str().unwrap().starts_with(actor)).count()
            };
            let (all, own) = (of(&format!("token:{URL}")), of(&format!("token:{URL}#")));
            if all > own {
                return own;
            }
        }
    };
    let own = tokio::time::timeout(PATIENCE, counted).await.expect("some are lost");
    assert!((60..120).contains(&own), "{own} lines");
}

#[tokio::test]
async fn a_rule_or_a_tenant_that_is_taken_away_closes_the_door_at_once() {
    let (world, issuer) = world().await;
    let (alice, anna) = (issuer.for_("alice"), issuer.for_("anna"));
    reads_of(&world, &alice, "blue").await;
    issuer.says(|setting| setting.allow.retain(|rule| rule.subject.as_deref() != Some("alice")));
    opens_nothing(&world, "its rule is gone", &alice).await;
    reads_of(&world, &anna, "blue").await;
    world.store.registry().set_tenant_disabled("blue", true).await.unwrap();
    assert_eq!(reads(&world, &anna).await.status, 401);
    reads_of(&world, &world.keys["red-member"], "red").await;
    world.store.registry().set_tenant_disabled("blue", false).await.unwrap();
    reads_of(&world, &anna, "blue").await;
    issuer.says(|setting| setting.audience = vec!["https://moved.test/mcp".to_owned()]);
    opens_nothing(&world, "another audience", &anna).await;
    issuer.settings.lock().unwrap().clear();
    opens_nothing(&world, "no issuer", &anna).await;
}

#[tokio::test]
async fn keys_of_nobody_ask_the_issuer_no_more_than_once_a_minute() {
    let (world, issuer) = world().await;
    let claims = Issuer::claims("alice");
    for number in 0..40 {
        let head = json!({"alg": "EdDSA", "kid": format!("made-up-{number}")});
        let flood = issuer.signed("stranger", &head, &claims);
        assert_eq!(reads(&world, &flood).await.status, 401);
    }
    assert_eq!(issuer.asked(), 1);
    reads_of(&world, &issuer.for_("alice"), "blue").await;
    reads_of(&world, &world.keys["red-member"], "red").await;
    assert_eq!(issuer.asked(), 1);
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_harms_nobody_with_a_key() {
    let (world, issuer) = world().await;
    issuer.publishes(None);
    let refused = reads(&world, &issuer.for_("alice")).await.is(503);
    assert!(refused.headers.contains_key("retry-after"));
    reads_of(&world, &world.keys["blue-member"], "blue").await;
    // It is not asked again for a while, whoever comes.
    reads(&world, &issuer.for_("anna")).await.is(503);
    assert_eq!(issuer.asked(), 1);
    // A token that nobody could take is refused all the same.
    let other = unsigned(&json!({"alg": "none"}), &Issuer::claims("alice"));
    reads(&world, &format!("{other}.")).await.is(401);
}

#[tokio::test]
async fn a_session_of_one_subject_is_none_of_anothers() {
    let (world, issuer) = world().await;
    let (alice, anna) = (issuer.for_("alice"), issuer.for_("anna"));
    let call = |bearer: &str| world.call("POST", "/mcp").key(bearer);
    let begun = older(call(&alice), None, &initialize()).send().await.is(200);
    let session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    older(call(&alice), Some(&session), &ready).send().await.is(202);
    let message = call_of(json!({"name": "file_read", "arguments": {"path": "note.txt"}}));
    let within = |bearer: &str| older(call(bearer), Some(&session), &message).send();
    within(&alice).await.is(200);
    for other in [&anna, &world.keys["blue-member"], &world.keys["red-member"]] {
        within(other).await.is(404);
    }
    // Another token of the same subject is of the same.
    let mut claims = Issuer::claims("alice");
    claims["jti"] = json!("2");
    within(&issuer.token(&claims)).await.is(200);
    // A task too.
    let run = json!({
        "name": "agent_teller",
        "arguments": {"task": "tell"},
        "capabilities": tasks(),
    });
    let ask = async |bearer: &str, method: &str, params: Value| {
        answer_of(&newer(call(bearer), method, params).send().await)
    };
    let begun = ask(&alice, "tools/call", run).await;
    let id = begun["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    let none = ask(&anna, "tasks/get", of_task("made-up")).await;
    for method in ["tasks/get", "tasks/cancel"] {
        let refused = ask(&anna, method, of_task(&id)).await;
        assert_eq!(refused["error"], none["error"], "{method}");
    }
    let own = ask(&alice, "tasks/get", of_task(&id)).await;
    assert!(own["result"]["status"].is_string(), "{own}");
}

#[tokio::test]
async fn a_listening_client_is_gone_with_the_rule_that_let_it_in() {
    let (world, issuer) = world().await;
    let mut streams = Vec::new();
    for subject in ["alice", "anna"] {
        let bearer = issuer.for_(subject);
        let begin = older(world.call("POST", "/mcp").key(&bearer), None, &initialize());
        let begun = begin.send().await.is(200);
        let session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let call = world.call("GET", "/mcp").key(&bearer).header("accept", "text/event-stream");
        let call = call.header("mcp-session-id", &session);
        let stream = call.header("mcp-protocol-version", "2025-11-25").open().await;
        assert_eq!(stream.status, 200);
        streams.push(stream);
    }
    let neighbour = streams.pop();
    let stream = streams.pop().unwrap();
    issuer.says(|setting| setting.allow.retain(|rule| rule.subject.as_deref() == Some("anna")));
    tokio::time::timeout(PATIENCE, stream.rest()).await.expect("it still listens");
    drop(neighbour);
    reads_of(&world, &issuer.for_("anna"), "blue").await;
}

#[tokio::test]
async fn a_token_logs_nobody_in_and_whoever_trusts_an_issuer_lets_nobody_in_without_one() {
    let issuer = Issuer::new();
    let trusted: Arc<dyn Issuers> = Arc::<Issuer>::clone(&issuer);
    let world = World::with(Plan { issuers: Some(trusted), keys: false, ..Plan::default() }).await;
    world.call("GET", "/v1/sessions").send().await.is(401);
    world.call("GET", "/v1/sessions").key(&issuer.for_("alice")).send().await.is(200);
    let body = json!({"key": issuer.for_("alice")});
    let call = world.call("POST", "/v1/login").header("origin", &world.origin()).json(&body);
    call.send().await.is(401);
    // Nor when it is trusted no more: that opens nothing to whoever has no key, after a restart neither.
    issuer.settings.lock().unwrap().clear();
    world.call("GET", "/v1/sessions").send().await.is(401);
    assert!(world.store.registry().keys_needed().await.unwrap());
}
