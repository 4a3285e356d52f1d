//! Runs that a person started in the background of a chat.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use belljar_agent::{EventSink, Host, RunSpec};
use belljar_session::{SavedOutcome, SessionError, run_saved};
use belljar_store::Store;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A run that has ended: its number, parameters and outcome.
pub(super) type Ended = (u32, RunSpec, Result<SavedOutcome, SessionError>);

/// The runs in the background of a chat, the oldest first.
#[derive(Default)]
pub(super) struct BackgroundRuns {
    runs: Vec<BackgroundRun>,
    started: u32,
}

/// A run in the background that has not been returned as ended.
struct BackgroundRun {
    number: u32,
    spec: RunSpec,
    cancel: CancellationToken,
    task: JoinHandle<Result<SavedOutcome, SessionError>>,
}

impl BackgroundRuns {
    /// Starts a run in a separate session, and returns its number, beginning with 1. Its events are not
    /// shown.
    pub(super) fn start_run(&mut self, store: Store, host: Host, spec: RunSpec) -> u32 {
        self.started += 1;
        let cancel = CancellationToken::new();
        let (token, own) = (cancel.clone(), spec.clone());
        let task =
            tokio::spawn(
                async move { run_saved(&store, &host, own, EventSink::none(), token).await },
            );
        self.runs.push(BackgroundRun { number: self.started, spec, cancel, task });
        self.started
    }

    /// The runs that have not been returned as ended, with their numbers.
    pub(super) fn list_running(&self) -> impl Iterator<Item = (u32, &RunSpec)> {
        self.runs.iter().map(|run| (run.number, &run.spec))
    }

    /// Waits for a run to end, and returns it; waits for ever if there is none. Dropping the future loses
    /// nothing.
    pub(super) async fn next_ended(&mut self) -> Ended {
        loop {
            let runs = &mut self.runs;
            let (at, done) = poll_fn(|cx| {
                for (at, run) in runs.iter_mut().enumerate() {
                    if let Poll::Ready(done) = Pin::new(&mut run.task).poll(cx) {
                        return Poll::Ready((at, done));
                    }
                }
                Poll::Pending
            })
            .await;
            let BackgroundRun { number, spec, .. } = self.runs.remove(at);
            // The task always ends. An error means that the runtime ends, and then there is nothing to show.
            if let Ok(done) = done {
                return (number, spec, done);
            }
        }
    }

    /// Cancels the run with this number, and waits for its end.
    pub(super) async fn stop_run(&mut self, number: u32) -> Vec<Ended> {
        let (stopped, running): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.runs).into_iter().partition(|run| run.number == number);
        self.runs = running;
        stopped.iter().for_each(|run| run.cancel.cancel());
        await_ended(stopped).await
    }

    /// Cancels all runs, and waits for their ends.
    pub(super) async fn stop_all(&mut self) -> Vec<Ended> {
        let stopped = std::mem::take(&mut self.runs);
        stopped.iter().for_each(|run| run.cancel.cancel());
        await_ended(stopped).await
    }
}

/// Waits for the ends of these runs, in their order.
async fn await_ended(runs: Vec<BackgroundRun>) -> Vec<Ended> {
    let mut ended = Vec::with_capacity(runs.len());
    for BackgroundRun { number, spec, task, .. } in runs {
        // The task always ends. An error means that the runtime ends, and then there is nothing to show.
        if let Ok(done) = task.await {
            ended.push((number, spec, done));
        }
    }
    ended
}
