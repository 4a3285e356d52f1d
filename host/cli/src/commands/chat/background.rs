//! Runs that a person started in the background of a chat.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use belljar_agent::{EventSink, Host, RunSpec};
use belljar_session::{SavedOutcome, SessionError, run_saved};
use belljar_store::Store;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// An ended agent: number, spec, outcome.
pub(super) type Ended = (u32, RunSpec, Result<SavedOutcome, SessionError>);

/// The runs, the oldest first.
#[derive(Default)]
pub(super) struct BackgroundRuns {
    runs: Vec<BackgroundRun>,
    started: u32,
}

struct BackgroundRun {
    number: u32,
    spec: RunSpec,
    cancel: CancellationToken,
    task: JoinHandle<Result<SavedOutcome, SessionError>>,
}

impl BackgroundRuns {
    /// Starts a run in a separate session, and returns its number, from 1. Nobody sees the events.
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

    /// The runs not taken yet, by number.
    pub(super) fn list_running(&self) -> impl Iterator<Item = (u32, &RunSpec)> {
        self.runs.iter().map(|run| (run.number, &run.spec))
    }

    /// Takes the next ended run; waits for ever if none is running. Dropping the future loses nothing.
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
            // It ends whatever happens; if the runtime is gone, there is nothing to show.
            if let Ok(done) = done {
                return (number, spec, done);
            }
        }
    }

    /// Stops a run, and waits for its end.
    pub(super) async fn stop_run(&mut self, number: u32) -> Vec<Ended> {
        let (stopped, running): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.runs).into_iter().partition(|run| run.number == number);
        self.runs = running;
        stopped.iter().for_each(|run| run.cancel.cancel());
        await_ended(stopped).await
    }

    /// Stops all, and waits for them.
    pub(super) async fn stop_all(&mut self) -> Vec<Ended> {
        let stopped = std::mem::take(&mut self.runs);
        stopped.iter().for_each(|run| run.cancel.cancel());
        await_ended(stopped).await
    }
}

async fn await_ended(runs: Vec<BackgroundRun>) -> Vec<Ended> {
    let mut ended = Vec::with_capacity(runs.len());
    for BackgroundRun { number, spec, task, .. } in runs {
        // It ends whatever happens; if the runtime is gone, there is nothing to show.
        if let Ok(done) = task.await {
            ended.push((number, spec, done));
        }
    }
    ended
}
