//! The store on disk: one SQLite file with conversations, their contents, and the tenants.
//!
//! ```text
//! tenants ──< api_keys, logins, agents, usage_parts
//! sessions ──< messages ──< subagent_sessions, event_blocks, receipts, receipt_blocks,
//!    │                      permission_answers, attachments, journal
//!    └──────< compactions
//! audit
//! ```
//!
//! Promises of this crate:
//!
//! - A file that is not a store, is damaged, or was written by a newer program is refused with a reason, and
//!   is not changed.
//! - Deleting a session deletes all its contents.
//! - Every query is scoped by a tenant: a [`Store`] reads only its own tenant's rows. Only a [`Registry`]
//!   reads tenants and keys.
//! - One task does all writing, in the order of requests (see [`Store::enqueue_writes`]).
//! - Acknowledged writes survive the death of the process (not a power cut, because the file is written in
//!   WAL mode with `synchronous=NORMAL`).
//! - A line of the audit log is never changed, nor deleted before its time, by any program that has the file
//!   open.
//!
//! The store does not know models or agents: contents are JSON values of the callers. Callers also make the
//! ids, which sort by time as text; times are milliseconds since 1970 in UTC. The SQL is limited to the
//! common part of SQLite and PostgreSQL; code for SQLite alone is in `open.rs`, `schema.rs`, `index/` and the
//! migrations named `.sqlite.sql`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent;
mod answer;
mod attachment;
mod audit;
mod compaction;
mod contents;
mod error;
mod event;
mod index;
mod journal;
mod limits;
mod login;
mod message;
mod open;
mod owner;
mod page;
mod receipt;
mod registry;
mod schema;
mod session;
mod snapshot;
mod statement;
mod storage;
mod subagent;
mod turn;
mod usage;
mod words;
mod write;
mod writer;

pub use agent::{MAX_AGENT_BYTES, StoredAgent};
pub use answer::PermissionAnswer;
pub use attachment::{MAX_ATTACHMENT_BYTES, NewAttachment, StoredAttachment};
pub use audit::{AuditEntry, MAX_DETAIL_BYTES};
pub use compaction::Compaction;
pub use contents::SessionContents;
pub use error::StoreError;
pub use event::{EventBlock, MAX_BLOCK_BYTES, MAX_EVENTS, SessionEvent};
pub use index::{IndexEntry, MAX_INDEX_ENTRIES, PreparedEntries, TextIndex};
pub use journal::JournalEntry;
pub use limits::{MAX_AGENTS, MAX_AGENTS_BYTES};
pub use login::{NewLogin, StoredLogin};
pub use message::{MessageEnding, NewMessage, StoredMessage};
pub use open::{Store, TENANT};
pub use page::{ListPage, SessionFilter};
pub use receipt::{JsonText, NewReceipt, ReceiptRow, StoredReceipt};
pub use registry::{MAX_TENANT_NAME, NewKey, Registry, StoredKey, Tenant};
pub use schema::SCHEMA_VERSION;
pub use session::{MAX_LISTED, SessionHead, StoredSession};
pub use statement::MAX_JSON_BYTES;
pub use subagent::SubagentRecord;
pub use turn::StoredTurn;
pub use usage::{UsagePart, UsageRow};
pub use words::{
    JournalKind, KeyScope, MessageStatus, Role, SessionKind, SubagentSource, SubagentStatus,
    UnknownWord,
};
pub use write::StoreWrite;
pub use writer::CommitHandle;
