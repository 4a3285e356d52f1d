//! Numbers and ids at their ends.

use anyhow::Context as _;
use serde_json::json;

use super::super::client::{ask, get};
use super::super::stage::Stage;
use super::{Row, asked, check, row};
use crate::attack::{Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-number-last-event",
        "says it has seen the last event that a number can name",
        "checked arithmetic (INV-113)",
        "still answers",
        last_event
    ),
    row!(
        "server-number-subscribe",
        "watches from behind the last number on, on a WebSocket",
        "checked arithmetic (INV-113)",
        "still answers",
        subscribe
    ),
    row!(
        "server-number-negative",
        "watches from before the first event on",
        "numbers are checked (INV-120)",
        "invalid-request",
        negative
    ),
    row!(
        "server-number-too-large",
        "names an event with more digits than a number has",
        "numbers are checked (INV-120)",
        "invalid-request",
        too_large
    ),
    row!(
        "server-number-before",
        "reads messages before the smallest number",
        "numbers are checked (INV-120)",
        "messages",
        before
    ),
    row!(
        "server-page-of-all",
        "asks for a page of four billion rows",
        "rows of a page (INV-120)",
        "invalid-request",
        page_of_all
    ),
    row!(
        "server-page-of-none",
        "asks for a page of no rows",
        "rows of a page (INV-120)",
        "invalid-request",
        page_of_none
    ),
    row!(
        "server-limit-largest",
        "asks for the largest limits that a number holds",
        "limits only narrow (INV-1)",
        "Once upon a time",
        largest
    ),
    row!(
        "server-ids-gaps",
        "learns from its own ids how much blue has done between",
        "ids count nothing (INV-113)",
        "apart",
        gaps
    ),
];

/// The same session still has its events, for whoever asks next.
async fn still_answers(stage: &Stage) -> Stopped {
    let path = format!("/v1/sessions/{}/events", stage.session("red")?);
    let mut wire = stage.caller("red-reader").open(&get(&path)).await?;
    wire.until("run_finished").await?;
    Ok(Verdict::told("whatever was said, it still answers"))
}

async fn last_event(stage: &Stage) -> Stopped {
    let path = format!("/v1/sessions/{}/events", stage.session("red")?);
    for number in [i64::MAX, i64::MAX - 1] {
        let ask = get(&path).line(format!("last-event-id: {number}"));
        let mut wire = stage.caller("red-reader").open(&ask).await?;
        let head = wire.until("\r\n\r\n").await?;
        check(!head.starts_with("HTTP/1.1 5"), || head.clone())?;
    }
    still_answers(stage).await
}

async fn subscribe(stage: &Stage) -> Stopped {
    let session = stage.session("red")?;
    let message = json!({ "type": "subscribe", "session": session, "after": i64::MAX });
    let told = stage.caller("red-reader").on_socket(&message).await?;
    check(told.contains("subscribed") || told.contains("invalid-request"), || told.clone())?;
    still_answers(stage).await
}

async fn negative(stage: &Stage) -> Stopped {
    let path = format!("/v1/sessions/{}/events?after=-1", stage.session("red")?);
    asked(stage, "red-reader", get(&path), 400).await
}

async fn too_large(stage: &Stage) -> Stopped {
    let path = format!("/v1/sessions/{}/events?after=99999999999999999999", stage.session("red")?);
    asked(stage, "red-reader", get(&path), 400).await
}

async fn before(stage: &Stage) -> Stopped {
    let path = format!("/v1/sessions/{}/messages?before={}", stage.session("red")?, i64::MIN);
    let answer = stage.caller("red-reader").send(&get(&path)).await?;
    check(answer.status < 500, || answer.body.clone())?;
    Ok(Verdict::told(answer.body))
}

async fn page_of_all(stage: &Stage) -> Stopped {
    asked(stage, "red-reader", get("/v1/sessions?limit=4294967295"), 400).await
}

async fn page_of_none(stage: &Stage) -> Stopped {
    asked(stage, "red-reader", get("/v1/sessions?limit=0"), 400).await
}

async fn largest(stage: &Stage) -> Stopped {
    stage.red_may_change();
    let limits = json!({ "steps": u64::MAX, "tokens": u64::MAX, "fuel": u64::MAX });
    let body = json!({ "agent": "teller", "text": "tell", "limits": limits });
    let answer = stage.caller("red-member").send(&ask("POST", "/v1/chat").json(&body)).await?;
    check(answer.status < 500, || answer.body.clone())?;
    Ok(Verdict::told(answer.body))
}

/// The number at the end of an id.
fn number(id: &str) -> Option<u64> {
    u64::from_str_radix(id.rsplit('-').next()?, 16).ok()
}

/// Two turns one after the other, with nothing of blue's between: were ids counted, their numbers
/// would lie close to each other each time.
async fn gaps(stage: &Stage) -> Stopped {
    stage.red_may_change();
    let mut numbers = Vec::new();
    for _ in 0..6 {
        let answer = stage.talk("red-member", "teller", "tell").await?;
        let id = answer.field("session")?;
        numbers.push(number(&id).with_context(|| format!("an id of another form: {id}"))?);
    }
    let close = |pair: &[u64]| matches!(pair, [one, next] if one.abs_diff(*next) < 1_000);
    let counted = numbers.windows(2).filter(|pair| close(pair)).count();
    check(counted < 3, || format!("ids are counted: {numbers:x?}"))?;
    Ok(Verdict::told("the numbers of ids that follow each other lie far apart"))
}
