//! Attacks that use up a server's memory, requests or turns. The neighbour must be answered all the while.

use serde_json::json;

use super::super::client::{CallerRequest, get_request, new_request};
use super::super::stage::ServerStage;
use super::{Row, escape_unless, row};
use crate::attack::{Escape, Stopped, Verdict};

/// The most bytes by which the server may be larger after such an attack: what requests of one caller may
/// hold, and what the allocator keeps.
const GROWTH: u64 = 192 << 20;

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-bodies-unfinished",
        "sends all but the last byte of 100 bodies of 4 MiB",
        "bytes of bodies under way (INV-115)",
        "bytes larger",
        hold_bodies
    ),
    row!(
        "server-readers-slow",
        "asks 40 times for all that was said, and reads nothing",
        "bytes of answers under way (INV-115)",
        "bytes larger",
        hold_readers
    ),
    row!(
        "server-requests-without-end",
        "asks as fast as it can with a key that may look",
        "requests a second of a key (INV-99)",
        "too-many",
        flood_requests
    ),
    row!(
        "server-turns-many",
        "begins more turns than its tenant may have",
        "turns of a tenant (INV-96)",
        "too-many",
        flood_turns
    ),
];

/// Opens connections that have sent this request, keeps them open, and checks the server's growth.
async fn hold_connections(stage: &ServerStage, number: usize, ask: &CallerRequest) -> Stopped {
    let (caller, before) =
        (stage.client_for("red-member"), stage.resident_bytes().unwrap_or_default());
    let mut wires = Vec::new();
    for _ in 0..number {
        if let Ok(wire) = caller.send_open(ask).await {
            wires.push(wire);
        }
    }
    let answer = stage.client_for("blue-member").send(&get_request("/v1/sessions")).await?;
    escape_unless(answer.status == 200, || answer.body.clone())?;
    let grown = stage.resident_bytes().unwrap_or_default().saturating_sub(before);
    escape_unless(grown <= GROWTH, || format!("the server is {grown} bytes larger"))?;
    Ok(Verdict::with_words(format!("the server is {grown} bytes larger")))
}

/// Attack `server-bodies-unfinished`: the attacker sends all but the last byte of 100 bodies of 4 MiB.
async fn hold_bodies(stage: &ServerStage) -> Stopped {
    let body = "a".repeat((4 << 20) - 1);
    let ask = new_request("POST", "/v1/chat").with_json_text(&body).without_last_byte();
    hold_connections(stage, 100, &ask).await
}

/// Attack `server-readers-slow`: the attacker asks 40 times for all that was said, and reads nothing.
async fn hold_readers(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    // The attacker first stores a message of the largest size, so there is much to read.
    let body = json!({ "agent": "teller", "text": "a".repeat(2 << 20) });
    let answer = stage
        .client_for("red-member")
        .send(&new_request("POST", "/v1/chat").with_json(&body))
        .await?;
    let session = answer.json_field("session")?;
    let told = hold_connections(
        stage,
        40,
        &get_request(&format!("/v1/sessions/{session}/messages?full=true")),
    )
    .await;
    let path = format!("/v1/sessions/{session}");
    stage.client_for("red-member").send(&new_request("DELETE", &path)).await?;
    told
}

/// Attack `server-requests-without-end`: the attacker asks as fast as it can with a key that may look.
async fn flood_requests(stage: &ServerStage) -> Stopped {
    let own = stage.another_with("requests_per_second = 20").await?;
    let caller = own.client_for("red-reader");
    // Many requests are sent at once on one connection, which is faster than one after the other.
    let ask = get_request("/v1/running");
    let mut wire = caller.connect().await?;
    wire.write(&ask.to_bytes(&caller).repeat(500)).await?;
    wire.write(&ask.with_line("connection: close").to_bytes(&caller)).await?;
    let text = wire.read_rest().await?;
    let neighbour = own.client_for("blue-member").send(&get_request("/v1/running")).await?;
    own.close().await?;
    escape_unless(neighbour.status == 200, || neighbour.body.clone())?;
    match text.split("HTTP/1.1 429").nth(1) {
        Some(told) => Ok(Verdict::with_words(told)),
        None => Err(Escape::new("501 requests were all answered")),
    }
}

/// Attack `server-turns-many`: the attacker begins more turns than its tenant may have.
async fn flood_turns(stage: &ServerStage) -> Stopped {
    let own = stage.another_with("tenant_turns = 2\ntenant_queue = 2").await?;
    let caller = own.client_for("red-member");
    let body = json!({ "agent": "hanger", "text": "go", "stream": true });
    let ask = new_request("POST", "/v1/chat").with_json(&body);
    let mut wires = Vec::new();
    for _ in 0..8 {
        wires.push(caller.send_open(&ask).await?);
    }
    // Two turns run, two wait, and the others must be refused at once, in any order.
    let mut refused = Vec::new();
    for wire in &mut wires {
        refused.push(Box::pin(wire.read_until("too-many")));
    }
    let (told, _) = futures::future::select_ok(refused).await?;
    let blue = own.send_chat("blue-member", "teller", "tell").await?;
    drop(wires);
    own.close().await?;
    escape_unless(blue.status == 200 && blue.body.contains("Once upon"), || blue.body.clone())?;
    Ok(Verdict::with_words(told))
}
