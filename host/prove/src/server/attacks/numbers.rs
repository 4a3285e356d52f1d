//! Attacks with the smallest and largest numbers and ids.

use anyhow::Context as _;
use serde_json::json;

use super::super::client::{get_request, new_request};
use super::super::stage::ServerStage;
use super::{Row, escape_unless, expect_refused, row};
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
        subscribe_past_end
    ),
    row!(
        "server-number-negative",
        "watches from before the first event on",
        "numbers are checked (INV-120)",
        "invalid-request",
        watch_negative_number
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
        read_before_smallest
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
        ask_largest_limits
    ),
    row!(
        "server-ids-gaps",
        "learns from its own ids how much blue has done between",
        "ids count nothing (INV-113)",
        "apart",
        compare_id_gaps
    ),
];

/// Checks that the events of the same session can still be read.
async fn still_answers(stage: &ServerStage) -> Stopped {
    let path = format!("/v1/sessions/{}/events", stage.session_id("red")?);
    let mut wire = stage.client_for("red-reader").send_open(&get_request(&path)).await?;
    wire.read_until("run_finished").await?;
    Ok(Verdict::with_words("whatever was said, it still answers"))
}

/// Attack `server-number-last-event`: the attacker says it has seen the last event that a number can name.
async fn last_event(stage: &ServerStage) -> Stopped {
    let path = format!("/v1/sessions/{}/events", stage.session_id("red")?);
    for number in [i64::MAX, i64::MAX - 1] {
        let ask = get_request(&path).with_line(format!("last-event-id: {number}"));
        let mut wire = stage.client_for("red-reader").send_open(&ask).await?;
        let head = wire.read_until("\r\n\r\n").await?;
        escape_unless(!head.starts_with("HTTP/1.1 5"), || head.clone())?;
    }
    still_answers(stage).await
}

/// Attack `server-number-subscribe`: the attacker watches from behind the last number on, on a WebSocket.
async fn subscribe_past_end(stage: &ServerStage) -> Stopped {
    let session = stage.session_id("red")?;
    let message = json!({ "type": "subscribe", "session": session, "after": i64::MAX });
    let told = stage.client_for("red-reader").on_socket(&message).await?;
    escape_unless(told.contains("subscribed") || told.contains("invalid-request"), || {
        told.clone()
    })?;
    still_answers(stage).await
}

/// Attack `server-number-negative`: the attacker watches from before the first event on.
async fn watch_negative_number(stage: &ServerStage) -> Stopped {
    let path = format!("/v1/sessions/{}/events?after=-1", stage.session_id("red")?);
    expect_refused(stage, "red-reader", get_request(&path), 400).await
}

/// Attack `server-number-too-large`: the attacker names an event with more digits than a number has.
async fn too_large(stage: &ServerStage) -> Stopped {
    let path =
        format!("/v1/sessions/{}/events?after=99999999999999999999", stage.session_id("red")?);
    expect_refused(stage, "red-reader", get_request(&path), 400).await
}

/// Attack `server-number-before`: the attacker reads messages before the smallest number.
async fn read_before_smallest(stage: &ServerStage) -> Stopped {
    let path = format!("/v1/sessions/{}/messages?before={}", stage.session_id("red")?, i64::MIN);
    let answer = stage.client_for("red-reader").send(&get_request(&path)).await?;
    escape_unless(answer.status < 500, || answer.body.clone())?;
    Ok(Verdict::with_words(answer.body))
}

/// Attack `server-page-of-all`: the attacker asks for a page of four billion rows.
async fn page_of_all(stage: &ServerStage) -> Stopped {
    expect_refused(stage, "red-reader", get_request("/v1/sessions?limit=4294967295"), 400).await
}

/// Attack `server-page-of-none`: the attacker asks for a page of no rows.
async fn page_of_none(stage: &ServerStage) -> Stopped {
    expect_refused(stage, "red-reader", get_request("/v1/sessions?limit=0"), 400).await
}

/// Attack `server-limit-largest`: the attacker asks for the largest limits that a number holds.
async fn ask_largest_limits(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let limits = json!({ "steps": u64::MAX, "tokens": u64::MAX, "fuel": u64::MAX });
    let body = json!({ "agent": "teller", "text": "tell", "limits": limits });
    let answer = stage
        .client_for("red-member")
        .send(&new_request("POST", "/v1/chat").with_json(&body))
        .await?;
    escape_unless(answer.status < 500, || answer.body.clone())?;
    Ok(Verdict::with_words(answer.body))
}

/// The number at the end of an id.
fn id_number(id: &str) -> Option<u64> {
    u64::from_str_radix(id.rsplit('-').next()?, 16).ok()
}

/// Attack that compares ids: two turns of red's one after the other, with none of blue's between. If ids were
/// counted, their numbers would always be close to each other.
async fn compare_id_gaps(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let mut numbers = Vec::new();
    for _ in 0..6 {
        let answer = stage.send_chat("red-member", "teller", "tell").await?;
        let id = answer.json_field("session")?;
        numbers.push(id_number(&id).with_context(|| format!("an id of another form: {id}"))?);
    }
    let close = |pair: &[u64]| matches!(pair, [one, next] if one.abs_diff(*next) < 1_000);
    let counted = numbers.windows(2).filter(|pair| close(pair)).count();
    escape_unless(counted < 3, || format!("ids are counted: {numbers:x?}"))?;
    Ok(Verdict::with_words("the numbers of ids that follow each other lie far apart"))
}
