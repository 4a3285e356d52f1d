//! The attacks by an editor on `belljar acp`.

use anyhow::{Result, ensure};
use futures::FutureExt as _;
use serde_json::{Value, json};

use super::stage::{AcpStage, new_session, refusal_message};
use crate::attack::{Attack, AttackKind, Stopped, Verdict};

/// The bytes of a line that is longer than the longest accepted one.
const HUGE: usize = 20 << 20;

/// The number of prompts in a flood: more than are answered at a time.
const FLOOD: usize = 200;

/// Makes a row of the table of attacks.
pub(super) const fn attack_row(
    id: &'static str,
    tries: &'static str,
    stopped_by: &'static str,
    told: &'static str,
    run: for<'a> fn(&'a AcpStage) -> futures::future::BoxFuture<'a, Stopped>,
) -> Attack<AcpStage> {
    Attack { id, kind: AttackKind::Acp, tries, stopped_by, told, embedded: false, run }
}

pub(super) const ATTACKS: &[Attack<AcpStage>] = &[
    attack_row(
        "acp-session-of-another",
        "names a session that it has not opened, and one that climbs out of the store",
        "only sessions that this editor has opened are found (INV-301)",
        "-32002",
        |stage| to_verdict(name_foreign_session(stage)).boxed(),
    ),
    attack_row(
        "acp-directory-outside",
        "opens a session in a directory that is not the workspace",
        "the workspace is that of the process (INV-300)",
        "`cwd` is not the workspace",
        |stage| to_verdict(open_outside_directory(stage)).boxed(),
    ),
    attack_row(
        "acp-directory-by-link",
        "opens a session in a link to a directory that is not the workspace",
        "links are resolved before they are compared (INV-300)",
        "`cwd` is not the workspace",
        |stage| to_verdict(by_link(stage)).boxed(),
    ),
    attack_row(
        "acp-path-outside",
        "has changes applied at a path outside of the workspace",
        "paths are those below the workspace (INV-302)",
        "below the workspace",
        |stage| to_verdict(path_outside(stage)).boxed(),
    ),
    attack_row(
        "acp-prompt-flood",
        "sends two hundred prompts to one session without waiting",
        "one prompt at a time in a session (INV-304)",
        "answering a prompt",
        |stage| to_verdict(flood_prompts(stage)).boxed(),
    ),
    attack_row(
        "acp-session-flood",
        "opens sessions until none is left for others",
        "a bounded number is open at a time (INV-304)",
        "close one first",
        |stage| to_verdict(flood_sessions(stage)).boxed(),
    ),
    attack_row(
        "acp-answer-to-another-question",
        "answers a question with the yes of another one, and answers twice",
        "options are those of one question (INV-303)",
        "nothing was written",
        |stage| to_verdict(answer_wrong_question(stage)).boxed(),
    ),
    attack_row(
        "acp-huge-line",
        "sends a line of twenty mebibytes, and a prompt with five of resources",
        "lines and prompts are bounded (INV-304)",
        "name a file of the workspace",
        |stage| to_verdict(send_huge_line(stage)).boxed(),
    ),
    attack_row(
        "acp-server-to-start",
        "names a program as a server for tools",
        "nothing that an editor names is started (INV-307)",
        "nothing was started",
        |stage| to_verdict(name_server_program(stage)).boxed(),
    ),
    attack_row(
        "acp-agent-of-nobody",
        "switches to an agent that is not there, and to a path",
        "an agent is one that could be run (INV-306)",
        "-32602",
        |stage| to_verdict(switch_missing_agent(stage)).boxed(),
    ),
];

pub(super) async fn to_verdict(attack: impl Future<Output = Result<String>>) -> Stopped {
    Ok(Verdict { told: attack.await? })
}

pub(super) fn prompt_params(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// Attack `acp-session-of-another`: the attacker names a session that it has not opened, and one that climbs
/// out of the store.
async fn name_foreign_session(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let mut told = String::new();
    for id in ["20260101T000000000Z-0000000000000", "../../belljar", "%", "a/b/c"] {
        told = refusal_message(&peer.call_method("session/prompt", prompt_params(id, "x")).await?)?;
        let load = json!({"sessionId": id, "cwd": stage.workspace(), "mcpServers": []});
        let loaded = refusal_message(&peer.call_method("session/load", load).await?)?;
        ensure!(loaded.contains("-32002"), "`{id}` was loaded: {loaded}");
        peer.send_notification("session/cancel", json!({"sessionId": id})).await?;
    }
    Ok(told)
}

/// Attack `acp-directory-outside`: the attacker opens a session in a directory that is not the workspace.
async fn open_outside_directory(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let mut told = String::new();
    for cwd in [stage.root().join("outside"), stage.root().to_path_buf(), "/".into()] {
        told = refusal_message(
            &peer.call_method("session/new", json!({"cwd": cwd, "mcpServers": []})).await?,
        )?;
    }
    let more = json!({
        "cwd": stage.workspace(), "mcpServers": [],
        "additionalDirectories": [stage.root().join("outside")],
    });
    refusal_message(&peer.call_method("session/new", more).await?)?;
    Ok(told)
}

/// Attack `acp-directory-by-link`: the attacker opens a session in a link to a directory that is not the
/// workspace.
async fn by_link(stage: &AcpStage) -> Result<String> {
    let link = stage.root().join("link");
    #[cfg(unix)]
    std::os::unix::fs::symlink(stage.root().join("outside"), &link)?;
    let mut peer = stage.lock_peer().await;
    refusal_message(&peer.call_method("session/new", json!({"cwd": link, "mcpServers": []})).await?)
}

/// Attack `acp-path-outside`: the attacker has changes applied at a path outside of the workspace.
async fn path_outside(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let own = new_session(&mut peer, &stage.workspace()).await?;
    let mut told = String::new();
    for path in ["../outside/secret.txt", "/etc/passwd"] {
        told = refusal_message(
            &peer
                .call_method("session/prompt", prompt_params(&own, &format!("/apply {path}")))
                .await?,
        )?;
    }
    Ok(told)
}

/// Attack `acp-prompt-flood`: the attacker sends two hundred prompts to one session without waiting.
async fn flood_prompts(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let own = new_session(&mut peer, &stage.workspace()).await?;
    let mut sent = Vec::with_capacity(FLOOD);
    for _ in 0..FLOOD {
        sent.push(peer.send_request("session/prompt", prompt_params(&own, "x")).await?);
    }
    let (mut told, mut refused) = (String::new(), 0);
    for id in sent {
        let answer = peer.read_answer(id).await?;
        if answer.get("error").is_some() {
            refused += 1;
            told = refusal_message(&answer)?;
        }
    }
    ensure!(refused >= FLOOD / 2, "only {refused} of {FLOOD} were refused");
    Ok(told)
}

/// Attack `acp-session-flood`: the attacker opens sessions until none is left for others.
async fn flood_sessions(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let place = json!({"cwd": stage.workspace(), "mcpServers": []});
    for _ in 0..FLOOD {
        let answer = peer.call_method("session/new", place.clone()).await?;
        if answer.get("error").is_some() {
            return refusal_message(&answer);
        }
    }
    anyhow::bail!("{FLOOD} sessions are open")
}

/// Attack `acp-answer-to-another-question`: the attacker answers a question with the yes of another one, and
/// answers twice.
async fn answer_wrong_question(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let own = new_session(&mut peer, &stage.workspace()).await?;
    let mode = json!({"sessionId": own, "modeId": "home/asker"});
    peer.call_method("session/set_mode", mode).await?;
    let id = peer.send_request("session/prompt", prompt_params(&own, "write")).await?;
    let option = |asked: &Value, ending: &str| {
        let options = asked["params"]["options"].as_array().cloned().unwrap_or_default();
        let ids = options.iter().filter_map(|option| option["optionId"].as_str());
        ids.into_iter().find(|id| id.ends_with(ending)).unwrap_or_default().to_owned()
    };
    let first = peer.next_question().await?;
    let (yes, no) = (option(&first, ".yes"), option(&first, ".no"));
    peer.answer_question(&first["id"], &no).await?;
    peer.answer_question(&first["id"], &yes).await?;
    let second = peer.next_question().await?;
    peer.answer_question(&second["id"], &yes).await?;
    let answer = peer.read_answer(id).await?;
    ensure!(answer["result"]["stopReason"] == "end_turn", "{answer}");
    let shown = peer.call_method("session/prompt", prompt_params(&own, "/changes")).await?;
    ensure!(shown.get("error").is_none(), "{shown}");
    let words = peer.session_text(&own);
    ensure!(words.ends_with("Nothing is changed."), "something was written: {words}");
    Ok("nothing was written".to_owned())
}

/// Attack `acp-huge-line`: the attacker sends a line of twenty mebibytes, and a prompt with five of
/// resources.
async fn send_huge_line(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    peer.send_line(&vec![b'{'; HUGE]).await?;
    let own = new_session(&mut peer, &stage.workspace()).await?;
    let resource = json!({"uri": "file:///x", "text": "x".repeat(5 << 20)});
    let blocks = json!([{"type": "text", "text": "x"}, {"type": "resource", "resource": resource}]);
    let prompt = json!({"sessionId": own, "prompt": blocks});
    refusal_message(&peer.call_method("session/prompt", prompt).await?)
}

/// Attack `acp-server-to-start`: the attacker names a program as a server for tools.
async fn name_server_program(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let touched = stage.root().join("outside/started");
    let touch = json!({"name": "x", "command": "/usr/bin/touch", "args": [touched], "env": []});
    let place = json!({"cwd": stage.workspace(), "mcpServers": [touch]});
    let answer = peer.call_method("session/new", place).await?;
    let own = answer["result"]["sessionId"].as_str().unwrap_or_default().to_owned();
    peer.call_method("session/prompt", prompt_params(&own, "x")).await?;
    ensure!(!touched.exists(), "it was started");
    Ok("nothing was started".to_owned())
}

/// Attack `acp-agent-of-nobody`: the attacker switches to an agent that is not there, and to a path.
async fn switch_missing_agent(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let own = new_session(&mut peer, &stage.workspace()).await?;
    let mut told = String::new();
    for mode in ["home/nobody", "../../etc/passwd", "", "workspace:/x/y"] {
        let set = json!({"sessionId": own, "modeId": mode});
        told = refusal_message(&peer.call_method("session/set_mode", set).await?)?;
    }
    Ok(told)
}
