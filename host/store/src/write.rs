//! The kinds of writes, and the SQL statements of each.

use serde_json::Value;

use crate::answer::{self, PermissionAnswer};
use crate::attachment::{self, NewAttachment};
use crate::audit::{self, AuditEntry};
use crate::error::StoreError;
use crate::event::{self, EventBlock};
use crate::journal::{self, JournalEntry};
use crate::message::{self, MessageEnding, NewMessage};
use crate::open::Store;
use crate::receipt::{self, NewReceipt};
use crate::session::{self, SessionHead, StoredSession};
use crate::statement::SqlStatement;
use crate::subagent::{self, SubagentRecord};
use crate::usage::{self, UsagePart};
use crate::words::SessionKind;
use crate::writer::CommitHandle;

/// One write. The writes of one call of [`Store::enqueue_writes`] are stored together or not at all.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreWrite {
    /// Stores a new session. The error is [`StoreError::Taken`] for an id in use, [`StoreError::NotFound`]
    /// for a missing tenant.
    CreateSession(StoredSession),
    /// Changes the kind of a session.
    SessionKind {
        /// The session's id.
        session: String,
        /// The new kind.
        kind: SessionKind,
    },
    /// Changes the title, agent and model of a session.
    SessionHead {
        /// The session's id.
        session: String,
        /// The new values.
        head: SessionHead,
    },
    /// Appends messages to a session, all or none. Two processes that append at the same time get different
    /// positions.
    AppendMessages {
        /// The session's id.
        session: String,
        /// The messages in their order.
        messages: Vec<NewMessage>,
    },
    /// Replaces a placeholder by its result, and deletes the journal of its turn. A message can be finished
    /// only once: a second time the error is [`StoreError::Finished`].
    FinishMessage {
        /// The session's id.
        session: String,
        /// The id of the placeholder.
        message: String,
        /// The result.
        finished: MessageEnding,
    },
    /// Replaces the metadata of a message; its status and content stay.
    Metadata {
        /// The session's id.
        session: String,
        /// The message's id.
        message: String,
        /// The new metadata.
        metadata: Value,
        /// The time of the change, in milliseconds since 1970.
        updated: i64,
    },
    /// Stores subagents, or later states of them, all or none. Parents must come before their children. The
    /// error is [`StoreError::Taken`] for an id that another session uses.
    Subagents {
        /// The session's id.
        session: String,
        /// The subagents.
        records: Vec<SubagentRecord>,
    },
    /// Appends to the journal of a turn in flight. For a finished message the error is
    /// [`StoreError::Finished`].
    Journal {
        /// The session's id.
        session: String,
        /// The id of the turn's placeholder.
        message: String,
        /// The entries in their order.
        entries: Vec<JournalEntry>,
    },
    /// Stores events of a turn.
    Events {
        /// The session's id.
        session: String,
        /// The id of the turn's placeholder.
        message: String,
        /// The events.
        block: EventBlock,
    },
    /// Stores receipts of tool calls, each in a separate row.
    Receipts {
        /// The session's id.
        session: String,
        /// The id of the turn's placeholder.
        message: String,
        /// The receipts.
        receipts: Vec<NewReceipt>,
    },
    /// Stores receipts of several tool calls. More than a few are packed into one row, which costs less to
    /// write; a repeated id is not detected.
    PackedReceipts {
        /// The session's id.
        session: String,
        /// The id of the turn's placeholder.
        message: String,
        /// The receipts.
        receipts: Vec<NewReceipt>,
    },
    /// Stores a person's answer to a question for permission.
    Answer(PermissionAnswer),
    /// Stores files of a message.
    Attachments {
        /// The session's id.
        session: String,
        /// The message's id.
        message: String,
        /// The files.
        attachments: Vec<NewAttachment>,
    },
    /// Adds a line to the audit log.
    Audit(AuditEntry),
    /// Adds usage of an agent on a day to the stored usage.
    Usage(UsagePart),
}

impl Store {
    /// Enqueues writes at the writer, without waiting. The order of calls is the order of commits; the writes
    /// of one call are committed together or not at all. Without writes, the future resolves when all earlier
    /// writes are committed.
    ///
    /// For another tenant's session or message the error is [`StoreError::NotFound`]. If too many writes wait
    /// already, it is [`StoreError::Overloaded`], and nothing is accepted.
    pub fn enqueue_writes(&self, writes: Vec<StoreWrite>) -> CommitHandle {
        let mut statements = Vec::with_capacity(writes.len());
        let made = writes
            .into_iter()
            .try_for_each(|write| write.into_statements(&self.tenant, &mut statements));
        self.commit(made.map(|()| statements))
    }

    /// The number of groups of writes that were enqueued by all clones of this store and are not committed
    /// yet.
    pub fn pending_writes(&self) -> usize {
        self.writer.pending_groups()
    }
}

impl StoreWrite {
    /// Converts a write to its SQL statements.
    fn into_statements(self, tenant: &str, to: &mut Vec<SqlStatement>) -> Result<(), StoreError> {
        match self {
            Self::CreateSession(new) => to.push(session::create_session(tenant, &new)?),
            Self::SessionKind { session, kind } => {
                to.push(session::become_kind(tenant, &session, kind)?);
            }
            Self::SessionHead { session, head } => {
                to.push(session::replace_head(tenant, &session, &head)?);
            }
            Self::AppendMessages { session, messages } => {
                message::append_messages(tenant, &session, &messages, to)?;
            }
            Self::FinishMessage { session, message, finished } => {
                message::finish_message(tenant, &session, &message, &finished, to)?;
            }
            Self::Metadata { session, message, metadata, updated } => {
                to.push(message::replace_metadata(tenant, &session, &message, &metadata, updated)?);
            }
            Self::Subagents { session, records } => {
                subagent::record_subagents(tenant, &session, &records, to)?;
            }
            Self::Journal { session, message, entries } => {
                for entry in entries {
                    to.push(journal::add_entry(tenant, &session, &message, entry)?);
                }
            }
            Self::Events { session, message, block } => {
                to.push(event::add_block(tenant, &session, &message, &block)?);
            }
            Self::Receipts { session, message, receipts } => {
                for receipt in receipts {
                    to.push(receipt::add_receipt(tenant, &session, &message, receipt)?);
                }
            }
            Self::PackedReceipts { session, message, receipts } => {
                receipt::pack_receipts(tenant, &session, &message, receipts, to)?;
            }
            Self::Answer(answer) => to.push(answer::add_answer(tenant, answer)?),
            Self::Attachments { session, message, attachments } => {
                for attachment in attachments {
                    to.push(attachment::add_attachment(tenant, &session, &message, attachment)?);
                }
            }
            Self::Audit(entry) => to.push(audit::add_entry(tenant, entry)?),
            Self::Usage(part) => to.push(usage::add_usage(tenant, part)?),
        }
        Ok(())
    }
}
