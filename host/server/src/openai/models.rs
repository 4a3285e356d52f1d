//! `GET /v1/models`: the agents that a caller can name as `model`.

use belljar_agent::{ResolvedAgent, resolve_all_until};
use belljar_definition::{AgentReadiness, Visibility};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::http::respond::{JsonAnswer, PathOf};
use crate::openai::errors::no_model;

/// The agents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Models {
    /// `list`.
    object: &'static str,
    data: Vec<Model>,
}

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Model {
    /// Its name, as `model` takes it.
    id: String,
    /// `model`.
    object: &'static str,
    /// Not known: 0.
    created: i64,
    /// `belljar`.
    owned_by: &'static str,
}

/// `GET /v1/models`: lists them.
pub(crate) async fn list_models(ctx: HandlerContext) -> Result<JsonAnswer<Models>, Problem> {
    Ok(JsonAnswer(Models { object: "list", data: list_agents(&ctx).await? }))
}

/// `GET /v1/models/{model}`: returns one of them.
pub(crate) async fn read_model(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
) -> Result<JsonAnswer<Model>, Problem> {
    let found = list_agents(&ctx).await?.into_iter().find(|model| model.id == id);
    found.map(JsonAnswer).ok_or_else(|| no_model(&id))
}

/// The agents for people that are ready to run. Agents of equal slug are listed by scope and slug.
async fn list_agents(ctx: &HandlerContext) -> Result<Vec<Model>, Problem> {
    let (host, workspace) = (ctx.service.current_host(), ctx.service.workspace().to_owned());
    let all = ctx.look_up(move |stop| resolve_all_until(&host, &workspace, stop)).await?;
    let all: Vec<ResolvedAgent> =
        all.map_err(|error| Problem::from_resolve_error("looking for agents", &error))?;
    let open = all.iter().filter(|agent| {
        agent.definition.visibility == Visibility::UserFacing
            && !matches!(agent.status, AgentReadiness::Blocked { .. })
    });
    let model = |agent: &ResolvedAgent| {
        let same = all.iter().filter(|other| other.id.slug == agent.id.slug).count();
        let id = if same > 1 { agent.id.to_string() } else { agent.id.slug.to_string() };
        Model { id, object: "model", created: 0, owned_by: "belljar" }
    };
    Ok(open.map(model).collect())
}
