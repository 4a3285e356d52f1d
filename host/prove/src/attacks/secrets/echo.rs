//! Granted hosts that repeat the secret they were sent.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use super::super::network::get;
use super::{knows, number, unseen, withheld};
use crate::Arena;
use crate::attack::{Attack, Escape, Kind, Stopped, Verdict};
use crate::guests::PROBE;
use crate::peer::{Act, PeerRequest, Script, page};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "secrets-echo-server",
        kind: Kind::Secrets,
        tries: "asks a granted host that answers with the whole request it got",
        stopped_by: "replies are searched for the value (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(echo_server(arena)),
    },
    Attack {
        id: "secrets-echo-in-a-body",
        kind: Kind::Secrets,
        tries: "has the value repeated as it is, in JSON, in capitals, at the end of a long page",
        stopped_by: "replies are searched for the value (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(bodies(arena, plain)),
    },
    Attack {
        id: "secrets-echo-in-base64",
        kind: Kind::Secrets,
        tries: "has the value repeated in base64, in both alphabets and at every offset",
        stopped_by: "replies are searched for the value's encoded forms (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(bodies(arena, base64)),
    },
    Attack {
        id: "secrets-echo-encoded",
        kind: Kind::Secrets,
        tries: "has the value repeated in hexadecimal, percent-encoded, and escaped as in JSON",
        stopped_by: "replies are searched for the value's encoded forms (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(bodies(arena, encoded)),
    },
    Attack {
        id: "secrets-echo-in-escapes",
        kind: Kind::Secrets,
        tries: "has some of the value's letters escaped as JSON, a URL or a page escapes them",
        stopped_by: "every byte of the value may stand in an escape (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(bodies(arena, escaped)),
    },
    Attack {
        id: "secrets-echo-in-mixed-escapes",
        kind: Kind::Secrets,
        tries: "has each letter of the value escaped in another way, and escapes escaped again",
        stopped_by: "every byte of the value may stand in an escape (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(bodies(arena, mixed)),
    },
    Attack {
        id: "secrets-echo-in-pieces",
        kind: Kind::Secrets,
        tries: "has the value repeated letter by letter, each in a chunk of its own",
        stopped_by: "nothing of a reply is passed on before all of it was searched (INV-103)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(pieces(arena)),
    },
    Attack {
        id: "secrets-echo-in-a-header",
        kind: Kind::Secrets,
        tries: "has the value repeated in headers, as a value and as a name",
        stopped_by: "heads of replies are searched like bodies (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(headers(arena)),
    },
    Attack {
        id: "secrets-echo-in-a-redirect",
        kind: Kind::Secrets,
        tries: "is redirected to a URL that holds the value, plain and encoded",
        stopped_by: "heads of replies are searched, and no redirect is followed (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(redirect(arena)),
    },
    Attack {
        id: "secrets-echo-in-the-status-line",
        kind: Kind::Secrets,
        tries: "has the value repeated as the reason of a status",
        stopped_by: "heads of replies are searched like bodies (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(status_line(arena)),
    },
    Attack {
        id: "secrets-echo-by-another-host",
        kind: Kind::Secrets,
        tries: "asks a host without a secret, which knows it from the host that has it",
        stopped_by: "every reply is searched for every secret of the run (INV-104)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(another_host(arena)),
    },
];

/// A script that answers the path `/n` with the `n`th of these bodies.
fn pages(bodies: Vec<String>) -> Script {
    Arc::new(move |asked: &PeerRequest| {
        let body = bodies.get(number(asked)).cloned().unwrap_or_default();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        vec![Act::Send((head + &body).into_bytes())]
    })
}

/// A script that answers the path `/n` with the `n`th of these texts, whatever they are.
pub(super) fn raw(replies: Vec<String>) -> Script {
    Arc::new(move |asked: &PeerRequest| {
        vec![Act::Send(replies.get(number(asked)).cloned().unwrap_or_default().into_bytes())]
    })
}

/// The word for a reply that is withheld.
const DENIED: &[&str] = &["HttpRequestDenied"];

async fn echo_server(arena: &Arena) -> Stopped {
    let script: Script = Arc::new(|asked: &PeerRequest| {
        let length = asked.head.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{}", asked.head);
        vec![Act::Send(head.into_bytes())]
    });
    withheld(arena, script, 1, DENIED).await
}

async fn bodies(arena: &Arena, forms: fn(&str) -> Vec<String>) -> Stopped {
    let bodies = forms(arena.secret());
    let count = bodies.len();
    withheld(arena, pages(bodies), count, DENIED).await
}

fn plain(value: &str) -> Vec<String> {
    vec![
        value.to_owned(),
        format!("before {value} after"),
        format!("{{\"authorization\":\"Bearer {value}\"}}"),
        value.to_ascii_uppercase(),
        value.to_ascii_lowercase(),
        // Across the bounds of what is read at once.
        format!("{}{value}", "x".repeat(8_180)),
        format!("{}{value}", "x".repeat(65_520)),
    ]
}

fn base64(value: &str) -> Vec<String> {
    let padded = ["", "x", "xx"].into_iter().flat_map(|before| {
        ["", "y", "yy"].map(|after| format!("{before}{value}{after}").into_bytes())
    });
    padded.flat_map(|text| [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)]).collect()
}

fn encoded(value: &str) -> Vec<String> {
    let all = |form: fn(u8) -> String| value.bytes().map(form).collect::<String>();
    vec![
        all(|byte| format!("{byte:02x}")),
        all(|byte| format!("{byte:02X}")),
        all(|byte| format!("%{byte:02x}")),
        all(|byte| format!("\\u{byte:04x}")),
        all(|byte| format!("\\u{byte:04X}")),
    ]
}

/// The ways in which servers escape a byte.
const ESCAPES: &[fn(u8) -> String] = &[
    |byte| format!("\\u{byte:04x}"),
    |byte| format!("\\u{byte:04X}"),
    |byte| format!("\\u{{{byte:x}}}"),
    |byte| format!("\\x{byte:02x}"),
    |byte| format!("%{byte:02X}"),
    |byte| format!("%{byte:02x}"),
    |byte| format!("&#{byte};"),
    |byte| format!("&#x{byte:X};"),
    // In JSON in JSON, in a URL in a URL, JSON in a URL, a URL in a page.
    |byte| format!("\\\\u{byte:04x}"),
    |byte| format!("%25{byte:02X}"),
    |byte| format!("%5Cu{byte:04x}"),
    |byte| format!("&#37;{byte:02x}"),
    |byte| format!("\\{}", char::from(byte)),
];

/// One letter escaped, every third one, and the last one, in each of the ways.
fn escaped(value: &str) -> Vec<String> {
    let last = value.len().saturating_sub(1);
    let chosen: [&dyn Fn(usize) -> bool; 3] = [&|at| at == 7, &|at| at % 3 == 0, &|at| at == last];
    let text = |escape: &fn(u8) -> String, chosen: &dyn Fn(usize) -> bool| {
        let spelled = value.bytes().enumerate();
        let spelled = spelled.map(|(at, byte)| match chosen(at) {
            true => escape(byte),
            false => char::from(byte).to_string(),
        });
        format!("{{\"key\":\"{}\"}}", spelled.collect::<String>())
    };
    let texts = ESCAPES.iter().flat_map(|escape| chosen.map(|chosen| text(escape, chosen)));
    texts.collect()
}

/// Each letter escaped in the next of the ways, from each of them on.
fn mixed(value: &str) -> Vec<String> {
    let text = |from: usize| {
        let ways = ESCAPES.iter().cycle().skip(from);
        value.bytes().zip(ways).map(|(byte, escape)| escape(byte)).collect()
    };
    (0..ESCAPES.len()).map(text).collect()
}

async fn pieces(arena: &Arena) -> Stopped {
    let chunks = |text: &str| text.chars().map(|c| format!("1\r\n{c}\r\n")).collect::<String>();
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let value = arena.secret();
    let replies = vec![
        format!("{head}{}0\r\n\r\n", chunks(&format!("before {value} after"))),
        // Twice begun, and once whole.
        format!("{head}{}0\r\n\r\n", chunks(&format!("{}{value}", &value[..9]))),
    ];
    withheld(arena, raw(replies), 2, DENIED).await
}

async fn headers(arena: &Arena) -> Stopped {
    let value = arena.secret();
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let lines = [
        format!("x-echo: {value}"),
        format!("set-cookie: session={value}; path=/"),
        format!("www-authenticate: Bearer realm=\"{value}\""),
        format!("etag: \"{}\"", STANDARD.encode(value)),
        format!("content-type: text/{value}"),
        format!("x-{value}: 1"),
        format!("x-{hex}: 1"),
    ];
    let reply = |line: String| format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{line}\r\n\r\n");
    let replies: Vec<_> = lines.into_iter().map(reply).collect();
    let count = replies.len();
    withheld(arena, raw(replies), count, DENIED).await
}

async fn redirect(arena: &Arena) -> Stopped {
    let (value, away) = (arena.secret(), arena.forbidden());
    let percent: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let places = [
        format!("http://{away}/?key={value}"),
        format!("http://{value}@{away}/"),
        format!("http://{away}/{percent}"),
        format!("http://{away}/#{}", URL_SAFE_NO_PAD.encode(value)),
    ];
    let reply = |place: String| {
        format!("HTTP/1.1 302 Found\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n")
    };
    let replies: Vec<_> = places.into_iter().map(reply).collect();
    let count = replies.len();
    withheld(arena, raw(replies), count, DENIED).await
}

async fn status_line(arena: &Arena) -> Stopped {
    let value = arena.secret();
    let replies = vec![
        format!("HTTP/1.1 200 {value}\r\ncontent-length: 0\r\n\r\n"),
        format!("HTTP/1.1 401 no {value} here\r\ncontent-length: 0\r\n\r\n"),
    ];
    withheld(arena, raw(replies), 2, DENIED).await
}

async fn another_host(arena: &Arena) -> Stopped {
    let value = arena.secret();
    let (owner, friend) = (arena.peer(page("kept")).await?, arena.peer(pages(plain(value))).await?);
    let headed = format!("HTTP/1.1 200 OK\r\nx-told: {value}\r\ncontent-length: 0\r\n\r\n");
    let in_a_header = arena.peer(raw(vec![headed])).await?;
    let builder = arena.jar(&[PROBE]).no_mounts().secret_for(&owner.rule());
    let builder = builder.host(&owner.rule()).host(&friend.rule()).host(&in_a_header.rule());
    let jar = builder.open().await?;
    jar.steps(json!([get(&owner.at().to_string(), "/")])).await?.ok(0)?;
    knows(arena, &owner)?;
    let mut told = String::new();
    for (peer, path) in [(&friend, "/0"), (&friend, "/1"), (&friend, "/5"), (&in_a_header, "/0")] {
        let steps = jar.steps(json!([get(&peer.at().to_string(), path)])).await?;
        if peer.asked().iter().any(|asked| asked.head.contains(value)) {
            return Err(Escape::new("a host to which it is not bound was sent the secret"));
        }
        unseen(arena, &steps.call)?;
        steps.error(0)?.clone_into(&mut told);
    }
    Ok(Verdict::told(told))
}
