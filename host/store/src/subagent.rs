//! The subagents of a session, each at the message and the tool call that started it.

use serde_json::Value;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::message::json;
use crate::open::Store;
use crate::words::{Source, SubagentStatus};

/// One subagent.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SubagentRecord {
    /// Made by the caller; sorts by time as text.
    pub id: String,
    /// The assistant message of the turn that it belongs to.
    pub parent_message_id: String,
    /// The tool call that started it.
    pub parent_tool_call_id: String,
    /// Who started it: an agent's identity.
    pub parent_agent: String,
    /// The subagent that started it; `None` = the agent at the top.
    pub parent_subagent_id: Option<String>,
    /// How deep it stands: 1 = started by the agent at the top.
    pub depth: i64,
    /// The run that it and all agents above it belong to.
    pub chain_id: String,
    /// Where its definition came from.
    pub source: Source,
    /// Its identity: scope and slug.
    pub agent: String,
    /// What a person sees.
    pub display_name: String,
    /// Its task.
    pub goal: String,
    /// What it was told beside the task.
    pub context: Option<String>,
    /// How far it is.
    pub status: SubagentStatus,
    /// Its model.
    pub model: String,
    /// The tools that it called, each once.
    pub tool_names: Vec<String>,
    /// Its conclusion, in short.
    pub summary: String,
    /// All that came of it; the caller's own form.
    pub result: Value,
    /// Why it did not complete.
    pub error: Option<String>,
    /// Input tokens, its own subagents' included.
    pub input_tokens: i64,
    /// Those of them that came from the provider's cache.
    pub cached_tokens: i64,
    /// Output tokens.
    pub output_tokens: i64,
    /// Fuel.
    pub fuel: i64,
    /// Its place among those that the same message started.
    pub sort_order: i64,
    /// When this row was made, in milliseconds since 1970.
    pub created: i64,
    /// When it began to run.
    pub started: Option<i64>,
    /// When it ended.
    pub ended: Option<i64>,
}

/// The columns, in the order in which they are bound and read.
const SELECT: &str = "SELECT a.id, a.parent_message_id, a.parent_tool_call_id, a.parent_agent, \
    a.parent_subagent_id, a.depth, a.chain_id, a.source, a.agent, a.display_name, a.goal, \
    a.context, a.status, a.model, a.tool_names, a.summary, a.result, a.error, a.input_tokens, \
    a.cached_tokens, a.output_tokens, a.fuel, a.sort_order, a.created, a.started, a.ended \
    FROM subagent_sessions a JOIN sessions s ON s.id = a.session_id \
    WHERE s.tenant = $1 AND s.id = $2 ORDER BY a.parent_message_id, a.sort_order, a.id";

/// A second record of the same id replaces what can change.
const UPSERT: &str = "INSERT INTO subagent_sessions \
    (id, parent_message_id, parent_tool_call_id, parent_agent, parent_subagent_id, depth, \
    chain_id, source, agent, display_name, goal, context, status, model, tool_names, summary, \
    result, error, input_tokens, cached_tokens, output_tokens, fuel, sort_order, created, \
    started, ended, session_id) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, \
    $19, $20, $21, $22, $23, $24, $25, $26, $27) \
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, model = excluded.model, \
    tool_names = excluded.tool_names, summary = excluded.summary, result = excluded.result, \
    error = excluded.error, input_tokens = excluded.input_tokens, \
    cached_tokens = excluded.cached_tokens, output_tokens = excluded.output_tokens, \
    fuel = excluded.fuel, started = excluded.started, ended = excluded.ended \
    WHERE subagent_sessions.session_id = excluded.session_id";

impl Store {
    /// Saves subagents of a session, all or none: a new row, or a later state of one that is
    /// there. A parent comes before its children.
    pub async fn record_subagents(
        &self,
        session: &str,
        records: &[SubagentRecord],
    ) -> Result<(), StoreError> {
        const WHAT: &str = "record subagents";
        let Some(latest) = records.iter().map(|record| record.created).max() else { return Ok(()) };
        let mut write = self.write(WHAT).await?;
        self.touch(&mut write, session, latest).await?;
        for record in records {
            let tools = Value::from(record.tool_names.clone());
            sqlx::query(UPSERT)
                .bind(&record.id)
                .bind(&record.parent_message_id)
                .bind(&record.parent_tool_call_id)
                .bind(&record.parent_agent)
                .bind(&record.parent_subagent_id)
                .bind(record.depth)
                .bind(&record.chain_id)
                .bind(record.source.as_str())
                .bind(&record.agent)
                .bind(&record.display_name)
                .bind(&record.goal)
                .bind(&record.context)
                .bind(record.status.as_str())
                .bind(&record.model)
                .bind(json("a subagent's list of tools", &tools)?)
                .bind(&record.summary)
                .bind(json("a subagent's result", &record.result)?)
                .bind(&record.error)
                .bind(record.input_tokens)
                .bind(record.cached_tokens)
                .bind(record.output_tokens)
                .bind(record.fuel)
                .bind(record.sort_order)
                .bind(record.created)
                .bind(record.started)
                .bind(record.ended)
                .bind(session)
                .execute(&mut *write)
                .await
                .map_err(|error| self.failed(WHAT, &error))?;
        }
        write.commit().await.map_err(|error| self.failed(WHAT, &error))
    }

    /// The subagents of a session, by message and in their order there.
    pub async fn subagents(&self, session: &str) -> Result<Vec<SubagentRecord>, StoreError> {
        let rows = sqlx::query(SELECT)
            .bind(&*self.tenant)
            .bind(session)
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.failed("read the subagents", &error))?;
        let bad = |why: String| self.bad_row("a subagent".to_owned(), why);
        rows.iter().map(|row| record(row).map_err(bad)).collect()
    }
}

fn record(row: &SqliteRow) -> Result<SubagentRecord, String> {
    let plain = |error: sqlx::Error| error.to_string();
    let text = |index: usize| row.try_get::<String, _>(index).map_err(plain);
    let number = |index: usize| row.try_get::<i64, _>(index).map_err(plain);
    let value = |index: usize| -> Result<Value, String> {
        serde_json::from_str(&text(index)?).map_err(|error| error.to_string())
    };
    let tools = match value(14)? {
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => return Err("the list of tools is no list".to_owned()),
    };
    Ok(SubagentRecord {
        id: text(0)?,
        parent_message_id: text(1)?,
        parent_tool_call_id: text(2)?,
        parent_agent: text(3)?,
        parent_subagent_id: row.try_get(4).map_err(plain)?,
        depth: number(5)?,
        chain_id: text(6)?,
        source: Source::parse(&text(7)?).ok_or("unknown source")?,
        agent: text(8)?,
        display_name: text(9)?,
        goal: text(10)?,
        context: row.try_get(11).map_err(plain)?,
        status: SubagentStatus::parse(&text(12)?).ok_or("unknown status")?,
        model: text(13)?,
        tool_names: tools,
        summary: text(15)?,
        result: value(16)?,
        error: row.try_get(17).map_err(plain)?,
        input_tokens: number(18)?,
        cached_tokens: number(19)?,
        output_tokens: number(20)?,
        fuel: number(21)?,
        sort_order: number(22)?,
        created: number(23)?,
        started: row.try_get(24).map_err(plain)?,
        ended: row.try_get(25).map_err(plain)?,
    })
}
