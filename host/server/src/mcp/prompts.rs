//! Prompts: the commands and the skills, for the person behind the client.

use std::sync::Arc;

use belljar_agent::Host;
use belljar_agent::commands::{
    CalledKind, CommandCall, call_name, command_message, find_called_kind, yields_to_skill,
};
use belljar_agent::skills::{self, SkillCaller};
use belljar_definition::{AgentScope, CatalogEntry, CommandDefinition};
use belljar_policy::ShownText;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};

use super::client::ProtocolClient;

/// The name of a command's only argument.
const ARGUMENTS: &str = "arguments";

/// Most prompts in a list.
const MAX_LISTED: usize = 500;

/// The most characters of a skill's description in a list.
const MAX_DESCRIPTION: usize = 500;

/// The most bytes of the text that the person adds to a skill.
const MAX_TASK: usize = 1 << 20;

/// The commands and the skills.
pub(super) async fn list_prompts(client: &ProtocolClient) -> Vec<Prompt> {
    let host = client.service.current_host();
    let library = Arc::clone(&host.skills);
    // Runs on a thread for blocking work, because it reads directories. On an error the list of skills stays
    // as it was.
    let _ = client.service.look_up(move |stop| library.refresh_until(stop)).await;
    let commands = Arc::clone(&host.commands);
    let _ = client.service.look_up(move |stop| commands.refresh_until(stop)).await;
    let commands = host.commands.catalog();
    let catalog = host.skills.catalog();
    let called = commands.entries().iter().filter(|entry| !yields_to_skill(entry, &catalog));
    let called: Vec<Prompt> = called.take(MAX_LISTED).map(command_prompt).collect();
    let skills = skills::offered_skills(catalog.entries(), SkillCaller::Person).take(MAX_LISTED);
    let skills = skills
        .map(|skill| {
            let name = match skill.id.scope {
                AgentScope::Home | AgentScope::Workspace(_) => skill.id.slug.to_string(),
                AgentScope::Library(_) => skill.id.to_string(),
            };
            let about =
                ShownText::clip_line(&skill.definition.description, MAX_DESCRIPTION).to_string();
            let task = PromptArgument::new("task").with_description("what is to be done with it");
            Prompt::new(name, Some(about), Some(vec![task.with_required(false)]))
        })
        .filter(|prompt| called.iter().all(|other| other.name != prompt.name));
    let skills: Vec<Prompt> = skills.collect();
    called.into_iter().chain(skills).take(MAX_LISTED).collect()
}

/// A command as a prompt with its arguments.
fn command_prompt(entry: &CatalogEntry<CommandDefinition>) -> Prompt {
    let about = &entry.definition.description;
    let about = ShownText::clip_line(about, MAX_DESCRIPTION).to_string();
    let hint = entry.definition.terms.argument_hint.as_deref().unwrap_or("the arguments");
    let hint = ShownText::clip_line(hint, MAX_DESCRIPTION).to_string();
    let arguments = PromptArgument::new(ARGUMENTS).with_description(hint).with_required(false);
    Prompt::new(call_name(entry), Some(about), Some(vec![arguments]))
}

/// The text of a command with its arguments; files and shell commands in it are left to the client.
fn get_command(
    host: &Host,
    request: &GetPromptRequestParams,
) -> Option<Result<GetPromptResult, ErrorData>> {
    let kind = find_called_kind(&host.commands.catalog(), &host.skills.catalog(), &request.name)?;
    if kind == CalledKind::Skill {
        return None;
    }
    let arguments = request.arguments.as_ref();
    let arguments = arguments.and_then(|arguments| arguments.get(ARGUMENTS)?.as_str());
    let call = CommandCall {
        name: request.name.clone(),
        arguments: arguments.unwrap_or_default().to_owned(),
    };
    let text = command_message(&host.commands, &call);
    let result = |text| GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    Some(text.map(result).map_err(|why| ErrorData::invalid_params(why, None)))
}

/// A skill in its frame, followed by the person's text.
pub(super) fn get_prompt(
    client: &ProtocolClient,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let host = client.service.current_host();
    if let Some(command) = get_command(&host, request) {
        return command;
    }
    let text = skills::load_skill(&host.skills, &request.name, SkillCaller::Person, &[]);
    let mut text = text.map_err(|why| ErrorData::invalid_params(why, None))?;
    let arguments = request.arguments.as_ref();
    if let Some(task) = arguments.and_then(|arguments| arguments.get("task")?.as_str()) {
        if task.len() > MAX_TASK {
            return Err(ErrorData::invalid_params("`task` is too long", None));
        }
        text.push_str("\n\n");
        text.push_str(task);
    }
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}
