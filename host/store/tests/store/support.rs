//! Helpers: a home with a store, rows to store in it, and access to the file without the store.

use std::path::PathBuf;

use belljar_store::{
    AuditEntry, Compaction, EventBlock, JournalEntry, JournalKind, MessageEnding, MessageStatus,
    NewAttachment, NewMessage, PermissionAnswer, ReceiptRow, Role, SessionKind, Store, StoreError,
    StoreWrite, StoredSession, SubagentRecord, SubagentSource, SubagentStatus, UsagePart, UsageRow,
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, SqliteConnection};
use tempfile::TempDir;

/// Single writes, each committed when the method returns.
pub(crate) trait Writes {
    async fn create_session(&self, new: &StoredSession) -> Result<(), StoreError>;
    async fn append_messages(&self, session: &str, new: &[NewMessage]) -> Result<(), StoreError>;
    async fn append_message(&self, session: &str, new: &NewMessage) -> Result<(), StoreError>;
    async fn finish_message(
        &self,
        session: &str,
        id: &str,
        to: &MessageEnding,
    ) -> Result<(), StoreError>;
    async fn record_subagents(
        &self,
        session: &str,
        records: &[SubagentRecord],
    ) -> Result<(), StoreError>;
}

impl Writes for Store {
    async fn create_session(&self, new: &StoredSession) -> Result<(), StoreError> {
        self.enqueue_writes(vec![StoreWrite::CreateSession(new.clone())]).await
    }

    async fn append_messages(&self, session: &str, new: &[NewMessage]) -> Result<(), StoreError> {
        let (session, messages) = (session.to_owned(), new.to_vec());
        self.enqueue_writes(vec![StoreWrite::AppendMessages { session, messages }]).await
    }

    async fn append_message(&self, session: &str, new: &NewMessage) -> Result<(), StoreError> {
        self.append_messages(session, std::slice::from_ref(new)).await
    }

    async fn finish_message(
        &self,
        session: &str,
        id: &str,
        to: &MessageEnding,
    ) -> Result<(), StoreError> {
        let (session, message, finished) = (session.to_owned(), id.to_owned(), to.clone());
        self.enqueue_writes(vec![StoreWrite::FinishMessage { session, message, finished }]).await
    }

    async fn record_subagents(
        &self,
        session: &str,
        records: &[SubagentRecord],
    ) -> Result<(), StoreError> {
        let (session, records) = (session.to_owned(), records.to_vec());
        self.enqueue_writes(vec![StoreWrite::Subagents { session, records }]).await
    }
}

/// A temporary home with a store.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("home").join("belljar.db")
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.file()).await.unwrap()
    }

    /// Changes the file without the store.
    pub(crate) async fn tamper(&self, sql: &'static str) {
        let mut db = self.raw().await;
        db.execute(sql).await.unwrap();
        db.close().await.unwrap();
    }

    /// A connection to the file without the store's settings.
    pub(crate) async fn raw(&self) -> SqliteConnection {
        let path = format!("sqlite://{}", self.file().display());
        SqliteConnection::connect(&path).await.unwrap()
    }

    /// The number that a query on the file returns.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let mut db = self.raw().await;
        let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        let number = query.fetch_one(&mut db).await.unwrap();
        db.close().await.unwrap();
        number
    }

    /// The tables of the file with a column of the given name.
    pub(crate) async fn tables_with(&self, column: &str) -> Vec<String> {
        let mut db = self.raw().await;
        let select = "SELECT t.name FROM sqlite_master t JOIN pragma_table_info(t.name) c \
            WHERE t.type = 'table' AND c.name = $1 ORDER BY t.name";
        let tables = sqlx::query_scalar(select).bind(column).fetch_all(&mut db).await.unwrap();
        db.close().await.unwrap();
        tables
    }

    /// All rows of all tables as text.
    pub(crate) async fn dump(&self) -> String {
        let mut db = self.raw().await;
        let select = "SELECT t.name, group_concat('quote(\"' || c.name || '\")', ' || ''|'' || ') \
            FROM sqlite_master t JOIN pragma_table_info(t.name) c \
            WHERE t.type = 'table' GROUP BY t.name ORDER BY t.name";
        let tables: Vec<(String, String)> =
            sqlx::query_as(select).fetch_all(&mut db).await.unwrap();
        let mut dump = String::new();
        for (table, columns) in tables {
            let select = format!("SELECT {columns} AS line FROM {table} ORDER BY line");
            let lines: Vec<String> =
                sqlx::query_scalar(AssertSqlSafe(select)).fetch_all(&mut db).await.unwrap();
            for line in lines {
                dump.push_str(&format!("{table}|{line}\n"));
            }
        }
        db.close().await.unwrap();
        dump
    }

    pub(crate) async fn refused(&self) -> StoreError {
        Store::open(&self.file()).await.unwrap_err()
    }
}

pub(crate) fn session(id: &str, created: i64) -> StoredSession {
    StoredSession {
        id: id.into(),
        title: "what does the note say".into(),
        agent: "home/scout".into(),
        workspace: "/w".into(),
        model: String::new(),
        kind: SessionKind::Chat,
        created,
        updated: created,
    }
}

pub(crate) fn message(id: &str, role: Role, status: MessageStatus) -> NewMessage {
    let content = json!({"text": format!("text of {id}")});
    NewMessage { id: id.into(), role, status, content, metadata: json!({}), created: 10 }
}

pub(crate) fn subagent(id: &str, message: &str, sort_order: i64) -> SubagentRecord {
    SubagentRecord {
        id: id.into(),
        parent_message_id: message.into(),
        parent_tool_call_id: "call_1".into(),
        parent_agent: "home/main".into(),
        parent_subagent_id: None,
        depth: 1,
        chain_id: "run".into(),
        source: SubagentSource::Preset,
        agent: "home/scout".into(),
        display_name: "scout".into(),
        goal: "look".into(),
        context: None,
        status: SubagentStatus::Running,
        model: "scripted:test".into(),
        tool_names: vec!["file_read".into()],
        summary: String::new(),
        result: Value::Null,
        error: None,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        fuel: 0,
        sort_order,
        created: 11,
        started: Some(11),
        ended: None,
    }
}

/// A store with a session `s` that has a question, a placeholder and a subagent.
pub(crate) async fn filled(home: &Home) -> Store {
    let store = home.open().await;
    store.create_session(&session("s", 1)).await.unwrap();
    let messages = [
        message("m1", Role::User, MessageStatus::Completed),
        message("m2", Role::Assistant, MessageStatus::InFlight),
    ];
    store.append_messages("s", &messages).await.unwrap();
    store.record_subagents("s", &[subagent("a1", "m2", 0)]).await.unwrap();
    store
}

/// A store with the sessions `s` and `t`, each with a question, a placeholder, and one row of everything that
/// belongs to them; ids of rows begin with the session's id.
pub(crate) async fn full(home: &Home) -> Store {
    let store = home.open().await;
    for id in ["s", "t"] {
        store.enqueue_writes(everything(id)).await.unwrap();
        store.save_compaction(id, &summary(1)).await.unwrap();
    }
    store
}

/// The writes that make a session and fill it, one of each kind.
pub(crate) fn everything(id: &str) -> Vec<StoreWrite> {
    let (session_id, answer) = (id.to_owned(), format!("{id}2"));
    let messages = vec![
        message(&format!("{id}1"), Role::User, MessageStatus::Completed),
        message(&answer, Role::Assistant, MessageStatus::InFlight),
    ];
    let mut writes = vec![
        StoreWrite::CreateSession(session(id, 1)),
        StoreWrite::AppendMessages { session: session_id, messages },
    ];
    writes.extend(hanging(id, &answer, ""));
    writes
}

/// One of each kind of write that belongs to a placeholder. `mark` is part of the ids, so a second set
/// differs.
pub(crate) fn hanging(session: &str, message: &str, mark: &str) -> Vec<StoreWrite> {
    let (session, message) = (session.to_owned(), message.to_owned());
    let id = |kind: &str| format!("{session}-{kind}{mark}");
    let first_seq = if mark.is_empty() { 1 } else { 3 };
    let block =
        EventBlock { first_seq, events: vec![r#"{"n":1}"#.into(), r#"{"text":",\\n"}"#.into()] };
    let records = vec![subagent(&id("agent"), &message, 0)];
    let entries = vec![entry(JournalKind::Said, 1)];
    let receipts = vec![receipt(&id("receipt"), 20).into()];
    let packed = (0..5).map(|at| receipt(&id(&format!("packed-{at}")), 21 + at).into()).collect();
    let attachments = vec![attachment(&id("file"), b"\0bytes\xff")];
    let answer = answer(&id("answer"), &session, &message);
    let both = || (session.clone(), message.clone());
    let (metadata, updated) = (json!({"batch": id("row")}), 12);
    vec![
        StoreWrite::Subagents { session: session.clone(), records },
        with(both(), |session, message| StoreWrite::Journal { session, message, entries }),
        with(both(), |session, message| StoreWrite::Events { session, message, block }),
        with(both(), |session, message| StoreWrite::Receipts { session, message, receipts }),
        with(both(), |session, message| StoreWrite::PackedReceipts {
            session,
            message,
            receipts: packed,
        }),
        StoreWrite::Answer(answer),
        with(both(), |session, message| StoreWrite::Attachments { session, message, attachments }),
        with(both(), |session, message| StoreWrite::Metadata {
            session,
            message,
            metadata,
            updated,
        }),
    ]
}

fn with(ids: (String, String), make: impl FnOnce(String, String) -> StoreWrite) -> StoreWrite {
    make(ids.0, ids.1)
}

pub(crate) fn entry(kind: JournalKind, step: i64) -> JournalEntry {
    JournalEntry { agent: "top".into(), step, position: 0, kind, body: json!({"step": step}) }
}

pub(crate) fn receipt(id: &str, created: i64) -> ReceiptRow {
    ReceiptRow {
        id: id.into(),
        agent: "top".into(),
        step: 1,
        call_id: "call_1".into(),
        tool: "file_read".into(),
        ok: true,
        ending: "returned".into(),
        fuel: 12,
        micros: 340,
        body: json!({"paths_read": ["a.txt"]}),
        created,
    }
}

pub(crate) fn answer(id: &str, session: &str, message: &str) -> PermissionAnswer {
    PermissionAnswer {
        id: id.into(),
        session: session.into(),
        message: message.into(),
        question: 1,
        agent: "top".into(),
        tool: "shell".into(),
        arguments: json!({"command": "ls"}),
        answer: "allow".into(),
        actor: "key:0011".into(),
        asked: 20,
        answered: 21,
    }
}

pub(crate) fn attachment(id: &str, data: &[u8]) -> NewAttachment {
    NewAttachment {
        id: id.into(),
        call_id: Some("call_1".into()),
        name: "a.png".into(),
        media_type: "image/png".into(),
        data: data.to_vec(),
        created: 22,
    }
}

pub(crate) fn summary(upto_sort_order: i64) -> Compaction {
    Compaction { upto_sort_order, text: format!("summary up to {upto_sort_order}"), created: 23 }
}

pub(crate) fn audit(id: &str, at: i64) -> AuditEntry {
    AuditEntry {
        id: id.into(),
        at,
        actor: "key:0011".into(),
        action: "session.delete".into(),
        object: "s".into(),
        detail: json!({"why": "asked"}),
    }
}

pub(crate) fn part(agent: &str, model: &str, row: UsageRow) -> UsagePart {
    UsagePart { agent: agent.into(), model: model.into(), row }
}

pub(crate) fn usage(day: &str, amount: i64) -> UsageRow {
    UsageRow {
        day: day.into(),
        turns: amount,
        steps: amount,
        input_tokens: amount,
        cached_tokens: amount,
        output_tokens: amount,
        tool_calls: amount,
        fuel: amount,
    }
}
