//! The common part of `review`, `login` and `logout`: the named server, and the gaps in the OS sandbox for
//! the audit log.

use std::sync::Arc;

use belljar_agent::Host;
use belljar_definition::{McpSetting, Settings};
use belljar_mcp::{CallSpec, Server};
use belljar_policy::{Budget, Limits, Shown, ShownPath as _};
use tokio_util::sync::CancellationToken;

use crate::args::server::TenantArg;
use crate::setup::exit::Failure;
use crate::setup::home::Places;
use crate::setup::walls::Through;

/// The server of this name in `belljar.toml`.
pub(super) fn setting<'a>(
    settings: &'a Settings,
    name: &str,
    places: &Places,
) -> Result<&'a McpSetting, Failure> {
    if let Some(setting) = settings.mcp.get(name) {
        return Ok(setting);
    }
    if settings.mcp_programs.contains_key(name) {
        let failure = Failure::usage(format!("the MCP server `{name}` is a command"));
        return Err(failure.hint("nobody logs in there: what it needs stands in its `env`"));
    }
    let known: Vec<String> = settings.mcp.keys().map(|known| format!("`{known}`")).collect();
    let failure = Failure::usage(format!("there is no MCP server `{}`", Shown::clipped(name, 60)));
    Err(match known.is_empty() {
        true => failure.hint(format!("name one: `[mcp.NAME]` in {}", places.config().shown())),
        false => failure.hint(format!("the servers are {}", known.join(", "))),
    })
}

/// The server of this name, ready to be asked.
pub(super) fn find(host: &Host, name: &str) -> Result<Arc<Server>, Failure> {
    let server = host.tools.servers().iter().find(|server| server.name() == name).cloned();
    server.ok_or_else(|| Failure::usage(format!("`{name}` has no proper address")))
}

/// The gaps in the OS sandbox for the tenant's look-up, and for the audit log, which is made here if missing,
/// because that is impossible behind the sandbox.
pub(super) fn through(of: &TenantArg, operator: &Places) -> Result<Through, Failure> {
    let data = of.root(operator)?;
    data.create(operator)?;
    let (read, write) = (data.of_tenants(), vec![data.store_directory()]);
    Ok(Through { read, write, data: Some(data.root().to_path_buf()), ..Through::default() })
}

/// The means to ask a server outside of any run.
pub(super) fn spec<'a>(
    host: &'a Host,
    budget: &'a Budget,
    limits: &'a Limits,
    cancel: &'a CancellationToken,
) -> CallSpec<'a> {
    CallSpec::of(&host.sandbox, &host.secrets, budget, limits, cancel)
}
