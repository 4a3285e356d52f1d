//! The first request to a model, without sending the request.

use std::sync::Arc;

use super::Service;
use super::begin::{DEFAULT_AGENT, check_runnable};
use super::types::{ServiceError, TurnRequest};
use super::versions::LookDepth;
use crate::conversation::compaction;
use crate::record::past::{SessionPast, load_past};
use belljar_agent::{RequestPreview, ResolvedAgent, RunError, preview_request};

/// The note of a preview if a summary would be made first, because its text is not known yet.
const DUE: &str = "the history is too large for the model: before this is sent, the older turns \
would be summarised, and the summary would take their place";

impl Service {
    /// The exact first request to the model for this turn. Stores nothing and runs nothing.
    pub async fn preview_turn(&self, request: TurnRequest) -> Result<RequestPreview, ServiceError> {
        let inner = &self.0;
        self.look_for_changes(LookDepth::IfChanged).await;
        let host = inner.current_host();
        let past = match &request.session {
            Some(id) => Some(load_past(&inner.store, inner.store.read_session(id).await?).await?),
            None => None,
        };
        let name = past.as_ref().map(|past| past.session.agent.as_str());
        let name = name.or(request.agent.as_deref()).unwrap_or(DEFAULT_AGENT);
        let agent = inner.runnable_agent(&host, name).await?;
        self.preview_as(request, agent, past).await
    }

    /// The preview of a request with an agent whose text is not stored yet.
    ///
    /// # Errors
    ///
    /// As for a stored agent; [`ServiceError::Blocked`] if the agent could not run.
    pub async fn preview_of(
        &self,
        request: TurnRequest,
        agent: ResolvedAgent,
    ) -> Result<RequestPreview, ServiceError> {
        check_runnable(&self.0.current_host(), &agent)?;
        self.preview_as(request, Arc::new(agent), None).await
    }

    /// The first request of a turn with this agent, after the session's past.
    async fn preview_as(
        &self,
        request: TurnRequest,
        agent: Arc<ResolvedAgent>,
        past: Option<SessionPast>,
    ) -> Result<RequestPreview, ServiceError> {
        let (inner, host) = (&self.0, self.0.current_host());
        let TurnRequest { model, limits, history, .. } = request;
        let conversation =
            inner.new_conversation(agent, model, limits, history, past.as_ref()).await?;
        let mut spec = conversation.run_spec(request.text);
        spec.history = conversation.messages().to_vec();
        let made = preview_request(&host, spec).await.map(|mut made| {
            if compaction::is_due(&host, &conversation) {
                made.notes.push(DUE.to_owned());
            }
            made
        });
        made.map_err(|error| match error {
            RunError::Setup { message, .. } => ServiceError::Agent(message),
            other => ServiceError::Agent(other.to_string()),
        })
    }
}
