//! The work that runs now, and ending it.

use belljar_policy::Shown;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::sessions::without_path;
use crate::app::Ctx;
use crate::http::problem::Problem;
use crate::http::respond::{Json, OptionalJson, PathOf};

/// Most bytes of the path of a subagent.
const MAX_PATH: usize = 2_000;

/// The turns that run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Running {
    turns: Vec<RunningBody>,
}

/// A turn that runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunningBody {
    /// Its session.
    session: String,
    /// The agent's message.
    message: String,
    /// The agent.
    agent: String,
    /// When it began, in milliseconds since 1970.
    started: i64,
}

/// The work that is to end. No body: the whole turn.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelBody {
    /// One subagent, by its path: `main/scout#0`. Absent: the whole turn.
    pub(crate) subagent: Option<String>,
}

/// Whether there was anything to end.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Cancelled {
    /// `false`: it did not run any more.
    cancelled: bool,
}

impl Cancelled {
    pub(crate) fn was_there(&self) -> bool {
        self.cancelled
    }
}

/// `GET /v1/running`.
pub(crate) async fn list(ctx: Ctx) -> Json<Running> {
    let turns = ctx.service.running().into_iter().map(|turn| RunningBody {
        session: turn.session,
        message: turn.message,
        agent: without_path(&turn.agent),
        started: turn.started,
    });
    Json(Running { turns: turns.collect() })
}

/// `POST /v1/sessions/{id}/cancel`.
pub(crate) async fn cancel(
    ctx: Ctx,
    PathOf(id): PathOf<String>,
    OptionalJson(body): OptionalJson<CancelBody>,
) -> Result<Json<Cancelled>, Problem> {
    let session = ctx.session(&id).await?.id;
    Ok(Json(end(&ctx, &session, body)?))
}

/// Ends the turn of a session, or one subagent of it.
pub(crate) fn end(ctx: &Ctx, session: &str, body: CancelBody) -> Result<Cancelled, Problem> {
    let actor = &*ctx.caller.actor;
    let cancelled = match &body.subagent {
        None => ctx.service.cancel(session, actor),
        Some(path) if path.len() > MAX_PATH || path.chars().any(Shown::hides) => {
            return Err(Problem::invalid("`subagent` is no path of a subagent"));
        }
        Some(path) => ctx.service.cancel_subagent(session, path, actor),
    };
    Ok(Cancelled { cancelled })
}
