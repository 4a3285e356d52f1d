//! `belljar mcp review`: shows what an MCP server offers now, compared with what was accepted. Only an offer
//! that a person has seen can be accepted: in the same process, or by its digest.

use std::sync::Arc;

use belljar_mcp::{Connection, Server, ToolListing};
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Limits};
use tokio_util::sync::CancellationToken;

use super::keep::{ServerOffer, unwritable_file};
use super::{programs, served};
use crate::args::server::TenantArg;
use crate::setup::below;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::setup::walls::WallRaiser;
use crate::setup::whose::AgentOwner;
use crate::term::out::TerminalOutput;

/// Runs the command: lists the server's tools, shows the differences, and stores the offer if the person
/// agrees.
pub(super) fn run(
    name: &str,
    accept: Option<&str>,
    of: &TenantArg,
    operator: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    if let Some(done) = programs::review_program(name, accept, of, operator, walls, out)? {
        return Ok(done);
    }
    let whose = AgentOwner::for_tenant(of, operator)?;
    let places = &whose.places;
    let settings = host::read_settings(places)?;
    let setting = served::server_setting(&settings, name, places)?;
    let directory = below::in_home(&places.home, &places.mcp_directory());
    let directory = directory.map_err(|error| unwritable_file(&places.mcp_directory(), &error))?;
    let mut through = served::wall_gaps(of, operator)?;
    through.write.push(directory.path().to_path_buf());
    walls.raise_for(operator, &through)?;
    let host = whose.build_host(out)?;
    let server = served::find_server(&host, name)?;
    let listing = list_server_tools(&server, &host, out)?;

    let (at, address) = ("url", setting.url.as_str());
    let offer = ServerOffer { server: &server, at, address, listing: &listing };
    let difference = offer.find_difference(out);
    if difference.is_empty() && server.withheld_reason().is_none() {
        return Ok(offer.report_unchanged(out));
    }
    offer.store_if_agreed(&difference, accept, (of, operator), &directory, out)
}

/// Lists the server's tools, through the gate as in a run.
fn list_server_tools(
    server: &Arc<Server>,
    host: &belljar_agent::Host,
    out: &TerminalOutput,
) -> Result<ToolListing, Failure> {
    let runtime = host::small_runtime()?;
    let listed = runtime.block_on(async {
        let cancel = CancellationToken::new();
        host::cancel_on_interrupt(&cancel, out);
        let budget = Budget::new_root(BudgetLevel::Tenant, BudgetCaps::unlimited());
        let (connection, limits) = (Connection::new(Arc::clone(server)), Limits::default());
        let spec = served::call_spec(host, &budget, &limits, &cancel);
        connection.list_tools(spec).await
    });
    listed.map_err(|why| {
        Failure::new(format!(
            "the MCP server `{}` did not say what it offers: {why}",
            server.name()
        ))
    })
}
