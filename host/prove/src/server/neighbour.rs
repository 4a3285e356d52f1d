//! The neighbour: a member of the other tenant, who keeps asking for what was said.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::client::{Answer, Client, get};
use super::stage::Stage;

/// One question in so much time.
const PACE: Duration = Duration::from_millis(10);

/// It asks until it is stopped.
pub(crate) struct Neighbour {
    stop: CancellationToken,
    task: JoinHandle<Seen>,
}

/// Its observations.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) calls: usize,
    pub(crate) median: Duration,
    pub(crate) worst: Duration,
    /// The first answer that was not right.
    pub(crate) wrong: Option<String>,
}

impl Neighbour {
    /// Has been answered once when this returns.
    pub(crate) async fn start(stage: &Stage) -> Result<Self> {
        let client = Client { from: None, ..stage.caller("blue-member") };
        let path = format!("/v1/sessions/{}/messages", stage.session("blue")?);
        let right = client.send(&get(&path)).await.context("the neighbour is not answered")?;
        let stop = CancellationToken::new();
        let task = tokio::spawn(asking(client, path, right, stop.clone()));
        Ok(Self { stop, task })
    }

    /// Asks once more, and tells what it saw.
    pub(crate) async fn stop(self) -> Seen {
        self.stop.cancel();
        let wrong = |error| Seen { wrong: Some(format!("{error}")), ..Seen::default() };
        self.task.await.unwrap_or_else(wrong)
    }
}

async fn asking(client: Client, path: String, right: Answer, stop: CancellationToken) -> Seen {
    let (mut times, mut wrong) = (Vec::new(), None);
    let is_right = |answer: &Answer| answer.status == 200 && answer.body == right.body;
    loop {
        let last = stop.is_cancelled();
        let begun = Instant::now();
        match client.send(&get(&path)).await {
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
        // A pause, not a wait for anything.
        let _ = tokio::time::timeout(PACE, stop.cancelled()).await;
    }
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    Seen { calls: times.len(), median, worst: times.pop().unwrap_or_default(), wrong }
}
