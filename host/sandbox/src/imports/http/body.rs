//! The bodies of a guest's requests and of their replies.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use belljar_policy::DenyCode;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};
use wasmtime_wasi_http::{Error, WasiBody};

use super::metered::FaultCell;
use super::refusal::{broken_error, deny_request};
use crate::receipt::record::CallRecord;

/// The body of a request. Trailers are refused, because they would be headers that come after the check of
/// headers.
pub(crate) struct RequestBody {
    pub(crate) inner: WasiBody,
    pub(crate) record: Arc<CallRecord>,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    /// Passes the frames of a request's body on. Trailers are refused.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            Some(Ok(frame)) if frame.is_trailers() => {
                let facts = "the request has trailers".to_owned();
                Poll::Ready(Some(Err(deny_request(
                    &self.record,
                    DenyCode::RequestNotAllowed,
                    facts,
                ))))
            }
            other => Poll::Ready(other),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a reply in a run without secrets, passed on as it comes. If the peer is silent for too long
/// while the reader waits, the connection breaks; a pause of the reader does not matter.
pub(crate) struct ReplyBody {
    incoming: Incoming,
    fault: FaultCell,
    silence: Duration,
    alarm: Pin<Box<Sleep>>,
    waited_for: bool,
    ended: bool,
}

impl ReplyBody {
    pub(crate) fn new(incoming: Incoming, fault: FaultCell, silence: Duration) -> Self {
        let alarm = Box::pin(sleep(silence));
        Self { incoming, fault, silence, alarm, waited_for: false, ended: false }
    }

    fn fail_with(&mut self, error: Error) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.ended = true;
        Poll::Ready(Some(Err(error)))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Error;

    /// Returns the next frame. If the peer sends nothing for the allowed time of silence, fails with a read
    /// timeout.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Pending => {
                if !self.waited_for {
                    self.waited_for = true;
                    let silent = Instant::now() + self.silence;
                    self.alarm.as_mut().reset(silent);
                }
                ready!(self.alarm.as_mut().poll(cx));
                self.fail_with(Error::ConnectionReadTimeout)
            }
            Poll::Ready(None) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                let error = broken_error(&self.fault, &error);
                self.fail_with(error)
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.waited_for = false;
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
