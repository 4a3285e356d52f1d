//! Shows a turn to the editor while it runs, and asks its questions there.

use std::sync::Arc;

use agent_client_protocol::Error;
use belljar_agent::Outcome;
use belljar_session::{EventWatch, RunningTurn, parse_event};
use belljar_store::SessionEvent;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::ask;
use crate::door::{ACTOR, AcpDoor, Connection};
use crate::errors::internal_failure;
use crate::open::ActivePrompt;
use crate::results::PassedStep;
use crate::updates::{OutgoingItem, UpdateMapper};

/// The receiver of the journal steps of all running turns.
pub(crate) type Passing = broadcast::Receiver<Arc<PassedStep>>;

/// Shows a turn in the prompt's session, from its first event to its end. Cancelling the prompt cancels the
/// turn.
pub(crate) async fn show_turn(
    door: &Arc<AcpDoor>,
    to: &Connection,
    prompting: &ActivePrompt,
    turn: &RunningTurn,
    passing: Passing,
) -> Result<Arc<Outcome>, Error> {
    let watching = prompting.cancel.clone();
    let (service, id) = (door.service.clone(), turn.session.clone());
    // The turn is also cancelled if the prompt was cancelled before this point.
    let cancelling = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
        watching.cancelled().await;
        service.cancel_turn(&id, ACTOR);
    }));
    let (shown_in, workspace) = (&prompting.session.id, door.workspace().to_path_buf());
    let updates = UpdateMapper::new(door.editor_capabilities(), shown_in, &turn.message, workspace);
    let outcome = follow_turn(door, to, turn, turn.watch_events(), passing, updates).await;
    drop(cancelling);
    outcome.ok_or_else(|| {
        internal_failure(
            "this turn was stopped before its end; it is stored, and goes on when the session is loaded",
        )
    })
}

/// Shows a turn to its end: the events of `watch`, and the results in `passing`. `None` if this process is
/// stopping, or the editor has disconnected.
pub(crate) async fn follow_turn(
    door: &Arc<AcpDoor>,
    to: &Connection,
    turn: &RunningTurn,
    mut watch: EventWatch,
    mut passing: Passing,
    mut updates: UpdateMapper,
) -> Option<Arc<Outcome>> {
    let ended = turn.wait_for_end();
    tokio::pin!(ended);
    let (mut outcome, mut last) = (None, None);
    while last.is_none_or(|last| watch.last_id() < last) {
        let out = tokio::select! {
            biased;
            event = watch.next_event() => {
                let mut out = drain_passing(&mut passing, &mut updates);
                out.extend(updates_from_event(turn, &event?, &mut updates));
                out.extend(updates.late_results());
                out
            }
            passed = passing.recv() => match passed {
                Ok(passed) => updates.handle_step(passed),
                // A result that was missed is shown when the session is loaded the next time.
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return outcome,
            },
            end = &mut ended, if last.is_none() => {
                outcome = Some(end?);
                last = Some(door.service.store().last_event(&turn.session).await.unwrap_or(0));
                continue;
            }
        };
        send_all(door, to, &turn.message, out).await?;
    }
    let mut out = drain_passing(&mut passing, &mut updates);
    out.extend(updates.late_results());
    out.extend(updates.terminal_ends());
    send_all(door, to, &turn.message, out).await?;
    outcome
}

/// The updates for one event; none if it belongs to another turn.
fn updates_from_event(
    turn: &RunningTurn,
    event: &SessionEvent,
    updates: &mut UpdateMapper,
) -> Vec<OutgoingItem> {
    if *event.message != *turn.message {
        return Vec::new();
    }
    let Some(event) = parse_event(event) else { return Vec::new() };
    updates.map_event(event.agent.to_string(), event.kind)
}

/// The updates for the results that have arrived so far.
fn drain_passing(passing: &mut Passing, updates: &mut UpdateMapper) -> Vec<OutgoingItem> {
    let mut out = Vec::new();
    loop {
        match passing.try_recv() {
            Ok(passed) => out.extend(updates.handle_step(passed)),
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return out,
        }
    }
}

/// Sends updates, and asks questions, each in a separate task; `None` if the editor has disconnected.
async fn send_all(
    door: &Arc<AcpDoor>,
    to: &Connection,
    turn: &str,
    out: Vec<OutgoingItem>,
) -> Option<()> {
    for one in out {
        let (door, to, turn) = (Arc::clone(door), to.clone(), turn.to_owned());
        match one {
            OutgoingItem::Update(session, update) => {
                door.send_update(&to, &session, update).await.then_some(())?;
            }
            OutgoingItem::Permission { session, id, call } => {
                tokio::spawn(async move {
                    ask::ask_permission(&door, &to, &session, &turn, id, *call).await;
                });
            }
            OutgoingItem::Clarify(session, asked) => {
                tokio::spawn(async move {
                    ask::ask_clarification(&door, &to, &session, &turn, asked).await;
                });
            }
        }
    }
    Some(())
}
