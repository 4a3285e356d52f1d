//! Advice for the operator after a model has failed.

use belljar_model::ModelError;
use belljar_policy::ShownText;

/// Most characters of a model's name in the advice.
const MAX_NAME: usize = 80;

/// The setting that the operator should check, for the model called `name` in `belljar.toml`. `None` = a
/// retry may succeed, or the error itself says what to do.
pub(super) fn model_error_remedy(error: &ModelError, name: &str) -> Option<String> {
    let section = format!("`[models.{}]` in `belljar.toml`", ShownText::clip_line(name, MAX_NAME));
    match error {
        ModelError::Auth { .. } => Some(format!("look at `key_env` or `key_file` of {section}")),
        ModelError::Http { status: 404, .. } => {
            Some(format!("look at `model` and `base_url` of {section}"))
        }
        ModelError::Network { .. } => {
            Some(format!("look whether the server runs at the `base_url` of {section}"))
        }
        ModelError::Protocol { .. } => Some(format!("look at `base_url` of {section}")),
        ModelError::Cancelled
        | ModelError::Timeout { .. }
        | ModelError::RateLimited { .. }
        | ModelError::Http { .. }
        | ModelError::ContextLength { .. }
        | ModelError::Provider { .. }
        | ModelError::Cut
        | ModelError::TooLarge { .. }
        | ModelError::Script(_) => None,
    }
}
