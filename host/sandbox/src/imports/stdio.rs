//! The standard streams of a guest. Of stdout and stderr, the first bytes are stored and the others counted;
//! stdin is the text of a command's call.
//!
//! wasmtime-wasi's own pipe fails when it is full, but a tool should not fail because its log is long; its
//! default stream queues empty writes without a limit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::receipt::record::CallRecord;

/// The most bytes of a write, because `write-zeroes` makes the host allocate as much.
const MAX_WRITE: usize = 64 << 10;

/// The stdout, or the stderr, of a store.
#[derive(Clone)]
pub(crate) struct StdioCapture {
    limit: usize,
    /// The captured text, up to `limit` bytes.
    kept: Arc<Mutex<CapturedText>>,
    record: Arc<CallRecord>,
}

#[derive(Default)]
struct CapturedText {
    bytes: Vec<u8>,
    dropped: u64,
}

impl StdioCapture {
    /// Makes a stream that stores the first `limit` bytes of each call.
    pub(crate) fn new(limit: u64, record: Arc<CallRecord>) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { limit, kept: Arc::default(), record }
    }

    /// Returns the stored text and the number of dropped bytes, and forgets both.
    pub(crate) fn drain_text(&self) -> (String, u64) {
        let (bytes, dropped) = self.take_bytes();
        (String::from_utf8_lossy(&bytes).into_owned(), dropped)
    }

    /// Returns the stored bytes and the number of dropped ones, and forgets both.
    pub(crate) fn take_bytes(&self) -> (Vec<u8>, u64) {
        let CapturedText { bytes, dropped } = std::mem::take(&mut *self.lock_captured());
        (bytes, dropped)
    }

    /// Returns what [`Self::drain_text`] would, without forgetting it.
    pub(crate) fn peek_text(&self) -> (String, u64) {
        let kept = self.lock_captured();
        (String::from_utf8_lossy(&kept.bytes).into_owned(), kept.dropped)
    }

    fn lock_captured(&self) -> MutexGuard<'_, CapturedText> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stdin of a command: the text of its call, then the end. All streams of it share one position.
#[derive(Clone)]
pub(crate) struct CommandStdin {
    /// The text that was not read yet.
    left: Arc<Mutex<Bytes>>,
    record: Arc<CallRecord>,
}

impl CommandStdin {
    pub(crate) fn new(bytes: Vec<u8>, record: Arc<CallRecord>) -> Self {
        Self { left: Arc::new(Mutex::new(bytes.into())), record }
    }
}

impl IsTerminal for CommandStdin {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for CommandStdin {
    /// WASI 0.2 does not use this but [`StdinStream::p2_stream`]. The stream is at its end.
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(tokio::io::empty())
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for CommandStdin {
    async fn ready(&mut self) {}
}

#[async_trait::async_trait]
impl InputStream for CommandStdin {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.record.host_call();
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.is_empty() {
            return Err(StreamError::Closed);
        }
        let now = left.len().min(size).min(MAX_WRITE);
        Ok(left.split_to(now))
    }
}

impl IsTerminal for StdioCapture {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for StdioCapture {
    /// WASI 0.2 does not use this but [`StdoutStream::p2_stream`]. The stream drops all bytes.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for StdioCapture {
    async fn ready(&mut self) {}
}

impl OutputStream for StdioCapture {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.record.host_call();
        let mut kept = self.lock_captured();
        let room = self.limit.saturating_sub(kept.bytes.len()).min(bytes.len());
        let (keep, drop) = bytes.split_at(room);
        kept.bytes.extend_from_slice(keep);
        kept.dropped = kept.dropped.saturating_add(drop.len() as u64);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_WRITE)
    }
}

#[cfg(test)]
mod tests {
    use belljar_policy::{Budget, BudgetCaps, BudgetLevel};

    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted_and_never_fails() {
        let budget = Budget::new_root(BudgetLevel::Call, BudgetCaps::unlimited());
        let stdio = StdioCapture::new(5, Arc::new(CallRecord::new(budget, 0)));
        let (mut a, mut b) = (stdio.p2_stream(), stdio.p2_stream());
        a.write(Bytes::from_static(b"abc")).unwrap();
        b.write(Bytes::from_static(b"defg")).unwrap();
        assert_eq!(a.check_write().unwrap(), MAX_WRITE);
        assert_eq!(stdio.drain_text(), ("abcde".to_owned(), 2));
        assert_eq!(stdio.drain_text(), (String::new(), 0));
    }
}
