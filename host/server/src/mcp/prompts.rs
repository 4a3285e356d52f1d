//! MCP prompts: the operator's skills, which the person who uses the client can insert.

use std::sync::Arc;

use belljar_agent::skills::{self, SkillCaller};
use belljar_definition::AgentScope;
use belljar_policy::ShownText;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};

use super::client::ProtocolClient;

/// The most prompts in a list.
const MAX_LISTED: usize = 500;

/// The most characters of a skill's description in a list.
const MAX_DESCRIPTION: usize = 500;

/// The most bytes of the text that the person adds to a skill.
const MAX_TASK: usize = 1 << 20;

/// Lists the skills as prompts.
pub(super) async fn list_prompts(client: &ProtocolClient) -> Vec<Prompt> {
    let host = client.service.current_host();
    let library = Arc::clone(&host.skills);
    // Runs on a thread for blocking work, because it reads directories. On an error the list of skills stays
    // as it was.
    let _ = client.service.look_up(move |stop| library.refresh_until(stop)).await;
    let catalog = host.skills.catalog();
    let skills = skills::offered_skills(catalog.entries(), SkillCaller::Person).take(MAX_LISTED);
    skills
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
        .collect()
}

/// A skill in its frame, followed by the person's text.
pub(super) fn get_prompt(
    client: &ProtocolClient,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let host = client.service.current_host();
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
