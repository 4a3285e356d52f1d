//! `GET /v1/roles`: the models that agents and sessions may name, with their roles.

use belljar_policy::ShownText;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::HandlerContext;
use crate::http::respond::JsonAnswer;

/// The models that may be named: by a role, or by a name of their own.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Roles {
    /// Every role there is.
    roles: Vec<RoleBody>,
    /// The names of the configured models. Any other name is refused; where the list is empty, one
    /// model answers whatever is named.
    models: Vec<String>,
}

/// A part that a model plays.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RoleBody {
    /// Its name: `main`, `fast`, `strong`, `compaction` or `fallback`.
    role: &'static str,
    /// The name of the model that plays it; absent where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Whether that is the main model, since no other was chosen for it.
    by_main: bool,
}

/// `GET /v1/roles`: lists the models and roles.
pub(crate) async fn list_roles(ctx: HandlerContext) -> JsonAnswer<Roles> {
    let host = ctx.service.current_host();
    let shown = |name: &str| ShownText::new(name).to_string();
    let roles = host.models.role_assignments().map(|played| RoleBody {
        role: played.role,
        model: played.model.map(shown),
        by_main: played.by_main,
    });
    let roles = roles.collect();
    let models = host.models.model_names().map(shown).collect();
    JsonAnswer(Roles { roles, models })
}
