//! Using up what the server has: memory, requests, turns. The neighbour has to be answered all the
//! while.

use serde_json::json;

use super::super::client::{Ask, ask, get};
use super::super::stage::Stage;
use super::{Row, check, row};
use crate::attack::{Escape, Stopped, Verdict};

/// By how much the server may be larger after an attack that wants its memory: what requests of
/// one caller may hold, and what an allocator keeps.
const GROWTH: u64 = 192 << 20;

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-bodies-unfinished",
        "sends all but the last byte of 100 bodies of 4 MiB",
        "bytes of bodies under way (INV-115)",
        "bytes larger",
        bodies
    ),
    row!(
        "server-readers-slow",
        "asks 40 times for all that was said, and reads nothing",
        "bytes of answers under way (INV-115)",
        "bytes larger",
        readers
    ),
    row!(
        "server-requests-without-end",
        "asks as fast as it can with a key that may look",
        "requests a second of a key (INV-99)",
        "too-many",
        requests
    ),
    row!(
        "server-turns-many",
        "begins more turns than its tenant may have",
        "turns of a tenant (INV-96)",
        "too-many",
        turns
    ),
];

/// Holds connections that were sent this, and looks at the server's size.
async fn held(stage: &Stage, number: usize, ask: &Ask) -> Stopped {
    let (caller, before) = (stage.caller("red-member"), stage.resident().unwrap_or_default());
    let mut wires = Vec::new();
    for _ in 0..number {
        if let Ok(wire) = caller.open(ask).await {
            wires.push(wire);
        }
    }
    let answer = stage.caller("blue-member").send(&get("/v1/sessions")).await?;
    check(answer.status == 200, || answer.body.clone())?;
    let grown = stage.resident().unwrap_or_default().saturating_sub(before);
    check(grown <= GROWTH, || format!("the server is {grown} bytes larger"))?;
    Ok(Verdict::told(format!("the server is {grown} bytes larger")))
}

async fn bodies(stage: &Stage) -> Stopped {
    let body = "a".repeat((4 << 20) - 1);
    let ask = ask("POST", "/v1/chat").text(&body).unfinished();
    held(stage, 100, &ask).await
}

async fn readers(stage: &Stage) -> Stopped {
    stage.red_may_change();
    // Something to read: as long as a message may be.
    let body = json!({ "agent": "teller", "text": "a".repeat(2 << 20) });
    let answer = stage.caller("red-member").send(&ask("POST", "/v1/chat").json(&body)).await?;
    let session = answer.field("session")?;
    let told = held(stage, 40, &get(&format!("/v1/sessions/{session}/messages?full=true"))).await;
    let path = format!("/v1/sessions/{session}");
    stage.caller("red-member").send(&ask("DELETE", &path)).await?;
    told
}

async fn requests(stage: &Stage) -> Stopped {
    let own = stage.another_with("requests_per_second = 20").await?;
    let caller = own.caller("red-reader");
    // On one connection, many at a time: faster than one after the other could be.
    let ask = get("/v1/running");
    let mut wire = caller.connect().await?;
    wire.write(&ask.bytes(&caller).repeat(500)).await?;
    wire.write(&ask.line("connection: close").bytes(&caller)).await?;
    let text = wire.rest().await?;
    let neighbour = own.caller("blue-member").send(&get("/v1/running")).await?;
    own.close().await?;
    check(neighbour.status == 200, || neighbour.body.clone())?;
    match text.split("HTTP/1.1 429").nth(1) {
        Some(told) => Ok(Verdict::told(told)),
        None => Err(Escape::new("501 requests were all answered")),
    }
}

async fn turns(stage: &Stage) -> Stopped {
    let own = stage.another_with("tenant_turns = 2\ntenant_queue = 2").await?;
    let caller = own.caller("red-member");
    let body = json!({ "agent": "hanger", "text": "go", "stream": true });
    let ask = ask("POST", "/v1/chat").json(&body);
    let mut wires = Vec::new();
    for _ in 0..8 {
        wires.push(caller.open(&ask).await?);
    }
    // Two run, two wait, and the others are told at once, whichever they are.
    let mut refused = Vec::new();
    for wire in &mut wires {
        refused.push(Box::pin(wire.until("too-many")));
    }
    let (told, _) = futures::future::select_ok(refused).await?;
    let blue = own.talk("blue-member", "teller", "tell").await?;
    drop(wires);
    own.close().await?;
    check(blue.status == 200 && blue.body.contains("Once upon"), || blue.body.clone())?;
    Ok(Verdict::told(told))
}
