//! `POST /v1/preview`: exactly what the model would be sent, without sending it.

use belljar_policy::Shown;
use belljar_session::{History, TurnRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::turn::{HistoryWord, named};
use crate::app::Ctx;
use crate::http::problem::Problem;
use crate::http::respond::{Json, JsonBody};

/// The message that would be sent, and the agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviewBody {
    /// The session to go on with. Absent: a new one.
    session: Option<String>,
    /// Of a new session: the agent. Absent: `general-purpose`.
    agent: Option<String>,
    /// Of a new session: a model or a role.
    model: Option<String>,
    /// The text that would be sent.
    text: String,
    /// How much of the session's past would be sent, as in a turn. Default: `compacted`.
    #[serde(default)]
    #[schema(value_type = HistoryWord)]
    history: History,
}

/// The request that the model would be sent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Previewed {
    /// The model.
    model: String,
    /// The request: `system`, `messages`, `tools` and settings.
    request: Value,
    /// Notes that a person should know about it.
    notes: Vec<String>,
}

/// `POST /v1/preview`.
pub(crate) async fn preview(
    ctx: Ctx,
    JsonBody(body): JsonBody<PreviewBody>,
) -> Result<Json<Previewed>, Problem> {
    let session = match &body.session {
        Some(id) => Some(ctx.session(id).await?.id),
        None => None,
    };
    let request = TurnRequest {
        session,
        agent: named("agent", body.agent)?,
        model: named("model", body.model)?,
        text: body.text,
        history: body.history,
        ..TurnRequest::default()
    };
    let preview = ctx.service.preview(request).await?;
    let request = serde_json::to_value(&preview.request)
        .map_err(|error| Problem::bug(&format!("a preview is no JSON: {error}")))?;
    let notes = preview.notes.iter().map(|note| Shown::multiline(note).to_string()).collect();
    Ok(Json(Previewed { model: preview.model, request, notes }))
}
