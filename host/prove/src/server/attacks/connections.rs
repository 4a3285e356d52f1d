//! Attacks that use up connections: the attacker opens many more than one address may have. Exactly as many
//! as allowed stay open, and the neighbour is still answered.

use serde_json::json;

use super::super::client::{ClientConnection, ServerClient, get_request, upgrade_request};
use super::super::stage::ServerStage;
use super::{Row, escape_unless, row};
use crate::attack::{Escape, Stopped, Verdict};

/// The connections that one address may have on the server of these attacks.
const BOUND: usize = 24;

/// The number of connections that the attacker opens.
const OPENED: usize = 200;

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-connections-silent",
        "opens 200 connections where 24 are allowed, and says nothing",
        "connections of one address (INV-111)",
        "24 held",
        hold_silent
    ),
    row!(
        "server-connections-heads-unfinished",
        "begins a head on 200 connections where 24 are allowed, and never ends it",
        "connections of one address (INV-111)",
        "24 held",
        hold_half_heads
    ),
    row!(
        "server-connections-sockets",
        "opens 200 WebSockets where 24 connections are allowed",
        "connections of one address (INV-111)",
        "24 held",
        hold_websockets
    ),
];

/// Starts a server with that limit, and returns it with the attacker's client, which has an address of its
/// own if the system allows.
async fn start_bounded(
    stage: &ServerStage,
    key: &str,
) -> Result<(ServerStage, ServerClient), Escape> {
    let own = stage.another_with(&format!("connections_per_address = {BOUND}")).await?;
    own.set_client_address(1);
    let caller = own.client_for(key);
    Ok((own, caller))
}

/// Checks that the other tenant is answered, from another address.
async fn check_neighbour(own: &ServerStage) -> Result<(), Escape> {
    let blue = ServerClient { from: None, ..own.client_for("blue-member") };
    let answer = blue.send(&get_request("/v1/sessions")).await?;
    escape_unless(answer.status == 200, || answer.body.clone())
}

fn held_verdict(held: usize, what: &str) -> Verdict {
    Verdict::with_words(format!("{held} held, {what}, and the neighbour is answered"))
}

/// Attack `server-connections-silent`: the attacker opens 200 connections where 24 are allowed, and says
/// nothing.
async fn hold_silent(stage: &ServerStage) -> Stopped {
    hold_idle(stage, "", "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await
}

/// Attack `server-connections-heads-unfinished`: the attacker begins a head on 200 connections where 24 are
/// allowed, and never ends it.
async fn hold_half_heads(stage: &ServerStage) -> Stopped {
    hold_idle(stage, "GET /healthz HTTP/1.1\r\nhost: x\r\nx-", "y: z\r\n\r\n").await
}

/// Opens connections that have sent `begun`. Each one beyond the limit closes the oldest of them, so the
/// youngest must still be open and answer after they have sent `rest`.
async fn hold_idle(stage: &ServerStage, begun: &str, rest: &str) -> Stopped {
    let (own, caller) = start_bounded(stage, "").await?;
    let mut wires = Vec::with_capacity(OPENED);
    for _ in 0..OPENED {
        let mut wire = caller.connect().await?;
        wire.write(begun.as_bytes()).await?;
        wires.push(wire);
    }
    if caller.from.is_some() {
        check_neighbour(&own).await?;
    }
    let held = wires.split_off(OPENED.saturating_sub(BOUND));
    let closed = wires.len();
    for mut wire in wires {
        let said = wire.read_rest().await?;
        escape_unless(said.is_empty(), || format!("one past the bound was answered: {said}"))?;
    }
    let kept = count_answering(held, rest).await?;
    escape_unless(kept == BOUND, || format!("{kept} of {BOUND} connections were held"))?;
    check_neighbour(&own).await?;
    own.close().await?;
    Ok(held_verdict(kept, &format!("{closed} closed")))
}

/// The number of these connections that answer after they have sent the end of a request.
async fn count_answering(wires: Vec<ClientConnection>, rest: &str) -> Result<usize, Escape> {
    let mut open = 0;
    // All are kept until the end, so none makes room for another.
    let mut answered = Vec::with_capacity(wires.len());
    for mut wire in wires {
        wire.write(rest.as_bytes()).await?;
        if wire.read_until("\r\n\r\n").await.is_ok_and(|text| text.starts_with("HTTP/1.1 200")) {
            open += 1;
        }
        answered.push(wire);
    }
    Ok(open)
}

/// Attack with WebSockets: they are busy while they are open, so none is closed to make room, and those
/// beyond the limit are refused.
async fn hold_websockets(stage: &ServerStage) -> Stopped {
    let (own, caller) = start_bounded(stage, "red-reader").await?;
    let (mut held, mut refused) = (Vec::new(), 0);
    for _ in 0..OPENED {
        let mut wire = caller.send_open(&upgrade_request()).await?;
        // Of the connections beyond the limit, some are closed without an answer.
        match wire.read_until("\r\n\r\n").await {
            Ok(text) if text.starts_with("HTTP/1.1 101") => held.push(wire),
            Ok(text) => {
                escape_unless(text.starts_with("HTTP/1.1 429"), || text.clone())?;
                refused += 1;
            }
            Err(_) => refused += 1,
        }
    }
    escape_unless(held.len() == BOUND, || format!("{} were opened, {BOUND} may be", held.len()))?;
    for wire in &mut held {
        wire.send_text(&json!({ "type": "ping" }).to_string()).await?;
        let said = wire.read_until("pong").await?;
        escape_unless(said.contains("pong"), || said.clone())?;
    }
    if caller.from.is_some() {
        check_neighbour(&own).await?;
    }
    let kept = held.len();
    drop(held);
    own.close().await?;
    Ok(held_verdict(kept, &format!("{refused} refused")))
}
