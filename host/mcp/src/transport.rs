//! The way of the messages of one session: over HTTP, or through the streams of a program. Whatever stands
//! above is the same for both.

use belljar_sandbox::Outgoing;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::exchange::{self, Address, Aside, Fault};
use crate::limits::FAREWELL;
use crate::message::{Ids, notification};
use crate::process::Process;
use crate::revision::Revision;

/// A session with a server.
#[derive(Debug)]
pub(crate) enum Transport {
    Http(Address),
    /// Dropping the process ends the program and its descendants.
    Program(Box<Process>),
}

impl Transport {
    pub(crate) fn ids(&self) -> &Ids {
        match self {
            Self::Http(address) => &address.ids,
            Self::Program(process) => &process.ids,
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        match self {
            Self::Http(address) => address.revision,
            Self::Program(_) => Revision::Sessions,
        }
    }

    /// Whether the server holds anything of the session.
    fn has_session(&self) -> bool {
        match self {
            Self::Http(address) => address.session.is_some(),
            Self::Program(_) => true,
        }
    }

    /// Sends the request with this id, and returns the answer.
    pub(crate) async fn ask(
        &mut self,
        gate: &Outgoing,
        id: u64,
        request: &Value,
        aside: &mut Aside<'_>,
    ) -> Result<Value, Fault> {
        match self {
            Self::Http(address) => exchange::ask(gate, address, id, request, aside).await,
            Self::Program(process) => process.ask(gate, id, request, aside).await,
        }
    }

    /// Sends a message without an answer.
    pub(crate) async fn tell(&mut self, gate: &Outgoing, message: &Value) -> Result<(), Fault> {
        match self {
            Self::Http(address) => exchange::tell(gate, address, message).await,
            Self::Program(process) => process.tell(gate, message).await,
        }
    }

    /// Ends a session that has settled. A program has a moment to end by itself.
    pub(crate) async fn leave(self, gate: &Outgoing) {
        match self {
            Self::Http(address) if address.revision == Revision::Sessions => {
                let _ = timeout(FAREWELL, exchange::leave(gate, &address)).await;
            }
            Self::Http(_) => {}
            Self::Program(process) => process.end(false).await,
        }
    }

    /// Ends a session that is of no use any more: a process at once or after a moment. A server over HTTP is
    /// not told.
    pub(crate) async fn stop(self, at_once: bool) {
        if let Self::Program(process) = self {
            process.end(at_once).await;
        }
    }

    /// Notifies the server that its call has ended, then ends the session: a late answer is dropped, and no
    /// effect of the call comes after the end of a process.
    pub(crate) async fn give_up(mut self, gate: &Outgoing) {
        if self.revision() == Revision::Stateless {
            // The closed stream is notice enough.
            return;
        }
        let params = json!({"requestId": self.ids().last(), "reason": "it was cancelled"});
        let cancelled = notification("notifications/cancelled", &params);
        let told = timeout(FAREWELL, self.tell(gate, &cancelled)).await;
        match self {
            // No more time is lost to a server that does not take the notice.
            Self::Http(_) if told.is_err() => {}
            session => session.close(gate).await,
        }
    }

    /// Ends a session, if the server holds anything of it.
    pub(crate) async fn close(self, gate: &Outgoing) {
        if self.has_session() {
            self.leave(gate).await;
        }
    }
}
