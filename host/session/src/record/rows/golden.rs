//! Golden test of the journal's rows: one row of every kind.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use belljar_agent::{Attachment, CallReceipt, StepEntry, StepKind};
use belljar_sandbox::Receipt;
use belljar_store::JournalKind;
use serde_json::{Value, json};

use super::journal_entry;

/// Parses a step from the body of its row.
fn parse_step(body: Value) -> StepKind {
    serde_json::from_value(body.clone()).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// A receipt with every field.
fn sample_receipt() -> CallReceipt {
    CallReceipt {
        call_id: "call_1".to_owned(),
        parent: Some("call_0".to_owned()),
        step: 1,
        tool: "file_read".to_owned(),
        agent: "main".to_owned(),
        error: Some("there is no such file".to_owned()),
        receipt: Receipt::for_call("file_read", "00", "{}"),
    }
}

/// An attachment with every field.
fn sample_attachment() -> Attachment {
    Attachment {
        call_id: "call_1".to_owned(),
        name: "chart.svg".to_owned(),
        media_type: "image/svg+xml".to_owned(),
        size: 3,
        saved_to: Some("/out/chart.svg".into()),
        data: "abc".into(),
    }
}

/// A step of each kind: one with all optional fields, and one without.
fn sample_steps() -> Vec<StepKind> {
    let usage = json!({"steps": 1, "input_tokens": 2, "cached_tokens": 0, "output_tokens": 3, "tool_calls": 0, "fuel": 0});
    let tokens = json!({"input_tokens": 2, "cached_tokens": 0, "output_tokens": 3});
    let call = json!({"id": "call_1", "name": "file_read", "arguments": "{\"path\": \"a\"}"});
    let reply = |calls: Value, stop: Value| json!({"text": "It is", "calls": calls, "usage": tokens, "stop": stop});
    let outcome = json!({
        "status": "partial", "output": "half", "error": {"kind": "wall-time", "seconds": 3},
        "usage": usage, "total": usage, "receipts": [], "run": "r", "agent": "home/scout", "model": "m",
        "started": "2026-11-20T10:00:00Z", "ended": "2026-11-20T10:00:03Z",
    });
    let result = |rest: Value| {
        let mut body = json!({"kind": "result", "content": "text", "is_error": false});
        body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        parse_step(body)
    };
    belljar_kit::one_of_each!(StepKind {
        StepKind::Said { .. } => [
            parse_step(json!({"kind": "said", "told": ["a note"], "reply": reply(json!([call]), json!("tool-use"))})),
            parse_step(json!({"kind": "said", "reply": reply(json!([]), json!("end-turn"))})),
        ],
        StepKind::Begun { .. } => [
            parse_step(json!({
                "kind": "begun",
                "children": [{"place": 0, "slug": "scout", "spawn_index": 1, "call": call}],
                "called": "00", "course": {"began": 5, "seed": "s"}, "asked": true,
            })),
            parse_step(json!({"kind": "begun"})),
        ],
        StepKind::Result(_) => [
            result(json!({
                "receipt": sample_receipt(), "attachments": [sample_attachment()], "background": "scout#0",
                "nested": {"called": "00", "form": {"pieces": [{"json": true, "bytes": 2}], "kind": "not-found"}},
            })),
            result(json!({})),
        ],
        StepKind::Child { .. } => [parse_step(json!({"kind": "child", "place": 0, "summary": {
            "call_id": "call_1", "step": 1, "spawn_index": 0, "path": "main/scout#0", "origin": "preset",
            "task": "look", "context": "here", "outcome": outcome,
        }}))],
        StepKind::Written(_) => [
            parse_step(json!({"kind": "written", "server": "tides", "number": 1, "tokens": 9, "used": usage})),
            parse_step(json!({"kind": "written", "server": "tides", "number": 1, "tokens": 9})),
        ],
        StepKind::Muted { .. } => [parse_step(json!({"kind": "muted", "server": "tides"}))],
    })
}

/// The values that the column `kind` may have.
fn kind_words() -> BTreeSet<String> {
    let error = "?".parse::<JournalKind>().unwrap_err().to_string();
    error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

/// After a new kind is added with an example, run `INSTA_UPDATE=always cargo test golden`.
#[test]
fn golden_journal_rows_are_as_reviewed() {
    let (mut text, mut seen) = (String::new(), BTreeSet::new());
    for (position, kind) in sample_steps().into_iter().enumerate() {
        let row =
            journal_entry(StepEntry { agent: "main/call_1.0".into(), step: 2, position, kind });
        let row = row.unwrap();
        let kind = row.kind.as_str();
        seen.insert(kind.to_owned());
        assert_eq!(
            serde_json::to_value(parse_step(row.body.clone())).unwrap(),
            row.body,
            "it reads back"
        );
        writeln!(text, "{} {} {} {kind} {}", row.agent, row.step, row.position, row.body).unwrap();
    }
    assert_eq!(seen, kind_words());
    belljar_kit::golden!("journal", text);
}
