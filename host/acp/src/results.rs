//! Receives the calls of running turns with their whole arguments and results, to show a turn while it runs.
//! Events contain only the beginning of the arguments and no results.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use belljar_agent::limits::truncate_str;
use belljar_agent::{ChildSummary, Journal, RunId, StepEntry, StepKind};
use tokio::sync::broadcast;

use crate::limits::{MAX_RESULT, MAX_RESULTS};
use crate::terminal;

/// The channel with the journal steps of all turns of a process. If there is no receiver, a step is dropped.
#[derive(Debug, Clone)]
pub struct StepChannel(broadcast::Sender<Arc<PassedStep>>);

/// One step of a turn's journal.
#[derive(Debug)]
pub(crate) struct PassedStep {
    pub(crate) run: String,
    pub(crate) step: u64,
    pub(crate) kind: PassedKind,
}

#[derive(Debug)]
pub(crate) enum PassedKind {
    /// A model makes calls: the id and the arguments of each.
    Asked(Vec<(String, String)>),
    /// A call has returned.
    Result(Box<CallResult>),
}

/// The result of a call, as it is shown.
#[derive(Debug)]
pub(crate) struct CallResult {
    /// The path of the agent that made the call.
    pub(crate) agent: String,
    pub(crate) call_id: String,
    /// The result as the model reads it, cut at a limit.
    pub(crate) content: String,
    /// The exit code of a command, from its whole output; never 0 if the call failed.
    pub(crate) exit: u8,
    /// The paths that the call read or wrote, as the agent sees them.
    pub(crate) paths: Vec<String>,
}

impl Default for StepChannel {
    fn default() -> Self {
        Self(broadcast::channel(MAX_RESULTS).0)
    }
}

impl StepChannel {
    /// Receives all steps from now on.
    pub(crate) fn subscribe_steps(&self) -> broadcast::Receiver<Arc<PassedStep>> {
        self.0.subscribe()
    }
}

#[async_trait]
impl Journal for StepChannel {
    /// The end of a subagent is shown from its event, so nothing is passed on here.
    async fn subagent_ended(
        &self,
        _run: &RunId,
        _child: &ChildSummary,
        _with: Option<StepEntry>,
    ) -> io::Result<()> {
        Ok(())
    }

    /// Passes a step on to the receivers, if it is one that is shown.
    async fn store_step(&self, run: &RunId, entry: StepEntry) -> io::Result<()> {
        if let Some(kind) = kind_from_step(entry.kind) {
            let passed = PassedStep { run: run.to_string(), step: entry.step, kind };
            // An error means: there is no receiver.
            let _ = self.0.send(Arc::new(passed));
        }
        Ok(())
    }

    fn persists_steps(&self) -> bool {
        self.0.receiver_count() > 0
    }
}

/// Converts a journal step to what is shown: calls and results; other steps are dropped.
fn kind_from_step(kind: StepKind) -> Option<PassedKind> {
    match kind {
        StepKind::Said { reply, .. } if !reply.calls.is_empty() => {
            let calls = reply.calls.into_iter().map(|call| (call.id, call.arguments));
            Some(PassedKind::Asked(calls.collect()))
        }
        StepKind::Result(result) => {
            let result = *result;
            let call = result.receipt?;
            let (read, wrote) = (call.receipt.paths_read, call.receipt.paths_written);
            Some(PassedKind::Result(Box::new(CallResult {
                agent: call.agent,
                call_id: call.call_id,
                exit: terminal::exit_code(&result.content, result.is_error),
                content: truncate_str(&result.content, MAX_RESULT).to_owned(),
                paths: wrote.into_iter().chain(read).collect(),
            })))
        }
        StepKind::Said { .. }
        | StepKind::Begun { .. }
        | StepKind::Child { .. }
        | StepKind::Written(_)
        | StepKind::Muted { .. } => None,
    }
}
