//! Attacks by a tool that may not use the secret: another tool of the agent, a tool of a subagent, and a tool
//! that knows the value from elsewhere.

use belljar_policy::{DenyCode, SecretName};
use belljar_sandbox::SecretStore;
use serde_json::json;

use super::super::network::get_step;
use super::check_unseen;
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::PROBE;
use crate::peer::page_script;
use crate::scene::{ScenePlan, agent_file};

const STOPPED_BY: &str =
    "replies to every tool of a run are searched for all its secrets (INV-104)";

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "secrets-echo-to-another-tool",
        kind: AttackKind::Secrets,
        tries: "has the value sent to a tool that may not use it, of an agent that has one that may",
        stopped_by: STOPPED_BY,
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(send_to_tool(arena, |value| http_reply("", value), false)),
    },
    Attack {
        id: "secrets-echo-to-another-tool-in-a-header",
        kind: AttackKind::Secrets,
        tries: "has the value sent to such a tool in a header",
        stopped_by: STOPPED_BY,
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| {
            let reply = |value: &str| http_reply(&format!("x-key: {value}\r\n"), "ok");
            Box::pin(send_to_tool(arena, reply, false))
        },
    },
    Attack {
        id: "secrets-echo-to-another-tool-compressed",
        kind: AttackKind::Secrets,
        tries: "has the value sent to such a tool in a compressed reply",
        stopped_by: "in a run with secrets a reply in any coding is refused (INV-104)",
        told: "HttpResponseContentCoding",
        embedded: true,
        run: |arena| Box::pin(send_to_tool(arena, gzip_stored, false)),
    },
    Attack {
        id: "secrets-echo-to-a-childs-tool",
        kind: AttackKind::Secrets,
        tries: "has a child without secrets fetch the value of its parent's",
        stopped_by: STOPPED_BY,
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(send_to_tool(arena, |value| http_reply("", value), true)),
    },
    Attack {
        id: "secrets-in-a-file-of-the-workspace",
        kind: AttackKind::Secrets,
        tries: "answers with a file in which the value stands too",
        stopped_by: "what a tool says is searched like what it is sent (INV-105)",
        told: "reply withheld",
        embedded: true,
        run: |arena| Box::pin(in_a_file(arena)),
    },
    Attack {
        id: "secrets-said-by-a-tool",
        kind: AttackKind::Secrets,
        tries: "says the value, known from elsewhere, in its error, log, progress and streams",
        stopped_by: "what a tool says is searched like what it is sent (INV-105)",
        told: "reply withheld",
        embedded: true,
        run: |arena| Box::pin(report_known_value(arena)),
    },
];

const MANIFEST: &str = "manifest = 1\ndescription = \"test\"\n\
    hosts = [\"http://127.0.0.0/8:*\"]\n";

/// Attack `secrets-echo-to-another-tool-in-a-header`: the attacker has the value sent to such a tool in a
/// header.
fn http_reply(headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// The value as a gzip file, in one block that is stored without compression.
fn gzip_stored(value: &str) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap_or_default();
    let mut text = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    text.extend(length.to_le_bytes());
    text.extend((!length).to_le_bytes());
    text.extend(value.bytes());
    let mut reply = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n".to_vec();
    reply.extend(format!("content-length: {}\r\n\r\n", text.len()).bytes());
    reply.extend(text);
    reply
}

/// Attack in which an agent has the secret, and a tool of the agent or of its subagent, which does not, gets
/// a reply with it.
async fn send_to_tool(arena: &Arena, reply: fn(&str) -> Vec<u8>, child: bool) -> Stopped {
    let text = reply(arena.secret_value());
    let peer = arena
        .start_peer(std::sync::Arc::new(move |_| vec![crate::peer::PeerAct::Send(text.clone())]));
    let peer = peer.await?;
    let rule = peer.grant_rule();
    let call = json!({ "steps": [get_step(&peer.address().to_string(), "/")] });
    let fetch = format!("      - calls: [{{name: probe, arguments: {call}}}]\n      - say: done\n");
    let spawn = "      - calls: [{name: spawn_agent, arguments: {agent: kid, task: go}}]\n      - say: done\n";
    let transcript = match child {
        true => format!(
            "transcript: 1\nagents:\n  - agent: boss\n    turns:\n{spawn}  - agent: kid\n    turns:\n{fetch}"
        ),
        false => format!("transcript: 1\nagents:\n  - agent: boss\n    turns:\n{fetch}"),
    };
    let settings = format!(
        "[secrets.canary]\nhost = \"https://elsewhere.test\"\nheader = \"Authorization\"\nenv = \"UNUSED\"\n\
         [grants.boss]\ntools = [\"probe\", \"spawn_agent\"]\nhosts = [\"{rule}\"]\nsecrets = [\"canary\"]\n\
         [grants.kid]\ntools = [\"probe\"]\nhosts = [\"{rule}\"]\n"
    );
    let mut scene = arena.build_scene(&ScenePlan {
        transcript: &transcript,
        settings: &settings,
        agents: &[("boss.md", &agent_file("boss", "")), ("kid.md", &agent_file("kid", ""))],
        guests: &[(PROBE, MANIFEST)],
        ..ScenePlan::default()
    })?;
    let elsewhere = "https://elsewhere.test".parse().map_err(|_| Escape::new("not a rule"))?;
    let name = SecretName::new("canary").map_err(|_| Escape::new("not a name"))?;
    let mut secrets = SecretStore::default();
    secrets.insert(name, arena.bound_secret(vec![elsewhere])?);
    scene.host.secrets = secrets;
    scene.run_agent("boss", "task").await?;
    if peer.received_requests().len() != 1 {
        return Err(Escape::new("the peer was not asked: this proves nothing"));
    }
    match scene.tool_results().into_iter().find(|(told, _)| told.contains("error")) {
        Some((told, false)) => Ok(Verdict::with_words(told)),
        other => Err(Escape::new(format!("the probe was told {other:?}"))),
    }
}

/// Attack `secrets-in-a-file-of-the-workspace`: the attacker answers with a file in which the value stands
/// too.
async fn in_a_file(arena: &Arena) -> Stopped {
    let line = format!("KEY={}\n", arena.secret_value());
    std::fs::write(arena.workspace().join("settings"), line)?;
    std::fs::write(arena.workspace().join("notes"), "nothing\n")?;
    let peer = arena.start_peer(page_script("a")).await?;
    let jar = arena
        .jar_builder(&[PROBE])
        .with_host(&peer.grant_rule())
        .secret_for(&peer.grant_rule())
        .open()
        .await?;
    let read = |path: &str| json!([{ "do": "read-file", "place": { "path": path } }]);
    let call = jar.try_steps(read("settings")).await;
    check_unseen(arena, &call)?;
    call.check_denied(DenyCode::SecretInReply)?;
    let stopped = call.stopped_if(call.told.contains("reply withheld"), "the answer withheld");
    jar.run_steps(read("notes")).await?.step_value(0)?;
    stopped
}

/// Attack `secrets-said-by-a-tool`: the attacker says the value, known from elsewhere, in its error, log,
/// progress and streams.
async fn report_known_value(arena: &Arena) -> Stopped {
    let value = arena.secret_value();
    let peer = arena.start_peer(page_script("a")).await?;
    let builder = arena
        .jar_builder(&[PROBE])
        .no_mounts()
        .with_host(&peer.grant_rule())
        .secret_for(&peer.grant_rule());
    let jar = builder.open().await?;
    let percent: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let steps = json!([
        { "do": "log", "text": format!("key {value}") },
        { "do": "log", "text": "a line beside it" },
        { "do": "progress", "done": 1, "total": 2, "text": value },
        { "do": "say", "text": value },
        { "do": "say", "text": percent, "stderr": true },
    ]);
    let steps = jar.run_steps(steps).await?;
    check_unseen(arena, &steps.call)?;
    steps.call.check_denied(DenyCode::SecretInReply)?;
    let logs = &steps.call.result.receipt.logs;
    if !logs.iter().any(|line| line.message == "a line beside it") {
        return Err(Escape::new(format!("a line without the value is gone: {logs:?}")));
    }
    let error = json!([{ "do": "answer-error", "kind": "failed", "text": value }]);
    let call = jar.try_steps(error).await;
    check_unseen(arena, &call)?;
    call.stopped_if(call.told.contains("reply withheld"), "the error withheld")
}
