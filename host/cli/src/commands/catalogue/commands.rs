//! `belljar commands`: the commands that a person calls by name, and faulty files.

use std::path::{Path, PathBuf};

use belljar_agent::ResolveError;
use belljar_agent::commands::{call_name, find_called};
use belljar_definition::{CatalogEntry, CommandDefinition, Diagnostic, FileRead};
use belljar_policy::{ShownPath as _, ShownText};
use serde_json::{Value, json};

use crate::args::{CommandsArgs, CommandsCommand};
use crate::commands::catalogue::agents;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::setup::whose::AgentOwner;
use crate::term::out::TerminalOutput;
use crate::term::table::{TextTable, plain_cell};

/// Characters of a description in the list.
const MAX_DESCRIPTION: usize = 80;

pub(crate) fn run(
    args: &CommandsArgs,
    places: HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let whose = |read| {
        let through = WallGaps { read, ..WallGaps::default() };
        AgentOwner::behind_wall(&args.of, &places, walls, through)
    };
    match &args.command {
        CommandsCommand::List { json } => list_commands(*json, &whose(Vec::new())?, out),
        CommandsCommand::Check { commands, json } => {
            let files = commands.iter().map(PathBuf::from).collect();
            check_commands(commands, *json, &whose(files)?, out)
        }
    }
}

fn list_commands(
    json: bool,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let host = whose.build_host(out)?;
    let catalog = host.commands.catalog();
    if json {
        let rows: Vec<Value> = catalog.entries().iter().map(command_summary).collect();
        out.print_json(&rows)?;
    } else if catalog.entries().is_empty() {
        out.note(format_args!("no commands in {}", whose.places.home.join("commands").to_shown()));
    } else {
        let headings = ["command", "scope", "arguments", "description"];
        let mut table = TextTable::new(out, &headings).with_cut(MAX_DESCRIPTION);
        for command in catalog.entries() {
            let CommandDefinition { description, terms, .. } = &command.definition;
            let hint = terms.argument_hint.as_deref().unwrap_or_default();
            table.push_row([
                plain_cell(format!("/{}", call_name(command))),
                plain_cell(agents::format_scope(&command.id.scope)),
                plain_cell(ShownText::clip_line(hint, MAX_DESCRIPTION)),
                plain_cell(ShownText::clip_line(description.trim(), MAX_DESCRIPTION)),
            ]);
        }
        table.print_to(out);
    }
    Ok(agents::report_findings(&host.commands.problems(), out))
}

/// Checks commands by name or file; without any, all of the library.
fn check_commands(
    commands: &[String],
    json: bool,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let host = whose.build_host(out)?;
    let catalog = host.commands.catalog();
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut good: Vec<&CommandDefinition> = Vec::new();
    let mut read = Vec::new();
    if commands.is_empty() {
        found = host.commands.problems();
        good.extend(catalog.entries().iter().map(|command| &command.definition));
    }
    for word in commands {
        if agents::is_file::<CommandDefinition>(word) {
            match agents::read_file::<CommandDefinition>(Path::new(word)) {
                FileRead::Item { item, diagnostics } => {
                    found.extend(diagnostics);
                    read.push(item);
                }
                FileRead::Invalid { diagnostics } => found.extend(diagnostics),
                FileRead::Other { reason } => {
                    let shown = ShownText::new(word);
                    out.note(format_args!("{shown}: not a command: {}", reason.as_str()));
                }
            }
            continue;
        }
        let not_found = |error| agents::not_found(ResolveError::NotFound(error));
        let command = find_called(&catalog, word).map_err(not_found)?;
        found.extend(command.diagnostics.iter().cloned());
        good.push(&command.definition);
    }
    if !json {
        for command in good.into_iter().chain(&read) {
            let path = command.path.to_string_lossy();
            let name = ShownText::new(command.slug.as_str());
            out.print_line(format_args!("{}: command `/{name}`", ShownText::new(&path)));
        }
    }
    agents::end_check(&found, json, out)
}

fn command_summary(command: &CatalogEntry<CommandDefinition>) -> Value {
    let CommandDefinition { description, terms, body, path, .. } = &command.definition;
    json!({
        "id": command.id.to_string(),
        "name": call_name(command),
        "description": description,
        "argument_hint": terms.argument_hint,
        "allowed_tools": terms.allowed_tools,
        "model": terms.model,
        "bytes": body.len(),
        "path": path,
    })
}
