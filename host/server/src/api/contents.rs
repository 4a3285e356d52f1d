//! `GET /v1/sessions/{id}/contents`: what a deletion of the session would remove; and `POST
//! /v1/sessions/{id}/resume`: going on with a session.

use belljar_session::ServiceError;
use belljar_store::SessionContents;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::http::respond::{ChangeAnswer, JsonAnswer, PathOf};

/// The things that are deleted with a session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContentsBody {
    /// Messages, of both sides.
    messages: i64,
    /// Subagents.
    subagents: i64,
    /// Receipts of calls.
    receipts: i64,
    /// Files that tools handed over.
    attachments: i64,
    /// Bytes of them.
    attachment_bytes: i64,
    /// Files that are changed on its overlays and that nobody has decided about; absent while a turn
    /// runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<usize>,
    /// Whether a turn runs: then it cannot be deleted.
    running: bool,
}

/// Whether there was a turn to resume.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Resumed {
    /// `false`: there was no interrupted turn that could be resumed. One that is marked as interrupted
    /// has ended, and the next message follows it.
    resumed: bool,
}

/// `GET /v1/sessions/{id}/contents`: counts the objects that are deleted together with the session.
pub(crate) async fn read_contents(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
) -> Result<JsonAnswer<ContentsBody>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    let SessionContents { messages, subagents, receipts, attachments, attachment_bytes } =
        ctx.store().read_contents(&session).await?;
    let count = ctx.service.look_at(&session, |look| look.count_changes());
    let changes = match count.await {
        Ok(changes) => Some(changes),
        Err(ServiceError::Busy(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let running = ctx.service.running_turns().iter().any(|turn| turn.session == session);
    Ok(JsonAnswer(ContentsBody {
        messages,
        subagents,
        receipts,
        attachments,
        attachment_bytes,
        changes,
        running,
    }))
}

/// `POST /v1/sessions/{id}/resume`: resumes the session's interrupted turn, if it has one.
pub(crate) async fn resume_session(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
) -> Result<ChangeAnswer<Resumed>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    let resumed = ctx.service.resume_session(&session).await?;
    Ok(ChangeAnswer { body: Resumed { resumed }, changed: resumed })
}
