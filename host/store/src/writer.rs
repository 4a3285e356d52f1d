//! The writer: one task with one connection that does all writes of this process.
//!
//! A caller enqueues a group of statements and gets a [`CommitHandle`] to wait on. The writer commits all
//! waiting groups as one transaction: groups that arrive during a commit share the cost of the next one. If
//! any statement fails, the transaction is rolled back and each group gets a separate transaction, so an
//! invalid group harms no other.
//!
//! The task ends when the last handle is dropped or the store is closed, after committing earlier writes.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::error::StoreError;
use crate::statement::{SqlStatement, StatementFailure};

/// The most waiting groups: far more than running turns need, with a few groups each, and few enough to be
/// written in less than seconds.
const MAX_PENDING_GROUPS: usize = 16_384;

/// The most waiting bytes. A single larger group waits alone.
const MAX_PENDING_BYTES: usize = 256 << 20;

/// The most groups of one transaction: enough to make the commit cheap for each, few enough that the first
/// does not wait long for the last.
const MAX_BATCH_GROUPS: usize = 256;

/// The bytes after which a transaction gets no more groups.
const MAX_BATCH_BYTES: usize = 8 << 20;

/// The name of the operation in an error that belongs to no single statement.
const WHAT: &str = "write";

/// A future that resolves when the transaction with the writes is committed, or has failed.
///
/// The writes happen whether or not the caller waits for this.
#[derive(Debug)]
#[must_use = "writes may fail; drop this only where that is of no account"]
pub struct CommitHandle {
    done: oneshot::Receiver<Result<u64, StoreError>>,
    path: Arc<Path>,
}

/// The sending end of the writer's queue.
#[derive(Debug, Clone)]
pub(crate) struct WriterHandle {
    queue: mpsc::Sender<TaskMessage>,
    load: Arc<PendingLoad>,
    path: Arc<Path>,
}

#[derive(Debug)]
enum TaskMessage {
    Group(StatementGroup),
    /// Commits every earlier message of the queue and no later one, and then ends the task.
    Close(oneshot::Sender<()>),
}

/// The tenant to which a group's rows belong, by name and id, so a later tenant of the same name gets none of
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupOwner {
    pub(crate) name: Arc<str>,
    pub(crate) id: Arc<str>,
}

/// Statements that are committed together or not at all.
#[derive(Debug)]
struct StatementGroup {
    /// The tenant whose existence is checked again before the commit, if needed.
    owner: Option<GroupOwner>,
    statements: Vec<SqlStatement>,
    done: oneshot::Sender<Result<u64, StoreError>>,
    share: LoadShare,
}

/// The number of groups and bytes in the queue.
#[derive(Debug, Default)]
struct PendingLoad {
    groups: AtomicUsize,
    bytes: AtomicUsize,
}

/// The part of one group in these numbers, subtracted on drop.
#[derive(Debug)]
struct LoadShare {
    load: Arc<PendingLoad>,
    bytes: usize,
}

/// The state of the task itself.
struct WriterTask {
    queue: mpsc::Receiver<TaskMessage>,
    options: SqliteConnectOptions,
    path: Arc<Path>,
    /// The connection; `None` after it was lost, until the next batch opens another one.
    db: Option<SqliteConnection>,
}

impl WriterHandle {
    /// Connects, and starts the task on the current runtime.
    pub(crate) async fn start_task(
        options: SqliteConnectOptions,
        path: Arc<Path>,
    ) -> Result<Self, sqlx::Error> {
        let db = Some(options.connect().await?);
        // One place more than groups, for the message that closes the queue.
        let (sender, queue) = mpsc::channel(MAX_PENDING_GROUPS + 1);
        let task = WriterTask { queue, options, path: Arc::clone(&path), db };
        tokio::spawn(task.run_task());
        Ok(Self { queue: sender, load: Arc::default(), path })
    }

    /// Enqueues a group; the order of calls is the order of commits. If the group could not be made, its
    /// error is returned like that of a failed write.
    pub(crate) fn enqueue_group(
        &self,
        owner: Option<GroupOwner>,
        statements: Result<Vec<SqlStatement>, StoreError>,
    ) -> CommitHandle {
        let (done, receiver) = oneshot::channel();
        let committed = CommitHandle { done: receiver, path: Arc::clone(&self.path) };
        let path = || self.path.to_path_buf();
        let taken = statements.and_then(|statements| {
            let bytes = statements.iter().map(SqlStatement::argument_bytes).sum();
            let share = LoadShare::add_to_load(&self.load, bytes);
            Ok((statements, share.ok_or_else(|| StoreError::Overloaded { path: path() })?))
        });
        let (statements, share) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                // The receiver of this result exists, so sending cannot fail.
                let _ = done.send(Err(error));
                return committed;
            }
        };
        match self.queue.try_send(TaskMessage::Group(StatementGroup {
            owner,
            statements,
            done,
            share,
        })) {
            Ok(()) => {}
            Err(TrySendError::Full(message)) => {
                message.refuse_group(StoreError::Overloaded { path: path() });
            }
            Err(TrySendError::Closed(message)) => {
                message.refuse_group(StoreError::Closed { path: path() });
            }
        }
        committed
    }

    /// The number of enqueued groups that are not committed yet.
    pub(crate) fn pending_groups(&self) -> usize {
        self.load.groups.load(Ordering::Relaxed)
    }

    /// Ends the task after everything that was enqueued is committed.
    pub(crate) async fn close(&self) {
        let (closed, waiting) = oneshot::channel();
        if self.queue.send(TaskMessage::Close(closed)).await.is_ok() {
            // An error means: the store was closed by another call.
            let _ = waiting.await;
        }
    }
}

impl LoadShare {
    /// Adds a group to the load; `None` if too many groups or bytes wait already.
    fn add_to_load(load: &Arc<PendingLoad>, bytes: usize) -> Option<Self> {
        let groups = load.groups.fetch_add(1, Ordering::Relaxed);
        let before = load.bytes.fetch_add(bytes, Ordering::Relaxed);
        let share = Self { load: Arc::clone(load), bytes };
        let fits = before == 0 || before.saturating_add(bytes) <= MAX_PENDING_BYTES;
        (groups < MAX_PENDING_GROUPS && fits).then_some(share)
    }
}

impl Drop for LoadShare {
    fn drop(&mut self) {
        self.load.groups.fetch_sub(1, Ordering::Relaxed);
        self.load.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl CommitHandle {
    /// Waits for the commit; returns the number of rows changed by the last statement.
    pub(crate) async fn changed_rows(self) -> Result<u64, StoreError> {
        let path = self.path;
        self.done.await.unwrap_or_else(|_| Err(StoreError::Closed { path: path.to_path_buf() }))
    }
}

impl Future for CommitHandle {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.done).poll(context).map(|done| match done {
            Ok(result) => result.map(drop),
            Err(_) => Err(StoreError::Closed { path: self.path.to_path_buf() }),
        })
    }
}

impl GroupOwner {
    /// Returns whether the tenant still exists; a later tenant of the same name does not count.
    async fn is_there(
        &self,
        db: &mut SqliteConnection,
        path: &Path,
    ) -> Result<bool, StatementFailure> {
        let select = "SELECT COUNT(*) FROM tenants WHERE name = $1 AND id = $2";
        let query = sqlx::query_scalar(select).bind(&*self.name).bind(&*self.id);
        let found: Result<i64, _> = query.fetch_one(db).await;
        Ok(found.map_err(|error| StatementFailure::from_database(WHAT, path, &error))? > 0)
    }
}

impl TaskMessage {
    /// Reports an error to the caller who waits for this message's group, if the message has one.
    fn refuse_group(self, error: StoreError) {
        match self {
            Self::Group(group) => group.send_result(Err(error)),
            Self::Close(_) => {}
        }
    }
}

impl StatementGroup {
    /// The error of a group whose tenant was deleted.
    fn deleted_tenant_error(&self) -> StoreError {
        let name = self.owner.as_ref().map_or("", |owner| &owner.name);
        StoreError::NotFound { what: "tenant", id: name.to_owned() }
    }

    /// Sends the result to the caller who waits for the group.
    fn send_result(self, result: Result<u64, StoreError>) {
        // Subtracted before the caller learns the result, so a caller who has waited for all writes finds no
        // load.
        drop(self.share);
        // An error means: the caller does not wait for the result.
        let _ = self.done.send(result);
    }
}

impl WriterTask {
    /// Commits batches of groups until the queue is closed, and then closes the connection.
    async fn run_task(mut self) {
        let mut closing = None;
        while closing.is_none() {
            let Some(first) = self.queue.recv().await else { break };
            let (batch, close) = self.gather_groups(first);
            closing = close;
            if !batch.is_empty() {
                self.commit_batch(batch).await;
            }
        }
        // Callers whose groups were not received get their error now.
        drop(self.queue);
        if let Some(db) = self.db.take() {
            // Everything is committed; if closing fails, the next opening of the file completes it.
            let _ = db.close().await;
        }
        if let Some(closed) = closing {
            // An error means: the caller who closed the store does not wait any more.
            let _ = closed.send(());
        }
    }

    /// Takes as many waiting groups as fit into one transaction.
    fn gather_groups(
        &mut self,
        first: TaskMessage,
    ) -> (Vec<StatementGroup>, Option<oneshot::Sender<()>>) {
        let mut batch = Vec::new();
        let mut bytes = 0_usize;
        let mut next = Some(first);
        while let Some(message) = next.take() {
            match message {
                TaskMessage::Group(group) => {
                    bytes = bytes.saturating_add(group.share.bytes);
                    batch.push(group);
                }
                TaskMessage::Close(closed) => return (batch, Some(closed)),
            }
            if batch.len() < MAX_BATCH_GROUPS && bytes < MAX_BATCH_BYTES {
                next = self.queue.try_recv().ok();
            }
        }
        (batch, None)
    }

    /// Commits a batch as one transaction; if that fails because of a group, commits each group alone.
    async fn commit_batch(&mut self, batch: Vec<StatementGroup>) {
        if let Err(error) = self.ensure_connected().await {
            for group in batch {
                group.send_result(Err(StoreError::from_database(WHAT, &self.path, &error)));
            }
            return;
        }
        match self.try_transaction(&batch).await {
            Ok(counts) => {
                for (group, count) in batch.into_iter().zip(counts) {
                    let done = count.ok_or_else(|| group.deleted_tenant_error());
                    group.send_result(done);
                }
            }
            // Either there is only one group, or the error concerns all of them, because another process has
            // kept the file busy.
            Err(error) if batch.len() == 1 || matches!(error, StoreError::Busy { .. }) => {
                let mut error = Some(error);
                for group in batch {
                    let busy = || StoreError::Busy { path: self.path.to_path_buf() };
                    group.send_result(Err(error.take().unwrap_or_else(busy)));
                }
            }
            Err(_) => {
                for group in batch {
                    let alone = self.commit_alone(&group).await;
                    group.send_result(alone);
                }
            }
        }
    }

    /// Commits one group in a separate transaction.
    async fn commit_alone(&mut self, group: &StatementGroup) -> Result<u64, StoreError> {
        let connected = self.ensure_connected().await;
        connected.map_err(|error| StoreError::from_database(WHAT, &self.path, &error))?;
        let counts = self.try_transaction(std::slice::from_ref(group)).await?;
        counts.into_iter().next().flatten().ok_or_else(|| group.deleted_tenant_error())
    }

    /// Opens the connection if there is none.
    async fn ensure_connected(&mut self) -> Result<(), sqlx::Error> {
        if self.db.is_none() {
            self.db = Some(self.options.connect().await?);
        }
        Ok(())
    }

    /// Executes these groups as one transaction; returns for each the number of rows that its last statement
    /// changed, or `None` if its tenant was deleted.
    async fn try_transaction(
        &mut self,
        groups: &[StatementGroup],
    ) -> Result<Vec<Option<u64>>, StoreError> {
        let Some(db) = &mut self.db else {
            return Err(StoreError::Closed { path: self.path.to_path_buf() });
        };
        let done = commit_transaction(db, groups, &self.path).await;
        done.map_err(|failure| {
            if failure.lost {
                self.db = None;
            }
            failure.error
        })
    }
}

/// Commits all groups or, on any error, none; only groups of deleted tenants are skipped.
async fn commit_transaction(
    db: &mut SqliteConnection,
    groups: &[StatementGroup],
    path: &Path,
) -> Result<Vec<Option<u64>>, StatementFailure> {
    let failed = |error| StatementFailure::from_database(WHAT, path, &error);
    // Takes the write lock at the beginning, so the transaction cannot fail halfway for lack of it.
    let mut write = db.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    let mut counts = Vec::with_capacity(groups.len());
    // The tenant that was checked last, because most groups of a transaction have the same tenant.
    let mut there: Option<&GroupOwner> = None;
    for group in groups {
        match &group.owner {
            // A group without an owner may delete tenants, so the next owner is checked again.
            None => there = None,
            Some(owner) if there == Some(owner) => {}
            Some(owner) => match owner.is_there(&mut write, path).await {
                Ok(true) => there = Some(owner),
                Ok(false) => {
                    counts.push(None);
                    continue;
                }
                Err(failure) => {
                    let lost = failure.lost | write.rollback().await.is_err();
                    return Err(StatementFailure { lost, ..failure });
                }
            },
        }
        let mut changed = 0;
        for statement in &group.statements {
            match statement.run_statement(&mut write, path).await {
                Ok(rows) => changed = rows,
                Err(failure) => {
                    let lost = failure.lost | write.rollback().await.is_err();
                    return Err(StatementFailure { lost, ..failure });
                }
            }
        }
        counts.push(Some(changed));
    }
    // After a failed commit, for example on a full disk, the connection cannot begin another transaction.
    write.commit().await.map_err(|error| StatementFailure { lost: true, ..failed(error) })?;
    Ok(counts)
}
