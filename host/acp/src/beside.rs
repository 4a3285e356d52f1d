//! Runs of agents and teams beside the conversation: each is a separate session, shown in the session that
//! requested it.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::StopReason;
use belljar_agent::TextRetention;
use belljar_policy::ShownText;
use belljar_session::{TurnKind, TurnRequest};

use crate::door::{ACTOR, AcpDoor, Connection};
use crate::errors::{error_from_service, invalid_parameter};
use crate::follow::show_turn;
use crate::limits::MAX_TITLE;
use crate::open::ActivePrompt;
use crate::words;

/// Runs an agent or a team on a task, and shows its work. INV-306: an agent has its own grants, and must be
/// runnable. INV-304: the limits are those of every turn.
pub(crate) async fn run_beside(
    door: &Arc<AcpDoor>,
    to: &Connection,
    prompting: &ActivePrompt,
    kind: TurnKind,
    name: &str,
    text: String,
) -> Result<StopReason, Error> {
    let who = if kind == TurnKind::Team { "the team" } else { "it" };
    if text.is_empty() {
        let name = ShownText::clip_line(name, MAX_TITLE);
        return Err(invalid_parameter(format!("say what {who} is to do: `/team:{name} TASK`")));
    }
    let passing = door.results.subscribe_steps();
    let request = TurnRequest {
        kind,
        agent: Some(name.to_owned()),
        text,
        actor: ACTOR.to_owned(),
        kept: TextRetention::All,
        door: "acp",
        ..TurnRequest::default()
    };
    let running =
        door.service.begin_turn(request).await.map_err(|error| error_from_service(&error))?;
    let outcome = show_turn(door, to, prompting, &running, passing).await?;
    let says = async |text: &str| {
        door.send_update(to, &prompting.session.id, words::remark_update(text)).await;
    };
    if kind == TurnKind::Team && !outcome.output.trim().is_empty() {
        says(&outcome.output).await;
    }
    let run = &outcome.run;
    let note = format!(
        "\n\n`belljar receipts {run}` has what {who} did, `belljar changes {run}` what it changed."
    );
    says(&note).await;
    words::stop_reason(&outcome)
}
