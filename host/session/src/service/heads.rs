//! Sessions made before their first message, and changes of a session's title, agent or model, for entrances
//! whose clients choose these apart from messages.

use belljar_store::{SessionHead, SessionKind, StoreWrite, StoredSession};
use serde::Deserialize as _;

use super::Service;
use super::begin::DEFAULT_AGENT;
use super::running::ClaimPurpose;
use super::types::{HeadEdit, ServiceError};
use super::versions::LookDepth;
use crate::record::past::{SessionPast, load_past};
use crate::record::rows::PersonMetadata;

impl Service {
    /// Stores a session without a turn.
    ///
    /// # Errors
    ///
    /// As [`Service::begin_turn`], for the agent and model in `head`.
    pub async fn create_session(&self, head: HeadEdit) -> Result<StoredSession, ServiceError> {
        let inner = &self.0;
        inner.check_not_draining()?;
        self.look_for_changes(LookDepth::IfChanged).await;
        let HeadEdit { title, agent, model } = head;
        let (title, model) = (title.unwrap_or_default(), model.unwrap_or_default());
        self.check_model(&model)?;
        inner.allowance.check_room(&inner.store, title.len()).await?;
        let agent = inner
            .runnable_agent(&inner.current_host(), agent.as_deref().unwrap_or(DEFAULT_AGENT))
            .await?;
        let now = inner.now_millis();
        let session = StoredSession {
            id: inner.new_id(),
            title,
            agent: agent.id.to_string(),
            workspace: inner.workspace.to_string_lossy().into_owned(),
            model,
            kind: SessionKind::Api,
            created: now,
            updated: now,
        };
        inner.store.enqueue_writes(vec![StoreWrite::CreateSession(session.clone())]).await?;
        Ok(session)
    }

    /// Changes the title, agent or model of a session, from its next turn on.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Busy`] while a turn of the session runs; else as [`Service::create_session`].
    pub async fn set_head(
        &self,
        session: &str,
        head: HeadEdit,
    ) -> Result<StoredSession, ServiceError> {
        let inner = &self.0;
        let claim = inner.claim_session(session, ClaimPurpose::Review).await?;
        let mut stored = inner.store.read_session(claim.session_id()).await?;
        if let Some(agent) = head.agent {
            self.look_for_changes(LookDepth::IfChanged).await;
            stored.agent =
                inner.runnable_agent(&inner.current_host(), &agent).await?.id.to_string();
        }
        if let Some(model) = head.model {
            self.check_model(&model)?;
            stored.model = model;
        }
        stored.title = head.title.unwrap_or(stored.title);
        let StoredSession { title, agent, model, .. } = stored.clone();
        let head = SessionHead { title, agent, model };
        let write = StoreWrite::SessionHead { session: session.to_owned(), head };
        inner.store.enqueue_writes(vec![write]).await?;
        Ok(stored)
    }

    /// The ended turns of a session, with all messages.
    ///
    /// # Errors
    ///
    /// When there is no such session, or the store cannot be read.
    pub async fn load_past(&self, session: &str) -> Result<SessionPast, ServiceError> {
        let store = &self.0.store;
        Ok(load_past(store, store.read_session(session).await?).await?)
    }

    /// The caller who began a session, as in the audit log; `None` = unknown.
    ///
    /// # Errors
    ///
    /// When the session is missing, or the store cannot be read.
    pub async fn first_actor(&self, session: &str) -> Result<Option<String>, ServiceError> {
        let store = &self.0.store;
        let rows = store.list_messages(&store.read_session(session).await?.id).await?;
        let begun = rows.first().map(|row| PersonMetadata::deserialize(&row.metadata));
        Ok(begun.and_then(Result::ok).and_then(|begun| begun.actor))
    }

    /// Checks that `model` names a configured model; empty = the agent's own.
    fn check_model(&self, model: &str) -> Result<(), ServiceError> {
        if model.is_empty() {
            return Ok(());
        }
        let found = self.0.current_host().models.resolve_model(model, None);
        found.map(drop).map_err(|error| ServiceError::Invalid(error.to_string()))
    }
}
