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

use belljar_agent::{Host, ResolvedAgent, resolve, resolve_all};
use belljar_definition::Visibility;
use belljar_model::Models;
use belljar_policy::{Caps, LimitsRequest, Meter, Shown};
use belljar_session::{Conversation, History, Past, SavedSession, SessionError, Turn};
use belljar_store::{MessageStatus, SessionKind, Store};

use self::complete::Words;
use self::input::{Interrupts, Lines};
use self::talk::Chat;
use crate::args::ChatArgs;
use crate::commands::catalogue::agents;
use crate::commands::inspect::sessions::LATEST;
use crate::commands::run::agent as single;
use crate::commands::run::{runner, saving, transcript};
use crate::setup::exit::{Exit, Failure, chain};
use crate::setup::home::Places;
use crate::setup::host::{self, Assembly};
use crate::setup::once::remove_left;
use crate::setup::walls::Walls;
use crate::term::ahead::TypedAhead;
use crate::term::asker::TerminalAsker;
use crate::term::out::{Out, Style};
use crate::term::progress::{Progress, To};
use crate::term::table;

/// Turns of the past that are shown when a session is resumed.
const MAX_PAST_TURNS: usize = 3;

/// Characters of each of their lines.
const MAX_PAST_LINE: usize = 200;

pub(super) fn run(
    args: &ChatArgs,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    runner::nobodys(&args.nobodys)?;
    runner::warn_of_home(places, out);
    saving::make_sessions(places)?;
    let mut through = runner::through(args.transcript.as_deref(), None, places);
    // `/apply` writes there, by the person's word.
    if host::settings(places).is_ok_and(|settings| settings.overlays.by_default) {
        through.write.push(places.workspace.clone());
    }
    walls.up(places, &through)?;
    let ahead = TypedAhead::default();
    let out = &out.keeping(ahead.clone());
    let progress = Progress::new(out, To::Chat);
    let host = host(args, places, out, &progress)?;
    progress.problems(host.tools.problems());
    if host.models.is_empty() {
        return Err(runner::no_model(places));
    }
    let runtime = host::runtime()?;
    let exit = runtime.block_on(async {
        remove_left(&places.store_directory());
        let store = Store::open(&places.store()).await.map_err(|e| Failure::new(chain(&e)))?;
        let exit = chat(args, places, out, &host, &progress, (store.clone(), ahead)).await;
        store.close().await;
        exit
    });
    // A thread that still waits for a line must not keep the process.
    runtime.shutdown_background();
    for warning in host.sandbox.warnings() {
        out.warning(warning);
    }
    exit
}

fn host(args: &ChatArgs, places: &Places, out: &Out, progress: &Progress) -> Result<Host, Failure> {
    let mut assembly = Assembly::new(places, out)?;
    if let Some(path) = &args.transcript {
        assembly = assembly.with_models(Models::single(Arc::new(transcript::scripted(path)?)));
    }
    let asker = Arc::new(TerminalAsker::new(out, progress));
    assembly.showing(progress).asking(asker).host()
}

async fn chat(
    args: &ChatArgs,
    places: &Places,
    out: &Out,
    host: &Host,
    progress: &Progress,
    (store, ahead): (Store, TypedAhead),
) -> Result<Exit, Failure> {
    let clock = Arc::clone(&host.clock);
    let (session, mut past) = match &args.resume {
        None => (SavedSession::new(store, clock), None),
        Some(which) => {
            let which = Some(which.as_str()).filter(|which| !["", LATEST].contains(which));
            let resumed = SavedSession::resume(store, clock, which, &places.workspace).await;
            let (mut session, mut past) = resumed.map_err(not_resumed)?;
            same_workspace(&past, &places.workspace)?;
            if past.session.kind == SessionKind::Team {
                no_team(args, &past)?;
                if past.unfinished.is_some() {
                    // No agent can resume the turn of a team, so the agent gets a note of the stored part.
                    past = session.give_up(past).await.map_err(not_resumed)?;
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
    let partial = args.partial || unfinished.is_some_and(Turn::partial);
    let agent = agent(host, &name, partial, places)?;
    let conversation = conversation(args, agent, places, past.as_ref()).with_partial(partial);
    greet(&conversation, host, out);
    if let Some(past) = &past {
        show_past(past, out);
    }
    let words = Words::new(names(host, places), teams(host));
    let lines = Lines::of_stdin(places.chat_history(), words, ahead)
        .map_err(|error| Failure::new(format!("failed to read from stdin: {error}")))?;
    let interrupts = Interrupts::listen()
        .map_err(|error| Failure::new(format!("failed to listen for signals: {error}")))?;
    let mut chat = Chat::new(host, places, out, progress, conversation, session, interrupts);
    if let Some(turn) = past.as_mut().and_then(|past| past.unfinished.take()) {
        chat.resume(turn).await;
    }
    chat.run(lines).await
}

/// An agent that may be run.
fn agent(
    host: &Host,
    name: &str,
    partial: bool,
    places: &Places,
) -> Result<Arc<ResolvedAgent>, Failure> {
    let agent = resolve(host, name, &places.workspace).map_err(agents::not_found)?;
    agent.runnable(partial)?;
    Ok(Arc::new(agent))
}

fn conversation(
    args: &ChatArgs,
    agent: Arc<ResolvedAgent>,
    places: &Places,
    past: Option<&Past>,
) -> Conversation {
    let mut caps = Caps::unlimited();
    for (meter, limit) in [
        (Meter::Steps, args.max_steps),
        (Meter::Tokens, args.max_tokens),
        (Meter::Fuel, args.max_fuel),
    ] {
        caps = limit.map_or(caps, |limit| caps.with(meter, limit));
    }
    let limits = LimitsRequest { timeout_seconds: args.timeout, ..LimitsRequest::default() };
    let history = if args.whole_history { History::Whole } else { History::Compacted };
    let saved = past.map(|past| past.session.model.clone()).filter(|model| !model.is_empty());
    let conversation = Conversation::new(agent, places.workspace.clone(), caps)
        // A transcript stands for every model.
        .with_model(args.model.clone().or(saved.filter(|_| args.transcript.is_none())))
        .with_limits(limits)
        .with_history(history);
    match past {
        Some(past) => conversation.resumed(past.messages(history), past.used),
        None => conversation,
    }
}

/// A session's messages speak of the files of its own workspace.
fn same_workspace(past: &Past, workspace: &Path) -> Result<(), Failure> {
    let own = &past.session.workspace;
    if Path::new(own) == workspace {
        return Ok(());
    }
    let id = &past.session.id;
    Err(Failure::usage(format!("session `{id}` belongs to the workspace `{}`", Shown::new(own)))
        .hint(format!("`belljar chat --workspace {} --resume {id}`", Shown::new(own))))
}

/// A team cannot chat; an agent may continue from its outcome.
fn no_team(args: &ChatArgs, past: &Past) -> Result<(), Failure> {
    if args.agent.is_some() {
        return Ok(());
    }
    let id = &past.session.id;
    Err(Failure::usage(format!(
        "session `{id}` is a team's run, and a team is nobody to talk with"
    ))
    .hint(format!("`belljar chat --resume {id} --agent NAME` resumes it with an agent"))
    .hint(format!("`belljar receipts {id}` shows its outcome")))
}

fn not_resumed(error: SessionError) -> Failure {
    match &error {
        SessionError::Nothing => {
            Failure::usage(error.to_string()).hint("`belljar chat` begins one")
        }
        SessionError::Locked(_) => {
            Failure::new(error.to_string()).hint("leave it there, or begin another one here")
        }
        SessionError::Store(belljar_store::StoreError::NotFound { .. }) => {
            Failure::usage(error.to_string()).hint("`belljar sessions list` lists the sessions")
        }
        SessionError::Store(_) | SessionError::Lock { .. } => Failure::new(chain(&error)),
    }
}

/// The agent of the conversation, in one line.
fn greet(conversation: &Conversation, host: &Host, out: &Out) {
    let agent = conversation.agent();
    let name = out.paint_err(Style::Bold, Shown::new(&agent.definition.name));
    let asked = conversation.model().or(agent.definition.model.as_deref()).unwrap_or("main");
    let model = host.models.resolve(asked, None);
    let model = model.map_or_else(|error| error.to_string(), |found| found.model.id().to_owned());
    out.note(format_args!("{name} on {}; /help lists the commands", Shown::new(&model)));
}

/// The last few turns of the session.
fn show_past(past: &Past, out: &Out) {
    let count = past.turns.len();
    let title = Shown::clipped(&past.session.title, MAX_PAST_LINE);
    let turns = table::some(count as u64, "turn");
    out.note(format_args!("session {} ({turns}): {title}", past.session.id));
    for turn in past.turns.iter().skip(count.saturating_sub(MAX_PAST_TURNS)) {
        out.note(format_args!("  you:   {}", Shown::clipped(turn.text().trim(), MAX_PAST_LINE)));
        let answer = Shown::clipped(turn.state.outcome.output.trim(), MAX_PAST_LINE);
        let ending = match turn.state.status {
            MessageStatus::Completed => String::new(),
            MessageStatus::Interrupted | MessageStatus::InFlight => {
                out.paint_err(Style::Yellow, "(interrupted: the program ended during this turn)")
            }
            MessageStatus::Partial | MessageStatus::Failed | MessageStatus::Cancelled => {
                out.paint_err(Style::Yellow, format_args!("({})", turn.state.status))
            }
        };
        let gap = if answer.to_string().is_empty() { "" } else { " " };
        out.note(format!("  agent: {answer}{gap}{ending}").trim_end());
    }
}

/// The agents that Tab completes.
fn names(host: &Host, places: &Places) -> Vec<String> {
    let agents = resolve_all(host, &places.workspace).unwrap_or_default();
    let offered = agents.iter().filter(|agent| agent.definition.visibility != Visibility::Internal);
    offered.map(|agent| agent.id.slug.as_str().to_owned()).collect()
}

/// The teams that Tab completes.
fn teams(host: &Host) -> Vec<String> {
    let catalog = host.teams.catalog();
    catalog.entries().iter().map(|team| team.id.slug.as_str().to_owned()).collect()
}
