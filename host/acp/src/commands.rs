//! Commands in a prompt: decisions about changes, skills and teams.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate, StopReason,
    UnstructuredCommandInput,
};
use belljar_agent::skills::Caller;
use belljar_agent::{resolve_known, skills};
use belljar_definition::CatalogEntry;
use belljar_policy::Shown;
use belljar_session::TurnKind;

use crate::changes;
use crate::door::{Connection, Door};
use crate::errors::{failed, invalid, of_service};
use crate::limits::{MAX_OFFERED, MAX_TITLE};
use crate::open::Prompting;
use crate::prompt::Prompt;
use crate::{aside, beside, turn, words};

/// One of belljar's own commands.
struct Row {
    name: &'static str,
    action: Action,
    hint: &'static str,
    help: &'static str,
}

/// The action of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Changes,
    Apply,
    Discard,
    Undo,
    Agent,
    Compact,
    Budget,
    Team(String),
    Skill(String),
}

/// A command with the text after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    action: Action,
    rest: String,
}

/// The commands that are always there.
const OWN: &[Row] = &[
    Row {
        name: "changes",
        action: Action::Changes,
        hint: "paths; none = all",
        help: "show what was changed in the overlay of this session",
    },
    Row {
        name: "apply",
        action: Action::Apply,
        hint: "paths; none = all",
        help: "put these changes into the workspace, after asking",
    },
    Row {
        name: "discard",
        action: Action::Discard,
        hint: "paths; none = all",
        help: "throw these changes away, after asking",
    },
    Row { name: "undo", action: Action::Undo, hint: "", help: "take the last apply back" },
    Row {
        name: "agent",
        action: Action::Agent,
        hint: "NAME, or NAME TASK",
        help: "talk with another agent, or have one do a task on the side",
    },
    Row {
        name: "compact",
        action: Action::Compact,
        hint: "",
        help: "put a summary in the place of what was said so far",
    },
    Row { name: "budget", action: Action::Budget, hint: "", help: "show what was used" },
];

/// The prefix of a team's command, so that a team cannot have the name of another command.
const TEAM: &str = "team:";

/// The commands that an editor may offer.
pub(crate) fn available(door: &Door) -> SessionUpdate {
    let host = door.service.host();
    let command = |name: String, help: &str, hint: &str| {
        let help = Shown::clipped(help, MAX_TITLE).to_string();
        let input = (!hint.is_empty()).then(|| {
            AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint.to_owned()))
        });
        AvailableCommand::new(name, help).input(input)
    };
    let mut all: Vec<_> =
        OWN.iter().map(|row| command(row.name.to_owned(), row.help, row.hint)).collect();
    let catalog = host.skills.catalog();
    let offered = skills::offered(catalog.entries(), Caller::Person);
    let free = offered.filter(|skill| !is_own(skill.id.slug.as_str()));
    all.extend(free.take(MAX_OFFERED).map(|skill| {
        command(skill.id.slug.to_string(), &skill.definition.description, "the task")
    }));
    let teams = host.teams.catalog();
    all.extend(teams.entries().iter().take(MAX_OFFERED).map(|team| {
        let name = format!("{TEAM}{}", team.id.slug);
        command(name, &team.definition.description, "the task")
    }));
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(all))
}

/// The command at the beginning of a prompt, if any; other prompts go to the agent.
pub(crate) fn read(door: &Door, prompt: &Prompt) -> Option<Command> {
    let line = prompt.text.strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim().to_owned();
    if let Some(row) = OWN.iter().find(|row| row.name == name) {
        return Some(Command { action: row.action.clone(), rest });
    }
    if let Some(team) = name.strip_prefix(TEAM) {
        return Some(Command { action: Action::Team(team.to_owned()), rest });
    }
    let skills = door.service.host().skills.catalog();
    let is = |skill: &&CatalogEntry<_>| skill.id.slug.as_str() == name;
    let skill = skills.entries().iter().find(is)?;
    Some(Command { action: Action::Skill(skill.id.slug.to_string()), rest })
}

/// Performs a command.
pub(crate) async fn perform(
    door: &Arc<Door>,
    to: &Connection,
    prompting: &Prompting,
    command: Command,
    prompt: Prompt,
) -> Result<StopReason, Error> {
    let Command { action, rest } = command;
    let session = &prompting.session;
    let paths = || rest.split_whitespace().map(str::to_owned).collect();
    let work = async {
        match &action {
            Action::Changes => changes::show(door, to, session, paths()).await.map(Some),
            Action::Apply => changes::apply(door, to, session, paths()).await.map(Some),
            Action::Discard => changes::discard(door, to, session, paths()).await.map(Some),
            Action::Undo => changes::undo(door, session).await.map(Some),
            Action::Budget => budget(door, &session.id).await.map(Some),
            Action::Compact | Action::Agent | Action::Team(_) | Action::Skill(_) => Ok(None),
        }
    };
    // INV-305: an answer after the cancellation decides nothing.
    let Some(done) = prompting.cancel.run_until_cancelled(work).await else {
        return Ok(StopReason::Cancelled);
    };
    if let Some(text) = done? {
        door.send(to, &session.id, words::remark(&text)).await;
        return Ok(StopReason::EndTurn);
    }
    let beside = matches!(action, Action::Agent | Action::Team(_));
    if beside && !prompt.images.is_empty() {
        return Err(invalid("on the side, agents are sent text alone; leave the images out"));
    }
    match action {
        Action::Agent => aside::run(door, to, prompting, &rest).await,
        Action::Compact => compact(door, to, prompting).await,
        Action::Team(name) => beside::run(door, to, prompting, TurnKind::Team, &name, rest).await,
        Action::Skill(name) => {
            let prompt = with_skill(door, &name, rest, prompt)?;
            turn::say(door, to, prompting, prompt).await
        }
        Action::Changes | Action::Apply | Action::Discard | Action::Undo | Action::Budget => {
            Ok(StopReason::EndTurn)
        }
    }
}

/// Summarises the conversation. Cancelled like a turn, not dropped, because the usage counts.
async fn compact(
    door: &Arc<Door>,
    to: &Connection,
    prompting: &Prompting,
) -> Result<StopReason, Error> {
    let session = &prompting.session.id;
    let done = door.service.compact(session, prompting.cancel.clone()).await;
    if prompting.cancel.is_cancelled() {
        return Ok(StopReason::Cancelled);
    }
    let turns = done.map_err(|error| of_service(&error))?;
    let text = format!("A summary stands for {turns} turns now; all of them are still stored.");
    door.send(to, session, words::remark(&text)).await;
    Ok(StopReason::EndTurn)
}

/// The used amounts of a session, and the limits of each turn.
async fn budget(door: &Arc<Door>, session: &str) -> Result<String, Error> {
    let used = door.service.past(session).await.map_err(|error| of_service(&error))?.used;
    let agent = door.stored(session).await?.agent;
    let (host, workspace) = (door.service.host(), door.workspace().to_path_buf());
    // Looked up on a thread, because files are read.
    let found = door.service.look_up(move |_| resolve_known(&host, &agent, &workspace)).await;
    let found = found.map_err(|error| failed(error.to_string()))?;
    let agent = found.map_err(|error| invalid(Shown::multiline(&error.to_string()).to_string()))?;
    let each = agent.rights.limits();
    let tokens = used.input_tokens.saturating_add(used.output_tokens);
    Ok(format!(
        "| | this session | each turn at most |\n| --- | --- | --- |\n| steps | {} | {} |\n\
         | tokens | {tokens} ({} of them cached) | {} |\n| fuel | {} | {} |\n\
         | tool calls | {} | |",
        used.steps,
        each.steps,
        used.cached_tokens,
        each.tokens,
        used.fuel,
        each.fuel,
        used.tool_calls,
    ))
}

/// A task with a skill, framed as if the agent had loaded the skill.
fn with_skill(door: &Door, name: &str, task: String, prompt: Prompt) -> Result<Prompt, Error> {
    if task.is_empty() {
        let name = Shown::clipped(name, MAX_TITLE);
        return Err(invalid(format!("say what is to be done with it: `/{name} TASK`")));
    }
    let skill = skills::load(&door.service.host().skills, name, Caller::Person).map_err(invalid)?;
    let context = match prompt.context {
        Some(context) => format!("{skill}\n\n{context}"),
        None => skill,
    };
    Ok(Prompt { text: task, context: Some(context), images: prompt.images })
}

fn is_own(name: &str) -> bool {
    OWN.iter().any(|row| row.name == name)
}
