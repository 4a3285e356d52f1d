//! Prints the lists that the commands of a chat show.

use belljar_agent::commands::{self, CalledKind, CommandCall, find_called_kind};
use belljar_agent::skills::{SkillCaller, load_skill};
use belljar_agent::{CallerInput, Host, ResolvedAgent, RunSpec, resolve_all, resolve_all_teams};
use belljar_definition::Visibility;
use belljar_policy::{CallPermission, Meter, ShownText};
use belljar_session::Conversation;

use super::slash::{COMMANDS, format_usage};
use crate::commands::catalogue::agents;
use crate::commands::catalogue::teams;
use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{self, TextTable, plain_cell, styled_cell};

/// The most characters of a description.
const MAX_DESCRIPTION: usize = 70;

/// `/help`: the commands of a chat.
pub(super) fn print_help(out: &TerminalOutput) {
    let mut table = TextTable::new(out, &["", ""]);
    for row in COMMANDS {
        table.push_row([plain_cell(format_usage(row)), styled_cell(TextStyle::Dim, row.help)]);
    }
    table.print_to(out);
    out.print_line("anything else is said to the agent; Ctrl-C stops its answer");
}

/// `/agents`: the agents that can be named, with their status.
pub(super) fn list_agents(
    host: &Host,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    let all = resolve_all(host, &places.workspace).map_err(agents::not_found)?;
    let mut table =
        TextTable::new(out, &["agent", "status", "description"]).with_cut(MAX_DESCRIPTION);
    for agent in all.iter().filter(|a| a.definition.visibility != Visibility::Internal) {
        table.push_row([
            plain_cell(&agent.id.slug),
            agents::status_cell(&agent.status),
            plain_cell(ShownText::new(&agent.definition.description)),
        ]);
    }
    table.print_to(out);
    Ok(())
}

/// `/teams`: the teams, with their status.
pub(super) fn list_teams(
    host: &Host,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    let all = resolve_all_teams(host, &places.workspace).map_err(agents::not_found)?;
    if all.is_empty() {
        out.print_line("there are no teams");
        return Ok(());
    }
    let mut table =
        TextTable::new(out, &["team", "status", "description"]).with_cut(MAX_DESCRIPTION);
    for team in &all {
        let (style, word) = teams::team_status(team);
        table.push_row([
            plain_cell(&team.id.slug),
            styled_cell(style, word),
            plain_cell(ShownText::new(&team.definition.description)),
        ]);
    }
    table.print_to(out);
    Ok(())
}

/// The text and the caller's input of a line that calls a command or a skill, for example `/review src/main.rs`.
/// `None` = there is neither.
pub(super) fn find_call<'l>(
    host: &Host,
    line: &'l str,
) -> Option<Result<(&'l str, CallerInput), Failure>> {
    let call = CommandCall::from_line(line)?;
    host.commands.refresh();
    host.skills.refresh();
    let kind = find_called_kind(&host.commands.catalog(), &host.skills.catalog(), &call.name)?;
    if kind == CalledKind::Command {
        let fits = commands::command_message(&host.commands, &call).map_err(Failure::usage);
        let brought = CallerInput { command: Some(call), ..CallerInput::default() };
        return Some(fits.map(|_| (line, brought)));
    }
    let loaded = load_skill(&host.skills, &call.name, SkillCaller::Person, &[]);
    let task = line.split_once(char::is_whitespace).map_or("", |(_, task)| task.trim());
    let CommandCall { name, arguments } = call;
    Some(match loaded {
        Err(why) => Err(Failure::usage(why)),
        Ok(_) if arguments.is_empty() => {
            let name = ShownText::clip_line(&name, 80);
            Err(Failure::usage(format!("say what is to be done with it: `/{name} TASK`")))
        }
        Ok(_) => Ok((task, CallerInput { skills: vec![name], ..CallerInput::default() })),
    })
}

pub(super) fn list_skills(host: &Host, out: &TerminalOutput) {
    let catalog = host.skills.catalog();
    if catalog.entries().is_empty() {
        out.print_line("there are no skills");
        return;
    }
    let mut table =
        TextTable::new(out, &["skill", "scope", "description"]).with_cut(MAX_DESCRIPTION);
    for skill in catalog.entries() {
        table.push_row([
            plain_cell(&skill.id.slug),
            plain_cell(agents::format_scope(&skill.id.scope)),
            plain_cell(ShownText::new(&skill.definition.description)),
        ]);
    }
    table.print_to(out);
}

/// `/tools`: the agent's tools, each with its permission (`allow` or `ask`) and its source.
pub(super) fn list_tools(agent: &ResolvedAgent, host: &Host, out: &TerminalOutput) {
    let mut table = TextTable::new(out, &["tool", "granted as", "from"]);
    let mut count = 0;
    for (name, permission) in agent.rights.offered_tools() {
        if permission == CallPermission::Deny {
            continue;
        }
        let permission = agents::permission_cell(agent, host, name, permission);
        let from = match host.tools.find_component(name.as_str()) {
            Some(component) => component.name.to_string(),
            None => match host.tools.find_remote(name.as_str()) {
                Some((server, _)) => format!("MCP server {}", server.name()),
                None => "belljar itself".to_owned(),
            },
        };
        table.push_row([plain_cell(name), permission, styled_cell(TextStyle::Dim, from)]);
        count += 1;
    }
    if count == 0 {
        out.print_line("this agent has no tools");
    } else {
        table.print_to(out);
    }
}

/// `/cancel` without a number: the runs in the background.
pub(super) fn list_background<'a>(
    running: impl Iterator<Item = (u32, &'a RunSpec)>,
    out: &TerminalOutput,
) {
    let mut table = TextTable::new(out, &[">number", "agent", "task"]).with_cut(MAX_DESCRIPTION);
    for (number, spec) in running {
        let task = ShownText::clip_line(spec.task.trim(), MAX_DESCRIPTION).to_string();
        table.push_row([plain_cell(number), plain_cell(&spec.agent.id.slug), plain_cell(task)]);
    }
    table.print_to(out);
}

/// `/budget`: the session's usage and limits.
pub(super) fn print_budget(conversation: &Conversation, out: &TerminalOutput) {
    let budget = conversation.budget();
    let limits = conversation.agent().rights.limits();
    let mut table = TextTable::new(out, &["", ">session", ">of at most", ">each turn at most"]);
    for (name, meter, each) in [
        ("steps", Meter::Steps, limits.steps),
        ("tokens", Meter::Tokens, limits.tokens),
        ("fuel", Meter::Fuel, limits.fuel),
    ] {
        let amount = |number: u64| match meter {
            Meter::Fuel => table::format_fuel(number),
            _ => table::format_count(number),
        };
        let limit = match budget.limit(meter) {
            u64::MAX => "no limit".to_owned(),
            limit => amount(limit),
        };
        table.push_row([
            plain_cell(name),
            plain_cell(amount(budget.spent_amount(meter))),
            plain_cell(limit),
            plain_cell(amount(each)),
        ]);
    }
    table.print_to(out);
    let used = conversation.total_usage();
    out.print_line(format_args!(
        "{} tokens in ({} of them cached), {} out, {} tool calls",
        table::format_count(used.input_tokens),
        table::format_count(used.cached_tokens),
        table::format_count(used.output_tokens),
        used.tool_calls
    ));
}
