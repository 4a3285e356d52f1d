//! `wasi:filesystem`: our own host over wasmtime-wasi's types.
//!
//! wasmtime-wasi checks access per preopen and leaves the rest open: how much is written,
//! which names, which kinds of file. This host checks on every call
//!
//! - the mount's access, so that read-only and read-write mounts can share a store;
//! - the protected names, on the path as resolved ([`walk`]) and not as spelled;
//! - that nothing but regular files and directories is opened;
//! - bytes, open files, files made, entries listed.
//!
//! A guest makes no symbolic links, whatever is granted: other programs of the user follow
//! them, and those know nothing of mounts. For the same reason it does not move links, and
//! does not write to a file with several hard links: one of them may lie outside the mount.
//!
//! File operations run on the calling thread (handing them to another costs several times
//! what they take on a local disk). [`FilesView::pace`] lets other tasks and timers run in
//! between; what can take long (`sync`, long listings) goes to a blocking thread.

mod alias;
mod closed;
mod host;
mod ledger;
mod names;
mod open;
mod paths;
#[cfg(test)]
mod seam;
mod streams;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_policy::{Access, DenyCode, GuestPath, Limits, Meter, Mount, Shown};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{
    Descriptor, Dir, FsPerms, OpenMode, WasiFilesystemCtx, WasiFilesystemCtxView,
};
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

use self::alias::Meant;
pub(crate) use self::closed::Closed;
use self::ledger::{Counter, Slot};
use self::walk::{Follow, Place, Start, WalkError, walk};
use crate::receipt::Denial;
use crate::receipt::record::{Record, clip};

/// Files, directories and hard links that one store may make. Bytes are metered, but an
/// empty file costs an inode and no byte.
pub(crate) const MAX_MADE: u64 = 10_000;
/// Directory entries held for all listings of one store at a time. A listing is read as a
/// whole, about 100 bytes an entry.
pub(crate) const MAX_LISTED: u64 = 32_768;
/// Streams of one store at a time. A guest needs one per open file.
pub(crate) const MAX_STREAMS: u64 = 256;
/// Calls between two pauses in which other tasks run: most often some ten microseconds, and
/// some milliseconds for the longest paths.
const CALLS_PER_PAUSE: u32 = 16;
/// Characters of a path shown in a refusal.
const SHOWN_PATH: usize = 256;

/// A mount with its directory held open. Cloning shares the directory, so a store is opened
/// without a system call.
#[derive(Clone)]
pub(crate) struct OpenMount {
    info: Arc<MountInfo>,
}

struct MountInfo {
    guest: GuestPath,
    access: Access,
    /// As the guest's first descriptor; also the start of searches from the mount's top.
    root: Dir,
    /// The mount's own directory is a protected name or lies below one, or in a closed directory.
    protected: bool,
    /// What is not written, wherever in the mount it lies.
    closed: Closed,
    /// The host's path of the directory, without links.
    real: PathBuf,
}

/// The files of one store: its mounts, and what is open.
pub(crate) struct FilesCtx {
    mounts: Vec<OpenMount>,
    record: Arc<Record>,
    inner: WasiFilesystemCtx,
    /// What belljar knows of each descriptor, by its number in the resource table. Made and
    /// dropped together with the resource; a descriptor that is missing here can do nothing.
    open: HashMap<u32, Opened>,
    /// Entries held per listing, by number in the resource table.
    listings: HashMap<u32, u64>,
    listed: u64,
    files: Counter,
    streams: Counter,
    made: u64,
    calls: u32,
    /// Hides the host's inode numbers in `metadata-hash`.
    salt: RandomState,
}

/// What belljar knows of an open descriptor.
#[derive(Clone)]
struct Opened {
    mount: Arc<MountInfo>,
    /// Path below the mount, without links.
    real: Arc<str>,
    protected: bool,
    /// Freed when the descriptor and all its streams are dropped.
    slot: Arc<Slot>,
}

/// A store's files together with its resource table.
pub(crate) struct FilesView<'a> {
    /// The files.
    pub(crate) ctx: &'a mut FilesCtx,
    /// The table of all resources of the store.
    pub(crate) table: &'a mut ResourceTable,
}

/// The data of a store that has files.
pub(crate) trait HasFiles: Send + 'static {
    /// The files with the table.
    fn files(&mut self) -> FilesView<'_>;
}

/// Links `wasi:filesystem/types` and `wasi:filesystem/preopens`.
pub(crate) fn add_to_linker<T: HasFiles>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    types::add_to_linker::<T, Files>(linker, |data| data.files())?;
    preopens::add_to_linker::<T, Files>(linker, |data| data.files())
}

struct Files;

impl HasData for Files {
    type Data<'a> = FilesView<'a>;
}

impl OpenMount {
    /// Opens the directory of a mount. For `work_directories` see
    /// [`crate::Sandbox::with_work_directories`]; in one of them nothing is closed.
    pub(crate) fn open(
        mount: &Mount,
        work_directories: &[PathBuf],
        closed: &Closed,
    ) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = File::from(rustix::fs::open(&mount.host, flags, Mode::empty())?);
        let real = real_path(&dir, &mount.host)?;
        let works = work_directories.iter().any(|directory| real.starts_with(directory));
        let closed = if works { Closed::default() } else { closed.clone() };
        let protected = lies_in_protected(&real, work_directories) || closed.reaches(dir.as_fd());
        let (perms, mode) = means(mount.access, protected);
        let root = Dir::new(dir, perms, mode, true);
        let (guest, access) = (mount.guest.clone(), mount.access);
        Ok(Self { info: Arc::new(MountInfo { guest, access, root, protected, closed, real }) })
    }

    /// The same open directory, with no more access than given.
    pub(crate) fn at_most(&self, access: Access) -> Self {
        let here = &self.info;
        if here.access <= access {
            return self.clone();
        }
        let mut root = here.root.clone();
        (root.perms, root.open_mode) = means(access, here.protected);
        let MountInfo { guest, protected, closed, real, .. } = &**here;
        let (guest, closed, real) = (guest.clone(), closed.clone(), real.clone());
        let protected = *protected;
        Self { info: Arc::new(MountInfo { guest, access, root, protected, closed, real }) }
    }

    /// Where the guest sees it.
    pub(crate) fn guest(&self) -> &GuestPath {
        &self.info.guest
    }

    /// The device and inode of the directory: what it is, whatever its path.
    pub(crate) fn identity(&self) -> std::io::Result<(u64, u64)> {
        let found = self.info.root.dir.metadata()?;
        Ok((found.dev(), found.ino()))
    }
}

/// An access, in wasmtime-wasi's words.
fn means(access: Access, protected: bool) -> (FsPerms, OpenMode) {
    match (access, protected) {
        (Access::ReadWrite, false) => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
        (Access::Read, _) | (Access::ReadWrite, true) => (FsPerms::ReadOnly, OpenMode::READ),
    }
}

/// The path of an open directory, without links. Linux knows it, whatever the path that led
/// here means by now; elsewhere, and without `/proc`, the path is followed again.
fn real_path(dir: &File, host: &Path) -> std::io::Result<PathBuf> {
    let held = format!("/proc/self/fd/{}", dir.as_raw_fd());
    if cfg!(target_os = "linux")
        && let Ok(path) = std::fs::read_link(held)
    {
        return Ok(path);
    }
    std::fs::canonicalize(host)
}

/// Whether a part of the path is a protected name. INV-151: the path that leads to a work
/// directory does not count; its own name and what lies below it do.
fn lies_in_protected(host: &Path, work_directories: &[PathBuf]) -> bool {
    let above = work_directories.iter().find(|directory| host.starts_with(directory));
    let above = above.and_then(|directory| directory.parent());
    let counts = above.and_then(|above| host.strip_prefix(above).ok()).unwrap_or(host);
    counts.components().any(|part| names::is_protected(&part.as_os_str().to_string_lossy()))
}

impl MountInfo {
    fn meant(&self, place: &Place) -> Meant {
        alias::meant_by_protected_links(&self.real, self.root.dir.as_fd(), place)
    }

    /// The guest's path of something below the mount, without links.
    fn guest_path(&self, real: &str) -> String {
        if real.is_empty() { self.guest.to_string() } else { format!("{}/{real}", self.guest) }
    }
}

impl FilesCtx {
    /// The files of a new store. No system call is made.
    pub(crate) fn new(mounts: &[OpenMount], limits: &Limits, record: Arc<Record>) -> Self {
        Self {
            mounts: mounts.to_vec(),
            record,
            inner: WasiFilesystemCtx::default(),
            open: HashMap::new(),
            listings: HashMap::new(),
            listed: 0,
            files: Counter::new(limits.open_files),
            streams: Counter::new(MAX_STREAMS),
            made: 0,
            calls: 0,
            salt: RandomState::new(),
        }
    }

    /// Writes a refusal down and makes the error that the guest gets.
    fn refuse(&self, what: &str, code: DenyCode, facts: String) -> FsError {
        refuse(&self.record, what, code, facts);
        guest_error(code).into()
    }

    /// Takes one of the open files that the store may have.
    fn slot(&self, what: &str) -> Result<Arc<Slot>, FsError> {
        match self.files.take() {
            Some(slot) => Ok(Arc::new(slot)),
            None => {
                let facts = format!("{} files are open already", self.files.limit());
                refuse(&self.record, what, DenyCode::LimitReached, facts);
                // The interface has no "too many open files".
                Err(ErrorCode::InsufficientMemory.into())
            }
        }
    }

    /// Counts one more file, directory or link.
    fn make(&mut self, what: &str) -> Result<(), FsError> {
        if self.made >= MAX_MADE {
            let facts = format!("{MAX_MADE} files and directories were made already");
            return Err(self.refuse(what, DenyCode::LimitReached, facts));
        }
        self.made += 1;
        Ok(())
    }

    /// Resolves a path. Leaving the start is refused and written down.
    fn walk(&self, what: &str, from: &Base, path: &str, follow: Follow) -> Result<Place, FsError> {
        #[cfg(test)]
        if seam::allows_all() {
            return Ok(Place::unchecked(&from.start, path));
        }
        match walk(&from.start, path, follow) {
            Ok(place) => Ok(place),
            Err(WalkError::Errno(errno)) => Err(error(errno)),
            Err(WalkError::Escape(why)) => {
                let facts = format!(
                    "`{}` from `{}`: {why}",
                    Shown::clipped(path, SHOWN_PATH),
                    Shown::clipped(&from.opened.guest_path(), SHOWN_PATH),
                );
                Err(self.refuse(what, DenyCode::PathNotAllowed, facts))
            }
        }
    }

    /// Whether the place may be written at all: the mount's access, then protected names, then
    /// closed directories. With a yes: what a protected link makes of it, for [`Self::may_move`].
    fn may_write(&self, what: &str, opened: &Opened, place: &Place) -> Result<Meant, FsError> {
        let mount = &opened.mount;
        let protected = place.protected || mount.closed.holds(place);
        self.may_write_real(what, mount, &place.real, protected)?;
        let meant = mount.meant(place);
        if meant == Meant::Itself {
            return Err(self.refuse_meant(what, mount, place, "is what"));
        }
        Ok(meant)
    }

    /// Whether a name that may be written may also go, come from elsewhere, or be replaced: a
    /// protected link may mean something else after that.
    fn may_move(
        &self,
        what: &str,
        opened: &Opened,
        place: &Place,
        meant: Meant,
    ) -> Result<(), FsError> {
        if meant == Meant::OnTheWay {
            let how = "is on the way to what";
            return Err(self.refuse_meant(what, &opened.mount, place, how));
        }
        Ok(())
    }

    fn refuse_meant(&self, what: &str, mount: &MountInfo, place: &Place, how: &str) -> FsError {
        let path = mount.guest_path(&place.real);
        let shown = Shown::clipped(&path, SHOWN_PATH);
        let facts = format!("`{shown}` {how} a link with a protected name means");
        self.refuse(what, DenyCode::PathNotAllowed, facts)
    }

    /// As [`Self::may_write`], for what is already open.
    fn may_write_open(&self, what: &str, opened: &Opened) -> Result<(), FsError> {
        self.may_write_real(what, &opened.mount, &opened.real, opened.protected)
    }

    fn may_write_real(
        &self,
        what: &str,
        mount: &MountInfo,
        real: &str,
        protected: bool,
    ) -> Result<(), FsError> {
        #[cfg(test)]
        if seam::allows_all() {
            return Ok(());
        }
        let path = || mount.guest_path(real);
        match mount.access {
            Access::Read => {
                let facts = format!(
                    "`{}`: the mount `{}` is read-only",
                    Shown::clipped(&path(), SHOWN_PATH),
                    mount.guest
                );
                Err(self.refuse(what, DenyCode::ReadOnly, facts))
            }
            Access::ReadWrite if protected => {
                let path = path();
                let facts = format!("`{}` is protected", Shown::clipped(&path, SHOWN_PATH));
                Err(self.refuse(what, DenyCode::PathNotAllowed, facts))
            }
            Access::ReadWrite => Ok(()),
        }
    }

    /// A file with several hard links is not changed: one of them may lie outside the mount.
    fn has_one_name(
        &self,
        what: &str,
        mount: &MountInfo,
        real: &str,
        stat: &Stat,
    ) -> Result<(), FsError> {
        if walk::kind(stat) != FileType::RegularFile || stat.st_nlink <= 1 {
            return Ok(());
        }
        let path = mount.guest_path(real);
        let shown = Shown::clipped(&path, SHOWN_PATH);
        let facts = format!("`{shown}` has {} hard links", stat.st_nlink);
        Err(self.refuse(what, DenyCode::PathNotAllowed, facts))
    }

    /// Takes bytes that are about to be written.
    fn reserve_write(&self, what: &str, bytes: u64) -> Result<(), FsError> {
        reserve(&self.record, what, Meter::Write, bytes)
            .map_err(|()| ErrorCode::InsufficientSpace.into())
    }

    fn wrote(&self, mount: &MountInfo, real: &str) {
        self.record.path_written(&mount.guest_path(real));
    }

    /// A number for a file that stays the same in this store and tells nothing of the host.
    fn identity(&self, stat: &Stat) -> types::MetadataHashValue {
        let of = |part: u8| self.salt.hash_one((part, stat.st_dev, stat.st_ino));
        types::MetadataHashValue { lower: of(0), upper: of(1) }
    }
}

impl Opened {
    fn guest_path(&self) -> String {
        self.mount.guest_path(&self.real)
    }
}

/// An open directory from which a path leads.
struct Base {
    start: Start,
    opened: Opened,
}

impl FilesView<'_> {
    /// wasmtime-wasi's own host, for what is not decided here.
    fn inner(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.ctx.inner, table: self.table }
    }

    /// Counts a call into the host, and from time to time lets others run. A guest that
    /// calls in a loop burns little fuel and would else not yield for long.
    async fn pace(&mut self) {
        self.ctx.record.host_call();
        self.ctx.calls = self.ctx.calls.wrapping_add(1);
        if self.ctx.calls.is_multiple_of(CALLS_PER_PAUSE) {
            tokio::task::yield_now().await;
        }
    }

    /// Makes the next call pause: this one took long.
    fn tire(&mut self) {
        self.ctx.calls = u32::MAX;
    }

    fn opened(&self, fd: &Resource<Descriptor>) -> Result<Opened, FsError> {
        self.ctx.open.get(&fd.rep()).cloned().ok_or_else(|| ErrorCode::BadDescriptor.into())
    }

    /// The directory behind a descriptor.
    fn base(&self, fd: &Resource<Descriptor>) -> Result<Base, FsError> {
        let opened = self.opened(fd)?;
        match self.table.get(fd)? {
            Descriptor::Dir(dir) => {
                let start = Start {
                    dir: Arc::clone(&dir.dir),
                    real: Arc::clone(&opened.real),
                    protected: opened.protected,
                };
                Ok(Base { start, opened })
            }
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// The regular file behind a descriptor.
    fn file(&self, fd: &Resource<Descriptor>) -> Result<(Arc<File>, Opened), FsError> {
        let opened = self.opened(fd)?;
        match self.table.get(fd)? {
            Descriptor::File(file) => Ok((Arc::clone(&file.file), opened)),
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// The file or directory behind a descriptor.
    fn either(&self, fd: &Resource<Descriptor>) -> Result<(Arc<File>, Opened), FsError> {
        let opened = self.opened(fd)?;
        match self.table.get(fd)? {
            Descriptor::File(file) => Ok((Arc::clone(&file.file), opened)),
            Descriptor::Dir(dir) => Ok((Arc::clone(&dir.dir), opened)),
        }
    }
}

/// Writes a refusal down.
fn refuse(record: &Record, what: &str, code: DenyCode, facts: String) {
    record.deny(Denial::new(code, what, clip(&facts)));
}

/// Takes bytes from the budget, or writes down that it is used up.
fn reserve(record: &Record, what: &str, meter: Meter, bytes: u64) -> Result<(), ()> {
    record.reserve(meter, bytes).map_err(|exhausted| {
        refuse(record, what, DenyCode::LimitReached, format!("{bytes} more bytes: {exhausted}"));
    })
}

/// A refusal in the words of `wasi:filesystem`.
fn guest_error(code: DenyCode) -> ErrorCode {
    match code {
        DenyCode::ReadOnly => ErrorCode::ReadOnly,
        DenyCode::SpecialFile => ErrorCode::Access,
        DenyCode::LimitReached => ErrorCode::InsufficientSpace,
        DenyCode::PathNotAllowed
        | DenyCode::ToolNotAllowed
        | DenyCode::NobodyToAsk
        | DenyCode::HostNotAllowed
        | DenyCode::AddressNotAllowed
        | DenyCode::RequestNotAllowed
        | DenyCode::SecretInReply
        | DenyCode::InterfaceNotGranted
        | DenyCode::DeniedByHook => ErrorCode::NotPermitted,
    }
}

/// An operating system's error in the words of `wasi:filesystem`.
fn error(errno: Errno) -> FsError {
    FsError::from(std::io::Error::from(errno))
}
