//! Chooses the model of an agent.

use belljar_model::{ModelResolveError, ResolvedModel};

use crate::host::Host;
use crate::outcome::RunError;
use crate::rights::resolve::ResolvedAgent;

/// The name of the model if neither the caller nor the agent's file names one.
const DEFAULT_MODEL: &str = "main";

/// The word in a subagent's file that means its parent's model.
const PARENTS_MODEL: &str = "inherit";

/// The model of an agent: the caller's, otherwise the file's, otherwise the parent's, otherwise `main`.
pub fn model_of(
    host: &Host,
    asked: Option<&str>,
    agent: &ResolvedAgent,
    parent: Option<&str>,
) -> Result<ResolvedModel, RunError> {
    let default = if parent.is_some() { PARENTS_MODEL } else { DEFAULT_MODEL };
    let request = asked.or(agent.definition.model.as_deref()).unwrap_or(default);
    host.models.resolve_model(request, parent).map_err(|error| RunError::Setup {
        message: error.public_message(),
        hint: Some(match (&error, asked) {
            (ModelResolveError::Config { source, .. }, _) => source.to_string(),
            (_, Some(_)) => "`belljar doctor` lists the models; `[models]` and `[roles]` in `belljar.toml` hold them".to_owned(),
            (_, None) => format!(
                "agent `{}` asks for model `{}`; configure it under `[models]` or `[roles]` in `belljar.toml`, or choose one with `--model`",
                agent.id,
                belljar_policy::ShownText::clip_line(request, 100)
            ),
        }),
    })
}
