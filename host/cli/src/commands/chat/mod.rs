//! `belljar chat`: a conversation with one agent, stored step by step.
//!
//! The agent's words go to stdout as they arrive, everything else to stderr. On a terminal lines are edited;
//! elsewhere each line of stdin is one turn, so that a chat can be scripted.

mod background;
mod complete;
mod input;
mod lists;
mod overlay;
mod slash;
mod talk;

use std::path::Path;
use std::sync::Arc;

use belljar_agent::{Host, ResolvedAgent, resolve_agent, resolve_all};
use belljar_definition::Visibility;
use belljar_model::ModelRegistry;
use belljar_policy::{BudgetCaps, LimitsRequest, Meter, ShownText};
use belljar_session::{Conversation, HistoryMode, SavedSession, SessionError, SessionPast, Turn};
use belljar_store::{MessageStatus, SessionKind, Store};

use self::complete::CompletionWords;
use self::input::{InputLines, InterruptSignals};
use self::talk::ActiveChat;
use crate::args::ChatArgs;
use crate::commands::catalogue::agents;
use crate::commands::catalogue::noticed::note_workspace_agents;
use crate::commands::inspect::sessions::LATEST;
use crate::commands::run::agent as single;
use crate::commands::run::{runner, saving, transcript};
use crate::setup::exit::{CommandExit, Failure, format_error_chain};
use crate::setup::home::HomePaths;
use crate::setup::host::{self, HostAssembly};
use crate::setup::once::remove_left;
use crate::setup::walls::WallRaiser;
use crate::term::ahead::TypedAhead;
use crate::term::asker::TerminalAsker;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::progress::{LineTarget, RunProgress};
use crate::term::table;

/// The most turns that are shown when a session is resumed.
const MAX_PAST_TURNS: usize = 3;

/// The most characters of each line of such a turn.
const MAX_PAST_LINE: usize = 200;

/// Runs the command: raises the OS sandbox, builds the host, and chats until the person leaves.
pub(super) fn run(
    args: &ChatArgs,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    runner::refuse_tenant(&args.nobodys)?;
    runner::warn_of_home(places, out);
    saving::make_sessions(places)?;
    let mut through = runner::wall_gaps(args.transcript.as_deref(), None, places);
    // The workspace is writable because `/apply` writes there, on the person's decision.
    if host::read_settings(places).is_ok_and(|settings| settings.overlays.by_default) {
        through.write.push(places.workspace.clone());
    }
    walls.raise_for(places, &through)?;
    let ahead = TypedAhead::default();
    let out = &out.with_typed_ahead(ahead.clone());
    let progress = RunProgress::new(out, LineTarget::Chat);
    let host = make_host(args, places, out, &progress)?;
    progress.show_problems(host.tools.problems());
    note_workspace_agents(places, out);
    if host.models.is_empty() {
        return Err(runner::no_model(places));
    }
    let runtime = host::make_runtime()?;
    let exit = runtime.block_on(async {
        remove_left(&places.store_directory());
        let store = Store::open(&places.store_path())
            .await
            .map_err(|e| Failure::new(format_error_chain(&e)))?;
        let exit = run_chat(args, places, out, &host, &progress, (store.clone(), ahead)).await;
        store.close().await;
        exit
    });
    // A thread that still waits for a line must not keep the process alive.
    runtime.shutdown_background();
    for warning in host.sandbox.warnings() {
        out.print_warning(warning);
    }
    exit
}

/// Builds the host, with a transcript in place of the models if one is given.
fn make_host(
    args: &ChatArgs,
    places: &HomePaths,
    out: &TerminalOutput,
    progress: &RunProgress,
) -> Result<Host, Failure> {
    let mut assembly = HostAssembly::new(places, out)?;
    if let Some(path) = &args.transcript {
        assembly = assembly
            .with_models(ModelRegistry::from_single(Arc::new(transcript::scripted_model(path)?)));
    }
    let asker = Arc::new(TerminalAsker::new(out, progress));
    assembly.with_progress(progress).with_asker(asker).build_host()
}

/// Opens or resumes the session, makes the conversation, and runs the loop of lines.
async fn run_chat(
    args: &ChatArgs,
    places: &HomePaths,
    out: &TerminalOutput,
    host: &Host,
    progress: &RunProgress,
    (store, ahead): (Store, TypedAhead),
) -> Result<CommandExit, Failure> {
    let clock = Arc::clone(&host.clock);
    let (session, mut past) = match &args.resume {
        None => (SavedSession::new(store, clock), None),
        Some(which) => {
            let which = Some(which.as_str()).filter(|which| !["", LATEST].contains(which));
            let resumed =
                SavedSession::find_and_resume(store, clock, which, &places.workspace).await;
            let (mut session, mut past) = resumed.map_err(resume_failure)?;
            same_workspace(&past, &places.workspace)?;
            if past.session.kind == SessionKind::Team {
                refuse_team(args, &past)?;
                if past.unfinished.is_some() {
                    // No agent can resume a team's turn, so the turn is ended with a note about its stored
                    // part.
                    past = session.give_up(past).await.map_err(resume_failure)?;
                }
            }
            (session, Some(past))
        }
    };
    let name = match (&args.agent, &past) {
        (Some(name), _) => name.clone(),
        (None, Some(past)) => past.session.agent.clone(),
        (None, None) => single::DEFAULT_AGENT.to_owned(),
    };
    let unfinished = past.as_ref().and_then(|past| past.unfinished.as_ref());
    let partial = args.partial || unfinished.is_some_and(Turn::is_partial);
    let agent = find_agent(host, &name, partial, places)?;
    let conversation = make_conversation(args, agent, places, past.as_ref()).with_partial(partial);
    print_greeting(&conversation, host, out);
    if let Some(past) = &past {
        show_past(past, out);
    }
    let words = CompletionWords::new(agent_names(host, places), team_names(host));
    let lines = InputLines::from_stdin(places.chat_history(), words, ahead)
        .map_err(|error| Failure::new(format!("failed to read from stdin: {error}")))?;
    let interrupts = InterruptSignals::listen_signals()
        .map_err(|error| Failure::new(format!("failed to listen for signals: {error}")))?;
    let mut chat = ActiveChat::new(host, places, out, progress, conversation, session, interrupts);
    if let Some(turn) = past.as_mut().and_then(|past| past.unfinished.take()) {
        chat.resume_turn(turn).await;
    }
    chat.run_lines(lines).await
}

/// Finds an agent, and checks that it can be run.
fn find_agent(
    host: &Host,
    name: &str,
    partial: bool,
    places: &HomePaths,
) -> Result<Arc<ResolvedAgent>, Failure> {
    let agent = resolve_agent(host, name, &places.workspace).map_err(agents::not_found)?;
    agent.check_runnable(partial)?;
    Ok(Arc::new(agent))
}

/// Makes the conversation: with the caps of the whole session, and the messages of the resumed session.
fn make_conversation(
    args: &ChatArgs,
    agent: Arc<ResolvedAgent>,
    places: &HomePaths,
    past: Option<&SessionPast>,
) -> Conversation {
    let mut caps = BudgetCaps::unlimited();
    for (meter, limit) in [
        (Meter::Steps, args.max_steps),
        (Meter::Tokens, args.max_tokens),
        (Meter::Fuel, args.max_fuel),
    ] {
        caps = limit.map_or(caps, |limit| caps.with_cap(meter, limit));
    }
    let limits = LimitsRequest { timeout_seconds: args.timeout, ..LimitsRequest::default() };
    let history = if args.whole_history { HistoryMode::Whole } else { HistoryMode::Compacted };
    let saved = past.map(|past| past.session.model.clone()).filter(|model| !model.is_empty());
    let conversation = Conversation::new(agent, places.workspace.clone(), caps)
        // A transcript answers for every model, so the session's model is not needed.
        .with_model(args.model.clone().or(saved.filter(|_| args.transcript.is_none())))
        .with_limits(limits)
        .with_history(history);
    match past {
        Some(past) => conversation.resume_from(past.request_messages(history), past.used),
        None => conversation,
    }
}

/// Refuses to resume a session of another workspace, because the session's messages are about the files
/// there.
fn same_workspace(past: &SessionPast, workspace: &Path) -> Result<(), Failure> {
    let own = &past.session.workspace;
    if Path::new(own) == workspace {
        return Ok(());
    }
    let id = &past.session.id;
    Err(Failure::usage(format!(
        "session `{id}` belongs to the workspace `{}`",
        ShownText::new(own)
    ))
    .with_hint(format!("`belljar chat --workspace {} --resume {id}`", ShownText::new(own))))
}

/// Refuses to chat with a team. An agent may continue from the team's outcome.
fn refuse_team(args: &ChatArgs, past: &SessionPast) -> Result<(), Failure> {
    if args.agent.is_some() {
        return Ok(());
    }
    let id = &past.session.id;
    Err(Failure::usage(format!(
        "session `{id}` is a team's run, and a team is nobody to talk with"
    ))
    .with_hint(format!("`belljar chat --resume {id} --agent NAME` resumes it with an agent"))
    .with_hint(format!("`belljar receipts {id}` shows its outcome")))
}

/// The failure of resuming a session, with a hint.
fn resume_failure(error: SessionError) -> Failure {
    match &error {
        SessionError::Nothing => {
            Failure::usage(error.to_string()).with_hint("`belljar chat` begins one")
        }
        SessionError::Locked(_) => {
            Failure::new(error.to_string()).with_hint("leave it there, or begin another one here")
        }
        SessionError::Store(belljar_store::StoreError::NotFound { .. }) => {
            Failure::usage(error.to_string())
                .with_hint("`belljar sessions list` lists the sessions")
        }
        SessionError::Store(_) | SessionError::Lock { .. } => {
            Failure::new(format_error_chain(&error))
        }
    }
}

/// Prints the agent and the model of the conversation in one line.
fn print_greeting(conversation: &Conversation, host: &Host, out: &TerminalOutput) {
    let agent = conversation.agent();
    let name = out.paint_err(TextStyle::Bold, ShownText::new(&agent.definition.name));
    let asked = conversation.model().or(agent.definition.model.as_deref()).unwrap_or("main");
    let model = host.models.resolve_model(asked, None);
    let model = model.map_or_else(|error| error.to_string(), |found| found.model.id().to_owned());
    out.note(format_args!("{name} on {}; /help lists the commands", ShownText::new(&model)));
}

/// Prints the last few turns of the session.
fn show_past(past: &SessionPast, out: &TerminalOutput) {
    let count = past.turns.len();
    let title = ShownText::clip_line(&past.session.title, MAX_PAST_LINE);
    let turns = table::format_quantity(count as u64, "turn");
    out.note(format_args!("session {} ({turns}): {title}", past.session.id));
    for turn in past.turns.iter().skip(count.saturating_sub(MAX_PAST_TURNS)) {
        out.note(format_args!(
            "  you:   {}",
            ShownText::clip_line(turn.text().trim(), MAX_PAST_LINE)
        ));
        let answer = ShownText::clip_line(turn.state.outcome.output.trim(), MAX_PAST_LINE);
        let ending = match turn.state.status {
            MessageStatus::Completed => String::new(),
            MessageStatus::Interrupted | MessageStatus::InFlight => out
                .paint_err(TextStyle::Yellow, "(interrupted: the program ended during this turn)"),
            MessageStatus::Partial | MessageStatus::Failed | MessageStatus::Cancelled => {
                out.paint_err(TextStyle::Yellow, format_args!("({})", turn.state.status))
            }
        };
        let gap = if answer.to_string().is_empty() { "" } else { " " };
        out.note(format!("  agent: {answer}{gap}{ending}").trim_end());
    }
}

/// The names of agents that Tab completes.
fn agent_names(host: &Host, places: &HomePaths) -> Vec<String> {
    let agents = resolve_all(host, &places.workspace).unwrap_or_default();
    let offered = agents.iter().filter(|agent| agent.definition.visibility != Visibility::Internal);
    offered.map(|agent| agent.id.slug.as_str().to_owned()).collect()
}

/// The names of teams that Tab completes.
fn team_names(host: &Host) -> Vec<String> {
    let catalog = host.teams.catalog();
    catalog.entries().iter().map(|team| team.id.slug.as_str().to_owned()).collect()
}
