//! Attacks by MCP clients that use others' states, sessions and tasks, or that read no answers.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::super::client::{CallerRequest, ServerAnswer, ServerClient, new_request};
use super::super::stage::ServerStage;
use super::{Row, escape_unless, row};
use crate::attack::{Escape, Stopped, Verdict};

/// The number of requests of a client that reads no answer.
const UNREAD: usize = 10_000;

/// The number of connections of such a client.
const CONNECTIONS: usize = 20;

/// The time for which such a client tries to write to a server that reads nothing.
const GIVES_UP: Duration = Duration::from_secs(2);

/// The most bytes by which the server may grow during such a flood.
const MAX_GROWTH: u64 = 128 << 20;

/// The id of a session or turn that does not exist.
const NOBODYS_TURNS: &str = "20200101T000000000Z-00000000";

/// The id of an MCP session that does not exist.
const NOBODYS: &str = "00000000-0000-4000-8000-000000000000";

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-mcp-state-replayed",
        "brings the state of a call that a person allowed once a second time",
        "a state is good once (INV-292)",
        "not valid here",
        replay_state
    ),
    row!(
        "server-mcp-state-of-another-key",
        "brings a state that was given to another key of its tenant",
        "a state is bound to its key (INV-292)",
        "not valid here",
        use_foreign_state
    ),
    row!(
        "server-mcp-state-of-another-call",
        "has a person allow one file, and reads another with the state of that",
        "a state is bound to the very call (INV-292)",
        "not valid here",
        change_allowed_call
    ),
    row!(
        "server-mcp-state-forged",
        "allows a call itself, with a state that it has changed or made up",
        "a state is signed (INV-292)",
        "not valid here",
        forged_state
    ),
    row!(
        "server-mcp-session-of-another",
        "goes on in blue's session of the protocol, reads its stream, and ends it",
        "a session belongs to the key that began it (INV-296)",
        "Session not found",
        session_of_another
    ),
    row!(
        "server-mcp-session-forged",
        "makes up ids of sessions",
        "a session belongs to the key that began it (INV-296)",
        "Session not found",
        forged_session
    ),
    row!(
        "server-mcp-cross-resources",
        "reads the receipts, the changes and the files of blue's session",
        "a resource is of the caller's tenant (INV-295)",
        "no such resource",
        read_foreign_resources
    ),
    row!(
        "server-mcp-task-of-another",
        "reads, answers and cancels a task of blue's",
        "a task is seen by the key that began it (INV-294)",
        "no such task",
        task_of_another
    ),
    row!(
        "server-mcp-files-of-another-key",
        "reads a file that a call of another key of its tenant gave",
        "the files of a client's session are for its key (INV-349)",
        "no such resource",
        files_of_another_key
    ),
    row!(
        "server-mcp-unread",
        "sends 10,000 requests, and reads none of the answers",
        "a client that reads nothing is not read from (INV-99, INV-298)",
        "and no answer was read",
        leave_unread
    ),
];

/// A message of the MCP revision 2026-07-28, from a client with the capabilities `can`.
pub(super) fn newer_message(method: &str, mut params: Value, can: Value) -> CallerRequest {
    let named = ["name", "uri", "taskId"].into_iter().find_map(|key| params[key].as_str());
    let name = named.map(|name| format!("mcp-name: {name}"));
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "prove", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": can,
    });
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let asked = new_request("POST", "/mcp")
        .with_line("accept: application/json, text/event-stream")
        .with_line("mcp-protocol-version: 2026-07-28")
        .with_line(format!("mcp-method: {method}"))
        .with_json(&message);
    match name {
        Some(name) => asked.with_line(name),
        None => asked,
    }
}

/// A message of the MCP revision 2025-11-25.
pub(super) fn older_message(verb: &str, session: Option<&str>, message: &Value) -> CallerRequest {
    let asked = new_request(verb, "/mcp")
        .with_line("accept: application/json, text/event-stream")
        .with_json(message);
    match session {
        Some(session) => asked
            .with_line(format!("mcp-session-id: {session}"))
            .with_line("mcp-protocol-version: 2025-11-25"),
        None => asked,
    }
}

/// The message with the id 1 in an answer, which is JSON or a stream of events.
fn message_of(answer: &ServerAnswer) -> Result<Value> {
    let lines = answer.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found = messages.rfind(|message| message["id"] == 1);
    found.with_context(|| format!("no message in {} {}", answer.status, answer.body))
}

pub(super) async fn send_message(client: &ServerClient, asked: &CallerRequest) -> Result<Value> {
    message_of(&client.send(asked).await?)
}

pub(super) fn elicitation_capability() -> Value {
    json!({"elicitation": {"form": {}}})
}

pub(super) fn read_params(path: &str) -> Value {
    json!({"name": "file_read", "arguments": {"path": path}})
}

/// Calls the tool that reads the note; returns the state that the client gets because a person has to decide.
pub(super) async fn request_state(client: &ServerClient) -> Result<String> {
    let asked = send_message(
        client,
        &newer_message("tools/call", read_params("note.txt"), elicitation_capability()),
    )
    .await?;
    let state = asked["result"]["requestState"].as_str().map(str::to_owned);
    state.with_context(|| format!("no state in {asked}"))
}

/// The same call again, with this state and a person's yes.
pub(super) fn allowed_call(path: &str, state: &str) -> CallerRequest {
    let mut params = read_params(path);
    params["requestState"] = json!(state);
    params["inputResponses"] =
        json!({"permission": {"action": "accept", "content": {"answer": "yes"}}});
    newer_message("tools/call", params, elicitation_capability())
}

/// Checks that the answer is an error and contains nothing of the note.
pub(super) fn check_refused(answer: &Value) -> Stopped {
    let text = answer.to_string();
    escape_unless(answer["error"].is_object() && !text.contains("own words"), || text.clone())?;
    Ok(Verdict::with_words(text))
}

/// Attack `server-mcp-state-replayed`: the attacker brings the state of a call that a person allowed once a
/// second time.
async fn replay_state(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let client = stage.client_for("red-member");
    let state = request_state(&client).await?;
    let once = send_message(&client, &allowed_call("note.txt", &state)).await?;
    escape_unless(once.to_string().contains("red's own words"), || {
        format!("not allowed once: {once}")
    })?;
    check_refused(&send_message(&client, &allowed_call("note.txt", &state)).await?)
}

/// Attack `server-mcp-state-of-another-key`: the attacker brings a state that was given to another key of its
/// tenant.
async fn use_foreign_state(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let state = request_state(&stage.client_for("red-member")).await?;
    check_refused(
        &send_message(&stage.client_for("red-admin"), &allowed_call("note.txt", &state)).await?,
    )
}

/// Attack `server-mcp-state-of-another-call`: the attacker has a person allow one file, and reads another
/// with the state of that.
async fn change_allowed_call(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let client = stage.client_for("red-member");
    let state = request_state(&client).await?;
    check_refused(&send_message(&client, &allowed_call("./note.txt", &state)).await?)
}

/// Attack `server-mcp-state-forged`: the attacker allows a call itself, with a state that it has changed or
/// made up.
async fn forged_state(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let client = stage.client_for("red-member");
    let state = request_state(&client).await?;
    let turned: String = state.chars().rev().collect();
    let shorter = state.get(1..).unwrap_or_default();
    let mut last =
        check_refused(&send_message(&client, &allowed_call("note.txt", &turned)).await?)?;
    for forged in [shorter, "", "e30", "{\"about\":\"call\"}"] {
        last = check_refused(&send_message(&client, &allowed_call("note.txt", forged)).await?)?;
    }
    Ok(last)
}

/// Begins an MCP session; returns its id.
async fn begin_session(client: &ServerClient) -> Result<String> {
    let info = json!({"name": "prove", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let answer = client.send(&older_message("POST", None, &message)).await?;
    let line = answer.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let id = line.map(|id| id.trim().to_owned());
    id.with_context(|| format!("no session: {} {}", answer.head, answer.body))
}

fn ping_message() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})
}

/// Uses a session in three ways (a message, its stream, its end), and returns the error text, which must be
/// that of a missing session.
async fn not_there(client: &ServerClient, session: &str) -> Stopped {
    let mut told = String::new();
    for verb in ["POST", "GET", "DELETE"] {
        let answer = client.send(&older_message(verb, Some(session), &ping_message())).await?;
        escape_unless(answer.status == 404, || {
            format!("{verb}: {} {}", answer.status, answer.body)
        })?;
        told = answer.body;
    }
    Ok(Verdict::with_words(told))
}

/// Attack `server-mcp-session-of-another`: the attacker goes on in blue's session of the protocol, reads its
/// stream, and ends it.
async fn session_of_another(stage: &ServerStage) -> Stopped {
    let blue = stage.client_for("blue-member");
    let session = begin_session(&blue).await?;
    let red = stage.client_for("red-admin");
    let told = not_there(&red, &session).await?;
    let nobodys = not_there(&red, NOBODYS).await?;
    escape_unless(told == nobodys, || {
        format!("blue's is answered {told:?}, nobody's {nobodys:?}")
    })?;
    let pong = send_message(&blue, &older_message("POST", Some(&session), &ping_message())).await?;
    escape_unless(pong["result"].is_object(), || format!("blue's session is gone: {pong}"))?;
    blue.send(&older_message("DELETE", Some(&session), &ping_message())).await?;
    Ok(told)
}

/// Attack `server-mcp-session-forged`: the attacker makes up ids of sessions.
async fn forged_session(stage: &ServerStage) -> Stopped {
    let red = stage.client_for("red-member");
    let mut told = not_there(&red, NOBODYS).await?;
    for forged in ["1", "../x", "%00", "null", &"a".repeat(4_000)] {
        told = not_there(&red, forged).await?;
    }
    Ok(told)
}

/// Attack `server-mcp-cross-resources`: the attacker reads the receipts, the changes and the files of blue's
/// session.
async fn read_foreign_resources(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let (client, blues) = (stage.client_for("red-admin"), stage.session_id("blue")?);
    let mut last = None;
    for rest in ["receipts", "changes", "attachments/20200101T000000000Z-00000000"] {
        let of = |session: &str| {
            let uri = format!("belljar://sessions/{session}/{rest}");
            newer_message("resources/read", json!({ "uri": uri }), json!({}))
        };
        let theirs = send_message(&client, &of(blues)).await?;
        let nobodys = send_message(&client, &of(NOBODYS_TURNS)).await?;
        let (told, expected) = (theirs.to_string(), nobodys.to_string());
        escape_unless(told.replace(blues, NOBODYS_TURNS) == expected, || {
            format!("blue's is answered {theirs}, nobody's {nobodys}")
        })?;
        last = Some(check_refused(&theirs)?);
    }
    last.ok_or_else(|| Escape::new("nothing was tried"))
}

/// Attack on an attachment of another key: that key's call returns more than an answer may contain, so the
/// rest is a file.
async fn files_of_another_key(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let [_, workspace] = stage.tenant_directories("red").await?;
    let large = format!("{}\n", "0123456789".repeat(9)).repeat(2_000);
    std::fs::write(workspace.join("large.txt"), large).map_err(anyhow::Error::from)?;
    let (member, admin) = (stage.client_for("red-member"), stage.client_for("red-admin"));
    let asked = send_message(
        &member,
        &newer_message("tools/call", read_params("large.txt"), elicitation_capability()),
    )
    .await?;
    let state = asked["result"]["requestState"].as_str().map(str::to_owned);
    let state = state.with_context(|| format!("no state in {asked}"))?;
    let given = send_message(&member, &allowed_call("large.txt", &state)).await?;
    std::fs::remove_file(workspace.join("large.txt")).map_err(anyhow::Error::from)?;
    let content = given["result"]["content"].as_array().cloned().unwrap_or_default();
    let link = content.iter().find(|part| part["type"] == "resource_link");
    let uri = link.and_then(|link| link["uri"].as_str());
    let uri = uri.with_context(|| format!("no link in {given}"))?;
    let of = || newer_message("resources/read", json!({ "uri": uri }), json!({}));
    // The answer comes in pieces, and the first one is sufficient here.
    let own = member.send(&of()).await?;
    escape_unless(own.body.contains("\"contents\":[") && own.body.contains("0123456789"), || {
        format!("its own key is answered {}", own.status)
    })?;
    check_refused(&send_message(&admin, &of()).await?)
}

fn tasks_capability() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Made on a separate server, because blue's task changes what blue has.
async fn task_of_another(stage: &ServerStage) -> Stopped {
    let own = stage.start_another().await?;
    let (blue, red) = (own.client_for("blue-member"), own.client_for("red-admin"));
    let call = json!({"name": "agent_hanger", "arguments": {"task": "think"}});
    let begun = send_message(&blue, &newer_message("tools/call", call, tasks_capability())).await?;
    let id = begun["result"]["taskId"].as_str().with_context(|| format!("no task: {begun}"))?;
    let mut last = None;
    for (method, more) in [
        ("tasks/get", json!({})),
        ("tasks/update", json!({"inputResponses": {"question-1": {"action": "accept"}}})),
        ("tasks/cancel", json!({})),
    ] {
        let of = |id: &str| {
            let mut params = more.clone();
            params["taskId"] = json!(id);
            newer_message(method, params, tasks_capability())
        };
        let theirs = send_message(&red, &of(id)).await?;
        let nobodys = send_message(&red, &of(NOBODYS_TURNS)).await?;
        escape_unless(theirs["error"] == nobodys["error"], || {
            format!("blue's is answered {theirs}, nobody's {nobodys}")
        })?;
        last = Some(check_refused(&theirs)?);
    }
    let still = send_message(
        &blue,
        &newer_message("tasks/get", json!({ "taskId": id }), tasks_capability()),
    )
    .await?;
    escape_unless(still["result"]["status"] == "working", || format!("it has ended: {still}"))?;
    own.close().await?;
    last.ok_or_else(|| Escape::new("nothing was tried"))
}

/// Made on a separate server, because the growth of its memory is measured.
async fn leave_unread(stage: &ServerStage) -> Stopped {
    let own = stage.start_another().await?;
    own.set_client_address(1);
    let (client, blue) = (own.client_for("red-member"), own.client_for("blue-member"));
    let list = || newer_message("tools/list", json!({}), json!({}));
    send_message(&client, &list()).await?;
    let told = flood_unread(&own, &client, &list()).await?;
    let answer = send_message(&blue, &list()).await?;
    escape_unless(answer["result"]["tools"].is_array(), || {
        format!("the neighbour is told {answer}")
    })?;
    own.close().await?;
    Ok(Verdict::with_words(told))
}

/// Sends [`UNREAD`] requests without reading answers; returns a text with the bytes by which the server grew
/// meanwhile.
pub(super) async fn flood_unread(
    own: &ServerStage,
    client: &ServerClient,
    one: &CallerRequest,
) -> Result<String, Escape> {
    let before = own.resident_bytes().unwrap_or_default();
    let requests = one.to_bytes(client).repeat(UNREAD / CONNECTIONS);
    let mut wires = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        wires.push(client.connect().await?);
    }
    let writing = wires.iter_mut().map(|wire| {
        // What the server does not read stays with the client, as it should.
        tokio::time::timeout(GIVES_UP, wire.write(&requests))
    });
    let taken = futures::future::join_all(writing).await;
    let whole = taken.iter().filter(|taken| matches!(taken, Ok(Ok(())))).count();
    let grown = own.resident_bytes().unwrap_or_default().saturating_sub(before);
    escape_unless(grown < MAX_GROWTH, || format!("the server grew by {grown} bytes"))?;
    drop(wires);
    Ok(format!(
        "{whole} of {CONNECTIONS} connections were taken whole, and no answer was read; the server \
         grew by {} KiB",
        grown >> 10
    ))
}
