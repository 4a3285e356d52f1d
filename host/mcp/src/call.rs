//! What one call needs, and its time limit.

use belljar_policy::{Budget, Limits};
use belljar_sandbox::{CallEnding, CallError, ProgressSink, Sandbox, SecretStore, ToolOutput};
use tokio_util::sync::CancellationToken;

use crate::demands::{ServerCallClock, ServerResponder};

/// What one call needs.
pub struct CallSpec<'a> {
    /// The sandbox, which makes the gate of the call and resolves names.
    pub sandbox: &'a Sandbox,
    /// The secrets of the run.
    pub secrets: &'a SecretStore,
    /// The budget of sent and received bytes.
    pub budget: &'a Budget,
    /// The limits on time, output and connections.
    pub limits: &'a Limits,
    /// Cancelling this token ends the call.
    pub cancel: &'a CancellationToken,
    /// The receiver of progress reports.
    pub progress: Option<ProgressSink>,
    /// Answers the server's own requests during the call; `None` = they are refused.
    pub answers: Option<&'a dyn ServerResponder>,
}

impl<'a> CallSpec<'a> {
    /// A specification without answers to the server's requests and without progress reports.
    pub fn from_parts(
        sandbox: &'a Sandbox,
        secrets: &'a SecretStore,
        budget: &'a Budget,
        limits: &'a Limits,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self { sandbox, secrets, budget, limits, cancel, progress: None, answers: None }
    }

    /// Runs a part of the call until its deadline or its cancellation.
    pub(crate) async fn run_within<T>(
        &self,
        clock: &ServerCallClock<'_>,
        doing: impl Future<Output = T>,
    ) -> Result<T, CallError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(CallError::Cancelled),
            () = self.budget.wait_cancelled() => Err(CallError::Cancelled),
            done = clock.run_within(doing) => {
                done.map_err(|_| CallError::TimedOut(clock.call_limit().as_secs()))
            }
        }
    }
}

/// Returns whether a call was cancelled or timed out, so the server may still be working on it.
pub(crate) fn is_given_up(outcome: &Result<ToolOutput, CallError>) -> bool {
    matches!(outcome, Err(CallError::Cancelled | CallError::TimedOut(_)))
}

/// The ending of a call for its receipt.
pub(crate) fn call_ending(outcome: &Result<ToolOutput, CallError>) -> CallEnding {
    match outcome {
        Ok(_) => CallEnding::Completed,
        Err(CallError::Tool { kind, .. }) => CallEnding::ToolError(kind.as_str().to_owned()),
        Err(CallError::Refused(code)) => CallEnding::Refused(code.to_string()),
        Err(CallError::Exhausted(which)) => CallEnding::Exhausted(which.to_string()),
        Err(CallError::TimedOut(_)) => CallEnding::TimedOut,
        Err(CallError::Cancelled) => CallEnding::Cancelled,
        Err(CallError::BadOutput(why)) => CallEnding::BadOutput(why.clone()),
        Err(CallError::Trapped(_) | CallError::NotLoaded(_) | CallError::HostFault) => {
            CallEnding::HostFault("the call did not come to its end".to_owned())
        }
    }
}

impl std::fmt::Debug for CallSpec<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallSpec").finish_non_exhaustive()
    }
}
