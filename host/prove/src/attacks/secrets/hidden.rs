//! Places of a reply in which a search might overlook the secret.

use serde_json::{Value, json};

use super::super::network::{get, with};
use super::echo::raw;
use super::{bound, knows, unseen, withheld};
use crate::Arena;
use crate::attack::{Attack, Escape, Kind, Stopped, Verdict};
use crate::peer::page;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "secrets-echo-compressed",
        kind: Kind::Secrets,
        tries: "has the value repeated in a compressed reply",
        stopped_by: "in a run with secrets a reply in any coding is refused (INV-104)",
        told: "HttpResponseContentCoding",
        embedded: true,
        run: |arena| Box::pin(compressed(arena)),
    },
    Attack {
        id: "secrets-echo-as-a-coding",
        kind: Kind::Secrets,
        tries: "has the value repeated as the name of a coding, which the receipt would tell",
        stopped_by: "no part of a coding is told (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(as_a_coding(arena)),
    },
    Attack {
        id: "secrets-echo-in-parts-of-a-reply",
        kind: Kind::Secrets,
        tries: "asks for the reply in two halves, each with half of the value",
        stopped_by: "in a run with secrets parts are neither asked for nor taken (INV-104)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(in_parts(arena)),
    },
    Attack {
        id: "secrets-echo-between-chunks",
        kind: Kind::Secrets,
        tries: "has the value repeated in the extension of a chunk",
        stopped_by: "what is not the body does not reach the guest (INV-11)",
        told: "ok",
        embedded: true,
        run: |arena| Box::pin(overlooked(arena, CHUNKED, "2;key=VALUE\r\nok\r\n0;VALUE\r\n\r\n")),
    },
    Attack {
        id: "secrets-echo-in-early-hints",
        kind: Kind::Secrets,
        tries: "has the value repeated in a reply before the reply",
        stopped_by: "what is not the body does not reach the guest (INV-11)",
        told: "ok",
        embedded: true,
        run: |arena| {
            let hints = "HTTP/1.1 103 Early Hints\r\nlink: </VALUE>; rel=preload\r\n\r\n";
            let reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            Box::pin(overlooked(arena, hints, reply))
        },
    },
    Attack {
        id: "secrets-echo-after-the-end",
        kind: Kind::Secrets,
        tries: "has the value repeated after the end of the reply",
        stopped_by: "what is not the body does not reach the guest (INV-11)",
        told: "ok",
        embedded: true,
        run: |arena| {
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n";
            Box::pin(overlooked(arena, head, "okVALUE\r\n\r\nHTTP/1.1 200 VALUE\r\n\r\n"))
        },
    },
    Attack {
        id: "secrets-echo-in-broken-replies",
        kind: Kind::Secrets,
        tries: "has the value repeated where a parser would quote it in its complaint",
        stopped_by: "errors and the log are words of the host's own (INV-11)",
        told: "Http",
        embedded: true,
        run: |arena| Box::pin(broken(arena)),
    },
];

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

async fn compressed(arena: &Arena) -> Stopped {
    // A stored block, so that even a search of the compressed bytes would find it.
    let value = arena.secret();
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
    withheld(arena, raw(replies), count, &["HttpResponseContentCoding"]).await
}

/// The words for a coding that cannot be searched, a part, and what is no HTTP.
const CODINGS: &[&str] = &["HttpResponseContentCoding", "HttpRequestDenied", "HttpProtocolError"];

async fn as_a_coding(arena: &Arena) -> Stopped {
    let value = arena.secret();
    let replies = vec![
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: {value}\r\ncontent-length: 0\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip, {value}\r\ncontent-length: 0\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {value}, chunked\r\n\r\n0\r\n\r\n"),
        format!("HTTP/1.1 206 P\r\ncontent-range: {value}\r\ncontent-length: 0\r\n\r\n"),
    ];
    withheld(arena, raw(replies), 4, CODINGS).await
}

async fn in_parts(arena: &Arena) -> Stopped {
    let (one, two) = arena.secret().split_at(arena.secret().len() / 2);
    let part = |text: &str| {
        let length = text.len();
        let head = format!("HTTP/1.1 206 Partial Content\r\ncontent-length: {length}\r\n");
        format!("{head}content-range: bytes 0-{length}/99\r\n\r\n{text}")
    };
    let (peer, jar) = bound(arena, page("whole")).await?;
    let ranged = |name: &str, value: &str| {
        with(&peer.at().to_string(), "/", json!({ "headers": [[name, value]] }))
    };
    let asked = jar.steps(json!([
        ranged("range", "bytes=0-17"),
        ranged("Range", "bytes=18-35"),
        ranged("if-range", "\"x\""),
    ]));
    asked.await?.all_refused(0, &["HttpRequestDenied"])?;
    if !peer.asked().is_empty() {
        return Err(Escape::new("the peer was asked for a part"));
    }
    withheld(arena, raw(vec![part(one), part(two)]), 2, &["HttpRequestDenied"]).await
}

/// The reply comes, and holds nothing but `ok`.
async fn overlooked(arena: &Arena, head: &str, reply: &str) -> Stopped {
    let text = format!("{head}{reply}").replace("VALUE", arena.secret());
    let (peer, jar) = bound(arena, raw(vec![text])).await?;
    let steps = jar.steps(json!([get(&peer.at().to_string(), "/0")])).await?;
    knows(arena, &peer)?;
    unseen(arena, &steps.call)?;
    match steps.ok(0)?.get("body").and_then(Value::as_str) {
        Some("ok") => Ok(Verdict::told("ok")),
        body => Err(Escape::new(format!("the body is {body:?}"))),
    }
}

async fn broken(arena: &Arena) -> Stopped {
    let value = arena.secret();
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
    withheld(arena, raw(heads.to_vec()), heads.len(), &["Http", "HTTP"]).await
}
