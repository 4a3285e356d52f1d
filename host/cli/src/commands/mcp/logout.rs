//! `belljar mcp logout`: removes the token of a server. Its issuer is not told.

use belljar_catalogue::TokenFiles;
use belljar_policy::Shown;
use serde_json::json;

use crate::args::server::TenantArg;
use crate::setup::below;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, not_written};
use crate::setup::whose::Whose;
use crate::term::out::Out;

pub(super) fn run(
    name: &str,
    of: &TenantArg,
    operator: &Places,
    out: &Out,
) -> Result<Exit, Failure> {
    // The server need not be configured any more; its token is to go all the same.
    let fits = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let shown = Shown::clipped(name, 60);
    if !fits {
        return Err(Failure::usage(format!("`{shown}` is no name of a server")));
    }
    let whose = Whose::named(of, operator)?;
    let tokens = whose.places.tokens();
    below::no_link(&whose.places.home, &tokens)
        .map_err(|error| not_written("use", &tokens, &error))?;
    if !TokenFiles(tokens).forget(name).map_err(Failure::new)? {
        out.line(format_args!("there is no token of `{shown}`"));
        return Ok(Exit::Completed);
    }
    let what = ("log_out_of_mcp_server", "the token is removed");
    of.audit(operator, what, vec![(name.to_owned(), json!({}))])?;
    out.line(format_args!("logged out of `{name}`"));
    Ok(Exit::Completed)
}
