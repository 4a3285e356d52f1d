//! Resuming interrupted turns.

use std::sync::Arc;

use belljar_agent::Staying;
use belljar_store::StoredTurn;
use serde::Deserialize;

use super::begin::{Waits, Work};
use super::running::{Claim, Purpose, Running, RunningTurn};
use super::types::ServiceError;
use super::{Inner, Service};
use crate::record::rows::PersonMetadata;

impl Service {
    /// Resumes every interrupted turn of this tenant, each in a new task once there is room. Returns their
    /// number. Runs of the command line are left to the person who started them. A turn that cannot be
    /// resumed, for example because its agent was deleted, is marked as interrupted.
    pub async fn recover(&self) -> Result<usize, ServiceError> {
        let mut left = self.0.store.in_flight().await?;
        left.retain(|turn| !turn.session.kind.is_run());
        let count = left.len();
        for turn in left {
            // Claimed now, so that no other turn begins in the session until this turn has ended.
            let claim = Running::claim(&self.0, &turn.session.id, self.0.now(), Purpose::Turn);
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
    pub async fn resume(&self, session: &str) -> Result<bool, ServiceError> {
        let (claim, left) = self.0.interrupted(session).await?;
        Ok(left.map(|turn| self.0.resume_aside(claim, turn)).is_some())
    }

    /// Like [`Service::resume`], and returns the running turn; `None` = no turn to resume.
    ///
    /// # Errors
    ///
    /// As [`Service::resume`], and when the turn cannot be resumed.
    pub async fn resumed(&self, session: &str) -> Result<Option<RunningTurn>, ServiceError> {
        match self.0.interrupted(session).await? {
            (claim, Some(turn)) => self.0.resume(claim, turn).await,
            (_, None) => Ok(None),
        }
    }
}

impl Inner {
    /// The interrupted turn of a session, with a claim on the session. A run of the command line is left to
    /// its person.
    async fn interrupted(
        self: &Arc<Self>,
        session: &str,
    ) -> Result<(Claim, Option<StoredTurn>), ServiceError> {
        self.check_not_draining()?;
        let claim = self.claim(session, Purpose::Turn).await?;
        // Read under the claim, so that no other turn begins in the session.
        let left = self.store.in_flight().await?;
        let left = left.into_iter().find(|turn| turn.session.id == session);
        Ok((claim, left.filter(|turn| !turn.session.kind.is_run())))
    }

    /// Resumes a turn in a separate task.
    fn resume_aside(self: &Arc<Self>, claim: Claim, left: StoredTurn) {
        let inner = Arc::clone(self);
        self.runtime.spawn(async move {
            let session = left.session.id.clone();
            if let Err(error) = inner.resume(claim, left).await {
                tracing::warn!(
                    target: "belljar::session",
                    %session,
                    "a turn was not resumed: {error}"
                );
            }
        });
    }

    async fn resume(
        self: &Arc<Self>,
        claim: Claim,
        left: StoredTurn,
    ) -> Result<Option<RunningTurn>, ServiceError> {
        let begun = left.asked.as_ref().map(|row| PersonMetadata::deserialize(&row.metadata));
        let begun = begun.and_then(Result::ok).unwrap_or_default();
        let (limits, history) =
            (begun.limits.unwrap_or_default(), begun.history.unwrap_or_default());
        let name = left.session.agent.clone();
        let (mut saved, past) = self.open(String::new(), Some(left.session)).await?;
        let Some(mut past) = past else { return Ok(None) };
        let admitted = match self.admitted(&name, Waits::Surely).await {
            Ok(admitted) => admitted,
            // The turn waits for the next start.
            Err(ServiceError::Draining | ServiceError::HostFull { .. }) => return Ok(None),
            Err(error) => {
                saved.give_up(past).await?;
                return Err(error);
            }
        };
        // None: an older program's, and marked as interrupted already.
        let Some(turn) = past.unfinished.take() else { return Ok(None) };
        let agent = Arc::clone(&admitted.found);
        let conversation = self.conversation(agent, None, limits, history, Some(&past)).await?;
        saved.by(&begun.actor.unwrap_or_default(), None);
        let work = Work::Conversation(Box::new(conversation));
        Ok(Some(self.run(claim, admitted, saved, work, turn, Staying::All)))
    }
}
