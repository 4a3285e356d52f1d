//! `GET /v1/ws`: turns, events, questions and answers on one connection.
//!
//! One task reads, one writes, and each watched session has a task for its events. All tasks put messages
//! into one bounded outbox and wait while it is full; events that a slow client has not received stay in the
//! store. A client that reads nothing at all is disconnected.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::Response;
use belljar_policy::ShownText;
use belljar_session::EventWatch;
use futures::stream::SplitSink;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::turn::{Answered, ChatBody};
use crate::api::{questions, running};
use crate::app::HandlerContext;
use crate::http::auth::{SUBPROTOCOL, offered_subprotocols};
use crate::http::gate;
use crate::http::in_flight::{InFlight, SOCKET_BYTES, STREAM_BYTES};
use crate::http::meter::SocketMeter;
use crate::http::outward::{PlaceHider, PublicEvent, PublicText};
use crate::http::peers::{ActiveRequest, PeerPlace};
use crate::http::problem::{Problem, ProblemKind};
use crate::routes::{RequiredScope, RouteOp};
use crate::stream::message::{ClientMessage, ServerMessage, SocketRequest};
use crate::stream::pump::BoundedCounter;

/// The subprotocol that a client offers besides `bearer.<key>`, because browsers require the server to choose
/// one of those offered.
const PROTOCOL: &str = "belljar.v1";

/// The name of this API in the audit log.
const WEBSOCKET: &str = "websocket";

/// The most bytes of a message from a client: enough for a long task.
const MAX_MESSAGE: usize = 1 << 20;

/// The bytes of a connection's read buffer. Small, because idle connections have one too.
const READ_BUFFER: usize = 8 << 10;
const WRITE_BUFFER: usize = 8 << 10;

/// The most bytes of events that wait for a client. A larger event waits alone.
const MAX_OUTBOX_BYTES: u32 = 128 << 10;

/// The most messages that wait for a client.
const MAX_OUTBOX: usize = 64;

/// The most sessions that one connection may watch.
const MAX_SUBSCRIPTIONS: usize = 32;

/// The most running turns that one connection may have begun.
const MAX_TURNS: u32 = 16;

/// The most open WebSockets of the whole server.
const MAX_SOCKETS: u32 = 8_192;

/// The most waiting messages that are sent together.
const MAX_BATCH: usize = 16;

/// The time limit of sending one batch of messages.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The interval of pings.
const TICK: Duration = Duration::from_secs(30);

/// The time for which a client may be silent, without even an answer to a ping, before it is disconnected.
const SILENCE: Duration = Duration::from_secs(90);

/// The most characters of an id that a client gives its message.
const MAX_ID: usize = 64;

/// `GET /v1/ws`: checks the caller's limits, and turns the connection into a WebSocket.
pub(crate) async fn upgrade_socket(
    ctx: HandlerContext,
    place: Option<Extension<Arc<PeerPlace>>>,
    meter: Option<Extension<Arc<SocketMeter>>>,
    headers: HeaderMap,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let socket = socket.map_err(|_| {
        Problem::invalid("this path takes WebSockets").with_hint("open it with a WebSocket client")
    })?;
    if !ctx.app.sockets().try_add(MAX_SOCKETS) {
        let detail = "there are as many WebSockets as there may be";
        return Err(Problem::unavailable(detail, Duration::from_secs(10)));
    }
    let flight = ctx.app.byte_bounds().begin_request(&ctx.caller.tenant, ctx.caller.bounded_as());
    if let Err(problem) = flight.try_hold(SOCKET_BYTES) {
        ctx.app.sockets().subtract_one();
        return Err(problem);
    }
    let meter = meter.map_or_else(Arc::default, |Extension(meter)| meter);
    meter.start_counting(flight);
    // The subprotocol with the key is chosen only if the client offered no other, because the answer repeats
    // it.
    let keys = offered_subprotocols(&headers).filter(|offer| offer.starts_with(SUBPROTOCOL));
    let protocols = std::iter::once(PROTOCOL).chain(keys).map(str::to_owned);
    // An open WebSocket counts among the connections of its address.
    let place = SocketSlot(ctx.app.clone(), place.map(|Extension(place)| place.begin_request()));
    Ok(socket
        .protocols(protocols)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .on_upgrade(move |socket| {
            let tasks = ctx.app.tasks().clone();
            tasks.track_future(async move {
                let place = place;
                let _counted = place.0.metrics().sockets.count_one();
                SocketConnection::run_connection(Arc::new(ctx), socket, &meter).await;
                meter.stop_counting();
            })
        }))
}

/// A place among the server's open WebSockets, freed on drop.
struct SocketSlot(crate::app::App, #[expect(dead_code, reason = "dropped")] Option<ActiveRequest>);

impl Drop for SocketSlot {
    fn drop(&mut self) {
        self.0.sockets().subtract_one();
    }
}

/// A thing that is put into the outbox.
enum OutboxItem {
    Text(PublicText),
    /// An event, with its part of the outbox's bytes.
    Event(PublicEvent, OwnedSemaphorePermit),
    Ping,
    /// The closing frame.
    Close(u16, &'static str),
}

/// The state of one client's WebSocket.
struct SocketConnection {
    ctx: Arc<HandlerContext>,
    outbox: mpsc::Sender<OutboxItem>,
    /// Bytes of events that the outbox has room for.
    room: Arc<Semaphore>,
    watched: HashMap<String, WatchedSession>,
    turns: Arc<BoundedCounter>,
    /// Cancelled at the connection's end, so all its tasks end.
    over: CancellationToken,
}

/// A session whose events the connection sends.
struct WatchedSession {
    task: AbortHandle,
    /// The id of the last event that was put into the outbox.
    sent: watch::Receiver<i64>,
}

impl Drop for WatchedSession {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SocketConnection {
    /// Runs a connection to its end: starts the writer, and then handles messages, pings, and checks of the
    /// caller's key.
    async fn run_connection(ctx: Arc<HandlerContext>, socket: WebSocket, meter: &SocketMeter) {
        let (sink, mut incoming) = socket.split();
        let (outbox, inbox) = mpsc::channel(MAX_OUTBOX);
        let over = CancellationToken::new();
        let writer = tokio::spawn(write_outbox(sink, inbox, over.clone()));
        let app = ctx.app.clone();
        let turns = Arc::default();
        let room = Arc::new(Semaphore::new(usize::try_from(MAX_OUTBOX_BYTES).unwrap_or(0)));
        let mut connection =
            Self { ctx, outbox, room, watched: HashMap::new(), turns, over: over.clone() };
        let mut ticks = tokio::time::interval_at(Instant::now() + TICK, TICK);
        let period = app.config().key_check;
        let mut looks = tokio::time::interval_at(Instant::now() + period, period);
        let mut heard = Instant::now();
        loop {
            let last_word = tokio::select! {
                () = over.cancelled() => break,
                () = app.stopped_token().cancelled() => Some((close_code::AWAY, "the server stops")),
                message = incoming.next() => {
                    heard = Instant::now();
                    // A ping may arrive between the pieces of a message, so only text and binary end a
                    // message.
                    if matches!(message, Some(Ok(Message::Text(_) | Message::Binary(_)))) {
                        meter.end_message();
                    }
                    match message {
                        Some(Ok(Message::Text(text))) => connection.handle_message(&text).await,
                        Some(Ok(Message::Binary(_))) => {
                            Some((close_code::UNSUPPORTED, "text frames only"))
                        }
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => None,
                        Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                    }
                }
                _ = ticks.tick() => {
                    if heard.elapsed() > SILENCE {
                        break;
                    }
                    // If the outbox is full no ping is needed, because its messages test the client already.
                    let _ = connection.outbox.try_send(OutboxItem::Ping);
                    None
                }
                _ = looks.tick() => connection.check_admission().await,
            };
            if let Some((code, why)) = last_word {
                // If the outbox stays full, the writer's time limit ends the connection.
                let _ = connection.outbox.send(OutboxItem::Close(code, why)).await;
                break;
            }
        }
        // The connection's tasks drop their ends of the outbox, so the writer ends.
        connection.watched.clear();
        drop(connection);
        let _ = tokio::time::timeout(WRITE_TIMEOUT, writer).await;
        over.cancel();
    }

    /// Checks whether the caller's key is still valid; returns the closing frame if it is not.
    async fn check_admission(&self) -> Option<(u16, &'static str)> {
        if self.ctx.app.gatekeeper().was_long(&self.ctx.caller) {
            return Some((close_code::AWAY, "open for as long as one may be; connect again"));
        }
        if !self.ctx.app.gatekeeper().is_admitted(&self.ctx.caller).await {
            return Some((close_code::POLICY, "the key is no longer valid"));
        }
        None
    }

    /// Handles a client's message; returns the closing frame if the connection must end.
    async fn handle_message(&mut self, text: &str) -> Option<(u16, &'static str)> {
        let (id, wish) = match belljar_received::json::from_str_with_wholes::<ClientMessage>(text) {
            Ok(message) => message.into_parts(),
            Err(error) => {
                let why = error.to_string();
                let why = ShownText::clip_line(&why, 300);
                let problem = Problem::invalid(format!("the message does not fit: {why}"));
                self.send_message(&ServerMessage::from_problem(None, &problem)).await;
                return None;
            }
        };
        let fits = |id: &String| id.chars().count() <= MAX_ID;
        let id = id.filter(fits);
        if let Err(problem) = self.handle_request(id.clone(), wish).await {
            if problem.kind() == ProblemKind::NoKey {
                return Some((close_code::POLICY, "the key is no longer valid"));
            }
            self.send_message(&ServerMessage::from_problem(id, &problem)).await;
        }
        None
    }

    /// Performs a client's request, and sends the reply to it.
    async fn handle_request(
        &mut self,
        id: Option<String>,
        wish: SocketRequest,
    ) -> Result<(), Problem> {
        let op = wish.route_op();
        self.check_rights(op).await?;
        let said = match wish {
            SocketRequest::Subscribe { session, after } => {
                self.subscribe_session(&session, after).await?;
                ServerMessage::Subscribed { id, session }
            }
            SocketRequest::Unsubscribe { session } => {
                self.watched.remove(&session);
                ServerMessage::Unsubscribed { id, session }
            }
            SocketRequest::Chat(body) => return self.begin_chat(id, body).await,
            SocketRequest::Cancel { session, body } => {
                let session = self.ctx.find_session(&session).await?.id;
                let ended = running::end_turn(&self.ctx, &session, body)?;
                // INV-413: a cancellation that changed nothing gets no line in the audit log.
                if ended.is_first() {
                    self.record_audit(RouteOp::Cancel, format!("session {session}")).await;
                }
                ServerMessage::Cancelled { id, session, cancelled: ended.was_there() }
            }
            SocketRequest::Answer { session, question, body } => {
                let session = self.ctx.find_session(&session).await?.id;
                questions::submit_answer(&self.ctx, &session, question, body)?;
                self.record_audit(
                    RouteOp::Answer,
                    format!("session {session} question {question}"),
                )
                .await;
                ServerMessage::Answered { id, session, question }
            }
            SocketRequest::Ping => ServerMessage::Pong { id },
        };
        self.send_message(&said).await;
        Ok(())
    }

    /// Checks the caller's rate, key and scope, as for a separate HTTP request.
    async fn check_rights(&self, op: Option<RouteOp>) -> Result<(), Problem> {
        let HandlerContext { app, caller, .. } = &*self.ctx;
        gate::spend_request(app, caller)?;
        let Some(op) = op else { return Ok(()) };
        let needs = op.required_scope();
        if needs > RequiredScope::ReadOnly && !app.gatekeeper().still_admits(caller).await {
            return Err(Problem::new(ProblemKind::NoKey, "the key is no longer valid"));
        }
        if !caller.has_scope(needs) {
            let object = format!("WebSocket {}", op.name());
            app.record_refusal(caller.proven_name(), &object, ProblemKind::Scope).await;
            return Err(gate::out_of_scope(caller, needs));
        }
        Ok(())
    }

    async fn record_audit(&self, op: RouteOp, object: String) {
        let HandlerContext { app, caller, .. } = &*self.ctx;
        let detail = json!({ "by": WEBSOCKET });
        app.audit_caller(caller, op.name(), object, detail).await;
    }

    /// Starts to send the events of a session, from the event `after` on.
    async fn subscribe_session(
        &mut self,
        session: &str,
        after: Option<i64>,
    ) -> Result<(), Problem> {
        if after.is_some_and(|after| after < 0) {
            return Err(Problem::invalid("`after` is below 0"));
        }
        let session = self.ctx.find_session(session).await?.id;
        if self.is_watched(&session) {
            return Err(Problem::invalid("this connection watches that session already"));
        }
        self.make_room()?;
        let flight = self.stream_flight()?;
        let watch = self.ctx.service.watch_session(&session, after).await?;
        self.forward_events(session, watch, flight);
        Ok(())
    }

    /// Begins a turn, sends its events if the session is not watched yet, and its result at the end.
    async fn begin_chat(&mut self, id: Option<String>, body: ChatBody) -> Result<(), Problem> {
        let request = body.into_request(&self.ctx.caller, WEBSOCKET)?;
        if let Some(session) = &request.session {
            self.ctx.find_session(session).await?;
        }
        self.make_room()?;
        let flight = self.stream_flight()?;
        if !self.turns.try_add(MAX_TURNS) {
            let detail = "as many turns of this connection run as may";
            return Err(Problem::too_many(detail, Duration::from_secs(1)));
        }
        let turns = TurnOf(Arc::clone(&self.turns));
        let turn = self.ctx.service.begin_turn(request).await?;
        let (session, message) = (turn.session.clone(), turn.message.clone());
        self.send_message(&ServerMessage::Accepted { id: id.clone(), session, message }).await;
        if !self.is_watched(&turn.session) {
            self.forward_events(turn.session.clone(), turn.watch_events(), flight);
        }
        let sent = self.watched.get(&turn.session).map(|watched| watched.sent.clone());
        let (ctx, outbox) = (Arc::clone(&self.ctx), self.outbox.downgrade());
        let over = self.over.clone();
        tokio::spawn(async move {
            let turns = turns;
            let done = over.run_until_cancelled(async {
                turn.wait_for_end().await;
                let last = ctx.store().last_event(&turn.session).await.unwrap_or(0);
                if let Some(mut sent) = sent {
                    // If the subscription ends meanwhile, the waiting ends too.
                    let _ = sent.wait_for(|sent| *sent >= last).await;
                }
                match Answered::from_turn(&turn, ctx.store()).await {
                    Ok(answered) => ServerMessage::Done { id, answered },
                    Err(problem) => ServerMessage::from_problem(id, &problem),
                }
            });
            let Some(done) = done.await else { return };
            drop(turns);
            if let Some(outbox) = outbox.upgrade() {
                send_to_outbox(&outbox, ctx.app.place_hider(), &done).await;
            }
        });
        Ok(())
    }

    /// Starts a task that puts the events of a watch into the outbox.
    fn forward_events(&mut self, session: String, mut events: EventWatch, flight: InFlight) {
        let (sender, sent) = watch::channel(0);
        let (outbox, room) = (self.outbox.clone(), Arc::clone(&self.room));
        let outward = Arc::clone(self.ctx.app.place_hider());
        let name = session.clone();
        let task = tokio::spawn(async move {
            let _flight = flight;
            let ended = ServerMessage::Unsubscribed { id: None, session: name };
            while let Some(event) = events.next_event().await {
                let text = outward.hide_in_event(&event.json);
                let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX).min(MAX_OUTBOX_BYTES);
                // The semaphore is never closed, so this is no error in practice.
                let Ok(room) = Arc::clone(&room).acquire_many_owned(bytes).await else { return };
                if outbox.send(OutboxItem::Event(text, room)).await.is_err() {
                    return;
                }
                sender.send_replace(event.id);
            }
            send_to_outbox(&outbox, &outward, &ended).await;
        });
        self.watched.insert(session, WatchedSession { task: task.abort_handle(), sent });
    }

    /// Reserves the bytes for the events of one more watched session.
    fn stream_flight(&self) -> Result<InFlight, Problem> {
        let caller = &self.ctx.caller;
        let flight = self.ctx.app.byte_bounds().begin_request(&caller.tenant, caller.bounded_as());
        flight.try_hold(STREAM_BYTES)?;
        Ok(flight)
    }

    fn is_watched(&self, session: &str) -> bool {
        self.watched.get(session).is_some_and(|watched| !watched.task.is_finished())
    }

    /// Returns a problem if the connection watches as many sessions as it may.
    fn make_room(&mut self) -> Result<(), Problem> {
        self.watched.retain(|_, watched| !watched.task.is_finished());
        if self.watched.len() < MAX_SUBSCRIPTIONS {
            return Ok(());
        }
        let detail = format!("a connection watches at most {MAX_SUBSCRIPTIONS} sessions");
        Err(Problem::invalid(detail).with_hint("unsubscribe from one, or open another connection"))
    }

    async fn send_message(&self, message: &ServerMessage) {
        send_to_outbox(&self.outbox, self.ctx.app.place_hider(), message).await;
    }
}

/// Counts a turn among those that the connection began, until dropped.
struct TurnOf(Arc<BoundedCounter>);

impl Drop for TurnOf {
    fn drop(&mut self) {
        self.0.subtract_one();
    }
}

/// Puts a message into the outbox, with host paths masked.
async fn send_to_outbox(
    outbox: &mpsc::Sender<OutboxItem>,
    outward: &PlaceHider,
    message: &ServerMessage,
) {
    match serde_json::to_string(message) {
        // An error means: the connection has ended.
        Ok(text) => drop(outbox.send(OutboxItem::Text(outward.hide_in_json(text))).await),
        Err(error) => tracing::error!(%error, "a message cannot be written as JSON"),
    }
}

/// Sends the messages of the outbox until the closing frame, or until the client stops reading.
async fn write_outbox(
    mut sink: SplitSink<WebSocket, Message>,
    mut inbox: mpsc::Receiver<OutboxItem>,
    over: CancellationToken,
) {
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while inbox.recv_many(&mut batch, MAX_BATCH).await > 0 {
        match tokio::time::timeout(WRITE_TIMEOUT, send_all(&mut sink, &mut batch)).await {
            Ok(Ok(true)) => {}
            Ok(_) | Err(_) => break,
        }
    }
    over.cancel();
}

/// Sends a batch of messages from the outbox; returns false if it contained the closing frame.
async fn send_all(
    sink: &mut SplitSink<WebSocket, Message>,
    batch: &mut Vec<OutboxItem>,
) -> Result<bool, axum::Error> {
    // The permits of the events' bytes, returned after the whole batch was sent.
    let mut rooms = Vec::new();
    let mut goes_on = true;
    for out in batch.drain(..) {
        let message = match out {
            OutboxItem::Text(text) => Message::Text(text.into_string().into()),
            OutboxItem::Event(text, room) => {
                rooms.push(room);
                Message::Text(text.into_text())
            }
            OutboxItem::Ping => Message::Ping(bytes::Bytes::new()),
            OutboxItem::Close(code, reason) => {
                goes_on = false;
                let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
                Message::Close(Some(frame))
            }
        };
        sink.feed(message).await?;
        if !goes_on {
            break;
        }
    }
    sink.flush().await?;
    Ok(goes_on)
}
