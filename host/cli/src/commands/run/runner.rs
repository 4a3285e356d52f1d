//! One runner for agents and teams: from the command's options to the output and the exit code. The
//! differences between agents and teams are in [`Work`] and [`Ended`].

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use belljar_agent::{
    EVENT_VERSION, Event, EventSink, Host, Layers, Outcome, RunError, RunSpec, RunStatus,
    TeamOutcome, TeamSpec, run_team,
};
use belljar_changes::Stat;
use belljar_model::Models;
use belljar_policy::{Level, Meter, Shown, ShownPath as _};
use belljar_session::{SessionError, run_saved, run_team_saved};
use belljar_store::{Store, StoreError};
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::server::NoTenant;
use crate::args::{OutputFormat, RunOptions};
use crate::commands::changes::look;
use crate::commands::inspect::receipts;
use crate::commands::run::saving::{self, Saved};
use crate::commands::run::transcript::{self, TranscriptFile};
use crate::commands::run::{attachments, refused, task, team};
use crate::setup::below;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::host::{self, Assembly};
use crate::setup::once::layers_for_once;
use crate::setup::walls::{Through, Walls};
use crate::term::asker::TerminalAsker;
use crate::term::out::{Out, Style};
use crate::term::progress::{Progress, To, status_style};

/// The agent or team that is run on a task.
pub(crate) enum Work {
    Agent(Box<RunSpec>),
    Team(Box<TeamSpec>),
}

impl Work {
    /// Runs it and leaves nothing behind.
    async fn alone(
        self,
        layers: Option<Layers>,
        host: &Host,
        events: EventSink,
        cancel: CancellationToken,
    ) -> Ended {
        match self {
            Self::Agent(spec) => {
                let spec = RunSpec { layers, ..*spec };
                Ended::Agent(Box::new(belljar_agent::run(host, spec, events, cancel).await))
            }
            Self::Team(spec) => {
                let spec = TeamSpec { layers, ..*spec };
                Ended::Team(Box::new(run_team(host, spec, events, cancel).await))
            }
        }
    }

    /// Runs the work as the only turn of a session. With the outcome: the error if storing failed.
    async fn saved(
        self,
        store: &Store,
        host: &Host,
        events: EventSink,
        cancel: CancellationToken,
    ) -> Result<(Ended, Option<StoreError>), SessionError> {
        Ok(match self {
            Self::Agent(spec) => {
                let done = run_saved(store, host, *spec, events, cancel).await?;
                (Ended::Agent(Box::new(done.outcome)), done.unsaved)
            }
            Self::Team(spec) => {
                let done = run_team_saved(store, host, *spec, events, cancel).await?;
                (Ended::Team(Box::new(done.outcome)), done.unsaved)
            }
        })
    }
}

/// How it ended.
#[derive(Serialize)]
#[serde(untagged)]
enum Ended {
    Agent(Box<Outcome>),
    Team(Box<TeamOutcome>),
}

impl Ended {
    /// As a run is saved and its receipts are shown.
    fn summary(&self) -> Cow<'_, Outcome> {
        match self {
            Self::Agent(outcome) => Cow::Borrowed(outcome),
            Self::Team(outcome) => Cow::Owned(outcome.to_outcome()),
        }
    }

    /// The agents, each with its subagents, and its place in a team.
    fn agents(&mut self) -> Vec<(Option<&str>, &mut Outcome)> {
        match self {
            Self::Agent(outcome) => vec![(None, outcome)],
            Self::Team(outcome) => outcome
                .agents_mut()
                .map(|agent| (Some(agent.path.as_str()), &mut agent.outcome))
                .collect(),
        }
    }

    /// Why it did not complete.
    fn why(&self) -> String {
        match self {
            Self::Agent(outcome) => reason(outcome.error.as_ref()),
            Self::Team(outcome) => team::why(outcome),
        }
    }
}

/// An outcome as programs read it.
#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    outcome: &'a Ended,
    /// How much was changed in overlays; absent where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Stat>,
}

/// An error of a run, for a person.
pub(crate) fn reason(error: Option<&RunError>) -> String {
    Shown::multiline(&error.map_or_else(String::new, ToString::to_string)).to_string()
}

/// A command's `run`, whole. `work` says what is run, once there is a host to look in.
pub(crate) fn run(
    options: &RunOptions,
    given: Option<&str>,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
    work: impl FnOnce(&Host, String) -> Result<Work, Failure>,
) -> Result<Exit, Failure> {
    let task = task::task(given)?;
    let words = task.clone();
    let transcript_file = options.record.as_deref();
    let transcript_file =
        transcript_file.map(|path| TranscriptFile::create(path, &places.workspace)).transpose()?;
    saving::make_ready(places, options.no_save)?;
    let (transcript, attachments) = (options.transcript.as_deref(), options.attachments.as_deref());
    walls.up(places, &through(transcript, attachments, places))?;
    let progress = Progress::new(out, To::Notes);
    let host = assembly(options, places, out, &progress, transcript_file.as_ref())?.host()?;
    progress.problems(host.tools.problems());
    let work = work(&host, task)?;
    let printer = Printer::new(options.format(), out, &progress);
    let cancel = CancellationToken::new();
    let runtime = host::runtime()?;
    let ended = runtime.block_on(async {
        host::cancel_on_interrupt(&cancel, out);
        let events = printer.events();
        let (mut outcome, saved) =
            perform(work, options.no_save, &host, events, &cancel, places, out).await?;
        progress.finish();
        for (_, agent) in outcome.agents() {
            attachments::save(agent, attachments, places, out);
        }
        let changed = saved.as_ref().and_then(Saved::changed);
        if let Some(saved) = saved {
            saved.close(&outcome.summary(), host.settings.keep_runs, out).await;
        }
        Ok::<_, Failure>((outcome, changed))
    });
    // A thread that still waits for a person's answer must not keep the process.
    runtime.shutdown_background();
    progress.finish();
    let (mut outcome, changed) = ended?;
    for warning in host.sandbox.warnings() {
        out.warning(warning);
    }
    if let Some(transcript_file) = transcript_file {
        transcript_file.write(out)?;
    }
    printer.print(&outcome, changed)?;
    receipts::crashes(&outcome.summary(), out);
    refused::advise(&outcome.summary(), &words, &host, places, out);
    let exit = conclude(&mut outcome, &progress, out);
    if let Some(stat) = &changed {
        look::say_stat(stat, "`belljar changes`, `apply` or `discard`", out);
    }
    exit
}

fn assembly<'a>(
    options: &RunOptions,
    places: &'a Places,
    out: &'a Out,
    progress: &Progress,
    transcript_file: Option<&TranscriptFile>,
) -> Result<Assembly<'a>, Failure> {
    let mut assembly = Assembly::new(places, out)?;
    if let Some(path) = &options.transcript {
        let model = transcript::scripted(path)?;
        assembly = assembly.with_models(Models::single(Arc::new(model)));
    }
    if let Some(transcript_file) = transcript_file {
        assembly = assembly.recorded(transcript_file.recording.clone());
    }
    if options.format() == OutputFormat::Text {
        assembly = assembly.showing(progress);
    }
    Ok(assembly.asking(Arc::new(TerminalAsker::new(out, progress))))
}

/// Runs the work: as the only turn of a session, or without a trace.
async fn perform(
    work: Work,
    no_save: bool,
    host: &Host,
    events: EventSink,
    cancel: &CancellationToken,
    places: &Places,
    out: &Out,
) -> Result<(Ended, Option<Saved>), Failure> {
    if no_save {
        let place = match layers_for_once(&places.store_directory()) {
            Ok(place) => Some(place),
            Err(error) => {
                out.warning(format_args!(
                    "there is no place for overlays, so nothing is written: {error}"
                ));
                None
            }
        };
        let layers = place.as_ref().map(|place| place.layers.clone());
        let ended = work.alone(layers.clone(), host, events, cancel.clone()).await;
        if layers.is_some_and(|layers| layers.has_changes()) {
            out.note("what it changed in its overlay is gone with `--no-save`");
        }
        return Ok((ended, None));
    }
    let store = saving::open(places).await?;
    let done = work.saved(&store, host, events, cancel.clone()).await;
    let (outcome, unsaved) = done.map_err(saving::not_begun)?;
    let run = outcome.summary().run.clone();
    let changed = look::changed_by(&store, run.as_str(), cancel, out).await;
    Ok((outcome, Some(Saved::new(store, unsaved, changed, out))))
}

/// Agents of a tenant run in the server only, with its limits, store and callers.
pub(crate) fn nobodys(of: &NoTenant) -> Result<(), Failure> {
    of.refuse(
        "a tenant's agents run in the server, under its limits",
        "start `belljar serve`, and send the task with a key of the tenant: `POST /v1/chat`",
    )
}

/// Warns a person whose workspace holds belljar's home, since agents read all of a workspace.
pub(crate) fn warn_of_home(places: &Places, out: &Out) {
    if places.home.starts_with(&places.workspace) {
        out.warning(format_args!(
            "agents may read all of {}, keys and belljar's own home with it: work in a project's \
             directory, or name one with `--workspace DIR`",
            places.workspace.shown()
        ));
    }
}

/// How to set a model, and what works without: four lines in all.
pub(crate) fn no_model(places: &Places) -> Failure {
    Failure::new("no model is configured")
        .exit(Exit::NoModel)
        .hint("`belljar init` finds a key in the environment or a server on this machine")
        .hint(format!(
            "or write in {}: `[models.main]` with `kind = \"openai\"` or `\"anthropic\"`, `model`, `base_url`, `key_env`",
            places.config().shown()
        ))
        .hint("without a model, `belljar demo` shows agents, tools and the sandbox at work")
}

/// The gaps in the OS sandbox for a run. The attachments' directory is made here, because that is impossible
/// behind the sandbox.
pub(crate) fn through(
    transcript: Option<&Path>,
    attachments: Option<&Path>,
    places: &Places,
) -> Through {
    // Where it cannot be made, whoever writes there says so.
    let attachments = attachments
        .filter(|directory| below::output_directory(directory, &places.workspace).is_ok());
    Through {
        read: transcript.into_iter().map(Path::to_path_buf).collect(),
        write: [places.store_directory(), places.files()]
            .into_iter()
            .chain(attachments.map(Path::to_path_buf))
            .collect(),
        ..Through::default()
    }
}

/// Stdout of a run.
struct Printer<'a> {
    format: OutputFormat,
    out: &'a Out,
    progress: &'a Progress,
    /// One more than the number of the last event.
    next: Arc<Mutex<u64>>,
}

impl<'a> Printer<'a> {
    fn new(format: OutputFormat, out: &'a Out, progress: &'a Progress) -> Self {
        Self { format, out, progress, next: Arc::default() }
    }

    /// Where the events of the run go: to the person, or as lines of JSON to stdout.
    fn events(&self) -> EventSink {
        if self.format != OutputFormat::StreamJson {
            return self.progress.sink();
        }
        let (out, progress, next) =
            (self.out.clone(), self.progress.clone(), Arc::clone(&self.next));
        EventSink::to(move |event: &Event| {
            // The lock also keeps lines of several threads in the order of their numbers.
            let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
            *next = (*next).max(event.seq.saturating_add(1));
            if let Err(failure) = out.json_line(event) {
                progress.pause(|| out.warning(failure.message));
            }
        })
    }

    fn print(&self, outcome: &Ended, changes: Option<Stat>) -> Result<(), Failure> {
        let summary = outcome.summary();
        let name = match outcome {
            Ended::Agent(outcome) => &outcome.agent,
            Ended::Team(outcome) => &outcome.team,
        };
        match self.format {
            // Escaped even in a pipe, which may end on a screen. The exact bytes are in the JSON.
            OutputFormat::Text => self.out.text(&Shown::multiline(&summary.output).to_string()),
            OutputFormat::Json => self.out.json(&Printed { outcome, changes })?,
            OutputFormat::StreamJson => self.out.json_line(&json!({
                "v": EVENT_VERSION,
                "run": summary.run,
                "seq": *self.next.lock().unwrap_or_else(PoisonError::into_inner),
                "agent": name,
                "type": "outcome",
                "outcome": Printed { outcome, changes },
            }))?,
        }
        Ok(())
    }
}

/// The last lines for a person, and the exit code.
fn conclude(outcome: &mut Ended, progress: &Progress, out: &Out) -> Result<Exit, Failure> {
    for (path, agent) in outcome.agents() {
        let path = path.map_or_else(String::new, |path| format!("{}: ", Shown::new(path)));
        for warning in agent.warnings.iter().filter(|warning| !progress.has_warned(warning)) {
            out.warning(format_args!("{path}{}", Shown::new(warning)));
        }
    }
    let outcome = &*outcome;
    let summary = outcome.summary();
    for operation in &summary.unfinished {
        let operation = Shown::new(operation);
        out.warning(format_args!("still running when the run was given up: {operation}"));
    }
    let status = out.paint_err(status_style(summary.status), summary.status);
    let id = out.paint_err(Style::Dim, &summary.run);
    let extent = match outcome {
        Ended::Agent(_) => String::new(),
        Ended::Team(team) => format!("{} of {} stages, ", team.stages.len(), team.planned),
    };
    out.note(format_args!("{status}: {extent}{}  {id}", receipts::usage(&summary)));
    match summary.status {
        RunStatus::Completed => Ok(Exit::Completed),
        RunStatus::Partial => {
            out.warning(format_args!("the output is partial: {}", outcome.why()));
            how_to_raise(&summary, out);
            Ok(Exit::Partial)
        }
        RunStatus::Cancelled => Ok(Exit::Cancelled),
        RunStatus::Failed => Err(failed(&summary, &outcome.why())),
    }
}

/// How the budget that ended an agent is raised.
pub(crate) fn how_to_raise(outcome: &Outcome, out: &Out) {
    let Some(RunError::Budget { exhausted }) = &outcome.error else { return };
    let key = match exhausted.meter {
        Meter::Steps => "steps",
        Meter::Tokens => "tokens",
        Meter::Fuel => "fuel",
        _ => return,
    };
    if exhausted.level == Level::Subagent {
        let (hint, agent) = (out.paint_err(Style::Cyan, "hint:"), Shown::new(&outcome.agent));
        let more = exhausted.limit.saturating_mul(2);
        out.note(format_args!(
            "  {hint} `belljar grant {agent} --limit {key}={more}` gives it more, where no `--max-{key}` gave it less"
        ));
    }
}

/// A failed run, with the remedy if known.
pub(crate) fn failed(outcome: &Outcome, why: &str) -> Failure {
    let failure = Failure::new(why);
    match &outcome.error {
        Some(
            RunError::Setup { hint: Some(hint), .. } | RunError::Model { hint: Some(hint), .. },
        ) => failure.hint(hint.trim_end()),
        _ => failure,
    }
}
