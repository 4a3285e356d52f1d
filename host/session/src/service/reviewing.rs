//! Looks at the changes of a session, which write nothing, and decisions about the changes.
//!
//! A look writes nothing, and ends when a turn or a decision needs the session. A decision completes once its
//! writes have begun. Both run on a thread of the tenant's share, with a deadline (`belljar_work`), and end
//! with their caller, their session and the service.

use std::sync::Arc;
use std::time::Duration;

use belljar_work::{StopSignal, WorkError, WorkKind};

use super::running::ClaimPurpose;
use super::types::{LOOK, ServiceError};
use super::{Service, ServiceInner};
use crate::review::{ReviewError, SessionLook, SessionReview};

/// The kind of host work that applies or discards a session's changes.
const DECISION: WorkKind =
    WorkKind { name: "deciding about the changes of a session", time: Duration::from_secs(600) };

/// The kind of host work that reads files of agents, skills and tools for a caller.
const LOOK_UP: WorkKind = WorkKind { name: "looking at files", time: Duration::from_secs(60) };

/// The most time that a deletion waits for a look to end: a look checks its signal many times a second.
const GOES_AWAY: Duration = Duration::from_secs(5);

impl Service {
    /// Reads the changes of a session. INV-411: writes neither the workspace, nor the overlay, nor the
    /// journal of applies. INV-412: ends when this future is dropped, when a turn or a decision needs the
    /// session, when the session is deleted and when the service drains.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Busy`] if a turn runs or began meanwhile, [`ServiceError::Work`] at the deadline, or
    /// the error of `work`.
    pub async fn look_at<T: Send + 'static>(
        &self,
        session: &str,
        work: impl FnOnce(&SessionLook) -> Result<T, ReviewError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let inner = Arc::clone(&self.0);
        let claim = inner.claim_session(session, ClaimPurpose::Look).await?;
        let ended = claim.cancel.clone();
        let job = move |stop: &StopSignal| {
            let session = claim.session_id();
            let layers = inner.tenant_layers().for_session(session);
            let look = SessionLook::open_in(&inner.store, session, layers, stop)?;
            let done = work(&look);
            drop(look);
            drop(claim);
            done
        };
        let owner = self.0.work_owner("looks");
        tokio::select! {
            biased;
            () = ended.cancelled() => Err(self.0.why_ended(session).await),
            () = self.0.draining.cancelled() => Err(ServiceError::Draining),
            done = belljar_work::run_job(&LOOK, &owner, job) => Ok(done??),
        }
    }

    /// Decides about the changes of a session; no turn begins in the session meanwhile. INV-270: `seen` = the
    /// id of the session's last event when the person looked at the changes; if there is a later event,
    /// nothing is done.
    ///
    /// # Errors
    ///
    /// When a turn runs, [`ServiceError::GoneOn`] after a later event, or the error of `work`.
    pub async fn review_changes<T: Send + 'static>(
        &self,
        session: &str,
        seen: Option<i64>,
        work: impl FnOnce(&SessionReview) -> Result<T, ReviewError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let inner = Arc::clone(&self.0);
        let claim = inner.claim_session(session, ClaimPurpose::Review).await?;
        if let Some(seen) = seen
            && inner.store.last_event(session).await? != seen
        {
            return Err(ServiceError::GoneOn(session.to_owned()));
        }
        let ended = claim.cancel.clone();
        let job = move |stop: &StopSignal| {
            let session = claim.session_id();
            let layers = inner.tenant_layers().for_session(session);
            let review = SessionReview::open_in(&inner.store, session, layers, stop)?;
            let done = work(&review);
            drop(review);
            drop(claim);
            done
        };
        let owner = self.0.work_owner("decisions");
        tokio::select! {
            biased;
            () = ended.cancelled() => Err(self.0.why_ended(session).await),
            done = belljar_work::run_job(&DECISION, &owner, job) => Ok(done??),
        }
    }

    /// Reads the tenant's files on a thread of the tenant's share. The signal is raised at the deadline, and
    /// when the returned future is dropped.
    ///
    /// # Errors
    ///
    /// When the deadline has passed, or too many looks wait for a thread.
    pub async fn look_up<T: Send + 'static>(
        &self,
        look: impl FnOnce(&StopSignal) -> T + Send + 'static,
    ) -> Result<T, WorkError> {
        self.0.look_up(look).await
    }

    /// Ends the running look or decision of a session, and waits for its end, up to `GOES_AWAY`.
    pub(super) async fn end_reviews(&self, session: &str) {
        let Some(held) = self.0.running.end_review(session) else { return };
        // A look that ignores its signal keeps its thread; this wait still ends at the limit.
        let _ = tokio::time::timeout(GOES_AWAY, held.wait_for_end()).await;
    }
}

impl ServiceInner {
    /// The owner against whom the threads of one kind of work count. A tenant has a share for each kind, so
    /// that looks at changes use no thread of a decision or a turn.
    pub(crate) fn work_owner(&self, share: &str) -> String {
        format!("{}/{share}", self.store.tenant_id().unwrap_or(self.store.tenant()))
    }

    /// Reads the tenant's files on a thread of the tenant's share for files.
    pub(crate) async fn look_up<T: Send + 'static>(
        &self,
        look: impl FnOnce(&StopSignal) -> T + Send + 'static,
    ) -> Result<T, WorkError> {
        belljar_work::run_job(&LOOK_UP, &self.work_owner("files"), look).await
    }

    /// The error for a look or a decision that was ended from outside: the service drains, or the session was
    /// needed.
    async fn why_ended(&self, session: &str) -> ServiceError {
        if self.draining.is_cancelled() {
            return ServiceError::Draining;
        }
        match self.store.read_session(session).await {
            Ok(_) => ServiceError::Busy(session.to_owned()),
            Err(error) => error.into(),
        }
    }
}

impl From<WorkError> for ServiceError {
    fn from(error: WorkError) -> Self {
        Self::Work(error)
    }
}
