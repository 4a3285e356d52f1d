//! Attacks that hide the secret in parts of a reply that a search might overlook.

use serde_json::{Value, json};

use super::super::network::{get_step, request_step};
use super::echo::raw_script;
use super::{check_peer_knows, check_unseen, check_withheld, open_bound_jar};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::peer::page_script;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "secrets-echo-compressed",
        kind: AttackKind::Secrets,
        tries: "has the value repeated in a compressed reply",
        stopped_by: "in a run with secrets a reply in any coding is refused (INV-104)",
        told: "HttpResponseContentCoding",
        embedded: true,
        run: |arena| Box::pin(hide_by_compression(arena)),
    },
    Attack {
        id: "secrets-echo-as-a-coding",
        kind: AttackKind::Secrets,
        tries: "has the value repeated as the name of a coding, which the receipt would tell",
        stopped_by: "no part of a coding is told (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(as_a_coding(arena)),
    },
    Attack {
        id: "secrets-echo-in-parts-of-a-reply",
        kind: AttackKind::Secrets,
        tries: "asks for the reply in two halves, each with half of the value",
        stopped_by: "in a run with secrets parts are neither asked for nor taken (INV-104)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(in_parts(arena)),
    },
    Attack {
        id: "secrets-echo-between-chunks",
        kind: AttackKind::Secrets,
        tries: "has the value repeated in the extension of a chunk",
        stopped_by: "what is not the body does not reach the guest (INV-11)",
        told: "ok",
        embedded: true,
        run: |arena| {
            Box::pin(check_overlooked(arena, CHUNKED, "2;key=VALUE\r\nok\r\n0;VALUE\r\n\r\n"))
        },
    },
    Attack {
        id: "secrets-echo-in-early-hints",
        kind: AttackKind::Secrets,
        tries: "has the value repeated in a reply before the reply",
        stopped_by: "what is not the body does not reach the guest (INV-11)",
        told: "ok",
        embedded: true,
        run: |arena| {
            let hints = "HTTP/1.1 103 Early Hints\r\nlink: </VALUE>; rel=preload\r\n\r\n";
            let reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            Box::pin(check_overlooked(arena, hints, reply))
        },
    },
    Attack {
        id: "secrets-echo-after-the-end",
        kind: AttackKind::Secrets,
        tries: "has the value repeated after the end of the reply",
        stopped_by: "what is not the body does not reach the guest (INV-11)",
        told: "ok",
        embedded: true,
        run: |arena| {
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n";
            Box::pin(check_overlooked(arena, head, "okVALUE\r\n\r\nHTTP/1.1 200 VALUE\r\n\r\n"))
        },
    },
    Attack {
        id: "secrets-echo-in-broken-replies",
        kind: AttackKind::Secrets,
        tries: "has the value repeated where a parser would quote it in its complaint",
        stopped_by: "errors and the log are words of the host's own (INV-11)",
        told: "Http",
        embedded: true,
        run: |arena| Box::pin(hide_in_head(arena)),
    },
];

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// Attack `secrets-echo-compressed`: the attacker has the value repeated in a compressed reply.
async fn hide_by_compression(arena: &Arena) -> Stopped {
    // The block is stored without compression, so a search of the raw bytes would find the value.
    let value = arena.secret_value();
    let codings = ["gzip", "br", "deflate", "zstd", "identity, gzip", "GZIP", "x-unheard-of"];
    let mut replies: Vec<_> = codings
        .iter()
        .map(|coding| {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\n");
            format!("{head}content-length: {}\r\n\r\n{value}", value.len())
        })
        .collect();
    let length = value.len();
    replies.push(format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n{length:x}\r\n{value}\r\n0\r\n\r\n"
    ));
    let count = replies.len();
    check_withheld(arena, raw_script(replies), count, &["HttpResponseContentCoding"]).await
}

/// The error words for a coding that cannot be searched, for a partial reply, and for malformed HTTP.
const CODINGS: &[&str] = &["HttpResponseContentCoding", "HttpRequestDenied", "HttpProtocolError"];

/// Attack `secrets-echo-as-a-coding`: the attacker has the value repeated as the name of a coding, which the
/// receipt would tell.
async fn as_a_coding(arena: &Arena) -> Stopped {
    let value = arena.secret_value();
    let replies = vec![
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: {value}\r\ncontent-length: 0\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip, {value}\r\ncontent-length: 0\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {value}, chunked\r\n\r\n0\r\n\r\n"),
        format!("HTTP/1.1 206 P\r\ncontent-range: {value}\r\ncontent-length: 0\r\n\r\n"),
    ];
    check_withheld(arena, raw_script(replies), 4, CODINGS).await
}

/// Attack `secrets-echo-in-parts-of-a-reply`: the attacker asks for the reply in two halves, each with half
/// of the value.
async fn in_parts(arena: &Arena) -> Stopped {
    let (one, two) = arena.secret_value().split_at(arena.secret_value().len() / 2);
    let part = |text: &str| {
        let length = text.len();
        let head = format!("HTTP/1.1 206 Partial Content\r\ncontent-length: {length}\r\n");
        format!("{head}content-range: bytes 0-{length}/99\r\n\r\n{text}")
    };
    let (peer, jar) = open_bound_jar(arena, page_script("whole")).await?;
    let ranged = |name: &str, value: &str| {
        request_step(&peer.address().to_string(), "/", json!({ "headers": [[name, value]] }))
    };
    let asked = jar.run_steps(json!([
        ranged("range", "bytes=0-17"),
        ranged("Range", "bytes=18-35"),
        ranged("if-range", "\"x\""),
    ]));
    asked.await?.all_refused(0, &["HttpRequestDenied"])?;
    if !peer.received_requests().is_empty() {
        return Err(Escape::new("the peer was asked for a part"));
    }
    check_withheld(arena, raw_script(vec![part(one), part(two)]), 2, &["HttpRequestDenied"]).await
}

/// Checks that the reply arrives with the body `ok` only.
async fn check_overlooked(arena: &Arena, head: &str, reply: &str) -> Stopped {
    let text = format!("{head}{reply}").replace("VALUE", arena.secret_value());
    let (peer, jar) = open_bound_jar(arena, raw_script(vec![text])).await?;
    let steps = jar.run_steps(json!([get_step(&peer.address().to_string(), "/0")])).await?;
    check_peer_knows(arena, &peer)?;
    check_unseen(arena, &steps.call)?;
    match steps.step_value(0)?.get("body").and_then(Value::as_str) {
        Some("ok") => Ok(Verdict::with_words("ok")),
        body => Err(Escape::new(format!("the body is {body:?}"))),
    }
}

/// Attack `secrets-echo-in-broken-replies`: the attacker has the value repeated where a parser would quote it
/// in its complaint.
async fn hide_in_head(arena: &Arena) -> Stopped {
    let value = arena.secret_value();
    let heads = [
        format!("{value}\r\n\r\n"),
        format!("HTTP/1.1 {value}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\n{value}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\n{value} : x\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\ncontent-length: {value}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {value}\r\n\r\nx"),
        format!("HTTP/1.1 200 OK\r\nconnection: {value}\r\ncontent-length: {value}\r\n\r\n"),
        format!("HTTP/1.1 101 OK\r\nconnection: upgrade\r\nupgrade: {value}\r\n\r\n"),
        format!("{CHUNKED}{value}\r\nx\r\n"),
        format!("{CHUNKED}2\r\nok{value}\r\n0\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{value}"),
    ];
    check_withheld(arena, raw_script(heads.to_vec()), heads.len(), &["Http", "HTTP"]).await
}
