//! Sessions of clients that call the tools of an agent directly. Such a session has one turn, complete from
//! the beginning: receipts and files are added as calls end, and the session is never resumed.

mod scribe;

use std::sync::Arc;
use std::time::Duration;

use belljar_agent::limits::truncate_str;
use belljar_agent::{
    Attachment, DirectCall, DirectResult, DirectSpec, DirectTool, DirectTools, Host, OutputPart,
    RunId, ServerAccounts, caps_of_run, resolve_direct,
};
use belljar_definition::builtin_tools;
use belljar_policy::{BudgetLevel, ShownText};
use belljar_work::StopSignal;
use tokio::sync::{OwnedSemaphorePermit, RwLock, RwLockReadGuard};

use self::scribe::ResultWriter;
use super::begin::WaitMode;
use super::types::{LOOK, ServiceError};
use super::{RETRY_AFTER, Service, ServiceInner};
use crate::record::lock::{SessionLock, locks_directory};
use crate::record::place::TurnPlace;
use crate::record::saved_session::SessionError;
use crate::review::{ReviewError, SessionLook};

/// The age of the settings after which a call checks the files again.
const SETTINGS_AGE: Duration = Duration::from_secs(1);

/// The most bytes of one text in an answer; a larger text is stored as a file of the session.
const MAX_TEXT: usize = 64 << 10;

/// The bytes of a larger text that the answer shows, before the note about the file.
const MAX_BEGINNING: usize = 4 << 10;

/// The most characters of the client's name in the title of its session.
const MAX_CLIENT: usize = 60;

/// The session of one client that calls tools itself, with a jar of the same lifetime.
pub struct DirectSession {
    inner: Arc<ServiceInner>,
    agent: String,
    id: String,
    jar: RwLock<Option<OpenJar>>,
    /// Token accounts of MCP servers. INV-364: kept in the session, so that a replacement jar gets no new
    /// budget of tokens for a server.
    served: ServerAccounts,
    scribe: ResultWriter,
    _lock: SessionLock,
    _place: OwnedSemaphorePermit,
}

/// A read lock on the open jar: as long as a call holds it, the jar is not replaced.
type InForce<'a> = RwLockReadGuard<'a, OpenJar>;

/// A jar, and the settings with which it was opened.
struct OpenJar {
    host: Arc<Host>,
    tools: DirectTools,
}

/// The result of a tool call, with the ids of the files stored from it.
#[derive(Debug)]
pub struct DirectDone {
    /// The result.
    pub result: DirectResult,
    /// The id of the stored file for each attachment, in the attachments' order.
    pub files: Vec<String>,
}

impl Service {
    /// Begins a session of a client that calls the tools of this agent directly. An agent without a file in
    /// the home has all tools of its grants. `client` = the client's own name. Nothing is stored before the
    /// first call.
    ///
    /// # Errors
    ///
    /// When the tenant has too many such sessions, or the session cannot be locked.
    pub async fn begin_direct(
        &self,
        agent: &str,
        client: &str,
        actor: &str,
    ) -> Result<DirectSession, ServiceError> {
        let inner = &self.0;
        inner.check_not_draining()?;
        let place = Arc::clone(&inner.direct).try_acquire_owned();
        let place = place.map_err(|_| ServiceError::TenantFull { retry_after: RETRY_AFTER })?;
        inner.allowance.check_room(&inner.store, 0).await?;
        let id = inner.new_id();
        let dir = locks_directory(&inner.store);
        let lock = match SessionLock::try_lock(&dir, &id) {
            Ok(Some(lock)) => lock,
            Ok(None) => return Err(ServiceError::Busy(id)),
            Err(source) => return Err(SessionError::Lock { session: id, dir, source }.into()),
        };
        let message = inner.new_id();
        let place_of_turn = TurnPlace {
            store: inner.store.clone(),
            clock: Arc::clone(&inner.clock),
            session: id.clone(),
            run: RunId::from(message.clone()),
            message,
            actor: actor.to_owned(),
        };
        let client = ShownText::clip_line(client, MAX_CLIENT).to_string();
        let workspace = inner.workspace.to_string_lossy().into_owned();
        let scribe =
            ResultWriter::start_task(self, place_of_turn, agent.to_owned(), client, workspace);
        Ok(DirectSession {
            inner: Arc::clone(inner),
            agent: agent.to_owned(),
            id,
            jar: RwLock::new(None),
            served: ServerAccounts::default(),
            scribe,
            _lock: lock,
            _place: place,
        })
    }
}

impl DirectSession {
    /// The id of the session with the receipts, files and changes.
    pub fn session_id(&self) -> &str {
        &self.id
    }

    /// The tools that may be called now.
    ///
    /// # Errors
    ///
    /// When the agent cannot be set up.
    pub async fn callable_tools(&self) -> Result<Vec<DirectTool>, ServiceError> {
        Ok(self.current_jar().await?.tools.tools().to_vec())
    }

    /// Returns whether the session's agent may start other agents.
    ///
    /// # Errors
    ///
    /// When the agent cannot be set up.
    pub async fn may_spawn(&self) -> Result<bool, ServiceError> {
        Ok(self.current_jar().await?.tools.permits_tool(builtin_tools::SPAWN_AGENT))
    }

    /// Makes one call, below the tenant's limits. INV-290: with the rights in force at the call's beginning,
    /// not at the session's.
    ///
    /// # Errors
    ///
    /// When nothing was called: the host ends, the tenant's day, places or storage are used up, or the
    /// agent cannot be set up.
    pub async fn call_tool(&self, call: DirectCall) -> Result<DirectDone, ServiceError> {
        let inner = &self.inner;
        inner.check_not_draining()?;
        let _places = inner.wait_for_places(1, WaitMode::InLine).await?;
        inner.allowance.check_step(&inner.store, &*inner.clock, async || Ok(0)).await?;
        if self.scribe.is_full() {
            inner.allowance.check_room(&inner.store, 0).await?;
        }
        // Held until the result is enqueued. A caller that waits for exclusive use of the jar then finds the
        // result stored.
        let jar = self.current_jar().await?;
        let id = call.id.clone();
        let mut result = jar.tools.call_tool(call).await;
        set_aside(&mut result, &id);
        let files: Vec<String> = result.attachments.iter().map(|_| inner.new_id()).collect();
        self.scribe.write_result(&result, &files).await;
        Ok(DirectDone { result, files })
    }

    /// Waits until the results of all earlier calls are stored.
    pub async fn wait_until_stored(&self) {
        self.scribe.wait_until_stored().await;
    }

    /// Looks at the changes of this session, as [`Service::look_at`] does. Waits for running calls, and
    /// closes the jar: the next call gets a new jar.
    ///
    /// # Errors
    ///
    /// The error of `work`.
    pub async fn look_at<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SessionLook) -> Result<T, ReviewError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let mut jar = self.jar.write().await;
        if let Some(jar) = jar.take() {
            jar.close(&self.id).await;
        }
        let layers = self.inner.layers_counted().await.for_session(&self.id);
        let work = move |stop: &StopSignal| work(&SessionLook::for_layers(layers, stop)?);
        let done = belljar_work::run_job(&LOOK, &self.inner.work_owner("looks"), work).await;
        drop(jar);
        Ok(done??)
    }

    /// Ends running calls and closes the jar. All effects are stored when `close` returns.
    pub async fn close_jar(&self) {
        let jar = self.jar.write().await.take();
        if let Some(jar) = jar {
            jar.close(&self.id).await;
        }
        self.scribe.wait_until_stored().await;
    }

    /// The jar for the next call: a new one if the operator has changed the settings, or if half of a budget
    /// of the jar is used.
    async fn current_jar(&self) -> Result<InForce<'_>, ServiceError> {
        Service(Arc::clone(&self.inner)).look_within(SETTINGS_AGE).await;
        let host = self.inner.current_host();
        let jar = self.jar.read().await;
        let jar = match jar.as_ref().is_some_and(|jar| jar.is_fit(&host)) {
            true => jar,
            false => {
                drop(jar);
                self.renew_jar(&host).await?
            }
        };
        RwLockReadGuard::try_map(jar, |jar| jar.as_ref()).map_err(|_| ServiceError::Draining)
    }

    /// Waits for the running calls, closes the jar, and opens a new one.
    async fn renew_jar(
        &self,
        host: &Arc<Host>,
    ) -> Result<RwLockReadGuard<'_, Option<OpenJar>>, ServiceError> {
        let mut jar = self.jar.write().await;
        // Another call may have opened a jar meanwhile.
        if !jar.as_ref().is_some_and(|jar| jar.is_fit(host)) {
            if let Some(before) = jar.take() {
                before.close(&self.id).await;
            }
            *jar = Some(self.open_jar(host).await?);
        }
        Ok(jar.downgrade())
    }

    /// Opens a jar with the rights in force now, below the tenant's budget of the day.
    async fn open_jar(&self, host: &Arc<Host>) -> Result<OpenJar, ServiceError> {
        let inner = &self.inner;
        let agent = resolve_direct(host, &self.agent, &inner.workspace);
        let agent = agent.map_err(|error| ServiceError::Agent(error.to_string()))?;
        agent.check_runnable(false)?;
        let day = inner.allowance.day_budget(&inner.store, &*inner.clock).await?;
        let budget = day.new_child(BudgetLevel::Session, caps_of_run(agent.rights.limits()));
        let spec = DirectSpec {
            agent: Arc::new(agent),
            workspace: inner.workspace.clone(),
            budget: Some(budget),
            layers: Some(inner.layers_counted().await.for_session(&self.id)),
            served: self.served.clone(),
        };
        let tools = DirectTools::open(host, spec).await;
        let tools = tools.map_err(|error| ServiceError::Agent(error.to_string()))?;
        for warning in tools.take_warnings() {
            tracing::warn!(target: "belljar::session", session = %self.id, "{warning}");
        }
        Ok(OpenJar { host: Arc::clone(host), tools })
    }
}

/// Moves texts that are too large for an answer into files of the session, each replaced by its beginning and
/// a note.
fn set_aside(result: &mut DirectResult, call: &str) {
    let Ok(parts) = &mut result.outcome else { return };
    for part in parts {
        let (text, media_type, ending) = match part {
            OutputPart::Text(text) => (text, "text/plain", "txt"),
            OutputPart::Json(text) => (text, "application/json", "json"),
            OutputPart::Attachment { .. } => continue,
        };
        if text.len() <= MAX_TEXT {
            continue;
        }
        let (whole, number) = (std::mem::take(text), result.attachments.len() + 1);
        let name = format!("output-{number}.{ending}");
        let begins = truncate_str(&whole, MAX_BEGINNING);
        let told = format!(
            "{begins}\n[this is the beginning of {} bytes; all of it is the resource `{name}`]",
            whole.len()
        );
        result.attachments.push(Attachment {
            call_id: call.to_owned(),
            size: u64::try_from(whole.len()).unwrap_or(u64::MAX),
            data: whole.into(),
            media_type: media_type.to_owned(),
            saved_to: None,
            name,
        });
        *part = OutputPart::Text(told);
    }
}

impl Drop for DirectSession {
    fn drop(&mut self) {
        let Some(jar) = self.jar.get_mut().take() else { return };
        let id = self.id.clone();
        self.inner.runtime.spawn(async move { jar.close(&id).await });
    }
}

impl std::fmt::Debug for DirectSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectSession").field("id", &self.id).finish_non_exhaustive()
    }
}

impl OpenJar {
    fn is_fit(&self, host: &Arc<Host>) -> bool {
        Arc::ptr_eq(&self.host, host) && !self.tools.is_worn()
    }

    /// Closes the jar, and logs each operation that still runs afterwards.
    async fn close(self, session: &str) {
        for operation in self.tools.close().await {
            let operation = ShownText::clip_line(&operation, 200);
            tracing::warn!(target: "belljar::session", session, "still running: {operation}");
        }
    }
}
