//! Attacks by granted hosts that repeat the secret that they were sent.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use super::super::network::get_step;
use super::{check_peer_knows, check_unseen, check_withheld, path_number};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::PROBE;
use crate::peer::{PeerAct, PeerRequest, Script, page_script};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "secrets-echo-server",
        kind: AttackKind::Secrets,
        tries: "asks a granted host that answers with the whole request it got",
        stopped_by: "replies are searched for the value (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(echo_server(arena)),
    },
    Attack {
        id: "secrets-echo-in-a-body",
        kind: AttackKind::Secrets,
        tries: "has the value repeated as it is, in JSON, in capitals, at the end of a long page",
        stopped_by: "replies are searched for the value (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(echo_in_bodies(arena, plain_forms)),
    },
    Attack {
        id: "secrets-echo-in-base64",
        kind: AttackKind::Secrets,
        tries: "has the value repeated in base64, in both alphabets and at every offset",
        stopped_by: "replies are searched for the value's encoded forms (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(echo_in_bodies(arena, base64_forms)),
    },
    Attack {
        id: "secrets-echo-encoded",
        kind: AttackKind::Secrets,
        tries: "has the value repeated in hexadecimal, percent-encoded, and escaped as in JSON",
        stopped_by: "replies are searched for the value's encoded forms (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(echo_in_bodies(arena, encoded_forms)),
    },
    Attack {
        id: "secrets-echo-in-escapes",
        kind: AttackKind::Secrets,
        tries: "has some of the value's letters escaped as JSON, a URL or a page escapes them",
        stopped_by: "every byte of the value may stand in an escape (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(echo_in_bodies(arena, escaped_forms)),
    },
    Attack {
        id: "secrets-echo-in-mixed-escapes",
        kind: AttackKind::Secrets,
        tries: "has each letter of the value escaped in another way, and escapes escaped again",
        stopped_by: "every byte of the value may stand in an escape (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(echo_in_bodies(arena, mixed_forms)),
    },
    Attack {
        id: "secrets-echo-in-pieces",
        kind: AttackKind::Secrets,
        tries: "has the value repeated letter by letter, each in a chunk of its own",
        stopped_by: "nothing of a reply is passed on before all of it was searched (INV-103)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(echo_in_chunks(arena)),
    },
    Attack {
        id: "secrets-echo-in-a-header",
        kind: AttackKind::Secrets,
        tries: "has the value repeated in headers, as a value and as a name",
        stopped_by: "heads of replies are searched like bodies (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(echo_in_headers(arena)),
    },
    Attack {
        id: "secrets-echo-in-a-redirect",
        kind: AttackKind::Secrets,
        tries: "is redirected to a URL that holds the value, plain and encoded",
        stopped_by: "heads of replies are searched, and no redirect is followed (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(echo_in_redirect(arena)),
    },
    Attack {
        id: "secrets-echo-in-the-status-line",
        kind: AttackKind::Secrets,
        tries: "has the value repeated as the reason of a status",
        stopped_by: "heads of replies are searched like bodies (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(status_line(arena)),
    },
    Attack {
        id: "secrets-echo-by-another-host",
        kind: AttackKind::Secrets,
        tries: "asks a host without a secret, which knows it from the host that has it",
        stopped_by: "every reply is searched for every secret of the run (INV-104)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(another_host(arena)),
    },
];

/// A script that answers the path `/n` with a page that has the `n`th of these bodies.
fn pages_script(bodies: Vec<String>) -> Script {
    Arc::new(move |asked: &PeerRequest| {
        let body = bodies.get(path_number(asked)).cloned().unwrap_or_default();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        vec![PeerAct::Send((head + &body).into_bytes())]
    })
}

/// A script that answers the path `/n` with the `n`th of the given texts as the whole reply.
pub(super) fn raw_script(replies: Vec<String>) -> Script {
    Arc::new(move |asked: &PeerRequest| {
        vec![PeerAct::Send(
            replies.get(path_number(asked)).cloned().unwrap_or_default().into_bytes(),
        )]
    })
}

/// The error word of a reply that is withheld.
const DENIED: &[&str] = &["HttpRequestDenied"];

/// Attack `secrets-echo-server`: the attacker asks a granted host that answers with the whole request it got.
async fn echo_server(arena: &Arena) -> Stopped {
    let script: Script = Arc::new(|asked: &PeerRequest| {
        let length = asked.head.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{}", asked.head);
        vec![PeerAct::Send(head.into_bytes())]
    });
    check_withheld(arena, script, 1, DENIED).await
}

/// Makes 5 attacks, for example `secrets-echo-in-a-body`: the attacker has the value repeated as it is, in
/// JSON, in capitals, at the end of a long page.
async fn echo_in_bodies(arena: &Arena, forms: fn(&str) -> Vec<String>) -> Stopped {
    let bodies = forms(arena.secret_value());
    let count = bodies.len();
    check_withheld(arena, pages_script(bodies), count, DENIED).await
}

/// The value as it is, in several surroundings and in upper and lower case.
fn plain_forms(value: &str) -> Vec<String> {
    vec![
        value.to_owned(),
        format!("before {value} after"),
        format!("{{\"authorization\":\"Bearer {value}\"}}"),
        value.to_ascii_uppercase(),
        value.to_ascii_lowercase(),
        // The value crosses the border between two parts that are read separately.
        format!("{}{value}", "x".repeat(8_180)),
        format!("{}{value}", "x".repeat(65_520)),
    ]
}

/// A value in base64, at each position within a group of three bytes, in both alphabets.
fn base64_forms(value: &str) -> Vec<String> {
    let padded = ["", "x", "xx"].into_iter().flat_map(|before| {
        ["", "y", "yy"].map(|after| format!("{before}{value}{after}").into_bytes())
    });
    padded.flat_map(|text| [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)]).collect()
}

/// The value in hexadecimal, percent and JSON escapes.
fn encoded_forms(value: &str) -> Vec<String> {
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
    // JSON in JSON, a URL in a URL, JSON in a URL, and a URL in a page.
    |byte| format!("\\\\u{byte:04x}"),
    |byte| format!("%25{byte:02X}"),
    |byte| format!("%5Cu{byte:04x}"),
    |byte| format!("&#37;{byte:02x}"),
    |byte| format!("\\{}", char::from(byte)),
];

/// The value with one letter, every third letter, or the last letter escaped, in each of the ways.
fn escaped_forms(value: &str) -> Vec<String> {
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

/// The value with every letter escaped, each in the next of the ways; once for each way to begin with.
fn mixed_forms(value: &str) -> Vec<String> {
    let text = |from: usize| {
        let ways = ESCAPES.iter().cycle().skip(from);
        value.bytes().zip(ways).map(|(byte, escape)| escape(byte)).collect()
    };
    (0..ESCAPES.len()).map(text).collect()
}

/// Attack `secrets-echo-in-pieces`: the attacker has the value repeated letter by letter, each in a chunk of
/// its own.
async fn echo_in_chunks(arena: &Arena) -> Stopped {
    let chunks = |text: &str| text.chars().map(|c| format!("1\r\n{c}\r\n")).collect::<String>();
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let value = arena.secret_value();
    let replies = vec![
        format!("{head}{}0\r\n\r\n", chunks(&format!("before {value} after"))),
        // Two replies: one begins with a part of the value and repeats it whole, the other contains it once.
        format!("{head}{}0\r\n\r\n", chunks(&format!("{}{value}", &value[..9]))),
    ];
    check_withheld(arena, raw_script(replies), 2, DENIED).await
}

/// Attack `secrets-echo-in-a-header`: the attacker has the value repeated in headers, as a value and as a
/// name.
async fn echo_in_headers(arena: &Arena) -> Stopped {
    let value = arena.secret_value();
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
    check_withheld(arena, raw_script(replies), count, DENIED).await
}

/// Attack `secrets-echo-in-a-redirect`: the attacker is redirected to a URL that holds the value, plain and
/// encoded.
async fn echo_in_redirect(arena: &Arena) -> Stopped {
    let (value, away) = (arena.secret_value(), arena.forbidden_address());
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
    check_withheld(arena, raw_script(replies), count, DENIED).await
}

/// Attack `secrets-echo-in-the-status-line`: the attacker has the value repeated as the reason of a status.
async fn status_line(arena: &Arena) -> Stopped {
    let value = arena.secret_value();
    let replies = vec![
        format!("HTTP/1.1 200 {value}\r\ncontent-length: 0\r\n\r\n"),
        format!("HTTP/1.1 401 no {value} here\r\ncontent-length: 0\r\n\r\n"),
    ];
    check_withheld(arena, raw_script(replies), 2, DENIED).await
}

/// Attack `secrets-echo-by-another-host`: the attacker asks a host without a secret, which knows it from the
/// host that has it.
async fn another_host(arena: &Arena) -> Stopped {
    let value = arena.secret_value();
    let (owner, friend) = (
        arena.start_peer(page_script("kept")).await?,
        arena.start_peer(pages_script(plain_forms(value))).await?,
    );
    let headed = format!("HTTP/1.1 200 OK\r\nx-told: {value}\r\ncontent-length: 0\r\n\r\n");
    let in_a_header = arena.start_peer(raw_script(vec![headed])).await?;
    let builder = arena.jar_builder(&[PROBE]).no_mounts().secret_for(&owner.grant_rule());
    let builder = builder
        .with_host(&owner.grant_rule())
        .with_host(&friend.grant_rule())
        .with_host(&in_a_header.grant_rule());
    let jar = builder.open().await?;
    jar.run_steps(json!([get_step(&owner.address().to_string(), "/")])).await?.step_value(0)?;
    check_peer_knows(arena, &owner)?;
    let mut told = String::new();
    for (peer, path) in [(&friend, "/0"), (&friend, "/1"), (&friend, "/5"), (&in_a_header, "/0")] {
        let steps = jar.run_steps(json!([get_step(&peer.address().to_string(), path)])).await?;
        if peer.received_requests().iter().any(|asked| asked.head.contains(value)) {
            return Err(Escape::new("a host to which it is not bound was sent the secret"));
        }
        check_unseen(arena, &steps.call)?;
        steps.step_error(0)?.clone_into(&mut told);
    }
    Ok(Verdict::with_words(told))
}
