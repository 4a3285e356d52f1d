//! `belljar limits`: prints the default limits of an agent.

use belljar_policy::LIMITS;
use serde_json::json;

use crate::setup::exit::{CommandExit, Failure};
use crate::term::out::TerminalOutput;
use crate::term::table::{self, TextTable, plain_cell};

/// Runs the command: prints the table of limits, as JSON or for a person.
pub(crate) fn run(json: bool, out: &TerminalOutput) -> Result<CommandExit, Failure> {
    if json {
        let rows: Vec<_> = LIMITS
            .iter()
            .map(|row| {
                json!({ "key": row.key, "unit": row.unit, "default": row.default, "why": row.why })
            })
            .collect();
        out.print_json(&rows)?;
        return Ok(CommandExit::Completed);
    }
    let mut table = TextTable::new(out, &["limit", ">default", "unit", "what it bounds, and why"]);
    for row in LIMITS {
        table.push_row([
            plain_cell(row.key),
            plain_cell(table::format_count(row.default)),
            plain_cell(row.unit),
            plain_cell(row.why),
        ]);
    }
    table.print_to(out);
    out.note("\nraise or lower one for an agent: `belljar grant AGENT --limit KEY=N`");
    Ok(CommandExit::Completed)
}
