//! The common part of `mcp review`, `login` and `logout`: finding the named server, and the gaps in the OS
//! sandbox for the audit log.

use std::sync::Arc;

use belljar_agent::Host;
use belljar_definition::{McpSetting, Settings};
use belljar_mcp::{CallSpec, Server};
use belljar_policy::{Budget, Limits, ShownPath as _, ShownText};
use tokio_util::sync::CancellationToken;

use crate::args::server::TenantArg;
use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;
use crate::setup::walls::WallGaps;

/// Finds the section of this server in `belljar.toml`; an error if there is none.
pub(super) fn server_setting<'a>(
    settings: &'a Settings,
    name: &str,
    places: &HomePaths,
) -> Result<&'a McpSetting, Failure> {
    if let Some(setting) = settings.mcp.get(name) {
        return Ok(setting);
    }
    if settings.mcp_programs.contains_key(name) {
        let failure = Failure::usage(format!("the MCP server `{name}` is a command"));
        return Err(failure.with_hint("nobody logs in there: what it needs stands in its `env`"));
    }
    let known: Vec<String> = settings.mcp.keys().map(|known| format!("`{known}`")).collect();
    let failure =
        Failure::usage(format!("there is no MCP server `{}`", ShownText::clip_line(name, 60)));
    Err(match known.is_empty() {
        true => failure
            .with_hint(format!("name one: `[mcp.NAME]` in {}", places.config_path().to_shown())),
        false => failure.with_hint(format!("the servers are {}", known.join(", "))),
    })
}

/// Finds this server among the host's, so that requests can be sent to it.
pub(super) fn find_server(host: &Host, name: &str) -> Result<Arc<Server>, Failure> {
    let server = host.tools.servers().iter().find(|server| server.name() == name).cloned();
    server.ok_or_else(|| Failure::usage(format!("`{name}` has no proper address")))
}

/// The gaps in the OS sandbox for looking up the tenant, and for the audit log. A missing audit log is made
/// here, because that is impossible behind the sandbox.
pub(super) fn wall_gaps(of: &TenantArg, operator: &HomePaths) -> Result<WallGaps, Failure> {
    let data = of.data_root(operator)?;
    data.create_root(operator)?;
    let (read, write) = (data.tenant_read_paths(), vec![data.store_directory()]);
    Ok(WallGaps { read, write, data: Some(data.root_path().to_path_buf()), ..WallGaps::default() })
}

/// The parameters of a request to a server outside of any run.
pub(super) fn call_spec<'a>(
    host: &'a Host,
    budget: &'a Budget,
    limits: &'a Limits,
    cancel: &'a CancellationToken,
) -> CallSpec<'a> {
    CallSpec::from_parts(&host.sandbox, &host.secrets, budget, limits, cancel)
}
