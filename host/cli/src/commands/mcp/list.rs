//! `belljar mcp list`. No server is asked for anything.

use belljar_definition::McpProgram;
use belljar_policy::Shown;
use serde_json::json;

use crate::args::server::TenantArg;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
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
    if json {
        let rows = servers.iter().map(|server| {
            let command = command(server.name());
            json!({
                "name": server.name(),
                "url": command.is_none().then(|| url(server.name())),
                "command": command.map(|command| (&command.command, &command.args)),
                "tools": server.tools().keys().collect::<Vec<_>>(),
                "withheld": server.withheld(),
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
    for server in servers {
        let state = match server.withheld() {
            None => styled(Style::Green, "accepted"),
            Some(why) => styled(Style::Yellow, why),
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
