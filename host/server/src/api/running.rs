//! Running turns, and their cancellation.

use belljar_policy::ShownText;
use belljar_session::{CancelOutcome, Service};
use belljar_store::StoreError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::sessions::without_path;
use crate::app::HandlerContext;
use crate::http::gate;
use crate::http::problem::{Problem, ProblemKind};
use crate::http::respond::{ChangeAnswer, JsonAnswer, OptionalJson, PathOf, QueryOf};
use crate::routes::RequiredScope;

/// The most turns in one list.
const MAX_TURNS: usize = 1_000;

/// The most bytes of a subagent's path in a cancellation.
const MAX_PATH: usize = 2_000;

/// The turns that run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Running {
    turns: Vec<RunningBody>,
}

/// A turn that runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunningBody {
    /// Its tenant.
    tenant: String,
    /// Its session.
    session: String,
    /// The title of the session; empty while the turn waits for a place. Foreign text.
    title: String,
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
    /// It runs, and nobody had cancelled it before.
    #[serde(skip)]
    is_first: bool,
}

impl Cancelled {
    pub(crate) fn was_there(&self) -> bool {
        self.cancelled
    }

    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }
}

/// The query of `GET /v1/running`: the tenant's turns, or the turns of all tenants.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunningQuery {
    all: Option<bool>,
}

/// `GET /v1/running`: lists the running turns.
pub(crate) async fn list_running(
    ctx: HandlerContext,
    QueryOf(query): QueryOf<RunningQuery>,
) -> Result<JsonAnswer<Running>, Problem> {
    let mut turns = Vec::new();
    if query.all != Some(true) {
        add_running(&ctx.service, &mut turns).await?;
        return Ok(JsonAnswer(Running { turns }));
    }
    // INV-267: only the operator sees the turns of other tenants.
    if !ctx.caller.has_scope(RequiredScope::Operator) {
        ctx.app
            .record_refusal(
                ctx.caller.proven_name(),
                "GET /v1/running?all=true",
                ProblemKind::Scope,
            )
            .await;
        return Err(gate::out_of_scope(&ctx.caller, RequiredScope::Operator));
    }
    for service in ctx.app.services().open_services() {
        add_running(&service, &mut turns).await?;
    }
    Ok(JsonAnswer(Running { turns }))
}

/// Adds the running turns of one tenant to `turns`, until the list has [`MAX_TURNS`] entries.
async fn add_running(service: &Service, turns: &mut Vec<RunningBody>) -> Result<(), Problem> {
    for turn in service.running_turns() {
        if turns.len() >= MAX_TURNS {
            break;
        }
        let title = match service.store().read_session(&turn.session).await {
            Ok(session) => session.title,
            // A turn whose session is not stored yet: it still waits for a jar.
            Err(StoreError::NotFound { .. }) => String::new(),
            Err(error) => return Err(error.into()),
        };
        turns.push(RunningBody {
            tenant: service.store().tenant().to_owned(),
            title,
            session: turn.session,
            message: turn.message,
            agent: without_path(&turn.agent),
            started: turn.started,
        });
    }
    Ok(())
}

/// `POST /v1/sessions/{id}/cancel`: cancels the session's turn, or one of its subagents.
pub(crate) async fn cancel_turn(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
    OptionalJson(body): OptionalJson<CancelBody>,
) -> Result<ChangeAnswer<Cancelled>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    let body = end_turn(&ctx, &session, body)?;
    let changed = body.is_first();
    Ok(ChangeAnswer { body, changed })
}

/// Cancels the turn of a session, or only one subagent if the body names one.
pub(crate) fn end_turn(
    ctx: &HandlerContext,
    session: &str,
    body: CancelBody,
) -> Result<Cancelled, Problem> {
    let actor = &*ctx.caller.actor;
    let cancelled = match &body.subagent {
        None => ctx.service.cancel_turn(session, actor),
        // No subagent has a path of this length or with hidden characters.
        Some(path) if path.len() > MAX_PATH || path.chars().any(ShownText::is_hidden) => {
            CancelOutcome::NotRunning
        }
        Some(path) => ctx.service.cancel_subagent(session, path, actor),
    };
    let is_first = cancelled == CancelOutcome::Cancelled;
    Ok(Cancelled { cancelled: cancelled.is_ending(), is_first })
}
