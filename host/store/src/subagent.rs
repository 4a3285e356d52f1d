//! The runs of subagents in a session, each with the message and the tool call that started it.

use serde_json::Value;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::{BadRow, Store};
use crate::page::{ListPage, and_one, has_more_rows};
use crate::session;
use crate::statement::{NoRowMeaning, SqlStatement, json_text};
use crate::words::{SubagentSource, SubagentStatus};

/// One run of a subagent.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SubagentRecord {
    /// The id, made by the caller; ids sort by time as text.
    pub id: String,
    /// The id of the agent's message to whose turn the run belongs.
    pub parent_message_id: String,
    /// The id of the tool call that started the subagent.
    pub parent_tool_call_id: String,
    /// The identity of the agent that started it.
    pub parent_agent: String,
    /// The id of the subagent that started it; `None` = the agent at the top did.
    pub parent_subagent_id: Option<String>,
    /// The depth; 1 = started by the agent at the top.
    pub depth: i64,
    /// The id of the run that the subagent shares with all its ancestors.
    pub chain_id: String,
    /// Where the subagent's definition comes from.
    pub source: SubagentSource,
    /// The agent's identity: scope and slug.
    pub agent: String,
    /// A title for people.
    pub display_name: String,
    /// The task.
    pub goal: String,
    /// The context given with the task.
    pub context: Option<String>,
    /// The status.
    pub status: SubagentStatus,
    /// The model.
    pub model: String,
    /// The names of the tools that it called, each once.
    pub tool_names: Vec<String>,
    /// The beginning of its conclusion.
    pub summary: String,
    /// The result, in the caller's form.
    pub result: Value,
    /// The reason why it did not complete.
    pub error: Option<String>,
    /// Its input tokens, including those of its own subagents.
    pub input_tokens: i64,
    /// The part of the input tokens that came from the provider's cache.
    pub cached_tokens: i64,
    /// Its output tokens, including those of its own subagents.
    pub output_tokens: i64,
    /// The fuel that it used.
    pub fuel: i64,
    /// The position among the subagents of the same message.
    pub sort_order: i64,
    /// When this row was made, in milliseconds since 1970.
    pub created: i64,
    /// When the run began, in milliseconds since 1970.
    pub started: Option<i64>,
    /// When the run ended, in milliseconds since 1970.
    pub ended: Option<i64>,
}

/// The columns that [`subagent_from_row`] reads, in this order.
macro_rules! columns {
    ($rows:literal) => {
        columns!("", "", $rows)
    };
    ($with:literal, $count:literal, $rows:literal) => {
        concat!(
            $with,
            "SELECT a.id, a.parent_message_id, a.parent_tool_call_id, a.parent_agent, \
            a.parent_subagent_id, a.depth, a.chain_id, a.source, a.agent, a.display_name, a.goal, \
            a.context, a.status, a.model, a.tool_names, a.summary, a.result, a.error, \
            a.input_tokens, a.cached_tokens, a.output_tokens, a.fuel, a.sort_order, a.created, \
            a.started, a.ended",
            $count,
            " FROM subagent_sessions a JOIN sessions s ON s.id = a.session_id ",
            $rows
        )
    };
}

/// The statement that stores a subagent; a second record with the same id replaces the columns that may
/// change.
const UPSERT: &str = "INSERT INTO subagent_sessions \
    (id, parent_message_id, parent_tool_call_id, parent_agent, parent_subagent_id, depth, \
    chain_id, source, agent, display_name, goal, context, status, model, tool_names, summary, \
    result, error, input_tokens, cached_tokens, output_tokens, fuel, sort_order, created, \
    started, ended, session_id) \
    SELECT $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
    $21, $22, $23, $24, $25, $26, $27, $28, s.id FROM sessions s \
    WHERE s.tenant = $1 AND s.id = $2 \
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, model = excluded.model, \
    tool_names = excluded.tool_names, summary = excluded.summary, result = excluded.result, \
    error = excluded.error, input_tokens = excluded.input_tokens, \
    cached_tokens = excluded.cached_tokens, output_tokens = excluded.output_tokens, \
    fuel = excluded.fuel, started = excluded.started, ended = excluded.ended \
    WHERE subagent_sessions.session_id = excluded.session_id";

/// The statements that store subagents, or later states of them.
pub(crate) fn record_subagents(
    tenant: &str,
    session: &str,
    records: &[SubagentRecord],
    to: &mut Vec<SqlStatement>,
) -> Result<(), StoreError> {
    let Some(latest) = records.iter().map(|record| record.created).max() else { return Ok(()) };
    to.push(session::touch_session(tenant, session, latest)?);
    for record in records {
        let tools = Value::from(record.tool_names.clone());
        // An earlier statement has found the session, so if no row changes here, the id is used by another
        // session.
        to.push(SqlStatement::new(
            "record subagents",
            NoRowMeaning::Taken,
            UPSERT,
            [
                tenant.into(),
                session.into(),
                record.id.as_str().into(),
                record.parent_message_id.as_str().into(),
                record.parent_tool_call_id.as_str().into(),
                record.parent_agent.as_str().into(),
                record.parent_subagent_id.clone().into(),
                record.depth.into(),
                record.chain_id.as_str().into(),
                record.source.as_str().into(),
                record.agent.as_str().into(),
                record.display_name.as_str().into(),
                record.goal.as_str().into(),
                record.context.clone().into(),
                record.status.as_str().into(),
                record.model.as_str().into(),
                json_text("a subagent's list of tools", &tools)?.into(),
                record.summary.as_str().into(),
                json_text("a subagent's result", &record.result)?.into(),
                record.error.clone().into(),
                record.input_tokens.into(),
                record.cached_tokens.into(),
                record.output_tokens.into(),
                record.fuel.into(),
                record.sort_order.into(),
                record.created.into(),
                record.started.into(),
                record.ended.into(),
            ],
        )?);
    }
    Ok(())
}

impl Store {
    /// All subagents of a session, sorted by message and position.
    pub async fn list_subagents(&self, session: &str) -> Result<Vec<SubagentRecord>, StoreError> {
        let select = columns!(
            "WHERE s.tenant = $1 AND s.id = $2 ORDER BY a.parent_message_id, a.sort_order, a.id"
        );
        let rows = self.select_rows("read the subagents", select, [session.into()]).await?;
        rows.iter().map(|row| self.stored_subagent(row)).collect()
    }

    /// A page of the subagents of a session or of one message: the first page, or the one after a subagent,
    /// ending with the row that reaches `most_bytes`. It is empty only if no rows are left.
    pub async fn subagents_page(
        &self,
        session: &str,
        message: Option<&str>,
        after: Option<&str>,
        limit: u32,
        most_bytes: i64,
    ) -> Result<ListPage<SubagentRecord>, StoreError> {
        // Sizes are read first, so a row that does not fit is not read at all.
        let select = columns!(
            "WITH sized AS (SELECT c.id, c.parent_message_id, c.sort_order, \
            octet_length(c.goal) + octet_length(COALESCE(c.context, '')) + \
            octet_length(c.tool_names) + octet_length(c.summary) + octet_length(c.result) + \
            octet_length(COALESCE(c.error, '')) AS bytes \
            FROM subagent_sessions c JOIN sessions o ON o.id = c.session_id \
            WHERE o.tenant = $1 AND o.id = $2 \
            AND c.parent_message_id = COALESCE($3, c.parent_message_id) \
            AND ($4 IS NULL OR (c.parent_message_id, c.sort_order, c.id) > \
            (SELECT b.parent_message_id, b.sort_order, b.id FROM subagent_sessions b \
            WHERE b.session_id = $2 AND b.id = $4)) \
            ORDER BY c.parent_message_id, c.sort_order, c.id LIMIT $5), \
            summed AS (SELECT id, SUM(bytes) OVER by_place - bytes AS earlier, \
            ROW_NUMBER() OVER by_place AS place FROM sized \
            WINDOW by_place AS (ORDER BY parent_message_id, sort_order, id)) ",
            ", (SELECT COUNT(*) FROM sized)",
            "JOIN summed x ON x.id = a.id WHERE x.earlier < $6 AND x.place < $5 \
            ORDER BY a.parent_message_id, a.sort_order, a.id"
        );
        let failed = |error| self.database_error("read the subagents", &error);
        let args = [
            session.into(),
            message.into(),
            after.into(),
            and_one(limit).into(),
            most_bytes.max(1).into(),
        ];
        let rows = self.select_rows("read the subagents", select, args).await?;
        let subagents: Result<_, _> = rows.iter().map(|row| self.stored_subagent(row)).collect();
        Ok(ListPage { rows: subagents?, more: has_more_rows(&rows).map_err(failed)? })
    }

    /// A subagent of a session by its id.
    pub async fn find_subagent(
        &self,
        session: &str,
        id: &str,
    ) -> Result<Option<SubagentRecord>, StoreError> {
        let select = columns!("WHERE s.tenant = $1 AND s.id = $2 AND a.id = $3");
        let row = self.select_row("read a subagent", select, [session.into(), id.into()]).await?;
        row.map(|row| self.stored_subagent(&row)).transpose()
    }

    fn stored_subagent(&self, row: &SqliteRow) -> Result<SubagentRecord, StoreError> {
        subagent_from_row(row).map_err(|why| self.bad_row("a subagent".to_owned(), why))
    }
}

/// Reads the columns of a row, in the order of `columns!`.
fn subagent_from_row(row: &SqliteRow) -> Result<SubagentRecord, BadRow> {
    let value =
        |index: usize| -> Result<Value, BadRow> { Ok(serde_json::from_str(row.try_get(index)?)?) };
    let tools = match value(14)? {
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => return Err("the list of tools is no list".into()),
    };
    Ok(SubagentRecord {
        id: row.try_get(0)?,
        parent_message_id: row.try_get(1)?,
        parent_tool_call_id: row.try_get(2)?,
        parent_agent: row.try_get(3)?,
        parent_subagent_id: row.try_get(4)?,
        depth: row.try_get(5)?,
        chain_id: row.try_get(6)?,
        source: SubagentSource::parse(row.try_get(7)?).ok_or("unknown source")?,
        agent: row.try_get(8)?,
        display_name: row.try_get(9)?,
        goal: row.try_get(10)?,
        context: row.try_get(11)?,
        status: SubagentStatus::parse(row.try_get(12)?).ok_or("unknown status")?,
        model: row.try_get(13)?,
        tool_names: tools,
        summary: row.try_get(15)?,
        result: value(16)?,
        error: row.try_get(17)?,
        input_tokens: row.try_get(18)?,
        cached_tokens: row.try_get(19)?,
        output_tokens: row.try_get(20)?,
        fuel: row.try_get(21)?,
        sort_order: row.try_get(22)?,
        created: row.try_get(23)?,
        started: row.try_get(24)?,
        ended: row.try_get(25)?,
    })
}
