//! Keys: how they are sent, what they open, what is noted of them.

use serde_json::Value;

use crate::client::PATIENCE;
use crate::kit::{Plan, World, make_keys, session};

#[tokio::test]
async fn a_refused_key_learns_nothing_and_is_told_where_keys_go() {
    let world = World::new().await;
    let mut told = Vec::new();
    for caller in ["unknown", "mixed", "revoked", "closed-admin"] {
        let answer = world.call_as(caller, "GET", "/v1/sessions").send().await.is(401);
        assert_eq!(answer.headers["www-authenticate"], "Bearer realm=\"belljar\"");
        told.push(answer.problem("no-key"));
    }
    told.dedup();
    assert_eq!(told.len(), 1, "all of them the same: {told:?}");
    for header in ["bj_x", "Basic YTpi", "Bearer", "Bearer bj_short"] {
        let call = world.call("GET", "/v1/sessions").header("authorization", header);
        call.send().await.is(401).problem("no-key");
    }
}

#[tokio::test]
async fn a_key_that_is_revoked_opens_nothing_from_then_on() {
    let world = World::new().await;
    let read = async || world.call_as("blue-member", "GET", "/v1/sessions").send().await.status;
    assert_eq!(read().await, 200);
    let key = &world.keys["blue-member"];
    assert!(world.store.tenant_registry().revoke_key(&key[3..19], 9).await.unwrap());
    assert_eq!(read().await, 401);
    world.call_as("blue-admin", "GET", "/v1/sessions").send().await.is(200);
}

#[tokio::test]
async fn without_any_key_this_machine_is_let_in_until_there_is_one() {
    let world = World::with(Plan { keys: false, ..Plan::default() }).await;
    let sessions = world.call("GET", "/v1/sessions").send().await.is(200).json();
    assert_eq!(sessions["sessions"][0]["id"], session("local"));
    world.call("GET", "/metrics").send().await.is(200);
    let other = format!("/v1/sessions/{}", session("blue"));
    world.call("GET", &other).send().await.is(404);
    // Not even then does a wrong key become nobody's.
    let wrong = world.call("GET", "/v1/sessions").header("authorization", "Bearer bj_x");
    wrong.send().await.is(401);
}

#[tokio::test]
async fn a_placeholder_for_a_key_is_passed_over_until_there_is_a_key() {
    const PLACEHOLDERS: [&str; 5] =
        ["Bearer none", "Bearer sk-no-key-required", "Bearer ollama", "Bearer", "Basic bm9uZTo="];
    let world = World::with(Plan { keys: false, ..Plan::default() }).await;
    let send = async |text: &str| {
        world.call("GET", "/v1/models").header("authorization", text).send().await.status
    };
    for text in PLACEHOLDERS {
        assert_eq!(send(text).await, 200, "{text}");
    }
    let foreign = world.call("GET", "/v1/sessions").header("authorization", "Bearer none");
    foreign.header("origin", "https://elsewhere.test").send().await.is(403);
    make_keys(&world.store).await;
    let shut = async { while send("Bearer none").await != 401 {} };
    tokio::time::timeout(PATIENCE, shut).await.expect("it is still open");
    let before = world.state("local").await;
    for text in PLACEHOLDERS {
        assert_eq!(send(text).await, 401, "{text}");
    }
    assert_eq!(world.state("local").await, before);
}

#[tokio::test]
async fn a_server_that_had_a_key_stays_shut_when_the_last_one_goes() {
    let world = World::with(Plan { keys: false, ..Plan::default() }).await;
    world.call("GET", "/v1/audit").send().await.is(200);
    let registry = world.store.tenant_registry();
    let made = make_keys(&world.store).await;
    let read = async || world.call("GET", "/v1/audit").send().await.status;
    // What was found to be open is believed for a moment.
    let shut = async { while read().await != 401 {} };
    tokio::time::timeout(PATIENCE, shut).await.expect("it is still open");
    for tenant in ["blue", "red", "closed"] {
        registry.delete_tenant(tenant).await.unwrap();
    }
    for key in registry.list_keys(None).await.unwrap() {
        registry.revoke_key(&key.id, 9).await.unwrap();
    }
    let before = world.state("local").await;
    for route in ["/v1/audit", "/v1/sessions", "/metrics"] {
        world.call("GET", route).send().await.is(401).problem("no-key");
    }
    world.call("DELETE", "/v1/sessions").send().await.is(401);
    world.call("GET", "/v1/sessions").key(&made["local-admin"]).send().await.is(401);
    assert_eq!(world.state("local").await, before);
    world.call("GET", "/healthz").send().await.is(200);
}

#[tokio::test]
async fn every_change_and_every_refusal_is_in_the_audit_log_of_its_tenant() {
    let world = World::new().await;
    let path = format!("/v1/sessions/{}", session("blue"));
    world.call_as("blue-read-only", "DELETE", &path).send().await.is(403);
    world.call_as("blue-member", "DELETE", &path).send().await.is(200);
    world.call_as("mixed", "DELETE", &path).send().await.is(401);
    world.call("GET", "/v1/sessions").send().await.is(401);
    let log = world.call_as("blue-admin", "GET", "/v1/audit").send().await.is(200).json();
    let lines: Vec<(&str, &str)> = log["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["actor"].as_str().unwrap(), line["action"].as_str().unwrap()))
        .filter(|(_, action)| *action != "strangers")
        .collect();
    let actor = |caller: &str| format!("key:{}", &world.keys[caller][3..19]);
    let expected = [(actor("blue-member"), "delete_session"), (actor("blue-read-only"), "refused")];
    let expected: Vec<_> = expected.iter().map(|(who, what)| (who.as_str(), *what)).collect();
    assert_eq!(lines, expected, "the newest first");
    let deleted = |line: &&Value| line["action"] == "delete_session";
    let entry = log["entries"].as_array().unwrap().iter().find(deleted).unwrap();
    assert_eq!(entry["object"], format!("DELETE {path}"));
    assert_eq!(entry["detail"]["status"], 200);
}

/// The counts of strangers in a tenant's log, added up, and the lines that hold them.
async fn strangers(world: &World, admin: &str) -> (u64, usize) {
    let log = world.call_as(admin, "GET", "/v1/audit?limit=200").send().await.is(200).json();
    let lines = log["entries"].as_array().unwrap();
    let lines: Vec<_> = lines.iter().filter(|line| line["action"] == "strangers").collect();
    assert!(lines.iter().all(|line| line["actor"] == "nobody"), "{lines:#?}");
    let counts = lines.iter().flat_map(|line| line["detail"]["counts"].as_object().unwrap());
    (counts.map(|(_, count)| count.as_u64().unwrap()).sum(), lines.len())
}

#[tokio::test]
async fn strangers_are_counted_and_silence_no_refusal_of_a_member() {
    let world = World::with(Plan { stranger_notes: PATIENCE, ..Plan::default() }).await;
    let path = format!("/v1/sessions/{}", session("blue"));
    for _ in 0..10 {
        for _ in 0..5 {
            world.call("GET", "/v1/sessions").header("host", "evil.test").send().await.is(421);
            world.call("GET", "/v1/sessions").send().await.is(401);
            world.call_as("mixed", "DELETE", &path).send().await.is(401);
        }
        world.call_as("local-read-only", "DELETE", "/v1/sessions").send().await.is(403);
        world.call_as("blue-read-only", "DELETE", &path).send().await.is(403);
        world.call_as("revoked", "DELETE", &path).send().await.is(401);
    }
    for (admin, own) in [("local-admin", "local-read-only"), ("blue-admin", "blue-read-only")] {
        let log = world.call_as(admin, "GET", "/v1/audit?limit=200").send().await.is(200).json();
        let lines = log["entries"].as_array().unwrap();
        let of = |caller: &str| {
            let actor = format!("key:{}", &world.keys[caller][3..19]);
            lines.iter().filter(|line| line["actor"] == actor).count()
        };
        assert_eq!(of(own), 10, "each refusal of a member");
        // Who has a revoked key has proven it; who names another's has proven nothing.
        assert_eq!(of("revoked"), if admin == "local-admin" { 10 } else { 0 });
        assert_eq!(of("blue-admin"), 0);
    }
    assert_eq!(strangers(&world, "local-admin").await, (0, 0), "their line comes with time");
}

#[tokio::test]
async fn what_strangers_did_is_in_few_lines_and_none_is_lost() {
    let world = World::new().await;
    let path = format!("/v1/sessions/{}", session("blue"));
    for _ in 0..100 {
        world.call("GET", "/v1/sessions").header("host", "evil.test").send().await.is(421);
        world.call_as("mixed", "DELETE", &path).send().await.is(401);
    }
    for admin in ["local-admin", "blue-admin"] {
        let counted = async {
            loop {
                let (count, lines) = strangers(&world, admin).await;
                if count == 100 {
                    return lines;
                }
            }
        };
        let lines = tokio::time::timeout(PATIENCE, counted).await.expect("some are lost");
        assert!(lines < 100, "{lines} lines");
    }
    assert_eq!(strangers(&world, "red-admin").await, (0, 0), "the neighbour");
}

#[tokio::test]
async fn a_key_that_asks_too_often_waits_and_others_do_not() {
    let world = World::with(Plan { rate: 2, ..Plan::default() }).await;
    let mut last = None;
    for _ in 0..30 {
        let answer = world.call_as("blue-admin", "GET", "/v1/running").send().await;
        if answer.status != 200 {
            last = Some(answer);
            break;
        }
    }
    let answer = last.expect("never refused").is(429);
    answer.problem("too-many");
    let wait: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=2).contains(&wait));
    world.call_as("red-admin", "GET", "/v1/running").send().await.is(200);
}
