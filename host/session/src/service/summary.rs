//! A summary of a session's turns, on a person's request.

use belljar_agent::CancellationToken;
use belljar_agent::events::EventSink;
use belljar_policy::LimitsRequest;

use super::Service;
use super::begin::WaitMode;
use super::running::ClaimPurpose;
use super::types::ServiceError;
use crate::conversation::compaction::CompactProblem;
use crate::record::rows::HistoryMode;

impl Service {
    /// Replaces all turns of a session by a summary, whatever their size, and returns their number; the store
    /// keeps the turns. No turn begins in the session meanwhile. The usage counts against the tenant's
    /// limits.
    ///
    /// # Errors
    ///
    /// When a turn runs or waits to be resumed, when the session has no turn to summarise, or when the model
    /// returns no summary.
    pub async fn compact_session(
        &self,
        session: &str,
        cancel: CancellationToken,
    ) -> Result<usize, ServiceError> {
        let inner = &self.0;
        inner.check_not_draining()?;
        let known = inner.store.read_session(session).await?;
        let claim = inner.claim_session(session, ClaimPurpose::Review).await?;
        let admitted = inner.admit_turn(&known.agent, WaitMode::InLine).await?;
        let (mut saved, past) = inner.open_session(session.to_owned(), Some(known)).await?;
        if past.as_ref().is_some_and(|past| past.unfinished.is_some()) {
            return Err(ServiceError::Busy(session.to_owned()));
        }
        let (agent, limits) = (std::sync::Arc::clone(&admitted.found), LimitsRequest::default());
        let past = past.as_ref();
        let history = HistoryMode::Compacted;
        let mut conversation = inner.new_conversation(agent, None, limits, history, past).await?;
        let (host, events) = (&admitted.host, EventSink::none());
        let done = saved.compact_history(&mut conversation, host, events, cancel).await;
        // Dropped before the return, so that a caller who waits for the result finds the session free.
        drop((saved, claim));
        done.map_err(|problem| match problem {
            CompactProblem::Store(error) => error.into(),
            problem => ServiceError::Invalid(problem.to_string()),
        })
    }
}
