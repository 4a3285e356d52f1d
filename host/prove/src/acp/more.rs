//! More attacks by an editor: on a prompt's images, on cancellation, and by not reading answers.

use anyhow::{Context as _, Result, ensure};
use futures::FutureExt as _;
use serde_json::{Value, json};

use super::attacks::{attack_row, prompt_params, to_verdict};
use super::stage::{AcpStage, new_session, refusal_message};
use crate::attack::Attack;

/// The number of requests of an editor that reads no answer.
const UNREAD: usize = 10_000;

/// The most bytes by which the agent's process may grow during such a flood.
const MAX_GROWTH: u64 = 128 << 20;

/// The time for which an editor tries to write to an agent that reads nothing.
const GIVES_UP: std::time::Duration = std::time::Duration::from_secs(2);

pub(super) const ATTACKS: &[Attack<AcpStage>] = &[
    attack_row(
        "acp-image-mislabelled",
        "sends a page with a script as an image",
        "the first bytes say what an image is (INV-345)",
        "begin like none",
        |stage| to_verdict(send_mislabelled_image(stage)).boxed(),
    ),
    attack_row(
        "acp-image-of-a-file",
        "names a file outside the workspace as an image that has no bytes",
        "nothing that an editor names is opened (INV-302)",
        "begin like none",
        |stage| to_verdict(send_file_image(stage)).boxed(),
    ),
    attack_row(
        "acp-image-flood",
        "sends more images than a conversation takes",
        "images of a request are bounded (INV-346)",
        "images of",
        |stage| to_verdict(flood_images(stage)).boxed(),
    ),
    attack_row(
        "acp-cancel-of-another",
        "cancels requests, sessions and subagents by ids that are not its own",
        "a cancellation is of a request or a session that is open here (INV-301)",
        "everything is answered",
        |stage| to_verdict(cancel_foreign_ids(stage)).boxed(),
    ),
    attack_row(
        "acp-agent-on-the-side",
        "has agents run on the side that are not there, or are paths",
        "an agent is one that could be run (INV-306)",
        "-32602",
        |stage| to_verdict(run_missing_agents(stage)).boxed(),
    ),
    attack_row(
        "acp-commands-without-end",
        "asks for summaries of nothing, budgets and changes again and again",
        "one prompt at a time in a session (INV-304)",
        "no turn is left to summarise",
        |stage| to_verdict(repeat_commands(stage)).boxed(),
    ),
    attack_row(
        "acp-unread",
        "sends 10,000 requests, and reads none of the answers",
        "an editor that reads nothing is not read from (INV-304)",
        "and no answer was read",
        |stage| to_verdict(leave_unread(stage)).boxed(),
    ),
];

fn prompt_with_block(session: &str, block: &Value) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": "look"}, block]})
}

/// Attack `acp-image-mislabelled`: the attacker sends a page with a script as an image.
async fn send_mislabelled_image(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let own = new_session(&mut peer, &stage.workspace()).await?;
    // The base64 of `<svg onload=alert(1)>`.
    let data = "PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+";
    let mut told = String::new();
    for kind in ["image/png", "image/svg+xml", "text/html"] {
        let image = json!({"type": "image", "mimeType": kind, "data": data});
        told = refusal_message(
            &peer.call_method("session/prompt", prompt_with_block(&own, &image)).await?,
        )?;
    }
    Ok(told)
}

/// Attack `acp-image-of-a-file`: the attacker names a file outside the workspace as an image that has no
/// bytes.
async fn send_file_image(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let own = new_session(&mut peer, &stage.workspace()).await?;
    let uri = format!("file://{}", stage.root().join("outside/secret.txt").display());
    let image = json!({"type": "image", "mimeType": "image/png", "data": "", "uri": uri});
    refusal_message(&peer.call_method("session/prompt", prompt_with_block(&own, &image)).await?)?;
    let blob = json!({"uri": uri, "mimeType": "image/png", "blob": ""});
    let blob = json!({"type": "resource", "resource": blob});
    refusal_message(&peer.call_method("session/prompt", prompt_with_block(&own, &blob)).await?)
}

/// Attack `acp-image-flood`: the attacker sends more images than a conversation takes.
async fn flood_images(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let own = new_session(&mut peer, &stage.workspace()).await?;
    let image = json!({
        "type": "image", "mimeType": "image/gif", "data": "R0lGODlhAQABAAAAACw=",
    });
    let mut blocks = vec![json!({"type": "text", "text": "look"})];
    blocks.extend(vec![image; 200]);
    refusal_message(
        &peer.call_method("session/prompt", json!({"sessionId": own, "prompt": blocks})).await?,
    )
}

/// Attack `acp-cancel-of-another`: the attacker cancels requests, sessions and subagents by ids that are not
/// its own.
async fn cancel_foreign_ids(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let own = new_session(&mut peer, &stage.workspace()).await?;
    let id = peer.send_request("session/prompt", prompt_params(&own, "x")).await?;
    for wrong in [json!(0), json!(999_999), json!("x"), json!(null), json!({"a": 1})] {
        peer.send_notification("$/cancel_request", json!({"requestId": wrong})).await?;
    }
    for wrong in ["../x", "20260101T000000000Z-0000000000000/clerk#0", "", "%"] {
        peer.send_notification("session/cancel", json!({"sessionId": wrong})).await?;
    }
    let answer = peer.read_answer(id).await?;
    ensure!(answer["result"]["stopReason"] == "end_turn", "it was cancelled: {answer}");
    Ok("everything is answered".to_owned())
}

/// Attack `acp-agent-on-the-side`: the attacker has agents run on the side that are not there, or are paths.
async fn run_missing_agents(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let own = new_session(&mut peer, &stage.workspace()).await?;
    let mut told = String::new();
    for name in ["nobody look", "../../etc/passwd look", "workspace:/x/y look", "nobody", ""] {
        let command = prompt_params(&own, &format!("/agent {name}"));
        told = refusal_message(&peer.call_method("session/prompt", command).await?)?;
    }
    Ok(told)
}

/// Attack `acp-commands-without-end`: the attacker asks for summaries of nothing, budgets and changes again
/// and again.
async fn repeat_commands(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.lock_peer().await;
    let own = new_session(&mut peer, &stage.workspace()).await?;
    let mut told = String::new();
    for _ in 0..20 {
        told = refusal_message(
            &peer.call_method("session/prompt", prompt_params(&own, "/compact")).await?,
        )?;
        for command in ["/budget", "/changes"] {
            let answer = peer.call_method("session/prompt", prompt_params(&own, command)).await?;
            ensure!(answer["result"]["stopReason"] == "end_turn", "{command}: {answer}");
        }
    }
    Ok(told)
}

/// Made on a separate process, because the stage's process must answer its neighbour, which reads its
/// answers.
async fn leave_unread(stage: &AcpStage) -> Result<String> {
    let mut peer = stage.start_another().await?;
    let before = peer.resident_bytes().unwrap_or_default();
    let list = json!({"jsonrpc": "2.0", "id": "x", "method": "session/list", "params": {}});
    let lines = format!("{list}\n").repeat(UNREAD);
    let whole = tokio::time::timeout(GIVES_UP, peer.send_line(lines.as_bytes())).await.is_ok();
    let grown = peer.resident_bytes().context("it has ended")?.saturating_sub(before);
    ensure!(grown < MAX_GROWTH, "the agent grew by {grown} bytes");
    let taken = if whole { "all requests were taken" } else { "not all requests were taken" };
    Ok(format!("{taken}, and no answer was read; the agent grew by {} KiB", grown >> 10))
}
