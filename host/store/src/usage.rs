//! The usage of a tenant, day by day.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::Store;
use crate::statement::{Nothing, Statement};

/// The usage of one day: to be added, or all of it. Amounts are never below 0; a sum stops
/// at the largest number that a column holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct UsageRow {
    /// The day in UTC, `YYYY-MM-DD`.
    pub day: String,
    /// Turns.
    pub turns: i64,
    /// Steps of agents.
    pub steps: i64,
    /// Input tokens, those from the cache included.
    pub input_tokens: i64,
    /// Input tokens that came from the provider's cache.
    pub cached_tokens: i64,
    /// Output tokens.
    pub output_tokens: i64,
    /// Calls of tools.
    pub tool_calls: i64,
    /// Fuel.
    pub fuel: i64,
}

/// `column = the sum`, but never beyond the largest number: SQLite would go on with one that
/// has lost its last digits.
macro_rules! grows {
    ($first:literal $(, $column:literal)*) => {
        concat!(grows!(@one $first) $(, ", ", grows!(@one $column))*)
    };
    (@one $column:literal) => {
        concat!(
            $column, " = CASE WHEN usage_days.", $column, " > 9223372036854775807 - excluded.",
            $column, " THEN 9223372036854775807 ELSE usage_days.", $column, " + excluded.",
            $column, " END",
        )
    };
}

/// Adds to a day.
pub(crate) fn add(tenant: &str, row: UsageRow) -> Result<Statement, StoreError> {
    const UPSERT: &str = concat!(
        "INSERT INTO usage_days (tenant, day, turns, steps, input_tokens, cached_tokens, \
        output_tokens, tool_calls, fuel) \
        SELECT t.name, $2, $3, $4, $5, $6, $7, $8, $9 FROM tenants t WHERE t.name = $1 \
        ON CONFLICT (tenant, day) DO UPDATE SET ",
        grows!(
            "turns",
            "steps",
            "input_tokens",
            "cached_tokens",
            "output_tokens",
            "tool_calls",
            "fuel"
        )
    );
    if !is_day(&row.day) {
        let why = "is not of the form `YYYY-MM-DD`".to_owned();
        return Err(StoreError::Invalid { what: "the day of a usage", why });
    }
    Statement::new(
        "add to the usage",
        Nothing::NoTenant,
        UPSERT,
        [
            tenant.into(),
            row.day.into(),
            row.turns.max(0).into(),
            row.steps.max(0).into(),
            row.input_tokens.max(0).into(),
            row.cached_tokens.max(0).into(),
            row.output_tokens.max(0).into(),
            row.tool_calls.max(0).into(),
            row.fuel.max(0).into(),
        ],
    )
}

/// Whether it looks like a day, so that days sort as text.
fn is_day(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

impl Store {
    /// The usage of this tenant from a day on (`YYYY-MM-DD`; empty = from the first), day by
    /// day. Days without use have no row.
    pub async fn usage(&self, since_day: &str) -> Result<Vec<UsageRow>, StoreError> {
        let select = "SELECT day, turns, steps, input_tokens, cached_tokens, output_tokens, \
            tool_calls, fuel FROM usage_days WHERE tenant = $1 AND day >= $2 ORDER BY day";
        let rows = self.rows("read the usage", select, [since_day.into()]).await?;
        let bad = |error| self.bad_row("the usage of a day".to_owned(), error);
        rows.iter().map(|row| stored(row).map_err(bad)).collect()
    }
}

fn stored(row: &SqliteRow) -> Result<UsageRow, sqlx::Error> {
    Ok(UsageRow {
        day: row.try_get(0)?,
        turns: row.try_get(1)?,
        steps: row.try_get(2)?,
        input_tokens: row.try_get(3)?,
        cached_tokens: row.try_get(4)?,
        output_tokens: row.try_get(5)?,
        tool_calls: row.try_get(6)?,
        fuel: row.try_get(7)?,
    })
}
