//! A team that a prompt runs beside the conversation: a separate session, whose agents are shown in the
//! prompt's session.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::StopReason;
use belljar_agent::{Host, TeamSpec, resolve_team};
use belljar_policy::{LimitsRequest, Shown};
use belljar_session::run_team_saved;

use crate::beside::Beside;
use crate::door::{Connection, Door};
use crate::errors::{failed, invalid};
use crate::limits::MAX_TITLE;
use crate::open::Prompting;
use crate::words;

/// Runs a team with this task, and shows its agents' work.
pub(crate) async fn run(
    door: &Arc<Door>,
    to: &Connection,
    prompting: &Prompting,
    name: &str,
    task: String,
) -> Result<StopReason, Error> {
    if task.is_empty() {
        let name = Shown::clipped(name, MAX_TITLE);
        return Err(invalid(format!("say what the team is to do: `/team:{name} TASK`")));
    }
    let beside = Beside { door, to, session: &prompting.session.id };
    let host = beside.host();
    let spec = spec(&beside, &host, name, task).await?;
    let (store, cancel) = (door.service.store(), prompting.cancel.clone());
    let running = async |sink| run_team_saved(store, &host, spec, sink, cancel).await;
    let outcome = beside.shown(running).await?.outcome.to_outcome();
    if !outcome.output.trim().is_empty() {
        beside.says(&outcome.output).await;
    }
    beside.says_where(&outcome.run, "the team").await;
    words::reason(&outcome)
}

async fn spec(
    beside: &Beside<'_>,
    host: &Host,
    name: &str,
    task: String,
) -> Result<TeamSpec, Error> {
    let team = beside.find(host, name, resolve_team).await?;
    if let Some(problem) = team.problems.first() {
        let problem = Shown::multiline(&problem.to_string()).to_string();
        return Err(failed(format!("team `{}` cannot run: {problem}", team.id)));
    }
    Ok(TeamSpec {
        team: Arc::new(team),
        task,
        model: None,
        workspace: beside.door.workspace().to_path_buf(),
        limits: LimitsRequest::default(),
        budget: None,
        layers: None,
    })
}
