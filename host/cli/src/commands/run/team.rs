//! `belljar teams run`: a team, one task.

use std::sync::{Arc, Mutex, PoisonError};

use belljar_agent::{
    EVENT_VERSION, EventSink, Host, ResolvedTeam, RunError, RunStatus, TeamOutcome, TeamSpec,
    resolve_team, run_team,
};
use belljar_model::{Models, Recording};
use belljar_policy::{LimitsRequest, Shown};
use belljar_session::run_team_saved;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::{OutputFormat, TeamRunArgs};
use crate::commands::catalogue::agents;
use crate::commands::inspect::receipts;
use crate::commands::run::agent as single;
use crate::commands::run::attachments;
use crate::commands::run::saving::{self, Saved};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::host::{self, Assembly};
use crate::setup::walls::Walls;
use crate::term::asker::Terminal;
use crate::term::out::{Out, Style};
use crate::term::progress::{Progress, To, status_style};

pub(crate) fn run(
    args: &TeamRunArgs,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let format = if args.json { OutputFormat::Json } else { args.output_format };
    let task = single::task(args.task.as_deref())?;
    let record_to = args.record.as_deref().map(single::create_record).transpose()?;
    saving::make_ready(places, args.no_save)?;
    let (transcript, attachments) = (args.transcript.as_deref(), args.attachments.as_deref());
    walls.up(places, &single::through(transcript, attachments, places))?;
    let progress = Progress::new(out, To::Notes);
    let mut assembly = Assembly::new(places, out)?;
    if let Some(path) = &args.transcript {
        assembly = assembly.with_models(Models::single(Arc::new(single::scripted(path)?)));
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
    let team = resolve_team(&host, &args.name, &places.workspace).map_err(agents::not_found)?;
    if host.models.is_empty() {
        return Err(single::no_model(places));
    }
    runnable(&team)?;
    let spec = TeamSpec {
        team: Arc::new(team),
        task,
        model: args.model.clone(),
        workspace: places.workspace.clone(),
        limits: limits(args),
        budget: None,
    };
    let last = Arc::new(Mutex::new(0));
    let events = match format {
        OutputFormat::Text | OutputFormat::Json => progress.sink(),
        OutputFormat::StreamJson => single::stream(out, &progress, Arc::clone(&last)),
    };
    let cancel = CancellationToken::new();
    let runtime = host::runtime()?;
    let ended = runtime.block_on(async {
        host::cancel_on_interrupt(&cancel, out);
        let (mut outcome, saved) =
            perform(args.no_save, &host, spec, events, &cancel, places, out).await?;
        progress.finish();
        for agent in outcome.agents_mut() {
            attachments::save(&mut agent.outcome, attachments, places, out);
        }
        if let Some(saved) = saved {
            saved.close(&outcome.to_outcome(), host.settings.keep_runs, out).await;
        }
        Ok::<_, Failure>(outcome)
    });
    // A thread that still waits for a person's answer must not keep the process.
    runtime.shutdown_background();
    progress.finish();
    let outcome = ended?;
    for warning in host.sandbox.warnings() {
        out.warning(warning);
    }
    if let (Some(recording), Some(file), Some(path)) = (&recording, record_to, &args.record) {
        single::record(recording, file, path, out)?;
    }
    let next = *last.lock().unwrap_or_else(PoisonError::into_inner);
    print(format, &outcome, next, out)?;
    conclude(&outcome, out)
}

/// Runs the team: as the one turn of a session, or without leaving anything behind.
async fn perform(
    no_save: bool,
    host: &Host,
    spec: TeamSpec,
    events: EventSink,
    cancel: &CancellationToken,
    places: &Places,
    out: &Out,
) -> Result<(TeamOutcome, Option<Saved>), Failure> {
    if no_save {
        return Ok((run_team(host, spec, events, cancel.clone()).await, None));
    }
    let store = saving::open(places).await?;
    let done = run_team_saved(&store, host, spec, events, cancel.clone()).await;
    let done = done.map_err(saving::not_begun)?;
    Ok((done.turn, Some(Saved::new(store, done.unsaved, out))))
}

/// A team whose agents are not all there, or not all allowed, does not begin.
pub(crate) fn runnable(team: &ResolvedTeam) -> Result<(), Failure> {
    if team.problems.is_empty() {
        return Ok(());
    }
    let exit = if team.is_only_blocked() { Exit::NotAllowed } else { Exit::Usage };
    let message = format!("team `{}` cannot run; nothing was started", team.id);
    Err(Failure::diagnostics(message, team.problems.clone()).exit(exit))
}

fn limits(args: &TeamRunArgs) -> LimitsRequest {
    LimitsRequest {
        steps: args.max_steps,
        tokens: args.max_tokens,
        fuel: args.max_fuel,
        timeout_seconds: args.timeout,
        ..LimitsRequest::default()
    }
}

fn print(format: OutputFormat, outcome: &TeamOutcome, next: u64, out: &Out) -> Result<(), Failure> {
    match format {
        // Also in a pipe, which may end on a screen. Who wants the very bytes reads the JSON.
        OutputFormat::Text => out.text(&Shown::multiline(&outcome.output).to_string()),
        OutputFormat::Json => out.json(outcome)?,
        OutputFormat::StreamJson => out.json_line(&json!({
            "v": EVENT_VERSION,
            "run": outcome.run,
            "seq": next,
            "agent": outcome.team,
            "type": "outcome",
            "outcome": outcome,
        }))?,
    }
    Ok(())
}

/// The last lines for a person, and the exit code.
fn conclude(outcome: &TeamOutcome, out: &Out) -> Result<Exit, Failure> {
    for agent in outcome.agents() {
        for warning in &agent.outcome.warnings {
            out.warning(format_args!("{}: {}", Shown::new(&agent.path), Shown::new(warning)));
        }
        for operation in &agent.outcome.unfinished {
            let operation = Shown::new(operation);
            out.warning(format_args!("still running when the run was given up: {operation}"));
        }
    }
    let status = out.paint_err(status_style(outcome.status), outcome.status);
    let id = out.paint_err(Style::Dim, &outcome.run);
    let (done, planned) = (outcome.stages.len(), outcome.planned);
    let usage = receipts::usage(&outcome.to_outcome());
    out.note(format_args!("{status}: {done} of {planned} stages, {usage}  {id}"));
    match outcome.status {
        RunStatus::Completed => Ok(Exit::Completed),
        RunStatus::Partial => {
            out.warning(format_args!("the output is partial: {}", why(outcome)));
            Ok(Exit::Partial)
        }
        RunStatus::Cancelled => Ok(Exit::Cancelled),
        RunStatus::Failed => {
            let failure = Failure::new(why(outcome));
            Err(match &outcome.error {
                Some(RunError::Setup { hint: Some(hint), .. }) => failure.hint(hint.trim_end()),
                _ => failure,
            })
        }
    }
}

/// Why the team did not complete, and which agent it was.
pub(crate) fn why(outcome: &TeamOutcome) -> String {
    let error = outcome.error.as_ref().map_or_else(String::new, ToString::to_string);
    let error = Shown::multiline(&error).to_string();
    match outcome.culprit() {
        Some((stage, agent)) => {
            format!("stage {stage}, agent `{}`: {error}", Shown::new(&agent.path))
        }
        None => error,
    }
}
