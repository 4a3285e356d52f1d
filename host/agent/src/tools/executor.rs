//! The executor of tool calls, whoever makes them: the model of an agent, a client, or code of a tool.
//!
//! ```text
//! AgentLoop ───────┐
//! DirectTools ─────┼─> CallExecutor ──> hooks, the person, jar or server or host, receipt
//! a nested call ───┘
//! ```

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use belljar_policy::{Rights, ToolName};
use belljar_sandbox::PeerTool;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent_loop::agent::{AgentEffects, Timer};
use crate::agent_loop::current_jar::CurrentJar;
use crate::agent_loop::job::AgentJob;
use crate::agent_loop::ledger::Ledger;
use crate::finding::plan::LibraryPlan;
use crate::rights::delegates::DelegateSet;
use crate::subagent::background::BackgroundChildren;
use crate::tools::builtin::todos::TodoList;
use crate::tools::hooks::state::HookState;
use crate::tools::remote::RemoteTools;

/// Executes the tool calls of one job, whoever makes them.
pub(crate) struct CallExecutor<'a> {
    pub(crate) job: &'a AgentJob,
    pub(crate) ledger: &'a Arc<Ledger>,
    pub(crate) means: &'a CallMeans,
    /// Cancels all running work of the job.
    pub(crate) stop: &'a CancellationToken,
    /// Whether effects are performed, or come from the journal of a dead process.
    pub(crate) effects: &'a dyn AgentEffects,
}

/// What the calls of a job share, from the first to the last.
pub(crate) struct CallMeans {
    pub(crate) jar: CurrentJar,
    /// The tools of MCP servers.
    pub(crate) remote: RemoteTools,
    /// The tools that code of another tool may call; empty if the agent may not.
    pub(crate) peers: Arc<[PeerTool]>,
    /// Tools whose calls may be repeated after a crash, because they only read; all are belljar's own.
    pub(crate) repeatable: BTreeSet<ToolName>,
    /// Tools whose interrupted calls run again after a crash, with nested calls answered from the journal.
    pub(crate) replayable: BTreeSet<ToolName>,
    pub(crate) delegates: DelegateSet,
    /// One permit for each child that may run at the same time.
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) background: Arc<BackgroundChildren>,
    /// The results of hooks.
    pub(crate) hooked: HookState,
    /// The rights that skills in use have left; `None` = all of the job's. They bound subagents too.
    pub(crate) narrowed: Mutex<Option<Rights>>,
    /// What the context lists of the library, and what is found by a search.
    pub(crate) library: LibraryPlan,
    /// The todo list, once a call has needed it.
    pub(crate) todos: Mutex<Option<TodoList>>,
}

impl Deref for CallExecutor<'_> {
    type Target = CallMeans;

    fn deref(&self) -> &CallMeans {
        self.means
    }
}

/// Background children and their list refer to each other, so their tasks must be ended here.
impl Drop for CallMeans {
    fn drop(&mut self) {
        self.background.abort_tasks();
    }
}

impl CallExecutor<'_> {
    /// The rights that bound a subagent which starts now.
    pub(crate) fn rights_for_children(&self) -> Rights {
        let narrowed = self.narrowed.lock().unwrap_or_else(PoisonError::into_inner);
        narrowed.clone().unwrap_or_else(|| self.job.rights.clone())
    }

    /// Returns when the agent's time is up. Time in which a person is asked does not count.
    pub(crate) async fn time_up(&self, timer: &mut Timer) {
        loop {
            timer.as_mut().await;
            let pause = &self.job.pause;
            pause.wait_until_closed().await;
            let deadline = self.job.deadline.checked_add(pause.total_wait());
            match deadline {
                Some(deadline) if deadline > Instant::now() => timer.as_mut().reset(deadline),
                Some(_) | None => return,
            }
        }
    }
}
