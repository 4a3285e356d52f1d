//! Stopping: nothing new is taken, what runs is served to its end, and what is open ends.

use std::time::Duration;

use belljar_store::MessageStatus;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::client::PATIENCE;
use crate::kit::{Plan, World};
use crate::leaving::{HANGING, hanging, until_running};
use crate::socket::Socket;

/// Waits until the server has returned.
async fn stopped(world: &World) {
    let served = world.served.lock().unwrap().take().unwrap();
    tokio::time::timeout(PATIENCE, served).await.expect("it never stopped").unwrap();
    assert!(TcpStream::connect(world.address).await.is_err(), "it still listens");
}

/// Tells the server to stop, and waits until it says that it does.
async fn drain(world: &World) {
    world.stop.cancel();
    let draining = async { while world.call("GET", "/readyz").send().await.status != 503 {} };
    tokio::time::timeout(PATIENCE, draining).await.expect("it never drains");
    world.call("GET", "/readyz").send().await.is(503).problem("unavailable");
    world.call("GET", "/healthz").send().await.is(200);
}

#[tokio::test]
async fn a_server_that_stops_closes_idle_connections_and_returns() {
    let world = World::new().await;
    world.call("GET", "/readyz").send().await.is(200);
    let idle = TcpStream::connect(world.address).await.unwrap();
    let mut stream = world.call_as("blue-read-only", "GET", "/v1/sessions").open().await;
    assert_eq!(stream.status, 200);
    assert!(stream.next().await.is_none());
    world.stop.cancel();
    stopped(&world).await;
    drop(idle);
}

#[tokio::test]
async fn a_server_that_drains_begins_no_turn_in_any_tenant_and_by_no_entrance() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let (turn, session) = hanging(&world, "blue-member").await;
    drain(&world).await;
    let new = json!({ "agent": "teller", "text": "tell" });
    // Red has not been open before.
    for caller in ["blue-member", "red-member", "local-admin"] {
        let refused = world.call_as(caller, "POST", "/v1/chat").json(&new).send().await.is(503);
        assert!(refused.problem("unavailable")["detail"].as_str().unwrap().contains("draining"));
        assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() > 0);
    }
    let mut socket = Socket::open(&world, "red-member").await;
    let chat = json!({ "type": "chat", "agent": "teller", "text": "tell" });
    let refused: Value = socket.ask(chat).await;
    assert_eq!(refused["problem"]["type"], "/problems/unavailable", "{refused}");
    // Nothing of them is stored, and the turn that runs is as before.
    assert_eq!(
        world.store.for_tenant_name("red").latest_sessions(10).await.unwrap().len(),
        1,
        "the seeded one"
    );
    until_running(&world, 1).await;
    let cancel = format!("/v1/sessions/{session}/cancel");
    world.call_as("blue-member", "POST", &cancel).send().await.is(200);
    assert_eq!(turn.all().await.pop().unwrap().data["status"], "cancelled");
    stopped(&world).await;
}

#[tokio::test]
async fn turns_of_a_server_that_drains_are_watched_read_and_cancelled_on_new_connections() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let (turn, session) = hanging(&world, "blue-member").await;
    drain(&world).await;
    let path = |rest: &str| format!("/v1/sessions/{session}{rest}");
    let mut events = world.call_as("blue-read-only", "GET", &path("/events")).open().await;
    while events.next().await.expect("the stream ended").kind != "text_delta" {}
    for read in [path(""), path("/messages"), path("/questions"), "/v1/questions".to_owned()] {
        world.call_as("blue-read-only", "GET", &read).send().await.is(200);
    }
    let running = world.call_as("blue-read-only", "GET", "/v1/running").send().await.is(200);
    assert_eq!(running.json()["turns"][0]["session"], session.as_str());
    // Who may not do it before may not do it now.
    world.call("GET", &path("")).send().await.is(401);
    world.call_as("red-member", "POST", &path("/cancel")).send().await.is(404);
    world.call_as("blue-read-only", "POST", &path("/cancel")).send().await.is(403);
    let cancelled = world.call_as("blue-member", "POST", &path("/cancel")).send().await.is(200);
    assert_eq!(cancelled.json()["cancelled"], true);
    assert_eq!(turn.all().await.pop().unwrap().data["status"], "cancelled");
    let last = events.all().await.pop().expect("it is told of the end");
    assert_eq!(last.kind, "run_finished", "{last:?}");
    stopped(&world).await;
}

#[tokio::test]
async fn a_caller_whose_turn_does_not_end_in_time_is_told_that_it_is_stored_and_not_done() {
    let drain = Duration::from_millis(50);
    let world = World::with(Plan { transcript: HANGING, drain, ..Plan::default() }).await;
    let body = json!({ "agent": "teller", "text": "tell" });
    let waiting = tokio::spawn(world.call_as("blue-member", "POST", "/v1/chat").json(&body).send());
    let (streamed, _) = hanging(&world, "red-member").await;
    until_running(&world, 2).await;
    world.stop.cancel();
    let answer = waiting.await.unwrap().is(202).json();
    assert_eq!((&answer["status"], &answer["text"]), (&json!("in_flight"), &json!("")));
    let why = answer["error"].as_str().unwrap();
    let session = answer["session"].as_str().unwrap();
    assert!(why.contains("resumed") && why.contains(session), "{why}");
    let done = streamed.all().await.pop().unwrap();
    assert_eq!((done.kind.as_str(), &done.data["status"]), ("done", &json!("in_flight")));
    assert!(done.data["error"].as_str().unwrap().contains("do not send it twice"));
    stopped(&world).await;
    let message = answer["message"].as_str().unwrap();
    let row = world.store.for_tenant_name("blue").read_message(session, message).await.unwrap();
    assert_eq!(row.status, MessageStatus::InFlight, "the next start resumes it");
}
