//! Server-sent events: the frames, and a response body that is made of them as they arrive.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use belljar_store::SessionEvent;
use bytes::Bytes;
use futures::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::app::HandlerContext;
use crate::http::outward::{PlaceHider, PublicText};

/// The most frames that wait for a reader. A slow reader delays only these: later events stay in the store.
const MAX_WAITING: usize = 16;

/// The most bytes of waiting frames. A larger frame waits alone.
const MAX_WAITING_BYTES: u32 = 64 << 10;

/// The interval in which an idle stream sends a comment, so no proxy closes it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The comment that an idle stream sends.
const ALIVE: &[u8] = b": alive\n\n";

/// The sending end of a stream of frames.
#[derive(Debug)]
pub(crate) struct FrameSender {
    sender: mpsc::Sender<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
    outward: Arc<PlaceHider>,
}

impl FrameSender {
    /// Makes a stream, and the response whose body sends the frames. Dropping the `FrameSender` ends the
    /// body.
    pub(crate) fn new(outward: &Arc<PlaceHider>) -> (Self, Response) {
        let (sender, mut frames) = mpsc::channel::<(Bytes, OwnedSemaphorePermit)>(MAX_WAITING);
        // The frame that is being sent counts as waiting too, until the next one is requested.
        let mut sending = None;
        let body = Body::from_stream(stream::poll_fn(move |cx| {
            drop(sending.take());
            frames.poll_recv(cx).map(|frame| {
                let (bytes, room) = frame?;
                sending = Some(room);
                Some(Ok::<_, Infallible>(bytes))
            })
        }));
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        // A proxy that collects an answer before it sends it on would hold back a stream for ever.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        let room = Arc::new(Semaphore::new(usize::try_from(MAX_WAITING_BYTES).unwrap_or(0)));
        (Self { sender, room, outward: Arc::clone(outward) }, response)
    }

    /// Sends an event; returns false if the client has disconnected. Waits for a slow client.
    pub(crate) async fn send_event(&self, id: Option<i64>, kind: &str, json: String) -> bool {
        self.send_frame(encode_event(id, kind, &self.outward.hide_in_json(json))).await
    }

    /// Sends a session's event unchanged; `false` = the client has disconnected.
    pub(crate) async fn forward_event(&self, event: &SessionEvent) -> bool {
        self.send_event(Some(event.id), &event.kind, event.json.to_string()).await
    }

    /// Sends data alone, or with the event name from the JSON.
    pub(crate) async fn send_data(&self, kind: Option<&str>, json: String) -> bool {
        let said = self.outward.hide_in_json(json);
        let data = said.as_str().replace(['\n', '\r'], " ");
        let kind = kind.map_or_else(String::new, |kind| format!("event: {kind}\n"));
        self.send_frame(format!("{kind}data: {data}\n\n").into()).await
    }

    /// Sends `[DONE]`, with which streams of OpenAI's chat completions end.
    pub(crate) async fn send_done(&self) -> bool {
        self.send_frame(Bytes::from_static(b"data: [DONE]\n\n")).await
    }

    /// Sends a comment so that no proxy closes the stream; returns false if the client has disconnected.
    pub(crate) async fn keep_alive(&self) -> bool {
        self.send_frame(Bytes::from_static(ALIVE)).await
    }

    /// Sends a frame when there is room for its bytes; returns false if the client has disconnected.
    async fn send_frame(&self, frame: Bytes) -> bool {
        let bytes = u32::try_from(frame.len()).unwrap_or(u32::MAX).min(MAX_WAITING_BYTES);
        let room = tokio::select! {
            () = self.sender.closed() => return false,
            room = Arc::clone(&self.room).acquire_many_owned(bytes) => room,
        };
        match room {
            Ok(room) => self.sender.send((frame, room)).await.is_ok(),
            // The semaphore is never closed, so this is no error in practice.
            Err(_) => false,
        }
    }

    /// Returns whether the client has disconnected.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until the client has disconnected.
    pub(crate) async fn wait_until_closed(&self) {
        self.sender.closed().await;
    }
}

/// The two timers of a stream: for keep-alive comments and for checks of the caller's key.
#[derive(Debug)]
pub(crate) struct StreamClock {
    words: Interval,
    looks: Interval,
}

/// The action whose timer is due.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DueAction {
    /// Send a comment, so no proxy closes the stream.
    Word,
    /// Check whether the caller's key is still valid.
    Look,
}

impl StreamClock {
    /// Timers that start now.
    pub(crate) fn new(ctx: &HandlerContext) -> Self {
        let every = |period| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        Self { words: every(KEEP_ALIVE), looks: every(ctx.app.config().key_check) }
    }

    /// Waits until one of the two actions is due.
    pub(crate) async fn wait_for_due(&mut self) -> DueAction {
        tokio::select! {
            _ = self.words.tick() => DueAction::Word,
            _ = self.looks.tick() => DueAction::Look,
        }
    }
}

impl DueAction {
    /// Performs the action. Returns false if the stream must end: the client has disconnected, or its key is
    /// no longer valid (INV-88).
    pub(crate) async fn is_met(self, ctx: &HandlerContext, frames: &FrameSender) -> bool {
        match self {
            Self::Word => frames.keep_alive().await,
            Self::Look => ctx.app.gatekeeper().is_admitted(&ctx.caller).await,
        }
    }
}

/// The text of a server-sent event.
fn encode_event(id: Option<i64>, kind: &str, json: &PublicText) -> Bytes {
    let json = json.as_str();
    let mut text = String::with_capacity(json.len() + kind.len() + 48);
    if let Some(id) = id {
        text.push_str(&format!("id: {id}\n"));
    }
    text.push_str("event: ");
    // A line break in the name would begin another field.
    text.extend(kind.chars().filter(|c| !c.is_control()));
    text.push('\n');
    for line in json.split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_id_kind_and_data() {
        let said = |json: &str| PlaceHider::default().hide_in_json(json.to_owned());
        assert_eq!(
            encode_event(Some(7), "todos", &said("{}")),
            "id: 7\nevent: todos\ndata: {}\n\n"
        );
        assert_eq!(encode_event(None, "done", &said("{}")), "event: done\ndata: {}\n\n");
    }

    #[test]
    fn a_line_break_begins_no_field_of_its_own() {
        let said = PlaceHider::default().hide_in_json("x\r\nid: 2".to_owned());
        let text = encode_event(None, "a\nid: 1", &said);
        let text = std::str::from_utf8(&text).unwrap();
        assert!(text.lines().all(|line| !line.starts_with("id:")), "{text}");
    }
}
