//! `belljar mcp logout`: removes the token of an MCP server from this machine. The issuer is not informed.

use belljar_catalogue::TokenFiles;
use belljar_policy::ShownText;
use serde_json::json;

use crate::args::server::TenantArg;
use crate::setup::below;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, not_written};
use crate::setup::whose::AgentOwner;
use crate::term::out::TerminalOutput;

/// Runs the command: deletes the token, and writes a line of the audit log.
pub(super) fn run(
    name: &str,
    of: &TenantArg,
    operator: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    // The server may have been removed from the settings; its token can still be deleted.
    let fits = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let shown = ShownText::clip_line(name, 60);
    if !fits {
        return Err(Failure::usage(format!("`{shown}` is no name of a server")));
    }
    let whose = AgentOwner::for_tenant(of, operator)?;
    let tokens = whose.places.tokens_directory();
    below::no_link(&whose.places.home, &tokens)
        .map_err(|error| not_written("use", &tokens, &error))?;
    if !TokenFiles(tokens).remove_tokens(name).map_err(Failure::new)? {
        out.print_line(format_args!("there is no token of `{shown}`"));
        return Ok(CommandExit::Completed);
    }
    let what = ("log_out_of_mcp_server", "the token is removed");
    of.audit_action(operator, what, vec![(name.to_owned(), json!({}))])?;
    out.print_line(format_args!("logged out of `{name}`"));
    Ok(CommandExit::Completed)
}
