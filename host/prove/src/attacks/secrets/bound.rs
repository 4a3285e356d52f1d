//! Attacks that try to send a secret, which is bound to one host, to another.

use std::sync::Arc;

use belljar_policy::{DenyCode, SecretName};
use belljar_sandbox::SecretStore;
use serde_json::{Value, json};

use super::super::network::{WireRecorder, get_step, request_step};
use super::{check_peer_knows, open_bound_jar};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::PROBE;
use crate::jar::AttackJarBuilder;
use crate::peer::{LoopbackPeer, page_script, reply_script};
use crate::scene::{ScenePlan, agent_file};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "secrets-bound-to-another-host",
        kind: AttackKind::Secrets,
        tries: "asks a granted host to which the secret is not bound, naming the one that has it",
        stopped_by: "a secret reaches only its own hosts (INV-11)",
        told: "200",
        embedded: true,
        run: |arena| Box::pin(another_host(arena)),
    },
    Attack {
        id: "secrets-same-server-by-another-name",
        kind: AttackKind::Secrets,
        tries: "asks the server that has the secret by other names and by its address",
        stopped_by: "a secret is bound to what a URL says, not to where it leads (INV-11)",
        told: "200",
        embedded: true,
        run: |arena| Box::pin(another_name(arena)),
    },
    Attack {
        id: "secrets-after-a-redirect",
        kind: AttackKind::Secrets,
        tries: "is redirected by the secret's host to another granted one, and follows",
        stopped_by: "no redirect is followed; each request is joined by itself (INV-11)",
        told: "200",
        embedded: true,
        run: |arena| Box::pin(after_a_redirect(arena)),
    },
    Attack {
        id: "secrets-in-clear-text",
        kind: AttackKind::Secrets,
        tries: "asks in clear text for what a secret is bound to without a scheme",
        stopped_by: "clear text carries a secret only where its rule says `http://` (INV-11)",
        told: "200",
        embedded: true,
        run: |arena| Box::pin(clear_text(arena)),
    },
    Attack {
        id: "secrets-clear-text-in-place-of-tls",
        kind: AttackKind::Secrets,
        tries: "answers in clear text where TLS is asked for, and waits for the request",
        stopped_by: "the request is sent after TLS is agreed on (INV-11)",
        told: "Error",
        embedded: true,
        run: |arena| Box::pin(no_tls(arena)),
    },
    Attack {
        id: "secrets-own-authorization",
        kind: AttackKind::Secrets,
        tries: "sets the secret's header itself, to see which one wins",
        stopped_by: "the header of a secret is the host's to write (INV-11)",
        told: "Forbidden",
        embedded: true,
        run: |arena| Box::pin(own_header(arena)),
    },
    Attack {
        id: "secrets-trace",
        kind: AttackKind::Secrets,
        tries: "has the secret's host repeat the request with `TRACE`",
        stopped_by: "a list of methods that pass (INV-10)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(ask_by_trace(arena)),
    },
    Attack {
        id: "secrets-manifest-that-asked-for-none",
        kind: AttackKind::Secrets,
        tries: "is a tool without secrets in its manifest, in an agent that was granted one",
        stopped_by: "a tool gets of the rights only what its manifest asks for (INV-24)",
        told: "200",
        embedded: true,
        run: |arena| Box::pin(whole_run(arena, HOSTS_ONLY, "secrets = [\"canary\"]\n", false)),
    },
    Attack {
        id: "secrets-manifest-that-asks-in-vain",
        kind: AttackKind::Secrets,
        tries: "asks in its manifest for a secret that the agent was not granted",
        stopped_by: "a manifest only narrows what is granted (INV-24)",
        told: "200",
        embedded: true,
        run: |arena| Box::pin(whole_run(arena, HOSTS_AND_SECRETS, "", false)),
    },
    Attack {
        id: "secrets-echo-to-a-model",
        kind: AttackKind::Secrets,
        tries: "has the value repeated into a run, to be told to the model, an event or the outcome",
        stopped_by: "replies are searched for the value (INV-11)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| {
            Box::pin(whole_run(arena, HOSTS_AND_SECRETS, "secrets = [\"canary\"]\n", true))
        },
    },
];

const HOSTS_ONLY: &str =
    "manifest = 1\ndescription = \"test\"\nhosts = [\"http://127.0.0.0/8:*\"]\n";
const HOSTS_AND_SECRETS: &str = "manifest = 1\ndescription = \"test\"\n\
    hosts = [\"http://127.0.0.0/8:*\"]\nsecrets = [\"canary\"]\n";

/// Checks that this server was called, and that no request to it contained the secret's value.
fn check_ignorant(arena: &Arena, peer: &LoopbackPeer) -> Result<(), Escape> {
    let asked = peer.received_requests();
    if asked.is_empty() {
        return Err(Escape::new("the peer was not asked: this proves nothing"));
    }
    match asked.iter().find(|asked| {
        asked.head.contains(arena.secret_value()) || asked.head.contains("authorization")
    }) {
        Some(asked) => Err(Escape::new(format!("the peer was sent {}", asked.head))),
        None => Ok(()),
    }
}

/// Sends the requests in a jar, and checks that each is answered.
async fn expect_answered(builder: AttackJarBuilder<'_>, requests: Vec<Value>) -> Stopped {
    let jar = builder.open().await?;
    let steps = jar.run_steps(json!(requests)).await?;
    let mut told = String::new();
    for step in 0..requests.len() {
        told = steps.step_value(step)?.get("status").map(Value::to_string).unwrap_or_default();
    }
    Ok(Verdict::with_words(told))
}

/// Attack `secrets-bound-to-another-host`: the attacker asks a granted host to which the secret is not bound,
/// naming the one that has it.
async fn another_host(arena: &Arena) -> Stopped {
    let (owner, other) =
        (arena.start_peer(page_script("a")).await?, arena.start_peer(page_script("b")).await?);
    let builder = arena
        .jar_builder(&[PROBE])
        .no_mounts()
        .with_host(&owner.grant_rule())
        .with_host(&other.grant_rule());
    let builder = builder.secret_for(&owner.grant_rule());
    let (at, to) = (owner.address().to_string(), other.address().to_string());
    let body = format!("host: {at}");
    let length = json!([["content-length", body.len().to_string()]]);
    let headers = json!([["referer", format!("http://{at}/")], ["x-forwarded-host", at]]);
    let requests = vec![
        get_step(&at, "/"),
        get_step(&to, "/"),
        get_step(&to, &format!("//{at}/")),
        get_step(&to, &format!("/http://{at}/?host={at}")),
        request_step(&to, "/", json!({ "headers": headers })),
        request_step(&to, "/", json!({ "method": "POST", "headers": length, "body": body })),
    ];
    let stopped = expect_answered(builder, requests).await?;
    check_peer_knows(arena, &owner)?;
    check_ignorant(arena, &other)?;
    Ok(stopped)
}

/// Attack `secrets-same-server-by-another-name`: the attacker asks the server that has the secret by other
/// names and by its address.
async fn another_name(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("a")).await?;
    let (port, address) = (peer.address().port(), peer.address().ip());
    for name in ["api.secret.test", "www.secret.test", "secret.test", "notapi.secret.test"] {
        arena.set_name_answers(name, [vec![address]]);
    }
    let builder = arena.jar_builder(&[PROBE]).no_mounts().with_host(&peer.grant_rule());
    let builder = builder.with_host(&format!("http://*.secret.test:{port}"));
    let builder = builder.with_host(&format!("http://secret.test:{port}"));
    let builder = builder.secret_for(&format!("http://api.secret.test:{port}"));
    let names = ["www.secret.test", "secret.test", "notapi.secret.test", "127.0.0.1"];
    let requests = names.map(|name| get_step(&format!("{name}:{port}"), "/")).to_vec();
    let stopped = expect_answered(builder, requests).await?;
    check_ignorant(arena, &peer)?;
    Ok(stopped)
}

/// Attack `secrets-after-a-redirect`: the attacker is redirected by the secret's host to another granted one,
/// and follows.
async fn after_a_redirect(arena: &Arena) -> Stopped {
    let other = arena.start_peer(page_script("b")).await?;
    let away = format!("http://{}/next", other.address());
    let owner = arena
        .start_peer(reply_script("307 Temporary Redirect", &[("location", &away)], ""))
        .await?;
    let builder = arena
        .jar_builder(&[PROBE])
        .no_mounts()
        .with_host(&owner.grant_rule())
        .with_host(&other.grant_rule());
    let builder = builder.secret_for(&owner.grant_rule());
    let requests = vec![
        get_step(&owner.address().to_string(), "/"),
        get_step(&other.address().to_string(), "/next"),
    ];
    let stopped = expect_answered(builder, requests).await?;
    check_peer_knows(arena, &owner)?;
    if other.received_requests().len() != 1 {
        return Err(Escape::new("the host followed a redirect by itself"));
    }
    check_ignorant(arena, &other)?;
    Ok(stopped)
}

/// Attack `secrets-in-clear-text`: the attacker asks in clear text for what a secret is bound to without a
/// scheme.
async fn clear_text(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("a")).await?;
    let bound = format!("127.0.0.1:{}", peer.address().port());
    let builder =
        arena.jar_builder(&[PROBE]).no_mounts().with_host(&peer.grant_rule()).secret_for(&bound);
    let stopped =
        expect_answered(builder, vec![get_step(&peer.address().to_string(), "/")]).await?;
    check_ignorant(arena, &peer)?;
    Ok(stopped)
}

/// Attack `secrets-clear-text-in-place-of-tls`: the attacker answers in clear text where TLS is asked for,
/// and waits for the request.
async fn no_tls(arena: &Arena) -> Stopped {
    let wire = WireRecorder::start(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
    let rule = format!("https://{}", wire.at);
    let jar =
        arena.jar_builder(&[PROBE]).no_mounts().with_host(&rule).secret_for(&rule).open().await?;
    let step = request_step(&wire.at.to_string(), "/", json!({ "scheme": "https" }));
    let steps = jar.run_steps(json!([step])).await?;
    let got = wire.received_bytes().await?;
    if got.is_empty() || crate::secret::contains_bytes(&got, arena.secret_value().as_bytes()) {
        return Err(Escape::new("the secret was sent in clear text, or nothing was sent at all"));
    }
    // A machine without any certificate roots fails right after the connection.
    let told = steps.step_error(0)?;
    match told.contains("TlsProtocolError") || told.contains("ConfigurationError") {
        true => Ok(Verdict::with_words(told)),
        false => Err(Escape::new(format!("it was told {told}"))),
    }
}

/// Attack `secrets-own-authorization`: the attacker sets the secret's header itself, to see which one wins.
async fn own_header(arena: &Arena) -> Stopped {
    let (peer, jar) = open_bound_jar(arena, page_script("a")).await?;
    let own = |name: &str| {
        request_step(
            &peer.address().to_string(),
            "/",
            json!({ "headers": [[name, "Basic bWluZQ=="]] }),
        )
    };
    let steps = json!([own("authorization"), own("Authorization"), own("AUTHORIZATION")]);
    let steps = jar.run_steps(steps).await?;
    if !peer.received_requests().is_empty() {
        return Err(Escape::new("the peer was asked with two of them"));
    }
    steps.all_refused(0, &["Forbidden"])
}

/// Attack `secrets-trace`: the attacker has the secret's host repeat the request with `TRACE`.
async fn ask_by_trace(arena: &Arena) -> Stopped {
    let (peer, jar) = open_bound_jar(arena, page_script("a")).await?;
    let ask =
        |method: &str| request_step(&peer.address().to_string(), "/", json!({ "method": method }));
    let steps = jar.run_steps(json!([ask("TRACE"), ask("TRACK"), ask("CONNECT")])).await?;
    if !peer.received_requests().is_empty() {
        return Err(Escape::new("the peer was asked"));
    }
    steps.call.check_denied(DenyCode::RequestNotAllowed)?;
    steps.all_refused(0, &["HttpRequestDenied"])
}

/// Runs an agent whose tool sends one request to an echo server; `joined` is true if the host must add the
/// secret to the request.
async fn whole_run(arena: &Arena, manifest: &'static str, granted: &str, joined: bool) -> Stopped {
    let script: crate::peer::Script = Arc::new(|asked| {
        let length = asked.head.len();
        let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{}", asked.head);
        vec![crate::peer::PeerAct::Send(text.into_bytes())]
    });
    let peer = arena.start_peer(script).await?;
    let call = json!({ "steps": [get_step(&peer.address().to_string(), "/")] });
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: it\n    turns:\n      - calls:\n          - {{name: probe, arguments: {call}}}\n      - say: done\n"
    );
    let rule = peer.grant_rule();
    let settings = format!(
        "[secrets.canary]\nhost = \"{rule}\"\nheader = \"Authorization\"\nenv = \"UNUSED\"\n\
         [grants.it]\ntools = [\"probe\"]\nhosts = [\"{rule}\"]\n{granted}"
    );
    let mut scene = arena.build_scene(&ScenePlan {
        transcript: &transcript,
        settings: &settings,
        agents: &[("it.md", &agent_file("it", "tools: [probe]\n"))],
        guests: &[(PROBE, manifest)],
        ..ScenePlan::default()
    })?;
    let rule = rule.parse().map_err(|_| Escape::new("not a rule"))?;
    let name = SecretName::new("canary").map_err(|_| Escape::new("not a name"))?;
    let mut secrets = SecretStore::default();
    secrets.insert(name, arena.bound_secret(vec![rule])?);
    scene.host.secrets = secrets;
    scene.run_agent("it", "task").await?;
    if joined {
        check_peer_knows(arena, &peer)?
    } else {
        check_ignorant(arena, &peer)?
    }
    match scene.tool_results().first() {
        Some((told, false)) => Ok(Verdict::with_words(told)),
        other => Err(Escape::new(format!("the probe was told {other:?}"))),
    }
}
