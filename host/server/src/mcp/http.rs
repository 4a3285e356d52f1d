//! The HTTP route `/mcp`, with the same checks of names, keys and rates as every other route.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use super::door::McpGuest;
use super::forms;
use crate::app::HandlerContext;
use crate::http::outward::PlaceHider;
use crate::http::problem::Problem;
use crate::http::respond;

/// The header with the protocol revision of a session, which every request except the first contains.
const VERSION: &str = "mcp-protocol-version";

/// The first revision in which a client accepts an event without data. Revisions are dates, so they can
/// be compared as text.
const FIRST_PRIMED: &str = "2025-11-25";

/// `POST`, `GET` and `DELETE /mcp`: answers a message, opens a stream, or ends a session.
pub(crate) async fn answer_request(ctx: HandlerContext, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let primed = takes_priming(&parts.headers);
    // INV-115: the body's bytes count as held before the library gets them.
    let body = match parts.method {
        Method::POST => {
            let mut read = Request::new(body);
            *read.headers_mut() = parts.headers.clone();
            *read.extensions_mut() = parts.extensions.clone();
            match respond::json_bytes(read).await {
                Ok(bytes) if bytes.trim_ascii_start().starts_with(b"[") => {
                    let problem = Problem::invalid("the body is a batch of messages");
                    return problem
                        .with_hint("send each message in a request of its own")
                        .into_response();
                }
                Ok(bytes) => match forms::with_object(&bytes) {
                    Some(mended) => Body::from(mended),
                    None => Body::from(bytes),
                },
                Err(problem) => return problem.into_response(),
            }
        }
        _ => Body::empty(),
    };
    let guest = McpGuest {
        service: ctx.service.clone(),
        tenant: Arc::clone(&ctx.caller.tenant_id),
        actor: Arc::clone(&ctx.caller.actor),
    };
    let answered = match ctx.app.mcp_door() {
        Ok(door) => door.answer_guest(guest, Request::from_parts(parts, body)).await,
        Err(problem) => Err(problem),
    };
    let response = match answered {
        Ok(response) => response,
        Err(problem) => return problem.into_response(),
    };
    let outward = Arc::clone(ctx.app.place_hider());
    let over = while_admitted(ctx);
    response
        .map(|body| Body::new(HiddenBody { body, outward, line: BytesMut::new(), over, primed }))
}

/// Returns whether a client accepts an event with an empty `data` line. The library sends such an event
/// before every answer, so a lost stream can be resumed. Revision 2025-11-25 introduced it; clients of
/// earlier revisions parse the data as JSON and disconnect. A request without the version header is of an
/// earlier revision, or begins a session.
fn takes_priming(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|version| version.to_str().ok());
    version.is_some_and(|version| version >= FIRST_PRIMED)
}

/// INV-297: a future that ends when the caller's key is no longer valid; it is dropped with the
/// response body.
fn while_admitted(ctx: HandlerContext) -> EarlyEnd {
    let (over, dropped) = (CancellationToken::new(), CancellationToken::new());
    let (ends, gone) = (over.clone(), dropped.clone());
    tokio::spawn(async move {
        let every = ctx.app.config().key_check;
        loop {
            if tokio::time::timeout(every, gone.cancelled()).await.is_ok() {
                return;
            }
            if !ctx.app.gatekeeper().is_admitted(&ctx.caller).await {
                return ends.cancel();
            }
        }
    });
    EarlyEnd { over: Box::pin(over.cancelled_owned()), _dropped: dropped.drop_guard() }
}

/// Ends a response body early when the caller's key is no longer valid. Dropping it ends the task that
/// checks the key.
struct EarlyEnd {
    over: Pin<Box<WaitForCancellationFutureOwned>>,
    _dropped: DropGuard,
}

/// A body in which paths of the host are masked, as in every answer of this server (INV-93).
struct HiddenBody {
    body: BoxBody<Bytes, Infallible>,
    outward: Arc<PlaceHider>,
    /// The part of a line that has arrived so far.
    line: BytesMut,
    over: EarlyEnd,
    /// True if the client accepts an event with empty data.
    primed: bool,
}

impl HiddenBody {
    /// Masks the JSON in each `data:` line of a piece of the stream, and leaves other lines as they are.
    fn hide_lines(&self, text: &[u8]) -> Vec<u8> {
        let mut said = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            // Clients skip an event without data but keep its id, so the line can be left out.
            if !self.primed && line.trim_ascii_end() == b"data:" {
                continue;
            }
            let (start, json) = match line.strip_prefix(b"data: ") {
                Some(json) => (&b"data: "[..], json),
                None => (&b""[..], line),
            };
            let text = std::str::from_utf8(json).ok().filter(|json| json.starts_with('{'));
            said.extend_from_slice(start);
            match text {
                Some(json) => {
                    let end = if json.ends_with('\n') { "\n" } else { "" };
                    let public = self.outward.hide_in_json(json.trim_end().to_owned());
                    said.extend_from_slice(public.as_str().as_bytes());
                    said.extend_from_slice(end.as_bytes());
                }
                None => said.extend_from_slice(json),
            }
        }
        said
    }
}

impl http_body::Body for HiddenBody {
    type Data = Bytes;
    type Error = Infallible;

    /// Masks and passes on whole lines as they arrive, and at the end the rest.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.over.over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        loop {
            match ready!(http_body::Body::poll_frame(Pin::new(&mut self.body), cx)) {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.line.extend_from_slice(&data);
                    let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') else {
                        continue;
                    };
                    let whole = self.line.split_to(end + 1);
                    let said = self.hide_lines(&whole);
                    return Poll::Ready(Some(Ok(Frame::data(said.into()))));
                }
                Some(Err(error)) => match error {},
                None if self.line.is_empty() => return Poll::Ready(None),
                None => {
                    let rest = std::mem::take(&mut self.line);
                    let said = self.hide_lines(&rest);
                    return Poll::Ready(Some(Ok(Frame::data(said.into()))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.line.is_empty() && http_body::Body::is_end_stream(&self.body)
    }
}
