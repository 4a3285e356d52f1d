//! `belljar mcp login`: gets a token for an MCP server, after a person's consent in a browser. The token is
//! stored in the home, and never printed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use belljar_agent::Host;
use belljar_catalogue::TokenFiles;
use belljar_mcp::{AuthError, Connection, KeepTokens as _, LoginAsk, Server, ServerTokens};
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Limits, ShownText};
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::callback::LoginCallback;
use super::served;
use crate::args::mcp::LoginArgs;
use crate::setup::below;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, not_written};
use crate::setup::host;
use crate::setup::walls::WallRaiser;
use crate::setup::whose::AgentOwner;
use crate::term::out::TerminalOutput;

/// The time limit for the server and its issuer together.
const MAX_ASKING: Duration = Duration::from_secs(60);

/// Runs the command: opens the callback address, raises the OS sandbox, waits for the person, and stores the
/// tokens.
pub(super) fn run(
    args: &LoginArgs,
    operator: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let LoginArgs { server: name, scope, of } = args;
    let whose = AgentOwner::for_tenant(of, operator)?;
    let places = &whose.places;
    let settings = host::read_settings(places)?;
    if served::server_setting(&settings, name, places)?.oauth.is_service {
        return Err(Failure::usage(format!(
            "`{name}` is asked with a secret of the client's own: nobody logs in there"
        )));
    }
    let scopes = scope.iter().flat_map(|scope| scope.split(' ')).filter(|scope| !scope.is_empty());
    let scopes: Vec<String> = scopes.map(str::to_owned).collect();
    let directory = places.tokens_directory();
    below::in_home(&places.home, &directory)
        .map_err(|error| not_written("create", &directory, &error))?;
    let callback = LoginCallback::open_listener()?;
    let mut through = served::wall_gaps(of, operator)?;
    through.write.push(directory.clone());
    walls.raise_for(operator, &through)?;
    let host = whose.build_host(out)?;
    let server = served::find_server(&host, name)?;
    let tokens = login_tokens(&server, &host, scopes, callback, out)?;
    store_tokens(name, &tokens, &directory)?;
    let detail = json!({ "issuer": tokens.issuer(), "scopes": tokens.scopes() });
    let what = ("log_in_to_mcp_server", "the token is kept");
    of.audit_action(operator, what, vec![(name.to_owned(), detail)])?;
    out.print_line(format_args!("logged in to `{name}`"));
    Ok(CommandExit::Completed)
}

/// Asks the issuer for tokens: prints the address for the person's browser, and waits for the answer.
fn login_tokens(
    server: &Arc<Server>,
    host: &Host,
    scopes: Vec<String>,
    callback: LoginCallback,
    out: &TerminalOutput,
) -> Result<ServerTokens, Failure> {
    let mut random = [0; 64];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::new(format!("this machine gives no random bytes: {error}")))?;
    let before = server.current_tokens();
    let ask = LoginAsk {
        redirect: callback.redirect_address(),
        scopes,
        before: before.as_deref(),
        random,
    };
    host::small_runtime()?.block_on(async {
        let cancel = CancellationToken::new();
        host::cancel_on_interrupt(&cancel, out);
        let budget = Budget::new_root(BudgetLevel::Tenant, BudgetCaps::unlimited());
        let limits = Limits::default();
        let spec = served::call_spec(host, &budget, &limits, &cancel);
        let connection = Connection::new(Arc::clone(server));
        let login = within_deadline(server.name(), connection.log_in(&spec, ask)).await?;
        out.note(format_args!("`{}` is asked for a token", ShownText::clip_line(login.issuer(), 300)));
        if !login.scopes().is_empty() {
            out.note(format_args!("with the rights {}", login.scopes().join(" ")));
        }
        out.note("open this address in a browser of this machine, and say yes there");
        out.print_line(ShownText::new(login.login_address()));
        let query = tokio::select! {
            () = cancel.cancelled() => return Err(Failure::new("it was cancelled").with_exit(CommandExit::Cancelled)),
            query = callback.wait_for_answer(&login) => query?,
        };
        within_deadline(server.name(), connection.logged_in(&spec, login, &query)).await
    })
}

/// Runs `asking` with the time limit; the errors name the server.
async fn within_deadline<T>(
    name: &str,
    asking: impl Future<Output = Result<T, AuthError>>,
) -> Result<T, Failure> {
    match timeout(MAX_ASKING, asking).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(why)) => Err(Failure::new(format!("there is no token of `{name}`: {why}"))),
        Err(_) => Err(Failure::new(format!(
            "there is no token of `{name}`: nobody answers within a minute"
        ))),
    }
}

fn store_tokens(name: &str, tokens: &ServerTokens, directory: &Path) -> Result<(), Failure> {
    TokenFiles(directory.to_path_buf()).store_tokens(name, tokens).map_err(Failure::new)
}
