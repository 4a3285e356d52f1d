//! Agents edited through the service: rows of the store, shown as a separate library elsewhere.

use std::sync::Arc;

use super::ServiceInner;
use super::begin::REFRESH;
use super::types::ServiceError;
use crate::record::api_agents::api_agents;
use belljar_agent::Host;
use belljar_work::StopSignal;

impl ServiceInner {
    /// Adds the stored agents to the library of a version.
    pub(super) async fn bring_agents(&self, host: &Host) -> Result<(), ServiceError> {
        let sources = api_agents(&self.store).await?;
        let library = Arc::clone(&host.library);
        // Run on a thread, because directories are read. On an error the library does not change.
        let owner = self.work_owner("turns");
        let look = move |stop: &StopSignal| library.besides_until(sources, stop);
        let work = belljar_work::run_job(&REFRESH, &owner, look);
        let _ = work.await;
        Ok(())
    }
}
