//! `belljar demo`: a scripted model with real tools in real jars, on a workspace in a temporary directory.
//! Needs no configuration, no key and no network.

use std::path::Path;
use std::sync::Arc;

use belljar_agent::{Outcome, RunSpec, RunStatus, resolve_agent};
use belljar_model::{ModelRegistry, ScriptedModel};
use belljar_policy::ShownText;
use tokio_util::sync::CancellationToken;

use crate::commands::inspect::receipts;
use crate::setup::embedded::{self, AGENTS};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, create_private};
use crate::setup::host::{self, HostAssembly};
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::progress::{LineTarget, RunProgress};

/// The agent that gets the demo's task.
const AGENT: &str = "keeper";

/// Runs the demo: unpacks its files, raises the OS sandbox, runs the agent, and prints the result.
pub(crate) fn run(walls: WallRaiser<'_>, out: &TerminalOutput) -> Result<CommandExit, Failure> {
    let temporary = tempfile::Builder::new()
        .prefix("belljar-demo-")
        .tempdir()
        .map_err(|error| Failure::new(format!("failed to make a temporary directory: {error}")))?;
    let places = unpack_demo(temporary.path())?;
    let through = WallGaps {
        write: vec![temporary.path().to_path_buf()],
        temporary: temporary.path().parent().into_iter().map(Path::to_path_buf).collect(),
        ..WallGaps::default()
    };
    walls.raise_for(&places, &through)?;
    let transcript = embedded::find_text(AGENTS, "demo/transcript.yaml")?;
    let task = embedded::find_text(AGENTS, "demo/task.txt")?.trim();
    let model = ScriptedModel::from_yaml(transcript, Path::new("the demo's transcript"))
        .map_err(|error| Failure::new(error.to_string()))?;
    let models = ModelRegistry::from_single(Arc::new(model));
    let host = HostAssembly::new(&places, out)?.with_models(models).build_host()?;
    let agent = resolve_agent(&host, AGENT, &places.workspace)
        .map_err(|error| Failure::new(error.to_string()))?;
    print_introduction(task, out);

    let progress = RunProgress::new(out, LineTarget::Result);
    let spec = RunSpec::new(Arc::new(agent), task, places.workspace.clone());
    let cancel = CancellationToken::new();
    let outcome = host::make_runtime()?.block_on(async {
        host::cancel_on_interrupt(&cancel, out);
        belljar_agent::run(&host, spec, progress.event_sink(), cancel.clone()).await
    });
    progress.clear_moving_line();
    print_conclusion(&outcome, out)
}

/// Unpacks the demo's agents and workspace. From the person's own home, only the cache of compiled components
/// is used, so that the next run starts faster.
fn unpack_demo(temporary: &Path) -> Result<HomePaths, Failure> {
    // With links resolved, because mounts and grants name directories without links.
    let temporary = temporary.canonicalize().map_err(|error| {
        Failure::new(format!("failed to open the temporary directory: {error}"))
    })?;
    let (home, workspace) = (temporary.join("home"), temporary.join("workspace"));
    embedded::unpack_files(embedded::files_below(AGENTS, "demo/agents/"), &home.join("agents"))?;
    embedded::unpack_files(embedded::files_below(AGENTS, "demo/workspace/"), &workspace)?;
    let own = HomePaths::find_paths(Some(&workspace)).ok().map(|places| places.cache);
    let cache = own.filter(|cache| create_private(cache).is_ok() && is_writable(cache));
    let cache = cache.unwrap_or_else(|| temporary.join("cache"));
    Ok(HomePaths { home, cache, workspace, user_home: None })
}

fn is_writable(directory: &Path) -> bool {
    tempfile::tempfile_in(directory).is_ok()
}

/// Prints what the demo does, and its task.
fn print_introduction(task: &str, out: &TerminalOutput) {
    out.print_line(out.paint(TextStyle::Bold, "belljar demo"));
    out.print_line(
        "The model is a script. The agents, their jars, the tools and the files are real.",
    );
    out.print_line("");
    out.print_line(format_args!("task: {}", ShownText::multiline(task)));
    out.print_line("");
}

/// Prints the answer and the receipts, and returns the exit code.
fn print_conclusion(outcome: &Outcome, out: &TerminalOutput) -> Result<CommandExit, Failure> {
    out.print_line("");
    out.print_line(out.paint(TextStyle::Bold, "answer"));
    out.print_text(&ShownText::multiline(&outcome.output).to_string());
    out.print_line("");
    out.print_line(out.paint(TextStyle::Bold, "receipts"));
    receipts::print_calls(outcome, out);
    receipts::print_denials(outcome, out);
    out.print_line("");
    out.print_line(format_args!("{}: {}", outcome.status, receipts::format_usage(outcome)));
    match outcome.status {
        RunStatus::Completed => {
            out.print_line(
                "next: `belljar prove` attacks this sandbox and shows what stops each attack; `belljar init` writes a configuration",
            );
            Ok(CommandExit::Completed)
        }
        RunStatus::Cancelled => Ok(CommandExit::Cancelled),
        RunStatus::Partial | RunStatus::Failed => {
            let why = outcome.error.as_ref().map_or_else(String::new, ToString::to_string);
            Err(Failure::new(format!("the demo did not complete: {why}")))
        }
    }
}
