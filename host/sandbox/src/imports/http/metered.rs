//! Counts all bytes of a connection: request lines, headers, framing and bodies, whatever the HTTP library
//! does.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};

use belljar_policy::{DenyCode, ExhaustedLimit, Meter};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::receipt::Denial;
use crate::receipt::record::CallRecord;

/// The most bytes of a reply with its headers, so that one reply cannot use up the whole budget.
pub(crate) const MAX_REPLY: u64 = 32 << 20;

/// A connection that can be read and written, for example TCP or TLS.
pub(crate) trait ConnectionStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ConnectionStream for T {}

/// Why the meter broke a connection. Stored, because the HTTP library drops the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// The budget for bytes sent is used up.
    Egress,
    /// The budget for bytes received is used up.
    Ingress,
    /// The reply is longer than [`MAX_REPLY`].
    Reply,
}

/// The first fault of a connection; all clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultCell(Arc<AtomicU8>);

impl FaultCell {
    pub(crate) fn get(&self) -> Option<BodyFault> {
        match self.0.load(Ordering::Relaxed) {
            1 => Some(BodyFault::Egress),
            2 => Some(BodyFault::Ingress),
            3 => Some(BodyFault::Reply),
            _ => None,
        }
    }

    /// Stores a fault, unless there is one already; returns whether it was stored.
    fn set_first(&self, fault: BodyFault) -> bool {
        let code = match fault {
            BodyFault::Egress => 1,
            BodyFault::Ingress => 2,
            BodyFault::Reply => 3,
        };
        self.0.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// A connection whose bytes are billed to a call's budget.
pub(crate) struct MeteredStream {
    inner: Box<dyn ConnectionStream>,
    record: Arc<CallRecord>,
    fault: FaultCell,
    received: u64,
}

impl MeteredStream {
    pub(crate) fn new(
        inner: Box<dyn ConnectionStream>,
        record: Arc<CallRecord>,
        fault: FaultCell,
    ) -> Self {
        Self { inner, record, fault, received: 0 }
    }

    fn fail_with(&self, fault: BodyFault, facts: String) -> io::Error {
        if self.fault.set_first(fault) {
            self.record.add_denial(Denial::new(DenyCode::LimitReached, "request", facts));
        }
        io::ErrorKind::QuotaExceeded.into()
    }

    fn fail_exhausted(&self, fault: BodyFault, exhausted: ExhaustedLimit) -> io::Error {
        self.fail_with(fault, exhausted.to_string())
    }
}

impl AsyncRead for MeteredStream {
    /// Reads from the connection, and bills the received bytes. Fails if the budget or the most bytes of a
    /// reply are exceeded.
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.fault.get().is_some() {
            return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = buf.filled().len().saturating_sub(before) as u64;
        self.received = self.received.saturating_add(read);
        if let Err(exhausted) = self.record.bill_bytes(Meter::Ingress, read) {
            return Poll::Ready(Err(self.fail_exhausted(BodyFault::Ingress, exhausted)));
        }
        if self.received > MAX_REPLY {
            let facts = format!("the reply has more than {MAX_REPLY} bytes");
            return Poll::Ready(Err(self.fail_with(BodyFault::Reply, facts)));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MeteredStream {
    /// Bills the bytes before they are written, so that no byte beyond the budget is sent.
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let asked = buf.len() as u64;
        if let Err(exhausted) = self.record.reserve_bytes(Meter::Egress, asked) {
            return Poll::Ready(Err(self.fail_exhausted(BodyFault::Egress, exhausted)));
        }
        let result = Pin::new(&mut self.inner).poll_write(cx, buf);
        let written = match &result {
            Poll::Ready(Ok(written)) => *written as u64,
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        self.record.refund_bytes(Meter::Egress, asked.saturating_sub(written));
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
