//! `belljar mcp list`: lists the configured MCP servers. Sends no request to a server, and starts none.

use std::sync::Arc;

use belljar_agent::Host;
use belljar_definition::McpProgram;
use belljar_mcp::{Connection, ServerProgram};
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Limits, ShownText};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::keep::list_grants;
use super::served;
use crate::args::server::TenantArg;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// Runs the command: prints each server with its accepted tools, as JSON or for a person.
pub(super) fn run(
    json: bool,
    of: &TenantArg,
    operator: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let host =
        AgentOwner::behind_wall(of, operator, walls, WallGaps::default())?.build_host(out)?;
    let servers = host.tools.servers();
    let url = |name: &str| host.settings.mcp.get(name).map(|it| it.url.clone()).unwrap_or_default();
    let command = |name: &str| host.settings.mcp_programs.get(name);
    let changed = changed_programs(&host)?;
    if json {
        let rows = servers.iter().zip(&changed).map(|(server, changed)| {
            let command = command(server.name());
            json!({
                "name": server.name(),
                "url": command.is_none().then(|| url(server.name())),
                "command": command.map(|command| (&command.command, &command.args)),
                "tools": server.tools().keys().collect::<Vec<_>>(),
                "withheld": server.withheld_reason(),
                "changed": changed,
                "asks_for": list_grants(server.request_grants()),
            })
        });
        out.print_json(&rows.collect::<Vec<_>>())?;
        return Ok(CommandExit::Completed);
    }
    if servers.is_empty() {
        out.print_line("there is no MCP server: `[mcp.NAME]` in `belljar.toml` names one");
        return Ok(CommandExit::Completed);
    }
    let mut table = TextTable::new(out, &["server", "address", "tools", "state"]);
    for (server, changed) in servers.iter().zip(changed) {
        let name = server.name();
        let state = match server.withheld_reason() {
            Some(why) => styled_cell(TextStyle::Yellow, why),
            None if changed => styled_cell(
                TextStyle::Yellow,
                format!(
                    "its program has changed: `belljar mcp review {name}` shows what it offers"
                ),
            ),
            None => styled_cell(TextStyle::Green, "accepted"),
        };
        let line = command(server.name()).map(McpProgram::command_line);
        let url = line.unwrap_or_else(|| url(server.name()));
        table.push_row([
            plain_cell(server.name()),
            plain_cell(ShownText::new(&url)),
            plain_cell(server.tools().len()),
            state,
        ]);
    }
    table.print_to(out);
    Ok(CommandExit::Completed)
}

/// Returns for each server whether its program differs from the accepted one. If this is unknown here, the
/// first call reports it.
fn changed_programs(host: &Host) -> Result<Vec<bool>, Failure> {
    let (budget, limits) =
        (Budget::new_root(BudgetLevel::Tenant, BudgetCaps::unlimited()), Limits::default());
    let cancel = CancellationToken::new();
    let runtime = host::small_runtime()?;
    let servers = host.tools.servers().iter();
    Ok(servers
        .map(|server| {
            let accepted = server.program().and_then(ServerProgram::accepted_digest);
            let Some(accepted) = accepted else { return false };
            let connection = Connection::new(Arc::clone(server));
            let spec = served::call_spec(host, &budget, &limits, &cancel);
            let now = runtime.block_on(connection.identify_program(&spec));
            now.is_ok_and(|now| now.is_some_and(|now| now != accepted))
        })
        .collect())
}
