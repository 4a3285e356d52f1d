//! Resumes turns that were interrupted by the end of an earlier process.

use std::sync::Arc;

use belljar_agent::TextRetention;
use belljar_store::StoredTurn;
use serde::Deserialize;

use super::begin::{StoredWork, WaitMode};
use super::running::{ClaimPurpose, RunningTurn, RunningTurns, SessionClaim};
use super::types::ServiceError;
use super::{Service, ServiceInner};
use crate::record::rows::PersonMetadata;

impl Service {
    /// Resumes every interrupted turn of this tenant, each in a new task once there is room. Returns their
    /// number. Runs of the command line are left to the person who started them. A turn that cannot be
    /// resumed, for example because its agent was deleted, is marked as interrupted.
    pub async fn recover_turns(&self) -> Result<usize, ServiceError> {
        let mut left = self.0.store.in_flight().await?;
        left.retain(|turn| !turn.session.kind.is_run());
        let count = left.len();
        for turn in left {
            // Claimed before the return, so that no other turn begins in the session until this turn has
            // ended.
            let claim = RunningTurns::claim_session(
                &self.0,
                &turn.session.id,
                self.0.now_millis(),
                ClaimPurpose::Turn,
            );
            let Ok(claim) = claim else { continue };
            self.0.resume_aside(claim, turn);
        }
        Ok(count)
    }

    /// Resumes the interrupted turn of one session, in a new task. `false` = no turn to resume: a turn marked
    /// as interrupted is over.
    ///
    /// # Errors
    ///
    /// When the session runs, when the service accepts no more turns, or when the store cannot be read.
    pub async fn resume_session(&self, session: &str) -> Result<bool, ServiceError> {
        let (claim, left) = self.0.claim_interrupted(session).await?;
        Ok(left.map(|turn| self.0.resume_aside(claim, turn)).is_some())
    }

    /// Like [`Service::resume_session`], and returns the running turn; `None` = no turn to resume.
    ///
    /// # Errors
    ///
    /// As [`Service::resume_session`], and when the turn cannot be resumed.
    pub async fn resume_turn(&self, session: &str) -> Result<Option<RunningTurn>, ServiceError> {
        match self.0.claim_interrupted(session).await? {
            (claim, Some(turn)) => self.0.resume_claimed(claim, turn).await,
            (_, None) => Ok(None),
        }
    }
}

impl ServiceInner {
    /// Claims a session, and finds its interrupted turn. A run of the command line is not returned, because
    /// the person who started it may resume it.
    async fn claim_interrupted(
        self: &Arc<Self>,
        session: &str,
    ) -> Result<(SessionClaim, Option<StoredTurn>), ServiceError> {
        self.check_not_draining()?;
        let claim = self.claim_session(session, ClaimPurpose::Turn).await?;
        // Read after the claim, so that no other turn begins in the session meanwhile.
        let left = self.store.in_flight().await?;
        let left = left.into_iter().find(|turn| turn.session.id == session);
        Ok((claim, left.filter(|turn| !turn.session.kind.is_run())))
    }

    /// Resumes an interrupted turn in a separate task, and logs a failure.
    fn resume_aside(self: &Arc<Self>, claim: SessionClaim, left: StoredTurn) {
        let inner = Arc::clone(self);
        self.runtime.spawn(async move {
            let session = left.session.id.clone();
            if let Err(error) = inner.resume_claimed(claim, left).await {
                tracing::warn!(
                    target: "belljar::session",
                    %session,
                    "a turn was not resumed: {error}"
                );
            }
        });
    }

    /// Resumes the interrupted turn of a claimed session: opens the session, waits for a place, and starts
    /// the turn with the rights in force now. A turn that cannot be resumed is marked as interrupted.
    async fn resume_claimed(
        self: &Arc<Self>,
        claim: SessionClaim,
        left: StoredTurn,
    ) -> Result<Option<RunningTurn>, ServiceError> {
        let begun = left.asked.as_ref().map(|row| PersonMetadata::deserialize(&row.metadata));
        let begun = begun.and_then(Result::ok).unwrap_or_default();
        let (limits, history) =
            (begun.limits.unwrap_or_default(), begun.history.unwrap_or_default());
        let name = left.session.agent.clone();
        let (mut saved, past) = self.open_session(String::new(), Some(left.session)).await?;
        let Some(mut past) = past else { return Ok(None) };
        let admitted = match self.admit_turn(&name, WaitMode::Surely).await {
            Ok(admitted) => admitted,
            // The service ends or is full, so the turn is resumed at the next start.
            Err(ServiceError::Draining | ServiceError::HostFull { .. }) => return Ok(None),
            Err(error) => {
                saved.give_up(past).await?;
                return Err(error);
            }
        };
        // A turn of an older belljar cannot be resumed, and is marked as interrupted already.
        let Some(turn) = past.unfinished.take() else { return Ok(None) };
        let agent = Arc::clone(&admitted.found);
        let conversation = self.new_conversation(agent, None, limits, history, Some(&past)).await?;
        saved.set_actor(&begun.actor.unwrap_or_default(), None);
        let work = StoredWork::Conversation(Box::new(conversation));
        Ok(Some(self.spawn_turn(claim, admitted, saved, work, turn, TextRetention::All)))
    }
}
