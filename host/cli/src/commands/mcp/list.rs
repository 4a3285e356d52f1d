//! `belljar mcp list`. No server is asked for anything, and none is started.

use std::sync::Arc;

use belljar_agent::Host;
use belljar_definition::McpProgram;
use belljar_mcp::{Connection, ServerProgram};
use belljar_policy::{Budget, Caps, Level, Limits, Shown};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::keep::said;
use super::served;
use crate::args::server::TenantArg;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::host;
use crate::setup::walls::{Through, Walls};
use crate::setup::whose::Whose;
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain, styled};

pub(super) fn run(
    json: bool,
    of: &TenantArg,
    operator: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let host = Whose::behind(of, operator, walls, Through::default())?.host(out)?;
    let servers = host.tools.servers();
    let url = |name: &str| host.settings.mcp.get(name).map(|it| it.url.clone()).unwrap_or_default();
    let command = |name: &str| host.settings.mcp_programs.get(name);
    let changed = changed(&host)?;
    if json {
        let rows = servers.iter().zip(&changed).map(|(server, changed)| {
            let command = command(server.name());
            json!({
                "name": server.name(),
                "url": command.is_none().then(|| url(server.name())),
                "command": command.map(|command| (&command.command, &command.args)),
                "tools": server.tools().keys().collect::<Vec<_>>(),
                "withheld": server.withheld(),
                "changed": changed,
                "asks_for": said(server.granted()),
            })
        });
        out.json(&rows.collect::<Vec<_>>())?;
        return Ok(Exit::Completed);
    }
    if servers.is_empty() {
        out.line("there is no MCP server: `[mcp.NAME]` in `belljar.toml` names one");
        return Ok(Exit::Completed);
    }
    let mut table = Table::new(out, &["server", "address", "tools", "state"]);
    for (server, changed) in servers.iter().zip(changed) {
        let name = server.name();
        let state = match server.withheld() {
            Some(why) => styled(Style::Yellow, why),
            None if changed => styled(
                Style::Yellow,
                format!(
                    "its program has changed: `belljar mcp review {name}` shows what it offers"
                ),
            ),
            None => styled(Style::Green, "accepted"),
        };
        let line = command(server.name()).map(McpProgram::command_line);
        let url = line.unwrap_or_else(|| url(server.name()));
        table.row([
            plain(server.name()),
            plain(Shown::new(&url)),
            plain(server.tools().len()),
            state,
        ]);
    }
    table.print(out);
    Ok(Exit::Completed)
}

/// Whether the program of each server differs from the accepted one. If unknown, the first call reports it.
fn changed(host: &Host) -> Result<Vec<bool>, Failure> {
    let (budget, limits) = (Budget::root(Level::Tenant, Caps::unlimited()), Limits::default());
    let cancel = CancellationToken::new();
    let runtime = host::small_runtime()?;
    let servers = host.tools.servers().iter();
    Ok(servers
        .map(|server| {
            let accepted = server.program().and_then(ServerProgram::accepted_digest);
            let Some(accepted) = accepted else { return false };
            let connection = Connection::new(Arc::clone(server));
            let spec = served::spec(host, &budget, &limits, &cancel);
            let now = runtime.block_on(connection.identify(&spec));
            now.is_ok_and(|now| now.is_some_and(|now| now != accepted))
        })
        .collect())
}
