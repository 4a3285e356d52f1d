//! Agents of a tenant: agents of files, and agents stored here by admins.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_agent::{ResolvedAgent, resolve_all_until};
use belljar_catalogue::read_bounded;
use belljar_definition::{AgentScope, MAX_DEFINITION, Slug};
use belljar_store::{StoreError, StoredAgent};
use belljar_work::StopSignal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::agent_files::{BrokenBody, DraftBody, find_unused};
use crate::api::agent_text::{AgentText, DefinitionBody, DiagnosticBody, read_text};
use crate::api::scope::{InScope, KEPT, scope_of_agent};
use crate::app::HandlerContext;
use crate::http::page::PAGE_BYTES;
use crate::http::problem::{Problem, ProblemKind};
use crate::http::respond::{JsonAnswer, JsonBody, PathOf, QueryOf, UnchangedMark, json_as};
use crate::routes::RequiredScope;

/// A name that no agent may have, because the path `/v1/agents/validate` is an operation.
const RESERVED: &str = "validate";

/// An agent to keep.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAgentBody {
    /// Its name: lower-case letters and digits, joined by `-`.
    #[schema(max_length = 64, pattern = "^[a-z0-9]+(-[a-z0-9]+)*$")]
    slug: String,
    /// The markdown file.
    text: String,
}

/// The next version of an agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentTextBody {
    /// The markdown file.
    text: String,
}

/// An agent to look at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValidateBody {
    /// The name that it would have. Absent: what its text says.
    slug: Option<String>,
    /// The markdown file.
    text: String,
}

/// The agents of a tenant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Agents {
    agents: Vec<AgentSummary>,
    /// The value to send as `after` for the next ones; absent where there are none. A page ends
    /// behind 2 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// Files that cannot be understood as agents, at most 200; on the first page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<BrokenBody>,
    /// Agents that wait in the home until the operator takes them into use, at most 200; on the first
    /// page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drafts: Vec<DraftBody>,
}

/// The query of `GET /v1/agents`: filter and page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentsQuery {
    after: Option<String>,
    scope: Option<String>,
}

/// The query that chooses one of several agents with the same name, by its scope.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentQuery {
    scope: Option<String>,
}

/// An agent in short. Its texts are its author's.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentSummary {
    /// Its name.
    slug: String,
    /// `home`, `workspace`, or `library/NAME`. One that is kept here has `library/api`, and is called
    /// `library/api/NAME` wherever a request names an agent.
    scope: String,
    /// When it was last changed, in milliseconds since 1970; of those that are kept here.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<i64>,
    /// The definition in its file, with what it is given; absent where its text cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<DefinitionBody>,
}

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentBody {
    #[serde(flatten)]
    summary: AgentSummary,
    /// Its text, as far as it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Findings that its author should know.
    diagnostics: Vec<DiagnosticBody>,
}

/// The agent that a text would be.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Validated {
    /// Whether it could be kept.
    valid: bool,
    /// The definition in it, with what it would be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<DefinitionBody>,
    /// Findings that its author should know.
    diagnostics: Vec<DiagnosticBody>,
}

/// That an agent is gone.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentDeleted {
    /// `true`.
    deleted: bool,
}

/// `GET /v1/agents`: returns a page of agents, and with the first page the files that cannot be used as
/// agents.
pub(crate) async fn list_agents(
    ctx: HandlerContext,
    QueryOf(query): QueryOf<AgentsQuery>,
) -> Result<JsonAnswer<Agents>, Problem> {
    let wanted = InScope::from_word(query.scope)?;
    let slugs = match wanted.includes_scope(KEPT) {
        true => ctx.store().agent_slugs().await?,
        false => Vec::new(),
    };
    let on_disk = on_disk(&ctx).await?;
    let (wanted, broken, drafts) = unused_files(&ctx, wanted, query.after.is_none()).await?;
    // An agent stored by an API call is in the catalogue too, if its text is usable; so stored agents
    // are left out here and listed by name below.
    let is_listed = |agent: &&ResolvedAgent| {
        let scope = scope_of_agent(&agent.id);
        scope != KEPT && wanted.includes_scope(&scope)
    };
    let files = on_disk.iter().filter(is_listed).map(ListedAgent::File);
    let all: Vec<ListedAgent> =
        files.chain(slugs.iter().map(|slug| ListedAgent::Kept(slug))).collect();
    // If the agent named by `after` no longer exists, the page is empty.
    let seen = query.after.map_or(0, |after| {
        all.iter().position(|one| one.agent_name() == after).map_or(all.len(), |at| at + 1)
    });
    let (mut agents, mut bytes, mut last) = (Vec::new(), 0, None);
    for one in all.iter().skip(seen) {
        // INV-115: reads one stored text at a time, and stops when the page is full.
        if bytes >= PAGE_BYTES {
            return Ok(JsonAnswer(Agents { agents, next: last, broken, drafts }));
        }
        last = Some(one.agent_name());
        let Some(summary) = one.load_summary(&ctx).await? else { continue };
        bytes = bytes.saturating_add(row_bytes(&summary));
        agents.push(summary);
    }
    Ok(JsonAnswer(Agents { agents, next: None, broken, drafts }))
}

/// Lists broken files and drafts if this is the first page of agents. Reads files, so this runs on a
/// thread for blocking work.
async fn unused_files(
    ctx: &HandlerContext,
    wanted: InScope,
    first: bool,
) -> Result<(InScope, Vec<BrokenBody>, Vec<DraftBody>), Problem> {
    if !first {
        return Ok((wanted, Vec::new(), Vec::new()));
    }
    let (host, admin) = (ctx.service.current_host(), ctx.caller.has_scope(RequiredScope::Admin));
    let look = move |_: &StopSignal| {
        let (broken, drafts) = find_unused(&host, &wanted, admin);
        (wanted, broken, drafts)
    };
    ctx.look_up(look).await
}

/// An entry of the list of agents.
enum ListedAgent<'a> {
    /// An agent from a file, or built into the program.
    File(&'a ResolvedAgent),
    /// An agent stored by an API call, by its slug.
    Kept(&'a str),
}

impl ListedAgent<'_> {
    /// The agent's scope and slug, for example `home/scout`. A caller sends this name as `after` to get
    /// the next page.
    fn agent_name(&self) -> String {
        match self {
            Self::File(agent) => format!("{}/{}", scope_of_agent(&agent.id), agent.id.slug),
            Self::Kept(slug) => format!("{KEPT}/{slug}"),
        }
    }

    /// Reads the agent's entry for the list; `None` if the agent was deleted meanwhile.
    async fn load_summary(&self, ctx: &HandlerContext) -> Result<Option<AgentSummary>, Problem> {
        match self {
            Self::File(agent) => Ok(Some(AgentSummary::from_file(ctx, agent))),
            Self::Kept(slug) => {
                let Some(row) = ctx.store().find_agent(slug).await? else { return Ok(None) };
                let text = read_text(ctx, &row.slug, &row.text).await?;
                Ok(Some(AgentSummary::from_stored(&row, text.definition)))
            }
        }
    }
}

/// The bytes of a row as JSON, to bound the size of a page.
pub(crate) fn row_bytes(row: &impl Serialize) -> i64 {
    serde_json::to_vec(row).map_or(0, |json| i64::try_from(json.len()).unwrap_or(i64::MAX))
}

/// `GET /v1/agents/{slug}`: returns one agent with its text. If several agents have the slug, `scope`
/// chooses one; without `scope`, an agent stored by an API call is preferred to one of a file.
pub(crate) async fn read_agent(
    ctx: HandlerContext,
    PathOf(slug): PathOf<String>,
    QueryOf(query): QueryOf<AgentQuery>,
) -> Result<Response, Problem> {
    let (slug, wanted) = (parse_slug(&slug)?, InScope::from_word(query.scope)?);
    if wanted.includes_scope(KEPT)
        && let Some(row) = ctx.store().find_agent(slug.as_str()).await?
    {
        return stored_response(&ctx, row, StatusCode::OK).await;
    }
    let on_disk = on_disk(&ctx).await?;
    let is_it = |agent: &&ResolvedAgent| {
        agent.id.slug == slug && wanted.includes_scope(&scope_of_agent(&agent.id))
    };
    match on_disk.iter().find(is_it) {
        None => Err(Problem::not_found("agent", slug.as_str())),
        Some(agent) => Ok(JsonAnswer(AgentBody {
            summary: AgentSummary::from_file(&ctx, agent),
            text: text_of(&ctx, agent).await,
            body: Some(agent.definition.body.clone()),
            diagnostics: Vec::new(),
        })
        .into_response()),
    }
}

/// `POST /v1/agents`: stores a new agent.
pub(crate) async fn create_agent(
    ctx: HandlerContext,
    JsonBody(body): JsonBody<NewAgentBody>,
) -> Result<Response, Problem> {
    let slug = Slug::try_from(body.slug).map_err(|error| {
        Problem::invalid(error.to_string())
            .with_hint("a name is lower-case letters and digits, joined by single `-`")
    })?;
    let taken = |why: &str| {
        Problem::new(ProblemKind::Taken, format!("agent `{slug}` {why}"))
            .with_hint("choose another name")
    };
    if slug.as_str() == RESERVED {
        return Err(taken("cannot be called that"));
    }
    // A name that an agent file already has is refused, because the file would be preferred to the
    // stored agent.
    let file = on_disk(&ctx).await?.into_iter().find(|agent| agent.id.slug == slug);
    if file.is_some_and(|agent| !matches!(agent.id.scope, AgentScope::Library(_))) {
        return Err(taken("is there already"));
    }
    check_usable(&ctx, &slug, &body.text).await?;
    ctx.service.check_room(body.text.len()).await?;
    let now = ctx.app.now_millis();
    match ctx.store().save_agent(slug.as_str(), &body.text, now, None).await {
        Ok(_) => {}
        Err(StoreError::Conflict { .. }) => return Err(taken("is there already")),
        Err(error) => return Err(error.into()),
    }
    saved_response(&ctx, &slug, StatusCode::CREATED).await
}

/// `PUT /v1/agents/{slug}`: replaces a stored agent's text if `If-Match` names the stored version. An
/// unchanged text is not stored again.
pub(crate) async fn replace_agent(
    ctx: HandlerContext,
    PathOf(slug): PathOf<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<AgentTextBody>,
) -> Result<Response, Problem> {
    let slug = parse_slug(&slug)?;
    let Some(row) = ctx.store().find_agent(slug.as_str()).await? else {
        return Err(Problem::not_found("agent", slug.as_str()));
    };
    let expected = if_match(&headers)?;
    check_usable(&ctx, &slug, &body.text).await?;
    // INV-413: an unchanged text is answered as no change.
    if row.updated == expected && row.text == body.text {
        let mut response = stored_response(&ctx, row, StatusCode::OK).await?;
        response.extensions_mut().insert(UnchangedMark);
        return Ok(response);
    }
    ctx.service.check_room(body.text.len()).await?;
    let now = ctx.app.now_millis();
    ctx.store().save_agent(slug.as_str(), &body.text, now, Some(expected)).await?;
    saved_response(&ctx, &slug, StatusCode::OK).await
}

/// `DELETE /v1/agents/{slug}`: deletes a stored agent.
pub(crate) async fn delete_agent(
    ctx: HandlerContext,
    PathOf(slug): PathOf<String>,
) -> Result<JsonAnswer<AgentDeleted>, Problem> {
    let slug = parse_slug(&slug)?;
    match ctx.store().delete_agent(slug.as_str()).await? {
        true => {
            ctx.service.reload_agents().await?;
            Ok(JsonAnswer(AgentDeleted { deleted: true }))
        }
        false => Err(Problem::not_found("agent", slug.as_str())),
    }
}

/// `POST /v1/agents/validate`: parses an agent's text and returns its findings; nothing is stored.
pub(crate) async fn validate_agent(
    ctx: HandlerContext,
    JsonBody(body): JsonBody<ValidateBody>,
) -> Result<JsonAnswer<Validated>, Problem> {
    let slug = match body.slug {
        Some(slug) => parse_slug(&slug)?.to_string(),
        None => "agent".to_owned(),
    };
    let AgentText { definition, diagnostics, .. } = read_text(&ctx, &slug, &body.text).await?;
    Ok(JsonAnswer(Validated { valid: definition.is_some(), definition, diagnostics }))
}

/// Parses an agent's slug in a path. A malformed slug is answered like an unknown agent.
fn parse_slug(slug: &str) -> Result<Slug, Problem> {
    Slug::from_written(slug).ok_or_else(|| Problem::not_found("agent", slug))
}

/// Parses the version of the stored agent to replace, for example `If-Match: "1732800000000"`.
fn if_match(headers: &HeaderMap) -> Result<i64, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Err(Problem::new(ProblemKind::NoCondition, "`If-Match` is missing")
            .with_hint("send the agent's `updated` in quotes: `If-Match: \"1763790000000\"`"));
    };
    let text = value.to_str().unwrap_or_default().trim().trim_matches('"');
    text.parse()
        .map_err(|_| Problem::new(ProblemKind::Changed, "`If-Match` names no version of it"))
}

/// Refuses a text that is no usable agent, or whose name is not `slug`.
async fn check_usable(ctx: &HandlerContext, slug: &Slug, text: &str) -> Result<(), Problem> {
    let read = read_text(ctx, slug.as_str(), text).await?;
    match read.slug {
        Some(own) if own == *slug => Ok(()),
        Some(own) => {
            let detail = format!("the text calls its agent `{own}`, and it is to be `{slug}`");
            Err(Problem::new(ProblemKind::Agent, detail)
                .with_hint("use the same name in both places"))
        }
        None => Err(read.to_problem()),
    }
}

/// Lists the agents of the catalogue, which come mostly from files. Reads them on a thread, so other requests
/// do not wait.
async fn on_disk(ctx: &HandlerContext) -> Result<Vec<ResolvedAgent>, Problem> {
    let service = ctx.service.clone();
    let look = move |stop: &StopSignal| {
        resolve_all_until(&service.current_host(), service.workspace(), stop)
    };
    let found = ctx.look_up(look).await?;
    found.map_err(|error| Problem::from_resolve_error("looking for agents", &error))
}

/// Reads the text of an agent's file; `None` if the agent is built into the program, or if its file is
/// a link or missing.
async fn text_of(ctx: &HandlerContext, agent: &ResolvedAgent) -> Option<String> {
    let path = agent.definition.path.clone();
    let read = move |_: &StopSignal| {
        // A symbolic link is not followed: it may lead anywhere, and files of a workspace are a
        // stranger's.
        let plain = std::fs::symlink_metadata(&path).ok()?.is_file();
        let bytes = plain.then(|| read_bounded(&path, MAX_DEFINITION as u64).ok())??;
        String::from_utf8(bytes).ok()
    };
    ctx.look_up(read).await.ok().flatten()
}

/// Loads the agents anew after a change, and answers with the stored agent.
async fn saved_response(
    ctx: &HandlerContext,
    slug: &Slug,
    status: StatusCode,
) -> Result<Response, Problem> {
    ctx.service.reload_agents().await?;
    match ctx.store().find_agent(slug.as_str()).await? {
        Some(row) => stored_response(ctx, row, status).await,
        // Without a row, the agent was deleted meanwhile.
        None => Err(Problem::not_found("agent", slug.as_str())),
    }
}

/// The answer with a stored agent: its parsed definition, its text, and its version as `ETag`.
async fn stored_response(
    ctx: &HandlerContext,
    row: StoredAgent,
    status: StatusCode,
) -> Result<Response, Problem> {
    let read = read_text(ctx, &row.slug, &row.text).await?;
    let tag = HeaderValue::from_str(&format!("\"{}\"", row.updated));
    let body = AgentBody {
        summary: AgentSummary::from_stored(&row, read.definition),
        body: read.body,
        diagnostics: read.diagnostics,
        text: Some(row.text),
    };
    let mut response = json_as(status, "application/json", &body);
    if let Ok(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

impl AgentSummary {
    /// The entry in the list for an agent of the catalogue.
    fn from_file(ctx: &HandlerContext, agent: &ResolvedAgent) -> Self {
        let admin = ctx.caller.has_scope(RequiredScope::Admin);
        let definition = DefinitionBody::with_command(agent, &ctx.service.current_host(), admin);
        Self {
            slug: agent.id.slug.to_string(),
            scope: scope_of_agent(&agent.id),
            updated: None,
            definition: Some(definition),
        }
    }

    fn from_stored(row: &StoredAgent, definition: Option<DefinitionBody>) -> Self {
        let updated = Some(row.updated);
        Self { slug: row.slug.clone(), scope: KEPT.to_owned(), updated, definition }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_stands_in_quotes_or_without() {
        let of = |value: &str| {
            if_match(&HeaderMap::from_iter([(header::IF_MATCH, value.parse().unwrap())]))
        };
        assert_eq!(of("\"12\"").unwrap(), 12);
        assert_eq!(of("12").unwrap(), 12);
        assert_eq!(of("*").unwrap_err().kind(), ProblemKind::Changed);
        assert_eq!(if_match(&HeaderMap::new()).unwrap_err().kind(), ProblemKind::NoCondition);
    }
}
