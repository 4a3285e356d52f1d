//! `belljar mcp review`: a server's present offer, beside the accepted one. Only an offer that a person has
//! seen is accepted: in the same process, or by its digest.

use std::sync::Arc;

use belljar_mcp::{Connection, Listing, Server};
use belljar_policy::{Budget, Caps, Level, Limits};
use tokio_util::sync::CancellationToken;

use super::keep::{Offer, unwritten};
use super::{programs, served};
use crate::args::server::TenantArg;
use crate::setup::below;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::host;
use crate::setup::walls::Walls;
use crate::setup::whose::Whose;
use crate::term::out::Out;

pub(super) fn run(
    name: &str,
    accept: Option<&str>,
    of: &TenantArg,
    operator: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    if let Some(done) = programs::review(name, accept, of, operator, walls, out)? {
        return Ok(done);
    }
    let whose = Whose::named(of, operator)?;
    let places = &whose.places;
    let settings = host::settings(places)?;
    let setting = served::setting(&settings, name, places)?;
    let directory = below::in_home(&places.home, &places.mcp());
    let directory = directory.map_err(|error| unwritten(&places.mcp(), &error))?;
    let mut through = served::through(of, operator)?;
    through.write.push(directory.path().to_path_buf());
    walls.up(operator, &through)?;
    let host = whose.host(out)?;
    let server = served::find(&host, name)?;
    let listing = asked(&server, &host, out)?;

    let (at, address) = ("url", setting.url.as_str());
    let offer = Offer { server: &server, at, address, listing: &listing };
    let difference = offer.difference(out);
    if difference.is_empty() && server.withheld().is_none() {
        return Ok(offer.unchanged(out));
    }
    offer.keep(&difference, accept, (of, operator), &directory, out)
}

/// Lists the tools of the server, through the gate.
fn asked(server: &Arc<Server>, host: &belljar_agent::Host, out: &Out) -> Result<Listing, Failure> {
    let runtime = host::small_runtime()?;
    let listed = runtime.block_on(async {
        let cancel = CancellationToken::new();
        host::cancel_on_interrupt(&cancel, out);
        let budget = Budget::root(Level::Tenant, Caps::unlimited());
        let (connection, limits) = (Connection::new(Arc::clone(server)), Limits::default());
        let spec = served::spec(host, &budget, &limits, &cancel);
        connection.list(spec).await
    });
    listed.map_err(|why| {
        Failure::new(format!(
            "the MCP server `{}` did not say what it offers: {why}",
            server.name()
        ))
    })
}
