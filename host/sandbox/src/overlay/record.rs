//! The records of an overlay's index, one for each change, and their form on disk.

use rustix::fs::{FileType, Stat};

use super::rel::Rel;

/// A point in time, in the form of file systems.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

/// Times that were set; an unset time is that of the lower directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileTimes {
    pub(crate) accessed: Option<Time>,
    pub(crate) modified: Option<Time>,
}

/// The state of a lower object when a change first looked at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: Time,
    pub(crate) changed: Time,
    pub(crate) mode: u32,
    /// The number of hard links.
    pub(crate) links: u64,
}

/// The type of a lower object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
    Other,
}

/// The lower path of a content, and the state of the file there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) rel: Rel,
    pub(crate) seen: Seen,
}

/// A file of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRecord {
    /// Whether the content is in the layer, under the file's number; otherwise it is the content of the
    /// origin.
    pub(crate) copied: bool,
    /// Permission bits without set-user-id, set-group-id and sticky.
    pub(crate) mode: u32,
    pub(crate) origin: Option<Origin>,
}

/// One change. Paths are those that the guest sees, without links; lower directories on the path need no
/// record of their own. `hidden` is the lower directory's object of the name, if any: it stays hidden when
/// the name is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// A name refers to this file from now on. `new` = the path did not exist before.
    File { path: Rel, id: u64, file: FileRecord, hidden: Option<Seen>, new: bool },
    /// A file gets another name.
    Link { path: Rel, id: u64, hidden: Option<Seen> },
    /// A name refers to a directory: an empty one, or the visible rest of a lower directory.
    Directory { path: Rel, origin: Option<Origin>, mode: u32, hidden: Option<Seen> },
    /// A name is removed.
    Gone { path: Rel, hidden: Option<Seen> },
    /// A name moves, with everything below it. `left` is the object that stays hidden at the old path.
    Moved { from: Rel, to: Rel, left: Option<Seen>, hidden: Option<Seen>, mode: Option<u32> },
    /// A file's content was copied into the layer.
    CopiedUp { id: u64 },
    /// Times of a directory, or of a file whose content is not in the layer.
    Times { path: Rel, times: FileTimes },
    /// The SHA-256 of a lower file's content.
    Digest { seen: Seen, digest: [u8; 32] },
    /// The host applied changes of this index to the lower directory, and changed the index accordingly. The
    /// number counts these occasions.
    Settled { number: u64 },
}

/// A change and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    pub(crate) at: Time,
    pub(crate) act: Act,
}

impl Time {
    /// The present, as coarse as the times of a file system.
    pub(crate) fn now() -> Self {
        // A file system stamps files with this coarse clock at the same moment.
        let now = rustix::time::clock_gettime(CLOCK);
        Self::of(now.tv_sec, now.tv_nsec)
    }

    /// The precise present: not before any time that a file system has stamped already.
    pub(crate) fn exact() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Self::of(now.tv_sec, now.tv_nsec)
    }

    pub(crate) fn of(seconds: impl Into<i64>, nanoseconds: impl TryInto<u32>) -> Self {
        Self { seconds: seconds.into(), nanoseconds: nanoseconds.try_into().unwrap_or(0) }
    }
}

#[cfg(target_os = "linux")]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::RealtimeCoarse;
#[cfg(not(target_os = "linux"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Realtime;

/// The permission bits that are kept.
pub(crate) const MODE: u32 = 0o777;

/// Device and inode numbers.
#[expect(clippy::unnecessary_cast, reason = "the widths differ between platforms")]
pub(crate) fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino)
}

/// Permission bits without set-user-id, set-group-id and sticky.
#[expect(clippy::useless_conversion, reason = "the widths differ between platforms")]
pub(crate) fn mode(stat: &Stat) -> u32 {
    u32::from(stat.st_mode) & MODE
}

#[expect(clippy::unnecessary_cast, reason = "the widths differ between platforms")]
fn links(stat: &Stat) -> u64 {
    stat.st_nlink as u64
}

impl Seen {
    pub(crate) fn of(stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            _ => Kind::Other,
        };
        Self {
            kind,
            device: identity(stat).0,
            inode: identity(stat).1,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: Time::of(stat.st_mtime, stat.st_mtime_nsec),
            changed: Time::of(stat.st_ctime, stat.st_ctime_nsec),
            mode: mode(stat),
            links: links(stat),
        }
    }
}

impl Kind {
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
    /// Encodes the record for the index on disk.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Out(Vec::with_capacity(128));
        out.time(self.at);
        match &self.act {
            Act::File { path, id, file, hidden, new } => {
                out.byte(0);
                out.rel(path);
                out.number(*id);
                out.byte(file.copied.into());
                out.number(file.mode.into());
                out.maybe(file.origin.as_ref(), Out::origin);
                out.maybe(hidden.as_ref(), Out::seen);
                out.byte((*new).into());
            }
            Act::Link { path, id, hidden } => {
                out.byte(1);
                out.rel(path);
                out.number(*id);
                out.maybe(hidden.as_ref(), Out::seen);
            }
            Act::Directory { path, origin, mode, hidden } => {
                out.byte(2);
                out.rel(path);
                out.maybe(origin.as_ref(), Out::origin);
                out.number((*mode).into());
                out.maybe(hidden.as_ref(), Out::seen);
            }
            Act::Gone { path, hidden } => {
                out.byte(3);
                out.rel(path);
                out.maybe(hidden.as_ref(), Out::seen);
            }
            Act::Moved { from, to, left, hidden, mode } => {
                out.byte(4);
                out.rel(from);
                out.rel(to);
                out.maybe(left.as_ref(), Out::seen);
                out.maybe(hidden.as_ref(), Out::seen);
                out.maybe(mode.as_ref(), |out, mode| out.number((*mode).into()));
            }
            Act::CopiedUp { id } => {
                out.byte(5);
                out.number(*id);
            }
            Act::Times { path, times } => {
                out.byte(6);
                out.rel(path);
                for time in [times.accessed, times.modified] {
                    out.maybe(time.as_ref(), |out, time| out.time(*time));
                }
            }
            Act::Digest { seen, digest } => {
                out.byte(7);
                out.seen(seen);
                out.0.extend_from_slice(digest);
            }
            Act::Settled { number } => {
                out.byte(8);
                out.number(*number);
            }
        }
        out.0
    }

    /// Decodes a record; `None` = the bytes are incomplete or invalid, or bytes are left over.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = In(bytes);
        let at = from.time()?;
        let act = match from.byte()? {
            0 => Act::File {
                path: from.rel()?,
                id: from.number()?,
                file: FileRecord {
                    copied: from.flag()?,
                    mode: from.mode()?,
                    origin: from.maybe(In::origin)?,
                },
                hidden: from.maybe(In::seen)?,
                new: from.flag()?,
            },
            1 => Act::Link { path: from.rel()?, id: from.number()?, hidden: from.maybe(In::seen)? },
            2 => Act::Directory {
                path: from.rel()?,
                origin: from.maybe(In::origin)?,
                mode: from.mode()?,
                hidden: from.maybe(In::seen)?,
            },
            3 => Act::Gone { path: from.rel()?, hidden: from.maybe(In::seen)? },
            4 => Act::Moved {
                from: from.rel()?,
                to: from.rel()?,
                left: from.maybe(In::seen)?,
                hidden: from.maybe(In::seen)?,
                mode: from.maybe(In::mode)?,
            },
            5 => Act::CopiedUp { id: from.number()? },
            6 => {
                let path = from.rel()?;
                let (accessed, modified) = (from.maybe(In::time)?, from.maybe(In::time)?);
                Act::Times { path, times: FileTimes { accessed, modified } }
            }
            7 => Act::Digest { seen: from.seen()?, digest: from.take()? },
            8 => Act::Settled { number: from.number()? },
            _ => return None,
        };
        from.0.is_empty().then_some(Self { at, act })
    }
}

/// An output buffer.
struct Out(Vec<u8>);

impl Out {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn time(&mut self, time: Time) {
        self.0.extend_from_slice(&time.seconds.to_le_bytes());
        self.0.extend_from_slice(&time.nanoseconds.to_le_bytes());
    }

    fn rel(&mut self, rel: &Rel) {
        self.number(rel.as_bytes().len() as u64);
        self.0.extend_from_slice(rel.as_bytes());
    }

    fn maybe<T>(&mut self, value: Option<&T>, put: impl FnOnce(&mut Self, &T)) {
        self.byte(value.is_some().into());
        if let Some(value) = value {
            put(self, value);
        }
    }

    fn seen(&mut self, seen: &Seen) {
        self.byte(seen.kind as u8);
        for number in [seen.device, seen.inode, seen.size, seen.mode.into(), seen.links] {
            self.number(number);
        }
        self.time(seen.modified);
        self.time(seen.changed);
    }

    fn origin(&mut self, origin: &Origin) {
        self.rel(&origin.rel);
        self.seen(&origin.seen);
    }
}

/// The unread rest of the input.
struct In<'a>(&'a [u8]);

impl In<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn mode(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok().filter(|mode| mode & !MODE == 0)
    }

    fn time(&mut self) -> Option<Time> {
        let seconds = i64::from_le_bytes(self.take()?);
        Some(Time { seconds, nanoseconds: u32::from_le_bytes(self.take()?) })
    }

    fn rel(&mut self) -> Option<Rel> {
        let len = usize::try_from(self.number()?).ok()?;
        let (path, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Rel::from_bytes(path)
    }

    fn maybe<T>(&mut self, get: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { get(self).map(Some) } else { Some(None) }
    }

    fn seen(&mut self) -> Option<Seen> {
        Some(Seen {
            kind: Kind::from_byte(self.byte()?)?,
            device: self.number()?,
            inode: self.number()?,
            size: self.number()?,
            mode: self.mode()?,
            links: self.number()?,
            modified: self.time()?,
            changed: self.time()?,
        })
    }

    fn origin(&mut self) -> Option<Origin> {
        Some(Origin { rel: self.rel()?, seen: self.seen()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn rel() -> impl Strategy<Value = Rel> {
        let name = "[a-c.]{1,3}".prop_filter("a name", |name| name != "." && name != "..");
        let path = prop::collection::vec(name, 0..4).prop_map(|names| names.join("/"));
        path.prop_map(|path| Rel::from_bytes(path.as_bytes()).unwrap())
    }

    fn time() -> impl Strategy<Value = Time> {
        (any::<i64>(), any::<u32>())
            .prop_map(|(seconds, nanoseconds)| Time { seconds, nanoseconds })
    }

    fn seen() -> impl Strategy<Value = Seen> {
        let kinds = vec![Kind::File, Kind::Directory, Kind::Link, Kind::Other];
        let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), 0u32..=MODE);
        (prop::sample::select(kinds), numbers, time(), time()).prop_map(
            |(kind, (device, inode, size, links, mode), modified, changed)| Seen {
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

    fn origin() -> impl Strategy<Value = Origin> {
        (rel(), seen()).prop_map(|(rel, seen)| Origin { rel, seen })
    }

    fn act() -> impl Strategy<Value = Act> {
        let maybe = || prop::option::of(seen());
        let file = (any::<bool>(), 0u32..=MODE, prop::option::of(origin()))
            .prop_map(|(copied, mode, origin)| FileRecord { copied, mode, origin });
        let times = (prop::option::of(time()), prop::option::of(time()))
            .prop_map(|(accessed, modified)| FileTimes { accessed, modified });
        prop_oneof![
            (rel(), any::<u64>(), file, maybe(), any::<bool>()).prop_map(
                |(path, id, file, hidden, new)| Act::File { path, id, file, hidden, new }
            ),
            (rel(), any::<u64>(), maybe()).prop_map(|(path, id, hidden)| Act::Link {
                path,
                id,
                hidden
            }),
            (rel(), prop::option::of(origin()), 0u32..=MODE, maybe()).prop_map(
                |(path, origin, mode, hidden)| Act::Directory { path, origin, mode, hidden }
            ),
            (rel(), maybe()).prop_map(|(path, hidden)| Act::Gone { path, hidden }),
            (rel(), rel(), maybe(), maybe(), prop::option::of(0u32..=MODE)).prop_map(
                |(from, to, left, hidden, mode)| Act::Moved { from, to, left, hidden, mode }
            ),
            any::<u64>().prop_map(|id| Act::CopiedUp { id }),
            (rel(), times).prop_map(|(path, times)| Act::Times { path, times }),
            (seen(), any::<[u8; 32]>()).prop_map(|(seen, digest)| Act::Digest { seen, digest }),
            any::<u64>().prop_map(|number| Act::Settled { number }),
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
