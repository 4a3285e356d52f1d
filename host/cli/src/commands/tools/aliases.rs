//! `belljar tools aliases`: other programs' tool names with their meaning here, and the translation of
//! arguments.

use std::fmt::Write as _;

use belljar_definition::{
    AliasStatus, Argument, ArgumentKind, Becomes, Dialect, ForeignTool, SELF, TOOL_ALIASES,
    ToolAlias,
};
use serde_json::{Value, json};

use crate::setup::exit::{Exit, Failure};
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain, styled};

pub(crate) fn run(json: bool, markdown: bool, out: &Out) -> Result<Exit, Failure> {
    if json {
        out.json(&Dialect::WITH_TOOLS.map(dialect_json))?;
    } else if markdown {
        out.text(&page());
    } else {
        for dialect in Dialect::WITH_TOOLS {
            tables(dialect, out);
        }
    }
    Ok(Exit::Completed)
}

fn rows(dialect: Dialect) -> impl Iterator<Item = &'static ToolAlias> {
    TOOL_ALIASES.iter().filter(move |row| row.dialect == dialect)
}

fn tables(dialect: Dialect, out: &Out) {
    let title = dialect.to_string();
    let mut table = Table::new(out, &[title.as_str(), "here", "status", "limits, or why not"]);
    for row in rows(dialect) {
        let (word, style, why) = status(row.status);
        let tools = row.canonical.join(", ");
        table.row([plain(row.name), plain(tools), styled(style, word), plain(why)]);
    }
    table.print(out);
    out.line("");
    let mut table = Table::new(out, &["offered as", "for", "argument", "becomes"]);
    for tool in ForeignTool::of(dialect) {
        for (name, becomes) in arguments(tool.arguments, "") {
            table.row([plain(tool.name), plain(tool.tool), plain(name), plain(becomes)]);
        }
    }
    table.print(out);
    out.line("");
}

fn status(status: AliasStatus) -> (&'static str, Style, &'static str) {
    match status {
        AliasStatus::Works => ("works", Style::Green, ""),
        AliasStatus::Limited(limits) => ("works with limits", Style::Yellow, limits),
        AliasStatus::Unavailable(why) => ("unavailable", Style::Red, why),
    }
}

/// The translation of each argument; members of a list's objects after the list's name.
fn arguments(all: &[Argument], of: &str) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for argument in all {
        let name = format!("{of}{}", argument.name);
        let becomes = match argument.becomes {
            Becomes::Argument(SELF) => "the element itself".to_owned(),
            Becomes::Argument(own) => own.to_owned(),
            Becomes::OnlyElement(own) => format!("{own}; one element for each call"),
            Becomes::OnlyObject => "the call; one element for each".to_owned(),
            Becomes::Sites { of, only: true } => format!("`site:` terms in {of}"),
            Becomes::Sites { of, only: false } => format!("`-site:` terms in {of}"),
            Becomes::IsPattern(of) => format!("unless true, {of} is escaped"),
            Becomes::Nothing(why) => format!("nothing: {why}"),
            Becomes::Never(why) => format!("refused when set: {why}"),
        };
        rows.push((name.clone(), becomes));
        if let ArgumentKind::Items(members) = argument.kind {
            rows.extend(arguments(members, &format!("{name}[].")));
        }
    }
    rows
}

fn dialect_json(dialect: Dialect) -> Value {
    let names: Vec<Value> = rows(dialect)
        .map(|row| {
            let (word, _, why) = status(row.status);
            json!({"name": row.name, "tools": row.canonical, "status": word, "why": why})
        })
        .collect();
    let offered: Vec<Value> = ForeignTool::of(dialect)
        .iter()
        .map(|tool| {
            let all = arguments(tool.arguments, "");
            let all = all.iter().map(|(name, becomes)| json!({"name": name, "becomes": becomes}));
            let all: Vec<Value> = all.collect();
            json!({"name": tool.name, "tool": tool.tool, "arguments": all})
        })
        .collect();
    json!({"dialect": dialect, "names": names, "offered": offered})
}

/// The page of the documentation.
fn page() -> String {
    let mut page = "# Tool names of other programs\n\n\
        Printed by `belljar tools aliases --markdown`. A name in an agent file's `tools` gives the \
        tools here that its row names; the model is offered them under the names and arguments of \
        the second table, so that the author's system prompt stays true. Rights, receipts and \
        hooks know belljar's own names.\n"
        .to_owned();
    for dialect in Dialect::WITH_TOOLS {
        // Writing to a `String` cannot fail.
        let _ = write!(page, "\n## {dialect}\n\n| name | here | status |\n| --- | --- | --- |\n");
        for row in rows(dialect) {
            let tools: Vec<_> = row.canonical.iter().map(|tool| format!("`{tool}`")).collect();
            let (word, _, why) = status(row.status);
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let _ = writeln!(page, "| `{}` | {} | {word}{why} |", row.name, tools.join(", "));
        }
        page.push_str("\n| offered as | for | argument | becomes |\n| --- | --- | --- | --- |\n");
        for tool in ForeignTool::of(dialect) {
            for (name, becomes) in arguments(tool.arguments, "") {
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
            std::fs::write(path, page()).unwrap();
            return;
        }
        let how = "BELLJAR_WRITE_DOCS=1 cargo test the_page_in_the_documentation";
        assert!(kept == page(), "tools/ALIASES.md is stale: {how}");
    }
}
