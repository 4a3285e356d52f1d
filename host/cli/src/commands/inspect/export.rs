//! `belljar sessions export`: one JSON object with all stored data of a session.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_store::{MAX_EVENTS, MAX_LISTED, Store, StoredSession};
use serde_json::{Value, json};

use crate::setup::data::store_failure;
use crate::setup::exit::Failure;
use crate::term::out::TerminalOutput;

/// The version of the exported object's form.
const EXPORT_VERSION: u32 = 1;

/// Makes the JSON object with everything stored of a session.
pub(crate) async fn export_session(
    store: &Store,
    session: StoredSession,
    out: &TerminalOutput,
) -> Result<Value, Failure> {
    let id = session.id.as_str();
    let messages = store.list_messages(id).await.map_err(store_failure)?;
    let mut receipts = Vec::new();
    for message in &messages {
        let of_message = store
            .latest_receipts(id, Some(&message.id), MAX_LISTED)
            .await
            .map_err(store_failure)?;
        warn_if_cut("receipts", of_message.len(), out);
        receipts.extend(of_message);
    }
    let answers = store.latest_answers(id).await.map_err(store_failure)?;
    warn_if_cut("answers", answers.len(), out);
    Ok(json!({
        "export": EXPORT_VERSION,
        "messages": messages,
        "subagents": store.list_subagents(id).await.map_err(store_failure)?,
        "receipts": receipts,
        "answers": answers,
        "attachments": export_attachments(store, id, out).await?,
        "summary": store.latest_compaction(id).await.map_err(store_failure)?,
        "events": export_events(store, id).await?,
        "session": session,
    }))
}

/// The files of a session, with their bytes in base64.
async fn export_attachments(
    store: &Store,
    session: &str,
    out: &TerminalOutput,
) -> Result<Vec<Value>, Failure> {
    let listed = store.latest_attachments(session).await.map_err(store_failure)?;
    warn_if_cut("attachments", listed.len(), out);
    let mut files = Vec::with_capacity(listed.len());
    for about in listed {
        let (about, data) =
            store.read_attachment(session, &about.id).await.map_err(store_failure)?;
        files.push(json!({ "about": about, "base64": STANDARD.encode(data) }));
    }
    Ok(files)
}

/// All events of a session, page by page.
async fn export_events(store: &Store, session: &str) -> Result<Vec<Value>, Failure> {
    let (mut events, mut after) = (Vec::new(), 0);
    loop {
        let page = store.events_after(session, after, MAX_EVENTS).await.map_err(store_failure)?;
        let Some(last) = page.last() else { return Ok(events) };
        after = last.id;
        for event in page {
            let value = serde_json::from_str(&event.json).map_err(|error| {
                Failure::new(format!("event {} of the session is no JSON: {error}", event.id))
            })?;
            events.push(value);
        }
    }
}

/// Warns if the store returned only the latest part of a list.
fn warn_if_cut(what: &str, count: usize, out: &TerminalOutput) {
    if u32::try_from(count).is_ok_and(|count| count >= MAX_LISTED) {
        out.print_warning(format_args!(
            "there may be more {what}: only the latest {count} are exported"
        ));
    }
}
