//! Tokens of an issuer: what they open, and the many that open nothing.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_definition::{SignatureKind, TokenScope};
use belljar_server::IssuerSource;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::KeyPair as _;
use serde_json::{Value, json};

use crate::client::PATIENCE;
use crate::issuer::{
    AUDIENCE, Issuer, OTHER, URL, now, opens_nothing, reads, reads_of, rule, unsigned,
    with_signature, world,
};
use crate::kit::{Plan, World};
use crate::mcp::{answer_of, call_of, initialize, newer, of_task, older, tasks};

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
    let jwk = issuer.issuer_keys(URL).await.unwrap()["keys"][0].to_string().into_bytes();
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
async fn nothing_in_the_head_of_a_token_brings_its_own_key_or_another_meaning() {
    let (world, issuer) = world().await;
    let claims = Issuer::claims("alice");
    let with = |by: &str, name: &str, value: &Value| {
        let mut head = json!({"alg": "EdDSA", "kid": "one", "typ": "at+jwt"});
        head[name] = value.clone();
        issuer.signed(by, &head, &claims)
    };
    let (_, stranger) = &issuer.keys[2];
    let x = URL_SAFE_NO_PAD.encode(stranger.public_key().as_ref());
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": x});
    // A key that the token itself names, or says where it is.
    for (name, value) in [
        ("jwk", jwk.clone()),
        ("jku", json!("https://stranger.test/keys")),
        ("jku", json!(format!("{URL}/keys"))),
        ("x5u", json!("https://stranger.test/keys")),
        ("x5c", json!(["bm8="])),
        ("kid", json!("stranger")),
        ("kid", json!("../keys")),
        ("kid", json!("one' OR '1'='1")),
        ("kid", json!(["one"])),
        ("kid", json!(null)),
    ] {
        let why = format!("{name} {value}");
        opens_nothing(&world, &why, &with("stranger", name, &value)).await;
    }
    // What has to be understood, and is not.
    for (name, value) in [
        ("crit", json!(["b64"])),
        ("crit", json!([])),
        ("alg", json!(["EdDSA"])),
        ("alg", json!("eddsa")),
        ("typ", json!("dpop+jwt")),
        ("typ", json!(1)),
    ] {
        let why = format!("{name} {value}");
        opens_nothing(&world, &why, &with("one", name, &value)).await;
    }
    let encoded = unsigned(&json!({"alg": "EdDSA", "kid": "one", "b64": false}), &claims);
    let (head, _) = encoded.split_once('.').unwrap();
    let text = format!("{head}.{claims}");
    let (_, own) = &issuer.keys[0];
    let plain = with_signature(&text, own.sign(text.as_bytes()).as_ref());
    opens_nothing(&world, "a body that is not encoded", &plain).await;
    // A time that is none, or is past.
    for value in [json!(-1), json!(-1e18), json!(0), json!(1.5), json!(1e300), json!(i64::MIN)] {
        let mut claims = claims.clone();
        claims["exp"] = value.clone();
        opens_nothing(&world, &format!("exp {value}"), &issuer.token(&claims)).await;
    }
    assert_eq!(issuer.asked(), 1, "nobody else was asked");
    // The end of all time is one, and so is a part of a second.
    for value in [json!(i64::MAX), json!(9_999_999_999.5)] {
        let mut claims = claims.clone();
        claims["exp"] = value;
        reads_of(&world, &issuer.token(&claims), "blue").await;
    }
}

#[tokio::test]
async fn two_issuers_whose_keys_have_one_name_sign_nothing_for_each_other() {
    let (world, issuer) = world().await;
    let mut second = issuer.settings.lock().unwrap()[0].clone();
    (second.name, second.url) = ("other".to_owned(), OTHER.to_owned());
    second.allow = vec![rule("alice", "red", TokenScope::Member)];
    issuer.settings.lock().unwrap().push(second);
    let head = json!({"alg": "EdDSA", "kid": "one"});
    let of = |url: &str, key: &str| {
        let mut claims = Issuer::claims("alice");
        claims["iss"] = json!(url);
        issuer.signed(key, &head, &claims)
    };
    reads_of(&world, &of(URL, "one"), "blue").await;
    reads_of(&world, &of(OTHER, "stranger"), "red").await;
    opens_nothing(&world, "the second's key", &of(URL, "stranger")).await;
    opens_nothing(&world, "the first's key", &of(OTHER, "one")).await;
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
    let trusted: Arc<dyn IssuerSource> = Arc::<Issuer>::clone(&issuer);
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
    let trusted: Arc<dyn IssuerSource> = Arc::<Issuer>::clone(&issuer);
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
    let trusted: Arc<dyn IssuerSource> = Arc::<Issuer>::clone(&issuer);
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
    world.store.tenant_registry().set_tenant_disabled("blue", true).await.unwrap();
    assert_eq!(reads(&world, &anna).await.status, 401);
    reads_of(&world, &world.keys["red-member"], "red").await;
    world.store.tenant_registry().set_tenant_disabled("blue", false).await.unwrap();
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
async fn a_listening_client_is_gone_with_its_tenant_and_with_its_algorithm() {
    let (world, issuer) = world().await;
    let listens = async |bearer: &str| {
        let begin = older(world.call("POST", "/mcp").key(bearer), None, &initialize());
        let begun = begin.send().await.is(200);
        let session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let call = world.call("GET", "/mcp").key(bearer).header("accept", "text/event-stream");
        let call = call.header("mcp-session-id", &session);
        let stream = call.header("mcp-protocol-version", "2025-11-25").open().await;
        assert_eq!(stream.status, 200);
        stream
    };
    let stream = listens(&issuer.for_("alice")).await;
    world.store.tenant_registry().set_tenant_disabled("blue", true).await.unwrap();
    tokio::time::timeout(PATIENCE, stream.rest()).await.expect("it still listens");
    world.store.tenant_registry().set_tenant_disabled("blue", false).await.unwrap();
    let stream = listens(&issuer.for_("alice")).await;
    issuer.says(|setting| setting.algorithms = vec![SignatureKind::Es256]);
    tokio::time::timeout(PATIENCE, stream.rest()).await.expect("it still listens");
    reads_of(&world, &world.keys["red-member"], "red").await;
}

#[tokio::test]
async fn a_token_logs_nobody_in_and_whoever_trusts_an_issuer_lets_nobody_in_without_one() {
    let issuer = Issuer::new();
    let trusted: Arc<dyn IssuerSource> = Arc::<Issuer>::clone(&issuer);
    let world = World::with(Plan { issuers: Some(trusted), keys: false, ..Plan::default() }).await;
    let told = world.call("GET", "/v1/sessions").send().await.is(401).problem("no-key");
    let hint = told["hint"].as_str().unwrap();
    assert!(hint.contains("`bj_…`") && hint.contains("a token of an issuer"), "{told}");
    world.call("GET", "/v1/sessions").key(&issuer.for_("alice")).send().await.is(200);
    let body = json!({"key": issuer.for_("alice")});
    let call = world.call("POST", "/v1/login").header("origin", &world.origin()).json(&body);
    call.send().await.is(401);
    // Nor when it is trusted no more: that opens nothing to whoever has no key, after a restart neither.
    issuer.settings.lock().unwrap().clear();
    world.call("GET", "/v1/sessions").send().await.is(401);
    assert!(world.store.tenant_registry().keys_needed().await.unwrap());
}
