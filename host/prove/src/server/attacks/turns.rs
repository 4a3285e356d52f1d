//! Attacks on turns, questions and streams: those of others, and after a key was revoked.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::super::client::{ClientConnection, ServerClient, get_request, new_request};
use super::super::stage::ServerStage;
use super::{Row, check_refused, escape_unless, expect_refused, row};
use crate::attack::{Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-turn-of-blue-cancelled",
        "cancels a turn of blue's while it runs",
        "turns belong to a tenant (INV-87)",
        "not-found",
        cancel_blues
    ),
    row!(
        "server-turn-of-blue-watched",
        "watches a turn of blue's while it runs",
        "turns belong to a tenant (INV-87)",
        "not-found",
        watch_blues
    ),
    row!(
        "server-question-of-blue-answered",
        "answers a question that blue's agent asks",
        "questions belong to a tenant (INV-87)",
        "not-found",
        answer_blues
    ),
    row!(
        "server-question-by-a-reader",
        "lets its agent read a file with a key that may look",
        "the scope of each route (INV-86)",
        "scope",
        answer_own
    ),
    row!(
        "server-question-twice",
        "answers a question again, and otherwise",
        "a question is answered once (INV-29)",
        "not-found",
        answer_twice
    ),
    row!(
        "server-session-deleted-at-work",
        "deletes a session while it answers",
        "a session at work stays (INV-120)",
        "busy",
        delete_at_work
    ),
    row!(
        "server-turn-second",
        "begins a second turn of a session that answers",
        "one turn of a session (INV-120)",
        "busy",
        second_turn
    ),
    row!(
        "server-socket-after-revocation",
        "talks on a WebSocket after its key was revoked",
        "each message looks its key up (INV-88)",
        "no longer valid",
        socket_revoked
    ),
    row!(
        "server-socket-nonsense",
        "says what is no message on a WebSocket",
        "messages are of one form (INV-120)",
        "invalid-request",
        send_unknown_message
    ),
];

/// Begins a turn that waits for a person; returns its session, and the open stream of its events.
async fn begin_turn(
    caller: &ServerClient,
    agent: &str,
    until: &str,
) -> Result<(String, ClientConnection)> {
    let body = json!({ "agent": agent, "text": "go", "stream": true });
    let mut wire = caller.send_open(&new_request("POST", "/v1/chat").with_json(&body)).await?;
    let text = wire.read_until(until).await?;
    let begins = text.split("\"session\":\"").nth(1).context("no session")?;
    let session = begins.split('"').next().unwrap_or_default().to_owned();
    Ok((session, wire))
}

/// Cancels a turn, and deletes its session.
async fn end_turn(caller: &ServerClient, session: &str, mut wire: ClientConnection) -> Result<()> {
    caller
        .send(&new_request("POST", &format!("/v1/sessions/{session}/cancel")).with_json(&json!({})))
        .await?;
    wire.read_until("event: done").await?;
    Ok(())
}

/// Begins a turn as blue's member, has red's admin send a request about its session, and checks that the turn
/// is unchanged. Runs on a separate server, because blue's turn changes what blue has.
async fn disturb_blue_turn(
    stage: &ServerStage,
    agent: &str,
    until: &str,
    way: fn(&str) -> super::super::client::CallerRequest,
) -> Stopped {
    let own = stage.start_another().await?;
    let blue = own.client_for("blue-member");
    let (session, wire) = begin_turn(&blue, agent, until).await?;
    let answer = own.client_for("red-admin").send(&way(&session)).await?;
    let running = blue.send(&get_request("/v1/running")).await?.body;
    escape_unless(running.contains(&session), || format!("its turn is gone: {running}"))?;
    end_turn(&blue, &session, wire).await?;
    own.close().await?;
    check_refused(answer, 404)
}

/// Attack `server-turn-of-blue-cancelled`: the attacker cancels a turn of blue's while it runs.
async fn cancel_blues(stage: &ServerStage) -> Stopped {
    let way =
        |id: &str| new_request("POST", &format!("/v1/sessions/{id}/cancel")).with_json(&json!({}));
    disturb_blue_turn(stage, "hanger", "thinking", way).await
}

/// Attack `server-turn-of-blue-watched`: the attacker watches a turn of blue's while it runs.
async fn watch_blues(stage: &ServerStage) -> Stopped {
    disturb_blue_turn(stage, "hanger", "thinking", |id| {
        get_request(&format!("/v1/sessions/{id}/events"))
    })
    .await
}

/// Attack `server-question-of-blue-answered`: the attacker answers a question that blue's agent asks.
async fn answer_blues(stage: &ServerStage) -> Stopped {
    let way = |id: &str| {
        new_request("POST", &format!("/v1/sessions/{id}/questions/1"))
            .with_json(&json!({ "answer": "yes" }))
    };
    disturb_blue_turn(stage, "asker", "permission_asked", way).await
}

/// The number of a session's open question.
async fn open_question(caller: &ServerClient, session: &str) -> Result<u64> {
    let open = caller
        .send(&get_request(&format!("/v1/sessions/{session}/questions")))
        .await?
        .json_body()?;
    let first = open["questions"].as_array().and_then(|all| all.first()).cloned();
    first.as_ref().and_then(|one: &Value| one["id"].as_u64()).context("no open question")
}

/// Attack `server-question-by-a-reader`: the attacker lets its agent read a file with a key that may look.
async fn answer_own(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let member = stage.client_for("red-member");
    let (session, wire) = begin_turn(&member, "asker", "permission_asked").await?;
    let path =
        format!("/v1/sessions/{session}/questions/{}", open_question(&member, &session).await?);
    let ask = new_request("POST", &path).with_json(&json!({ "answer": "yes" }));
    let told = expect_refused(stage, "red-reader", ask, 403).await;
    end_turn(&member, &session, wire).await?;
    told
}

/// Attack `server-question-twice`: the attacker answers a question again, and otherwise.
async fn answer_twice(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let member = stage.client_for("red-member");
    let (session, mut wire) = begin_turn(&member, "asker", "permission_asked").await?;
    let path =
        format!("/v1/sessions/{session}/questions/{}", open_question(&member, &session).await?);
    let say = |word: &str| new_request("POST", &path).with_json(&json!({ "answer": word }));
    let first = member.send(&say("no")).await?;
    escape_unless(first.status == 200, || first.body.clone())?;
    let second = member.send(&say("yes")).await?;
    let text = wire.read_until("event: done").await?;
    escape_unless(!text.contains("own words"), || text.clone())?;
    check_refused(second, 404)
}

/// Attack `server-session-deleted-at-work`: the attacker deletes a session while it answers.
async fn delete_at_work(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let member = stage.client_for("red-member");
    let (session, wire) = begin_turn(&member, "hanger", "thinking").await?;
    let told = expect_refused(
        stage,
        "red-member",
        new_request("DELETE", &format!("/v1/sessions/{session}")),
        409,
    )
    .await;
    end_turn(&member, &session, wire).await?;
    told
}

/// Attack `server-turn-second`: the attacker begins a second turn of a session that answers.
async fn second_turn(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let member = stage.client_for("red-member");
    let (session, wire) = begin_turn(&member, "hanger", "thinking").await?;
    let body = json!({ "session": session, "text": "more" });
    let told =
        expect_refused(stage, "red-member", new_request("POST", "/v1/chat").with_json(&body), 409)
            .await;
    end_turn(&member, &session, wire).await?;
    told
}

/// Attack `server-socket-after-revocation`: the attacker talks on a WebSocket after its key was revoked.
async fn socket_revoked(stage: &ServerStage) -> Stopped {
    let key = stage.new_key("red", "member").await?;
    let mut wire = stage.with_key(Some(&key)).open_socket().await?;
    wire.send_text("{\"type\":\"ping\"}").await?;
    wire.read_until("pong").await?;
    stage.run_belljar(&["keys", "revoke", key.get(3..19).unwrap_or_default()]).await?;
    wire.send_text(&json!({ "type": "chat", "agent": "teller", "text": "go" }).to_string()).await?;
    Ok(Verdict::with_words(wire.read_rest().await?))
}

/// Attack `server-socket-nonsense`: the attacker says what is no message on a WebSocket.
async fn send_unknown_message(stage: &ServerStage) -> Stopped {
    let message = json!({ "type": "run", "command": "true" });
    Ok(Verdict::with_words(stage.client_for("red-member").on_socket(&message).await?))
}
