//! Streams over files. Each read or write is billed, and runs on the calling thread without a buffer.
//!
//! wasmtime-wasi's own streams would pass each read to a blocking thread and buffer up to 64 KiB, for any
//! number of streams.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use belljar_overlay::{GrowthGuard, QuotaFull, UpperFile};
use belljar_policy::{DenyCode, Meter};
use bytes::{Bytes, BytesMut};
use rustix::io::Errno;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use super::counter::OpenSlot;
use super::{FileContent, record_refusal, reserve_bytes};
use crate::receipt::record::CallRecord;

/// The most bytes of one read or write of a stream, because the guest chooses the size and the host
/// allocates it.
pub(crate) const MAX_CHUNK: usize = 64 << 10;
/// The number of reads or writes of a stream after which other tasks may run.
const CHUNKS_PER_PAUSE: u32 = 16;

/// The file of a stream, and what a read or write is billed and recorded with.
pub(crate) struct StreamHandle {
    pub(crate) content: FileContent,
    pub(crate) record: Arc<CallRecord>,
    /// The guest's path of the file, for the receipt.
    pub(crate) path: String,
    /// Counts the file against the limit of open files, until dropped.
    pub(crate) _file: Arc<OpenSlot>,
    /// Counts the stream against the limit of open streams, until dropped.
    pub(crate) _stream: OpenSlot,
}

/// An input stream that reads a file from an offset.
pub(crate) struct FileReader {
    handle: StreamHandle,
    /// The offset of the next read, in bytes.
    at: u64,
    pace: YieldPace,
}

/// An output stream that writes to a file, from an offset or at its end.
pub(crate) struct FileWriter {
    handle: StreamHandle,
    /// The offset of the next write; `None`: each write is appended.
    at: Option<u64>,
    pace: YieldPace,
}

/// Counts reads or writes, and lets other tasks run after some of them.
#[derive(Default)]
struct YieldPace(u32);

impl YieldPace {
    async fn count_chunk(&mut self) {
        self.0 = self.0.wrapping_add(1);
        if self.0.is_multiple_of(CHUNKS_PER_PAUSE) {
            tokio::task::yield_now().await;
        }
    }
}

impl FileReader {
    pub(crate) fn new(handle: StreamHandle, at: u64) -> Self {
        Self { handle, at, pace: YieldPace::default() }
    }
}

impl FileWriter {
    pub(crate) fn new(handle: StreamHandle, at: Option<u64>) -> Self {
        Self { handle, at, pace: YieldPace::default() }
    }
}

/// Reads up to `size` bytes at an offset, and bills the bytes. If the budget has too few bytes left, returns
/// an error and no bytes.
pub(crate) fn read_billed(
    file: &File,
    record: &CallRecord,
    path: &str,
    size: usize,
    at: u64,
) -> io::Result<Bytes> {
    let mut buffer = BytesMut::zeroed(size.min(MAX_CHUNK));
    let read = loop {
        match file.read_at(&mut buffer, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    buffer.truncate(read);
    reserve_bytes(record, "read", Meter::Read, read as u64).map_err(|()| Errno::NOSPC)?;
    record.path_read(path);
    Ok(buffer.freeze())
}

/// Bills bytes and writes them at an offset; `at` = `None` appends. If the offset is beyond the file's end,
/// the gap is billed too, so that no file grows beyond the budget.
pub(crate) fn write_billed(
    content: &FileContent,
    record: &CallRecord,
    path: &str,
    bytes: &[u8],
    at: Option<u64>,
) -> io::Result<usize> {
    let length = bytes.len() as u64;
    let file = &**content.current_file();
    let hole = match at {
        Some(at) => {
            let end = at.checked_add(length).ok_or(Errno::FBIG)?;
            i64::try_from(end).map_err(|_| Errno::FBIG)?;
            // An empty write does not lengthen the file.
            if length == 0 { 0 } else { at.saturating_sub(file.metadata()?.len()) }
        }
        None => 0,
    };
    let cost = length.checked_add(hole).ok_or(Errno::FBIG)?;
    let mut growing = content.upper_file().map(UpperFile::lock_length);
    if let Some(growing) = growing.as_mut().filter(|_| length > 0) {
        let end = at.unwrap_or(growing.length()).saturating_add(length);
        make_room(record, "write", growing, end)?;
    }
    let reserved = reserve_bytes(record, "write", Meter::Write, cost);
    if reserved.is_err()
        && let Some(growing) = growing
    {
        growing.settle_length(file.metadata()?.len());
        return Err(Errno::NOSPC.into());
    }
    reserved.map_err(|()| Errno::NOSPC)?;
    record.path_written(path);
    let (written, result) = write_all(file, bytes, at);
    if written < bytes.len()
        && let Some(growing) = growing
    {
        growing.settle_length(file.metadata()?.len());
    }
    if written == 0 {
        record.refund_bytes(Meter::Write, cost);
    } else {
        record.refund_bytes(Meter::Write, length - written as u64);
    }
    if let Err(error) = &result
        && is_full(error)
    {
        // The guest sees the same error as at its own limit; only the operator learns that the machine's
        // disk is full.
        let facts = format!("the disk that holds `{path}` is full: {error}");
        record_refusal(record, "write", DenyCode::LimitReached, facts);
    }
    match result {
        Err(error) if written == 0 => Err(error),
        Ok(()) | Err(_) => Ok(written),
    }
}

/// Sets the length of a file, and bills its growth.
pub(crate) fn resize_billed(
    content: &FileContent,
    record: &CallRecord,
    size: u64,
) -> io::Result<()> {
    let file = &**content.current_file();
    let mut growing = content.upper_file().map(UpperFile::lock_length);
    let length = file.metadata()?.len();
    if let Some(growing) = &mut growing {
        make_room(record, "set-size", growing, size)?;
    }
    let more = size.saturating_sub(length);
    let reserved = reserve_bytes(record, "set-size", Meter::Write, more).map_err(|()| Errno::NOSPC);
    let done = reserved.map_err(io::Error::from).and_then(|()| {
        let done = file.set_len(size);
        if done.is_err() {
            record.refund_bytes(Meter::Write, more);
        }
        done
    });
    if let Some(growing) = growing {
        growing.settle_length(if done.is_ok() { size } else { length });
    }
    done
}

/// Reserves quota of an overlay for a file of this length; if there is not enough, records that and fails.
fn make_room(
    record: &CallRecord,
    what: &str,
    growing: &mut GrowthGuard<'_>,
    length: u64,
) -> io::Result<()> {
    growing.reserve_length(length).map_err(|QuotaFull(facts)| {
        record_refusal(record, what, DenyCode::LimitReached, facts);
        Errno::NOSPC.into()
    })
}

/// Whether the machine's disk is full, which is no limit of the guest's.
fn is_full(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOSPC | Errno::DQUOT))
}

/// Writes bytes until all are written or an error occurs; returns how many were written.
fn write_all(file: &File, bytes: &[u8], at: Option<u64>) -> (usize, io::Result<()>) {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        let result = match at {
            Some(at) => file.write_at(rest, at + written as u64),
            None => append_bytes(file, rest),
        };
        match result {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// Appends bytes at the present end of the file.
#[cfg(target_os = "linux")]
fn append_bytes(file: &File, bytes: &[u8]) -> io::Result<usize> {
    use rustix::io::{ReadWriteFlags, pwritev2};
    Ok(pwritev2(file, &[io::IoSlice::new(bytes)], 0, ReadWriteFlags::APPEND)?)
}

#[cfg(not(target_os = "linux"))]
fn append_bytes(file: &File, bytes: &[u8]) -> io::Result<usize> {
    file.write_at(bytes, file.metadata()?.len())
}

fn stream_error(error: io::Error) -> StreamError {
    // The guest's `filesystem-error-code` finds the `io::Error` inside.
    StreamError::LastOperationFailed(error.into())
}

#[async_trait::async_trait]
impl Pollable for FileReader {
    async fn ready(&mut self) {
        self.pace.count_chunk().await;
    }
}

#[async_trait::async_trait]
impl InputStream for FileReader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size == 0 {
            return Ok(Bytes::new());
        }
        let StreamHandle { content, record, path, .. } = &self.handle;
        let bytes = read_billed(content.current_file(), record, path, size, self.at)
            .map_err(stream_error)?;
        if bytes.is_empty() {
            return Err(StreamError::Closed);
        }
        self.at += bytes.len() as u64;
        Ok(bytes)
    }
}

#[async_trait::async_trait]
impl Pollable for FileWriter {
    async fn ready(&mut self) {
        self.pace.count_chunk().await;
    }
}

#[async_trait::async_trait]
impl OutputStream for FileWriter {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > MAX_CHUNK {
            return Err(StreamError::trap("the write is larger than `check-write` allows"));
        }
        let StreamHandle { content, record, path, .. } = &self.handle;
        let written = write_billed(content, record, path, &bytes, self.at).map_err(stream_error)?;
        if let Some(at) = &mut self.at {
            *at += written as u64;
        }
        if written < bytes.len() {
            let facts = format!("{written} of {} bytes were written", bytes.len());
            record_refusal(record, "write", DenyCode::LimitReached, facts);
            return Err(stream_error(Errno::NOSPC.into()));
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_CHUNK)
    }
}
