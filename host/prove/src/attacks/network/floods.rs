//! Attacks that exceed the network limits of a jar.

use belljar_policy::DenyCode;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{check_both, check_untouched, get_step, open_network_jar, request_step};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::PROBE;
use crate::peer::{PeerAct, Script, page_script};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "network-more-connections-than-allowed",
        kind: AttackKind::Network,
        tries: "opens a connection more than its limit, with all the others held open",
        stopped_by: "the stores of a jar share its limit of connections (INV-10)",
        told: "ConnectionLimitReached",
        embedded: true,
        run: |arena| Box::pin(open_many_connections(arena)),
    },
    Attack {
        id: "network-upload-past-the-budget",
        kind: AttackKind::Network,
        tries: "uploads a megabyte where a hundred kilobytes are granted",
        stopped_by: "the budget of sent bytes, taken before anything is sent (INV-12)",
        told: "HttpRequestBodySize",
        embedded: true,
        run: |arena| Box::pin(upload_too_much(arena)),
    },
    Attack {
        id: "network-upload-in-small-pieces",
        kind: AttackKind::Network,
        tries: "sends one small request after the other, over several calls",
        stopped_by: "the budget of sent bytes is the subagent's, not the call's (INV-12)",
        told: "HttpRequestBodySize",
        embedded: true,
        run: |arena| Box::pin(small_pieces(arena)),
    },
    Attack {
        id: "network-flood-of-refused-requests",
        kind: AttackKind::Network,
        tries: "makes 2,000 requests that are refused, to fill the record",
        stopped_by: "a bound on the refusals that are kept; the rest is counted",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(flood_refusals(arena)),
    },
    Attack {
        id: "network-requests-never-sent",
        kind: AttackKind::Network,
        tries: "makes 100,000 requests and sends none",
        stopped_by: "a bound on the headers and requests that a store holds",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(never_sent(arena)),
    },
    Attack {
        id: "network-promises-never-read",
        kind: AttackKind::Network,
        tries: "sends 20,000 requests and asks for no answer",
        stopped_by: "a bound on what the host holds for one store (INV-19)",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(never_read(arena)),
    },
    Attack {
        id: "network-headers-of-a-request",
        kind: AttackKind::Network,
        tries: "sends a hundred headers and one, and three hundred",
        stopped_by: "a bound on the headers of a request",
        told: "Size",
        embedded: true,
        run: |arena| Box::pin(send_many_headers(arena)),
    },
    Attack {
        id: "network-header-past-the-bound",
        kind: AttackKind::Network,
        tries: "fills a list of headers with a megabyte",
        stopped_by: "a bound on the bytes of a list of headers (INV-19)",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(long_header(arena)),
    },
    Attack {
        id: "network-long-parts",
        kind: AttackKind::Network,
        tries: "asks with a path, an authority, a method and a scheme of 100,000 letters",
        stopped_by: "a bound on each part of a request",
        told: "path refused",
        embedded: true,
        run: |arena| Box::pin(long_parts(arena)),
    },
];

/// A step that sends a request and does not wait for the answer.
fn send_step(authority: &str) -> Value {
    named_step("http-send", authority)
}

/// The step `step` with the fields of a GET request to `authority`.
fn named_step(step: &str, authority: &str) -> Value {
    let mut value = get_step(authority, "/");
    if let Some(fields) = value.as_object_mut() {
        fields.insert("do".to_owned(), json!(step));
    }
    value
}

/// Attack `network-more-connections-than-allowed`: the attacker opens a connection more than its limit, with
/// all the others held open.
async fn open_many_connections(arena: &Arena) -> Stopped {
    const ALLOWED: u64 = 3;
    let (count, mut asked) = watch::channel(0_u64);
    let script: Script = std::sync::Arc::new(move |_| {
        count.send_modify(|count| *count += 1);
        vec![PeerAct::Hold]
    });
    let peer = arena.start_peer(script).await?;
    let builder = arena.jar_builder(&[PROBE]).no_mounts().with_host(&peer.grant_rule());
    let jar = builder.with_limits(|limits| limits.connections = ALLOWED).open().await?;
    let at = peer.address().to_string();
    let all = json!([{ "do": "repeat", "times": ALLOWED, "step": send_step(&at) }]);
    jar.run_steps(all).await?.step_value(0)?;
    // All connections stay open during the next call.
    let open = asked.wait_for(|asked| *asked == ALLOWED).await;
    open.map_err(|_| Escape::new("the peer is gone"))?;
    let steps = jar.run_steps(json!([get_step(&at, "/"), get_step(&at, "/")])).await?;
    // Counted by the server's own counter, because its list of requests is filled a moment after it begins to
    // answer.
    let times = *asked.borrow();
    if times != ALLOWED {
        return Err(Escape::new(format!("the peer was asked {times} times")));
    }
    let denied = steps.call.check_denied(DenyCode::LimitReached);
    check_both(denied, steps.all_refused(0, &["ConnectionLimitReached"]))
}

/// Attack `network-upload-past-the-budget`: the attacker uploads a megabyte where a hundred kilobytes are
/// granted.
async fn upload_too_much(arena: &Arena) -> Stopped {
    const EGRESS: u64 = 100_000;
    let peer = arena.start_peer(page_script("thanks")).await?;
    let builder = arena.jar_builder(&[PROBE]).no_mounts().with_host(&peer.grant_rule());
    let jar = builder.with_limits(|limits| limits.egress_bytes = EGRESS).open().await?;
    let headers = json!([["content-length", "1000000"]]);
    let body =
        json!({ "method": "POST", "headers": headers, "body": "0123456789", "times": 100_000 });
    let steps =
        jar.run_steps(json!([request_step(&peer.address().to_string(), "/", body)])).await?;
    let sent = steps.call.result.receipt.bytes.sent;
    if sent > EGRESS
        || peer.received_requests().iter().any(|asked| asked.body.len() as u64 > EGRESS)
    {
        return Err(Escape::new(format!("{sent} bytes went out, of {EGRESS} granted")));
    }
    let told = steps.step_error(0)?;
    steps.call.check_denied(DenyCode::LimitReached)?;
    // The guest may see the closed stream before it sees the reason.
    let told = if told == "closed" { "HttpRequestBodySize" } else { told };
    Ok(Verdict::with_words(told))
}

/// Attack `network-upload-in-small-pieces`: the attacker sends one small request after the other, over
/// several calls.
async fn small_pieces(arena: &Arena) -> Stopped {
    const EGRESS: u64 = 5_000;
    let peer = arena.start_peer(page_script("thanks")).await?;
    let builder = arena.jar_builder(&[PROBE]).no_mounts().with_host(&peer.grant_rule());
    let jar = builder.with_limits(|limits| limits.egress_bytes = EGRESS).open().await?;
    let path = format!("/{}", "x".repeat(400));
    let step = get_step(&peer.address().to_string(), &path);
    let (mut sent, mut last) = (0, None);
    for _ in 0..5 {
        let repeat = json!([{ "do": "repeat", "times": 4, "step": step }]);
        let steps = jar.run_steps(repeat).await?;
        sent += steps.call.result.receipt.bytes.sent;
        last = steps.repeat_count(0)?.1.map(str::to_owned).or(last);
    }
    let requests = peer.received_requests().len();
    if sent > EGRESS || !(1..=12).contains(&requests) {
        return Err(Escape::new(format!(
            "{sent} bytes in {requests} requests of {EGRESS} granted"
        )));
    }
    Ok(Verdict::with_words(last.ok_or_else(|| Escape::new("nothing was refused"))?))
}

/// Attack `network-flood-of-refused-requests`: the attacker makes 2,000 requests that are refused, to fill
/// the record.
async fn flood_refusals(arena: &Arena) -> Stopped {
    const REQUESTS: u64 = 2_000;
    let peer = arena.start_peer(page_script("here")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let step = get_step("{n}.unlisted.test", "/");
    let repeat = json!([{ "do": "repeat", "times": REQUESTS, "step": step, "on": true }]);
    let steps = jar.run_steps(repeat).await?;
    let receipt = &steps.call.result.receipt;
    let (kept, dropped) = (receipt.denials.len() as u64, receipt.denials_dropped);
    if kept > 100 || kept + dropped != REQUESTS {
        return Err(Escape::new(format!("{kept} refusals are kept, {dropped} counted")));
    }
    let (done, error) = steps.repeat_count(0)?;
    check_untouched(&jar, &peer).await?;
    match error {
        Some(error) if done == 0 => Ok(Verdict::with_words(error)),
        _ => Err(Escape::new(format!("{done} requests were not refused"))),
    }
}

/// Attack `network-requests-never-sent`: the attacker makes 100,000 requests and sends none.
async fn never_sent(arena: &Arena) -> Stopped {
    let jar = open_network_jar(arena, &["http://*:*"]).await?;
    let step = named_step("http-hold", "held.test");
    let repeat = json!([{ "do": "repeat", "times": 100_000, "step": step }]);
    jar.try_steps(repeat).await.check_trapped("")
}

/// Attack `network-promises-never-read`: the attacker sends 20,000 requests and asks for no answer.
async fn never_read(arena: &Arena) -> Stopped {
    let jar = open_network_jar(arena, &["http://*:*"]).await?;
    let repeat = json!([{ "do": "repeat", "times": 20_000, "step": send_step("held.test") }]);
    jar.try_steps(repeat).await.check_trapped("")
}

/// Attack `network-headers-of-a-request`: the attacker sends a hundred headers and one, and three hundred.
async fn send_many_headers(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("here")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let at = peer.address().to_string();
    let many: Vec<_> = (0..300).map(|n| [format!("x-{n}"), "1".to_owned()]).collect();
    let few: Vec<_> = (0..101).map(|n| [format!("x-{n}"), "1".to_owned()]).collect();
    let steps = json!([
        request_step(&at, "/", json!({ "headers": many })),
        request_step(&at, "/", json!({ "headers": few })),
    ]);
    let steps = jar.run_steps(steps).await?;
    check_untouched(&jar, &peer).await?;
    steps.all_refused(0, &["Size"])
}

/// Attack `network-header-past-the-bound`: the attacker fills a list of headers with a megabyte.
async fn long_header(arena: &Arena) -> Stopped {
    let jar = open_network_jar(arena, &["http://*:*"]).await?;
    jar.try_steps(json!([{ "do": "fields", "bytes": 1 << 20 }])).await.check_trapped("")
}

/// Attack `network-long-parts`: the attacker asks with a path, an authority, a method and a scheme of 100,000
/// letters.
async fn long_parts(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("here")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let (at, long) = (peer.address().to_string(), "x".repeat(100_000));
    let steps = json!([
        get_step(&at, &format!("/{long}")),
        get_step(&at, &format!("/?{long}")),
        get_step(&long, "/"),
        request_step(&at, "/", json!({ "method": long })),
        request_step(&at, "/", json!({ "scheme": long })),
    ]);
    let steps = jar.run_steps(steps).await?;
    check_untouched(&jar, &peer).await?;
    let words = ["path refused", "authority refused", "method refused", "scheme refused"];
    steps.all_refused(0, &words)
}
