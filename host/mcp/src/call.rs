//! The means of one call, its duration, and its ending.

use belljar_policy::{Budget, Limits};
use belljar_sandbox::{CallError, Ending, Output, ProgressSink, Sandbox, SecretStore};
use tokio_util::sync::CancellationToken;

use crate::demands::{Answers, Clock};

/// The means of a call.
pub struct CallSpec<'a> {
    /// The gate of the call, and its name resolution.
    pub sandbox: &'a Sandbox,
    /// The secrets of the run.
    pub secrets: &'a SecretStore,
    /// The budget for sent and received bytes.
    pub budget: &'a Budget,
    /// Bounds the time, the output and the connections.
    pub limits: &'a Limits,
    /// Ends the call.
    pub cancel: &'a CancellationToken,
    /// The receiver of progress reports.
    pub progress: Option<ProgressSink>,
    /// The respondent for the server's own requests meanwhile; `None` = no one.
    pub answers: Option<&'a dyn Answers>,
}

impl<'a> CallSpec<'a> {
    /// Means without a respondent or a reader of progress.
    pub fn of(
        sandbox: &'a Sandbox,
        secrets: &'a SecretStore,
        budget: &'a Budget,
        limits: &'a Limits,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self { sandbox, secrets, budget, limits, cancel, progress: None, answers: None }
    }

    /// Runs a part of the call until its deadline or its cancellation.
    pub(crate) async fn within<T>(
        &self,
        clock: &Clock<'_>,
        doing: impl Future<Output = T>,
    ) -> Result<T, CallError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(CallError::Cancelled),
            () = self.budget.cancelled() => Err(CallError::Cancelled),
            done = clock.within(doing) => {
                done.map_err(|_| CallError::TimedOut(clock.most().as_secs()))
            }
        }
    }
}

/// Returns whether a call was cancelled or timed out: the server may still be working on it.
pub(crate) fn is_given_up(outcome: &Result<Output, CallError>) -> bool {
    matches!(outcome, Err(CallError::Cancelled | CallError::TimedOut(_)))
}

pub(crate) fn ending(outcome: &Result<Output, CallError>) -> Ending {
    match outcome {
        Ok(_) => Ending::Completed,
        Err(CallError::Tool { kind, .. }) => Ending::ToolError(kind.as_str().to_owned()),
        Err(CallError::Refused(code)) => Ending::Refused(code.to_string()),
        Err(CallError::Exhausted(which)) => Ending::Exhausted(which.to_string()),
        Err(CallError::TimedOut(_)) => Ending::TimedOut,
        Err(CallError::Cancelled) => Ending::Cancelled,
        Err(CallError::BadOutput(why)) => Ending::BadOutput(why.clone()),
        Err(CallError::Trapped(_) | CallError::NotLoaded(_) | CallError::HostFault) => {
            Ending::HostFault("the call did not come to its end".to_owned())
        }
    }
}

impl std::fmt::Debug for CallSpec<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallSpec").finish_non_exhaustive()
    }
}
