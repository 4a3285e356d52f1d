//! Attacks by malformed replies.

use std::sync::Arc;

use belljar_policy::DenyCode;
use serde_json::{Value, json};

use super::{broken_off, check_both, get_step, open_network_jar, request_step};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::jar::StepResults;
use crate::peer::{LoopbackPeer, PeerAct, PeerRequest, Script, reply_script};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "network-compressed-bomb",
        kind: AttackKind::Network,
        tries: "sends a megabyte of gzip that stands for a gigabyte",
        stopped_by: "a coding that a tool asks for is the tool's to undo",
        told: "1048600",
        embedded: true,
        run: |arena| Box::pin(send_gzip_bomb(arena)),
    },
    Attack {
        id: "network-compressed-bomb-unasked",
        kind: AttackKind::Network,
        tries: "sends a megabyte of gzip that stands for a gigabyte, without being asked for gzip",
        stopped_by: "a bound on what comes out of a reply, decoded piece by piece",
        told: "HTTP response body size",
        embedded: true,
        run: |arena| Box::pin(bomb_unasked(arena)),
    },
    Attack {
        id: "network-header-flood",
        kind: AttackKind::Network,
        tries: "answers with 5,000 headers",
        stopped_by: "a bound on the headers of a reply",
        told: "HttpResponseHeaderSectionSize",
        embedded: true,
        run: |arena| Box::pin(answer_huge_headers(arena, "a: b\r\n".repeat(5_000))),
    },
    Attack {
        id: "network-header-of-a-megabyte",
        kind: AttackKind::Network,
        tries: "answers with one header of a megabyte",
        stopped_by: "a bound on the head of a reply",
        told: "HttpResponseHeaderSectionSize",
        embedded: true,
        run: |arena| {
            Box::pin(answer_huge_headers(arena, format!("a: {}\r\n", "x".repeat(1 << 20))))
        },
    },
    Attack {
        id: "network-claimed-length",
        kind: AttackKind::Network,
        tries: "claims that its reply is a terabyte long",
        stopped_by: "a bound on one reply, checked before it is read",
        told: "HttpResponseBodySize",
        embedded: true,
        run: |arena| Box::pin(claimed_length(arena)),
    },
    Attack {
        id: "network-lengths-that-differ",
        kind: AttackKind::Network,
        tries: "states the length of its reply in ways that differ or are no numbers",
        stopped_by: "HTTP is parsed strictly",
        told: "HttpProtocolError",
        embedded: true,
        run: |arena| Box::pin(answer_odd_lengths(arena)),
    },
    Attack {
        id: "network-no-http",
        kind: AttackKind::Network,
        tries: "answers with what is no HTTP",
        stopped_by: "HTTP is parsed strictly",
        told: "Http",
        embedded: true,
        run: |arena| Box::pin(no_http(arena)),
    },
    Attack {
        id: "network-bad-chunks",
        kind: AttackKind::Network,
        tries: "sends chunks with sizes that are too large, negative or no numbers",
        stopped_by: "HTTP is parsed strictly",
        told: "HTTP protocol error",
        embedded: true,
        run: |arena| Box::pin(bad_chunks(arena)),
    },
    Attack {
        id: "network-other-protocol",
        kind: AttackKind::Network,
        tries: "answers with `101 Switching Protocols` and goes on in another one",
        stopped_by: "no upgrade passes the gate",
        told: "HttpUpgradeFailed",
        embedded: true,
        run: |arena| Box::pin(answer_upgrade(arena)),
    },
    Attack {
        id: "network-answer-to-the-next-question",
        kind: AttackKind::Network,
        tries: "sends a second reply with the first, for whoever asks next",
        stopped_by: "every request has a connection of its own",
        told: "mine",
        embedded: true,
        run: |arena| Box::pin(next_question(arena)),
    },
    Attack {
        id: "network-shorter-than-announced",
        kind: AttackKind::Network,
        tries: "closes the connection before its reply is whole",
        stopped_by: "a reply is as long as it was announced",
        told: "HTTP protocol error",
        embedded: true,
        run: |arena| Box::pin(answer_short_body(arena)),
    },
];

/// A block of a gzip file that is not the last one: each zero byte expands to four times 258 zeros.
const BOMB: &[u8; 24] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xec, 0xc1, 0x01, 0x01, 0x00, 0x00,
    0x00, 0x80, 0x90, 0xfe, 0xaf, 0xee, 0x08, 0x0a,
];

/// Attack `network-compressed-bomb`: the attacker sends a megabyte of gzip that stands for a gigabyte.
async fn send_gzip_bomb(arena: &Arena) -> Stopped {
    let bytes = [&BOMB[..], &vec![0; 1 << 20]].concat();
    let size = bytes.len() as u64;
    let peer =
        arena.start_peer(reply_script("200 OK", &[("content-encoding", "gzip")], bytes)).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let more = json!({ "headers": [["accept-encoding", "gzip"]], "read": 1_u64 << 30 });
    let steps =
        jar.run_steps(json!([request_step(&peer.address().to_string(), "/", more)])).await?;
    let length = steps.step_value(0)?.get("length").and_then(Value::as_u64);
    let received = steps.call.result.receipt.bytes.received;
    if length != Some(size) || received > size + 1_000 {
        return Err(Escape::new(format!("{size} bytes came as {length:?}, {received} received")));
    }
    Ok(Verdict::with_words(size.to_string()))
}

/// Attack `network-compressed-bomb-unasked`: the attacker sends a megabyte of gzip that stands for a
/// gigabyte, without being asked for gzip.
async fn bomb_unasked(arena: &Arena) -> Stopped {
    let bytes = [&BOMB[..], &vec![0; 1 << 20]].concat();
    let peer =
        arena.start_peer(reply_script("200 OK", &[("content-encoding", "gzip")], bytes)).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let more = json!({ "read": 1_u64 << 30 });
    let steps =
        jar.run_steps(json!([request_step(&peer.address().to_string(), "/", more)])).await?;
    let received = steps.call.result.receipt.bytes.received;
    if received > 40 << 20 {
        return Err(Escape::new(format!("{received} bytes were received")));
    }
    let denied = steps.call.check_denied(DenyCode::LimitReached);
    check_both(denied, broken_off(&steps, 0, "HTTP response body size"))
}

/// Starts a server that answers with these bytes.
async fn start_bytes_peer(
    arena: &Arena,
    bytes: impl Into<Vec<u8>>,
) -> Result<LoopbackPeer, Escape> {
    let bytes = bytes.into();
    let script: Script = Arc::new(move |_| vec![PeerAct::Send(bytes.clone())]);
    arena.start_peer(script).await
}

/// Sends one request to a server that answers with these bytes; returns the result.
async fn ask_bytes_peer(arena: &Arena, bytes: impl Into<Vec<u8>>) -> Result<StepResults, Escape> {
    let peer = start_bytes_peer(arena, bytes).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    jar.run_steps(json!([get_step(&peer.address().to_string(), "/")])).await
}

/// Sends one request for each of the given replies; returns the results.
async fn ask_each(arena: &Arena, replies: &'static [&'static str]) -> Result<StepResults, Escape> {
    let script: Script = Arc::new(|asked: &PeerRequest| {
        let path = asked.head.split(' ').nth(1).unwrap_or_default();
        let number: usize = path.trim_start_matches('/').parse().unwrap_or_default();
        let text = replies.get(number).copied().unwrap_or_default();
        vec![PeerAct::Send(text.as_bytes().to_vec())]
    });
    let peer = arena.start_peer(script).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let steps = (0..replies.len()).map(|n| get_step(&peer.address().to_string(), &format!("/{n}")));
    jar.run_steps(json!(steps.collect::<Vec<_>>())).await
}

/// Makes 2 attacks, for example `network-header-flood`: the attacker answers with 5,000 headers.
async fn answer_huge_headers(arena: &Arena, lines: String) -> Stopped {
    let steps = ask_bytes_peer(arena, format!("HTTP/1.1 200 OK\r\n{lines}\r\n")).await?;
    steps.check_refused("HttpResponseHeaderSectionSize")
}

/// Attack `network-claimed-length`: the attacker claims that its reply is a terabyte long.
async fn claimed_length(arena: &Arena) -> Stopped {
    let text = "HTTP/1.1 200 OK\r\ncontent-length: 1099511627776\r\n\r\nx";
    let steps = ask_bytes_peer(arena, text).await?;
    let denied = steps.call.check_denied(DenyCode::LimitReached);
    check_both(denied, steps.check_refused("HttpResponseBodySize"))
}

/// Attack `network-lengths-that-differ`: the attacker states the length of its reply in ways that differ or
/// are no numbers.
async fn answer_odd_lengths(arena: &Arena) -> Stopped {
    let steps = ask_each(
        arena,
        &[
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 50\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ncontent-length: 5, 50\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ncontent-length: 0x5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\nhello",
        ],
    );
    steps.await?.all_refused(0, &["HttpProtocolError"])
}

/// Attack `network-no-http`: the attacker answers with what is no HTTP.
async fn no_http(arena: &Arena) -> Stopped {
    let steps = ask_each(
        arena,
        &[
            "",
            "\0\0\0\0\0\0\0\0\r\n\r\n",
            "SSH-2.0-OpenSSH_9.9\r\n\r\n",
            "HTTP/9.9 200 OK\r\n\r\n",
            "HTTP/1.1 99999 OK\r\n\r\n",
            "HTTP/1.1 abc\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\na\u{0}: b\r\n\r\n",
            "HTTP/1.1 200 OK\r\na: b\r\n folded\r\n\r\n",
            "HTTP/1.1 200 OK\r\na : b\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ],
    );
    steps.await?.all_refused(0, &["HttpProtocolError", "HttpResponseIncomplete"])
}

/// Attack `network-bad-chunks`: the attacker sends chunks with sizes that are too large, negative or no
/// numbers.
async fn bad_chunks(arena: &Arena) -> Stopped {
    let steps = ask_each(
        arena,
        &[
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nx",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\nx",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0x1\r\nx",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nhello\r\nx",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhelloworld\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\nx",
        ],
    );
    let steps = steps.await?;
    let mut told = Vec::new();
    for step in 0..steps.said.len() {
        told.push(broken_off(&steps, step, "HTTP")?.told);
    }
    Ok(Verdict::with_words(told.join(", ")))
}

/// Attack `network-other-protocol`: the attacker answers with `101 Switching Protocols` and goes on in
/// another one.
async fn answer_upgrade(arena: &Arena) -> Stopped {
    let text = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\nPRI";
    ask_bytes_peer(arena, text).await?.check_refused("HttpUpgradeFailed")
}

/// Attack `network-answer-to-the-next-question`: the attacker sends a second reply with the first, for
/// whoever asks next.
async fn next_question(arena: &Arena) -> Stopped {
    // The path `/first` is answered with two replies at once, the other path with one.
    let script: Script = Arc::new(|asked: &PeerRequest| {
        let text: &[u8] = if asked.head.starts_with("GET /first ") {
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfirst\
              HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\npoisoned"
        } else {
            b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nmine"
        };
        vec![PeerAct::Send(text.to_vec())]
    });
    let peer = arena.start_peer(script).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let at = peer.address().to_string();
    let steps = jar.run_steps(json!([get_step(&at, "/first"), get_step(&at, "/second")])).await?;
    let body = |step: usize| -> Result<String, Escape> {
        let body = steps.step_value(step)?.get("body").and_then(Value::as_str);
        Ok(body.unwrap_or_default().to_owned())
    };
    if (body(0)?, body(1)?) != ("first".to_owned(), "mine".to_owned()) {
        return Err(Escape::new(format!("the bodies are {} and {}", body(0)?, body(1)?)));
    }
    Ok(Verdict::with_words(body(1)?))
}

/// Attack `network-shorter-than-announced`: the attacker closes the connection before its reply is whole.
async fn answer_short_body(arena: &Arena) -> Stopped {
    let steps = ask_bytes_peer(arena, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await?;
    broken_off(&steps, 0, "HTTP protocol error")
}
