//! A tenant's usage of models: tokens and turns by day, agent and model.

use std::collections::BTreeMap;

use belljar_store::{UsagePart, UsageRow};
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::sessions::without_path;
use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::http::respond::{JsonAnswer, QueryOf};

/// The number of days in an answer, if the query names no first day.
const DEFAULT_DAYS: i64 = 30;

/// The most rows of an answer: enough for a year of thirty agents, and about 2 MiB.
const MAX_ROWS: usize = 10_000;

/// The query: the first day, and the parts to count separately, for example by agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageQuery {
    since: Option<String>,
    by: Option<String>,
}

/// The usage, the oldest day first. Days without use have no row.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Usage {
    /// The first day that counts.
    since: String,
    #[schema(value_type = Vec<DayBody>)]
    days: Vec<UsageRow>,
    /// The same amounts, counted apart as `by` asks; absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<PartBody>>,
}

/// The usage of a day.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "the schema of a row of the store")]
pub(crate) struct DayBody {
    /// In UTC, `YYYY-MM-DD`.
    day: String,
    turns: i64,
    steps: i64,
    input_tokens: i64,
    cached_tokens: i64,
    output_tokens: i64,
    tool_calls: i64,
    fuel: i64,
}

/// The usage of a day, of an agent, with a model: each of them only where `by` names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct PartBody {
    /// In UTC, `YYYY-MM-DD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    /// The agent's identity. A subagent counts as itself, and not as the agent above it. Empty: of
    /// a time before agents were counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The model; empty as well, and where none was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Turns that a person or program began with this agent.
    turns: i64,
    steps: i64,
    input_tokens: i64,
    cached_tokens: i64,
    output_tokens: i64,
    tool_calls: i64,
    fuel: i64,
}

/// The parts by which usage is counted separately, parsed from the query's `by`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct UsageGrouping {
    day: bool,
    agent: bool,
    model: bool,
}

/// `GET /v1/usage`: returns the tenant's usage by day, and by the requested parts.
pub(crate) async fn read_usage(
    ctx: HandlerContext,
    QueryOf(query): QueryOf<UsageQuery>,
) -> Result<JsonAnswer<Usage>, Problem> {
    let since = match &query.since {
        Some(text) => parse_day(text)?,
        None => month_ago(ctx.app.clock().now()),
    };
    let by = query.by.as_deref().map(UsageGrouping::parse_grouping).transpose()?;
    let since = since.to_string();
    // Days and parts come from one read of the store, so both have equal sums.
    let parts = ctx.store().usage_parts(&since).await?;
    let mut days: Vec<UsageRow> = Vec::new();
    for UsagePart { row, .. } in &parts {
        match days.last_mut().filter(|last| last.day == row.day) {
            Some(last) => last.add_amounts(row),
            None => days.push(row.clone()),
        }
    }
    let rows = by.map(|by| by.sum_rows(&parts)).transpose()?;
    Ok(JsonAnswer(Usage { since, days, rows }))
}

impl UsageGrouping {
    /// Parses the query's `by`, for example `day,model`.
    fn parse_grouping(text: &str) -> Result<Self, Problem> {
        let mut by = Self::default();
        for word in text.split(',') {
            let named = match word {
                "day" => &mut by.day,
                "agent" => &mut by.agent,
                "model" => &mut by.model,
                _ => return Err(Problem::invalid("`by` is no list of `day`, `agent`, `model`")),
            };
            *named = true;
        }
        Ok(by)
    }

    /// Adds up the usage for each part, and sorts the sums by name.
    fn sum_rows(self, parts: &[UsagePart]) -> Result<Vec<PartBody>, Problem> {
        let mut sums: BTreeMap<[Option<String>; 3], UsageRow> = BTreeMap::new();
        for UsagePart { agent, model, row } in parts {
            let key = [
                self.day.then(|| row.day.clone()),
                self.agent.then(|| without_path(agent)),
                self.model.then(|| model.clone()),
            ];
            sums.entry(key).or_default().add_amounts(row);
            if sums.len() > MAX_ROWS {
                let detail = format!("there are more than {MAX_ROWS} rows of usage");
                return Err(Problem::invalid(detail)
                    .with_hint("name a later day as `since`, or less in `by`"));
            }
        }
        let row = |([day, agent, model], sum): ([Option<String>; 3], UsageRow)| PartBody {
            day,
            agent,
            model,
            turns: sum.turns,
            steps: sum.steps,
            input_tokens: sum.input_tokens,
            cached_tokens: sum.cached_tokens,
            output_tokens: sum.output_tokens,
            tool_calls: sum.tool_calls,
            fuel: sum.fuel,
        };
        Ok(sums.into_iter().map(row).collect())
    }
}

fn parse_day(text: &str) -> Result<Date, Problem> {
    // Only this form is accepted, because the store compares days as text.
    let read = (text.len() == 10).then(|| text.parse::<Date>().ok()).flatten();
    read.ok_or_else(|| Problem::invalid("`since` is no day of the form `YYYY-MM-DD`"))
}

fn month_ago(now: Timestamp) -> Date {
    let today = now.to_zoned(TimeZone::UTC).date();
    today.saturating_sub(DEFAULT_DAYS.days())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_of_one_form_alone() {
        assert_eq!(parse_day("2026-11-22").unwrap().to_string(), "2026-11-22");
        for bad in ["", "2026-11-31", "20261122", "2026-11-22T00:00", "+2026-11-2"] {
            assert!(parse_day(bad).is_err(), "{bad}");
        }
        let now = "2026-11-22T05:00:00Z".parse().unwrap();
        assert_eq!(month_ago(now).to_string(), "2026-10-23");
    }

    #[test]
    fn rows_are_summed_by_what_is_asked_for_and_by_nothing_of_the_host() {
        let part = |day: &str, agent: &str, model: &str, turns| UsagePart {
            agent: agent.to_owned(),
            model: model.to_owned(),
            row: UsageRow { day: day.to_owned(), turns, ..UsageRow::default() },
        };
        let parts = [
            part("2026-11-21", "home/boss", "fast", 1),
            part("2026-11-21", "workspace:/srv/data/scout", "fast", 2),
            part("2026-11-22", "home/boss", "strong", 4),
        ];
        let rows = |by: &str| {
            let rows = UsageGrouping::parse_grouping(by).unwrap().sum_rows(&parts).unwrap();
            let names = |row: &PartBody| [row.day.clone(), row.agent.clone(), row.model.clone()];
            rows.iter()
                .map(|row| {
                    (names(row).into_iter().flatten().collect::<Vec<_>>().join(" "), row.turns)
                })
                .collect::<Vec<_>>()
        };
        let expected = |all: &[(&str, i64)]| {
            all.iter().map(|(name, turns)| ((*name).to_owned(), *turns)).collect::<Vec<_>>()
        };
        assert_eq!(rows("agent"), expected(&[("home/boss", 5), ("workspace/scout", 2)]));
        assert_eq!(rows("model"), expected(&[("fast", 3), ("strong", 4)]));
        let both = [("2026-11-21 fast", 3), ("2026-11-22 strong", 4)];
        assert_eq!(rows("day,model"), expected(&both));
        assert_eq!(rows("day,agent,model").len(), 3);
        for bad in ["", "days", "day,", "agent model"] {
            assert!(UsageGrouping::parse_grouping(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn more_rows_than_an_answer_holds_are_refused() {
        let part =
            |number: usize| UsagePart { agent: format!("home/{number}"), ..UsagePart::default() };
        let parts: Vec<_> = (0..=MAX_ROWS).map(part).collect();
        let by = UsageGrouping::parse_grouping("agent").unwrap();
        assert!(by.sum_rows(&parts).is_err());
        assert_eq!(by.sum_rows(&parts[1..]).unwrap().len(), MAX_ROWS);
        assert_eq!(
            UsageGrouping::parse_grouping("model").unwrap().sum_rows(&parts).unwrap().len(),
            1
        );
    }
}
