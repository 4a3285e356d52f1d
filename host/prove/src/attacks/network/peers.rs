//! Peers that are slow, or never done.

use std::time::Duration;

use serde_json::{Value, json};

use super::{both, broken_off, get, jar, with};
use crate::Arena;
use crate::attack::{Attack, Escape, Kind, Stopped, Verdict};
use crate::guests::PROBE;
use crate::jar::OpenJar;
use crate::peer::{Act, Peer, Script};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "network-slow-loris-head",
        kind: Kind::Network,
        tries: "sends the head of its reply one byte at a time",
        stopped_by: "the wall-clock time of the call (INV-18)",
        told: "stopped: the call took over 1 seconds",
        embedded: true,
        run: |arena| Box::pin(slow(arena, b"")),
    },
    Attack {
        id: "network-slow-loris-body",
        kind: Kind::Network,
        tries: "sends the body of its reply one byte at a time",
        stopped_by: "the wall-clock time of the call (INV-18)",
        told: "stopped: the call took over 1 seconds",
        embedded: true,
        run: |arena| Box::pin(slow(arena, b"HTTP/1.1 200 OK\r\n\r\n")),
    },
    Attack {
        id: "network-silent-peer",
        kind: Kind::Network,
        tries: "takes the request and says nothing, with timeouts as long as they can be",
        stopped_by: "the wall-clock time of the call (INV-18)",
        told: "stopped: the call took over 1 seconds",
        embedded: true,
        run: |arena| Box::pin(huge_timeouts(arena)),
    },
    Attack {
        id: "network-zero-timeouts",
        kind: Kind::Network,
        tries: "asks a silent peer with timeouts of nothing and of one nanosecond",
        stopped_by: "timeouts are brought within bounds",
        told: "Timeout",
        embedded: true,
        run: |arena| Box::pin(zero_timeouts(arena)),
    },
    Attack {
        id: "network-half-a-reply",
        kind: Kind::Network,
        tries: "falls silent in the middle of its reply",
        stopped_by: "the longest silence within a reply",
        told: "connection read timeout",
        embedded: true,
        run: |arena| Box::pin(half(arena)),
    },
    Attack {
        id: "network-endless-body",
        kind: Kind::Network,
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
        kind: Kind::Network,
        tries: "sends a body that ends with the connection, which does not end",
        stopped_by: "the budget of received bytes (INV-12)",
        told: "HTTP response body size",
        embedded: true,
        run: |arena| Box::pin(endless_body(arena, "HTTP/1.1 200 OK\r\n\r\n", b"", b"")),
    },
    Attack {
        id: "network-endless-head",
        kind: Kind::Network,
        tries: "sends headers without end",
        stopped_by: "a bound on the head of a reply",
        told: "HttpResponseHeaderSectionSize",
        embedded: true,
        run: |arena| Box::pin(flood(arena, b"HTTP/1.1 200 OK\r\n", b"a: b\r\n", false)),
    },
    Attack {
        id: "network-endless-continue",
        kind: Kind::Network,
        tries: "sends `100 Continue` without end",
        stopped_by: "the budget of received bytes (INV-12)",
        told: "HttpResponseBodySize",
        embedded: true,
        run: |arena| Box::pin(flood(arena, b"", b"HTTP/1.1 100 Continue\r\n\r\n", false)),
    },
    Attack {
        id: "network-endless-chunk-extension",
        kind: Kind::Network,
        tries: "sends a chunk whose extension never ends",
        stopped_by: "a bound on chunk extensions, and the budget of received bytes (INV-12)",
        told: "HTTP protocol error",
        embedded: true,
        run: |arena| {
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=";
            Box::pin(flood(arena, head, b"xxxxxxxx", true))
        },
    },
    Attack {
        id: "network-endless-trailers",
        kind: Kind::Network,
        tries: "sends trailers without end",
        stopped_by: "a bound on trailers, and the budget of received bytes (INV-12)",
        told: "HTTP protocol error",
        embedded: true,
        run: |arena| {
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
            Box::pin(flood(arena, head, b"a: b\r\n", true))
        },
    },
    Attack {
        id: "network-reply-that-nobody-reads",
        kind: Kind::Network,
        tries: "sends without end to a guest that does not read",
        stopped_by: "a reply is read as fast as the guest takes it",
        told: "null",
        embedded: true,
        run: |arena| Box::pin(unread(arena)),
    },
];

/// Bytes that these jars may receive.
const INGRESS: u64 = 1 << 20;
/// The bytes that one read of a connection may bring in past the budget.
const ONE_READ: u64 = 512 << 10;

fn does(acts: Vec<Act>) -> Script {
    std::sync::Arc::new(move |_| acts.clone())
}

/// A jar whose calls end after a second.
async fn hasty(arena: &Arena, peer: &Peer) -> Result<OpenJar, Escape> {
    let builder = arena.jar(&[PROBE]).no_mounts().host(&peer.rule());
    builder.limits(|limits| limits.call_timeout_seconds = 1).open().await
}

async fn slow(arena: &Arena, head: &[u8]) -> Stopped {
    let drip = b"HTTP/1.1 200 OK\r\nserver: slow\r\n".repeat(1000);
    let acts = vec![Act::Send(head.to_vec()), Act::Drip(drip, Duration::from_millis(20))];
    let peer = arena.peer(does(acts)).await?;
    let jar = hasty(arena, &peer).await?;
    // Each byte ends the silence in time.
    let more = json!({ "between_bytes": 10_000_000_000_u64 });
    let call = jar.try_steps(json!([with(&peer.at().to_string(), "/", more)])).await;
    if call.result.receipt.bytes.received == 0 {
        return Err(Escape::new("the peer sent nothing: this proves nothing"));
    }
    call.timed_out()
}

async fn huge_timeouts(arena: &Arena) -> Stopped {
    let peer = arena.peer(does(vec![Act::Hold])).await?;
    let jar = hasty(arena, &peer).await?;
    let more = json!({ "connect": u64::MAX, "first_byte": u64::MAX, "between_bytes": u64::MAX });
    jar.try_steps(json!([with(&peer.at().to_string(), "/", more)])).await.timed_out()
}

async fn zero_timeouts(arena: &Arena) -> Stopped {
    let peer = arena.peer(does(vec![Act::Hold])).await?;
    let jar = jar(arena, &[&peer.rule()]).await?;
    let asked = |time: u64| {
        let more = json!({ "connect": time, "first_byte": time, "between_bytes": time });
        with(&peer.at().to_string(), "/", more)
    };
    jar.steps(json!([asked(0), asked(1)])).await?.all_refused(0, &["Timeout"])
}

async fn half(arena: &Arena) -> Stopped {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    let peer = arena.peer(does(vec![Act::Send(head), Act::Hold])).await?;
    let jar = jar(arena, &[&peer.rule()]).await?;
    let more = json!({ "between_bytes": 50_000_000 });
    let steps = jar.steps(json!([with(&peer.at().to_string(), "/", more)])).await?;
    broken_off(&steps, 0, "connection read timeout")
}

/// A jar that may receive a megabyte.
async fn sparing(arena: &Arena, peer: &Peer) -> Result<OpenJar, Escape> {
    let builder = arena.jar(&[PROBE]).no_mounts().host(&peer.rule());
    builder.limits(|limits| limits.ingress_bytes = INGRESS).open().await
}

/// A check that the bytes that came in are within the budget, but for the read that passed it.
fn within(received: u64) -> Result<(), Escape> {
    if received > INGRESS + ONE_READ {
        return Err(Escape::new(format!("{received} bytes came in, of {INGRESS} granted")));
    }
    Ok(())
}

async fn endless_body(arena: &Arena, head: &str, before: &[u8], after: &[u8]) -> Stopped {
    let piece = [before, &[b'x'; 4096], after].concat();
    let acts = vec![Act::Send(head.into()), Act::Flood(piece)];
    let peer = arena.peer(does(acts)).await?;
    let jar = sparing(arena, &peer).await?;
    let more = json!({ "read": 1_u64 << 30 });
    let steps = jar.steps(json!([with(&peer.at().to_string(), "/", more)])).await?;
    within(steps.call.result.receipt.bytes.received)?;
    let length = steps.ok(0)?.get("length").and_then(Value::as_u64);
    if length.is_none_or(|length| length > INGRESS || length == 0) {
        return Err(Escape::new(format!("the guest got {length:?} bytes")));
    }
    let denied = steps.call.denied(belljar_policy::DenyCode::LimitReached);
    both(denied, broken_off(&steps, 0, "HTTP response body size"))
}

async fn flood(arena: &Arena, head: &[u8], piece: &[u8], in_body: bool) -> Stopped {
    let acts = vec![Act::Send(head.to_vec()), Act::Flood(piece.repeat(512))];
    let peer = arena.peer(does(acts)).await?;
    let jar = sparing(arena, &peer).await?;
    let steps = jar.steps(json!([get(&peer.at().to_string(), "/")])).await?;
    within(steps.call.result.receipt.bytes.received)?;
    if in_body { broken_off(&steps, 0, "HTTP") } else { steps.refused("Http") }
}

async fn unread(arena: &Arena) -> Stopped {
    let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let peer = arena.peer(does(vec![Act::Send(head), Act::Flood(vec![b'x'; 4096])])).await?;
    let jar = jar(arena, &[&peer.rule()]).await?;
    let Value::Object(mut send) = get(&peer.at().to_string(), "/") else {
        return Err(Escape::new("no request"));
    };
    send.insert("do".to_owned(), json!("http-send"));
    let steps = jar.steps(json!([send, { "do": "wait", "ms": 300 }])).await?;
    let received = steps.call.result.receipt.bytes.received;
    steps.ok(0)?;
    if received == 0 || received > INGRESS {
        return Err(Escape::new(format!("{received} bytes were held for a guest that reads none")));
    }
    Ok(Verdict::told(steps.ok(1)?.to_string()))
}
