//! `belljar tools aliases`: shows which tools of belljar the tool names of other programs mean, and how
//! arguments are translated.

use std::fmt::Write as _;

use belljar_definition::{
    AliasStatus, ArgumentKind, ArgumentMapping, Dialect, ForeignArgument, ForeignTool, SELF,
    TOOL_ALIASES, ToolAlias,
};
use serde_json::{Value, json};

use crate::setup::exit::{CommandExit, Failure};
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// Runs the command: prints the tables, as JSON, as the page of the documentation, or for a person.
pub(crate) fn run(
    json: bool,
    markdown: bool,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    if json {
        out.print_json(&Dialect::WITH_TOOLS.map(dialect_json))?;
    } else if markdown {
        out.print_text(&alias_page());
    } else {
        for dialect in Dialect::WITH_TOOLS {
            print_tables(dialect, out);
        }
    }
    Ok(CommandExit::Completed)
}

fn dialect_aliases(dialect: Dialect) -> impl Iterator<Item = &'static ToolAlias> {
    TOOL_ALIASES.iter().filter(move |row| row.dialect == dialect)
}

/// Prints the two tables of one other program: its tool names, and the translations of arguments.
fn print_tables(dialect: Dialect, out: &TerminalOutput) {
    let title = dialect.to_string();
    let mut table = TextTable::new(out, &[title.as_str(), "here", "status", "limits, or why not"]);
    for row in dialect_aliases(dialect) {
        let (word, style, why) = format_status(row.status);
        let tools = row.canonical.join(", ");
        table.push_row([
            plain_cell(row.name),
            plain_cell(tools),
            styled_cell(style, word),
            plain_cell(why),
        ]);
    }
    table.print_to(out);
    out.print_line("");
    let mut table = TextTable::new(out, &["offered as", "for", "argument", "becomes"]);
    for tool in ForeignTool::for_dialect(dialect) {
        for (name, becomes) in argument_translations(tool.arguments, "") {
            table.push_row([
                plain_cell(tool.name),
                plain_cell(tool.tool),
                plain_cell(name),
                plain_cell(becomes),
            ]);
        }
    }
    table.print_to(out);
    out.print_line("");
}

/// The status of an alias as a word, with its colour and the reason.
fn format_status(status: AliasStatus) -> (&'static str, TextStyle, &'static str) {
    match status {
        AliasStatus::Works => ("works", TextStyle::Green, ""),
        AliasStatus::Limited(limits) => ("works with limits", TextStyle::Yellow, limits),
        AliasStatus::Unavailable(why) => ("unavailable", TextStyle::Red, why),
    }
}

/// The translation of each argument, as pairs of the other program's name and belljar's. `of` = the name of
/// the list in whose objects these arguments are.
fn argument_translations(all: &[ForeignArgument], of: &str) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for argument in all {
        let name = format!("{of}{}", argument.name);
        let becomes = match argument.becomes {
            ArgumentMapping::Argument(SELF) => "the element itself".to_owned(),
            ArgumentMapping::Argument(own) => own.to_owned(),
            ArgumentMapping::OnlyElement(own) => format!("{own}; one element for each call"),
            ArgumentMapping::OnlyObject => "the call; one element for each".to_owned(),
            ArgumentMapping::Sites { of, only: true } => format!("`site:` terms in {of}"),
            ArgumentMapping::Sites { of, only: false } => format!("`-site:` terms in {of}"),
            ArgumentMapping::IsPattern(of) => format!("unless true, {of} is escaped"),
            ArgumentMapping::Nothing(why) => format!("nothing: {why}"),
            ArgumentMapping::Never(why) => format!("refused when set: {why}"),
        };
        rows.push((name.clone(), becomes));
        if let ArgumentKind::Items(members) = argument.kind {
            rows.extend(argument_translations(members, &format!("{name}[].")));
        }
    }
    rows
}

/// The tables of one other program as a JSON object.
fn dialect_json(dialect: Dialect) -> Value {
    let names: Vec<Value> = dialect_aliases(dialect)
        .map(|row| {
            let (word, _, why) = format_status(row.status);
            json!({"name": row.name, "tools": row.canonical, "status": word, "why": why})
        })
        .collect();
    let offered: Vec<Value> = ForeignTool::for_dialect(dialect)
        .iter()
        .map(|tool| {
            let all = argument_translations(tool.arguments, "");
            let all = all.iter().map(|(name, becomes)| json!({"name": name, "becomes": becomes}));
            let all: Vec<Value> = all.collect();
            json!({"name": tool.name, "tool": tool.tool, "arguments": all})
        })
        .collect();
    json!({"dialect": dialect, "names": names, "offered": offered})
}

/// The page of the documentation about aliases, in Markdown.
fn alias_page() -> String {
    let mut page = "# Tool names of other programs\n\n\
        Printed by `belljar tools aliases --markdown`. A name in an agent file's `tools` gives the \
        tools here that its row names; the model is offered them under the names and arguments of \
        the second table, so that the author's system prompt stays true. Rights, receipts and \
        hooks know belljar's own names.\n"
        .to_owned();
    for dialect in Dialect::WITH_TOOLS {
        // Writing to a `String` cannot fail.
        let _ = write!(page, "\n## {dialect}\n\n| name | here | status |\n| --- | --- | --- |\n");
        for row in dialect_aliases(dialect) {
            let tools: Vec<_> = row.canonical.iter().map(|tool| format!("`{tool}`")).collect();
            let (word, _, why) = format_status(row.status);
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let _ = writeln!(page, "| `{}` | {} | {word}{why} |", row.name, tools.join(", "));
        }
        page.push_str("\n| offered as | for | argument | becomes |\n| --- | --- | --- | --- |\n");
        for tool in ForeignTool::for_dialect(dialect) {
            for (name, becomes) in argument_translations(tool.arguments, "") {
                let _ =
                    writeln!(page, "| `{}` | `{}` | `{name}` | {becomes} |", tool.name, tool.tool);
            }
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_documentation_is_what_the_command_prints() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/ALIASES.md");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        if std::env::var_os("BELLJAR_WRITE_DOCS").is_some() {
            std::fs::write(path, alias_page()).unwrap();
            return;
        }
        let how = "BELLJAR_WRITE_DOCS=1 cargo test the_page_in_the_documentation";
        assert!(kept == alias_page(), "tools/ALIASES.md is stale: {how}");
    }
}
