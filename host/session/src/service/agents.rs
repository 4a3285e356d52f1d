//! Brings the agents that were edited through the service into the library: they are rows of the store.

use std::sync::Arc;

use super::ServiceInner;
use super::begin::REFRESH;
use super::types::ServiceError;
use crate::record::api_agents::api_agents;
use belljar_agent::Host;
use belljar_work::StopSignal;

impl ServiceInner {
    /// Adds the stored agents to the library of a version of the settings.
    pub(super) async fn bring_agents(&self, host: &Host) -> Result<(), ServiceError> {
        let sources = api_agents(&self.store).await?;
        let library = Arc::clone(&host.library);
        // Directories are read on a separate thread. On an error the library stays as it was.
        let owner = self.work_owner("turns");
        let look = move |stop: &StopSignal| library.besides_until(sources, stop);
        let work = belljar_work::run_job(&REFRESH, &owner, look);
        let _ = work.await;
        Ok(())
    }
}
