//! Who cancelled a turn or subagent, as stored in the rows: a caller's name, or a word of this module.

use std::collections::HashMap;

use belljar_agent::RunStatus;
use belljar_store::{SubagentRecord, SubagentStatus};
use serde_json::Value;

/// The word for the parent agent, which cancelled the subagent or needed no result any more.
const PARENT: &str = "parent";

/// The word for a used-up limit of an agent above the subagent.
const LIMIT: &str = "limit";

/// The field in a subagent's result with the canceller's name or word.
const FIELD: &str = "cancelled_by";

/// Writes the canceller into a subagent's record, unless the record has one.
pub(crate) fn note_canceller(record: &mut SubagentRecord, by: Option<&str>) {
    let (Value::Object(result), Some(by)) = (&mut record.result, by) else { return };
    result.entry(FIELD).or_insert_with(|| Value::String(by.to_owned()));
}

/// Writes a canceller into the record of every cancelled subagent of an ended turn: a subagent without a
/// caller's name was cancelled with its parent. `status` and `by` are the top agent's. In `records`, parents
/// must come before their children.
pub(crate) fn note_causes(records: &mut [SubagentRecord], status: RunStatus, by: Option<&str>) {
    let top = match status {
        RunStatus::Cancelled => by.map(str::to_owned),
        RunStatus::Partial => Some(LIMIT.to_owned()),
        RunStatus::Completed | RunStatus::Failed => Some(PARENT.to_owned()),
    };
    // The word that the children of each record get.
    let mut below: HashMap<String, Option<String>> = HashMap::new();
    for record in records {
        let above = match &record.parent_subagent_id {
            Some(parent) => below.get(parent).cloned().flatten(),
            None => top.clone(),
        };
        let own = match record.status {
            SubagentStatus::Cancelled => {
                note_canceller(record, above.as_deref());
                record.result.get(FIELD).and_then(Value::as_str).map(str::to_owned)
            }
            SubagentStatus::Partial => Some(LIMIT.to_owned()),
            SubagentStatus::Queued
            | SubagentStatus::Running
            | SubagentStatus::Completed
            | SubagentStatus::Failed => Some(PARENT.to_owned()),
        };
        below.insert(record.id.clone(), own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_store::SubagentSource;
    use serde_json::json;

    fn record(id: &str, parent: Option<&str>, status: SubagentStatus) -> SubagentRecord {
        SubagentRecord {
            id: id.to_owned(),
            parent_message_id: "m".to_owned(),
            parent_tool_call_id: "c".to_owned(),
            parent_agent: "home/main".to_owned(),
            parent_subagent_id: parent.map(str::to_owned),
            depth: 1,
            chain_id: "r".to_owned(),
            source: SubagentSource::Preset,
            agent: "home/scout".to_owned(),
            display_name: id.to_owned(),
            goal: "look".to_owned(),
            context: None,
            status,
            model: String::new(),
            tool_names: Vec::new(),
            summary: String::new(),
            result: json!({ "path": id }),
            error: None,
            input_tokens: 0,
            cached_tokens: 0,
            output_tokens: 0,
            fuel: 0,
            sort_order: 0,
            created: 1,
            started: None,
            ended: None,
        }
    }

    #[test]
    fn a_cancelled_subagent_says_who_did_it_or_what_it_went_with() {
        use SubagentStatus::{Cancelled, Completed, Partial};
        let by = |status, by: Option<&str>| {
            let mut records = [
                record("alone", None, Cancelled),
                record("below", Some("alone"), Cancelled),
                record("by-key", None, Cancelled),
                record("below-key", Some("by-key"), Cancelled),
                record("spent", None, Partial),
                record("below-spent", Some("spent"), Cancelled),
                record("done", None, Completed),
                record("below-done", Some("done"), Cancelled),
            ];
            note_canceller(&mut records[2], Some("key:1"));
            note_causes(&mut records, status, by);
            let of = |record: &SubagentRecord| {
                record.result[FIELD].as_str().unwrap_or_default().to_owned()
            };
            records.iter().map(of).collect::<Vec<_>>()
        };
        let below = ["key:1", "key:1", "", LIMIT, "", PARENT];
        let all = |first: &'static str| [&[first, first][..], &below].concat();
        assert_eq!(by(RunStatus::Cancelled, Some("local")), all("local"));
        assert_eq!(
            by(RunStatus::Cancelled, None),
            all(""),
            "nobody is named where nobody is known"
        );
        assert_eq!(by(RunStatus::Partial, None), all(LIMIT));
        assert_eq!(by(RunStatus::Completed, None), all(PARENT));
    }
}
