//! Attacks by servers that are slow or never end.

use std::time::Duration;

use serde_json::{Value, json};

use super::{broken_off, check_both, get_step, open_network_jar, request_step};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::PROBE;
use crate::jar::OpenJar;
use crate::peer::{LoopbackPeer, PeerAct, Script};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "network-slow-loris-head",
        kind: AttackKind::Network,
        tries: "sends the head of its reply one byte at a time",
        stopped_by: "the wall-clock time of the call (INV-18)",
        told: "stopped: the call took over 1 seconds",
        embedded: true,
        run: |arena| Box::pin(answer_slowly(arena, b"")),
    },
    Attack {
        id: "network-slow-loris-body",
        kind: AttackKind::Network,
        tries: "sends the body of its reply one byte at a time",
        stopped_by: "the wall-clock time of the call (INV-18)",
        told: "stopped: the call took over 1 seconds",
        embedded: true,
        run: |arena| Box::pin(answer_slowly(arena, b"HTTP/1.1 200 OK\r\n\r\n")),
    },
    Attack {
        id: "network-silent-peer",
        kind: AttackKind::Network,
        tries: "takes the request and says nothing, with timeouts as long as they can be",
        stopped_by: "the wall-clock time of the call (INV-18)",
        told: "stopped: the call took over 1 seconds",
        embedded: true,
        run: |arena| Box::pin(huge_timeouts(arena)),
    },
    Attack {
        id: "network-zero-timeouts",
        kind: AttackKind::Network,
        tries: "asks a silent peer with timeouts of nothing and of one nanosecond",
        stopped_by: "timeouts are brought within bounds",
        told: "Timeout",
        embedded: true,
        run: |arena| Box::pin(zero_timeouts(arena)),
    },
    Attack {
        id: "network-half-a-reply",
        kind: AttackKind::Network,
        tries: "falls silent in the middle of its reply",
        stopped_by: "the longest silence within a reply",
        told: "connection read timeout",
        embedded: true,
        run: |arena| Box::pin(answer_half(arena)),
    },
    Attack {
        id: "network-endless-body",
        kind: AttackKind::Network,
        tries: "sends a body without end",
        stopped_by: "the budget of received bytes (INV-12)",
        told: "HTTP response body size",
        embedded: true,
        run: |arena| {
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            Box::pin(endless_body(arena, head, b"1000\r\n", b"\r\n"))
        },
    },
    Attack {
        id: "network-endless-body-without-a-length",
        kind: AttackKind::Network,
        tries: "sends a body that ends with the connection, which does not end",
        stopped_by: "the budget of received bytes (INV-12)",
        told: "HTTP response body size",
        embedded: true,
        run: |arena| Box::pin(endless_body(arena, "HTTP/1.1 200 OK\r\n\r\n", b"", b"")),
    },
    Attack {
        id: "network-endless-head",
        kind: AttackKind::Network,
        tries: "sends headers without end",
        stopped_by: "a bound on the head of a reply",
        told: "HttpResponseHeaderSectionSize",
        embedded: true,
        run: |arena| Box::pin(flood_reply(arena, b"HTTP/1.1 200 OK\r\n", b"a: b\r\n", false)),
    },
    Attack {
        id: "network-endless-continue",
        kind: AttackKind::Network,
        tries: "sends `100 Continue` without end",
        stopped_by: "the budget of received bytes (INV-12)",
        told: "HttpResponseBodySize",
        embedded: true,
        run: |arena| Box::pin(flood_reply(arena, b"", b"HTTP/1.1 100 Continue\r\n\r\n", false)),
    },
    Attack {
        id: "network-endless-chunk-extension",
        kind: AttackKind::Network,
        tries: "sends a chunk whose extension never ends",
        stopped_by: "a bound on chunk extensions, and the budget of received bytes (INV-12)",
        told: "HTTP protocol error",
        embedded: true,
        run: |arena| {
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=";
            Box::pin(flood_reply(arena, head, b"xxxxxxxx", true))
        },
    },
    Attack {
        id: "network-endless-trailers",
        kind: AttackKind::Network,
        tries: "sends trailers without end",
        stopped_by: "a bound on trailers, and the budget of received bytes (INV-12)",
        told: "HTTP protocol error",
        embedded: true,
        run: |arena| {
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
            Box::pin(flood_reply(arena, head, b"a: b\r\n", true))
        },
    },
    Attack {
        id: "network-reply-that-nobody-reads",
        kind: AttackKind::Network,
        tries: "sends without end to a guest that does not read",
        stopped_by: "a reply is read as fast as the guest takes it",
        told: "null",
        embedded: true,
        run: |arena| Box::pin(leave_unread(arena)),
    },
];

/// The bytes that a jar may receive in these attacks.
const INGRESS: u64 = 1 << 20;
/// The bytes by which one read of a connection may exceed that budget.
const ONE_READ: u64 = 512 << 10;

fn acts_script(acts: Vec<PeerAct>) -> Script {
    std::sync::Arc::new(move |_| acts.clone())
}

/// A jar whose calls end after one second.
async fn open_hasty_jar(arena: &Arena, peer: &LoopbackPeer) -> Result<OpenJar, Escape> {
    let builder = arena.jar_builder(&[PROBE]).no_mounts().with_host(&peer.grant_rule());
    builder.with_limits(|limits| limits.call_timeout_seconds = 1).open().await
}

/// Makes 2 attacks, for example `network-slow-loris-head`: the attacker sends the head of its reply one byte
/// at a time.
async fn answer_slowly(arena: &Arena, head: &[u8]) -> Stopped {
    let drip = b"HTTP/1.1 200 OK\r\nserver: slow\r\n".repeat(1000);
    let acts = vec![PeerAct::Send(head.to_vec()), PeerAct::Drip(drip, Duration::from_millis(20))];
    let peer = arena.start_peer(acts_script(acts)).await?;
    let jar = open_hasty_jar(arena, &peer).await?;
    // Each byte arrives before the time limit between two bytes is over.
    let more = json!({ "between_bytes": 10_000_000_000_u64 });
    let call = jar.try_steps(json!([request_step(&peer.address().to_string(), "/", more)])).await;
    if call.result.receipt.bytes.received == 0 {
        return Err(Escape::new("the peer sent nothing: this proves nothing"));
    }
    call.check_timed_out()
}

/// Attack `network-silent-peer`: the attacker takes the request and says nothing, with timeouts as long as
/// they can be.
async fn huge_timeouts(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(acts_script(vec![PeerAct::Hold])).await?;
    let jar = open_hasty_jar(arena, &peer).await?;
    let more = json!({ "connect": u64::MAX, "first_byte": u64::MAX, "between_bytes": u64::MAX });
    jar.try_steps(json!([request_step(&peer.address().to_string(), "/", more)]))
        .await
        .check_timed_out()
}

/// Attack `network-zero-timeouts`: the attacker asks a silent peer with timeouts of nothing and of one
/// nanosecond.
async fn zero_timeouts(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(acts_script(vec![PeerAct::Hold])).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let asked = |time: u64| {
        let more = json!({ "connect": time, "first_byte": time, "between_bytes": time });
        request_step(&peer.address().to_string(), "/", more)
    };
    jar.run_steps(json!([asked(0), asked(1)])).await?.all_refused(0, &["Timeout"])
}

/// Attack `network-half-a-reply`: the attacker falls silent in the middle of its reply.
async fn answer_half(arena: &Arena) -> Stopped {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    let peer = arena.start_peer(acts_script(vec![PeerAct::Send(head), PeerAct::Hold])).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let more = json!({ "between_bytes": 50_000_000 });
    let steps =
        jar.run_steps(json!([request_step(&peer.address().to_string(), "/", more)])).await?;
    broken_off(&steps, 0, "connection read timeout")
}

/// A jar that may receive [`INGRESS`] bytes.
async fn open_sparing_jar(arena: &Arena, peer: &LoopbackPeer) -> Result<OpenJar, Escape> {
    let builder = arena.jar_builder(&[PROBE]).no_mounts().with_host(&peer.grant_rule());
    builder.with_limits(|limits| limits.ingress_bytes = INGRESS).open().await
}

/// Checks that the received bytes are within the budget, except for the read that exceeded it.
fn check_ingress(received: u64) -> Result<(), Escape> {
    if received > INGRESS + ONE_READ {
        return Err(Escape::new(format!("{received} bytes came in, of {INGRESS} granted")));
    }
    Ok(())
}

/// Makes 2 attacks, for example `network-endless-body`: the attacker sends a body without end.
async fn endless_body(arena: &Arena, head: &str, before: &[u8], after: &[u8]) -> Stopped {
    let piece = [before, &[b'x'; 4096], after].concat();
    let acts = vec![PeerAct::Send(head.into()), PeerAct::Flood(piece)];
    let peer = arena.start_peer(acts_script(acts)).await?;
    let jar = open_sparing_jar(arena, &peer).await?;
    let more = json!({ "read": 1_u64 << 30 });
    let steps =
        jar.run_steps(json!([request_step(&peer.address().to_string(), "/", more)])).await?;
    check_ingress(steps.call.result.receipt.bytes.received)?;
    let length = steps.step_value(0)?.get("length").and_then(Value::as_u64);
    if length.is_none_or(|length| length > INGRESS || length == 0) {
        return Err(Escape::new(format!("the guest got {length:?} bytes")));
    }
    let denied = steps.call.check_denied(belljar_policy::DenyCode::LimitReached);
    check_both(denied, broken_off(&steps, 0, "HTTP response body size"))
}

/// Makes 4 attacks, for example `network-endless-head`: the attacker sends headers without end.
async fn flood_reply(arena: &Arena, head: &[u8], piece: &[u8], in_body: bool) -> Stopped {
    let acts = vec![PeerAct::Send(head.to_vec()), PeerAct::Flood(piece.repeat(512))];
    let peer = arena.start_peer(acts_script(acts)).await?;
    let jar = open_sparing_jar(arena, &peer).await?;
    let steps = jar.run_steps(json!([get_step(&peer.address().to_string(), "/")])).await?;
    check_ingress(steps.call.result.receipt.bytes.received)?;
    if in_body { broken_off(&steps, 0, "HTTP") } else { steps.check_refused("Http") }
}

/// Attack `network-reply-that-nobody-reads`: the attacker sends without end to a guest that does not read.
async fn leave_unread(arena: &Arena) -> Stopped {
    let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let peer = arena
        .start_peer(acts_script(vec![PeerAct::Send(head), PeerAct::Flood(vec![b'x'; 4096])]))
        .await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let Value::Object(mut send) = get_step(&peer.address().to_string(), "/") else {
        return Err(Escape::new("no request"));
    };
    send.insert("do".to_owned(), json!("http-send"));
    let steps = jar.run_steps(json!([send, { "do": "wait", "ms": 300 }])).await?;
    let received = steps.call.result.receipt.bytes.received;
    steps.step_value(0)?;
    if received == 0 || received > INGRESS {
        return Err(Escape::new(format!("{received} bytes were held for a guest that reads none")));
    }
    Ok(Verdict::with_words(steps.step_value(1)?.to_string()))
}
