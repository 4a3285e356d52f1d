//! The jar and the layers in which an agent's calls run now: the job's, or the entered worktree's. INV-215:
//! the jar is closed before the layers change, so no store writes to the earlier layers.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belljar_overlay::{LayersError, SessionLayers};
use belljar_policy::ToolName;
use belljar_sandbox::{Jar, JarSpec, JarTool};
use belljar_work::WorkKind;
use futures::FutureExt as _;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::agent_loop::job::AgentJob;
use crate::agent_loop::ledger::Ledger;
use crate::limits::JAR_CLOSE_LIMIT;
use crate::outcome::RunError;
use crate::tools::approval::asker::CallReach;

const OPEN_OVERLAYS: WorkKind =
    WorkKind { name: "opening the overlays of a session", time: Duration::from_secs(60) };

/// The present jar of an agent.
pub(crate) struct CurrentJar {
    /// The components of the agent's tools; empty = the agent needs no jar.
    tools: Vec<JarTool>,
    stop: CancellationToken,
    open: Mutex<Option<Arc<Jar>>>,
    worktree: Mutex<Option<EnteredWorktree>>,
    /// Tools that lost their state when a jar was closed. Each tool's next result has a note about the loss.
    anew: Mutex<BTreeSet<ToolName>>,
}

/// A copy of an agent's overlays that the agent has entered.
#[derive(Debug, Clone)]
pub(crate) struct EnteredWorktree {
    pub(crate) layers: SessionLayers,
    /// The name that files in conflict get, for example `FILE.from-NAME`.
    pub(crate) name: String,
    /// The number of background subagents that the agent had started before it entered.
    pub(crate) before: usize,
    /// True if this process entered the worktree. False if a dead process entered, and perhaps left, the
    /// worktree.
    pub(crate) is_new: bool,
}

impl CurrentJar {
    /// A jar of these components, opened when first needed.
    pub(crate) fn new(tools: Vec<JarTool>, stop: CancellationToken) -> Self {
        Self {
            tools,
            stop,
            open: Mutex::default(),
            worktree: Mutex::default(),
            anew: Mutex::default(),
        }
    }

    /// Opens the overlays of the agent's mounts and then the jar. Overlays are opened on another thread,
    /// because that reads an index with a record of each change ever made.
    pub(crate) async fn open_jar(&self, job: &AgentJob) -> Result<(), RunError> {
        // A copy of layers was made, or not, before its subagent began.
        let layers =
            self.current_layers(job).filter(|layers| !self.tools.is_empty() && !layers.is_copy());
        if let Some(layers) = layers.filter(|layers| !layers.are_open(&job.rights)) {
            let rights = job.rights.clone();
            let owner = job.shared.host.owner_of("overlays");
            let open = belljar_work::run_job(&OPEN_OVERLAYS, &owner, move |stop| {
                layers.open_overlays_until(&rights, stop).map(drop)
            });
            open.await
                .map_err(|error| RunError::from(&error))?
                .map_err(|error| overlay_run_error(&error))?;
        }
        self.get_or_open(job).map(drop)
    }

    /// The jar, opened if it is not open; `None` = the agent needs no jar.
    pub(crate) fn get_or_open(&self, job: &AgentJob) -> Result<Option<Arc<Jar>>, RunError> {
        if self.tools.is_empty() {
            return Ok(None);
        }
        let mut open = self.lock_jar();
        if let Some(jar) = &*open {
            return Ok(Some(Arc::clone(jar)));
        }
        let jar = Arc::new(self.build_jar(job)?);
        for tool in std::mem::take(&mut *self.lock_anew_tools()) {
            jar.begins_anew(tool.as_str());
        }
        *open = Some(Arc::clone(&jar));
        Ok(Some(jar))
    }

    /// Notes that a tool has lost the state of earlier calls. The tool's next result has a note about the
    /// loss.
    pub(crate) fn begins_anew(&self, tool: &str) {
        match &*self.lock_jar() {
            Some(jar) => jar.begins_anew(tool),
            None => self.lock_anew_tools().extend(ToolName::new(tool)),
        }
    }

    /// Returns whether a tool may call other tools of the agent.
    pub(crate) fn may_call_others(&self, job: &AgentJob, tool: &ToolName) -> bool {
        let jar = self.get_or_open(job).ok().flatten();
        jar.is_some_and(|jar| jar.may_call_others(tool.as_str()))
    }

    /// The mounts, hosts and secrets that a call can touch, by the rights of the tool's store. A built-in
    /// tool has no separate rights.
    pub(crate) fn call_reach(&self, job: &AgentJob, tool: &ToolName) -> CallReach {
        let component = self.tools.iter().find(|component| component.tools.contains_key(tool));
        let of = |component: &JarTool| CallReach::from_rights(&job.rights.for_tool(&component.ask));
        component.map(of).unwrap_or_default()
    }

    /// The worktree that the agent is in.
    pub(crate) fn worktree(&self) -> Option<EnteredWorktree> {
        self.worktree.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The layers that the agent works in.
    pub(crate) fn current_layers(&self, job: &AgentJob) -> Option<SessionLayers> {
        self.worktree().map(|worktree| worktree.layers).or_else(|| job.layers.clone())
    }

    /// Moves the agent into a worktree or out of it. On return, no earlier call can have an effect any more.
    pub(crate) async fn switch_worktree(
        &self,
        job: &AgentJob,
        ledger: &Ledger,
        to: Option<EnteredWorktree>,
    ) {
        self.close_jar(job, ledger).await;
        *self.worktree.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }

    /// Closes the jar and waits for its calls. Calls that still run after the jar's limit are recorded as
    /// unfinished.
    pub(crate) async fn close_jar(&self, job: &AgentJob, ledger: &Ledger) {
        let Some(jar) = self.lock_jar().take() else { return };
        self.lock_anew_tools().extend(jar.with_state());
        let closing = timeout(JAR_CLOSE_LIMIT, AssertUnwindSafe(jar.close()).catch_unwind()).await;
        let left = match closing {
            Ok(Ok(left)) => left,
            Ok(Err(_)) | Err(_) => vec!["the jar".to_owned()],
        };
        if !left.is_empty() {
            // Unfinished calls stop when they next check the cancelled budget.
            job.budget.cancel();
            let named = left.into_iter().map(|what| format!("{what} of `{}`", job.path));
            ledger.lock_entries().unfinished.extend(named);
        }
    }

    /// Opens a jar with the agent's components, rights, budget and overlays.
    fn build_jar(&self, job: &AgentJob) -> Result<Jar, RunError> {
        let overlays = match self.current_layers(job) {
            Some(layers) => {
                layers.open_overlays(&job.rights).map_err(|error| overlay_run_error(&error))?
            }
            None => BTreeMap::new(),
        };
        let spec = JarSpec {
            rights: job.rights.clone(),
            budget: job.budget.clone(),
            tools: self.tools.clone(),
            secrets: job.shared.host.secrets.clone(),
            overlays,
            cancel: self.stop.clone(),
        };
        job.shared.host.sandbox.open_jar(spec).map_err(|error| RunError::Setup {
            message: error.to_string(),
            hint: Some("check the workspace and the mounts of this agent's grants".to_owned()),
        })
    }

    fn lock_anew_tools(&self) -> MutexGuard<'_, BTreeSet<ToolName>> {
        self.anew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_jar(&self) -> MutexGuard<'_, Option<Arc<Jar>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts an error of the layers to the error of the run.
fn overlay_run_error(error: &LayersError) -> RunError {
    RunError::Setup {
        message: error.to_string(),
        hint: Some("`overlay = \"never\"` under `[agents]` does without overlays".to_owned()),
    }
}
