//! `belljar run`: one agent, one task.

use std::fs::File;
use std::io::{IsTerminal, Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use belljar_agent::{
    EVENT_VERSION, Event, EventSink, Host, MAKE_IT, Outcome, ResolvedAgent, RunError, RunSpec,
    RunStatus, resolve,
};
use belljar_definition::Status as Readiness;
use belljar_model::{Models, Recording, ScriptedModel};
use belljar_policy::{LimitsRequest, Shown, ShownPath as _};
use belljar_session::run_saved;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::{OutputFormat, RunArgs};
use crate::commands::catalogue::agents;
use crate::commands::inspect::receipts;
use crate::commands::run::attachments;
use crate::commands::run::saving::{self, Saved};
use crate::setup::exit::{Exit, Failure, chain};
use crate::setup::home::{Places, read_bounded};
use crate::setup::host::{self, Assembly};
use crate::setup::walls::{Through, Walls};
use crate::term::asker::Terminal;
use crate::term::out::{Out, Style};
use crate::term::progress::{Progress, To, status_style};

/// The stock agent that runs where none is named.
pub(crate) const DEFAULT_AGENT: &str = "general-purpose";

/// Most bytes of a task from stdin: more than any model's context holds.
pub(crate) const MAX_TASK_BYTES: u64 = 32 << 20;

/// Most bytes of a transcript.
const MAX_TRANSCRIPT_BYTES: u64 = belljar_model::limits::MAX_TRANSCRIPT_BYTES as u64;

pub(crate) fn run(
    args: &RunArgs,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let format = if args.json { OutputFormat::Json } else { args.output_format };
    let task = task(args.task.as_deref())?;
    let record_to = args.record.as_deref().map(create_record).transpose()?;
    saving::make_ready(places, args.no_save)?;
    walls.up(places, &through(args.transcript.as_deref(), args.attachments.as_deref(), places))?;
    let progress = Progress::new(out, To::Notes);
    let mut assembly = Assembly::new(places, out)?;
    if let Some(path) = &args.transcript {
        assembly = assembly.with_models(Models::single(Arc::new(scripted(path)?)));
    }
    let recording = args.record.as_ref().map(|_| Recording::new());
    if let Some(recording) = &recording {
        assembly = assembly.recorded(recording.clone());
    }
    if format == OutputFormat::Text {
        assembly = assembly.showing(&progress);
    }
    let host = assembly.asking(Arc::new(Terminal::new(out, &progress))).host()?;
    for problem in host.tools.problems() {
        out.diagnostic(problem);
    }
    let name = args.agent.as_deref().unwrap_or(DEFAULT_AGENT);
    let agent = resolve(&host, name, &places.workspace).map_err(agents::not_found)?;
    if host.models.is_empty() {
        return Err(no_model(places));
    }
    runnable(&agent, args.partial)?;
    let spec = RunSpec {
        context: args.context.clone(),
        model: args.model.clone(),
        limits: limits(args),
        partial: args.partial,
        ..RunSpec::new(Arc::new(agent), task, places.workspace.clone())
    };
    let last = Arc::new(Mutex::new(0));
    let events = match format {
        OutputFormat::Text | OutputFormat::Json => progress.sink(),
        OutputFormat::StreamJson => stream(out, &progress, Arc::clone(&last)),
    };
    let cancel = CancellationToken::new();
    let runtime = host::runtime()?;
    let ended = runtime.block_on(async {
        host::cancel_on_interrupt(&cancel, out);
        let mut outcome = perform(args.no_save, &host, spec, events, &cancel, places, out).await?;
        progress.finish();
        attachments::save(&mut outcome.0, args.attachments.as_deref(), places, out);
        if let Some(saved) = outcome.1 {
            saved.close(&outcome.0, host.settings.keep_runs, out).await;
        }
        Ok::<_, Failure>(outcome.0)
    });
    // A thread that still waits for a person's answer must not keep the process.
    runtime.shutdown_background();
    progress.finish();
    let outcome = ended?;
    for warning in host.sandbox.warnings() {
        out.warning(warning);
    }
    if let (Some(recording), Some(file), Some(path)) = (&recording, record_to, &args.record) {
        record(recording, file, path, out)?;
    }
    let next = *last.lock().unwrap_or_else(PoisonError::into_inner);
    print(format, &outcome, next, out)?;
    conclude(&outcome, out)
}

/// Runs the agent: as the one turn of a session, or without leaving anything behind.
async fn perform(
    no_save: bool,
    host: &Host,
    spec: RunSpec,
    events: EventSink,
    cancel: &CancellationToken,
    places: &Places,
    out: &Out,
) -> Result<(Outcome, Option<Saved>), Failure> {
    if no_save {
        return Ok((belljar_agent::run(host, spec, events, cancel.clone()).await, None));
    }
    let store = saving::open(places).await?;
    let done = run_saved(&store, host, spec, events, cancel.clone()).await;
    let done = done.map_err(saving::not_begun)?;
    let saved = Saved::new(store, done.unsaved, out);
    Ok((done.turn.outcome, Some(saved)))
}

/// The task as given, or from stdin.
pub(crate) fn task(given: Option<&str>) -> Result<String, Failure> {
    let task = match given {
        Some(task) if task != "-" => task.to_owned(),
        None if std::io::stdin().is_terminal() => {
            return Err(Failure::usage("there is no task")
                .hint("write it as the last argument, or pipe it in: `belljar run \"…\"`"));
        }
        Some(_) | None => from_stdin()?,
    };
    if task.trim().is_empty() {
        return Err(Failure::usage("the task is empty").hint("say what the agent should do"));
    }
    Ok(task)
}

fn from_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(MAX_TASK_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(format!("failed to read the task from stdin: {error}")))?;
    if bytes.len() as u64 > MAX_TASK_BYTES {
        return Err(Failure::usage(format!("the task has more than {MAX_TASK_BYTES} bytes"))
            .hint("put it in a file of the workspace and name the file"));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage("the task on stdin is not valid UTF-8"))
}

/// The model that plays this transcript.
pub(crate) fn scripted(path: &Path) -> Result<ScriptedModel, Failure> {
    let shown = path.shown();
    let bytes = read_bounded(path, MAX_TRANSCRIPT_BYTES)
        .map_err(|error| Failure::usage(format!("failed to read transcript `{shown}`: {error}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("transcript `{shown}` is not valid UTF-8")))?;
    ScriptedModel::from_yaml(&text, path).map_err(|error| Failure::usage(chain(&error)))
}

/// How to set a model, and what works without: three lines in all.
pub(crate) fn no_model(places: &Places) -> Failure {
    Failure::new("no model is configured")
        .exit(Exit::NoModel)
        .hint(format!(
            "in {}: `[models.main]` with `kind = \"openai\"` or `\"anthropic\"`, `model`, `base_url`, `key_env`",
            places.config().shown()
        ))
        .hint("without a model, `belljar demo` shows agents, tools and the sandbox at work")
}

/// Blocked agents run only with `--partial`.
pub(crate) fn runnable(agent: &ResolvedAgent, partial: bool) -> Result<(), Failure> {
    let Readiness::Blocked { reasons } = &agent.status else { return Ok(()) };
    if partial && agent.may_be_partial() {
        return Ok(());
    }
    let reasons = Shown::new(&reasons.join("; ")).to_string();
    let mut failure =
        Failure::new(format!("agent `{}` is blocked: {reasons}", agent.id)).exit(Exit::NotAllowed);
    if !agent.hint.is_empty() {
        failure = failure.hint(format!("give it what it asks for: `{}`", agent.hint));
    }
    if agent.lacks_directory {
        failure = failure.hint(MAKE_IT);
    }
    if agent.may_be_partial() {
        failure = failure.hint("or run it with what it is given: `--partial`");
    }
    Err(failure)
}

fn limits(args: &RunArgs) -> LimitsRequest {
    LimitsRequest {
        steps: args.max_steps,
        tokens: args.max_tokens,
        fuel: args.max_fuel,
        timeout_seconds: args.timeout,
        ..LimitsRequest::default()
    }
}

/// Events as lines of JSON on stdout; `last` counts them.
pub(crate) fn stream(out: &Out, progress: &Progress, last: Arc<Mutex<u64>>) -> EventSink {
    let (out, progress) = (out.clone(), progress.clone());
    EventSink::to(move |event: &Event| {
        // The lock also keeps lines of several threads in the order of their numbers.
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (*last).max(event.seq.saturating_add(1));
        if let Err(failure) = out.json_line(event) {
            progress.pause(|| out.warning(failure.message));
        }
    })
}

/// What a run needs of the wall, of an agent or a team. The attachments' directory is made here:
/// behind the wall it could not be.
pub(crate) fn through(
    transcript: Option<&Path>,
    attachments: Option<&Path>,
    places: &Places,
) -> Through {
    if let Some(directory) = attachments {
        // Where it cannot be made, whoever writes there says so.
        let _ = std::fs::create_dir_all(directory);
    }
    Through {
        read: transcript.into_iter().map(Path::to_path_buf).collect(),
        write: [places.store_directory(), places.files()]
            .into_iter()
            .chain(attachments.map(Path::to_path_buf))
            .collect(),
        ..Through::default()
    }
}

/// Opens the file for the recording before the run begins: behind the wall it could not be made,
/// and a path that cannot be written is known before anything is paid for. What the file holds
/// stays until there is something to replace it.
pub(crate) fn create_record(path: &Path) -> Result<File, Failure> {
    let opened = File::options().write(true).create(true).truncate(false).open(path);
    opened.map_err(|error| not_recorded(path, &error))
}

fn not_recorded(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("failed to write `{}`: {error}", path.shown()))
}

/// Writes what was recorded.
pub(crate) fn record(
    recording: &Recording,
    mut file: File,
    path: &Path,
    out: &Out,
) -> Result<(), Failure> {
    let yaml = recording
        .to_yaml()
        .map_err(|error| Failure::new(format!("the run cannot be recorded: {}", chain(&error))))?;
    let written = file.set_len(0).and_then(|()| file.write_all(yaml.as_bytes()));
    written.map_err(|error| not_recorded(path, &error))?;
    out.note(format_args!("recorded in {}", path.shown()));
    Ok(())
}

fn print(format: OutputFormat, outcome: &Outcome, next: u64, out: &Out) -> Result<(), Failure> {
    match format {
        // Also in a pipe, which may end on a screen. Who wants the very bytes reads the JSON.
        OutputFormat::Text => out.text(&Shown::multiline(&outcome.output).to_string()),
        OutputFormat::Json => out.json(outcome)?,
        OutputFormat::StreamJson => out.json_line(&json!({
            "v": EVENT_VERSION,
            "run": outcome.run,
            "seq": next,
            "agent": outcome.agent,
            "type": "outcome",
            "outcome": outcome,
        }))?,
    }
    Ok(())
}

/// The last lines for a person, and the exit code.
fn conclude(outcome: &Outcome, out: &Out) -> Result<Exit, Failure> {
    for warning in &outcome.warnings {
        out.warning(Shown::new(warning));
    }
    for operation in &outcome.unfinished {
        out.warning(format_args!(
            "still running when the run was given up: {}",
            Shown::new(operation)
        ));
    }
    let status = out.paint_err(status_style(outcome.status), outcome.status);
    let id = out.paint_err(Style::Dim, &outcome.run);
    out.note(format_args!("{status}: {}  {id}", receipts::usage(outcome)));
    let why = || outcome.error.as_ref().map_or_else(String::new, reason);
    match outcome.status {
        RunStatus::Completed => Ok(Exit::Completed),
        RunStatus::Partial => {
            out.warning(format_args!("the output is partial: {}", why()));
            Ok(Exit::Partial)
        }
        RunStatus::Cancelled => Ok(Exit::Cancelled),
        RunStatus::Failed => Err(failed(outcome, &why())),
    }
}

pub(crate) fn failed(outcome: &Outcome, why: &str) -> Failure {
    let failure = Failure::new(why);
    match &outcome.error {
        Some(RunError::Setup { hint: Some(hint), .. }) => failure.hint(hint.trim_end()),
        _ => failure,
    }
}

pub(crate) fn reason(error: &RunError) -> String {
    Shown::multiline(&error.to_string()).to_string()
}
