//! Runs beside the conversation: each a separate session, shown in the asking session.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::StopReason;
use belljar_agent::Staying;
use belljar_policy::Shown;
use belljar_session::{TurnKind, TurnRequest};

use crate::door::{ACTOR, Connection, Door};
use crate::errors::{invalid, of_service};
use crate::follow::show;
use crate::limits::MAX_TITLE;
use crate::open::Prompting;
use crate::words;

/// Runs an agent or a team on a task, and shows its work. INV-306: agents have their own grants, and must be
/// runnable. INV-304: the limits are those of every turn.
pub(crate) async fn run(
    door: &Arc<Door>,
    to: &Connection,
    prompting: &Prompting,
    kind: TurnKind,
    name: &str,
    text: String,
) -> Result<StopReason, Error> {
    let who = if kind == TurnKind::Team { "the team" } else { "it" };
    if text.is_empty() {
        let name = Shown::clipped(name, MAX_TITLE);
        return Err(invalid(format!("say what {who} is to do: `/team:{name} TASK`")));
    }
    let passing = door.results.listen();
    let request = TurnRequest {
        kind,
        agent: Some(name.to_owned()),
        text,
        actor: ACTOR.to_owned(),
        kept: Staying::All,
        door: "acp",
        ..TurnRequest::default()
    };
    let running = door.service.begin(request).await.map_err(|error| of_service(&error))?;
    let outcome = show(door, to, prompting, &running, passing).await?;
    let says = async |text: &str| {
        door.send(to, &prompting.session.id, words::remark(text)).await;
    };
    if kind == TurnKind::Team && !outcome.output.trim().is_empty() {
        says(&outcome.output).await;
    }
    let run = &outcome.run;
    let note = format!(
        "\n\n`belljar receipts {run}` has what {who} did, `belljar changes {run}` what it changed."
    );
    says(&note).await;
    words::reason(&outcome)
}
