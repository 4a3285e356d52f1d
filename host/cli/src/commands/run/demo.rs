//! `belljar demo`: a scripted model, real tools in real jars, over a workspace that is copied
//! to a temporary directory. Needs no configuration, no key and no network.

use std::path::Path;
use std::sync::Arc;

use belljar_agent::{Outcome, RunSpec, RunStatus, resolve};
use belljar_model::{Models, ScriptedModel};
use belljar_policy::Shown;
use tokio_util::sync::CancellationToken;

use crate::commands::inspect::receipts;
use crate::setup::embedded::{self, AGENTS};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, create_private};
use crate::setup::host::{self, Assembly};
use crate::setup::walls::{Through, Walls};
use crate::term::out::{Out, Style};
use crate::term::progress::{Progress, To};

/// The agent that the demo's task goes to.
const AGENT: &str = "keeper";

pub(crate) fn run(walls: Walls<'_>, out: &Out) -> Result<Exit, Failure> {
    let temporary = tempfile::Builder::new()
        .prefix("belljar-demo-")
        .tempdir()
        .map_err(|error| Failure::new(format!("failed to make a temporary directory: {error}")))?;
    let places = unpack(temporary.path())?;
    let through = Through {
        write: vec![temporary.path().to_path_buf()],
        temporary: temporary.path().parent().into_iter().map(Path::to_path_buf).collect(),
        ..Through::default()
    };
    walls.up(&places, &through)?;
    let transcript = embedded::text(AGENTS, "demo/transcript.yaml")?;
    let task = embedded::text(AGENTS, "demo/task.txt")?.trim();
    let model = ScriptedModel::from_yaml(transcript, Path::new("the demo's transcript"))
        .map_err(|error| Failure::new(error.to_string()))?;
    let models = Models::single(Arc::new(model));
    let host = Assembly::new(&places, out)?.with_models(models).host()?;
    let agent = resolve(&host, AGENT, &places.workspace)
        .map_err(|error| Failure::new(error.to_string()))?;
    introduce(task, out);

    let progress = Progress::new(out, To::Result);
    let spec = RunSpec::new(Arc::new(agent), task, places.workspace.clone());
    let cancel = CancellationToken::new();
    let outcome = host::runtime()?.block_on(async {
        host::cancel_on_interrupt(&cancel, out);
        belljar_agent::run(&host, spec, progress.sink(), cancel.clone()).await
    });
    progress.finish();
    conclude(&outcome, out)
}

/// Unpacks the demo's agents and workspace. From the person's own home only the cache of compiled components
/// is used, so that the next run starts at once.
fn unpack(temporary: &Path) -> Result<Places, Failure> {
    // Canonical, because mounts and grants name directories without links.
    let temporary = temporary.canonicalize().map_err(|error| {
        Failure::new(format!("failed to open the temporary directory: {error}"))
    })?;
    let (home, workspace) = (temporary.join("home"), temporary.join("workspace"));
    embedded::unpack(embedded::below(AGENTS, "demo/agents/"), &home.join("agents"))?;
    embedded::unpack(embedded::below(AGENTS, "demo/workspace/"), &workspace)?;
    let own = Places::find(Some(&workspace)).ok().map(|places| places.cache);
    let cache = own.filter(|cache| create_private(cache).is_ok() && is_writable(cache));
    let cache = cache.unwrap_or_else(|| temporary.join("cache"));
    Ok(Places { home, cache, workspace, user_home: None })
}

fn is_writable(directory: &Path) -> bool {
    tempfile::tempfile_in(directory).is_ok()
}

fn introduce(task: &str, out: &Out) {
    out.line(out.paint(Style::Bold, "belljar demo"));
    out.line("The model is a script. The agents, their jars, the tools and the files are real.");
    out.line("");
    out.line(format_args!("task: {}", Shown::multiline(task)));
    out.line("");
}

fn conclude(outcome: &Outcome, out: &Out) -> Result<Exit, Failure> {
    out.line("");
    out.line(out.paint(Style::Bold, "answer"));
    out.text(&Shown::multiline(&outcome.output).to_string());
    out.line("");
    out.line(out.paint(Style::Bold, "receipts"));
    receipts::print(outcome, out);
    receipts::denials(outcome, out);
    out.line("");
    out.line(format_args!("{}: {}", outcome.status, receipts::usage(outcome)));
    match outcome.status {
        RunStatus::Completed => {
            out.line(
                "next: `belljar prove` attacks this sandbox and shows what stops each attack; `belljar init` writes a configuration",
            );
            Ok(Exit::Completed)
        }
        RunStatus::Cancelled => Ok(Exit::Cancelled),
        RunStatus::Partial | RunStatus::Failed => {
            let why = outcome.error.as_ref().map_or_else(String::new, ToString::to_string);
            Err(Failure::new(format!("the demo did not complete: {why}")))
        }
    }
}
