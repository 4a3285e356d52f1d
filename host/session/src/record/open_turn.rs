//! A turn that is saved and has not ended: one that is about to run, or one that a process died
//! in, with what is kept of it.

use std::collections::HashSet;
use std::sync::Arc;

use belljar_policy::LimitsRequest;
use belljar_store::{MessageStatus, Store, StoreError, StoredMessage, SubagentRecord};
use bytes::Bytes;
use serde::Deserialize;

use crate::record::rows::{self, AgentMetadata, PersonContent, PersonMetadata, ReceiptKey};
use belljar_agent::Control;
use belljar_agent::RunId;
use belljar_agent::{Replay, StepEntry, StepKind};

/// A turn that is saved and has not ended.
#[derive(Debug)]
pub struct OpenTurn {
    /// The person's message.
    pub asked: String,
    /// The agent's message: the placeholder that everything of the turn belongs to.
    pub message: String,
    /// Its run.
    pub run: RunId,
    /// What the person said.
    pub text: String,
    /// What the agent is told beside that.
    pub context: Option<String>,
    /// Whether a blocked agent is run with what it is given.
    pub partial: bool,
    /// Ends single subagents of it.
    pub control: Arc<Control>,
    pub(crate) limits: LimitsRequest,
    pub(crate) replay: Option<Replay>,
    pub(crate) first_event: u64,
    /// The subagents that it had when its process died.
    pub(crate) before: Vec<SubagentRecord>,
    /// The receipts that are stored of it.
    pub(crate) receipts: HashSet<ReceiptKey>,
}

impl OpenTurn {
    /// The turn of these messages that a process died in. A session has one at a time.
    pub(crate) async fn found(
        store: &Store,
        session: &str,
        messages: &[StoredMessage],
        subagents: &[SubagentRecord],
        last_event: i64,
    ) -> Result<Option<Self>, StoreError> {
        let place = messages.iter().position(|one| one.status == MessageStatus::InFlight);
        let Some(place) = place else { return Ok(None) };
        let (Some(row), Some(asked)) =
            (messages.get(place), place.checked_sub(1).and_then(|before| messages.get(before)))
        else {
            return Ok(None);
        };
        let known = AgentMetadata::deserialize(&row.metadata);
        let said = PersonContent::deserialize(&asked.content);
        // Of a placeholder that an older program left, nothing is kept.
        let (Ok(AgentMetadata { run: Some(run), .. }), Ok(PersonContent { text, context })) =
            (known, said)
        else {
            return Ok(None);
        };
        let begun = PersonMetadata::deserialize(&asked.metadata).unwrap_or_default();
        let mut entries = Vec::new();
        for entry in store.journal_of(session, &row.id).await? {
            let bad = |error: serde_json::Error| StoreError::Row {
                what: format!("the journal of message `{}`", row.id),
                path: store.path().to_owned(),
                why: error.to_string(),
            };
            entries.push(rows::step_entry(entry).map_err(bad)?);
        }
        with_files(store, session, &row.id, &mut entries).await?;
        let of_turn = subagents.iter().filter(|one| one.parent_message_id == row.id);
        let before = of_turn.cloned().collect();
        Ok(Some(Self {
            asked: asked.id.clone(),
            message: row.id.clone(),
            run,
            text,
            context,
            partial: begun.partial.unwrap_or_default(),
            limits: begun.limits.unwrap_or_default(),
            control: Arc::default(),
            receipts: entries.iter().filter_map(rows::receipt_of).map(rows::receipt_key).collect(),
            replay: Some(Replay::of(entries)),
            first_event: next_event(store, session, &row.id, last_event).await?,
            before,
        }))
    }
}

/// Puts the contents of files, which are kept apart, back into the results that carried them.
async fn with_files(
    store: &Store,
    session: &str,
    message: &str,
    entries: &mut [StepEntry],
) -> Result<(), StoreError> {
    let files = entries.iter_mut().flat_map(|entry| match &mut entry.kind {
        StepKind::Result(kept) => kept.attachments.iter_mut(),
        StepKind::Said { .. } | StepKind::Begun { .. } | StepKind::Child { .. } => [].iter_mut(),
    });
    let mut files: Vec<_> = files.collect();
    if files.is_empty() {
        return Ok(());
    }
    let stored = store.attachments(session).await?;
    for stored in stored.into_iter().filter(|stored| stored.message == message) {
        let is = |file: &&mut &mut belljar_agent::Attachment| {
            file.data.is_empty()
                && Some(&file.call_id) == stored.call_id.as_ref()
                && file.name == stored.name
        };
        if let Some(file) = files.iter_mut().find(is) {
            let (_, data) = store.attachment(session, &stored.id).await?;
            file.data = Bytes::from(data);
        }
    }
    Ok(())
}

/// The number of the run's next event: behind that of the last one that is stored.
async fn next_event(
    store: &Store,
    session: &str,
    message: &str,
    last: i64,
) -> Result<u64, StoreError> {
    #[derive(Deserialize)]
    struct Numbered {
        seq: u64,
    }
    let stored = store.events_after(session, last.saturating_sub(1), 1).await?;
    let of_turn = stored.iter().find(|event| event.message == message);
    let number = of_turn.and_then(|event| serde_json::from_str::<Numbered>(&event.body).ok());
    Ok(number.map_or(0, |event| event.seq.saturating_add(1)))
}
