//! A guest's stdout and stderr, of which the first bytes are stored and the rest counted, and a command's
//! stdin.
//!
//! wasmtime-wasi's own pipe fails when full, but a tool should not fail because of a long log; its default
//! stream queues empty writes without limit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::receipt::record::Record;

/// The largest write, because the host allocates as much for `write-zeroes`.
const MAX_WRITE: usize = 64 << 10;

/// The stdout or the stderr of a store.
#[derive(Clone)]
pub(crate) struct Stdio {
    limit: usize,
    kept: Arc<Mutex<Kept>>,
    record: Arc<Record>,
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    dropped: u64,
}

impl Stdio {
    /// Makes a stream that stores `limit` bytes of each call.
    pub(crate) fn new(limit: u64, record: Arc<Record>) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { limit, kept: Arc::default(), record }
    }

    /// Returns and clears the stored text, and the number of dropped bytes.
    pub(crate) fn take(&self) -> (String, u64) {
        let (bytes, dropped) = self.take_bytes();
        (String::from_utf8_lossy(&bytes).into_owned(), dropped)
    }

    /// Returns and clears the stored bytes, and the number of dropped ones.
    pub(crate) fn take_bytes(&self) -> (Vec<u8>, u64) {
        let Kept { bytes, dropped } = std::mem::take(&mut *self.kept());
        (bytes, dropped)
    }

    /// The text that [`Self::take`] would return, without clearing it.
    pub(crate) fn text(&self) -> (String, u64) {
        let kept = self.kept();
        (String::from_utf8_lossy(&kept.bytes).into_owned(), kept.dropped)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command's standard input: the call's text, followed by the end. All its streams share one position.
#[derive(Clone)]
pub(crate) struct Stdin {
    left: Arc<Mutex<Bytes>>,
    record: Arc<Record>,
}

impl Stdin {
    pub(crate) fn new(bytes: Vec<u8>, record: Arc<Record>) -> Self {
        Self { left: Arc::new(Mutex::new(bytes.into())), record }
    }
}

impl IsTerminal for Stdin {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for Stdin {
    /// Unused by WASI 0.2, which calls [`StdinStream::p2_stream`]; always at the end.
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(tokio::io::empty())
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for Stdin {
    async fn ready(&mut self) {}
}

#[async_trait::async_trait]
impl InputStream for Stdin {
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

impl IsTerminal for Stdio {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stdio {
    /// Unused by WASI 0.2, which calls [`StdoutStream::p2_stream`]; drops all bytes.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for Stdio {
    async fn ready(&mut self) {}
}

impl OutputStream for Stdio {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.record.host_call();
        let mut kept = self.kept();
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
    use belljar_policy::{Budget, Caps, Level};

    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted_and_never_fails() {
        let budget = Budget::root(Level::Call, Caps::unlimited());
        let stdio = Stdio::new(5, Arc::new(Record::new(budget, 0)));
        let (mut a, mut b) = (stdio.p2_stream(), stdio.p2_stream());
        a.write(Bytes::from_static(b"abc")).unwrap();
        b.write(Bytes::from_static(b"defg")).unwrap();
        assert_eq!(a.check_write().unwrap(), MAX_WRITE);
        assert_eq!(stdio.take(), ("abcde".to_owned(), 2));
        assert_eq!(stdio.take(), (String::new(), 0));
    }
}
