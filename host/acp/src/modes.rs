//! Agents as an editor's modes, and models as an option of a session.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    SessionConfigId, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelectOption, SessionMode, SessionModeId, SessionModeState,
};
use belljar_agent::resolve_all_until;
use belljar_definition::{AgentReadiness, Visibility};
use belljar_policy::ShownText;
use belljar_session::HeadEdit;
use belljar_store::StoredSession;

use crate::door::AcpDoor;
use crate::errors::{error_from_service, internal_failure, invalid_parameter};
use crate::limits::{MAX_OFFERED, MAX_TITLE};

/// The id of the option that chooses the model.
const MODEL: &str = "model";

/// The option's value that leaves the choice to the agent. No model can have this name.
const OWN: &str = ":agent";

/// The agents that a person can choose as mode, and the session's present one.
pub(crate) async fn session_modes(
    door: &Arc<AcpDoor>,
    session: &StoredSession,
) -> Result<SessionModeState, Error> {
    let (host, workspace) = (door.service.current_host(), door.workspace().to_path_buf());
    // Resolved on a thread for blocking work, because files are read.
    let found = door.service.look_up(move |stop| resolve_all_until(&host, &workspace, stop)).await;
    let agents = found.map_err(|error| internal_failure(error.to_string()))?;
    let agents = agents
        .map_err(|error| internal_failure(ShownText::multiline(&error.to_string()).to_string()))?;
    let offered = agents.iter().filter(|agent| {
        let id = agent.id.to_string();
        let ready = !matches!(agent.status, AgentReadiness::Blocked { .. });
        id == session.agent || (ready && agent.definition.visibility != Visibility::Internal)
    });
    let mode = |agent: &belljar_agent::ResolvedAgent| {
        let name = ShownText::clip_line(&agent.definition.name, MAX_TITLE).to_string();
        let description =
            ShownText::clip_line(&agent.definition.description, MAX_TITLE).to_string();
        SessionMode::new(SessionModeId::new(agent.id.to_string()), name).description(description)
    };
    let modes: Vec<_> = offered.take(MAX_OFFERED).map(mode).collect();
    Ok(SessionModeState::new(SessionModeId::new(session.agent.clone()), modes))
}

/// The options of a session: the model, if there are several to choose from.
pub(crate) fn session_options(door: &AcpDoor, session: &StoredSession) -> Vec<SessionConfigOption> {
    let host = door.service.current_host();
    let models = &host.settings.models;
    if models.len() < 2 {
        return Vec::new();
    }
    let own = SessionConfigSelectOption::new(OWN, "The agent's own");
    let named = models.keys().take(MAX_OFFERED).map(|name| {
        SessionConfigSelectOption::new(
            name.clone(),
            ShownText::clip_line(name, MAX_TITLE).to_string(),
        )
    });
    let values: Vec<_> = std::iter::once(own).chain(named).collect();
    let current = match session.model.as_str() {
        "" => OWN.to_owned(),
        model => model.to_owned(),
    };
    let option = SessionConfigOption::select(MODEL, "Model", current, values);
    vec![option.category(SessionConfigOptionCategory::Model)]
}

/// Makes another agent answer from the next prompt on. INV-306: the agent has its own grants, and must be
/// runnable.
pub(crate) async fn set_agent(
    door: &AcpDoor,
    session: &str,
    mode: &SessionModeId,
) -> Result<(), Error> {
    let head = HeadEdit { agent: Some(mode.0.to_string()), ..HeadEdit::default() };
    let set = door.service.set_head(session, head).await;
    set.map(drop).map_err(|error| error_from_service(&error))
}

/// Uses another model from the next prompt on.
pub(crate) async fn set_option(
    door: &AcpDoor,
    session: &str,
    option: &SessionConfigId,
    value: &SessionConfigOptionValue,
) -> Result<Vec<SessionConfigOption>, Error> {
    if &*option.0 != MODEL {
        let option = ShownText::clip_line(&option.0, MAX_TITLE);
        return Err(invalid_parameter(format!(
            "there is no option `{option}`; there is `{MODEL}`"
        )));
    }
    let value =
        value.as_value_id().ok_or_else(|| invalid_parameter("a model is chosen by its name"))?;
    let host = door.service.current_host();
    let model = match &*value.0 {
        OWN => String::new(),
        name if host.settings.models.contains_key(name) => name.to_owned(),
        other => {
            let other = ShownText::clip_line(other, MAX_TITLE);
            return Err(invalid_parameter(format!("there is no model `{other}` in belljar.toml")));
        }
    };
    let head = HeadEdit { model: Some(model), ..HeadEdit::default() };
    let set =
        door.service.set_head(session, head).await.map_err(|error| error_from_service(&error))?;
    Ok(session_options(door, &set))
}
