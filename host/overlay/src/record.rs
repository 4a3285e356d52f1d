//! The records of an overlay's index, one for each change, and how they are encoded on disk.

use rustix::fs::{FileType, Stat};

use super::rel::RelPath;

/// A moment, as file systems store it: seconds and nanoseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileTime {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

/// Times that a guest set. A time not set is that of the lower file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileTimes {
    pub(crate) accessed: Option<FileTime>,
    pub(crate) modified: Option<FileTime>,
}

/// The state of a lower object when a change first touched it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LowerState {
    pub(crate) kind: LowerKind,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: FileTime,
    pub(crate) changed: FileTime,
    pub(crate) mode: u32,
    /// The number of hard links.
    pub(crate) links: u64,
}

/// The type of a lower object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LowerKind {
    File,
    Directory,
    Link,
    Other,
}

/// Where a content comes from: the lower path, and the state of the lower file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentOrigin {
    pub(crate) rel: RelPath,
    /// The state of the lower file when the content was taken from it.
    pub(crate) seen: LowerState,
}

/// A file of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRecord {
    /// Whether the layer has the content, under the file's number; if not, it is the content of `origin`.
    pub(crate) copied: bool,
    /// The permission bits, without set-user-id, set-group-id and sticky.
    pub(crate) mode: u32,
    pub(crate) origin: Option<ContentOrigin>,
}

/// A change of the index. Paths are as guests see them, without links; lower directories on a path need no
/// record. `hidden` is the lower object with the same name, if any, and stays hidden when the name is
/// removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexChange {
    /// The name refers to the file. `new`: nothing was at the path before.
    File { path: RelPath, id: u64, file: FileRecord, hidden: Option<LowerState>, new: bool },
    /// The file with the given number gets another name.
    Link { path: RelPath, id: u64, hidden: Option<LowerState> },
    /// The name refers to a directory: an empty one, or a lower directory.
    Directory {
        path: RelPath,
        origin: Option<ContentOrigin>,
        mode: u32,
        hidden: Option<LowerState>,
    },
    /// The name is removed.
    Gone { path: RelPath, hidden: Option<LowerState> },
    /// The name moves, with everything below. `left` is the lower object that stays hidden at the old path.
    Moved {
        from: RelPath,
        to: RelPath,
        left: Option<LowerState>,
        hidden: Option<LowerState>,
        mode: Option<u32>,
    },
    /// The content of the file with the given number was copied into the layer.
    CopiedUp { id: u64 },
    /// A guest set the times of a directory, or of a file whose content is not in the layer.
    Times { path: RelPath, times: FileTimes },
    /// The SHA-256 of the content that a lower file had in this state.
    Digest { seen: LowerState, digest: [u8; 32] },
    /// The host applied changes to the lower directory, and corrected the index. The number counts how often
    /// that happened.
    Settled { number: u64 },
}

/// A change, and when it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    /// When the change happened.
    pub(crate) at: FileTime,
    pub(crate) act: IndexChange,
}

impl FileTime {
    /// The present time, as coarse as a file system's.
    pub(crate) fn now() -> Self {
        // The same coarse clock that the kernel uses for files.
        let now = rustix::time::clock_gettime(CLOCK);
        Self::from_parts(now.tv_sec, now.tv_nsec)
    }

    /// The present time, exactly: not before any time that a file system has already used.
    pub(crate) fn exact_now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Self::from_parts(now.tv_sec, now.tv_nsec)
    }

    pub(crate) fn from_parts(seconds: impl Into<i64>, nanoseconds: impl TryInto<u32>) -> Self {
        Self { seconds: seconds.into(), nanoseconds: nanoseconds.try_into().unwrap_or(0) }
    }
}

#[cfg(target_os = "linux")]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::RealtimeCoarse;
#[cfg(not(target_os = "linux"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Realtime;

/// The permission bits that records store.
pub(crate) const MODE: u32 = 0o777;

/// The device and the inode of an object.
#[expect(clippy::unnecessary_cast, reason = "the widths differ between platforms")]
pub(crate) fn stat_identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino)
}

/// The permission bits, without set-user-id, set-group-id and sticky.
#[expect(clippy::useless_conversion, reason = "the widths differ between platforms")]
pub(crate) fn permission_mode(stat: &Stat) -> u32 {
    u32::from(stat.st_mode) & MODE
}

#[expect(clippy::unnecessary_cast, reason = "the widths differ between platforms")]
fn link_count(stat: &Stat) -> u64 {
    stat.st_nlink as u64
}

impl LowerState {
    /// The state of a lower object from a stat call.
    pub(crate) fn from_stat(stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => LowerKind::File,
            FileType::Directory => LowerKind::Directory,
            FileType::Symlink => LowerKind::Link,
            _ => LowerKind::Other,
        };
        Self {
            kind,
            device: stat_identity(stat).0,
            inode: stat_identity(stat).1,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: FileTime::from_parts(stat.st_mtime, stat.st_mtime_nsec),
            changed: FileTime::from_parts(stat.st_ctime, stat.st_ctime_nsec),
            mode: permission_mode(stat),
            links: link_count(stat),
        }
    }
}

impl LowerKind {
    /// The file type of the node.
    pub(crate) fn file_type(self) -> FileType {
        match self {
            Self::File => FileType::RegularFile,
            Self::Directory => FileType::Directory,
            Self::Link => FileType::Symlink,
            Self::Other => FileType::Unknown,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::File, Self::Directory, Self::Link, Self::Other].into_iter().nth(byte.into())
    }
}

impl IndexRecord {
    /// Encodes the record for the disk.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = RecordEncoder(Vec::with_capacity(128));
        out.write_time(self.at);
        match &self.act {
            IndexChange::File { path, id, file, hidden, new } => {
                out.write_byte(0);
                out.write_path(path);
                out.write_number(*id);
                out.write_byte(file.copied.into());
                out.write_number(file.mode.into());
                out.write_option(file.origin.as_ref(), RecordEncoder::write_origin);
                out.write_option(hidden.as_ref(), RecordEncoder::write_snapshot);
                out.write_byte((*new).into());
            }
            IndexChange::Link { path, id, hidden } => {
                out.write_byte(1);
                out.write_path(path);
                out.write_number(*id);
                out.write_option(hidden.as_ref(), RecordEncoder::write_snapshot);
            }
            IndexChange::Directory { path, origin, mode, hidden } => {
                out.write_byte(2);
                out.write_path(path);
                out.write_option(origin.as_ref(), RecordEncoder::write_origin);
                out.write_number((*mode).into());
                out.write_option(hidden.as_ref(), RecordEncoder::write_snapshot);
            }
            IndexChange::Gone { path, hidden } => {
                out.write_byte(3);
                out.write_path(path);
                out.write_option(hidden.as_ref(), RecordEncoder::write_snapshot);
            }
            IndexChange::Moved { from, to, left, hidden, mode } => {
                out.write_byte(4);
                out.write_path(from);
                out.write_path(to);
                out.write_option(left.as_ref(), RecordEncoder::write_snapshot);
                out.write_option(hidden.as_ref(), RecordEncoder::write_snapshot);
                out.write_option(mode.as_ref(), |out, mode| out.write_number((*mode).into()));
            }
            IndexChange::CopiedUp { id } => {
                out.write_byte(5);
                out.write_number(*id);
            }
            IndexChange::Times { path, times } => {
                out.write_byte(6);
                out.write_path(path);
                for time in [times.accessed, times.modified] {
                    out.write_option(time.as_ref(), |out, time| out.write_time(*time));
                }
            }
            IndexChange::Digest { seen, digest } => {
                out.write_byte(7);
                out.write_snapshot(seen);
                out.0.extend_from_slice(digest);
            }
            IndexChange::Settled { number } => {
                out.write_byte(8);
                out.write_number(*number);
            }
        }
        out.0
    }

    /// Decodes a record; `None`: the bytes are not exactly one valid record.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = RecordDecoder(bytes);
        let at = from.read_time()?;
        let act = match from.read_byte()? {
            0 => IndexChange::File {
                path: from.read_path()?,
                id: from.read_number()?,
                file: FileRecord {
                    copied: from.read_flag()?,
                    mode: from.read_mode()?,
                    origin: from.read_option(RecordDecoder::read_origin)?,
                },
                hidden: from.read_option(RecordDecoder::read_snapshot)?,
                new: from.read_flag()?,
            },
            1 => IndexChange::Link {
                path: from.read_path()?,
                id: from.read_number()?,
                hidden: from.read_option(RecordDecoder::read_snapshot)?,
            },
            2 => IndexChange::Directory {
                path: from.read_path()?,
                origin: from.read_option(RecordDecoder::read_origin)?,
                mode: from.read_mode()?,
                hidden: from.read_option(RecordDecoder::read_snapshot)?,
            },
            3 => IndexChange::Gone {
                path: from.read_path()?,
                hidden: from.read_option(RecordDecoder::read_snapshot)?,
            },
            4 => IndexChange::Moved {
                from: from.read_path()?,
                to: from.read_path()?,
                left: from.read_option(RecordDecoder::read_snapshot)?,
                hidden: from.read_option(RecordDecoder::read_snapshot)?,
                mode: from.read_option(RecordDecoder::read_mode)?,
            },
            5 => IndexChange::CopiedUp { id: from.read_number()? },
            6 => {
                let path = from.read_path()?;
                let (accessed, modified) = (
                    from.read_option(RecordDecoder::read_time)?,
                    from.read_option(RecordDecoder::read_time)?,
                );
                IndexChange::Times { path, times: FileTimes { accessed, modified } }
            }
            7 => IndexChange::Digest { seen: from.read_snapshot()?, digest: from.read_array()? },
            8 => IndexChange::Settled { number: from.read_number()? },
            _ => return None,
        };
        from.0.is_empty().then_some(Self { at, act })
    }
}

/// The bytes of a record that is being encoded.
struct RecordEncoder(Vec<u8>);

impl RecordEncoder {
    fn write_byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn write_number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn write_time(&mut self, time: FileTime) {
        self.0.extend_from_slice(&time.seconds.to_le_bytes());
        self.0.extend_from_slice(&time.nanoseconds.to_le_bytes());
    }

    fn write_path(&mut self, rel: &RelPath) {
        self.write_number(rel.as_bytes().len() as u64);
        self.0.extend_from_slice(rel.as_bytes());
    }

    /// Writes an optional value: a flag, then the value.
    fn write_option<T>(&mut self, value: Option<&T>, put: impl FnOnce(&mut Self, &T)) {
        self.write_byte(value.is_some().into());
        if let Some(value) = value {
            put(self, value);
        }
    }

    /// Writes the state of a lower object.
    fn write_snapshot(&mut self, seen: &LowerState) {
        self.write_byte(seen.kind as u8);
        for number in [seen.device, seen.inode, seen.size, seen.mode.into(), seen.links] {
            self.write_number(number);
        }
        self.write_time(seen.modified);
        self.write_time(seen.changed);
    }

    fn write_origin(&mut self, origin: &ContentOrigin) {
        self.write_path(&origin.rel);
        self.write_snapshot(&origin.seen);
    }
}

/// The bytes of a record that are not decoded yet.
struct RecordDecoder<'a>(&'a [u8]);

impl RecordDecoder<'_> {
    fn read_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn read_byte(&mut self) -> Option<u8> {
        self.read_array().map(|[byte]| byte)
    }

    /// Reads a flag; `None` = the byte is neither 0 nor 1.
    fn read_flag(&mut self) -> Option<bool> {
        match self.read_byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn read_number(&mut self) -> Option<u64> {
        self.read_array().map(u64::from_le_bytes)
    }

    fn read_mode(&mut self) -> Option<u32> {
        u32::try_from(self.read_number()?).ok().filter(|mode| mode & !MODE == 0)
    }

    fn read_time(&mut self) -> Option<FileTime> {
        let seconds = i64::from_le_bytes(self.read_array()?);
        Some(FileTime { seconds, nanoseconds: u32::from_le_bytes(self.read_array()?) })
    }

    /// Reads a path; `None` = invalid.
    fn read_path(&mut self) -> Option<RelPath> {
        let len = usize::try_from(self.read_number()?).ok()?;
        let (path, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        RelPath::from_bytes(path)
    }

    fn read_option<T>(&mut self, get: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.read_flag()? { get(self).map(Some) } else { Some(None) }
    }

    /// Reads the state of a lower object; `None` = invalid.
    fn read_snapshot(&mut self) -> Option<LowerState> {
        Some(LowerState {
            kind: LowerKind::from_byte(self.read_byte()?)?,
            device: self.read_number()?,
            inode: self.read_number()?,
            size: self.read_number()?,
            mode: self.read_mode()?,
            links: self.read_number()?,
            modified: self.read_time()?,
            changed: self.read_time()?,
        })
    }

    fn read_origin(&mut self) -> Option<ContentOrigin> {
        Some(ContentOrigin { rel: self.read_path()?, seen: self.read_snapshot()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn rel() -> impl Strategy<Value = RelPath> {
        let name = "[a-c.]{1,3}".prop_filter("a name", |name| name != "." && name != "..");
        let path = prop::collection::vec(name, 0..4).prop_map(|names| names.join("/"));
        path.prop_map(|path| RelPath::from_bytes(path.as_bytes()).unwrap())
    }

    fn time() -> impl Strategy<Value = FileTime> {
        (any::<i64>(), any::<u32>())
            .prop_map(|(seconds, nanoseconds)| FileTime { seconds, nanoseconds })
    }

    /// Any state of a lower object.
    fn seen() -> impl Strategy<Value = LowerState> {
        let kinds = vec![LowerKind::File, LowerKind::Directory, LowerKind::Link, LowerKind::Other];
        let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), 0u32..=MODE);
        (prop::sample::select(kinds), numbers, time(), time()).prop_map(
            |(kind, (device, inode, size, links, mode), modified, changed)| LowerState {
                kind,
                device,
                inode,
                size,
                mode,
                links,
                modified,
                changed,
            },
        )
    }

    fn origin() -> impl Strategy<Value = ContentOrigin> {
        (rel(), seen()).prop_map(|(rel, seen)| ContentOrigin { rel, seen })
    }

    /// Any change of the index.
    fn act() -> impl Strategy<Value = IndexChange> {
        let maybe = || prop::option::of(seen());
        let file = (any::<bool>(), 0u32..=MODE, prop::option::of(origin()))
            .prop_map(|(copied, mode, origin)| FileRecord { copied, mode, origin });
        let times = (prop::option::of(time()), prop::option::of(time()))
            .prop_map(|(accessed, modified)| FileTimes { accessed, modified });
        prop_oneof![
            (rel(), any::<u64>(), file, maybe(), any::<bool>()).prop_map(
                |(path, id, file, hidden, new)| IndexChange::File { path, id, file, hidden, new }
            ),
            (rel(), any::<u64>(), maybe()).prop_map(|(path, id, hidden)| IndexChange::Link {
                path,
                id,
                hidden
            }),
            (rel(), prop::option::of(origin()), 0u32..=MODE, maybe()).prop_map(
                |(path, origin, mode, hidden)| IndexChange::Directory {
                    path,
                    origin,
                    mode,
                    hidden
                }
            ),
            (rel(), maybe()).prop_map(|(path, hidden)| IndexChange::Gone { path, hidden }),
            (rel(), rel(), maybe(), maybe(), prop::option::of(0u32..=MODE)).prop_map(
                |(from, to, left, hidden, mode)| IndexChange::Moved {
                    from,
                    to,
                    left,
                    hidden,
                    mode
                }
            ),
            any::<u64>().prop_map(|id| IndexChange::CopiedUp { id }),
            (rel(), times).prop_map(|(path, times)| IndexChange::Times { path, times }),
            (seen(), any::<[u8; 32]>())
                .prop_map(|(seen, digest)| IndexChange::Digest { seen, digest }),
            any::<u64>().prop_map(|number| IndexChange::Settled { number }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn a_record_is_read_as_it_was_written(at in time(), act in act()) {
            let record = IndexRecord { at, act };
            let bytes = record.encode();
            prop_assert_eq!(IndexRecord::decode(&bytes), Some(record));
            prop_assert_eq!(IndexRecord::decode(bytes.get(..bytes.len() - 1).unwrap()), None);
        }

        #[test]
        fn any_bytes_are_a_record_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(record) = IndexRecord::decode(&bytes) {
                prop_assert_eq!(record.encode(), bytes);
            }
        }
    }
}
