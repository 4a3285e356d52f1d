//! A transport that reads no further while too much waits for an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Semaphore;

/// Requests that are worked on, or whose answers are not taken yet. INV-298: a client that sends more,
/// or reads nothing, is not read from: what it costs is bounded, and it is its own connection that
/// stands still.
const MAX_OPEN: usize = 256;

/// A bounded transport.
pub(super) struct Flow<T> {
    inner: T,
    open: Arc<Open>,
}

/// The requests that are open.
struct Open {
    places: Semaphore,
    ids: Mutex<HashMap<RequestId, usize>>,
}

impl<T> Flow<T> {
    pub(super) fn new(inner: T) -> Self {
        let open = Open { places: Semaphore::new(MAX_OPEN), ids: Mutex::default() };
        Self { inner, open: Arc::new(open) }
    }
}

impl Open {
    fn begin(&self, id: &RequestId) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        *ids.entry(id.clone()).or_default() += 1;
    }

    /// Gives the place of a request back: it is answered, or its client does not want the answer.
    fn end(&self, id: &RequestId) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = ids.get_mut(id) else { return };
        *count -= 1;
        if *count == 0 {
            ids.remove(id);
        }
        self.places.add_permits(1);
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Flow<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(answer) => Some(answer.id.clone()),
            JsonRpcMessage::Error(answer) => answer.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let (sending, open) = (self.inner.send(item), Arc::clone(&self.open));
        async move {
            let sent = sending.await;
            if let Some(id) = answered {
                open.end(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        // It is never closed. Dropped before a message has come, the place comes back.
        let place = self.open.places.acquire().await.ok()?;
        let message = self.inner.receive().await?;
        match &message {
            JsonRpcMessage::Request(request) => {
                self.open.begin(&request.id);
                place.forget();
            }
            JsonRpcMessage::Notification(said) => {
                if let ClientNotification::CancelledNotification(cancelled) = &said.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.end(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
