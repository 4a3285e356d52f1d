//! The usage of a tenant by day, agent and model.

use std::collections::BTreeMap;

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::Store;
use crate::statement::{NoRowMeaning, SqlStatement};

/// The usage of one day: an amount to add, or the total. Amounts are never below 0, and a sum stops at the
/// largest number of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct UsageRow {
    /// The day in UTC, for example `2026-11-28`.
    pub day: String,
    /// The number of turns.
    pub turns: i64,
    /// The number of agents' steps.
    pub steps: i64,
    /// The input tokens, including those from a cache.
    pub input_tokens: i64,
    /// The input tokens that came from the provider's cache.
    pub cached_tokens: i64,
    /// The output tokens.
    pub output_tokens: i64,
    /// The number of tool calls.
    pub tool_calls: i64,
    /// The fuel used.
    pub fuel: i64,
}

/// The usage of one agent with one model on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsagePart {
    /// The agent's identity: scope and slug. Empty for days before agents were counted separately.
    pub agent: String,
    /// The model. Empty for days before models were counted separately, or if no model was chosen.
    pub model: String,
    /// The amounts used.
    pub row: UsageRow,
}

impl UsageRow {
    /// Adds the amounts of another row; the day stays.
    pub fn add_amounts(&mut self, more: &Self) {
        let Self { day: _, turns, steps, input_tokens, cached_tokens, output_tokens, .. } = more;
        for (sum, amount) in [
            (&mut self.turns, turns),
            (&mut self.steps, steps),
            (&mut self.input_tokens, input_tokens),
            (&mut self.cached_tokens, cached_tokens),
            (&mut self.output_tokens, output_tokens),
            (&mut self.tool_calls, &more.tool_calls),
            (&mut self.fuel, &more.fuel),
        ] {
            *sum = sum.saturating_add(*amount);
        }
    }
}

/// The SQL that adds to a column, at most to the largest number: beyond it, SQLite would compute in floating
/// point and lose the last digits.
macro_rules! grows {
    ($first:literal $(, $column:literal)*) => {
        concat!(grows!(@one $first) $(, ", ", grows!(@one $column))*)
    };
    (@one $column:literal) => {
        concat!(
            $column, " = CASE WHEN usage_parts.", $column, " > 9223372036854775807 - excluded.",
            $column, " THEN 9223372036854775807 ELSE usage_parts.", $column, " + excluded.",
            $column, " END",
        )
    };
}

/// The statement that adds to the usage of an agent on a day.
pub(crate) fn add_usage(tenant: &str, part: UsagePart) -> Result<SqlStatement, StoreError> {
    const UPSERT: &str = concat!(
        "INSERT INTO usage_parts (tenant, day, agent, model, turns, steps, input_tokens, \
        cached_tokens, output_tokens, tool_calls, fuel) \
        SELECT t.name, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 FROM tenants t WHERE t.name = $1 \
        ON CONFLICT (tenant, day, agent, model) DO UPDATE SET ",
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
    let UsagePart { agent, model, row } = part;
    if !is_day(&row.day) {
        let why = "is not of the form `YYYY-MM-DD`".to_owned();
        return Err(StoreError::Invalid { what: "the day of a usage", why });
    }
    SqlStatement::new(
        "add to the usage",
        NoRowMeaning::NoTenant,
        UPSERT,
        [
            tenant.into(),
            row.day.into(),
            agent.into(),
            model.into(),
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

/// Returns whether a text has the form of a day, so days can be sorted as text.
fn is_day(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

impl Store {
    /// The usage of this tenant for each day from `since_day` on (for example `2026-11-28`; empty = from the
    /// first day). Days without usage have no row.
    pub async fn usage_by_day(&self, since_day: &str) -> Result<Vec<UsageRow>, StoreError> {
        let mut days: BTreeMap<String, UsageRow> = BTreeMap::new();
        for UsagePart { row, .. } in self.usage_parts(since_day).await? {
            let empty = || UsageRow { day: row.day.clone(), ..UsageRow::default() };
            days.entry(row.day.clone()).or_insert_with(empty).add_amounts(&row);
        }
        Ok(days.into_values().collect())
    }

    /// The usage for each day, agent and model, sorted in this order.
    pub async fn usage_parts(&self, since_day: &str) -> Result<Vec<UsagePart>, StoreError> {
        let select = "SELECT day, turns, steps, input_tokens, cached_tokens, output_tokens, \
            tool_calls, fuel, agent, model FROM usage_parts WHERE tenant = $1 AND day >= $2 \
            ORDER BY day, agent, model";
        let rows = self.select_rows("read the usage", select, [since_day.into()]).await?;
        let bad = |error| self.bad_row("the usage of a day".to_owned(), error);
        rows.iter().map(|row| part_from_row(row).map_err(bad)).collect()
    }
}

/// Reads a part from its row.
fn part_from_row(row: &SqliteRow) -> Result<UsagePart, sqlx::Error> {
    let amounts = UsageRow {
        day: row.try_get(0)?,
        turns: row.try_get(1)?,
        steps: row.try_get(2)?,
        input_tokens: row.try_get(3)?,
        cached_tokens: row.try_get(4)?,
        output_tokens: row.try_get(5)?,
        tool_calls: row.try_get(6)?,
        fuel: row.try_get(7)?,
    };
    Ok(UsagePart { agent: row.try_get(8)?, model: row.try_get(9)?, row: amounts })
}
