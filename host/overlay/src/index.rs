//! The index on disk: a record for each change, in order, with its length and a checksum.
//!
//! A change is acknowledged after a single write of its record, which comes after its content. If a process
//! is killed while writing, the incomplete record is dropped when the index is opened next. A damaged record
//! before the last is an error.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};

use belljar_work::StopSignal;
use rustix::fs::{Mode, OFlags, openat, renameat};
use sha2::{Digest as _, Sha256};

use super::record::IndexRecord;

/// The first bytes of the file: the format and its version.
const MAGIC: &[u8] = b"belljar overlay 1\n";
const NAME: &str = "index";
const NEXT: &str = "index.next";

/// The most bytes of a record: enough for the longest paths, see `MAX_LEVELS` in `acts.rs`.
const MAX_RECORD: usize = 256 << 10;
/// The bytes before a record: the length and the checksum of the record.
const HEAD: usize = 4 + SUM;
const SUM: usize = 8;

/// An index with fewer bytes than this is never compacted.
const SMALL: u64 = 256 << 10;

/// The index file, open for appending.
#[derive(Debug)]
pub(super) struct IndexFile {
    layer: OwnedFd,
    file: File,
    /// The position where the next record is written.
    len: u64,
    /// The length after the last compaction, in bytes.
    compact: u64,
    /// Whether an incomplete record could not be removed; then no more changes are accepted.
    broken: bool,
}

impl IndexFile {
    /// Opens the index of a layer and reads its records; makes a new index if there is none. Drops an
    /// incomplete last record. Fails when `stop` is raised.
    pub(super) fn open(layer: OwnedFd, stop: &StopSignal) -> io::Result<(Self, Vec<IndexRecord>)> {
        let mut file = File::from(open_file(&layer, NAME, OFlags::CREATE)?);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if MAGIC.starts_with(&bytes) {
            file = write_fresh(&layer, &[])?;
            bytes = MAGIC.to_vec();
        }
        let (records, len) = parse_records(&bytes, stop)?;
        file.set_len(len as u64)?;
        let (len, compact) = (len as u64, len as u64);
        Ok((Self { layer, file, len, compact, broken: false }, records))
    }

    /// Makes an index with these records in a layer.
    pub(super) fn create_index(layer: &OwnedFd, records: &[IndexRecord]) -> io::Result<()> {
        write_fresh(layer, records).map(drop)
    }

    /// Appends a record. Readers see the record even if the current process is killed right after. After an
    /// error, the index is as before.
    pub(super) fn append(&mut self, record: &IndexRecord) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("an earlier change could not be written down"));
        }
        let bytes = frame_record(record)?;
        let written = write_at(&self.file, &bytes, self.len);
        if written.is_err() {
            self.broken = self.file.set_len(self.len).is_err();
        }
        written?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Removes the last record, because applying it to the index in memory failed.
    pub(super) fn take_back(&mut self, record: &IndexRecord) {
        let len = frame_record(record).map_or(0, |bytes| bytes.len() as u64);
        self.len = self.len.saturating_sub(len);
        self.broken = self.file.set_len(self.len).is_err();
    }

    /// Whether most records are obsolete, so that compacting is worthwhile.
    pub(super) fn is_long(&self) -> bool {
        !self.broken && self.len > SMALL.max(self.compact.saturating_mul(3))
    }

    /// Replaces all records. If that fails, the old records stay.
    pub(super) fn replace_records(&mut self, records: &[IndexRecord]) -> io::Result<()> {
        // The next try waits until the index has grown as much again, even if this one fails.
        self.compact = self.len;
        let file = write_fresh(&self.layer, records)?;
        let len = file.metadata()?.len();
        (self.file, self.len, self.compact) = (file, len, len);
        Ok(())
    }

    /// Waits until the index and its name are on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        Ok(rustix::fs::fsync(&self.layer)?)
    }
}

/// Writes a new index file, and renames it over the old one.
fn write_fresh(layer: &OwnedFd, records: &[IndexRecord]) -> io::Result<File> {
    let mut file = File::from(open_file(layer, NEXT, OFlags::CREATE | OFlags::TRUNC)?);
    let mut bytes = MAGIC.to_vec();
    for record in records {
        bytes.extend(frame_record(record)?);
    }
    file.write_all(&bytes)?;
    renameat(layer, NEXT, layer, NAME)?;
    Ok(file)
}

fn open_file(layer: &OwnedFd, name: &str, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
    Ok(openat(layer.as_fd(), name, flags, Mode::from_raw_mode(0o600))?)
}

fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    file.write_all_at(bytes, at)
}

/// A record with length and checksum, as written to disk.
fn frame_record(record: &IndexRecord) -> io::Result<Vec<u8>> {
    let body = record.encode();
    let len = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_RECORD);
    let len = len.ok_or_else(|| io::Error::other("the paths are too long for the index"))?;
    let mut bytes = Vec::with_capacity(HEAD + body.len());
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&record_checksum(len, &body));
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// The checksum of a record's length and body.
fn record_checksum(len: u32, body: &[u8]) -> [u8; SUM] {
    let all = Sha256::new().chain_update(len.to_le_bytes()).chain_update(body).finalize();
    let mut sum = [0; SUM];
    sum.iter_mut().zip(all).for_each(|(to, from)| *to = from);
    sum
}

/// Parses the records. Also returns the number of bytes of complete records, which is less than all bytes if
/// the last record is incomplete.
fn parse_records(bytes: &[u8], stop: &StopSignal) -> io::Result<(Vec<IndexRecord>, usize)> {
    let bad = |at: usize| {
        let why = format!("the index of the overlay is damaged at byte {at}");
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(|| bad(0))?;
    let mut records = Vec::new();
    loop {
        stop.check_raised().map_err(io::Error::other)?;
        let at = bytes.len() - rest.len();
        let Some((head, after)) = rest.split_first_chunk::<HEAD>() else {
            return Ok((records, at));
        };
        let [a, b, c, d, stated @ ..] = *head;
        let len = u32::from_le_bytes([a, b, c, d]);
        if len as usize > MAX_RECORD {
            return Err(bad(at));
        }
        let Some((body, after)) = after.split_at_checked(len as usize) else {
            return Ok((records, at));
        };
        if record_checksum(len, body) != stated {
            // The last record may be incomplete; an earlier one is damaged.
            return if after.is_empty() { Ok((records, at)) } else { Err(bad(at)) };
        }
        records.push(IndexRecord::decode(body).ok_or_else(|| bad(at))?);
        rest = after;
    }
}
