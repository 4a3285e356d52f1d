//! Carries the messages of one session: over HTTP, or through the standard streams of a program. Code that
//! uses a transport need not distinguish the two.

use belljar_sandbox::OutgoingGate;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::exchange::{self, ExchangeContext, ExchangeFault, SessionAddress};
use crate::limits::FAREWELL;
use crate::message::{RequestIds, format_notification};
use crate::process::ServerProcess;
use crate::revision::ProtocolRevision;

/// The transport of a session with a server.
#[derive(Debug)]
pub(crate) enum Transport {
    Http(SessionAddress),
    /// Through a program. Dropping it ends the program and its child processes.
    Program(Box<ServerProcess>),
}

impl Transport {
    /// The source of the ids of this connection's requests.
    pub(crate) fn request_ids(&self) -> &RequestIds {
        match self {
            Self::Http(address) => &address.ids,
            Self::Program(process) => &process.ids,
        }
    }

    /// The revision of the protocol that is spoken with the server.
    pub(crate) fn revision(&self) -> ProtocolRevision {
        match self {
            Self::Http(address) => address.revision,
            Self::Program(_) => ProtocolRevision::Sessions,
        }
    }

    /// Returns whether the server keeps any state of the session.
    fn has_session(&self) -> bool {
        match self {
            Self::Http(address) => address.session.is_some(),
            Self::Program(_) => true,
        }
    }

    /// Sends a request, and returns the answer with the given id.
    pub(crate) async fn send_request(
        &mut self,
        gate: &OutgoingGate,
        id: u64,
        request: &Value,
        aside: &mut ExchangeContext<'_>,
    ) -> Result<Value, ExchangeFault> {
        match self {
            Self::Http(address) => exchange::send_request(gate, address, id, request, aside).await,
            Self::Program(process) => process.send_request(gate, id, request, aside).await,
        }
    }

    /// Sends a message that has no answer.
    pub(crate) async fn send_message(
        &mut self,
        gate: &OutgoingGate,
        message: &Value,
    ) -> Result<(), ExchangeFault> {
        match self {
            Self::Http(address) => exchange::send_notification(gate, address, message).await,
            Self::Program(process) => process.write_message(gate, message).await,
        }
    }

    /// Ends a session in which no call is running. A program gets a moment to end by itself.
    pub(crate) async fn end_settled(self, gate: &OutgoingGate) {
        match self {
            Self::Http(address) if address.revision == ProtocolRevision::Sessions => {
                let _ = timeout(FAREWELL, exchange::end_session(gate, &address)).await;
            }
            Self::Http(_) => {}
            Self::Program(process) => process.end_process(false).await,
        }
    }

    /// Ends a session that cannot be used any more. A program is ended, at once or after a moment; a server
    /// over HTTP is not told.
    pub(crate) async fn stop_session(self, at_once: bool) {
        if let Self::Program(process) = self {
            process.end_process(at_once).await;
        }
    }

    /// Tells the server that the running call is cancelled, and ends the session, so a late answer is
    /// dropped. After the end of a program, the call can have no further effect.
    pub(crate) async fn give_up(mut self, gate: &OutgoingGate) {
        if self.revision() == ProtocolRevision::Stateless {
            // A stateless server notices the closed stream.
            return;
        }
        let params =
            json!({"requestId": self.request_ids().last_id(), "reason": "it was cancelled"});
        let cancelled = format_notification("notifications/cancelled", &params);
        let told = timeout(FAREWELL, self.send_message(gate, &cancelled)).await;
        match self {
            // If the server does not accept the notice, no more time is spent on it.
            Self::Http(_) if told.is_err() => {}
            session => session.close_session(gate).await,
        }
    }

    /// Ends a session, if the server keeps any state of it.
    pub(crate) async fn close_session(self, gate: &OutgoingGate) {
        if self.has_session() {
            self.end_settled(gate).await;
        }
    }
}
