//! `belljar mcp review` for an MCP server that is a command: shows its tools, its program and the program's
//! rights.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use belljar_agent::Host;
use belljar_definition::{McpProgram, McpValue};
use belljar_mcp::{Connection, Server, ToolListing};
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Limits, ShownPath as _, ShownText};
use tokio_util::sync::CancellationToken;

use super::keep::{ServerOffer, unwritable_file};
use super::served;
use crate::args::server::TenantArg;
use crate::setup::below;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::setup::walls::WallRaiser;
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};

/// Reviews the server, if it is a command; `None` = it is another kind of server.
pub(super) fn review_program(
    name: &str,
    accept: Option<&str>,
    of: &TenantArg,
    operator: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<Option<CommandExit>, Failure> {
    let whose = AgentOwner::for_tenant(of, operator)?;
    let places = &whose.places;
    let settings = host::read_settings(places)?;
    let Some(setting) = settings.mcp_programs.get(name) else { return Ok(None) };
    if of.other_tenant().is_some() {
        let failure = Failure::usage(format!("the MCP server `{name}` of the tenant is a command"));
        return Err(failure.with_hint("write its `url`: belljar starts no program for a tenant"));
    }
    let directory = below::in_home(&places.home, &places.mcp_directory());
    let directory = directory.map_err(|error| unwritable_file(&places.mcp_directory(), &error))?;
    let mut through = served::wall_gaps(of, operator)?;
    through.write.push(directory.path().to_path_buf());
    walls.raise_for(operator, &through)?;
    let host = whose.build_host(out)?;
    let server = host.tools.servers().iter().find(|server| server.name() == name).cloned();
    let server = server.ok_or_else(|| Failure::usage(format!("`{name}` is no proper server")))?;
    let (program, listing) = list_program_tools(&server, &host, out)?;

    let address = server.program().map(|it| it.digest_address(&program)).unwrap_or_default();
    let offer =
        ServerOffer { server: &server, at: "command", address: &address, listing: &listing };
    let difference = offer.find_difference(out);
    let accepted = server.program().and_then(|it| it.accepted_digest());
    if difference.is_empty()
        && server.withheld_reason().is_none()
        && accepted == Some(program.as_str())
    {
        return Ok(Some(offer.report_unchanged(out)));
    }
    if accepted.is_some_and(|accepted| accepted != program) {
        out.print_line(
            out.paint(TextStyle::Bold, "its program, or a script of it, is another than before"),
        );
    }
    print_rights(setting, out);
    offer.store_if_agreed(&difference, accept, (of, operator), &directory, out).map(Some)
}

/// Computes the digest of the server's program, starts the program and lists its tools; returns both. If
/// the digest changes before the start, the program is not started, so the tools belong to the digest.
fn list_program_tools(
    server: &Arc<Server>,
    host: &Host,
    out: &TerminalOutput,
) -> Result<(String, ToolListing), Failure> {
    let runtime = host::small_runtime()?;
    let listed = runtime.block_on(async {
        let cancel = CancellationToken::new();
        host::cancel_on_interrupt(&cancel, out);
        let budget = Budget::new_root(BudgetLevel::Tenant, BudgetCaps::unlimited());
        let (connection, limits) = (Connection::new(Arc::clone(server)), Limits::default());
        let spec = served::call_spec(host, &budget, &limits, &cancel);
        let program = connection.identify_program(&spec).await?;
        let program = program.ok_or_else(|| "it is no command".to_owned())?;
        let listing = connection.list_of_program(&program, &spec).await?;
        Ok::<_, String>((program, listing))
    });
    listed.map_err(|why| {
        let name = server.name();
        Failure::new(format!("the MCP server `{name}` did not say what it offers: {why}"))
    })
}

/// Prints the rights that `belljar.toml` gives the program.
fn print_rights(program: &McpProgram, out: &TerminalOutput) {
    let paths = |word: &str, paths: &BTreeSet<PathBuf>| {
        for path in paths {
            out.print_line(format_args!("  {word} {}", path.to_shown()));
        }
    };
    out.print_line(out.paint(TextStyle::Bold, "it runs with"));
    out.print_line(format_args!("  command {}", ShownText::new(&program.command_line())));
    paths("data", &program.data);
    paths("read", &program.read);
    paths("read-write", &program.write);
    out.print_line(if program.network { "  any network address" } else { "  no network" });
    for (name, value) in &program.environment {
        match value {
            McpValue::Text(_) => out.print_line(format_args!("  variable {name}")),
            McpValue::Secret(secret) => {
                out.print_line(format_args!("  variable {name}, the secret `{secret}`"));
            }
        }
    }
    let (memory, processes) = (program.memory_mib, program.processes);
    out.print_line(format_args!(
        "  {memory} MiB a process, {processes} processes beside its first"
    ));
}
