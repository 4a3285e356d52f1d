//! Stores the results of a client's tool calls, in order, after the answers were sent: one task for each
//! session.
//!
//! A client makes its next call as soon as it has an answer. A transaction for every call would delay the
//! next call, because both need the processor, so the results of a few milliseconds share one transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use belljar_agent::{ChatMessage, DirectResult, Usage, frame};
use belljar_store::{
    AuditEntry, MessageStatus, NewAttachment, NewMessage, NewReceipt, Role, SessionKind,
    StoreError, StoreWrite, StoredSession, UsagePart,
};
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::record::place::TurnPlace;
use crate::record::rows::{
    self, AgentContent, AgentMetadata, PersonContent, PersonMetadata, to_row_value,
};
use crate::record::turn_journal::denied_call;
use crate::service::Service;

/// Most results that wait to be stored; the next call waits until there is room.
const MAX_WAITING: usize = 256;

/// Most results in one transaction.
const MAX_BATCH: usize = 64;

/// Bytes of results after which a transaction takes no further result.
const MAX_BATCH_BYTES: usize = 16 << 20;

/// How long a result waits for others, to share a transaction. A killed process loses waiting results, and
/// results being stored. A read of the stored results ends the wait.
const GATHERING: Duration = Duration::from_millis(10);

/// Sends results to the storing task. Dropping `ResultWriter` ends the task after it has stored all results.
pub(super) struct ResultWriter {
    place: Arc<TurnPlace>,
    sender: mpsc::Sender<WriterMessage>,
    /// Ends the wait for further results.
    now: Arc<Notify>,
    full: Arc<AtomicBool>,
}

/// The rows of one call's result, or of several results joined.
#[derive(Default)]
struct ResultRows {
    receipts: Vec<NewReceipt>,
    attachments: Vec<NewAttachment>,
    denied: Vec<StoreWrite>,
    used: Usage,
}

/// A message to the task that stores results.
enum WriterMessage {
    Note(ResultRows),
    /// A request for a notice once all earlier results are stored.
    Stored(oneshot::Sender<()>),
}

impl WriterMessage {
    /// The bytes that count for the size of a transaction.
    fn approximate_bytes(&self) -> usize {
        match self {
            Self::Note(note) => note.approximate_bytes(),
            Self::Stored(_) => 0,
        }
    }
}

impl ResultRows {
    /// Serializes one result. `ids` = the ids of the result's files, in order. Done in each call, because
    /// serializing a whole batch at once would delay later calls.
    fn from_result(place: &TurnPlace, result: &DirectResult, ids: &[String]) -> Self {
        let mut note = Self { used: result.sampled, ..Self::default() };
        for receipt in &result.receipts {
            note.used.tool_calls += 1;
            note.used.fuel = note.used.fuel.saturating_add(receipt.receipt.fuel);
            note.denied.extend(denied_call(place, receipt));
            let row = rows::receipt_row(receipt, None, place.new_id(), place.now_millis());
            note.receipts.push(row);
        }
        note.attachments.extend(ids.iter().zip(&result.attachments).map(|(id, file)| {
            NewAttachment {
                id: id.clone(),
                call_id: Some(file.call_id.clone()),
                name: file.name.clone(),
                media_type: file.media_type.clone(),
                data: file.data.to_vec(),
                created: place.now_millis(),
            }
        }));
        note
    }

    /// The approximate bytes of the rows.
    fn approximate_bytes(&self) -> usize {
        let receipts = self.receipts.iter().map(|receipt| receipt.body.as_str().len());
        receipts.chain(self.attachments.iter().map(|file| file.data.len())).sum()
    }

    /// Appends the rows of a later result.
    fn append_rows(&mut self, next: Self) {
        self.receipts.extend(next.receipts);
        self.attachments.extend(next.attachments);
        self.denied.extend(next.denied);
        self.used += next.used;
    }

    /// The writes of the store for these rows: files, audit lines, receipts and usage.
    fn into_writes(self, place: &TurnPlace, agent: &str) -> Vec<StoreWrite> {
        let Self { receipts, attachments, denied: mut writes, used } = self;
        let (session, message) = (place.session.clone(), place.message.clone());
        if !attachments.is_empty() {
            let (session, message) = (session.clone(), message.clone());
            writes.push(StoreWrite::Attachments { session, message, attachments });
        }
        writes.push(StoreWrite::PackedReceipts { session, message, receipts });
        writes.push(StoreWrite::Usage(UsagePart {
            agent: agent_identity(agent),
            model: String::new(),
            row: rows::usage_beside(used, &*place.clock),
        }));
        writes
    }
}

impl ResultWriter {
    /// Starts the task in the runtime of `service`'s turns, so that no answering thread is slowed. The
    /// session is made with the first result.
    pub(super) fn start_task(
        service: &Service,
        place: TurnPlace,
        agent: String,
        client: String,
        at: String,
    ) -> Self {
        let (sender, mut notes) = mpsc::channel(MAX_WAITING);
        let now = Arc::new(Notify::new());
        let soon = Arc::clone(&now);
        let place = Arc::new(place);
        let of_session = Arc::clone(&place);
        let full = Arc::new(AtomicBool::new(false));
        let is_full = Arc::clone(&full);
        let of_tenant = service.clone();
        service.spawn_task(async move {
            let mut begun = false;
            let mut batch = Vec::with_capacity(MAX_BATCH);
            // Waits for one message only, so that messages arriving during the wait do not wake the task each
            // time.
            while notes.recv_many(&mut batch, 1).await > 0 {
                // Messages that arrived during the last write have waited long enough, so these are stored at
                // once.
                if notes.is_empty()
                    && batch.iter().all(|handed| matches!(handed, WriterMessage::Note(_)))
                {
                    let _ = tokio::time::timeout(GATHERING, soon.notified()).await;
                }
                let mut bytes: usize = batch.iter().map(WriterMessage::approximate_bytes).sum();
                while batch.len() < MAX_BATCH
                    && bytes < MAX_BATCH_BYTES
                    && let Ok(handed) = notes.try_recv()
                {
                    bytes += handed.approximate_bytes();
                    batch.push(handed);
                }
                let mut waiting = Vec::new();
                let mut results: Option<ResultRows> = None;
                for message in batch.drain(..) {
                    match message {
                        WriterMessage::Note(note) => {
                            results.get_or_insert_default().append_rows(note)
                        }
                        WriterMessage::Stored(done) => waiting.push(done),
                    }
                }
                if let Some(results) = results {
                    let mut writes = match begun {
                        true => Vec::new(),
                        false => session_writes(&place, &agent, &client, &at),
                    };
                    writes.extend(results.into_writes(&place, &agent));
                    match place.store.enqueue_writes(writes).await {
                        Ok(()) => begun = true,
                        Err(error) => {
                            // If the session was deleted, the next result makes it again.
                            begun &= !matches!(error, StoreError::NotFound { .. });
                            tracing::error!(
                                target: "belljar::session",
                                session = %place.session,
                                "receipts of a client's calls could not be stored: {error}"
                            );
                        }
                    }
                    is_full.store(of_tenant.check_room(0).await.is_err(), Ordering::Relaxed);
                }
                for done in waiting {
                    let _ = done.send(());
                }
            }
        });
        Self { place: of_session, sender, now, full }
    }

    /// Enqueues a result with the ids of its files; waits while the queue is full.
    pub(super) async fn write_result(&self, result: &DirectResult, files: &[String]) {
        let note = ResultRows::from_result(&self.place, result, files);
        if self.sender.capacity() <= MAX_WAITING - MAX_BATCH {
            self.now.notify_one();
        }
        // The send fails only while the runtime ends.
        let _ = self.sender.send(WriterMessage::Note(note)).await;
    }

    /// Returns whether the tenant's storage was full, or its size unknown, at the last write.
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Waits until all results that were enqueued before are stored.
    pub(super) async fn wait_until_stored(&self) {
        let (done, stored) = oneshot::channel();
        if self.sender.send(WriterMessage::Stored(done)).await.is_ok() {
            self.now.notify_one();
            let _ = stored.await;
        }
    }
}

/// The rows of a new session: a message in place of a person's, and a turn that counts as ended.
fn session_writes(
    place: &TurnPlace,
    agent: &str,
    client: &str,
    workspace: &str,
) -> Vec<StoreWrite> {
    let now = place.now_millis();
    let text = format!("calls of the MCP client {client}");
    let session = StoredSession {
        id: place.session.clone(),
        title: format!("MCP client {client}"),
        agent: agent_identity(agent),
        workspace: workspace.to_owned(),
        model: String::new(),
        kind: SessionKind::Api,
        created: now,
        updated: now,
    };
    let noted = ChatMessage::from_assistant(frame::NOTED);
    let answer = AgentContent {
        text: String::new(),
        messages: Some(vec![ChatMessage::from_user(text.clone()), noted]),
        calls: Vec::new(),
    };
    let begun = PersonMetadata { actor: Some(place.actor.clone()), ..PersonMetadata::default() };
    let row = |id: String, role, content, metadata| NewMessage {
        id,
        role,
        status: MessageStatus::Completed,
        content,
        metadata,
        created: now,
    };
    let asked = to_row_value(&PersonContent { text, context: None });
    let known = to_row_value(&AgentMetadata::for_running(&place.run, &[]));
    let messages = vec![
        row(place.new_id(), Role::User, asked, to_row_value(&begun)),
        row(place.message.clone(), Role::Assistant, to_row_value(&answer), known),
    ];
    let id = place.session.clone();
    let audit = AuditEntry {
        id: place.new_id(),
        at: now,
        actor: place.actor.clone(),
        action: "client_began".to_owned(),
        object: format!("session {id}"),
        detail: json!({"client": client, "agent": agent}),
    };
    vec![
        StoreWrite::CreateSession(session),
        StoreWrite::AppendMessages { session: id, messages },
        StoreWrite::Audit(audit),
    ]
}

/// The agent's identity, as in sessions and usage rows, for example `home/scout`.
fn agent_identity(agent: &str) -> String {
    format!("home/{agent}")
}

impl Drop for ResultWriter {
    fn drop(&mut self) {
        // No further results arrive, so the task need not wait for them.
        self.now.notify_one();
    }
}
