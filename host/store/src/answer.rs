//! People's answers to agents' questions for permission.

use serde_json::Value;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::{BadRow, Store};
use crate::session::MAX_LISTED;
use crate::statement::{NoRowMeaning, SqlStatement, json_text};

/// A question for permission, with a person's answer.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PermissionAnswer {
    /// The id, made by the caller; ids sort by time as text.
    pub id: String,
    /// The session's id.
    pub session: String,
    /// The id of the agent's message in whose turn the question was asked.
    pub message: String,
    /// The number of the question within the turn.
    pub question: i64,
    /// The path of the agent that asked.
    pub agent: String,
    /// The tool that the question was about.
    pub tool: String,
    /// The arguments of the call, a stranger's text.
    pub arguments: Value,
    /// The answer as one word, for example `yes`.
    pub answer: String,
    /// The name of the person or key that answered, as in the audit log.
    pub actor: String,
    /// When the question was asked, in milliseconds since 1970.
    pub asked: i64,
    /// When it was answered, in milliseconds since 1970.
    pub answered: i64,
}

/// The statement that adds an answer.
pub(crate) fn add_answer(
    tenant: &str,
    answer: PermissionAnswer,
) -> Result<SqlStatement, StoreError> {
    let insert = "INSERT INTO permission_answers (id, session_id, message_id, question, agent, \
        tool, arguments, answer, actor, asked, answered) \
        SELECT $4, m.session_id, m.id, $5, $6, $7, $8, $9, $10, $11, $12 \
        FROM messages m JOIN sessions s ON s.id = m.session_id \
        WHERE s.tenant = $1 AND s.id = $2 AND m.id = $3";
    let arguments = json_text("the arguments of a question", &answer.arguments)?;
    SqlStatement::new(
        "store an answer",
        NoRowMeaning::NoMessage,
        insert,
        [
            tenant.into(),
            answer.session.into(),
            answer.message.into(),
            answer.id.into(),
            answer.question.into(),
            answer.agent.into(),
            answer.tool.into(),
            arguments.into(),
            answer.answer.into(),
            answer.actor.into(),
            answer.asked.into(),
            answer.answered.into(),
        ],
    )
}

impl Store {
    /// The latest answers of a session, at most [`MAX_LISTED`], oldest first.
    pub async fn latest_answers(&self, session: &str) -> Result<Vec<PermissionAnswer>, StoreError> {
        let select = "SELECT a.id, a.session_id, a.message_id, a.question, a.agent, a.tool, \
            a.arguments, a.answer, a.actor, a.asked, a.answered \
            FROM permission_answers a JOIN sessions s ON s.id = a.session_id \
            WHERE s.tenant = $1 AND s.id = $2 ORDER BY a.answered DESC, a.id DESC LIMIT $3";
        let args = [session.into(), i64::from(MAX_LISTED).into()];
        let rows = self.select_rows("read the answers", select, args).await?;
        let bad = |why| self.bad_row("an answer".to_owned(), why);
        rows.iter().rev().map(|row| answer_from_row(row).map_err(bad)).collect()
    }
}

/// Reads the columns of a row, in the order of the `SELECT`.
fn answer_from_row(row: &SqliteRow) -> Result<PermissionAnswer, BadRow> {
    Ok(PermissionAnswer {
        id: row.try_get(0)?,
        session: row.try_get(1)?,
        message: row.try_get(2)?,
        question: row.try_get(3)?,
        agent: row.try_get(4)?,
        tool: row.try_get(5)?,
        arguments: serde_json::from_str(row.try_get(6)?)?,
        answer: row.try_get(7)?,
        actor: row.try_get(8)?,
        asked: row.try_get(9)?,
        answered: row.try_get(10)?,
    })
}
