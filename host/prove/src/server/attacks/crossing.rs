//! Attacks that try to reach another tenant's objects: on every route and socket such an object is answered
//! like a missing one.

use serde_json::{Value, json};

use super::super::client::{CallerRequest, get_request, new_request};
use super::super::stage::ServerStage;
use super::{Row, escape_unless, read_audit, row};
use crate::attack::{Attack, AttackKind, Stopped, Verdict};

/// The id of a session that does not exist, with the length of a real one.
const NOBODYS: &str = "20200101T000000000Z-00000000";

macro_rules! cross {
    ($id:literal, $tries:literal, $ask:expr) => {
        Attack {
            id: $id,
            kind: AttackKind::Server,
            tries: $tries,
            stopped_by: "rows are looked up by tenant (INV-87)",
            told: "not-found",
            embedded: true,
            run: |stage| Box::pin(crosses(stage, $ask)),
        }
    };
}

pub(super) const ATTACKS: &[Row] = &[
    cross!("server-cross-session", "reads a session of blue's", |id| get_request(&session_path(
        id, ""
    ))),
    cross!("server-cross-messages", "reads what was said to blue's agent", |id| get_request(
        &session_path(id, "/messages?full=true")
    )),
    cross!("server-cross-events", "watches a session of blue's", |id| get_request(&session_path(
        id, "/events"
    ))),
    cross!("server-cross-stored-events", "reads the stored events of a session of blue's", |id| {
        get_request(&session_path(id, "/events?follow=false"))
    }),
    cross!("server-cross-subagents", "lists the subagents of a session of blue's", |id| {
        get_request(&session_path(id, "/subagents"))
    }),
    cross!("server-cross-receipts", "reads what blue's tools did", |id| get_request(
        &session_path(id, "/receipts")
    )),
    cross!("server-cross-attachments", "lists the files of a session of blue's", |id| get_request(
        &session_path(id, "/attachments")
    )),
    cross!("server-cross-attachment", "reads a file of a session of blue's", |id| get_request(
        &session_path(id, "/attachments/x")
    )),
    cross!("server-cross-questions", "lists the questions of a session of blue's", |id| {
        get_request(&session_path(id, "/questions"))
    }),
    cross!("server-cross-answer", "answers a question of a session of blue's", |id| new_request(
        "POST",
        &session_path(id, "/questions/1")
    )
    .with_json(&json!({ "answer": "yes" }))),
    cross!("server-cross-cancel", "cancels a turn of a session of blue's", |id| new_request(
        "POST",
        &session_path(id, "/cancel")
    )
    .with_json(&json!({}))),
    cross!("server-cross-delete", "deletes a session of blue's", |id| new_request(
        "DELETE",
        &session_path(id, "")
    )),
    cross!("server-cross-chat", "resumes a session of blue's", |id| new_request(
        "POST", "/v1/chat"
    )
    .with_json(&json!({ "session": id, "text": "more" }))),
    cross!("server-cross-preview", "looks at what blue's model would be sent", |id| new_request(
        "POST",
        "/v1/preview"
    )
    .with_json(&json!({ "session": id, "text": "more" }))),
    row!(
        "server-cross-socket-watch",
        "watches a session of blue's on a WebSocket",
        "rows are looked up by tenant (INV-87)",
        "not-found",
        socket_watch
    ),
    row!(
        "server-cross-socket-cancel",
        "cancels a turn of blue's on a WebSocket",
        "rows are looked up by tenant (INV-87)",
        "not-found",
        socket_cancel
    ),
    row!(
        "server-cross-lists",
        "looks for blue's sessions in its own lists",
        "rows are looked up by tenant (INV-87)",
        "sessions",
        search_lists
    ),
    row!(
        "server-cross-log",
        "looks for blue's doings in its own audit log",
        "rows are looked up by tenant (INV-91)",
        "lines",
        search_audit_log
    ),
];

fn session_path(id: &str, rest: &str) -> String {
    format!("/v1/sessions/{id}{rest}")
}

/// Sends the same request for a session of blue's and for a missing one. Checks that both answers are the
/// same except for the id.
async fn crosses(stage: &ServerStage, ask: fn(&str) -> CallerRequest) -> Stopped {
    let (client, blues) = (stage.client_for("red-admin"), stage.session_id("blue")?);
    let theirs = client.send(&ask(blues)).await?;
    let nobodys = client.send(&ask(NOBODYS)).await?;
    let same = theirs.status == 404
        && nobodys.status == 404
        && theirs.body.replace(blues, NOBODYS) == nobodys.body;
    escape_unless(same, || {
        format!("blue's is answered {}, and nobody's {}", theirs.body, nobodys.body)
    })?;
    Ok(Verdict::with_words(theirs.body))
}

/// Sends the same message about a session of blue's and about a missing one on a WebSocket. Checks that both
/// answers are the same except for the id.
async fn on_socket(stage: &ServerStage, message: fn(&str) -> Value) -> Stopped {
    let (client, blues) = (stage.client_for("red-admin"), stage.session_id("blue")?);
    let theirs = client.on_socket(&message(blues)).await?;
    let nobodys = client.on_socket(&message(NOBODYS)).await?;
    escape_unless(theirs.replace(blues, NOBODYS) == nobodys, || {
        format!("blue's is answered {theirs}, and nobody's {nobodys}")
    })?;
    Ok(Verdict::with_words(theirs))
}

/// Attack `server-cross-socket-watch`: the attacker watches a session of blue's on a WebSocket.
async fn socket_watch(stage: &ServerStage) -> Stopped {
    on_socket(stage, |id| json!({ "type": "subscribe", "session": id })).await
}

/// Attack `server-cross-socket-cancel`: the attacker cancels a turn of blue's on a WebSocket.
async fn socket_cancel(stage: &ServerStage) -> Stopped {
    on_socket(stage, |id| json!({ "type": "cancel", "session": id })).await
}

/// Attack `server-cross-lists`: the attacker looks for blue's sessions in its own lists.
async fn search_lists(stage: &ServerStage) -> Stopped {
    let (client, blues) = (stage.client_for("red-admin"), stage.session_id("blue")?);
    let mut told = String::new();
    for path in ["/v1/sessions?limit=200", "/v1/running", "/v1/questions", "/v1/usage"] {
        let answer = client.send(&get_request(path)).await?;
        escape_unless(answer.status == 200, || answer.body.clone())?;
        escape_unless(!answer.body.contains(blues), || format!("{path} has it: {}", answer.body))?;
        told.push_str(&answer.body);
    }
    Ok(Verdict::with_words(told))
}

/// Attack `server-cross-log`: the attacker looks for blue's doings in its own audit log.
async fn search_audit_log(stage: &ServerStage) -> Stopped {
    let blues = stage.session_id("blue")?;
    let lines = read_audit(stage, "red-admin").await?;
    let foreign = lines.iter().find(|line| line.to_string().contains(blues));
    escape_unless(foreign.is_none(), || format!("it has {foreign:?}"))?;
    Ok(Verdict::with_words(format!("{} lines of its own", lines.len())))
}
