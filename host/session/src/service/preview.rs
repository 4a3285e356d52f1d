//! What a model would be sent, without sending it.

use std::sync::Arc;

use belljar_policy::LimitsRequest;

use super::Service;
use super::begin::DEFAULT_AGENT;
use super::types::{Preview, PreviewRequest, ServiceError};
use crate::outcome::RunError;
use crate::run::preview;

impl Service {
    /// Exactly what the model would be sent first, if this were said. Nothing is saved and
    /// nothing runs.
    pub async fn preview(&self, request: PreviewRequest) -> Result<Preview, ServiceError> {
        let inner = &self.0;
        let past = match &request.session {
            Some(id) => Some(inner.look(inner.store.session(id).await?).await?),
            None => None,
        };
        let name = past.as_ref().map(|past| past.session.agent.as_str());
        let name = name.or(request.agent.as_deref()).unwrap_or(DEFAULT_AGENT);
        let agent = inner.agent(name).await?;
        let (model, limits) = (request.model, LimitsRequest::default());
        let conversation = inner.conversation(agent, model, limits, past.as_ref()).await?;
        let mut spec = conversation.spec(request.text);
        spec.history = conversation.messages().to_vec();
        let made = preview(&inner.host, spec).await;
        made.map_err(|error| match error {
            RunError::Setup { message, hint } => ServiceError::Agent { message, hint },
            other => ServiceError::Agent { message: other.to_string(), hint: None },
        })
    }
}

impl super::Inner {
    /// What is known of a session, without holding it.
    async fn look(
        self: &Arc<Self>,
        session: belljar_store::StoredSession,
    ) -> Result<crate::rows::Past, ServiceError> {
        let messages = self.store.messages(&session.id).await?;
        let subagents = self.store.subagents(&session.id).await?;
        Ok(crate::rows::past(&self.store, session, messages, &subagents)?)
    }
}
