//! `GET /v1/rights`: the tools that each agent may use, with the source that decided, and all other rights.

use std::collections::{BTreeMap, BTreeSet};

use belljar_agent::{Host, ResolveError, ResolvedAgent, resolve_behind};
use belljar_definition::AgentId;
use belljar_policy::{CallPermission, DecisionExplanation, DecisionSource, LIMITS};
use belljar_work::StopSignal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::agents::row_bytes;
use crate::api::explain::json_word;
use crate::api::grants::GrantsBody;
use crate::api::scope::{name_of, scope_of_agent};
use crate::api::tools;
use crate::app::HandlerContext;
use crate::http::page::PAGE_BYTES;
use crate::http::problem::Problem;
use crate::http::respond::{JsonAnswer, QueryOf};
use crate::routes::RequiredScope;

/// The most agents on one page.
const MAX_AGENTS: usize = 100;

/// The query of `GET /v1/rights`: the page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RightsQuery {
    after: Option<String>,
}

/// The rights of all agents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RightsBody {
    /// The tools, in the order of the cells.
    tools: Vec<ColumnBody>,
    /// The limits that there are.
    limits: Vec<LimitBody>,
    /// The agents, in the catalogue's order.
    agents: Vec<RowBody>,
    /// The value to send as `after` for the next ones; absent where there are none. A page has at
    /// most 100 agents and ends behind 2 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ColumnBody {
    name: String,
    /// `stock`, `home` or `host`.
    origin: &'static str,
    /// Whether it says that it only reads.
    read_only: bool,
}

/// A limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitBody {
    key: &'static str,
    unit: &'static str,
    /// The value that holds without a grant.
    default: u64,
    /// The use that it bounds.
    why: &'static str,
}

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RowBody {
    /// The agent, as requests name it.
    agent: String,
    slug: String,
    /// `home`, `workspace`, or `library/NAME`.
    scope: String,
    /// For each tool: `allow`, `ask:SOURCE`, `deny:SOURCE`, or `absent` where its own file names tools
    /// and not this one; `no-host` where it may be called and works with hosts, of which none is granted.
    /// SOURCE is `definition`, `manifest`, `grants`, `parent`, `hook` or `host`.
    cells: Vec<String>,
    /// The command that unblocks it, where it is blocked and a grant would; for admins.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(flatten)]
    grants: RestBody,
}

/// All else that an agent has.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RestBody {
    /// `ready`, `ready with warnings` or `blocked`.
    status: String,
    /// Why it is not simply ready.
    reasons: Vec<String>,
    /// Its directories, as it sees them: path to access.
    mounts: BTreeMap<String, String>,
    /// Hosts: a request has to fit a rule of every list.
    hosts: Vec<crate::api::grants::HostsBody>,
    /// Names of secrets that the host joins to its requests.
    secrets: Vec<String>,
    /// Its limits.
    limits: BTreeMap<String, u64>,
    /// The seconds that it waits for a subagent before that runs on in the background; absent: to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    auto_background_seconds: Option<u64>,
    /// The requests that it does not get.
    withheld: Vec<crate::api::grants::WithheldBody>,
}

/// `GET /v1/rights`: returns a table of agents and tools, with the decision for each pair.
pub(crate) async fn read_rights(
    ctx: HandlerContext,
    QueryOf(query): QueryOf<RightsQuery>,
) -> Result<JsonAnswer<RightsBody>, Problem> {
    let described = tools::describe_tools(&ctx).await?;
    let (service, admin) = (ctx.service.clone(), ctx.caller.has_scope(RequiredScope::Admin));
    let names: Vec<String> = described.iter().map(|tool| tool.name.clone()).collect();
    // Resolved on a thread for blocking work: files are read, and every tool is decided for every
    // agent.
    let look = move |stop: &StopSignal| {
        let (host, workspace) = (service.current_host(), service.workspace());
        let seen = query.after.map(|after| move |id: &AgentId| name_of(id) == after);
        let seen = seen.as_ref().map(|seen| seen as &dyn Fn(&AgentId) -> bool);
        // Agents are resolved lazily, no more of them than this page shows.
        let agents = resolve_behind(&host, workspace, seen, stop)?;
        let (mut rows, mut bytes, mut next) = (Vec::new(), 0, None);
        for agent in agents {
            stop.check_raised()?;
            if rows.len() >= MAX_AGENTS || bytes >= PAGE_BYTES {
                next = rows.last().map(|row: &RowBody| row.agent.clone());
                break;
            }
            let row = RowBody::for_agent(&agent, &host, workspace, &names, admin);
            bytes = bytes.saturating_add(row_bytes(&row));
            rows.push(row);
        }
        Ok::<_, ResolveError>((rows, next))
    };
    let found = ctx.look_up(look).await?;
    let (agents, next) =
        found.map_err(|error| Problem::from_resolve_error("listing rights", &error))?;
    let limits = LIMITS.iter().map(|row| LimitBody {
        key: row.key,
        unit: row.unit,
        default: row.default,
        why: row.why,
    });
    let column = |tool: &tools::ToolBody| ColumnBody {
        name: tool.name.clone(),
        origin: tool.origin,
        read_only: tool.read_only,
    };
    let tools = described.iter().map(column).collect();
    Ok(JsonAnswer(RightsBody { tools, limits: limits.collect(), agents, next }))
}

impl RowBody {
    /// Decides each tool for one agent: a cell is for example `allow`, `no-host`, `absent`,
    /// `ask:SOURCE` or `deny:SOURCE`. `admin` is true if the caller may see the operator's command.
    fn for_agent(
        agent: &ResolvedAgent,
        host: &Host,
        workspace: &std::path::Path,
        tools: &[String],
        admin: bool,
    ) -> Self {
        let GrantsBody {
            status,
            reasons,
            mounts,
            hosts,
            secrets,
            limits,
            auto_background_seconds,
            withheld,
            ..
        } = GrantsBody::from_agent(agent);
        let asked = agent.definition.asked.tools.as_ref();
        let asked: Option<BTreeSet<&str>> =
            asked.map(|tools| tools.iter().map(|tool| tool.as_str()).collect());
        let cell = |(tool, answer): (&String, DecisionExplanation)| {
            let by = answer.decided_by.as_ref().map(json_word).unwrap_or_default();
            let names_others = asked.as_ref().is_some_and(|asked| !asked.contains(tool.as_str()));
            match answer.permission {
                CallPermission::Allow if agent.reaches_no_host(host, tool) => "no-host".to_owned(),
                CallPermission::Allow => "allow".to_owned(),
                CallPermission::Ask => format!("ask:{by}"),
                CallPermission::Deny
                    if names_others && answer.decided_by == Some(DecisionSource::Definition) =>
                {
                    "absent".to_owned()
                }
                CallPermission::Deny => format!("deny:{by}"),
            }
        };
        let decisions = agent.explain_tools(host, workspace, tools);
        let hint = Some(host.for_its_tenant(&agent.hint)).filter(|_| !agent.hint.is_empty());
        Self {
            agent: name_of(&agent.id),
            slug: agent.id.slug.to_string(),
            scope: scope_of_agent(&agent.id),
            cells: tools.iter().zip(decisions).map(cell).collect(),
            command: hint.filter(|_| admin),
            grants: RestBody {
                status,
                reasons,
                mounts,
                hosts,
                secrets,
                limits,
                auto_background_seconds,
                withheld,
            },
        }
    }
}
