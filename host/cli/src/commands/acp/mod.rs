//! `belljar acp`: an agent for editors, over stdin and stdout.

use std::io::IsTerminal as _;
use std::sync::Arc;

use belljar_acp::{Entrance, Results};
use belljar_model::Models;
use belljar_policy::ShownPath as _;
use belljar_session::{Admission, Service};
use belljar_store::Store;

use crate::args::AcpArgs;
use crate::commands::run::{runner, saving, transcript};
use crate::commands::serve::limits::limits;
use crate::setup::exit::{Exit, Failure, chain};
use crate::setup::home::Places;
use crate::setup::host::{self, Assembly};
use crate::setup::once::remove_left;
use crate::setup::walls::Walls;
use crate::term::out::Out;

/// Simultaneous jars of one editor's turns, and waiting turns.
const JARS: usize = 64;
const QUEUE: usize = 64;

pub(super) fn run(
    args: &AcpArgs,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    args.nobodys.refuse(
        "an editor works in a directory of this machine, for whoever started it",
        "a tenant's agents are talked with at the server: `belljar serve`, with a key of the tenant",
    )?;
    if std::io::stdin().is_terminal() {
        out.note("this waits for messages of the protocol on its input: an editor starts this command itself");
        out.note("`belljar chat` talks with an agent here");
    }
    saving::make_sessions(places)?;
    let mut through = runner::through(args.transcript.as_deref(), None, places);
    let settings = host::settings(places)?;
    // `/apply` writes there, by the person's word.
    if settings.overlays.by_default {
        through.write.push(places.workspace.clone());
    }
    walls.up(places, &through)?;
    let (results, limits) = (Results::default(), limits(&settings.server));
    let mut assembly = Assembly::of(settings, places, out);
    if let Some(path) = &args.transcript {
        assembly = assembly.with_models(Models::single(Arc::new(transcript::scripted(path)?)));
    }
    let mut host = assembly.host()?;
    host.journal = Arc::new(results.clone());
    for problem in host.tools.problems() {
        out.diagnostic(problem);
    }
    let workspace = places.workspace.canonicalize();
    let workspace = workspace.map_err(|error| {
        let at = places.workspace.shown();
        Failure::usage(format!("the workspace `{at}` cannot be used: {error}"))
    })?;
    let runtime = host::runtime()?;
    let served = runtime.block_on(async {
        remove_left(&places.store_directory());
        let store = Store::open(&places.store()).await.map_err(|e| Failure::new(chain(&e)))?;
        let admission = Admission::new(JARS, QUEUE);
        let service = Service::new(host, store.clone(), workspace, admission, limits);
        let (agent, model) = (args.agent.clone(), args.model.clone());
        let entrance = Entrance { service, results, agent, model };
        let served = entrance.serve(tokio::io::stdin(), tokio::io::stdout()).await;
        store.close().await;
        served.map_err(|error| Failure::new(format!("the editor cannot be served: {error}")))
    });
    // A thread that still waits for a line must not keep the process.
    runtime.shutdown_background();
    served.map(|()| Exit::Completed)
}
