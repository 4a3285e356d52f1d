//! The neighbour of an attack: a member of the other tenant who reads the messages of a session again and
//! again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::client::{ServerAnswer, ServerClient, get_request};
use super::stage::ServerStage;

/// The pause between two requests.
const PACE: Duration = Duration::from_millis(10);

/// The neighbour: a task that sends requests until it is stopped.
pub(crate) struct TenantNeighbour {
    stop: CancellationToken,
    task: JoinHandle<TenantObservation>,
}

/// The neighbour's measurements.
#[derive(Debug, Default)]
pub(crate) struct TenantObservation {
    pub(crate) calls: usize,
    pub(crate) median: Duration,
    pub(crate) worst: Duration,
    /// The first answer that was wrong.
    pub(crate) wrong: Option<String>,
}

impl TenantNeighbour {
    /// Starts the neighbour, and returns after its first answer.
    pub(crate) async fn start(stage: &ServerStage) -> Result<Self> {
        let client = ServerClient { from: None, ..stage.client_for("blue-member") };
        let path = format!("/v1/sessions/{}/messages", stage.session_id("blue")?);
        let right =
            client.send(&get_request(&path)).await.context("the neighbour is not answered")?;
        let stop = CancellationToken::new();
        let task = tokio::spawn(ask_until_stopped(client, path, right, stop.clone()));
        Ok(Self { stop, task })
    }

    /// Sends one more request, stops, and returns the measurements.
    pub(crate) async fn stop(self) -> TenantObservation {
        self.stop.cancel();
        let wrong = |error| TenantObservation {
            wrong: Some(format!("{error}")),
            ..TenantObservation::default()
        };
        self.task.await.unwrap_or_else(wrong)
    }
}

/// Sends the same request again and again until stopped; records each duration, and the first answer that
/// differs from `right`.
async fn ask_until_stopped(
    client: ServerClient,
    path: String,
    right: ServerAnswer,
    stop: CancellationToken,
) -> TenantObservation {
    let (mut times, mut wrong) = (Vec::new(), None);
    let is_right = |answer: &ServerAnswer| answer.status == 200 && answer.body == right.body;
    loop {
        let last = stop.is_cancelled();
        let begun = Instant::now();
        match client.send(&get_request(&path)).await {
            Ok(answer) if is_right(&answer) => {}
            Ok(answer) => {
                wrong.get_or_insert(format!("{} {}", answer.status, answer.body));
            }
            Err(error) => {
                wrong.get_or_insert(format!("{error:#}"));
            }
        }
        times.push(begun.elapsed());
        if last {
            break;
        }
        // This is only a pause; no condition is waited for.
        let _ = tokio::time::timeout(PACE, stop.cancelled()).await;
    }
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    TenantObservation { calls: times.len(), median, worst: times.pop().unwrap_or_default(), wrong }
}
