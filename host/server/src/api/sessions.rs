//! Sessions, and their messages, subagents and receipts: lists, reads and deletes them.

use std::collections::BTreeSet;

use axum::response::{IntoResponse as _, Response};
use belljar_store::{
    SessionFilter, SessionKind, StoreError, StoredMessage, StoredReceipt, StoredSession,
    SubagentRecord,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::agents::row_bytes;
use crate::api::csv;
use crate::app::HandlerContext;
use crate::http::page::{MAX_ROWS, PAGE_BYTES, PageLimit, next_of, page_of};
use crate::http::problem::{Problem, ProblemKind};
use crate::http::respond::{ChangeAnswer, JsonAnswer, PathOf, QueryOf};

/// The most bytes of a search text.
const MAX_SEARCH: usize = 200;

/// The most messages on a page with full contents, because each may be as large as a model's context.
const MAX_FULL: u32 = 20;

/// The fields of a message's stored metadata that the API shows; it hides all other fields.
const OF_MESSAGES: &[&str] = &[
    // Fields in the metadata of a person's message: the settings of the turn.
    "actor",
    "limits",
    "partial",
    "history",
    // Fields in the metadata of an agent's message.
    "run",
    "agent",
    "model",
    "error",
    "usage",
    "total",
    "rest",
    "subagents",
    "batches",
];

/// The fields of a subagent's stored result that the API shows.
const OF_SUBAGENTS: &[&str] = &[
    "path",
    "spawn_index",
    "output",
    "step",
    "usage",
    "total",
    "findings",
    "paths_read",
    "paths_written",
    "warnings",
    "rest",
];

/// The query of a list: how many rows, and before which row.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    limit: Option<u32>,
    before: Option<String>,
    q: Option<String>,
    kind: Option<String>,
    running: Option<bool>,
}

/// The query of `GET /v1/sessions/{id}/messages`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessagesQuery {
    limit: Option<u32>,
    before: Option<i64>,
    full: Option<bool>,
}

/// The query of `GET /v1/sessions/{id}/subagents`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubagentsQuery {
    message: Option<String>,
    limit: Option<u32>,
    after: Option<String>,
}

/// The query of `GET /v1/sessions/{id}/receipts`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReceiptsQuery {
    message: Option<String>,
    limit: Option<u32>,
    before: Option<String>,
    format: Option<ReceiptFormat>,
}

/// The format of an answer with receipts: JSON, or a table (CSV).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReceiptFormat {
    Json,
    Csv,
}

/// Sessions, those that were last added to first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Sessions {
    sessions: Vec<SessionBody>,
    /// The value to send as `before` for the next ones; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionBody {
    /// Its id.
    id: String,
    /// The beginning of what was said first. Foreign text.
    title: String,
    /// The agent's identity.
    agent: String,
    /// The model; empty = the agent's own choice.
    model: String,
    /// The beginning of it: `chat`, `run` or `team` on the command line, `api` here.
    kind: String,
    /// Whether a turn of it runs now.
    running: bool,
    /// When it began, in milliseconds since 1970.
    created: i64,
    /// When something was last added, in milliseconds since 1970.
    updated: i64,
}

/// The latest messages of a session, the oldest of them first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Messages {
    messages: Vec<MessageBody>,
    /// The summary that the model is sent in the place of the older ones; absent where none was
    /// summarised.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<SummaryBody>,
    /// The value to send as `before` for older ones; absent where there are none. A page ends
    /// behind 2 MiB of what is stored, with fewer messages than `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<i64>,
}

/// A summary of the older messages of a session. Foreign text: a model wrote it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SummaryBody {
    /// The place of the last message that it stands for.
    upto: i64,
    /// The text of the summary.
    text: String,
    /// When it was made, in milliseconds since 1970.
    created: i64,
}

/// A message. Its texts are foreign.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageBody {
    /// Its id.
    id: String,
    /// Its place in the session, from 1.
    place: i64,
    /// `user` or `assistant`.
    role: String,
    /// `in_flight`, `completed`, `partial`, `failed`, `cancelled` or `interrupted`.
    status: String,
    /// The words of the person, or the conclusion of the agent.
    text: String,
    /// With `full`: all that the turn added to the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Value>,
    /// Known facts about it: model, usage, counts of subagents.
    metadata: Value,
    /// Who cancelled the turn, by the name in the audit log: `key:<id>`, `login:<id>` or `local`;
    /// absent where nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_by: Option<String>,
    /// When it was added, in milliseconds since 1970.
    created: i64,
    /// When it was last changed, in milliseconds since 1970.
    updated: i64,
}

/// The subagents of a session, by turn and in their order there.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Subagents {
    subagents: Vec<SubagentBody>,
    /// The value to send as `after` for the next ones; absent where there are none. A page ends
    /// behind 2 MiB of what is stored, with fewer than `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A subagent. Its texts are foreign.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SubagentBody {
    id: String,
    parent_message_id: String,
    parent_tool_call_id: String,
    parent_agent: String,
    parent_subagent_id: Option<String>,
    depth: i64,
    chain_id: String,
    /// `preset`, `fork` or `team`.
    source: String,
    agent: String,
    display_name: String,
    goal: String,
    context: Option<String>,
    /// `queued`, `running`, `completed`, `partial`, `failed` or `cancelled`.
    status: String,
    model: String,
    tool_names: Vec<String>,
    summary: String,
    result: Value,
    /// Who cancelled it: a caller, by the name in the audit log; `parent`: the agent above it asked
    /// for its end, or ended without it; `limit`: a limit of the agent above it was used up. Absent
    /// where nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_by: Option<String>,
    error: Option<String>,
    input_tokens: i64,
    cached_tokens: i64,
    output_tokens: i64,
    fuel: i64,
    sort_order: i64,
    created: i64,
    started: Option<i64>,
    ended: Option<i64>,
}

/// The latest receipts of a session, the oldest of them first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Receipts {
    receipts: Vec<ReceiptBody>,
    /// The value to send as `before` for older ones; absent where there are none. A page ends
    /// behind 2 MiB of what is stored, with fewer than `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The record of one tool call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptBody {
    message: String,
    id: String,
    agent: String,
    step: i64,
    call_id: String,
    tool: String,
    ok: bool,
    ending: String,
    fuel: i64,
    micros: i64,
    /// The whole receipt.
    body: Value,
    created: i64,
}

/// How much was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deleted {
    deleted: u64,
}

/// `GET /v1/sessions`: lists the tenant's sessions, newest first.
pub(crate) async fn list_sessions(
    ctx: HandlerContext,
    QueryOf(query): QueryOf<PageQuery>,
) -> Result<JsonAnswer<Sessions>, Problem> {
    let limit = PageLimit::from_query(query.limit)?;
    let PageQuery { before, q, kind, running: runs, .. } = query;
    let title = q.as_deref().map(str::trim).filter(|title| !title.is_empty());
    if title.is_some_and(|title| title.chars().count() > MAX_SEARCH) {
        return Err(Problem::invalid(format!("`q` has more than {MAX_SEARCH} characters")));
    }
    let kind = kind.map(|kind| kind.parse::<SessionKind>()).transpose();
    let kind = kind.map_err(|_| Problem::invalid("`kind` is no kind of session"))?;
    let running = running_sessions(&ctx);
    if runs == Some(true) {
        let rows = those_that_run(&ctx, &running, title, kind).await?;
        let (rows, next) = page_behind(rows, before.as_deref(), limit);
        let sessions =
            rows.into_iter().map(|row| SessionBody::from_stored(row, &running)).collect();
        return Ok(JsonAnswer(Sessions { sessions, next }));
    }
    let (store, before, most) = (ctx.store(), before.as_deref(), limit.and_one());
    let rows = match (title, kind) {
        (None, None) => store.sessions_page(before, most).await?,
        (title, kind) => store.sessions_found(&SessionFilter { title, kind }, before, most).await?,
    };
    let (rows, next) = page_of(rows, limit, |session| session.id.clone());
    let sessions =
        rows.into_iter().map(|session| SessionBody::from_stored(session, &running)).collect();
    Ok(JsonAnswer(Sessions { sessions, next }))
}

/// `GET /v1/sessions/{id}`: returns one session.
pub(crate) async fn read_session(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
) -> Result<JsonAnswer<SessionBody>, Problem> {
    let session = ctx.find_session(&id).await?;
    Ok(JsonAnswer(SessionBody::from_stored(session, &running_sessions(&ctx))))
}

/// `DELETE /v1/sessions/{id}`: deletes a session with its contents.
pub(crate) async fn delete_session(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
) -> Result<ChangeAnswer<Deleted>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    if running_sessions(&ctx).contains(&session) {
        return Err(busy_problem(&format!("session `{session}` is answering")));
    }
    let deleted = ctx.service.delete_session(&session).await?;
    Ok(ChangeAnswer { body: Deleted { deleted: deleted.into() }, changed: deleted })
}

/// `DELETE /v1/sessions`: deletes all sessions of the tenant.
pub(crate) async fn delete_all(ctx: HandlerContext) -> Result<ChangeAnswer<Deleted>, Problem> {
    if let Some(session) = running_sessions(&ctx).first() {
        return Err(busy_problem(&format!(
            "session `{session}` is answering, and maybe others are"
        )));
    }
    let deleted = ctx.service.delete_all().await?;
    Ok(ChangeAnswer { body: Deleted { deleted }, changed: deleted > 0 })
}

/// `GET /v1/sessions/{id}/messages`: returns a page of messages.
pub(crate) async fn list_messages(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<MessagesQuery>,
) -> Result<JsonAnswer<Messages>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    let full = query.full == Some(true);
    let limit = match query.limit {
        None if full => PageLimit::from_query(Some(MAX_FULL))?,
        rows => PageLimit::from_query(rows)?,
    };
    let limit = if full { limit.at_most(MAX_FULL) } else { limit };
    let page = ctx.store().messages_page(&session, query.before, limit.rows(), PAGE_BYTES).await?;
    let next = next_of(page.rows.first(), page.more, |message| message.sort_order);
    let messages =
        page.rows.into_iter().map(|message| MessageBody::from_stored(message, full)).collect();
    let summary = ctx.store().latest_compaction(&session).await?.map(|kept| SummaryBody {
        upto: kept.upto_sort_order,
        text: kept.text,
        created: kept.created,
    });
    Ok(JsonAnswer(Messages { messages, summary, next }))
}

/// `GET /v1/sessions/{id}/subagents`: lists the runs of subagents.
pub(crate) async fn list_subagents(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<SubagentsQuery>,
) -> Result<JsonAnswer<Subagents>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    let SubagentsQuery { message, limit, after } = query;
    let (limit, message, after) =
        (PageLimit::from_query(limit)?.rows(), message.as_deref(), after.as_deref());
    let page = ctx.store().subagents_page(&session, message, after, limit, PAGE_BYTES).await?;
    let next = next_of(page.rows.last(), page.more, |subagent| subagent.id.clone());
    let subagents = page.rows.into_iter().map(SubagentBody::from_record).collect();
    Ok(JsonAnswer(Subagents { subagents, next }))
}

/// `GET /v1/sessions/{id}/receipts`: returns a page of receipts of tool calls.
pub(crate) async fn list_receipts(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<ReceiptsQuery>,
) -> Result<Response, Problem> {
    let session = ctx.find_session(&id).await?.id;
    let ReceiptsQuery { message, limit, before, format } = query;
    if format == Some(ReceiptFormat::Csv) {
        return receipts_table(&ctx, &session, message.as_deref(), before).await;
    }
    let (limit, message, before) =
        (PageLimit::from_query(limit)?.rows(), message.as_deref(), before.as_deref());
    let page = ctx.store().receipts_page(&session, message, before, limit, PAGE_BYTES).await?;
    let next = next_of(page.rows.first(), page.more, |stored| stored.receipt.id.clone());
    let receipts = page.rows.into_iter().map(ReceiptBody::from_stored).collect();
    Ok(JsonAnswer(Receipts { receipts, next }).into_response())
}

/// Returns receipts as one CSV file, of at most the bytes of a page.
async fn receipts_table(
    ctx: &HandlerContext,
    session: &str,
    message: Option<&str>,
    mut before: Option<String>,
) -> Result<Response, Problem> {
    let (mut rows, mut bytes, mut more) = (Vec::new(), 0, true);
    while more && bytes < PAGE_BYTES {
        let (from, left) = (before.as_deref(), PAGE_BYTES - bytes);
        let page = ctx.store().receipts_page(session, message, from, MAX_ROWS, left).await?;
        more = page.more;
        before = page.rows.first().map(|stored| stored.receipt.id.clone());
        bytes = page.rows.iter().fold(bytes, |bytes, row| bytes.saturating_add(row_bytes(row)));
        rows.splice(0..0, page.rows);
        if before.is_none() {
            break;
        }
    }
    Ok(csv::table_response(ctx.app.place_hider(), &rows, more))
}

/// Lists the sessions that have a running turn.
async fn those_that_run(
    ctx: &HandlerContext,
    running: &BTreeSet<String>,
    title: Option<&str>,
    kind: Option<SessionKind>,
) -> Result<Vec<StoredSession>, Problem> {
    let title = title.map(str::to_ascii_lowercase);
    let mut found = Vec::new();
    for id in running {
        let session = match ctx.store().read_session(id).await {
            Ok(session) => session,
            // A session without a row is not stored yet, because its first turn still waits for a jar.
            Err(StoreError::NotFound { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let fits = |title: &String| session.title.to_ascii_lowercase().contains(title.as_str());
        if title.as_ref().is_none_or(fits) && kind.is_none_or(|kind| session.kind == kind) {
            found.push(session);
        }
    }
    found.sort_by(|one, other| (other.updated, &other.id).cmp(&(one.updated, &one.id)));
    Ok(found)
}

/// Keeps the rows after the row with the id `before`, at most one page of them.
fn page_behind(
    mut rows: Vec<StoredSession>,
    before: Option<&str>,
    limit: PageLimit,
) -> (Vec<StoredSession>, Option<String>) {
    if let Some(before) = before {
        // If no row has this id, the page is empty.
        let seen = rows.iter().position(|row| row.id == before);
        rows.drain(..seen.map_or(rows.len(), |at| at + 1));
    }
    page_of(rows, limit, |session| session.id.clone())
}

fn running_sessions(ctx: &HandlerContext) -> BTreeSet<String> {
    ctx.service.running_turns().into_iter().map(|turn| turn.session).collect()
}

fn busy_problem(why: &str) -> Problem {
    Problem::new(ProblemKind::Busy, why).with_hint("cancel the turn, or wait for its end")
}

impl SessionBody {
    fn from_stored(session: StoredSession, running: &BTreeSet<String>) -> Self {
        // The workspace is a path of the host, which remote callers must not see.
        let StoredSession { id, title, agent, workspace: _, model, kind, created, updated } =
            session;
        let (agent, kind) = (without_path(&agent), kind.as_str().to_owned());
        Self { running: running.contains(&id), id, title, agent, model, kind, created, updated }
    }
}

/// The id of an agent without the path of its workspace on the host.
pub(crate) fn without_path(agent: &str) -> String {
    match (agent.starts_with("workspace:"), agent.rsplit_once('/')) {
        (true, Some((_, slug))) => format!("workspace/{slug}"),
        _ => agent.to_owned(),
    }
}

impl MessageBody {
    fn from_stored(message: StoredMessage, full: bool) -> Self {
        let StoredMessage { id, sort_order, role, status, mut content, metadata, created, updated } =
            message;
        let mut part = |name: &str| content.get_mut(name).map(Value::take);
        Self {
            id,
            place: sort_order,
            role: role.as_str().to_owned(),
            status: status.as_str().to_owned(),
            text: part("text")
                .and_then(|text| text.as_str().map(str::to_owned))
                .unwrap_or_default(),
            messages: part("messages").filter(|_| full).map(super::reasoning::without_reasoning),
            cancelled_by: canceller(&metadata),
            metadata: visible_parts(metadata, OF_MESSAGES),
            created,
            updated,
        }
    }
}

impl SubagentBody {
    fn from_record(record: SubagentRecord) -> Self {
        Self {
            id: record.id,
            parent_message_id: record.parent_message_id,
            parent_tool_call_id: record.parent_tool_call_id,
            parent_agent: record.parent_agent,
            parent_subagent_id: record.parent_subagent_id,
            depth: record.depth,
            chain_id: record.chain_id,
            source: record.source.as_str().to_owned(),
            agent: record.agent,
            display_name: record.display_name,
            goal: record.goal,
            context: record.context,
            status: record.status.as_str().to_owned(),
            model: record.model,
            tool_names: record.tool_names,
            summary: record.summary,
            cancelled_by: canceller(&record.result),
            result: visible_parts(record.result, OF_SUBAGENTS),
            error: record.error,
            input_tokens: record.input_tokens,
            cached_tokens: record.cached_tokens,
            output_tokens: record.output_tokens,
            fuel: record.fuel,
            sort_order: record.sort_order,
            created: record.created,
            started: record.started,
            ended: record.ended,
        }
    }
}

impl ReceiptBody {
    fn from_stored(stored: StoredReceipt) -> Self {
        let StoredReceipt { message, receipt } = stored;
        Self {
            message,
            id: receipt.id,
            agent: receipt.agent,
            step: receipt.step,
            call_id: receipt.call_id,
            tool: receipt.tool,
            ok: receipt.ok,
            ending: receipt.ending,
            fuel: receipt.fuel,
            micros: receipt.micros,
            body: receipt.body,
            created: receipt.created,
        }
    }
}

/// The name of the caller that cancelled a turn, from the metadata or result of its row.
fn canceller(row: &Value) -> Option<String> {
    row.get("cancelled_by").and_then(Value::as_str).map(str::to_owned)
}

/// Keeps the fields `parts` of a JSON object. INV-93: the other fields are for this machine only, for
/// example the directory of a run's files.
fn visible_parts(value: Value, parts: &[&str]) -> Value {
    let Value::Object(all) = value else { return Value::Object(serde_json::Map::new()) };
    Value::Object(all.into_iter().filter(|(name, _)| parts.contains(&name.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_message_only_what_is_listed_is_shown() {
        let message = StoredMessage {
            id: "1".to_owned(),
            sort_order: 2,
            role: belljar_store::Role::Assistant,
            status: belljar_store::MessageStatus::Completed,
            content: serde_json::json!({"text": "done"}),
            metadata: serde_json::json!({"run": "1", "files": [{"saved_to": "/srv/x"}], "newer": 1}),
            created: 1,
            updated: 1,
        };
        let shown = serde_json::to_value(MessageBody::from_stored(message, true)).unwrap();
        assert_eq!(shown["metadata"], serde_json::json!({"run": "1"}));
        assert_eq!(shown["text"], "done");
    }

    #[test]
    fn an_identity_is_shown_without_a_path_of_the_host() {
        assert_eq!(without_path("workspace:/srv/x/scout"), "workspace/scout");
        assert_eq!(without_path("library/x/scout"), "library/x/scout");
        assert_eq!(without_path("home/scout"), "home/scout");
    }
}
