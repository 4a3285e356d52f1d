//! Commands in a prompt: what decides about changes, and the skills and teams that there are.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate, StopReason,
    UnstructuredCommandInput,
};
use belljar_agent::skills;
use belljar_definition::CatalogEntry;
use belljar_policy::Shown;

use crate::changes;
use crate::door::{Connection, Door};
use crate::errors::invalid;
use crate::limits::{MAX_OFFERED, MAX_TITLE};
use crate::open::Prompting;
use crate::prompt::Prompt;
use crate::{team, turn};

/// A command that belljar has itself.
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
    Team(String),
    Skill(String),
}

/// A command with what follows it.
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
];

/// Before the name of a team, so that no team takes the name of another command.
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
    let skills = host.skills.catalog();
    let free = skills.entries().iter().filter(|skill| !is_own(skill.id.slug.as_str()));
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

/// The command that a prompt begins with, if there is such a one; anything else is said to the agent.
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

/// Does what a command says.
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
            Action::Team(_) | Action::Skill(_) => Ok(None),
        }
    };
    // INV-305: an answer that comes after the cancellation decides about nothing.
    let Some(done) = prompting.cancel.run_until_cancelled(work).await else {
        return Ok(StopReason::Cancelled);
    };
    if let Some(text) = done? {
        door.send(to, &session.id, turn::remark(&text)).await;
        return Ok(StopReason::EndTurn);
    }
    match action {
        Action::Team(name) => team::run(door, to, prompting, &name, rest).await,
        Action::Skill(name) => {
            let prompt = with_skill(door, &name, rest, prompt)?;
            turn::say(door, to, prompting, prompt).await
        }
        Action::Changes | Action::Apply | Action::Discard | Action::Undo => Ok(StopReason::EndTurn),
    }
}

/// A task with a skill beside it, framed as the agent would have loaded it itself.
fn with_skill(door: &Door, name: &str, task: String, prompt: Prompt) -> Result<Prompt, Error> {
    if task.is_empty() {
        let name = Shown::clipped(name, MAX_TITLE);
        return Err(invalid(format!("say what is to be done with it: `/{name} TASK`")));
    }
    let skill = skills::load(&door.service.host().skills, name).map_err(invalid)?;
    let context = match prompt.context {
        Some(context) => format!("{skill}\n\n{context}"),
        None => skill,
    };
    Ok(Prompt { text: task, context: Some(context) })
}

fn is_own(name: &str) -> bool {
    OWN.iter().any(|row| row.name == name)
}
