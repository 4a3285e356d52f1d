//! An MCP transport that stops reading while too many requests of its client are unanswered.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientNotification, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// The most requests of a client that are in progress or whose answer is unread. INV-298: beyond this number
/// the client's connection is not read, so its cost is bounded and only its own connection is blocked.
const MAX_OPEN: usize = 256;

/// The time after which requests beyond [`MAX_OPEN`] are refused, if all open ones are in use and some
/// wait for a person.
const HELD_UP: Duration = Duration::from_secs(1);

/// The error text for a request beyond [`MAX_OPEN`].
const ALL_WAIT: &str = "as many requests are open as may be, and they wait for a person or an agent: \
                        answer, or cancel one of them";

/// A transport with at most [`MAX_OPEN`] open requests.
pub(super) struct BoundedTransport<T> {
    inner: T,
    open: Arc<OpenRequests>,
    waits: Arc<WaitingRequests>,
    /// An answer of the transport itself that is being sent. No message is read before it is sent.
    telling: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// The moment since which all [`MAX_OPEN`] places have been in use.
    full: Option<Instant>,
}

/// The open requests of a client.
struct OpenRequests {
    places: Semaphore,
    ids: Mutex<HashMap<RequestId, usize>>,
}

/// Counts the requests that wait without a time limit: for a person, an agent, or a change.
#[derive(Default)]
pub(crate) struct WaitingRequests {
    count: AtomicUsize,
    more: Notify,
}

/// Counts a request as waiting until the guard is dropped.
pub(crate) struct WaitingGuard<'a>(&'a WaitingRequests);

impl WaitingRequests {
    pub(crate) fn begin_waiting(&self) -> WaitingGuard<'_> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.more.notify_waiters();
        WaitingGuard(self)
    }

    /// Waits until `time`, and then until at least one request is waiting without a limit.
    async fn waiting_after(&self, time: Instant) {
        loop {
            let more = self.more.notified();
            if self.count.load(Ordering::Relaxed) == 0 {
                more.await;
            } else if Instant::now() < time {
                tokio::time::sleep_until(time).await;
            } else {
                return;
            }
        }
    }
}

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> BoundedTransport<T> {
    pub(super) fn new(inner: T, waits: Arc<WaitingRequests>) -> Self {
        let open = OpenRequests { places: Semaphore::new(MAX_OPEN), ids: Mutex::default() };
        Self { inner, open: Arc::new(open), waits, telling: None, full: None }
    }
}

impl OpenRequests {
    fn add_request(&self, id: &RequestId) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        *ids.entry(id.clone()).or_default() += 1;
    }

    /// Frees the place of a request that was answered or cancelled.
    fn end_request(&self, id: &RequestId) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = ids.get_mut(id) else { return };
        *count -= 1;
        if *count == 0 {
            ids.remove(id);
        }
        self.places.add_permits(1);
    }
}

/// The answer to a request that got no place. A ping needs none and is answered at once.
fn without_place(request: &ClientRequest, id: RequestId) -> ServerJsonRpcMessage {
    match request {
        ClientRequest::PingRequest(_) => JsonRpcMessage::response(ServerResult::empty(()), id),
        _ => JsonRpcMessage::error(ErrorData::internal_error(ALL_WAIT, None), Some(id)),
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for BoundedTransport<T> {
    type Error = T::Error;

    /// Sends a message; if it answers a request, frees that request's place after it was sent.
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
                open.end_request(&id);
            }
            sent
        }
    }

    /// The client's next message. Reads only when a place for a request is free, or when all open requests
    /// have waited for someone; a request beyond the limit is answered here.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(telling) = &mut self.telling {
                telling.await;
                self.telling = None;
            }
            // If this future is dropped before a message arrives, the place is freed.
            let mut place = self.open.places.try_acquire().ok();
            if place.is_none() {
                // While all open requests wait for someone, the messages that could end a wait must
                // still be read: a person's answers, and cancellations.
                let full = *self.full.get_or_insert_with(Instant::now);
                place = tokio::select! {
                    biased;
                    // The semaphore is never closed, so this is no error in practice.
                    place = self.open.places.acquire() => Some(place.ok()?),
                    () = self.waits.waiting_after(full + HELD_UP) => None,
                };
            }
            if place.is_some() {
                self.full = None;
            }
            let message = self.inner.receive().await?;
            let place = place.or_else(|| self.open.places.try_acquire().ok());
            match (&message, place) {
                (JsonRpcMessage::Request(request), Some(place)) => {
                    self.open.add_request(&request.id);
                    place.forget();
                }
                (JsonRpcMessage::Request(request), None) => {
                    let answer = without_place(&request.request, request.id.clone());
                    let telling = self.inner.send(answer);
                    // An error means: the client has disconnected, which the next read reports.
                    self.telling = Some(Box::pin(async move { drop(telling.await) }));
                    continue;
                }
                (JsonRpcMessage::Notification(said), _) => {
                    if let ClientNotification::CancelledNotification(cancelled) = &said.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.open.end_request(id);
                    }
                }
                (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_), _) => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
