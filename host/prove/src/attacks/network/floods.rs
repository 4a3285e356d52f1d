//! More of everything than is granted.

use belljar_policy::DenyCode;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{both, get, jar, untouched, with};
use crate::Arena;
use crate::attack::{Attack, Escape, Kind, Stopped, Verdict};
use crate::guests::PROBE;
use crate::peer::{Act, Script, page};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "network-more-connections-than-allowed",
        kind: Kind::Network,
        tries: "opens a connection more than its limit, with all the others held open",
        stopped_by: "the stores of a jar share its limit of connections (INV-10)",
        told: "ConnectionLimitReached",
        embedded: true,
        run: |arena| Box::pin(connections(arena)),
    },
    Attack {
        id: "network-upload-past-the-budget",
        kind: Kind::Network,
        tries: "uploads a megabyte where a hundred kilobytes are granted",
        stopped_by: "the budget of sent bytes, taken before anything is sent (INV-12)",
        told: "HttpRequestBodySize",
        embedded: true,
        run: |arena| Box::pin(upload(arena)),
    },
    Attack {
        id: "network-upload-in-small-pieces",
        kind: Kind::Network,
        tries: "sends one small request after the other, over several calls",
        stopped_by: "the budget of sent bytes is the subagent's, not the call's (INV-12)",
        told: "HttpRequestBodySize",
        embedded: true,
        run: |arena| Box::pin(small_pieces(arena)),
    },
    Attack {
        id: "network-flood-of-refused-requests",
        kind: Kind::Network,
        tries: "makes 2,000 requests that are refused, to fill the record",
        stopped_by: "a bound on the refusals that are kept; the rest is counted",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(refusals(arena)),
    },
    Attack {
        id: "network-requests-never-sent",
        kind: Kind::Network,
        tries: "makes 100,000 requests and sends none",
        stopped_by: "a bound on the headers and requests that a store holds",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(never_sent(arena)),
    },
    Attack {
        id: "network-promises-never-read",
        kind: Kind::Network,
        tries: "sends 20,000 requests and asks for no answer",
        stopped_by: "a bound on what the host holds for one store (INV-19)",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(never_read(arena)),
    },
    Attack {
        id: "network-headers-of-a-request",
        kind: Kind::Network,
        tries: "sends a hundred headers and one, and three hundred",
        stopped_by: "a bound on the headers of a request",
        told: "Size",
        embedded: true,
        run: |arena| Box::pin(headers(arena)),
    },
    Attack {
        id: "network-header-past-the-bound",
        kind: Kind::Network,
        tries: "fills a list of headers with a megabyte",
        stopped_by: "a bound on the bytes of a list of headers (INV-19)",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(long_header(arena)),
    },
    Attack {
        id: "network-long-parts",
        kind: Kind::Network,
        tries: "asks with a path, an authority, a method and a scheme of 100,000 letters",
        stopped_by: "a bound on each part of a request",
        told: "path refused",
        embedded: true,
        run: |arena| Box::pin(long_parts(arena)),
    },
];

/// A step that sends and does not wait.
fn send(authority: &str) -> Value {
    named("http-send", authority)
}

fn named(step: &str, authority: &str) -> Value {
    let mut value = get(authority, "/");
    if let Some(fields) = value.as_object_mut() {
        fields.insert("do".to_owned(), json!(step));
    }
    value
}

async fn connections(arena: &Arena) -> Stopped {
    const ALLOWED: u64 = 3;
    let (count, mut asked) = watch::channel(0_u64);
    let script: Script = std::sync::Arc::new(move |_| {
        count.send_modify(|count| *count += 1);
        vec![Act::Hold]
    });
    let peer = arena.peer(script).await?;
    let builder = arena.jar(&[PROBE]).no_mounts().host(&peer.rule());
    let jar = builder.limits(|limits| limits.connections = ALLOWED).open().await?;
    let at = peer.at().to_string();
    let all = json!([{ "do": "repeat", "times": ALLOWED, "step": send(&at) }]);
    jar.steps(all).await?.ok(0)?;
    // All of them are open, and stay so in the next call.
    let open = asked.wait_for(|asked| *asked == ALLOWED).await;
    open.map_err(|_| Escape::new("the peer is gone"))?;
    let steps = jar.steps(json!([get(&at, "/"), get(&at, "/")])).await?;
    // By its own count: what it was asked is kept a moment after it has begun to answer.
    let times = *asked.borrow();
    if times != ALLOWED {
        return Err(Escape::new(format!("the peer was asked {times} times")));
    }
    let denied = steps.call.denied(DenyCode::LimitReached);
    both(denied, steps.all_refused(0, &["ConnectionLimitReached"]))
}

async fn upload(arena: &Arena) -> Stopped {
    const EGRESS: u64 = 100_000;
    let peer = arena.peer(page("thanks")).await?;
    let builder = arena.jar(&[PROBE]).no_mounts().host(&peer.rule());
    let jar = builder.limits(|limits| limits.egress_bytes = EGRESS).open().await?;
    let headers = json!([["content-length", "1000000"]]);
    let body =
        json!({ "method": "POST", "headers": headers, "body": "0123456789", "times": 100_000 });
    let steps = jar.steps(json!([with(&peer.at().to_string(), "/", body)])).await?;
    let sent = steps.call.result.receipt.bytes.sent;
    if sent > EGRESS || peer.asked().iter().any(|asked| asked.body.len() as u64 > EGRESS) {
        return Err(Escape::new(format!("{sent} bytes went out, of {EGRESS} granted")));
    }
    let told = steps.error(0)?;
    steps.call.denied(DenyCode::LimitReached)?;
    // The guest may meet the closed stream before the reason.
    let told = if told == "closed" { "HttpRequestBodySize" } else { told };
    Ok(Verdict::told(told))
}

async fn small_pieces(arena: &Arena) -> Stopped {
    const EGRESS: u64 = 5_000;
    let peer = arena.peer(page("thanks")).await?;
    let builder = arena.jar(&[PROBE]).no_mounts().host(&peer.rule());
    let jar = builder.limits(|limits| limits.egress_bytes = EGRESS).open().await?;
    let path = format!("/{}", "x".repeat(400));
    let step = get(&peer.at().to_string(), &path);
    let (mut sent, mut last) = (0, None);
    for _ in 0..5 {
        let repeat = json!([{ "do": "repeat", "times": 4, "step": step }]);
        let steps = jar.steps(repeat).await?;
        sent += steps.call.result.receipt.bytes.sent;
        last = steps.repeated(0)?.1.map(str::to_owned).or(last);
    }
    let requests = peer.asked().len();
    if sent > EGRESS || !(1..=12).contains(&requests) {
        return Err(Escape::new(format!(
            "{sent} bytes in {requests} requests of {EGRESS} granted"
        )));
    }
    Ok(Verdict::told(last.ok_or_else(|| Escape::new("nothing was refused"))?))
}

async fn refusals(arena: &Arena) -> Stopped {
    const REQUESTS: u64 = 2_000;
    let peer = arena.peer(page("here")).await?;
    let jar = jar(arena, &[&peer.rule()]).await?;
    let step = get("{n}.unlisted.test", "/");
    let repeat = json!([{ "do": "repeat", "times": REQUESTS, "step": step, "on": true }]);
    let steps = jar.steps(repeat).await?;
    let receipt = &steps.call.result.receipt;
    let (kept, dropped) = (receipt.denials.len() as u64, receipt.denials_dropped);
    if kept > 100 || kept + dropped != REQUESTS {
        return Err(Escape::new(format!("{kept} refusals are kept, {dropped} counted")));
    }
    let (done, error) = steps.repeated(0)?;
    untouched(&jar, &peer).await?;
    match error {
        Some(error) if done == 0 => Ok(Verdict::told(error)),
        _ => Err(Escape::new(format!("{done} requests were not refused"))),
    }
}

async fn never_sent(arena: &Arena) -> Stopped {
    let jar = jar(arena, &["http://*:*"]).await?;
    let step = named("http-hold", "held.test");
    let repeat = json!([{ "do": "repeat", "times": 100_000, "step": step }]);
    jar.try_steps(repeat).await.trapped("")
}

async fn never_read(arena: &Arena) -> Stopped {
    let jar = jar(arena, &["http://*:*"]).await?;
    let repeat = json!([{ "do": "repeat", "times": 20_000, "step": send("held.test") }]);
    jar.try_steps(repeat).await.trapped("")
}

async fn headers(arena: &Arena) -> Stopped {
    let peer = arena.peer(page("here")).await?;
    let jar = jar(arena, &[&peer.rule()]).await?;
    let at = peer.at().to_string();
    let many: Vec<_> = (0..300).map(|n| [format!("x-{n}"), "1".to_owned()]).collect();
    let few: Vec<_> = (0..101).map(|n| [format!("x-{n}"), "1".to_owned()]).collect();
    let steps = json!([
        with(&at, "/", json!({ "headers": many })),
        with(&at, "/", json!({ "headers": few })),
    ]);
    let steps = jar.steps(steps).await?;
    untouched(&jar, &peer).await?;
    steps.all_refused(0, &["Size"])
}

async fn long_header(arena: &Arena) -> Stopped {
    let jar = jar(arena, &["http://*:*"]).await?;
    jar.try_steps(json!([{ "do": "fields", "bytes": 1 << 20 }])).await.trapped("")
}

async fn long_parts(arena: &Arena) -> Stopped {
    let peer = arena.peer(page("here")).await?;
    let jar = jar(arena, &[&peer.rule()]).await?;
    let (at, long) = (peer.at().to_string(), "x".repeat(100_000));
    let steps = json!([
        get(&at, &format!("/{long}")),
        get(&at, &format!("/?{long}")),
        get(&long, "/"),
        with(&at, "/", json!({ "method": long })),
        with(&at, "/", json!({ "scheme": long })),
    ]);
    let steps = jar.steps(steps).await?;
    untouched(&jar, &peer).await?;
    let words = ["path refused", "authority refused", "method refused", "scheme refused"];
    steps.all_refused(0, &words)
}
