//! The subjects of an issuer, beside each other in one tenant: what one of them has is none of another's.

use std::sync::Arc;

use belljar_definition::{TokenRule, TokenScope};
use belljar_server::IssuerSource;
use serde_json::{Value, json};

use crate::issuer::{Issuer, reads_of, world};
use crate::kit::{Plan, World};
use crate::mcp::{answer_of, initialize, newer, older};

/// INV-383.
#[tokio::test]
async fn the_subjects_of_a_tenant_have_so_many_sessions_together_and_a_neighbour_has_its_own() {
    let (world, issuer) = world().await;
    issuer.says(|setting| {
        let every = TokenRule {
            subject: None,
            claim: None,
            tenant: "blue".into(),
            scope: TokenScope::Member,
        };
        setting.allow.push(TokenRule { claim: Some(("team".into(), "blue".into())), ..every });
    });
    let of = |number: usize| {
        let mut claims = Issuer::claims(&format!("subject-{number}"));
        claims["team"] = json!("blue");
        issuer.token(&claims)
    };
    let begin =
        |bearer: &str| older(world.call("POST", "/mcp").key(bearer), None, &initialize()).send();
    let mut last = None;
    for number in 0..260 {
        let bearer = of(number);
        let answer = begin(&bearer).await;
        if number < 256 {
            let answer = answer.is(200);
            last = Some((bearer, answer.headers["mcp-session-id"].to_str().unwrap().to_owned()));
            continue;
        }
        let problem = answer.is(429).problem("too-many");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("this tenant has 256 sessions"), "{detail}");
    }
    begin(&world.keys["blue-member"]).await.is(429).problem("too-many");
    // A neighbour has its places, and a call without a session needs none.
    begin(&world.keys["red-member"]).await.is(200);
    reads_of(&world, &world.keys["red-member"], "red").await;
    // One that ends makes room for one.
    let (bearer, session) = last.unwrap();
    let end = world.call("DELETE", "/mcp").key(&bearer);
    older(end, Some(&session), &json!({})).send().await.is(204);
    begin(&world.keys["blue-member"]).await.is(200);
    begin(&of(0)).await.is(429);
}

/// The call that a person is to be asked about, and what else it has.
fn reading(more: &Value) -> Value {
    let mut params = json!({"name": "file_read", "arguments": {"path": "note.txt"}});
    params["capabilities"] = json!({"elicitation": {"form": {}}});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    params
}

/// INV-375.
#[tokio::test]
async fn a_request_state_is_good_for_its_own_subject_outside_sessions_and_once() {
    let issuer = Issuer::new();
    let trusted: Arc<dyn IssuerSource> = Arc::<Issuer>::clone(&issuer);
    let settings = "[grants.mcp]\ntools = { file_read = 'ask' }\n";
    let world = World::with(Plan { issuers: Some(trusted), settings, ..Plan::default() }).await;
    for tenant in ["blue", "red"] {
        let path = world.dir.path().join(tenant).join("workspace/note.txt");
        std::fs::write(path, format!("a note of {tenant}'s\n")).unwrap();
    }
    let asks = async |bearer: &str, more: &Value| {
        let call = world.call("POST", "/mcp").key(bearer);
        answer_of(&newer(call, "tools/call", reading(more)).send().await)
    };
    let state_of = async |bearer: &str| {
        let asked = asks(bearer, &json!({})).await;
        let state = asked["result"]["requestState"].as_str();
        state.unwrap_or_else(|| panic!("{asked}")).to_owned()
    };
    let yes = |state: &str| {
        let yes = json!({"action": "accept", "content": {"answer": "yes"}});
        json!({"requestState": state, "inputResponses": {"permission": yes}})
    };
    let refused = |answer: &Value, by: &str| {
        assert_eq!(answer["error"]["code"], -32602, "{by}: {answer}");
        assert!(!answer.to_string().contains("a note of"), "{by}: {answer}");
    };
    let alice = issuer.for_("alice");
    let state = state_of(&alice).await;
    // Another subject of the same tenant, a key of it, another tenant's.
    let others = [issuer.for_("anna"), issuer.for_("root"), world.keys["blue-member"].clone()];
    for other in others.iter().chain([&world.keys["red-member"]]) {
        refused(&asks(other, &yes(&state)).await, other);
    }
    // Its own session of the protocol is another client.
    let call = || world.call("POST", "/mcp").key(&alice);
    let begun = older(call(), None, &initialize()).send().await.is(200);
    let session = begun.headers["mcp-session-id"].to_str().unwrap();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": reading(&yes(&state))});
    let within = older(call(), Some(session), &message).send().await;
    refused(&answer_of(&within), "in a session");
    // Another token of the same subject brings it, once.
    let mut claims = Issuer::claims("alice");
    claims["jti"] = json!("2");
    let again = issuer.token(&claims);
    let answer = asks(&again, &yes(&state)).await;
    assert!(answer.to_string().contains("a note of blue's"), "{answer}");
    for bearer in [&again, &alice] {
        refused(&asks(bearer, &yes(&state)).await, "a second time");
    }
    // Nor is a key's good for a subject, or for another key.
    let state = state_of(&world.keys["blue-member"]).await;
    for other in [&alice, &world.keys["blue-admin"], &world.keys["red-member"]] {
        refused(&asks(other, &yes(&state)).await, other);
    }
    let answer = asks(&world.keys["blue-member"], &yes(&state)).await;
    assert!(answer.to_string().contains("a note of blue's"), "{answer}");
    // With the rule that let it in the state is gone too.
    let state = state_of(&alice).await;
    issuer.says(|setting| setting.allow.retain(|rule| rule.subject.as_deref() != Some("alice")));
    let call = newer(call(), "tools/call", reading(&yes(&state)));
    call.send().await.is(401);
}

/// INV-381.
#[tokio::test]
async fn a_flood_of_tokens_costs_one_look_at_the_settings() {
    let issuer = Issuer::new();
    let trusted: Arc<dyn IssuerSource> = Arc::<Issuer>::clone(&issuer);
    let issuer_check = std::time::Duration::from_secs(3_600);
    let world = World::with(Plan { issuers: Some(trusted), issuer_check, ..Plan::default() }).await;
    let head = json!({"alg": "EdDSA", "kid": "one"});
    let forged = issuer.signed("stranger", &head, &Issuer::claims("alice"));
    for number in 0..50 {
        let call = || world.call("GET", "/v1/sessions");
        call().key(&issuer.for_("alice")).send().await.is(200);
        call().key(&issuer.for_(&format!("nobody-{number}"))).send().await.is(401);
        call().key(&forged).send().await.is(401);
        call().send().await.is(401);
        world.call("GET", "/.well-known/oauth-protected-resource/mcp").send().await.is(200);
        world.call_as("red-member", "GET", "/v1/sessions").send().await.is(200);
    }
    assert_eq!(issuer.looked(), 1);
}
