//! One tenant's sessions, as a service: every entrance runs turns through a service.
//!
//! ```text
//! begin ──> place in the tenant ──> place in the host ──> saved ──> a task of its own
//!                                                                  │ events ──> watchers
//!                                                                  └ questions <── answers
//! ```
//!
//! A turn is independent of its client: if the client disconnects, the answer is still stored in the session.
//! An interrupted turn is resumed by [`Service::recover_turns`].

mod admission;
mod agents;
mod begin;
pub(crate) mod direct;
mod forget;
mod heads;
mod limits;
mod preview;
mod questions;
mod recover;
mod renewing;
mod reviewing;
mod running;
mod stored;
mod summary;
mod tally;
mod teams;
mod types;
mod versions;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use belljar_definition::builtin_tools;
use belljar_policy::ShownText;
use belljar_store::{AuditEntry, PermissionAnswer, Store, StoreWrite};
use belljar_work::{StopSignal, WorkKind};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use self::admission::Admission;
pub use self::questions::{OpenQuestion, PersonAnswer, QuestionKind};
pub use self::running::{CancelOutcome, RunningTurn};
pub use self::tally::TurnTally;
pub use self::types::{HeadEdit, ServiceError, ServiceLimits, StoredTurnOf, TurnKind, TurnRequest};
pub use self::versions::{LookDepth, RenewalOutcome, SettingsVersion, VersionMaker};
use crate::record::hub::{EventWatch, WatchHub};
use crate::record::layers::{TenantLayers, remove_stale_layers};
use crate::service::limits::TenantQuota;
use crate::service::questions::{OpenQuestions, RemovedQuestion};
use crate::service::running::RunningTurns;
use crate::service::tally::TallyCounter;
use crate::service::versions::VersionSource;
use belljar_agent::Host;
use belljar_agent::{Clock, RunId};

/// The wait before the next attempt that a client is told when the queue is full: one second, in which some
/// turns have usually ended.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The most open client sessions of one tenant at the same time; limited, because each has a jar with stores.
const MAX_DIRECT: usize = 256;

/// The work of counting a tenant's overlays.
const COUNT_LAYERS: WorkKind =
    WorkKind { name: "counting the overlays of a tenant", time: Duration::from_secs(60) };

/// The time between two attempts to cancel turns that did not end when the service stops.
const ABORT_AGAIN: Duration = Duration::from_millis(100);

/// The number of attempts to cancel such turns: 50, which is 5 seconds.
const MAX_ABORTS: usize = 50;

/// One tenant's sessions, shared by clones.
#[derive(Clone)]
pub struct Service(Arc<ServiceInner>);

/// The state of one tenant's service, which all clones of [`Service`] share.
struct ServiceInner {
    versions: VersionSource,
    clock: Arc<dyn Clock>,
    store: Store,
    workspace: PathBuf,
    admission: Arc<Admission>,
    allowance: TenantQuota,
    hub: Arc<WatchHub>,
    questions: Arc<OpenQuestions>,
    running: RunningTurns,
    tally: Arc<TallyCounter>,
    /// Places for the sessions of clients that call tools without an agent's model, for example over MCP.
    direct: Arc<Semaphore>,
    /// The tenant's overlays; empty until a turn has begun.
    layers: OnceLock<TenantLayers>,
    /// The time at which agent files were last checked for changes.
    library_seen: Mutex<Option<Instant>>,
    /// Cancelled when no more turns are accepted.
    draining: CancellationToken,
    /// The runtime in which turns run and write to the store.
    runtime: Handle,
}

impl Service {
    /// The sessions of one tenant: `store` has the rows, `host` the first version of agents, tools and
    /// models, `workspace` is the root. `admission` is the whole host's. Call `new` in the runtime of the
    /// turns; a caller who requests a turn may have another runtime.
    pub fn new(
        host: Host,
        store: Store,
        workspace: PathBuf,
        admission: Arc<Admission>,
        limits: ServiceLimits,
    ) -> Self {
        Self(Arc::new(ServiceInner {
            allowance: TenantQuota::new(limits),
            clock: Arc::clone(&host.clock),
            versions: VersionSource::new(host),
            store,
            workspace,
            admission,
            hub: Arc::default(),
            questions: Arc::default(),
            running: RunningTurns::default(),
            tally: Arc::default(),
            direct: Arc::new(Semaphore::new(MAX_DIRECT)),
            layers: OnceLock::new(),
            library_seen: Mutex::default(),
            draining: CancellationToken::new(),
            runtime: Handle::current(),
        }))
    }

    /// The events of a session after the event `after`; `None` = from now on. A missing session is an error.
    pub async fn watch_session(
        &self,
        session: &str,
        after: Option<i64>,
    ) -> Result<EventWatch, ServiceError> {
        self.0.store.read_session(session).await?;
        Ok(self.0.hub.watch_session(&self.0.store, session, after).await?)
    }

    /// Cancels the turn of a session, with all its subagents. INV-413: the audit log has a line for the first
    /// canceller.
    pub fn cancel_turn(&self, session: &str, actor: &str) -> CancelOutcome {
        let cancelled = self.0.running.cancel_turn(session, actor);
        if cancelled == CancelOutcome::Cancelled {
            self.record_audit(actor, "turn_cancelled", session.to_owned(), json!({}));
        }
        cancelled
    }

    /// Cancels one subagent of a session by path, for example `main/scout#0`. `actor` = the canceller, for
    /// the audit log.
    pub fn cancel_subagent(&self, session: &str, path: &str, actor: &str) -> CancelOutcome {
        let cancelled = self.0.running.cancel_subagent(session, path, actor);
        if cancelled == CancelOutcome::Cancelled {
            let path = ShownText::clip_line(path, 200).to_string();
            self.record_audit(
                actor,
                "subagent_cancelled",
                session.to_owned(),
                json!({"path": path}),
            );
        }
        cancelled
    }

    /// The questions waiting for a person, each with its session.
    pub fn open_questions(&self, session: Option<&str>) -> Vec<(String, OpenQuestion)> {
        self.0.questions.list_open(session)
    }

    /// Waits until a turn has an open question; for ever if the turn never asks.
    pub async fn wait_for_question(&self, turn: &RunningTurn) {
        self.0.questions.wait_for_question(&turn.session, &turn.message).await;
    }

    /// Answers a question of a running turn. The store receives the audit line about the answer before the
    /// turn receives the answer.
    pub fn answer_question(
        &self,
        session: &str,
        question: u64,
        answer: PersonAnswer,
        actor: &str,
    ) -> Result<(), ServiceError> {
        let taken = self.0.questions.remove_answered(session, question, &answer);
        let taken = taken.ok_or(ServiceError::NoQuestion(question))?;
        let RemovedQuestion { question: asked, noted, waiting } = taken;
        let (word, text) = match &answer {
            PersonAnswer::Permission(word) => (word.as_str(), None),
            PersonAnswer::Text(text) => ("text", text.clone()),
            PersonAnswer::Declined => ("declined", None),
            PersonAnswer::Cancelled => ("cancelled", None),
        };
        let (tool, arguments) = match asked.kind {
            QuestionKind::Permission { tool, arguments, .. } => (tool, json!(arguments)),
            QuestionKind::Clarify { question, options } => {
                let asked = match noted {
                    // INV-366: a private answer is recorded with its time and its person, without its text.
                    Some(noted) => json!({"question": noted, "options": options, "private": true}),
                    None => json!({"question": question, "options": options, "answer": text}),
                };
                (builtin_tools::CLARIFY.to_owned(), asked)
            }
        };
        let now = self.0.now_millis();
        let row = PermissionAnswer {
            id: self.0.new_id(),
            session: session.to_owned(),
            message: asked.message,
            question: i64::try_from(question).unwrap_or(i64::MAX),
            agent: asked.agent,
            tool: tool.clone(),
            arguments,
            answer: word.to_owned(),
            actor: actor.to_owned(),
            asked: asked.asked,
            answered: now,
        };
        let detail = json!({"question": question, "tool": tool, "answer": word});
        let audit = self.0.audit_entry(actor, "question_answered", session.to_owned(), detail);
        let kept =
            self.0.store.enqueue_writes(vec![StoreWrite::Answer(row), StoreWrite::Audit(audit)]);
        self.0.log_failure(kept);
        // The send fails if the turn has just ended, which is harmless.
        let _ = waiting.send(answer);
        Ok(())
    }

    /// Checks that the tenant may store `more` further bytes.
    ///
    /// # Errors
    ///
    /// [`ServiceError::StorageFull`] if the tenant's storage would be exceeded.
    pub async fn check_room(&self, more: usize) -> Result<(), ServiceError> {
        self.0.allowance.check_room(&self.0.store, more).await
    }

    /// The running and waiting turns.
    pub fn running_turns(&self) -> Vec<RunningTurn> {
        self.0.running.list_turns()
    }

    /// The counts of turns since this process opened the service.
    pub fn turn_tally(&self) -> TurnTally {
        self.0.tally.current_tally()
    }

    /// Runs a task in the runtime of the turns. The task continues to its end even if the returned handle is
    /// dropped.
    pub fn spawn_task<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.0.runtime.spawn(task)
    }

    /// Refuses new and waiting turns from now on. Running turns go on to their end.
    pub fn take_no_turns(&self) {
        self.0.draining.cancel();
    }

    /// Refuses new turns and waits for the running ones, up to `limit`. The remaining turns are stopped at
    /// once: each has a journal, and [`Service::recover_turns`] resumes the turn.
    pub async fn drain_turns(&self, limit: Duration) {
        self.take_no_turns();
        let mut wait = limit;
        // Repeated, because a turn may just have been about to start. INV-412: a turn that still runs has
        // blocked its own thread, and does not keep the process alive.
        for _ in 0..MAX_ABORTS {
            if tokio::time::timeout(wait, self.0.running.all_ended()).await.is_ok() {
                break;
            }
            self.0.running.abort_all();
            wait = ABORT_AGAIN;
        }
        self.0.hub.end_all();
    }

    /// Removes the overlays of sessions that are not in the store any more.
    async fn remove_stale_layers(&self) {
        match remove_stale_layers(&self.0.store).await {
            Ok(held) => self.0.tenant_layers().subtract_removed(held),
            Err(error) => tracing::warn!(
                target: "belljar::session",
                "overlays of deleted sessions are left: {error}"
            ),
        }
    }

    /// The store with the tenant's rows.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The tenant's agents, grants, tools and models that are in force.
    pub fn current_host(&self) -> Arc<Host> {
        self.0.current_host()
    }

    /// The root directory of the tenant's workspace.
    pub fn workspace(&self) -> &Path {
        &self.0.workspace
    }

    /// Enqueues a line for the audit log.
    pub fn record_audit(
        &self,
        actor: &str,
        action: &str,
        object: String,
        detail: serde_json::Value,
    ) {
        self.0.record_audit(actor, action, object, detail);
    }
}

impl ServiceInner {
    /// Returns an error if the service is shutting down, so that no new work begins.
    fn check_not_draining(&self) -> Result<(), ServiceError> {
        if self.draining.is_cancelled() { Err(ServiceError::Draining) } else { Ok(()) }
    }

    /// The overlays of the tenant. The first call reads directories.
    fn tenant_layers(&self) -> &TenantLayers {
        self.layers.get_or_init(|| {
            TenantLayers::find_layers(&self.store, &self.current_host().settings.overlays)
        })
    }

    /// As [`ServiceInner::tenant_layers`]. The first call counts on a separate thread, because a tenant may
    /// have thousands of sessions.
    async fn layers_counted(&self) -> &TenantLayers {
        if self.layers.get().is_none() {
            let (store, host) = (self.store.clone(), self.current_host());
            let count =
                move |_: &StopSignal| TenantLayers::find_layers(&store, &host.settings.overlays);
            let owner = self.work_owner("overlays");
            if let Ok(found) = belljar_work::run_job(&COUNT_LAYERS, &owner, count).await {
                return self.layers.get_or_init(|| found);
            }
        }
        self.tenant_layers()
    }

    /// Enqueues a line for the audit log.
    fn record_audit(&self, actor: &str, action: &str, object: String, detail: serde_json::Value) {
        let entry = self.audit_entry(actor, action, object, detail);
        self.log_failure(self.store.enqueue_writes(vec![StoreWrite::Audit(entry)]));
    }

    /// Makes a line of the audit log, with a new id and the present time.
    fn audit_entry(
        &self,
        actor: &str,
        action: &str,
        object: String,
        detail: serde_json::Value,
    ) -> AuditEntry {
        let (id, at) = (self.new_id(), self.now_millis());
        AuditEntry { id, at, actor: actor.to_owned(), action: action.to_owned(), object, detail }
    }

    fn new_id(&self) -> String {
        RunId::new(&*self.clock).into()
    }

    fn now_millis(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    /// Logs the failure of a write whose caller does not wait for the result.
    fn log_failure(&self, kept: belljar_store::CommitHandle) {
        self.runtime.spawn(async move {
            if let Err(error) = kept.await {
                tracing::error!(target: "belljar::session", "a record could not be written: {error}");
            }
        });
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("tenant", &self.0.store.tenant()).finish_non_exhaustive()
    }
}
