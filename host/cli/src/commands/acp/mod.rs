//! `belljar acp`: an agent for an editor that starts this program and talks with it over stdin and stdout.

use std::io::IsTerminal as _;
use std::sync::Arc;

use belljar_acp::{EditorEntrance, StepChannel};
use belljar_model::ModelRegistry;
use belljar_policy::ShownPath as _;
use belljar_session::{Admission, Service};
use belljar_store::Store;

use crate::args::AcpArgs;
use crate::commands::run::{runner, saving, transcript};
use crate::commands::serve::limits::service_limits;
use crate::setup::exit::{CommandExit, Failure, format_error_chain};
use crate::setup::home::HomePaths;
use crate::setup::host::{self, HostAssembly};
use crate::setup::once::remove_left;
use crate::setup::walls::WallRaiser;
use crate::term::out::TerminalOutput;

/// The most simultaneous jars of one editor's turns.
const JARS: usize = 64;
/// The most waiting turns of one editor.
const QUEUE: usize = 64;

/// Runs the command: raises the OS sandbox, builds the host, and serves the editor until it closes stdin.
pub(super) fn run(
    args: &AcpArgs,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    args.nobodys.refuse_tenant(
        "an editor works in a directory of this machine, for whoever started it",
        "a tenant's agents are talked with at the server: `belljar serve`, with a key of the tenant",
    )?;
    if std::io::stdin().is_terminal() {
        out.note("this waits for messages of the protocol on its input: an editor starts this command itself");
        out.note("`belljar chat` talks with an agent here");
    }
    saving::make_sessions(places)?;
    let mut through = runner::wall_gaps(args.transcript.as_deref(), None, places);
    let settings = host::read_settings(places)?;
    // The workspace is writable because the editor's `/apply` writes there, on the person's decision.
    if settings.overlays.by_default {
        through.write.push(places.workspace.clone());
    }
    walls.raise_for(places, &through)?;
    let (results, limits) = (StepChannel::default(), service_limits(&settings.server));
    let mut assembly = HostAssembly::from_settings(settings, places, out);
    if let Some(path) = &args.transcript {
        assembly = assembly
            .with_models(ModelRegistry::from_single(Arc::new(transcript::scripted_model(path)?)));
    }
    let mut host = assembly.build_host()?;
    host.journal = Arc::new(results.clone());
    for problem in host.tools.problems() {
        out.print_diagnostic(problem);
    }
    let workspace = places.workspace.canonicalize();
    let workspace = workspace.map_err(|error| {
        let at = places.workspace.to_shown();
        Failure::usage(format!("the workspace `{at}` cannot be used: {error}"))
    })?;
    let runtime = host::make_runtime()?;
    let served = runtime.block_on(async {
        remove_left(&places.store_directory());
        let store = Store::open(&places.store_path())
            .await
            .map_err(|e| Failure::new(format_error_chain(&e)))?;
        let admission = Admission::new(JARS, QUEUE);
        let service = Service::new(host, store.clone(), workspace, admission, limits);
        let (agent, model) = (args.agent.clone(), args.model.clone());
        let entrance = EditorEntrance { service, results, agent, model };
        let served = entrance.serve_editor(tokio::io::stdin(), tokio::io::stdout()).await;
        store.close().await;
        served.map_err(|error| Failure::new(format!("the editor cannot be served: {error}")))
    });
    // A thread that still waits for a line must not keep the process alive.
    runtime.shutdown_background();
    served.map(|()| CommandExit::Completed)
}
