//! Prompts: the skills, for the person behind the client.

use std::sync::Arc;

use belljar_agent::skills::{self, Caller};
use belljar_definition::Scope;
use belljar_policy::Shown;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};

use super::client::Client;

/// Most prompts in a list.
const MAX_LISTED: usize = 500;

/// Characters of a description.
const MAX_DESCRIPTION: usize = 500;

/// Most bytes of the person's text for a skill.
const MAX_TASK: usize = 1 << 20;

/// The skills.
pub(super) async fn list(client: &Client) -> Vec<Prompt> {
    let host = client.service.host();
    let library = Arc::clone(&host.skills);
    // Run on a thread, because directories are read. On an error the skills do not change.
    let _ = client.service.look_up(move |stop| library.refresh_until(stop)).await;
    let catalog = host.skills.catalog();
    let skills = skills::offered(catalog.entries(), Caller::Person).take(MAX_LISTED);
    skills
        .map(|skill| {
            let name = match skill.id.scope {
                Scope::Home | Scope::Workspace(_) => skill.id.slug.to_string(),
                Scope::Library(_) => skill.id.to_string(),
            };
            let about = Shown::clipped(&skill.definition.description, MAX_DESCRIPTION).to_string();
            let task = PromptArgument::new("task").with_description("what is to be done with it");
            Prompt::new(name, Some(about), Some(vec![task.with_required(false)]))
        })
        .collect()
}

/// A skill in its frame, followed by the task.
pub(super) fn get(
    client: &Client,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let host = client.service.host();
    let text = skills::load(&host.skills, &request.name, Caller::Person);
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
