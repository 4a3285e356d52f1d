//! The sides of the differential test: the same directories written in place and through overlays, the
//! stores that use them, and each operation of `wasi:filesystem`, with a textual result.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use belljar_overlay::{Overlay, OverlayQuota};

use super::super::*;
use types::{DescriptorStat, Filesize, NewTimestamp};
use wasmtime_wasi::p2::StreamError;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;

#[path = "../../../../../../../tests/kit/overlay.rs"]
mod overlay;

pub(super) use overlay::{Random, World};

/// A directory for thousands of short-lived files: in memory, if possible. On a disk, most of the time would
/// be spent on deleted inodes.
pub(super) fn scratch() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// Times before this one were set, and are compared exactly. All other times count as the present.
const LONG_AGO: u64 = 1_000_000_000;

/// One side: its directories, and the stores that use them.
pub(super) struct Side {
    stores: Vec<Store>,
    overlays: Vec<Overlay>,
}

struct Store {
    ctx: FilesCtx,
    table: ResourceTable,
    record: Arc<CallRecord>,
}

/// A descriptor: the number of the store, and the descriptor's number in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fd(pub(super) usize, u32);

/// One operation.
#[derive(Debug, Clone)]
pub(super) enum Op {
    Open(usize, String, PathFlags, OpenFlags, DescriptorFlags),
    Read(usize, u64, u64),
    Write(usize, usize, u64),
    Stream(usize, usize, Option<u64>),
    ReadStream(usize, u64),
    SetSize(usize, u64),
    SetTimes(usize, u64),
    SetTimesAt(usize, String, u64),
    Stat(usize),
    StatAt(usize, PathFlags, String),
    List(usize),
    MakeDir(usize, String),
    RemoveDir(usize, String),
    Unlink(usize, String),
    Rename(usize, String, usize, String),
    Link(usize, String, usize, String),
    Symlink(usize, String, String),
    ReadLink(usize, String),
    Drop(usize),
    Flags(usize),
    Sync(usize),
    Same(usize, usize),
    SameHash(usize, usize, String),
}

fn limits() -> Limits {
    Limits { write_bytes: u64::MAX, read_bytes: u64::MAX, open_files: 200, ..Limits::default() }
}

impl Side {
    /// A side whose two mounts are written in place. A second store has the first mount for reading.
    pub(super) fn plain(root: &Path) -> Self {
        let mounts = [
            mount("/one", MountAccess::ReadWrite, &root.join("one")),
            mount("/two", MountAccess::ReadWrite, &root.join("two")),
            mount("/ro", MountAccess::Read, &root.join("one")),
        ];
        Self { stores: vec![store(&mounts), store(&mounts)], overlays: Vec::new() }
    }

    /// The same mounts through overlays, whose layers are beside the directories.
    pub(super) fn overlaid(root: &Path) -> Self {
        let open = |name: &str| {
            let layer = root.join(format!("{name}.layer"));
            Overlay::open(root.join(name), layer, OverlayQuota::default()).unwrap()
        };
        let overlays = vec![open("one"), open("two")];
        let mounts = [
            over("/one", &overlays[0]),
            over("/two", &overlays[1]),
            over("/ro", &overlays[0]).at_most(MountAccess::Read),
        ];
        Self { stores: vec![store(&mounts), store(&mounts)], overlays }
    }

    /// A side with one store that has these mounts.
    pub(super) fn of(mounts: &[OpenMount]) -> Self {
        Self { stores: vec![store(mounts)], overlays: Vec::new() }
    }

    pub(super) fn overlays(&self) -> &[Overlay] {
        &self.overlays
    }

    /// The preopened directories of all stores, in order.
    pub(super) fn preopens(&mut self) -> Vec<Fd> {
        let mut fds = Vec::new();
        for (number, store) in self.stores.iter_mut().enumerate() {
            let found = preopens::Host::get_directories(&mut store.view()).unwrap();
            fds.extend(found.iter().map(|(fd, _)| Fd(number, fd.rep())));
        }
        fds
    }

    /// Runs an operation. Returns the result as text, and a new descriptor. The numbers in the operation are
    /// indices of `fds`.
    pub(super) async fn act(&mut self, op: &Op, fds: &[Fd]) -> (String, Option<Fd>) {
        let at = |index: &usize| fds[index % fds.len()];
        let store = at(op.first()).0;
        let mut made = None;
        let mut said = match op {
            Op::Open(dir, path, flags, open, access) => {
                let Fd(store, dir) = at(dir);
                let view = &mut self.stores[store].view();
                let opened = view.open_at(fd(dir), *flags, path.clone(), *open, *access).await;
                let opened = opened.map(|opened| opened.rep());
                made = opened.as_ref().ok().map(|rep| Fd(store, *rep));
                tell(opened.map(drop))
            }
            Op::Rename(old, from, new, to) => {
                let (old, new) = (at(old), self.same_store(at(old), at(new), fds));
                let view = &mut self.stores[old.0].view();
                tell(view.rename_at(fd(old.1), from.clone(), fd(new.1), to.clone()).await)
            }
            Op::Link(old, from, new, to) => {
                let (old, new) = (at(old), self.same_store(at(old), at(new), fds));
                let view = &mut self.stores[old.0].view();
                let none = PathFlags::empty();
                let (from, to) = (from.clone(), to.clone());
                tell(view.link_at(fd(old.1), none, from, fd(new.1), to).await)
            }
            Op::Same(one, other) => {
                let (one, other) = (at(one), self.same_store(at(one), at(other), fds));
                let view = &mut self.stores[one.0].view();
                format!("{:?}", view.is_same_object(fd(one.1), fd(other.1)).await.unwrap())
            }
            Op::SameHash(one, dir, path) => {
                let (one, dir) = (at(one), self.same_store(at(one), at(dir), fds));
                let view = &mut self.stores[one.0].view();
                let none = PathFlags::empty();
                let first = view.metadata_hash(fd(one.1)).await;
                let second = view.metadata_hash_at(fd(dir.1), none, path.clone()).await;
                match (first, second) {
                    (Ok(a), Ok(b)) => format!("{}", (a.lower, a.upper) == (b.lower, b.upper)),
                    (a, b) => format!("{} {}", tell(a.map(drop)), tell(b.map(drop))),
                }
            }
            Op::List(dir) => self.list(at(dir)).await,
            Op::Stream(file, len, offset) => self.stream(at(file), *len, *offset).await,
            Op::ReadStream(file, offset) => self.read_stream(at(file), *offset).await,
            op => self.plain_act(op, at(op.first())).await,
        };
        for denial in self.stores[store].record.drain_lists().0.denials {
            write!(said, " {:?}", denial.code).unwrap();
        }
        (said, made)
    }

    /// A descriptor of the same store as `first`, because numbers of another store mean nothing there.
    fn same_store(&self, first: Fd, other: Fd, fds: &[Fd]) -> Fd {
        if other.0 == first.0 {
            return other;
        }
        fds.iter().copied().find(|fd| fd.0 == first.0).unwrap_or(first)
    }

    async fn plain_act(&mut self, op: &Op, Fd(store, rep): Fd) -> String {
        let view = &mut self.stores[store].view();
        let none = PathFlags::empty();
        match op {
            Op::Read(_, len, offset) => match view.read(fd(rep), *len, *offset).await {
                Ok(read) => format!("{read:?}"),
                Err(error) => tell(Err(error)),
            },
            Op::Write(_, len, offset) => {
                let bytes = pattern(*len, *offset);
                match view.write(fd(rep), bytes, *offset).await {
                    Ok(written) => format!("wrote {written}"),
                    Err(error) => tell(Err(error)),
                }
            }
            Op::SetSize(_, size) => tell(view.set_size(fd(rep), *size).await),
            Op::SetTimes(_, time) => {
                tell(view.set_times(fd(rep), NewTimestamp::NoChange, stamp(*time)).await)
            }
            Op::SetTimesAt(_, path, time) => {
                let (accessed, modified) = (NewTimestamp::NoChange, stamp(*time));
                tell(view.set_times_at(fd(rep), none, path.clone(), accessed, modified).await)
            }
            Op::Stat(_) => status(view.stat(fd(rep)).await),
            Op::StatAt(_, flags, path) => status(view.stat_at(fd(rep), *flags, path.clone()).await),
            Op::MakeDir(_, path) => tell(view.create_directory_at(fd(rep), path.clone()).await),
            Op::RemoveDir(_, path) => tell(view.remove_directory_at(fd(rep), path.clone()).await),
            Op::Unlink(_, path) => tell(view.unlink_file_at(fd(rep), path.clone()).await),
            Op::Symlink(_, target, path) => {
                tell(view.symlink_at(fd(rep), target.clone(), path.clone()).await)
            }
            Op::ReadLink(_, path) => match view.readlink_at(fd(rep), path.clone()).await {
                Ok(target) => target,
                Err(error) => tell(Err(error)),
            },
            Op::Flags(_) => {
                let flags = view.get_flags(fd(rep)).await.unwrap();
                format!("{flags:?} {:?}", view.get_type(fd(rep)).await.unwrap())
            }
            Op::Sync(_) => tell(view.sync(fd(rep)).await),
            Op::Drop(_) => {
                HostDescriptor::drop(view, own(rep)).unwrap();
                String::new()
            }
            _ => unreachable!("it is done elsewhere"),
        }
    }

    async fn list(&mut self, Fd(store, rep): Fd) -> String {
        match self.entries(store, rep).await {
            Ok(entries) => format!("{entries:?}"),
            Err(error) => tell(Err(error)),
        }
    }

    async fn entries(&mut self, store: usize, rep: u32) -> FsResult<BTreeMap<String, String>> {
        use types::HostDirectoryEntryStream as Entries;
        let view = &mut self.stores[store].view();
        let listing = view.read_directory(fd(rep)).await?.rep();
        let mut found = BTreeMap::new();
        while let Some(entry) = view.read_directory_entry(Resource::new_borrow(listing)).await? {
            let twice = found.insert(entry.name, format!("{:?}", entry.type_));
            assert_eq!(twice, None, "listed twice");
        }
        Entries::drop(view, Resource::new_own(listing)).unwrap();
        Ok(found)
    }

    async fn stream(&mut self, Fd(store, rep): Fd, len: usize, offset: Option<u64>) -> String {
        let view = &mut self.stores[store].view();
        let stream = match offset {
            Some(offset) => view.write_via_stream(fd(rep), offset),
            None => view.append_via_stream(fd(rep)),
        };
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => return tell(Err(error)),
        };
        let store = &mut self.stores[store];
        let bytes = pattern(len, 7);
        let wrote = store.table.get_mut(&stream).unwrap().blocking_write_and_flush(bytes.into());
        let said = streamed(wrote.await);
        drop(store.table.delete(stream).unwrap());
        said
    }

    async fn read_stream(&mut self, Fd(store, rep): Fd, offset: u64) -> String {
        let store = &mut self.stores[store];
        let stream = match store.view().read_via_stream(fd(rep), offset) {
            Ok(stream) => stream,
            Err(error) => return tell(Err(error)),
        };
        let read = store.table.get_mut(&stream).unwrap().blocking_read(50).await;
        let said = match read {
            Ok(bytes) => format!("{bytes:?}"),
            Err(error) => streamed(Err(error)),
        };
        drop(store.table.delete(stream).unwrap());
        said
    }

    /// The content of a mount by path, as a new store sees it.
    pub(super) async fn tree(&mut self, mount: usize) -> BTreeMap<String, String> {
        let first = self.preopens()[mount];
        let mut found = BTreeMap::new();
        let mut left = vec![(String::new(), first.1)];
        while let Some((path, dir)) = left.pop() {
            for (name, kind) in self.entries(0, dir).await.unwrap() {
                let below = format!("{path}/{name}");
                let view = &mut self.stores[0].view();
                let none = PathFlags::empty();
                let mut said = status(view.stat_at(fd(dir), none, name.clone()).await);
                write!(said, " {kind}").unwrap();
                let (open, access) = How::Read.flags();
                match view.open_at(fd(dir), none, name.clone(), open, access).await {
                    Ok(opened) if kind.contains("Directory") => {
                        left.push((below.clone(), opened.rep()));
                    }
                    Ok(opened) => {
                        let rep = opened.rep();
                        let (bytes, _) = view.read(opened, 1 << 16, 0).await.unwrap();
                        write!(said, " {bytes:?}").unwrap();
                        HostDescriptor::drop(view, own(rep)).unwrap();
                    }
                    Err(error) => said.push_str(&tell(Err(error))),
                }
                if kind.contains("Symbolic") {
                    let target = view.readlink_at(fd(dir), name).await;
                    write!(said, " {target:?}").unwrap();
                }
                found.insert(below, said);
            }
            if dir != first.1 {
                HostDescriptor::drop(&mut self.stores[0].view(), own(dir)).unwrap();
            }
        }
        found
    }
}

impl Op {
    /// The index of the first descriptor of the operation.
    pub(super) fn first(&self) -> &usize {
        match self {
            Self::Open(at, ..)
            | Self::Read(at, ..)
            | Self::Write(at, ..)
            | Self::Stream(at, ..)
            | Self::ReadStream(at, _)
            | Self::SetSize(at, _)
            | Self::SetTimes(at, _)
            | Self::SetTimesAt(at, ..)
            | Self::Stat(at)
            | Self::StatAt(at, ..)
            | Self::List(at)
            | Self::MakeDir(at, _)
            | Self::RemoveDir(at, _)
            | Self::Unlink(at, _)
            | Self::Rename(at, ..)
            | Self::Link(at, ..)
            | Self::Symlink(at, ..)
            | Self::ReadLink(at, _)
            | Self::Drop(at)
            | Self::Flags(at)
            | Self::Sync(at)
            | Self::Same(at, _)
            | Self::SameHash(at, ..) => at,
        }
    }
}

impl Store {
    fn view(&mut self) -> FilesView<'_> {
        FilesView { ctx: &mut self.ctx, table: &mut self.table }
    }
}

fn store(mounts: &[OpenMount]) -> Store {
    let budget = Budget::new_root(BudgetLevel::Subagent, BudgetCaps::for_agent(&limits()));
    let record = Arc::new(CallRecord::new(budget, 10));
    let ctx = FilesCtx::new(mounts, &limits(), Arc::clone(&record));
    Store { ctx, table: ResourceTable::new(), record }
}

pub(super) fn over(guest: &str, overlay: &Overlay) -> OpenMount {
    let mount = belljar_policy::Mount {
        guest: GuestPath::new(guest).unwrap(),
        host: overlay.path().to_owned(),
        access: MountAccess::Overlay,
    };
    OpenMount::open_over(&mount, overlay, &[], &ClosedPaths::default()).unwrap()
}

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len).map(|n| b'a' + ((n as u64 + seed) % 26) as u8).collect()
}

fn stamp(time: u64) -> NewTimestamp {
    match time {
        0 => NewTimestamp::Now,
        1 => NewTimestamp::NoChange,
        seconds => NewTimestamp::Timestamp(Datetime { seconds, nanoseconds: 5 }),
    }
}

fn tell(result: FsResult<()>) -> String {
    match result {
        Ok(()) => "done".to_owned(),
        Err(error) => match error.downcast() {
            Ok(code) => format!("{code:?}"),
            Err(trap) => format!("trap {trap}"),
        },
    }
}

fn streamed(result: Result<(), StreamError>) -> String {
    match result {
        Ok(()) => "done".to_owned(),
        Err(StreamError::LastOperationFailed(error)) => format!("{error}"),
        Err(error) => format!("{error:?}"),
    }
}

/// A file's status, without the values that only the file system decides.
fn status(stat: FsResult<DescriptorStat>) -> String {
    let stat = match stat {
        Ok(stat) => stat,
        Err(error) => return tell(Err(error)),
    };
    let time = match stat.data_modification_timestamp {
        Some(time) if time.seconds < LONG_AGO => format!("{}.{}", time.seconds, time.nanoseconds),
        Some(_) => "the present".to_owned(),
        None => "no time".to_owned(),
    };
    match stat.type_ {
        // An overlay does not keep the times of a removed directory.
        types::DescriptorType::Directory if stat.link_count == 0 => "no directory".to_owned(),
        types::DescriptorType::Directory => format!("directory of {time}"),
        kind => {
            let (size, links): (Filesize, u64) = (stat.size, stat.link_count);
            format!("{kind:?} of {size} bytes, {links} links, of {time}")
        }
    }
}

/// The first content of a workspace, the same for the same seed.
pub(super) fn plant(root: &Path, seed: u64) {
    let mut random = Random::new(seed);
    let mut dirs = vec![PathBuf::new()];
    std::fs::create_dir_all(root).unwrap();
    for _ in 0..5 + random.below(15) {
        let above = dirs[random.below(dirs.len())].clone();
        let path = above.join(random.pick(names(seed)));
        let full = root.join(&path);
        if std::fs::symlink_metadata(&full).is_ok() {
            continue;
        }
        match random.below(8) {
            0..3 => {
                std::fs::create_dir(&full).unwrap();
                dirs.push(path);
            }
            3..7 => {
                let len = random.below(60);
                std::fs::write(&full, pattern(len, seed)).unwrap();
            }
            _ => {
                let targets =
                    ["a", "b/c", "../a", "..", ".", "/etc", "../../out", "nowhere", "AGENTS.md"];
                std::os::unix::fs::symlink(random.pick(&targets), &full).unwrap();
            }
        }
    }
    age(root);
}

/// Sets all times to the past.
fn age(path: &Path) {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).unwrap() {
            age(&entry.unwrap().path());
        }
    }
    let time = Timespec { tv_sec: 500_000, tv_nsec: 3 };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// The names for a sequence. With only four names, most operations find an object.
pub(super) fn names(seed: u64) -> &'static [&'static str] {
    if (seed / 2).is_multiple_of(2) { &NAMES[..4] } else { &NAMES }
}

/// The names of files, directories and links.
const NAMES: [&str; 8] = ["a", "b", "c", "d", "A", "AGENTS.md", "e\u{301}", "run.sh"];
