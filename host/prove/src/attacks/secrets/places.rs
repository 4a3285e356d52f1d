//! Attacks that look for a secret where it is used, or that leave one for others.

use belljar_policy::DenyCode;
use serde_json::{Value, json};

use super::super::network::{get_step, request_step};
use super::{check_peer_knows, check_unseen, open_bound_jar};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::{self, PROBE};
use crate::jar::{AttackCall, OpenJar};
use crate::peer::{LoopbackPeer, PeerAct, PeerRequest, Script, page_script};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "secrets-read",
        kind: AttackKind::Secrets,
        tries: "looks for the value in its environment, arguments, settings, stdin and the contract",
        stopped_by: "a guest learns that a secret exists and never its value (INV-11)",
        told: "true",
        embedded: true,
        run: |arena| Box::pin(search_surroundings(arena)),
    },
    Attack {
        id: "secrets-guessed-names",
        kind: AttackKind::Secrets,
        tries: "asks for secrets that it was not granted, by names a machine is likely to have",
        stopped_by: "a tool knows only the secrets that it is allowed (INV-11)",
        told: "false",
        embedded: true,
        run: |arena| Box::pin(guess_secret_names(arena)),
    },
    Attack {
        id: "secrets-in-a-file-of-the-home",
        kind: AttackKind::Secrets,
        tries: "reads the file that a secret is kept in: by `..`, by a link, through `/proc`",
        stopped_by: "names are walked one by one, and none leads out of the mount (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(in_a_file(arena)),
    },
    Attack {
        id: "secrets-in-the-log",
        kind: AttackKind::Secrets,
        tries: "logs, prints and reports what it has after the value was repeated to it",
        stopped_by: "the reply was withheld; there is nothing to log (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(in_the_log(arena)),
    },
    Attack {
        id: "secrets-in-a-trap",
        kind: AttackKind::Secrets,
        tries: "crashes with a request that carries the secret under way",
        stopped_by: "a trap's words are the guest's and the engine's own (INV-11)",
        told: "the tool crashed",
        embedded: true,
        run: |arena| {
            let step = json!({ "do": "panic", "text": "authorization" });
            Box::pin(ends_with(arena, step, |call| call.check_trapped("")))
        },
    },
    Attack {
        id: "secrets-in-an-error",
        kind: AttackKind::Secrets,
        tries: "fails with a request that carries the secret under way",
        stopped_by: "an error's words are the guest's own (INV-11)",
        told: "failed",
        embedded: true,
        run: |arena| {
            let step = json!({ "do": "answer-error", "kind": "failed", "text": "authorization" });
            let failed = belljar_sandbox::ToolErrorKind::Failed;
            Box::pin(ends_with(arena, step, move |call| call.tool_error(failed)))
        },
    },
    Attack {
        id: "secrets-in-a-timeout",
        kind: AttackKind::Secrets,
        tries: "is cut off with a request that carries the secret under way",
        stopped_by: "what is told of an end are words of the host's own (INV-11)",
        told: "stopped: the call took over 1 seconds",
        embedded: true,
        run: |arena| {
            let step = json!({ "do": "wait", "ms": 60_000 });
            Box::pin(ends_with(arena, step, AttackCall::check_timed_out))
        },
    },
    Attack {
        id: "secrets-in-a-refusal",
        kind: AttackKind::Secrets,
        tries: "has requests that carry the secret fail for their size, to see what is told of them",
        stopped_by: "refusals name hosts and sizes, never headers (INV-11)",
        told: "Size",
        embedded: true,
        run: |arena| Box::pin(in_a_refusal(arena)),
    },
    Attack {
        id: "secrets-left-in-memory",
        kind: AttackKind::Secrets,
        tries: "searches its new memory for what another agent's tool left there",
        stopped_by: "jars share nothing, and memory is cleared between stores (INV-19)",
        told: "nothing is left",
        embedded: true,
        run: |arena| Box::pin(left_in_memory(arena)),
    },
];

/// Attack `secrets-read`: the attacker looks for the value in its environment, arguments, settings, stdin and
/// the contract.
async fn search_surroundings(arena: &Arena) -> Stopped {
    let (peer, jar) = open_bound_jar(arena, page_script("a")).await?;
    jar.run_steps(json!([get_step(&peer.address().to_string(), "/")])).await?.step_value(0)?;
    check_peer_knows(arena, &peer)?;
    let steps = json!([
        { "do": "has-secret", "name": "canary" },
        { "do": "surroundings" },
        { "do": "config", "key": "canary" },
        { "do": "config", "key": "authorization" },
        { "do": "config", "key": "" },
        { "do": "stdin" },
    ]);
    let steps = jar.run_steps(steps).await?;
    check_unseen(arena, &steps.call)?;
    let around = steps.step_value(1)?;
    let empty = |key: &str| around.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty);
    if !empty("environment") || !empty("arguments") {
        return Err(Escape::new(format!("its surroundings are {around}")));
    }
    Ok(Verdict::with_words(steps.step_value(0)?.to_string()))
}

/// Attack `secrets-guessed-names`: the attacker asks for secrets that it was not granted, by names a machine
/// is likely to have.
async fn guess_secret_names(arena: &Arena) -> Stopped {
    let (_peer, jar) = open_bound_jar(arena, page_script("a")).await?;
    let names = ["github", "openai", "anthropic", "CANARY", "canary ", "can", "", "*", "../canary"];
    let steps: Vec<_> =
        names.iter().map(|name| json!({ "do": "has-secret", "name": name })).collect();
    let steps = jar.run_steps(json!(steps)).await?;
    let mut told = String::new();
    for (step, name) in names.iter().enumerate() {
        match steps.step_value(step) {
            Ok(Value::Bool(false)) => "false".clone_into(&mut told),
            Ok(other) => return Err(Escape::new(format!("`{name}`: {other}"))),
            // A name that no secret can have is an error, which tells just as little.
            Err(_) => {
                steps.step_error(step)?;
            }
        }
    }
    Ok(Verdict::with_words(told))
}

/// Attack `secrets-in-a-file-of-the-home`: the attacker reads the file that a secret is kept in: by `..`, by
/// a link, through `/proc`.
async fn in_a_file(arena: &Arena) -> Stopped {
    let kept = arena.path("home").join("canary.key");
    std::fs::write(&kept, arena.secret_value())?;
    std::os::unix::fs::symlink(&kept, arena.workspace().join("key"))?;
    std::os::unix::fs::symlink("../home", arena.workspace().join("home"))?;
    std::os::unix::fs::symlink("/proc/self", arena.workspace().join("self"))?;
    let jar = arena.jar_builder(&[PROBE]).open().await?;
    let absolute = kept.to_string_lossy();
    let paths =
        ["../home/canary.key", &absolute, "key", "home/canary.key", "self/environ", "self/fd/0"];
    let steps: Vec<_> = paths
        .iter()
        .map(|path| json!({ "do": "read-file", "place": { "path": path, "follow": true } }))
        .collect();
    let steps = jar.run_steps(json!(steps)).await?;
    check_unseen(arena, &steps.call)?;
    steps.call.check_denied(DenyCode::PathNotAllowed)?;
    steps.all_refused(0, &["not-permitted", "no-entry", "access", "loop"])
}

/// Starts a server that repeats each request, and a jar that may call it with the secret.
async fn open_echo_peer(arena: &Arena) -> Result<(LoopbackPeer, OpenJar), Escape> {
    let script: Script = std::sync::Arc::new(|asked: &PeerRequest| {
        let length = asked.head.len();
        let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{}", asked.head);
        vec![PeerAct::Send(text.into_bytes())]
    });
    open_bound_jar(arena, script).await
}

/// Attack `secrets-in-the-log`: the attacker logs, prints and reports what it has after the value was
/// repeated to it.
async fn in_the_log(arena: &Arena) -> Stopped {
    let (peer, jar) = open_echo_peer(arena).await?;
    let steps = json!([
        get_step(&peer.address().to_string(), "/"),
        { "do": "log", "text": "authorization: ${canary} {{canary}} $(canary) %canary%" },
        { "do": "progress", "done": 1, "total": 2, "text": "authorization: ${canary}" },
        { "do": "say", "text": "authorization: ${canary}\n" },
        { "do": "say", "text": "authorization: ${canary}\n", "stderr": true },
    ]);
    let steps = jar.run_steps(steps).await?;
    check_peer_knows(arena, &peer)?;
    check_unseen(arena, &steps.call)?;
    let receipt = &steps.call.result.receipt;
    if receipt.logs.is_empty() || receipt.stdout.is_empty() || receipt.stderr.is_empty() {
        return Err(Escape::new("nothing was logged: this proves nothing"));
    }
    Ok(Verdict::with_words(steps.step_error(0)?))
}

/// Attack by a call that ends abnormally while a request with the secret is running.
async fn ends_with(arena: &Arena, step: Value, ended: impl Fn(&AttackCall) -> Stopped) -> Stopped {
    let (count, mut asked) = tokio::sync::watch::channel(0_u32);
    let script: Script = std::sync::Arc::new(move |_| {
        count.send_modify(|count| *count += 1);
        vec![PeerAct::Hold]
    });
    let peer = arena.start_peer(script).await?;
    let builder = arena
        .jar_builder(&[PROBE])
        .no_mounts()
        .with_host(&peer.grant_rule())
        .secret_for(&peer.grant_rule());
    let jar = builder.with_limits(|limits| limits.call_timeout_seconds = 1).open().await?;
    let mut send = get_step(&peer.address().to_string(), "/");
    if let Some(fields) = send.as_object_mut() {
        fields.insert("do".to_owned(), json!("http-send"));
    }
    jar.run_steps(json!([send])).await?.step_value(0)?;
    asked.wait_for(|asked| *asked > 0).await.map_err(|_| Escape::new("the peer is gone"))?;
    check_peer_knows(arena, &peer)?;
    let call = jar.try_steps(json!([step])).await;
    check_unseen(arena, &call)?;
    ended(&call)
}

/// Attack `secrets-in-a-refusal`: the attacker has requests that carry the secret fail for their size, to see
/// what is told of them.
async fn in_a_refusal(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("a")).await?;
    let builder = arena
        .jar_builder(&[PROBE])
        .no_mounts()
        .with_host(&peer.grant_rule())
        .secret_for(&peer.grant_rule());
    let jar = builder.with_limits(|limits| limits.egress_bytes = 60).open().await?;
    let at = peer.address().to_string();
    let long = json!({ "headers": [["x", "x".repeat(60_000)], ["y", "y".repeat(5_000)]] });
    let steps = jar.run_steps(json!([get_step(&at, "/"), request_step(&at, "/", long)])).await?;
    check_unseen(arena, &steps.call)?;
    if !peer.received_requests().is_empty() {
        return Err(Escape::new("the request was sent"));
    }
    steps.all_refused(0, &["Size"])
}

/// Attack `secrets-left-in-memory`: the attacker searches its new memory for what another agent's tool left
/// there.
async fn left_in_memory(arena: &Arena) -> Stopped {
    let mut told = String::new();
    // Each jar leaves something in its memory, and its slot is used by the next one.
    for _ in 0..6 {
        let jar = arena.jar_builder(&[guests::LEFT_IN_MEMORY]).no_mounts().open().await?;
        let call = jar.call_guest(guests::LEFT_IN_MEMORY).await;
        call.check_completed()?;
        told.clone_from(&call.told);
        if told != "nothing is left" {
            break;
        }
        jar.jar().close().await;
    }
    match &*told {
        "nothing is left" => Ok(Verdict::with_words(told)),
        _ => Err(Escape::new(format!("a new memory was not empty: {told}"))),
    }
}
