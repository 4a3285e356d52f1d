//! Sessions made before the first message, and changes of a session's agent or model: for entrances whose
//! clients choose both apart from messages.

use belljar_store::{SessionHead, SessionKind, StoredSession, Write};
use serde::Deserialize as _;

use super::Service;
use super::begin::DEFAULT_AGENT;
use super::running::Purpose;
use super::types::{Head, ServiceError};
use super::versions::Look;
use crate::record::past::{Past, past};
use crate::record::rows::PersonMetadata;

impl Service {
    /// Stores a session without a turn.
    ///
    /// # Errors
    ///
    /// As [`Service::begin`], for the agent and model in `head`.
    pub async fn create(&self, head: Head) -> Result<StoredSession, ServiceError> {
        let inner = &self.0;
        inner.check_not_draining()?;
        self.look(Look::IfChanged).await;
        let Head { title, agent, model } = head;
        let (title, model) = (title.unwrap_or_default(), model.unwrap_or_default());
        self.check_model(&model)?;
        inner.allowance.room(&inner.store, title.len()).await?;
        let agent = inner.agent(&inner.host(), agent.as_deref().unwrap_or(DEFAULT_AGENT)).await?;
        let now = inner.now();
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
        inner.store.enqueue(vec![Write::CreateSession(session.clone())]).await?;
        Ok(session)
    }

    /// Sets another title, agent or model of a session, from its next turn on.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Busy`] while a turn of the session runs; else as [`Service::create`].
    pub async fn set_head(&self, session: &str, head: Head) -> Result<StoredSession, ServiceError> {
        let inner = &self.0;
        let claim = inner.claim(session, Purpose::Review).await?;
        let mut stored = inner.store.session(claim.session()).await?;
        if let Some(agent) = head.agent {
            self.look(Look::IfChanged).await;
            stored.agent = inner.agent(&inner.host(), &agent).await?.id.to_string();
        }
        if let Some(model) = head.model {
            self.check_model(&model)?;
            stored.model = model;
        }
        stored.title = head.title.unwrap_or(stored.title);
        let StoredSession { title, agent, model, .. } = stored.clone();
        let head = SessionHead { title, agent, model };
        let write = Write::SessionHead { session: session.to_owned(), head };
        inner.store.enqueue(vec![write]).await?;
        Ok(stored)
    }

    /// The ended turns of a session, with all messages.
    ///
    /// # Errors
    ///
    /// When there is no such session, or the store cannot be read.
    pub async fn past(&self, session: &str) -> Result<Past, ServiceError> {
        let store = &self.0.store;
        Ok(past(store, store.session(session).await?).await?)
    }

    /// The caller who began a session, as in the audit log; `None` = unknown.
    ///
    /// # Errors
    ///
    /// When the session is missing, or the store cannot be read.
    pub async fn began(&self, session: &str) -> Result<Option<String>, ServiceError> {
        let store = &self.0.store;
        let rows = store.messages(&store.session(session).await?.id).await?;
        let begun = rows.first().map(|row| PersonMetadata::deserialize(&row.metadata));
        Ok(begun.and_then(Result::ok).and_then(|begun| begun.actor))
    }

    fn check_model(&self, model: &str) -> Result<(), ServiceError> {
        if model.is_empty() {
            return Ok(());
        }
        let found = self.0.host().models.resolve(model, None);
        found.map(drop).map_err(|error| ServiceError::Invalid(error.to_string()))
    }
}
