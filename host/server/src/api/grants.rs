//! `GET /v1/grants`: an agent's effective rights, and the sources that limit each.

use std::collections::BTreeMap;

use belljar_agent::{ResolveError, ResolvedAgent, resolve_until};
use belljar_definition::AgentReadiness;
use belljar_policy::{CallPermission, LIMITS};
use belljar_work::StopSignal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::turn::check_name;
use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::http::respond::{JsonAnswer, QueryOf};

/// The query: the agent whose rights are requested.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantsQuery {
    agent: String,
}

/// The rights of an agent that a person starts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrantsBody {
    /// Its identity.
    agent: String,
    /// `ready`, `ready with warnings` or `blocked`.
    pub(crate) status: String,
    /// Why it is not simply ready.
    pub(crate) reasons: Vec<String>,
    /// Its tools: `allow`, or `ask` where a person is asked before each call.
    tools: BTreeMap<String, String>,
    /// Its directories, as it sees them: path to `read` or `read-write`.
    pub(crate) mounts: BTreeMap<String, String>,
    /// Hosts: a request has to fit a rule of every list.
    pub(crate) hosts: Vec<HostsBody>,
    /// Names of secrets that the host joins to its requests.
    pub(crate) secrets: Vec<String>,
    /// Its limits.
    pub(crate) limits: BTreeMap<String, u64>,
    /// The seconds that it waits for a subagent before that runs on in the background; absent: to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auto_background_seconds: Option<u64>,
    /// The requests that it does not get.
    pub(crate) withheld: Vec<WithheldBody>,
}

/// The hosts that one source lists.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HostsBody {
    /// Who lists them.
    source: String,
    /// Rules.
    rules: Vec<String>,
}

/// Something that an agent does not get.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WithheldBody {
    /// Who withholds it.
    by: String,
    /// The request, for a person.
    wanted: String,
}

/// `GET /v1/grants`: returns an agent's effective rights.
pub(crate) async fn read_grants(
    ctx: HandlerContext,
    QueryOf(query): QueryOf<GrantsQuery>,
) -> Result<JsonAnswer<GrantsBody>, Problem> {
    let Some(name) = check_name("agent", Some(query.agent))? else {
        return Err(Problem::invalid("`agent` is missing"));
    };
    Ok(JsonAnswer(GrantsBody::from_agent(&find_agent(&ctx, name).await?)))
}

/// Finds an agent of the tenant by name, for example `scout` or `library/x/scout`. Reads files on a
/// thread for blocking work.
pub(crate) async fn find_agent(
    ctx: &HandlerContext,
    name: String,
) -> Result<ResolvedAgent, Problem> {
    let service = ctx.service.clone();
    let asked = name.clone();
    let look = move |stop: &StopSignal| {
        resolve_until(&service.current_host(), &asked, service.workspace(), stop)
    };
    match ctx.look_up(look).await? {
        Ok(agent) => Ok(agent),
        Err(ResolveError::Workspace { .. }) => {
            Err(Problem::bug("the workspace of a tenant cannot be used"))
        }
        Err(ResolveError::NotFound(_) | ResolveError::Gone(_) | ResolveError::Blocked(_)) => {
            Err(Problem::not_found("agent", &name))
        }
        Err(error @ ResolveError::Stopped(_)) => {
            Err(Problem::from_resolve_error("looking for it", &error))
        }
    }
}

impl GrantsBody {
    /// Collects the effective rights of an agent for an answer: tools, mounts, hosts, secrets and limits, and
    /// which source has withheld what.
    pub(crate) fn from_agent(agent: &ResolvedAgent) -> Self {
        let rights = &agent.rights;
        let hosts = rights.hosts().lists().map(|list| HostsBody {
            source: list.source.to_string(),
            rules: list.rules.iter().map(ToString::to_string).collect(),
        });
        let limits = rights.limits();
        let limits =
            LIMITS.iter().filter_map(|row| Some((row.key.to_owned(), limits.get(row.key)?)));
        let withheld = agent.narrowed.iter().map(|narrowing| WithheldBody {
            by: narrowing.by.to_string(),
            wanted: narrowing.what.clone(),
        });
        Self {
            agent: agent.id.slug.to_string(),
            status: agent.status.as_str().to_owned(),
            reasons: readiness_reasons(&agent.status).to_vec(),
            tools: tool_grants(agent),
            // The directory of a mount on the host is left out, because a remote caller must not see
            // paths of the host.
            mounts: rights
                .mounts()
                .iter()
                .map(|mount| (mount.guest.to_string(), mount.access.to_string()))
                .collect(),
            hosts: hosts.collect(),
            secrets: rights.secrets().iter().map(ToString::to_string).collect(),
            limits: limits.collect(),
            auto_background_seconds: agent.auto_background.map(|wait| wait.as_secs()),
            withheld: withheld.collect(),
        }
    }
}

/// The reasons why an agent is blocked or has warnings; none if it is ready.
pub(crate) fn readiness_reasons(status: &AgentReadiness) -> &[String] {
    match status {
        AgentReadiness::Ready => &[],
        AgentReadiness::ReadyWithWarnings { warnings } => warnings,
        AgentReadiness::Blocked { reasons } => reasons,
    }
}

/// The tools that an agent may use, by name, each with `allow` or `ask`.
pub(crate) fn tool_grants(agent: &ResolvedAgent) -> BTreeMap<String, String> {
    let word = |may| match may {
        CallPermission::Allow => "allow",
        CallPermission::Ask => "ask",
        CallPermission::Deny => "deny",
    };
    agent
        .rights
        .offered_tools()
        .map(|(tool, may)| (tool.to_string(), word(may).to_owned()))
        .collect()
}
