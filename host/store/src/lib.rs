//! Sessions on disk: one SQLite file that holds conversations, their messages and the
//! subagents that hang off them.
//!
//! ```text
//! sessions ──< messages ──< subagent_sessions
//! ```
//!
//! What this crate promises:
//!
//! - A file that is not a store, is damaged, or was written by a newer program is refused with
//!   a reason, and stays as it was.
//! - Deleting a session deletes all that hangs off it.
//! - Every query is scoped by a tenant: a [`Store`] sees the rows of its own and no others.
//! - What a call has acknowledged outlives the death of the process (not a power cut: the
//!   file is written in WAL mode with `synchronous=NORMAL`).
//!
//! It knows nothing of models or agents: contents are JSON values that its callers made and
//! read. Ids are made by the callers too and sort by time as text; times are milliseconds
//! since 1970 in UTC. The SQL stays within what SQLite and PostgreSQL share; what is SQLite's
//! own stands in `open.rs` and `schema.rs`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod error;
mod message;
mod open;
mod schema;
mod session;
mod subagent;
mod words;

pub use error::StoreError;
pub use message::{Finished, MAX_JSON_BYTES, NewMessage, StoredMessage};
pub use open::{Store, TENANT};
pub use schema::SCHEMA_VERSION;
pub use session::{MAX_LISTED, NewSession, StoredSession};
pub use subagent::SubagentRecord;
pub use words::{MessageStatus, Role, Source, SubagentStatus};
