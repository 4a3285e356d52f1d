//! Commands at the beginning of a prompt, for example `/apply`: decisions about changes, skills and teams.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate, StopReason,
    UnstructuredCommandInput,
};
use belljar_agent::commands::{
    CalledKind, CommandCall, call_name, command_message, find_called_kind, yields_to_skill,
};
use belljar_agent::skills::SkillCaller;
use belljar_agent::{resolve_known, skills};
use belljar_definition::CatalogEntry;
use belljar_policy::ShownText;
use belljar_session::TurnKind;

use crate::changes;
use crate::door::{AcpDoor, Connection};
use crate::errors::{error_from_service, internal_failure, invalid_parameter};
use crate::limits::{MAX_OFFERED, MAX_TITLE};
use crate::open::ActivePrompt;
use crate::prompt::PromptWords;
use crate::{aside, beside, turn, words};

/// One of belljar's commands, which a person types in the editor, for example `/budget`.
struct CommandRow {
    name: &'static str,
    action: CommandAction,
    hint: &'static str,
    help: &'static str,
}

/// The action of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandAction {
    Changes,
    Apply,
    Discard,
    Undo,
    Agent,
    Compact,
    Budget,
    Team(String),
    Skill(String),
    Called(CommandCall),
}

/// A command, with the text after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditorCommand {
    action: CommandAction,
    rest: String,
}

/// The commands that always exist.
const OWN: &[CommandRow] = &[
    CommandRow {
        name: "changes",
        action: CommandAction::Changes,
        hint: "paths; none = all",
        help: "show what was changed in the overlay of this session",
    },
    CommandRow {
        name: "apply",
        action: CommandAction::Apply,
        hint: "paths; none = all",
        help: "put these changes into the workspace, after asking",
    },
    CommandRow {
        name: "discard",
        action: CommandAction::Discard,
        hint: "paths; none = all",
        help: "throw these changes away, after asking",
    },
    CommandRow {
        name: "undo",
        action: CommandAction::Undo,
        hint: "",
        help: "take the last apply back",
    },
    CommandRow {
        name: "agent",
        action: CommandAction::Agent,
        hint: "NAME, or NAME TASK",
        help: "talk with another agent, or have one do a task on the side",
    },
    CommandRow {
        name: "compact",
        action: CommandAction::Compact,
        hint: "",
        help: "put a summary in the place of what was said so far",
    },
    CommandRow {
        name: "budget",
        action: CommandAction::Budget,
        hint: "",
        help: "show what was used",
    },
];

/// The prefix of a command that runs a team, so no team has the name of another command.
const TEAM: &str = "team:";

/// The update with the commands that an editor may offer.
pub(crate) fn list_commands(door: &AcpDoor) -> SessionUpdate {
    let host = door.service.current_host();
    let command = |name: String, help: &str, hint: &str| {
        let help = ShownText::clip_line(help, MAX_TITLE).to_string();
        let input = (!hint.is_empty()).then(|| {
            AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint.to_owned()))
        });
        AvailableCommand::new(name, help).input(input)
    };
    let mut all: Vec<_> =
        OWN.iter().map(|row| command(row.name.to_owned(), row.help, row.hint)).collect();
    let commands = host.commands.catalog();
    let catalog = host.skills.catalog();
    let called = commands.entries().iter().filter(|entry| !yields_to_skill(entry, &catalog));
    let called: Vec<_> = called.collect();
    let is_called = |name: &str| called.iter().any(|entry| call_name(entry) == name);
    let free = called.iter().filter(|entry| !is_own(&call_name(entry)));
    all.extend(free.take(MAX_OFFERED).map(|entry| {
        let terms = &entry.definition.terms;
        let hint = terms.argument_hint.as_deref().unwrap_or("arguments");
        let hint = ShownText::clip_line(hint, MAX_TITLE).to_string();
        command(call_name(entry), &entry.definition.description, &hint)
    }));
    let offered = skills::offered_skills(catalog.entries(), SkillCaller::Person);
    let free = offered.filter(|skill| {
        let name = skill.id.slug.as_str();
        !is_own(name) && !is_called(name)
    });
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

/// The command at the beginning of a prompt; `None` if the prompt goes to the agent.
pub(crate) fn parse_command(door: &AcpDoor, prompt: &PromptWords) -> Option<EditorCommand> {
    let line = prompt.text.strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim().to_owned();
    if let Some(row) = OWN.iter().find(|row| row.name == name) {
        return Some(EditorCommand { action: row.action.clone(), rest });
    }
    if let Some(team) = name.strip_prefix(TEAM) {
        return Some(EditorCommand { action: CommandAction::Team(team.to_owned()), rest });
    }
    let host = door.service.current_host();
    let skills = host.skills.catalog();
    let kind = find_called_kind(&host.commands.catalog(), &skills, name);
    if kind == Some(CalledKind::Command) {
        let call = CommandCall { name: name.to_owned(), arguments: rest.clone() };
        return Some(EditorCommand { action: CommandAction::Called(call), rest });
    }
    let is = |skill: &&CatalogEntry<_>| skill.id.slug.as_str() == name;
    let skill = skills.entries().iter().find(is)?;
    Some(EditorCommand { action: CommandAction::Skill(skill.id.slug.to_string()), rest })
}

/// Performs a command.
pub(crate) async fn perform_command(
    door: &Arc<AcpDoor>,
    to: &Connection,
    prompting: &ActivePrompt,
    command: EditorCommand,
    prompt: PromptWords,
) -> Result<StopReason, Error> {
    let EditorCommand { action, rest } = command;
    let session = &prompting.session;
    let paths = || rest.split_whitespace().map(str::to_owned).collect();
    let work = async {
        match &action {
            CommandAction::Changes => {
                changes::show_changes(door, to, session, paths()).await.map(Some)
            }
            CommandAction::Apply => {
                changes::apply_changes(door, to, session, paths()).await.map(Some)
            }
            CommandAction::Discard => {
                changes::discard_changes(door, to, session, paths()).await.map(Some)
            }
            CommandAction::Undo => changes::undo_apply(door, session).await.map(Some),
            CommandAction::Budget => budget_text(door, &session.id).await.map(Some),
            CommandAction::Compact
            | CommandAction::Agent
            | CommandAction::Team(_)
            | CommandAction::Skill(_)
            | CommandAction::Called(_) => Ok(None),
        }
    };
    // INV-305: an answer after the cancellation decides nothing.
    let Some(done) = prompting.cancel.run_until_cancelled(work).await else {
        return Ok(StopReason::Cancelled);
    };
    if let Some(text) = done? {
        door.send_update(to, &session.id, words::remark_update(&text)).await;
        return Ok(StopReason::EndTurn);
    }
    let beside = matches!(action, CommandAction::Agent | CommandAction::Team(_));
    if beside && !prompt.images.is_empty() {
        return Err(invalid_parameter(
            "on the side, agents are sent text alone; leave the images out",
        ));
    }
    match action {
        CommandAction::Agent => aside::run_agent_command(door, to, prompting, &rest).await,
        CommandAction::Compact => compact_session(door, to, prompting).await,
        CommandAction::Team(name) => {
            beside::run_beside(door, to, prompting, TurnKind::Team, &name, rest).await
        }
        CommandAction::Skill(name) => {
            let prompt = with_skill(door, &name, rest, prompt)?;
            turn::run_prompt(door, to, prompting, prompt).await
        }
        CommandAction::Called(call) => {
            let commands = &door.service.current_host().commands;
            command_message(commands, &call).map_err(invalid_parameter)?;
            let prompt = PromptWords { command: Some(call), ..prompt };
            turn::run_prompt(door, to, prompting, prompt).await
        }
        CommandAction::Changes
        | CommandAction::Apply
        | CommandAction::Discard
        | CommandAction::Undo
        | CommandAction::Budget => Ok(StopReason::EndTurn),
    }
}

/// Summarizes the conversation. It is cancelled like a turn and not dropped, because its usage counts.
async fn compact_session(
    door: &Arc<AcpDoor>,
    to: &Connection,
    prompting: &ActivePrompt,
) -> Result<StopReason, Error> {
    let session = &prompting.session.id;
    let done = door.service.compact_session(session, prompting.cancel.clone()).await;
    if prompting.cancel.is_cancelled() {
        return Ok(StopReason::Cancelled);
    }
    let turns = done.map_err(|error| error_from_service(&error))?;
    let text = format!("A summary stands for {turns} turns now; all of them are still stored.");
    door.send_update(to, session, words::remark_update(&text)).await;
    Ok(StopReason::EndTurn)
}

/// The text about what a session has used, and about the limits of each turn.
async fn budget_text(door: &Arc<AcpDoor>, session: &str) -> Result<String, Error> {
    let used =
        door.service.load_past(session).await.map_err(|error| error_from_service(&error))?.used;
    let agent = door.find_session(session).await?.agent;
    let (host, workspace) = (door.service.current_host(), door.workspace().to_path_buf());
    // Resolved on a thread for blocking work, because files are read.
    let found = door.service.look_up(move |_| resolve_known(&host, &agent, &workspace)).await;
    let found = found.map_err(|error| internal_failure(error.to_string()))?;
    let agent = found
        .map_err(|error| invalid_parameter(ShownText::multiline(&error.to_string()).to_string()))?;
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

/// A task together with a skill, framed as if the agent had loaded the skill.
fn with_skill(
    door: &AcpDoor,
    name: &str,
    task: String,
    prompt: PromptWords,
) -> Result<PromptWords, Error> {
    if task.is_empty() {
        let name = ShownText::clip_line(name, MAX_TITLE);
        return Err(invalid_parameter(format!("say what is to be done with it: `/{name} TASK`")));
    }
    let skills = &door.service.current_host().skills;
    skills::load_skill(skills, name, SkillCaller::Person, &[]).map_err(invalid_parameter)?;
    Ok(PromptWords { text: task, skills: vec![name.to_owned()], ..prompt })
}

fn is_own(name: &str) -> bool {
    OWN.iter().any(|row| row.name == name)
}
