//! Turns, questions and streams: of others, and after a key was revoked.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::super::client::{Client, Wire, ask, get};
use super::super::stage::Stage;
use super::{Row, asked, check, refused, row};
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
        twice
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
        nonsense
    ),
];

/// Begins a turn that waits, and gives its session and the stream that keeps it in view.
async fn begin(caller: &Client, agent: &str, until: &str) -> Result<(String, Wire)> {
    let body = json!({ "agent": agent, "text": "go", "stream": true });
    let mut wire = caller.open(&ask("POST", "/v1/chat").json(&body)).await?;
    let text = wire.until(until).await?;
    let begins = text.split("\"session\":\"").nth(1).context("no session")?;
    let session = begins.split('"').next().unwrap_or_default().to_owned();
    Ok((session, wire))
}

/// Ends a turn, and removes its session.
async fn end(caller: &Client, session: &str, mut wire: Wire) -> Result<()> {
    caller.send(&ask("POST", &format!("/v1/sessions/{session}/cancel")).json(&json!({}))).await?;
    wire.until("event: done").await?;
    Ok(())
}

/// Blue's member begins a turn; red's admin does something to its session; the turn has to be as it
/// was. What blue did itself is taken back by the stage of its own.
async fn of_blue(
    stage: &Stage,
    agent: &str,
    until: &str,
    way: fn(&str) -> super::super::client::Ask,
) -> Stopped {
    let own = stage.another().await?;
    let blue = own.caller("blue-member");
    let (session, wire) = begin(&blue, agent, until).await?;
    let answer = own.caller("red-admin").send(&way(&session)).await?;
    let running = blue.send(&get("/v1/running")).await?.body;
    check(running.contains(&session), || format!("its turn is gone: {running}"))?;
    end(&blue, &session, wire).await?;
    own.close().await?;
    refused(answer, 404)
}

async fn cancel_blues(stage: &Stage) -> Stopped {
    let way = |id: &str| ask("POST", &format!("/v1/sessions/{id}/cancel")).json(&json!({}));
    of_blue(stage, "hanger", "thinking", way).await
}

async fn watch_blues(stage: &Stage) -> Stopped {
    of_blue(stage, "hanger", "thinking", |id| get(&format!("/v1/sessions/{id}/events"))).await
}

async fn answer_blues(stage: &Stage) -> Stopped {
    let way = |id: &str| {
        ask("POST", &format!("/v1/sessions/{id}/questions/1")).json(&json!({ "answer": "yes" }))
    };
    of_blue(stage, "asker", "permission_asked", way).await
}

/// The number of the open question of a session.
async fn question(caller: &Client, session: &str) -> Result<u64> {
    let open = caller.send(&get(&format!("/v1/sessions/{session}/questions"))).await?.value()?;
    let first = open["questions"].as_array().and_then(|all| all.first()).cloned();
    first.as_ref().and_then(|one: &Value| one["id"].as_u64()).context("no open question")
}

async fn answer_own(stage: &Stage) -> Stopped {
    stage.red_may_change();
    let member = stage.caller("red-member");
    let (session, wire) = begin(&member, "asker", "permission_asked").await?;
    let path = format!("/v1/sessions/{session}/questions/{}", question(&member, &session).await?);
    let ask = ask("POST", &path).json(&json!({ "answer": "yes" }));
    let told = asked(stage, "red-reader", ask, 403).await;
    end(&member, &session, wire).await?;
    told
}

async fn twice(stage: &Stage) -> Stopped {
    stage.red_may_change();
    let member = stage.caller("red-member");
    let (session, mut wire) = begin(&member, "asker", "permission_asked").await?;
    let path = format!("/v1/sessions/{session}/questions/{}", question(&member, &session).await?);
    let say = |word: &str| ask("POST", &path).json(&json!({ "answer": word }));
    let first = member.send(&say("no")).await?;
    check(first.status == 200, || first.body.clone())?;
    let second = member.send(&say("yes")).await?;
    let text = wire.until("event: done").await?;
    check(!text.contains("own words"), || text.clone())?;
    refused(second, 404)
}

async fn delete_at_work(stage: &Stage) -> Stopped {
    stage.red_may_change();
    let member = stage.caller("red-member");
    let (session, wire) = begin(&member, "hanger", "thinking").await?;
    let told =
        asked(stage, "red-member", ask("DELETE", &format!("/v1/sessions/{session}")), 409).await;
    end(&member, &session, wire).await?;
    told
}

async fn second_turn(stage: &Stage) -> Stopped {
    stage.red_may_change();
    let member = stage.caller("red-member");
    let (session, wire) = begin(&member, "hanger", "thinking").await?;
    let body = json!({ "session": session, "text": "more" });
    let told = asked(stage, "red-member", ask("POST", "/v1/chat").json(&body), 409).await;
    end(&member, &session, wire).await?;
    told
}

async fn socket_revoked(stage: &Stage) -> Stopped {
    let key = stage.new_key("red", "member").await?;
    let mut wire = stage.with_key(Some(&key)).socket().await?;
    wire.say("{\"type\":\"ping\"}").await?;
    wire.until("pong").await?;
    stage.belljar(&["keys", "revoke", key.get(3..19).unwrap_or_default()]).await?;
    wire.say(&json!({ "type": "chat", "agent": "teller", "text": "go" }).to_string()).await?;
    Ok(Verdict::told(wire.rest().await?))
}

async fn nonsense(stage: &Stage) -> Stopped {
    let message = json!({ "type": "run", "command": "true" });
    Ok(Verdict::told(stage.caller("red-member").on_socket(&message).await?))
}
