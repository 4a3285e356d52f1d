//! Shows a turn to the editor as it happens, and asks its questions there.

use std::sync::Arc;

use agent_client_protocol::Error;
use belljar_agent::Outcome;
use belljar_session::{RunningTurn, SessionEvent, Watch};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::ask;
use crate::door::{ACTOR, Connection, Door};
use crate::errors::failed;
use crate::open::Prompting;
use crate::results::Passed;
use crate::updates::{Out, Updates};

/// The receiver of the turns' calls.
pub(crate) type Passing = broadcast::Receiver<Arc<Passed>>;

/// Shows a turn in the prompt's session, from its first event to its end. A cancelled prompt cancels the turn.
pub(crate) async fn show(
    door: &Arc<Door>,
    to: &Connection,
    prompting: &Prompting,
    turn: &RunningTurn,
    passing: Passing,
) -> Result<Arc<Outcome>, Error> {
    let watching = prompting.cancel.clone();
    let (service, id) = (door.service.clone(), turn.session.clone());
    // Also if cancelled before the beginning.
    let cancelling = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
        watching.cancelled().await;
        service.cancel(&id, ACTOR);
    }));
    let (shown_in, workspace) = (&prompting.session.id, door.workspace().to_path_buf());
    let updates = Updates::new(door.client(), shown_in, &turn.message, workspace);
    let outcome = follow(door, to, turn, turn.watch(), passing, updates).await;
    drop(cancelling);
    outcome.ok_or_else(|| {
        failed(
            "this turn was stopped before its end; it is stored, and goes on when the session is loaded",
        )
    })
}

/// Shows a turn to its end: the events of `watch`, and the passing results. `None` = stopped with this
/// process, or nobody reads any more.
pub(crate) async fn follow(
    door: &Arc<Door>,
    to: &Connection,
    turn: &RunningTurn,
    mut watch: Watch,
    mut passing: Passing,
    mut updates: Updates,
) -> Option<Arc<Outcome>> {
    let ended = turn.ended();
    tokio::pin!(ended);
    let (mut outcome, mut last) = (None, None);
    while last.is_none_or(|last| watch.last() < last) {
        let out = tokio::select! {
            biased;
            event = watch.next() => {
                let mut out = drain(&mut passing, &mut updates);
                out.extend(of_event(turn, &event?, &mut updates));
                out.extend(updates.late());
                out
            }
            passed = passing.recv() => match passed {
                Ok(passed) => updates.passed(passed),
                // A lost result is shown when the session is loaded.
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return outcome,
            },
            end = &mut ended, if last.is_none() => {
                outcome = Some(end?);
                last = Some(door.service.store().last_event(&turn.session).await.unwrap_or(0));
                continue;
            }
        };
        emit(door, to, &turn.message, out).await?;
    }
    let mut out = drain(&mut passing, &mut updates);
    out.extend(updates.late());
    out.extend(updates.ends());
    emit(door, to, &turn.message, out).await?;
    outcome
}

fn of_event(turn: &RunningTurn, event: &SessionEvent, updates: &mut Updates) -> Vec<Out> {
    if *event.message != *turn.message {
        return Vec::new();
    }
    let Some(event) = event.read() else { return Vec::new() };
    updates.of(event.agent.to_string(), event.kind)
}

/// The updates for the results received so far.
fn drain(passing: &mut Passing, updates: &mut Updates) -> Vec<Out> {
    let mut out = Vec::new();
    loop {
        match passing.try_recv() {
            Ok(passed) => out.extend(updates.passed(passed)),
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return out,
        }
    }
}

/// Sends updates and asks questions, each question in a separate task; `None` = nobody reads any more.
async fn emit(door: &Arc<Door>, to: &Connection, turn: &str, out: Vec<Out>) -> Option<()> {
    for one in out {
        let (door, to, turn) = (Arc::clone(door), to.clone(), turn.to_owned());
        match one {
            Out::Update(session, update) => {
                door.send(&to, &session, update).await.then_some(())?;
            }
            Out::Permission { session, id, call } => {
                tokio::spawn(async move {
                    ask::permission(&door, &to, &session, &turn, id, *call).await;
                });
            }
            Out::Clarify(session, asked) => {
                tokio::spawn(async move {
                    ask::clarify(&door, &to, &session, &turn, asked).await;
                });
            }
        }
    }
    Some(())
}
