//! Attacks that guess a secret. Besides the host that has the secret, the guest may call a second host, which
//! is the attacker's and sends beginnings of the value: right ones, and wrong ones of the same length. Any
//! difference between the two would tell a byte of the secret.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::network::{get_step, request_step};
use super::{check_peer_knows, path_number};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::PROBE;
use crate::jar::{OpenJar, StepResults};
use crate::peer::{LoopbackPeer, PeerAct, PeerRequest, Script, page_script};

const STOPPED_BY: &str = "nothing of a reply is passed on before all of it was searched (INV-103)";

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "secrets-guess-by-length",
        kind: AttackKind::Secrets,
        tries: "has a second host send guesses and fall silent, and counts how each ended",
        stopped_by: STOPPED_BY,
        told: "ConnectionReadTimeout",
        embedded: true,
        run: |arena| Box::pin(by_length(arena)),
    },
    Attack {
        id: "secrets-guess-by-chunks",
        kind: AttackKind::Secrets,
        tries: "has a second host send guesses byte by byte, and looks how they arrive",
        stopped_by: STOPPED_BY,
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(by_chunks(arena)),
    },
    Attack {
        id: "secrets-guess-by-time",
        kind: AttackKind::Secrets,
        tries: "has a second host send guesses and the rest later, and looks which come at once",
        stopped_by: STOPPED_BY,
        told: "neither",
        embedded: true,
        run: |arena| Box::pin(by_time(arena)),
    },
    Attack {
        id: "secrets-guess-by-reset",
        kind: AttackKind::Secrets,
        tries: "has a second host break the connection off after guesses, and compares the errors",
        stopped_by: "a reply that breaks off says the same whatever it held (INV-103)",
        told: "HttpProtocolError",
        embedded: true,
        run: |arena| Box::pin(by_reset(arena)),
    },
    Attack {
        id: "secrets-guess-in-a-header",
        kind: AttackKind::Secrets,
        tries: "has a second host send guesses in headers and trailers",
        stopped_by: STOPPED_BY,
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(in_a_header(arena)),
    },
    Attack {
        id: "secrets-guess-by-place",
        kind: AttackKind::Secrets,
        tries: "has a second host send the value at different places of a reply that goes on",
        stopped_by: "what is found is acted on at the end of the reply only (INV-103)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(by_place(arena)),
    },
];

/// The lengths of the beginnings; none is a whole encoded form of the value, not even one without its last
/// bytes.
const ENDS: [usize; 3] = [1, 9, 26];

/// Right and wrong guesses in turn; a wrong one differs only in its last byte.
fn make_guesses(value: &str) -> Vec<String> {
    let percent = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let mut guesses = Vec::new();
    for end in ENDS {
        let right: String = value.chars().take(end).collect();
        let wrong: String = value.chars().take(end - 1).chain(['_']).collect();
        guesses.extend([percent(&right), percent(&wrong), right, wrong]);
    }
    guesses
}

/// A script that answers the path `/n` with the acts that `acts` makes of the `n`th text.
fn texts_script(texts: Vec<String>, acts: fn(&str) -> Vec<PeerAct>) -> Script {
    Arc::new(move |asked: &PeerRequest| {
        texts.get(path_number(asked)).map(|text| acts(text)).unwrap_or_default()
    })
}

/// Starts the host that has the secret and calls it once, and the attacker's host; returns both with a jar
/// that may call both.
async fn two_hosts(
    arena: &Arena,
    script: Script,
) -> Result<(LoopbackPeer, LoopbackPeer, OpenJar), Escape> {
    let (owner, second) =
        (arena.start_peer(page_script("kept")).await?, arena.start_peer(script).await?);
    let builder = arena
        .jar_builder(&[PROBE])
        .no_mounts()
        .with_host(&owner.grant_rule())
        .with_host(&second.grant_rule());
    let jar = builder.secret_for(&owner.grant_rule()).open().await?;
    jar.run_steps(json!([get_step(&owner.address().to_string(), "/")])).await?.step_value(0)?;
    check_peer_knows(arena, &owner)?;
    Ok((owner, second, jar))
}

/// Sends a request for each guess, with these additional fields.
async fn ask_guesses(
    arena: &Arena,
    guesses: Vec<String>,
    acts: fn(&str) -> Vec<PeerAct>,
    more: Value,
) -> Result<StepResults, Escape> {
    let count = guesses.len();
    let (_owner, second, jar) = two_hosts(arena, texts_script(guesses, acts)).await?;
    let at = second.address().to_string();
    let requests: Vec<_> =
        (0..count).map(|n| request_step(&at, &format!("/{n}"), more.clone())).collect();
    let steps = jar.run_steps(json!(requests)).await?;
    match second.received_requests().len() == count {
        true => Ok(steps),
        false => Err(Escape::new("the second host was not asked for every guess")),
    }
}

/// Checks that no reply was withheld because of a secret, so the receipt shows no difference between right
/// and wrong guesses.
fn no_denials(steps: &StepResults) -> Result<(), Escape> {
    match &*steps.call.result.receipt.denials {
        [] => Ok(()),
        denials => Err(Escape::new(format!("a beginning was refused: {denials:?}"))),
    }
}

/// Checks that the replies arrived as they were sent.
fn check_arrived(
    steps: &StepResults,
    count: usize,
    length: impl Fn(usize) -> usize,
) -> Result<(), Escape> {
    for step in 0..count {
        let reply = steps.step_value(step)?;
        let came = reply.get("length").and_then(Value::as_u64);
        if came != Some(length(step) as u64) || reply.get("error") != Some(&Value::Null) {
            return Err(Escape::new(format!("guess {step} came as {reply}")));
        }
    }
    no_denials(steps)
}

/// Checks that the whole value, sent in the same way, is refused, which proves that the host looks for it.
async fn whole_is_refused(arena: &Arena, acts: fn(&str) -> Vec<PeerAct>) -> Stopped {
    let steps = ask_guesses(arena, vec![arena.secret_value().to_owned()], acts, json!({})).await?;
    steps.all_refused(0, &["HttpRequestDenied"])
}

/// Attack `secrets-guess-by-length`: the attacker has a second host send guesses and fall silent, and counts
/// how each ended.
async fn by_length(arena: &Arena) -> Stopped {
    let acts = |text: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n";
        vec![PeerAct::Send(format!("{head}{text}").into_bytes()), PeerAct::Hold]
    };
    let silence = json!({ "between_bytes": 20_000_000 });
    let steps = ask_guesses(arena, make_guesses(arena.secret_value()), acts, silence).await?;
    no_denials(&steps)?;
    steps.all_refused(0, &["ConnectionReadTimeout"])
}

/// Attack `secrets-guess-by-chunks`: the attacker has a second host send guesses byte by byte, and looks how
/// they arrive.
async fn by_chunks(arena: &Arena) -> Stopped {
    let acts = |text: &str| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
        let chunks = text.chars().map(|c| format!("1\r\n{c}\r\n"));
        let pieces = std::iter::once(head).chain(chunks).chain(["0\r\n\r\n".to_owned()]);
        pieces.map(|piece| PeerAct::Send(piece.into_bytes())).collect()
    };
    let guesses = make_guesses(arena.secret_value());
    let lengths: Vec<usize> = guesses.iter().map(String::len).collect();
    let steps = ask_guesses(arena, guesses, acts, json!({})).await?;
    check_arrived(&steps, lengths.len(), |step| lengths.get(step).copied().unwrap_or_default())?;
    whole_is_refused(arena, acts).await
}

/// The pause between the last bytes of a slow reply.
const APART: Duration = Duration::from_millis(15);
const LATE: u8 = 8;

/// Attack `secrets-guess-by-time`: the attacker has a second host send guesses and the rest later, and looks
/// which come at once.
async fn by_time(arena: &Arena) -> Stopped {
    let acts = |text: &str| {
        let length = text.len() + usize::from(LATE);
        let begin = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{text}");
        let late = vec![b'.'; usize::from(LATE)];
        vec![PeerAct::Send(begin.into_bytes()), PeerAct::Drip(late, APART)]
    };
    let texts = make_guesses(arena.secret_value()).split_off(8);
    let count = texts.len();
    let (_owner, second, jar) = two_hosts(arena, texts_script(texts, acts)).await?;
    for n in 0..count {
        let first =
            request_step(&second.address().to_string(), &format!("/{n}"), json!({ "read": 1 }));
        let began = Instant::now();
        jar.run_steps(json!([first])).await?.step_value(0)?;
        // The first of the late bytes is sent without a pause.
        if began.elapsed() < APART * u32::from(LATE - 1) {
            return Err(Escape::new(format!("guess {n} came before its reply was there")));
        }
    }
    Ok(Verdict::with_words("neither"))
}

/// Attack `secrets-guess-by-reset`: the attacker has a second host break the connection off after guesses,
/// and compares the errors.
async fn by_reset(arena: &Arena) -> Stopped {
    let acts = |text: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 999\r\n";
        vec![PeerAct::Send(format!("{head}x-guess: {text}\r\n\r\n{text}").into_bytes())]
    };
    let mut guesses = make_guesses(arena.secret_value());
    guesses.push(arena.secret_value().to_owned());
    let steps = ask_guesses(arena, guesses, acts, json!({})).await?;
    no_denials(&steps)?;
    steps.all_refused(0, &["HttpProtocolError"])
}

/// Attack `secrets-guess-in-a-header`: the attacker has a second host send guesses in headers and trailers.
async fn in_a_header(arena: &Arena) -> Stopped {
    let header: fn(&str) -> Vec<PeerAct> = |text| {
        let head = format!("HTTP/1.1 200 OK\r\nx-guess: {text}\r\ncontent-length: 2\r\n\r\nok");
        vec![PeerAct::Send(head.into_bytes())]
    };
    let trailer: fn(&str) -> Vec<PeerAct> = |text| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-guess\r\n\r\n";
        vec![PeerAct::Send(format!("{head}2\r\nok\r\n0\r\nx-guess: {text}\r\n\r\n").into_bytes())]
    };
    for acts in [header, trailer] {
        let guesses = make_guesses(arena.secret_value());
        let count = guesses.len();
        check_arrived(&ask_guesses(arena, guesses, acts, json!({})).await?, count, |_| 2)?;
        whole_is_refused(arena, acts).await?;
    }
    whole_is_refused(arena, header).await
}

/// Attack `secrets-guess-by-place`: the attacker has a second host send the value at different places of a
/// reply that goes on.
async fn by_place(arena: &Arena) -> Stopped {
    let acts = |text: &str| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", text.len() + 4);
        let begin = format!("{head}{text}").into_bytes();
        vec![PeerAct::Send(begin), PeerAct::Drip(b"late".to_vec(), APART)]
    };
    let value = arena.secret_value();
    let place =
        |before: usize| format!("{}{value}{}", "x".repeat(before), "y".repeat(900 - before));
    let texts: Vec<_> = [0, 1, 450, 900].into_iter().map(place).collect();
    let count = texts.len();
    let (_owner, second, jar) = two_hosts(arena, texts_script(texts, acts)).await?;
    let mut told = String::new();
    for n in 0..count {
        let began = Instant::now();
        let steps = jar
            .run_steps(json!([get_step(&second.address().to_string(), &format!("/{n}"))]))
            .await?;
        super::check_unseen(arena, &steps.call)?;
        steps.step_error(0)?.clone_into(&mut told);
        if began.elapsed() < APART * 3 {
            return Err(Escape::new(format!("place {n} was refused before its reply was there")));
        }
    }
    Ok(Verdict::with_words(told))
}
