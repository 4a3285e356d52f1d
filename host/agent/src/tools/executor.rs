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

/// Executes the calls of a job's tools.
pub(crate) struct CallExecutor<'a> {
    pub(crate) job: &'a AgentJob,
    pub(crate) ledger: &'a Arc<Ledger>,
    pub(crate) means: &'a CallMeans,
    /// Ends all running work.
    pub(crate) stop: &'a CancellationToken,
    /// The effects: new, or replayed from before the process died.
    pub(crate) effects: &'a dyn AgentEffects,
}

/// The means of a job's calls, from the first to the last.
pub(crate) struct CallMeans {
    pub(crate) jar: CurrentJar,
    /// Tools of MCP servers.
    pub(crate) remote: RemoteTools,
    /// The tools, as code of one tool may call the others; empty if not allowed.
    pub(crate) peers: Arc<[PeerTool]>,
    /// Tools whose calls may be repeated: belljar's own that only read.
    pub(crate) repeatable: BTreeSet<ToolName>,
    /// Tools whose interrupted calls run again, with nested calls answered from the journal.
    pub(crate) replayable: BTreeSet<ToolName>,
    pub(crate) delegates: DelegateSet,
    /// One permit for each child at a time.
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) background: Arc<BackgroundChildren>,
    /// The results of hooks.
    pub(crate) hooked: HookState,
    /// The rights that used skills have left; `None` = all of the job's. Subagents are bounded by these rights.
    pub(crate) narrowed: Mutex<Option<Rights>>,
    /// What the context lists, and what is found.
    pub(crate) library: LibraryPlan,
    /// The list of work, once a call has asked for it.
    pub(crate) todos: Mutex<Option<TodoList>>,
}

impl Deref for CallExecutor<'_> {
    type Target = CallMeans;

    fn deref(&self) -> &CallMeans {
        self.means
    }
}

/// Background children and their list refer to each other, so nothing else would end them.
impl Drop for CallMeans {
    fn drop(&mut self) {
        self.background.abort_tasks();
    }
}

impl CallExecutor<'_> {
    /// The rights above those of a subagent that starts now.
    pub(crate) fn rights_for_children(&self) -> Rights {
        let narrowed = self.narrowed.lock().unwrap_or_else(PoisonError::into_inner);
        narrowed.clone().unwrap_or_else(|| self.job.rights.clone())
    }

    /// Ends when the agent's time is up, without the time of waiting for a person.
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
