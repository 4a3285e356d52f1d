//! `belljar mcp login`: a token for a server, with a person's consent in a browser. The token is stored in
//! the home, and never shown.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use belljar_agent::Host;
use belljar_catalogue::TokenFiles;
use belljar_mcp::{AuthError, Connection, KeepTokens as _, LoginAsk, Server, Tokens};
use belljar_policy::{Budget, Caps, Level, Limits, Shown};
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::callback::Callback;
use super::served;
use crate::args::mcp::LoginArgs;
use crate::setup::below;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, not_written};
use crate::setup::host;
use crate::setup::walls::Walls;
use crate::setup::whose::Whose;
use crate::term::out::Out;

/// How long a server and its issuer have to answer.
const MAX_ASKING: Duration = Duration::from_secs(60);

pub(super) fn run(
    args: &LoginArgs,
    operator: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let LoginArgs { server: name, scope, of } = args;
    let whose = Whose::named(of, operator)?;
    let places = &whose.places;
    let settings = host::settings(places)?;
    if served::setting(&settings, name, places)?.oauth.is_service {
        return Err(Failure::usage(format!(
            "`{name}` is asked with a secret of the client's own: nobody logs in there"
        )));
    }
    let scopes = scope.iter().flat_map(|scope| scope.split(' ')).filter(|scope| !scope.is_empty());
    let scopes: Vec<String> = scopes.map(str::to_owned).collect();
    let directory = places.tokens();
    below::in_home(&places.home, &directory)
        .map_err(|error| not_written("create", &directory, &error))?;
    let callback = Callback::listen()?;
    let mut through = served::through(of, operator)?;
    through.write.push(directory.clone());
    walls.up(operator, &through)?;
    let host = whose.host(out)?;
    let server = served::find(&host, name)?;
    let tokens = asked(&server, &host, scopes, callback, out)?;
    kept(name, &tokens, &directory)?;
    let detail = json!({ "issuer": tokens.issuer(), "scopes": tokens.scopes() });
    let what = ("log_in_to_mcp_server", "the token is kept");
    of.audit(operator, what, vec![(name.to_owned(), detail)])?;
    out.line(format_args!("logged in to `{name}`"));
    Ok(Exit::Completed)
}

fn asked(
    server: &Arc<Server>,
    host: &Host,
    scopes: Vec<String>,
    callback: Callback,
    out: &Out,
) -> Result<Tokens, Failure> {
    let mut random = [0; 64];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::new(format!("this machine gives no random bytes: {error}")))?;
    let before = server.tokens();
    let ask = LoginAsk { redirect: callback.address(), scopes, before: before.as_deref(), random };
    host::small_runtime()?.block_on(async {
        let cancel = CancellationToken::new();
        host::cancel_on_interrupt(&cancel, out);
        let budget = Budget::root(Level::Tenant, Caps::unlimited());
        let limits = Limits::default();
        let spec = served::spec(host, &budget, &limits, &cancel);
        let connection = Connection::new(Arc::clone(server));
        let login = within(server.name(), connection.log_in(&spec, ask)).await?;
        out.note(format_args!("`{}` is asked for a token", Shown::clipped(login.issuer(), 300)));
        if !login.scopes().is_empty() {
            out.note(format_args!("with the rights {}", login.scopes().join(" ")));
        }
        out.note("open this address in a browser of this machine, and say yes there");
        out.line(Shown::new(login.address()));
        let query = tokio::select! {
            () = cancel.cancelled() => return Err(Failure::new("it was cancelled").exit(Exit::Cancelled)),
            query = callback.answer(&login) => query?,
        };
        within(server.name(), connection.logged_in(&spec, login, &query)).await
    })
}

async fn within<T>(
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

fn kept(name: &str, tokens: &Tokens, directory: &Path) -> Result<(), Failure> {
    TokenFiles(directory.to_path_buf()).keep(name, tokens).map_err(Failure::new)
}
