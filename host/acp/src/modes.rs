//! Agents as modes, and models as an option of a session.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    SessionConfigId, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelectOption, SessionMode, SessionModeId, SessionModeState,
};
use belljar_agent::resolve_all_until;
use belljar_definition::{AgentReadiness, Visibility};
use belljar_policy::Shown;
use belljar_session::Head;
use belljar_store::StoredSession;

use crate::door::Door;
use crate::errors::{failed, invalid, of_service};
use crate::limits::{MAX_OFFERED, MAX_TITLE};

/// The id of the option for the model.
const MODEL: &str = "model";

/// The value that leaves the model to the agent. No model is called so.
const OWN: &str = ":agent";

/// The agents for a person to talk with, and the session's agent.
pub(crate) async fn of(
    door: &Arc<Door>,
    session: &StoredSession,
) -> Result<SessionModeState, Error> {
    let (host, workspace) = (door.service.host(), door.workspace().to_path_buf());
    // Looked up on a thread, because files are read.
    let found = door.service.look_up(move |stop| resolve_all_until(&host, &workspace, stop)).await;
    let agents = found.map_err(|error| failed(error.to_string()))?;
    let agents =
        agents.map_err(|error| failed(Shown::multiline(&error.to_string()).to_string()))?;
    let offered = agents.iter().filter(|agent| {
        let id = agent.id.to_string();
        let ready = !matches!(agent.status, AgentReadiness::Blocked { .. });
        id == session.agent || (ready && agent.definition.visibility != Visibility::Internal)
    });
    let mode = |agent: &belljar_agent::ResolvedAgent| {
        let name = Shown::clipped(&agent.definition.name, MAX_TITLE).to_string();
        let description = Shown::clipped(&agent.definition.description, MAX_TITLE).to_string();
        SessionMode::new(SessionModeId::new(agent.id.to_string()), name).description(description)
    };
    let modes: Vec<_> = offered.take(MAX_OFFERED).map(mode).collect();
    Ok(SessionModeState::new(SessionModeId::new(session.agent.clone()), modes))
}

/// The options of a session: the model, if there are several.
pub(crate) fn options(door: &Door, session: &StoredSession) -> Vec<SessionConfigOption> {
    let host = door.service.host();
    let models = &host.settings.models;
    if models.len() < 2 {
        return Vec::new();
    }
    let own = SessionConfigSelectOption::new(OWN, "The agent's own");
    let named = models.keys().take(MAX_OFFERED).map(|name| {
        SessionConfigSelectOption::new(name.clone(), Shown::clipped(name, MAX_TITLE).to_string())
    });
    let values: Vec<_> = std::iter::once(own).chain(named).collect();
    let current = match session.model.as_str() {
        "" => OWN.to_owned(),
        model => model.to_owned(),
    };
    let option = SessionConfigOption::select(MODEL, "Model", current, values);
    vec![option.category(SessionConfigOptionCategory::Model)]
}

/// Sets another agent from the next prompt on. INV-306: the agent has its own grants, and must be runnable.
pub(crate) async fn set_agent(
    door: &Door,
    session: &str,
    mode: &SessionModeId,
) -> Result<(), Error> {
    let head = Head { agent: Some(mode.0.to_string()), ..Head::default() };
    let set = door.service.set_head(session, head).await;
    set.map(drop).map_err(|error| of_service(&error))
}

/// Another model from the next prompt on.
pub(crate) async fn set_option(
    door: &Door,
    session: &str,
    option: &SessionConfigId,
    value: &SessionConfigOptionValue,
) -> Result<Vec<SessionConfigOption>, Error> {
    if &*option.0 != MODEL {
        let option = Shown::clipped(&option.0, MAX_TITLE);
        return Err(invalid(format!("there is no option `{option}`; there is `{MODEL}`")));
    }
    let value = value.as_value_id().ok_or_else(|| invalid("a model is chosen by its name"))?;
    let host = door.service.host();
    let model = match &*value.0 {
        OWN => String::new(),
        name if host.settings.models.contains_key(name) => name.to_owned(),
        other => {
            let other = Shown::clipped(other, MAX_TITLE);
            return Err(invalid(format!("there is no model `{other}` in belljar.toml")));
        }
    };
    let head = Head { model: Some(model), ..Head::default() };
    let set = door.service.set_head(session, head).await.map_err(|error| of_service(&error))?;
    Ok(options(door, &set))
}
