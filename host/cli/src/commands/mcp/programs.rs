//! `belljar mcp review` for a server that is a command: the offered tools, the program, and its rights.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use belljar_agent::Host;
use belljar_definition::{McpProgram, McpValue};
use belljar_mcp::{Connection, Listing, Server};
use belljar_policy::{Budget, Caps, Level, Limits, Shown, ShownPath as _};
use tokio_util::sync::CancellationToken;

use super::keep::{Offer, unwritten};
use super::served;
use crate::args::server::TenantArg;
use crate::setup::below;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::host;
use crate::setup::walls::Walls;
use crate::setup::whose::Whose;
use crate::term::out::{Out, Style};

/// Reviews a server that is a command; `None` = another kind.
pub(super) fn review(
    name: &str,
    accept: Option<&str>,
    of: &TenantArg,
    operator: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Option<Exit>, Failure> {
    let whose = Whose::named(of, operator)?;
    let places = &whose.places;
    let settings = host::settings(places)?;
    let Some(setting) = settings.mcp_programs.get(name) else { return Ok(None) };
    if of.other().is_some() {
        let failure = Failure::usage(format!("the MCP server `{name}` of the tenant is a command"));
        return Err(failure.hint("write its `url`: belljar starts no program for a tenant"));
    }
    let directory = below::in_home(&places.home, &places.mcp());
    let directory = directory.map_err(|error| unwritten(&places.mcp(), &error))?;
    let mut through = served::through(of, operator)?;
    through.write.push(directory.path().to_path_buf());
    walls.up(operator, &through)?;
    let host = whose.host(out)?;
    let server = host.tools.servers().iter().find(|server| server.name() == name).cloned();
    let server = server.ok_or_else(|| Failure::usage(format!("`{name}` is no proper server")))?;
    let (program, listing) = asked(&server, &host, out)?;

    let address = server.program().map(|it| it.address(&program)).unwrap_or_default();
    let offer = Offer { server: &server, at: "command", address: &address, listing: &listing };
    let difference = offer.difference(out);
    let accepted = server.program().and_then(|it| it.accepted_digest());
    if difference.is_empty() && server.withheld().is_none() && accepted == Some(program.as_str()) {
        return Ok(Some(offer.unchanged(out)));
    }
    if accepted.is_some_and(|accepted| accepted != program) {
        out.line(out.paint(Style::Bold, "its program, or a script of it, is another than before"));
    }
    rights(setting, out);
    offer.keep(&difference, accept, (of, operator), &directory, out).map(Some)
}

/// The digest of the program, and the tools listed by the program with that digest.
fn asked(server: &Arc<Server>, host: &Host, out: &Out) -> Result<(String, Listing), Failure> {
    let runtime = host::small_runtime()?;
    let listed = runtime.block_on(async {
        let cancel = CancellationToken::new();
        host::cancel_on_interrupt(&cancel, out);
        let budget = Budget::root(Level::Tenant, Caps::unlimited());
        let (connection, limits) = (Connection::new(Arc::clone(server)), Limits::default());
        let spec = served::spec(host, &budget, &limits, &cancel);
        let program = connection.identify(&spec).await?;
        let program = program.ok_or_else(|| "it is no command".to_owned())?;
        let listing = connection.list_of_program(&program, &spec).await?;
        Ok::<_, String>((program, listing))
    });
    listed.map_err(|why| {
        let name = server.name();
        Failure::new(format!("the MCP server `{name}` did not say what it offers: {why}"))
    })
}

/// The rights of the program, by `belljar.toml`.
fn rights(program: &McpProgram, out: &Out) {
    let paths = |word: &str, paths: &BTreeSet<PathBuf>| {
        for path in paths {
            out.line(format_args!("  {word} {}", path.shown()));
        }
    };
    out.line(out.paint(Style::Bold, "it runs with"));
    out.line(format_args!("  command {}", Shown::new(&program.command_line())));
    paths("data", &program.data);
    paths("read", &program.read);
    paths("read-write", &program.write);
    out.line(if program.network { "  any network address" } else { "  no network" });
    for (name, value) in &program.environment {
        match value {
            McpValue::Text(_) => out.line(format_args!("  variable {name}")),
            McpValue::Secret(secret) => {
                out.line(format_args!("  variable {name}, the secret `{secret}`"));
            }
        }
    }
    let (memory, processes) = (program.memory_mib, program.processes);
    out.line(format_args!("  {memory} MiB a process, {processes} processes beside its first"));
}
