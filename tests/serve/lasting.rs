//! How long streams are open: a day, whatever opened them, and no longer.

use std::sync::Arc;
use std::time::Duration;

use belljar_server::IssuerSource;
use serde_json::json;

use crate::client::{Call, PATIENCE};
use crate::issuer::Issuer;
use crate::kit::{Plan, World, session};
use crate::mcp::{initialize, older};
use crate::socket::Socket;

async fn ends(stream: crate::client::Stream, what: &str) {
    assert_eq!(stream.status, 200, "{what}");
    tokio::time::timeout(PATIENCE, stream.rest())
        .await
        .unwrap_or_else(|_| panic!("{what} goes on"));
}

/// INV-382, INV-376: the times that the guide gives.
#[test]
fn a_stream_lasts_a_day_and_a_look_at_issuers_a_second() {
    assert_eq!(belljar_server::DEFAULT_STREAM_LIFE, Duration::from_secs(24 * 60 * 60));
    assert_eq!(belljar_server::DEFAULT_ISSUER_CHECK, Duration::from_secs(1));
}

/// INV-382.
#[tokio::test]
async fn a_stream_ends_with_its_day_whatever_opened_it_and_is_opened_anew() {
    let issuer = Issuer::new();
    let trusted: Arc<dyn IssuerSource> = Arc::<Issuer>::clone(&issuer);
    let plan = Plan { issuers: Some(trusted), stream_life: Duration::ZERO, ..Plan::default() };
    let world = World::with(plan).await;
    // One that its issuer says is good for ever.
    let mut claims = Issuer::claims("alice");
    claims["exp"] = json!(i64::MAX);
    let token = issuer.token(&claims);
    let events = format!("/v1/sessions/{}/events", session("blue"));
    let cookie = world.log_in_as("blue-member").await;
    for (what, call) in [
        ("a key's", world.call_as("blue-member", "GET", &events)),
        ("a token's", world.call("GET", &events).key(&token)),
        ("a login's", world.call_with(&cookie, "GET", &events)),
    ] {
        ends(call.open().await, what).await;
    }
    let mcp = |call: Call| call.key(&token);
    let begin = older(mcp(world.call("POST", "/mcp")), None, &initialize());
    let begun = begin.send().await;
    // The answer itself is a stream: it may be over before its first word.
    assert_eq!(begun.status, 200);
    let id = begun.headers["mcp-session-id"].to_str().unwrap();
    let listening = mcp(world.call("GET", "/mcp")).header("accept", "text/event-stream");
    let listening = listening.header("mcp-session-id", id);
    ends(listening.header("mcp-protocol-version", "2025-11-25").open().await, "MCP's").await;
    let mut socket = Socket::open(&world, "blue-member").await;
    while socket.hear().await.is_some() {}
    // Whoever comes again is let in.
    world.call("GET", "/v1/sessions").key(&token).send().await.is(200);
    world.call_as("blue-member", "GET", "/v1/sessions").send().await.is(200);
}
