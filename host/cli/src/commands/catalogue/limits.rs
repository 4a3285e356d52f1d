//! `belljar limits`: the default limits, from their only table.

use belljar_policy::LIMITS;
use serde_json::json;

use crate::setup::exit::{Exit, Failure};
use crate::term::out::Out;
use crate::term::table::{self, Table, plain};

pub(crate) fn run(json: bool, out: &Out) -> Result<Exit, Failure> {
    if json {
        let rows: Vec<_> = LIMITS
            .iter()
            .map(|row| {
                json!({ "key": row.key, "unit": row.unit, "default": row.default, "why": row.why })
            })
            .collect();
        out.json(&rows)?;
        return Ok(Exit::Completed);
    }
    let mut table = Table::new(out, &["limit", ">default", "unit", "what it bounds, and why"]);
    for row in LIMITS {
        table.row([
            plain(row.key),
            plain(table::count(row.default)),
            plain(row.unit),
            plain(row.why),
        ]);
    }
    table.print(out);
    out.note("\nraise or lower one for an agent: `belljar grant AGENT --limit KEY=N`");
    Ok(Exit::Completed)
}
