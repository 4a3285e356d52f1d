//! Runs that a person started in the background of a chat.

use belljar_agent::{EventSink, Host, RunSpec};
use belljar_session::{Saved, SessionError, run_saved};
use belljar_store::Store;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// An agent that has ended: its number, what it was, its outcome.
pub(super) type Ended = (u32, RunSpec, Result<Saved, SessionError>);

/// The runs, the oldest first.
#[derive(Default)]
pub(super) struct Background {
    runs: Vec<Running>,
    started: u32,
}

struct Running {
    number: u32,
    spec: RunSpec,
    cancel: CancellationToken,
    task: JoinHandle<Result<Saved, SessionError>>,
}

impl Background {
    /// Starts a run, a session of its own, and gives its number, from 1. Nobody sees its events.
    pub(super) fn start(&mut self, store: Store, host: Host, spec: RunSpec) -> u32 {
        self.started += 1;
        let cancel = CancellationToken::new();
        let (token, own) = (cancel.clone(), spec.clone());
        let task =
            tokio::spawn(
                async move { run_saved(&store, &host, own, EventSink::none(), token).await },
            );
        self.runs.push(Running { number: self.started, spec, cancel, task });
        self.started
    }

    /// The numbers of those that are not taken yet.
    pub(super) fn running(&self) -> Vec<u32> {
        self.runs.iter().map(|run| run.number).collect()
    }

    /// Takes those that have ended.
    pub(super) async fn ended(&mut self) -> Vec<Ended> {
        let (ended, running): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.runs).into_iter().partition(|run| run.task.is_finished());
        self.runs = running;
        taken(ended).await
    }

    /// Stops one, and waits for it.
    pub(super) async fn stop(&mut self, number: u32) -> Vec<Ended> {
        let (stopped, running): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.runs).into_iter().partition(|run| run.number == number);
        self.runs = running;
        stopped.iter().for_each(|run| run.cancel.cancel());
        taken(stopped).await
    }

    /// Stops all, and waits for them.
    pub(super) async fn stop_all(&mut self) -> Vec<Ended> {
        let stopped = std::mem::take(&mut self.runs);
        stopped.iter().for_each(|run| run.cancel.cancel());
        taken(stopped).await
    }
}

async fn taken(runs: Vec<Running>) -> Vec<Ended> {
    let mut ended = Vec::with_capacity(runs.len());
    for Running { number, spec, task, .. } in runs {
        // It ends whatever happens; if the runtime is gone, there is nothing to show.
        if let Ok(done) = task.await {
            ended.push((number, spec, done));
        }
    }
    ended
}
