//! Keys that are revoked and tenants that are deleted while they are at work.

use belljar_store::KeyScope;
use serde_json::{Value, json};

use crate::client::{PATIENCE, Stream};
use crate::kit::{Plan, World};
use crate::socket::Socket;

/// A model that never answers.
pub(crate) const HANGING: &str = "
transcript: 1
agents:
  - agent: teller
    turns:
      - say: Thinking.
        hang: true
";

/// A turn that hangs, seen by its caller, and its session.
pub(crate) async fn hanging(world: &World, caller: &str) -> (Stream, String) {
    let body = json!({ "agent": "teller", "text": "tell", "stream": true });
    let mut stream = world.call_as(caller, "POST", "/v1/chat").json(&body).open().await;
    loop {
        let event = stream.next().await.expect("the turn ended");
        if event.kind == "text_delta" {
            let session = event.data["session"].as_str().unwrap().to_owned();
            return (stream, session);
        }
    }
}

async fn running(world: &World, caller: &str) -> usize {
    let answer = world.call_as(caller, "GET", "/v1/running").send().await.is(200).json();
    answer["turns"].as_array().unwrap().len()
}

/// Waits until so many turns run, of all tenants.
pub(crate) async fn until_running(world: &World, turns: usize) {
    let line = format!("belljar_turns_running {turns}");
    let reached = async {
        loop {
            let page = world.call_as("local-admin", "GET", "/metrics").send().await.is(200);
            if String::from_utf8(page.body).unwrap().lines().any(|one| one == line) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.expect("it never came to that");
}

#[tokio::test]
async fn a_deleted_tenants_turns_end_and_nothing_of_them_is_written() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let (blue, session) = hanging(&world, "blue-member").await;
    let (red, neighbour) = hanging(&world, "red-member").await;
    assert!(world.store.tenant_registry().delete_tenant("blue").await.unwrap());
    until_running(&world, 1).await;
    assert!(blue.all().await.iter().all(|event| event.kind != "done"));
    world.call_as("blue-admin", "GET", "/v1/running").send().await.is(401);
    let store = world.store.for_tenant_name("blue");
    assert!(store.latest_sessions(10).await.unwrap().is_empty());
    assert!(store.list_messages(&session).await.unwrap_or_default().is_empty());
    // The neighbour's turn has run on, and is saved.
    assert_eq!(running(&world, "red-member").await, 1);
    let cancel = format!("/v1/sessions/{neighbour}/cancel");
    world.call_as("red-member", "POST", &cancel).json(&json!({})).send().await.is(200);
    let done = red.all().await.pop().unwrap();
    assert_eq!((done.kind.as_str(), &done.data["status"]), ("done", &json!("cancelled")));
}

#[tokio::test]
async fn a_tenant_that_was_made_again_is_another() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let (blue, _) = hanging(&world, "blue-member").await;
    let registry = world.store.tenant_registry();
    assert!(registry.delete_tenant("blue").await.unwrap());
    registry.create_tenant("blue", 77).await.unwrap();
    until_running(&world, 0).await;
    assert!(blue.all().await.iter().all(|event| event.kind != "done"));
    assert!(world.store.for_tenant_name("blue").latest_sessions(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_tenant_that_was_made_again_sees_nothing_that_its_predecessor_has_open() {
    // So long that the predecessor is still open while the next one asks.
    let plan = Plan { transcript: HANGING, tenant_check: PATIENCE, ..Plan::default() };
    let world = World::with(plan).await;
    let (_blue, session) = hanging(&world, "blue-member").await;
    let (_red, _) = hanging(&world, "red-member").await;
    let registry = world.store.tenant_registry();
    assert!(registry.delete_tenant("blue").await.unwrap());
    registry.create_tenant("blue", 77).await.unwrap();
    let next = world.new_key("blue", KeyScope::Admin).await;
    let call = |method: &str, path: &str| world.call(method, path).key(&next);
    for path in ["/v1/running", "/v1/questions", "/v1/sessions"] {
        let body = String::from_utf8(call("GET", path).send().await.is(200).body).unwrap();
        assert!(!body.contains(&session), "{path}: {body}");
    }
    let cancel = format!("/v1/sessions/{session}/cancel");
    call("POST", &cancel).json(&json!({})).send().await.is(404);
    // The neighbour's turn runs on.
    assert_eq!(running(&world, "red-member").await, 1);
}

#[tokio::test]
async fn streams_and_sockets_of_a_revoked_key_end_and_its_turn_goes_on() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let (turn, session) = hanging(&world, "blue-member").await;
    let path = format!("/v1/sessions/{session}/events");
    let events = world.call_as("blue-member", "GET", &path).open().await;
    let mut socket = Socket::open(&world, "blue-member").await;
    let neighbour = Socket::open(&world, "blue-admin").await;
    let key = &world.keys["blue-member"];
    assert!(world.store.tenant_registry().revoke_key(&key[3..19], 9).await.unwrap());
    let seen = turn.all().await;
    assert!(seen.iter().all(|event| event.kind != "done"), "{seen:?}");
    let seen = events.all().await;
    assert!(seen.iter().any(|event| event.kind == "run_started"), "{seen:?}");
    assert_eq!(socket.hear().await, None, "without a word from the client");
    assert_eq!(running(&world, "blue-admin").await, 1);
    let mut neighbour = neighbour;
    let answer: Value = neighbour.ask(json!({ "type": "ping" })).await;
    assert_eq!(answer["type"], "pong");
}

#[tokio::test]
async fn a_tenant_that_was_made_again_reads_nothing_of_who_was_refused_before_it() {
    // Counted, and not yet written when the tenant is deleted.
    let plan = Plan { tenant_check: PATIENCE, stranger_notes: PATIENCE, ..Plan::default() };
    let world = World::with(plan).await;
    let (first, stranger) = (&world.keys["blue-read-only"], &world.keys["mixed"]);
    let red = world.keys["red-read-only"].clone();
    // More than have a line each.
    for key in std::iter::repeat_n(first, 70).chain([stranger, &red]) {
        let refused = world.call("DELETE", "/v1/sessions").key(key).send().await.status;
        assert!(refused == 401 || refused == 403, "{refused}");
    }
    // Somebody with a part of red's key.
    let wrong = format!("{}{}", &red[..20], &first[20..]);
    world.call("GET", "/v1/sessions").key(&wrong).send().await.is(401);
    let registry = world.store.tenant_registry();
    assert!(registry.delete_tenant("blue").await.unwrap());
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    registry.create_tenant("blue", i64::try_from(now).unwrap()).await.unwrap();
    let next = world.new_key("blue", KeyScope::Admin).await;
    world.call("GET", "/v1/sessions").key(&next).send().await.is(200);
    world.stop.cancel();
    let served = world.served.lock().unwrap().take().unwrap();
    tokio::time::timeout(PATIENCE, served).await.expect("it never stopped").unwrap();
    let log = async |tenant: &str| {
        let page =
            world.store.for_tenant_name(tenant).read_audit(None, 1_000, 1 << 20).await.unwrap();
        page.rows.into_iter().map(|entry| entry.action).collect::<Vec<_>>()
    };
    assert_eq!(log("blue").await, Vec::<String>::new());
    // The neighbour's are all there.
    let mut red = log("red").await;
    red.sort();
    assert_eq!(red, ["refused", "strangers"]);
}
