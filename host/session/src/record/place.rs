//! Where the rows of a turn are stored: the tenant's store, the session and the message.

use std::sync::Arc;

use belljar_agent::{Clock, RunId};
use belljar_store::Store;

/// The session and message of a turn whose rows are stored, with the store and the clock.
pub(crate) struct TurnPlace {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) session: String,
    /// The id of the agent's message.
    pub(crate) message: String,
    pub(crate) run: RunId,
    /// The sender of the turn's message.
    pub(crate) actor: String,
}

impl TurnPlace {
    pub(crate) fn now_millis(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    pub(crate) fn new_id(&self) -> String {
        RunId::new(&*self.clock).into()
    }
}
