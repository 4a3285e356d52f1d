//! The lists that the commands of a chat show.

use belljar_agent::{Host, ResolvedAgent, RunSpec, resolve_all, resolve_all_teams};
use belljar_definition::Visibility;
use belljar_policy::{Meter, Permission, Shown};
use belljar_session::Conversation;

use super::slash::{COMMANDS, usage};
use crate::commands::catalogue::agents;
use crate::commands::catalogue::teams;
use crate::setup::exit::Failure;
use crate::setup::home::Places;
use crate::term::out::{Out, Style};
use crate::term::table::{self, Table, plain, styled};

/// Characters of a description.
const MAX_DESCRIPTION: usize = 70;

pub(super) fn help(out: &Out) {
    let mut table = Table::new(out, &["", ""]);
    for row in COMMANDS {
        table.row([plain(usage(row)), styled(Style::Dim, row.help)]);
    }
    table.print(out);
    out.line("anything else is said to the agent; Ctrl-C stops its answer");
}

pub(super) fn agents(host: &Host, places: &Places, out: &Out) -> Result<(), Failure> {
    let all = resolve_all(host, &places.workspace).map_err(agents::not_found)?;
    let mut table = Table::new(out, &["agent", "status", "description"]).cut(MAX_DESCRIPTION);
    for agent in all.iter().filter(|a| a.definition.visibility != Visibility::Internal) {
        table.row([
            plain(&agent.id.slug),
            agents::status_cell(&agent.status),
            plain(Shown::new(&agent.definition.description)),
        ]);
    }
    table.print(out);
    Ok(())
}

pub(super) fn teams(host: &Host, places: &Places, out: &Out) -> Result<(), Failure> {
    let all = resolve_all_teams(host, &places.workspace).map_err(agents::not_found)?;
    if all.is_empty() {
        out.line("there are no teams");
        return Ok(());
    }
    let mut table = Table::new(out, &["team", "status", "description"]).cut(MAX_DESCRIPTION);
    for team in &all {
        let (style, word) = teams::status(team);
        table.row([
            plain(&team.id.slug),
            styled(style, word),
            plain(Shown::new(&team.definition.description)),
        ]);
    }
    table.print(out);
    Ok(())
}

pub(super) fn skills(host: &Host, out: &Out) {
    let catalog = host.skills.catalog();
    if catalog.entries().is_empty() {
        out.line("there are no skills");
        return;
    }
    let mut table = Table::new(out, &["skill", "scope", "description"]).cut(MAX_DESCRIPTION);
    for skill in catalog.entries() {
        table.row([
            plain(&skill.id.slug),
            plain(agents::scope(&skill.id.scope)),
            plain(Shown::new(&skill.definition.description)),
        ]);
    }
    table.print(out);
}

/// `/tools`: the agent's tools, in the words of the grants.
pub(super) fn tools(agent: &ResolvedAgent, host: &Host, out: &Out) {
    let mut table = Table::new(out, &["tool", "granted as", "from"]);
    let mut count = 0;
    for (name, permission) in agent.rights.tools() {
        if permission == Permission::Deny {
            continue;
        }
        let permission = agents::permission_cell(agent, host, name, permission);
        let from = match host.tools.owner(name.as_str()) {
            Some(component) => component.name.to_string(),
            None => match host.tools.remote(name.as_str()) {
                Some((server, _)) => format!("MCP server {}", server.name()),
                None => "belljar itself".to_owned(),
            },
        };
        table.row([plain(name), permission, styled(Style::Dim, from)]);
        count += 1;
    }
    if count == 0 {
        out.line("this agent has no tools");
    } else {
        table.print(out);
    }
}

/// `/cancel`: what runs in the background.
pub(super) fn background<'a>(running: impl Iterator<Item = (u32, &'a RunSpec)>, out: &Out) {
    let mut table = Table::new(out, &[">number", "agent", "task"]).cut(MAX_DESCRIPTION);
    for (number, spec) in running {
        let task = Shown::clipped(spec.task.trim(), MAX_DESCRIPTION).to_string();
        table.row([plain(number), plain(&spec.agent.id.slug), plain(task)]);
    }
    table.print(out);
}

/// `/budget`: the session's usage and limits.
pub(super) fn budget(conversation: &Conversation, out: &Out) {
    let budget = conversation.budget();
    let limits = conversation.agent().rights.limits();
    let mut table = Table::new(out, &["", ">session", ">of at most", ">each turn at most"]);
    for (name, meter, each) in [
        ("steps", Meter::Steps, limits.steps),
        ("tokens", Meter::Tokens, limits.tokens),
        ("fuel", Meter::Fuel, limits.fuel),
    ] {
        let amount = |number: u64| match meter {
            Meter::Fuel => table::fuel(number),
            _ => table::count(number),
        };
        let limit = match budget.limit(meter) {
            u64::MAX => "no limit".to_owned(),
            limit => amount(limit),
        };
        table.row([
            plain(name),
            plain(amount(budget.spent(meter))),
            plain(limit),
            plain(amount(each)),
        ]);
    }
    table.print(out);
    let used = conversation.used();
    out.line(format_args!(
        "{} tokens in ({} of them cached), {} out, {} tool calls",
        table::count(used.input_tokens),
        table::count(used.cached_tokens),
        table::count(used.output_tokens),
        used.tool_calls
    ));
}
