//! `GET /v1/explain`: whether an agent may use a tool on a target, with the source that decided.

use belljar_agent::{RightsAdvice, UnanswerableQuestion};
use belljar_policy::SourceVote;
use belljar_work::StopSignal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::grants::find_agent;
use crate::api::scope::name_of;
use crate::api::turn::check_name;
use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::http::respond::{JsonAnswer, QueryOf};
use crate::routes::RequiredScope;

/// Most bytes of a tool's name, and of a target.
const MAX_TOOL: usize = 200;
const MAX_TARGET: usize = 4_096;

/// The query of `GET /v1/explain`: an agent, a tool and a target.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainQuery {
    agent: String,
    tool: String,
    target: Option<String>,
    write: Option<bool>,
}

/// The answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explained {
    /// The agent, as requests name it.
    agent: String,
    /// The tool.
    tool: String,
    /// The path or URL; absent = the call itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// `allow`, `ask` or `deny`.
    permission: String,
    /// The first source that refuses, or that asks: `definition`, `manifest`, `grants`, `parent`,
    /// `hook` or `host`; absent where all allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    /// The word of each source.
    votes: Vec<VoteBody>,
    /// The lines of `belljar.toml` that would allow it, where the grants are what is missing; for
    /// admins.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<String>,
    /// The command that would write them, for the operator's own terminal; for admins.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The section that holds for each agent of its library.
    #[serde(skip_serializing_if = "Option::is_none")]
    library_section: Option<String>,
}

/// The word of one source.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VoteBody {
    /// Who.
    source: String,
    /// `allows`, `asks`, `refuses` or `says nothing`.
    verdict: String,
    /// Why, in a few words.
    why: String,
}

/// `GET /v1/explain`: answers whether a call would be allowed, and which rule decides.
pub(crate) async fn read_explanation(
    ctx: HandlerContext,
    QueryOf(query): QueryOf<ExplainQuery>,
) -> Result<JsonAnswer<Explained>, Problem> {
    let ExplainQuery { agent, tool, target, write } = query;
    if tool.len() > MAX_TOOL {
        return Err(Problem::not_found("tool", &tool));
    }
    if target.as_ref().is_some_and(|target| target.chars().count() > MAX_TARGET) {
        return Err(Problem::invalid(format!("`target` has more than {MAX_TARGET} characters")));
    }
    let Some(name) = check_name("agent", Some(agent))? else {
        return Err(Problem::invalid("`agent` is missing"));
    };
    let agent = find_agent(&ctx, name).await?;
    let (service, asked) = (ctx.service.clone(), (tool.clone(), target.clone()));
    let look = move |_: &StopSignal| {
        let (tool, target) = asked;
        let (host, workspace) = (service.current_host(), service.workspace());
        let advice =
            agent.rights_advice(&host, workspace, &tool, target.as_deref(), write == Some(true));
        (name_of(&agent.id), advice)
    };
    let (agent, advice) = ctx.look_up(look).await?;
    let RightsAdvice { answer, grant, command, section } = advice.map_err(|error| match error {
        UnanswerableQuestion::NoTool => Problem::not_found("tool", &tool),
        other @ (UnanswerableQuestion::Target { .. } | UnanswerableQuestion::Leaves(_)) => {
            Problem::invalid(other.to_string())
        }
    })?;
    // Only an admin sees the operator's command that would allow the call.
    let admin = ctx.caller.has_scope(RequiredScope::Admin);
    Ok(JsonAnswer(Explained {
        agent,
        tool,
        target,
        permission: json_word(&answer.permission),
        decided_by: answer.decided_by.as_ref().map(json_word),
        votes: answer.votes.iter().map(VoteBody::from_vote).collect(),
        grant: grant.filter(|_| admin),
        command: command.filter(|_| admin),
        library_section: section,
    }))
}

impl VoteBody {
    fn from_vote(vote: &SourceVote) -> Self {
        let (verdict, why) = (vote.stance.to_string(), vote.why.clone());
        Self { source: json_word(&vote.source), verdict, why }
    }
}

/// The JSON text of a value that serializes to a single word, without the quotes.
pub(crate) fn json_word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().map(str::to_owned).unwrap_or_default()
}
