//! The writes for the writer, and the statements of each.

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

/// One write. The writes of one [`Store::enqueue_writes`] are stored together or not at all.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreWrite {
    /// A new session. An id in use is [`StoreError::Taken`]; a missing tenant is [`StoreError::NotFound`].
    CreateSession(StoredSession),
    /// The new kind of a session.
    SessionKind {
        /// The session.
        session: String,
        /// The kind.
        kind: SessionKind,
    },
    /// Another title, agent and model of a session.
    SessionHead {
        /// The session.
        session: String,
        /// The new ones.
        head: SessionHead,
    },
    /// New messages at the end of a session, all or none. Two processes that append at the same time
    /// get different places.
    AppendMessages {
        /// The session.
        session: String,
        /// The messages in their order.
        messages: Vec<NewMessage>,
    },
    /// Puts the result in the place of a placeholder, and deletes the journal of that message. A
    /// message is finished once: a second time is [`StoreError::Finished`].
    FinishMessage {
        /// The session.
        session: String,
        /// The placeholder.
        message: String,
        /// The new content.
        finished: MessageEnding,
    },
    /// New metadata of a message, in place of the old; status and content stay.
    Metadata {
        /// The session.
        session: String,
        /// The message.
        message: String,
        /// The metadata.
        metadata: Value,
        /// The time of the change, in milliseconds since 1970.
        updated: i64,
    },
    /// New subagents, or later states of subagents, all or none. Parents must precede their children. An id
    /// that another session uses is [`StoreError::Taken`].
    Subagents {
        /// The session.
        session: String,
        /// The subagents.
        records: Vec<SubagentRecord>,
    },
    /// Steps of a turn in flight. For a finished message, [`StoreError::Finished`].
    Journal {
        /// The session.
        session: String,
        /// The placeholder of the turn.
        message: String,
        /// The entries in order, appended to the stored ones.
        entries: Vec<JournalEntry>,
    },
    /// Events that watchers have seen.
    Events {
        /// The session.
        session: String,
        /// The placeholder of the turn.
        message: String,
        /// The events.
        block: EventBlock,
    },
    /// Receipts of tool calls.
    Receipts {
        /// The session.
        session: String,
        /// The placeholder of the turn.
        message: String,
        /// The receipts.
        receipts: Vec<NewReceipt>,
    },
    /// Receipts of several tool calls. More than a few are packed into one row, which is cheaper to write; a
    /// repeated id is not detected.
    PackedReceipts {
        /// The session.
        session: String,
        /// The placeholder of the turn.
        message: String,
        /// The receipts.
        receipts: Vec<NewReceipt>,
    },
    /// A person's answer.
    Answer(PermissionAnswer),
    /// Files that a message carries.
    Attachments {
        /// The session.
        session: String,
        /// The message.
        message: String,
        /// The files.
        attachments: Vec<NewAttachment>,
    },
    /// One line of the audit log.
    Audit(AuditEntry),
    /// Usage of an agent on a day, to be added to the stored usage.
    Usage(UsagePart),
}

impl Store {
    /// Hands writes to the writer, without waiting. The order of calls is the order of commits;
    /// the writes of one call are committed together or not at all. Without writes, the future resolves once
    /// all earlier writes are committed.
    ///
    /// Another tenant's session or message is [`StoreError::NotFound`]; if too much waits already,
    /// [`StoreError::Overloaded`], and nothing is accepted.
    pub fn enqueue_writes(&self, writes: Vec<StoreWrite>) -> CommitHandle {
        let mut statements = Vec::with_capacity(writes.len());
        let made = writes
            .into_iter()
            .try_for_each(|write| write.into_statements(&self.tenant, &mut statements));
        self.commit(made.map(|()| statements))
    }

    /// The number of enqueued groups of writes, by all clones of this store, that are not committed yet.
    pub fn pending_writes(&self) -> usize {
        self.writer.pending_groups()
    }
}

impl StoreWrite {
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
