//! `belljar mcp`: offers belljar's tools and agents to a client that speaks MCP and starts this program.
//! Stdout has only messages of the protocol. The commands below it are for the other direction: `list`,
//! `review`, `login` and `logout` manage MCP servers whose tools belljar's agents may be granted.

mod callback;
mod clients;
mod config;
mod keep;
mod list;
mod login;
mod logout;
mod programs;
mod review;
mod served;

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use belljar_agent::Host;
use belljar_model::ModelRegistry;
use belljar_server::serve_stdio;
use belljar_session::{Admission, Service};
use tokio_util::sync::CancellationToken;

use crate::args::mcp::{McpArgs, McpCommand};
use crate::commands::run::{runner, saving, transcript};
use crate::commands::serve::limits;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host::{self, HostAssembly};
use crate::setup::threads;
use crate::setup::walls::WallRaiser;
use crate::term::out::TerminalOutput;

/// The most simultaneous jars of the client's turns.
const JARS: usize = 256;
/// The most waiting turns of the client.
const QUEUE: usize = 256;

/// The time that turns have to end after their client has gone. A turn that is still running is resumed at
/// the next start.
const DRAIN: Duration = Duration::from_millis(500);

/// Runs one of the commands, or serves a client.
pub(super) fn run(
    args: &McpArgs,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    match &args.command {
        Some(McpCommand::Config { client, write }) => {
            config::run(*client, *write, places, walls, out)
        }
        Some(McpCommand::List { json, of }) => list::run(*json, of, places, walls, out),
        Some(McpCommand::Review { server, accept, of }) => {
            review::run(server, accept.as_deref(), of, places, walls, out)
        }
        Some(McpCommand::Login(login)) => login::run(login, places, walls, out),
        Some(McpCommand::Logout { server, of }) => logout::run(server, of, places, out),
        None => serve_tools(args, places, walls, out),
    }
}

/// Serves the client that has started this process, until it closes stdin.
fn serve_tools(
    args: &McpArgs,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    args.nobodys.refuse_tenant(
        "a tenant's tools are called at the server, under its limits",
        "start `belljar serve`, and give the client its address with `/mcp` and a key of the tenant",
    )?;
    if std::io::stdin().is_terminal() {
        out.note(format_args!("this waits for messages of the protocol on its input: {HINT}"));
    }
    saving::make_ready(places, false)?;
    threads::give_way();
    walls.raise_for(places, &runner::wall_gaps(args.transcript.as_deref(), None, places))?;
    let host = assemble_host(args.transcript.as_deref(), places, out)?;
    for problem in host.tools.problems() {
        out.print_diagnostic(problem);
    }
    let runtime = host::make_runtime()?;
    let (service, store, stop) = runtime.block_on(async {
        let store = saving::open_store(places).await?;
        let limits = limits::service_limits(&host.settings.server);
        let workspace = belljar_agent::canonicalize_workspace(&places.workspace);
        let workspace = workspace.map_err(|error| Failure::usage(error.to_string()))?;
        let admission = Admission::new(JARS, QUEUE);
        let service = Service::new(host, store.clone(), workspace, admission, limits);
        let stop = CancellationToken::new();
        host::cancel_on_interrupt(&stop, out);
        Ok::<_, Failure>((service, store, stop))
    })?;
    // The client waits for each answer, and its jar makes one call after another, so a separate thread
    // answers fastest. The store and agents use the other threads.
    let own = host::small_runtime()?;
    let served = own.block_on(async {
        let served = serve_stdio(service.clone(), stop).await;
        // Requests of the client end meanwhile too: each tells its turn that the client has gone.
        service.drain_turns(DRAIN).await;
        served
    });
    // A thread that still reads stdin must not keep the process alive, and a remaining request must not keep
    // the store open.
    own.shutdown_background();
    runtime.block_on(store.close());
    runtime.shutdown_background();
    let served = served.map_err(|error| Failure::new(error.to_string()).with_hint(HINT));
    served.map(|()| CommandExit::Completed)
}

/// The hint for a person who starts this command on a terminal.
const HINT: &str = "a client starts this command itself: `belljar mcp config CLIENT` says how";

/// Builds the host, with a transcript in place of the models if one is given.
fn assemble_host(
    transcript: Option<&Path>,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<Host, Failure> {
    let mut assembly = HostAssembly::new(places, out)?;
    if let Some(path) = transcript {
        assembly = assembly
            .with_models(ModelRegistry::from_single(Arc::new(transcript::scripted_model(path)?)));
    }
    assembly.build_host()
}
