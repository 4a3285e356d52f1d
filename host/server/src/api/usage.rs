//! The usage of a tenant, by day.

use belljar_store::UsageRow;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::Ctx;
use crate::http::problem::Problem;
use crate::http::respond::{Json, QueryOf};

/// Days that are shown where nothing is said.
const DEFAULT_DAYS: i64 = 30;

/// From which day on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageQuery {
    since: Option<String>,
}

/// The usage, the oldest day first. Days without use have no row.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Usage {
    /// The first day that counts.
    since: String,
    #[schema(value_type = Vec<DayBody>)]
    days: Vec<UsageRow>,
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

/// `GET /v1/usage`.
pub(crate) async fn read(
    ctx: Ctx,
    QueryOf(query): QueryOf<UsageQuery>,
) -> Result<Json<Usage>, Problem> {
    let since = match &query.since {
        Some(text) => day(text)?,
        None => month_ago(ctx.app.clock().now()),
    };
    let since = since.to_string();
    let days = ctx.store().usage(&since).await?;
    Ok(Json(Usage { since, days }))
}

fn day(text: &str) -> Result<Date, Problem> {
    // Exactly this form: the store compares days as text.
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
        assert_eq!(day("2026-11-22").unwrap().to_string(), "2026-11-22");
        for bad in ["", "2026-11-31", "20261122", "2026-11-22T00:00", "+2026-11-2"] {
            assert!(day(bad).is_err(), "{bad}");
        }
        let now = "2026-11-22T05:00:00Z".parse().unwrap();
        assert_eq!(month_ago(now).to_string(), "2026-10-23");
    }
}
