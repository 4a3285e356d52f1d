//! Runs an agent or a team for a command: from its options to the output and the exit code. The differences
//! between agents and teams are in [`RunWork`] and [`RunEnding`].

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use belljar_agent::{
    EVENT_VERSION, Event, EventSink, Host, Outcome, RunError, RunSpec, RunStatus, TeamOutcome,
    TeamSpec, run_team,
};
use belljar_model::ModelRegistry;
use belljar_overlay::{ChangeStat, SessionLayers};
use belljar_policy::{BudgetLevel, Meter, ShownPath as _, ShownText};
use belljar_session::{SessionError, run_saved, run_team_saved};
use belljar_store::{Store, StoreError};
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::server::NoTenant;
use crate::args::{OutputFormat, RunOptions};
use crate::commands::changes::look;
use crate::commands::inspect::receipts;
use crate::commands::run::saving::{self, SavedRun};
use crate::commands::run::transcript::{self, TranscriptFile};
use crate::commands::run::{attachments, refused, task, team};
use crate::setup::below;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host::{self, HostAssembly};
use crate::setup::once::layers_for_once;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::term::asker::TerminalAsker;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::progress::{LineTarget, RunProgress, status_style};

/// An agent or a team with its task, ready to run.
pub(crate) enum RunWork {
    Agent(Box<RunSpec>),
    Team(Box<TeamSpec>),
}

impl RunWork {
    /// Runs the work, and stores nothing.
    async fn run_unsaved(
        self,
        layers: Option<SessionLayers>,
        host: &Host,
        events: EventSink,
        cancel: CancellationToken,
    ) -> RunEnding {
        match self {
            Self::Agent(spec) => {
                let spec = RunSpec { layers, ..*spec };
                RunEnding::Agent(Box::new(belljar_agent::run(host, spec, events, cancel).await))
            }
            Self::Team(spec) => {
                let spec = TeamSpec { layers, ..*spec };
                RunEnding::Team(Box::new(run_team(host, spec, events, cancel).await))
            }
        }
    }

    /// Runs the work as the only turn of a session. Also returns the error if the outcome could not be
    /// stored.
    async fn run_as_session(
        self,
        store: &Store,
        host: &Host,
        events: EventSink,
        cancel: CancellationToken,
    ) -> Result<(RunEnding, Option<StoreError>), SessionError> {
        Ok(match self {
            Self::Agent(spec) => {
                let done = run_saved(store, host, *spec, events, cancel).await?;
                (RunEnding::Agent(Box::new(done.outcome)), done.unsaved)
            }
            Self::Team(spec) => {
                let done = run_team_saved(store, host, *spec, events, cancel).await?;
                (RunEnding::Team(Box::new(done.outcome)), done.unsaved)
            }
        })
    }
}

/// The outcome of the work.
#[derive(Serialize)]
#[serde(untagged)]
enum RunEnding {
    Agent(Box<Outcome>),
    Team(Box<TeamOutcome>),
}

impl RunEnding {
    /// The outcome in the form of a single agent's, as it is stored and shown.
    fn outcome_summary(&self) -> Cow<'_, Outcome> {
        match self {
            Self::Agent(outcome) => Cow::Borrowed(outcome),
            Self::Team(outcome) => Cow::Owned(outcome.to_outcome()),
        }
    }

    /// The outcome of each agent; in a team, with the agent's path.
    fn agent_outcomes(&mut self) -> Vec<(Option<&str>, &mut Outcome)> {
        match self {
            Self::Agent(outcome) => vec![(None, outcome)],
            Self::Team(outcome) => outcome
                .agents_mut()
                .map(|agent| (Some(agent.path.as_str()), &mut agent.outcome))
                .collect(),
        }
    }

    /// The reason why the work did not complete.
    fn failure_reason(&self) -> String {
        match self {
            Self::Agent(outcome) => error_reason(outcome.error.as_ref()),
            Self::Team(outcome) => team::failure_reason(outcome),
        }
    }
}

/// An outcome in the JSON output.
#[derive(Serialize)]
struct PrintedOutcome<'a> {
    #[serde(flatten)]
    outcome: &'a RunEnding,
    /// The amount of changes in overlays; absent if nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<ChangeStat>,
}

/// The text of a run's error, for a person.
pub(crate) fn error_reason(error: Option<&RunError>) -> String {
    ShownText::multiline(&error.map_or_else(String::new, ToString::to_string)).to_string()
}

/// Executes a run command: raises the OS sandbox, builds the host, calls `work` to get the agent or team,
/// runs it, and prints the outcome.
pub(crate) fn run_command(
    options: &RunOptions,
    given: Option<&str>,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
    work: impl FnOnce(&Host, String) -> Result<RunWork, Failure>,
) -> Result<CommandExit, Failure> {
    let task = task::read_task(given)?;
    let words = task.clone();
    let transcript_file = options.record.as_deref();
    let transcript_file = transcript_file
        .map(|path| TranscriptFile::create_file(path, &places.workspace))
        .transpose()?;
    saving::make_ready(places, options.no_save)?;
    let (transcript, attachments) = (options.transcript.as_deref(), options.attachments.as_deref());
    walls.raise_for(places, &wall_gaps(transcript, attachments, places))?;
    let progress = RunProgress::new(out, LineTarget::Notes);
    let host =
        make_assembly(options, places, out, &progress, transcript_file.as_ref())?.build_host()?;
    progress.show_problems(host.tools.problems());
    let work = work(&host, task)?;
    let printer = RunPrinter::new(options.stdout_format(), out, &progress);
    let cancel = CancellationToken::new();
    let runtime = host::make_runtime()?;
    let ended = runtime.block_on(async {
        host::cancel_on_interrupt(&cancel, out);
        let events = printer.event_sink();
        let (mut outcome, saved) =
            perform_work(work, options.no_save, &host, events, &cancel, places, out).await?;
        progress.clear_moving_line();
        for (_, agent) in outcome.agent_outcomes() {
            attachments::save_attachments(agent, attachments, places, out);
        }
        let changed = saved.as_ref().and_then(SavedRun::change_stat);
        if let Some(saved) = saved {
            saved.close_run(&outcome.outcome_summary(), host.settings.keep_runs, out).await;
        }
        Ok::<_, Failure>((outcome, changed))
    });
    // A thread that still waits for a person's answer must not keep the process alive.
    runtime.shutdown_background();
    progress.clear_moving_line();
    let (mut outcome, changed) = ended?;
    for warning in host.sandbox.warnings() {
        out.print_warning(warning);
    }
    if let Some(transcript_file) = transcript_file {
        transcript_file.write_recording(out)?;
    }
    printer.print_outcome(&outcome, changed)?;
    receipts::print_crashes(&outcome.outcome_summary(), out);
    refused::print_advice(&outcome.outcome_summary(), &words, &host, places, out);
    let exit = conclude_run(&mut outcome, &progress, out);
    if let Some(stat) = &changed {
        look::say_stat(stat, "`belljar changes`, `apply` or `discard`", out);
    }
    exit
}

/// Collects what the host is built from: settings, models or a transcript, progress display and asker.
fn make_assembly<'a>(
    options: &RunOptions,
    places: &'a HomePaths,
    out: &'a TerminalOutput,
    progress: &RunProgress,
    transcript_file: Option<&TranscriptFile>,
) -> Result<HostAssembly<'a>, Failure> {
    let mut assembly = HostAssembly::new(places, out)?;
    if let Some(path) = &options.transcript {
        let model = transcript::scripted_model(path)?;
        assembly = assembly.with_models(ModelRegistry::from_single(Arc::new(model)));
    }
    if let Some(transcript_file) = transcript_file {
        assembly = assembly.with_recording(transcript_file.recording.clone());
    }
    if options.stdout_format() == OutputFormat::Text {
        assembly = assembly.with_progress(progress);
    }
    Ok(assembly.with_asker(Arc::new(TerminalAsker::new(out, progress))))
}

/// Runs the work, as the only turn of a session or without storing it.
async fn perform_work(
    work: RunWork,
    no_save: bool,
    host: &Host,
    events: EventSink,
    cancel: &CancellationToken,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<(RunEnding, Option<SavedRun>), Failure> {
    if no_save {
        let place = match layers_for_once(&places.store_directory()) {
            Ok(place) => Some(place),
            Err(error) => {
                out.print_warning(format_args!(
                    "there is no place for overlays, so nothing is written: {error}"
                ));
                None
            }
        };
        let layers = place.as_ref().map(|place| place.layers.clone());
        let ended = work.run_unsaved(layers.clone(), host, events, cancel.clone()).await;
        if layers.is_some_and(|layers| layers.has_changes()) {
            out.note("what it changed in its overlay is gone with `--no-save`");
        }
        return Ok((ended, None));
    }
    let store = saving::open_store(places).await?;
    let done = work.run_as_session(&store, host, events, cancel.clone()).await;
    let (outcome, unsaved) = done.map_err(saving::not_begun)?;
    let run = outcome.outcome_summary().run.clone();
    let changed = look::changed_by(&store, run.as_str(), cancel, out).await;
    Ok((outcome, Some(SavedRun::new(store, unsaved, changed, out))))
}

/// Refuses the option for a tenant: its agents run only in the server, with the server's limits, store and
/// callers.
pub(crate) fn refuse_tenant(of: &NoTenant) -> Result<(), Failure> {
    of.refuse_tenant(
        "a tenant's agents run in the server, under its limits",
        "start `belljar serve`, and send the task with a key of the tenant: `POST /v1/chat`",
    )
}

/// Warns a person if the workspace contains belljar's home, because agents can read the whole workspace.
pub(crate) fn warn_of_home(places: &HomePaths, out: &TerminalOutput) {
    if places.home.starts_with(&places.workspace) {
        out.print_warning(format_args!(
            "agents may read all of {}, keys and belljar's own home with it: work in a project's \
             directory, or name one with `--workspace DIR`",
            places.workspace.to_shown()
        ));
    }
}

/// The failure without a configured model: how to configure one, and what works without, in four lines.
pub(crate) fn no_model(places: &HomePaths) -> Failure {
    Failure::new("no model is configured")
        .with_exit(CommandExit::NoModel)
        .with_hint("`belljar init` finds a key in the environment or a server on this machine")
        .with_hint(format!(
            "or write in {}: `[models.main]` with `kind = \"openai\"` or `\"anthropic\"`, `model`, `base_url`, `key_env`",
            places.config_path().to_shown()
        ))
        .with_hint("without a model, `belljar demo` shows agents, tools and the sandbox at work")
}

/// The gaps in the OS sandbox for a run. The attachments' directory is made here, because no directory can be
/// made behind the sandbox.
pub(crate) fn wall_gaps(
    transcript: Option<&Path>,
    attachments: Option<&Path>,
    places: &HomePaths,
) -> WallGaps {
    // If the directory cannot be made, writing the first file into it reports the error.
    let attachments = attachments
        .filter(|directory| below::output_directory(directory, &places.workspace).is_ok());
    WallGaps {
        read: transcript.into_iter().map(Path::to_path_buf).collect(),
        write: [places.store_directory(), places.files_directory()]
            .into_iter()
            .chain(attachments.map(Path::to_path_buf))
            .collect(),
        ..WallGaps::default()
    }
}

/// Prints the outcome of a run to stdout, and with `stream-json` its events.
struct RunPrinter<'a> {
    format: OutputFormat,
    out: &'a TerminalOutput,
    progress: &'a RunProgress,
    /// The number after the last event's.
    next: Arc<Mutex<u64>>,
}

impl<'a> RunPrinter<'a> {
    fn new(format: OutputFormat, out: &'a TerminalOutput, progress: &'a RunProgress) -> Self {
        Self { format, out, progress, next: Arc::default() }
    }

    /// The sink of the run's events: the progress display, or with `stream-json` lines of JSON on stdout.
    fn event_sink(&self) -> EventSink {
        if self.format != OutputFormat::StreamJson {
            return self.progress.event_sink();
        }
        let (out, progress, next) =
            (self.out.clone(), self.progress.clone(), Arc::clone(&self.next));
        EventSink::with_listener(move |event: &Event| {
            // The lock is held while a line is written, so that lines of several threads are in the order of
            // their numbers.
            let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
            *next = (*next).max(event.seq.saturating_add(1));
            if let Err(failure) = out.json_line(event) {
                progress.run_paused(|| out.print_warning(failure.message));
            }
        })
    }

    /// Prints the outcome in the chosen form. `changes` = the amount of changes in overlays.
    fn print_outcome(
        &self,
        outcome: &RunEnding,
        changes: Option<ChangeStat>,
    ) -> Result<(), Failure> {
        let summary = outcome.outcome_summary();
        let name = match outcome {
            RunEnding::Agent(outcome) => &outcome.agent,
            RunEnding::Team(outcome) => &outcome.team,
        };
        match self.format {
            // Escaped even if stdout is a pipe, because its reader may show the text on a screen. The exact
            // bytes are in the JSON.
            OutputFormat::Text => {
                self.out.print_text(&ShownText::multiline(&summary.output).to_string())
            }
            OutputFormat::Json => self.out.print_json(&PrintedOutcome { outcome, changes })?,
            OutputFormat::StreamJson => self.out.json_line(&json!({
                "v": EVENT_VERSION,
                "run": summary.run,
                "seq": *self.next.lock().unwrap_or_else(PoisonError::into_inner),
                "agent": name,
                "type": "outcome",
                "outcome": PrintedOutcome { outcome, changes },
            }))?,
        }
        Ok(())
    }
}

/// Prints the last lines for a person, and returns the exit code.
fn conclude_run(
    outcome: &mut RunEnding,
    progress: &RunProgress,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    for (path, agent) in outcome.agent_outcomes() {
        let path = path.map_or_else(String::new, |path| format!("{}: ", ShownText::new(path)));
        for warning in agent.warnings.iter().filter(|warning| !progress.has_warned(warning)) {
            out.print_warning(format_args!("{path}{}", ShownText::new(warning)));
        }
    }
    let outcome = &*outcome;
    let summary = outcome.outcome_summary();
    for operation in &summary.unfinished {
        let operation = ShownText::new(operation);
        out.print_warning(format_args!("still running when the run was given up: {operation}"));
    }
    let status = out.paint_err(status_style(summary.status), summary.status);
    let id = out.paint_err(TextStyle::Dim, &summary.run);
    let extent = match outcome {
        RunEnding::Agent(_) => String::new(),
        RunEnding::Team(team) => format!("{} of {} stages, ", team.stages.len(), team.planned),
    };
    out.note(format_args!("{status}: {extent}{}  {id}", receipts::format_usage(&summary)));
    match summary.status {
        RunStatus::Completed => Ok(CommandExit::Completed),
        RunStatus::Partial => {
            out.print_warning(format_args!("the output is partial: {}", outcome.failure_reason()));
            how_to_raise(&summary, out);
            Ok(CommandExit::Partial)
        }
        RunStatus::Cancelled => Ok(CommandExit::Cancelled),
        RunStatus::Failed => Err(run_failure(&summary, &outcome.failure_reason())),
    }
}

/// Prints how to raise the limit that ended an agent.
pub(crate) fn how_to_raise(outcome: &Outcome, out: &TerminalOutput) {
    let Some(RunError::Budget { exhausted }) = &outcome.error else { return };
    let key = match exhausted.meter {
        Meter::Steps => "steps",
        Meter::Tokens => "tokens",
        Meter::Fuel => "fuel",
        _ => return,
    };
    if exhausted.level == BudgetLevel::Subagent {
        let (hint, agent) =
            (out.paint_err(TextStyle::Cyan, "hint:"), ShownText::new(&outcome.agent));
        let more = exhausted.limit.saturating_mul(2);
        out.note(format_args!(
            "  {hint} `belljar grant {agent} --limit {key}={more}` gives it more, where no `--max-{key}` gave it less"
        ));
    }
}

/// The failure for a run that did not complete, with a hint if there is one.
pub(crate) fn run_failure(outcome: &Outcome, why: &str) -> Failure {
    let failure = Failure::new(why);
    match &outcome.error {
        Some(
            RunError::Setup { hint: Some(hint), .. } | RunError::Model { hint: Some(hint), .. },
        ) => failure.with_hint(hint.trim_end()),
        _ => failure,
    }
}
