//! `wasi:filesystem`: belljar's own host over wasmtime-wasi's types.
//!
//! wasmtime-wasi checks access for each preopen, but not the amount written, names, or kinds of file. This
//! host checks on every call
//!
//! - the mount's access, so that read-only and read-write mounts can share a store;
//! - the protected names, on the path as resolved ([`walk`]) and not as spelled;
//! - that only regular files and directories are opened;
//! - bytes, open files, files made, entries listed.
//!
//! For example, writing `/workspace/belljar.toml` is refused although the mount is writable.
//!
//! A guest cannot make symbolic links, whatever its grants, because other programs of the user follow links
//! without checking mounts. For the same reason a guest cannot move links, nor write to a file with several
//! hard links, which may lead outside the mount.
//!
//! File operations run on the calling thread (another thread would cost several times the operation on a
//! local disk). [`FilesView::pace`] lets other tasks and timers run in between; slow operations (`sync`, long
//! listings) go to a blocking thread.

mod alias;
mod closed;
mod counter;
mod disk;
mod host;
mod mount;
pub(crate) mod names;
mod open;
mod over;
mod paths;
#[cfg(test)]
mod seam;
mod streams;
#[cfg(test)]
mod tests;
mod tree;
pub(crate) mod walk;

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use belljar_policy::{Access, DenyCode, Limits, Meter, Shown, WORKSPACE};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

use self::alias::Meant;
pub(crate) use self::closed::Closed;
use self::counter::{Counter, Slot};
use self::mount::MountInfo;
pub(crate) use self::mount::OpenMount;
use self::tree::Tree;
use self::walk::{Follow, HostDir, PathEnd, Start, WalkError, walk_by};
use crate::overlay::{DirRef, Fault, Found, Reader, Upper};
use crate::receipt::Denial;
use crate::receipt::record::{Record, clip};

/// Files, directories and hard links that one store may make. Bounded because an empty file uses an inode
/// without metered bytes.
pub(crate) const MAX_MADE: u64 = 10_000;
/// Directory entries of all open listings of one store. A listing is read as a whole, about 100 bytes an
/// entry.
pub(crate) const MAX_LISTED: u64 = 32_768;
/// Simultaneous streams of one store: one for each open file.
pub(crate) const MAX_STREAMS: u64 = 256;
/// Calls between two pauses in which other tasks run: usually some ten microseconds, and some milliseconds
/// for the longest paths.
const CALLS_PER_PAUSE: u32 = 16;
/// The workspace's other name, for programs without a concept of another current directory.
const HERE: &str = ".";
/// Characters of a path shown in a refusal.
const SHOWN_PATH: usize = 256;

/// The files of one store: mounts and open descriptors.
pub(crate) struct FilesCtx {
    mounts: Vec<OpenMount>,
    record: Arc<Record>,
    inner: WasiFilesystemCtx,
    /// The facts about each descriptor, by its number in the resource table. Added and removed with the
    /// resource; a descriptor without an entry is useless.
    open: HashMap<u32, Opened>,
    /// Open listings, by number in the resource table.
    listings: HashMap<u32, Listing>,
    listed: u64,
    files: Counter,
    streams: Counter,
    made: u64,
    calls: u32,
    /// The secret salt that hides the host's inode numbers in `metadata-hash`.
    salt: RandomState,
    /// The workspace's names among the preopened directories.
    workspace_names: Vec<String>,
}

/// The facts about an open descriptor.
#[derive(Clone)]
struct Opened {
    mount: Arc<MountInfo>,
    /// The path below the mount, with links resolved.
    real: Arc<str>,
    protected: bool,
    /// The object in an overlay, if the mount has one.
    over: Option<Over>,
    /// Freed when the descriptor and all its streams are dropped.
    slot: Arc<Slot>,
}

/// The object of an overlay that a descriptor refers to.
#[derive(Clone)]
enum Over {
    Dir(Arc<OverDir>),
    /// A file of the lower directory.
    Reader(Arc<Reader>),
    /// A file of the layer.
    Upper(Arc<Upper>),
}

/// A directory of an overlay.
struct OverDir {
    dir: DirRef,
    /// Whether the descriptor's own directory is the lower one; otherwise no lower directory exists.
    lower: bool,
}

/// An open file, whether its content is in the lower directory or the layer.
#[derive(Clone)]
pub(crate) struct Content {
    file: Arc<File>,
    over: Option<Over>,
}

/// An open listing.
struct Listing {
    /// The count of the listing's entries.
    held: u64,
    /// The remaining entries of an overlay's listing; other listings are in the resource table.
    merged: Option<std::vec::IntoIter<types::DirectoryEntry>>,
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
            workspace_names: vec![WORKSPACE.to_owned()],
        }
    }

    /// Sets the workspace's names for a command: `path`, and `.`, because programs of preview 1 have no other
    /// current directory, and resolve relative names there. If `path` is `/`, it is the only name, as with
    /// `--dir .::/`. INV-502: both names refer to the same mount with the same access, and to no other.
    pub(crate) fn open_at(&mut self, path: &str) {
        self.workspace_names = match path {
            "/" => vec![path.to_owned()],
            path => vec![HERE.to_owned(), path.to_owned()],
        };
    }

    /// Records a refusal and returns the guest's error.
    fn refuse(&self, what: &str, code: DenyCode, facts: String) -> FsError {
        refuse(&self.record, what, code, facts);
        guest_error(code).into()
    }

    /// Reserves one of the store's open files.
    fn slot(&self, what: &str) -> Result<Arc<Slot>, FsError> {
        match self.files.take() {
            Some(slot) => Ok(Arc::new(slot)),
            None => {
                let facts = format!("{} files are open already", self.files.limit());
                refuse(&self.record, what, DenyCode::LimitReached, facts);
                // The interface has no error for too many open files.
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

    /// Resolves a path. A path that leaves the starting directory is refused and recorded.
    fn walk<T: Tree>(
        &self,
        tree: &T,
        what: &str,
        from: &Base,
        path: &str,
        follow: Follow,
    ) -> Result<PathEnd<T::Dir>, FsError> {
        let first = tree.first(from);
        #[cfg(test)]
        if seam::allows_all() {
            // The only case in which the operating system gets a whole path.
            return Ok(PathEnd::of_name(first, path.into()));
        }
        match walk_by(tree, first, &from.start, path, follow) {
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

    /// Checks that a path may be written: the mount's access, then protected names, then closed directories.
    /// Returns the path's relation to protected links, for [`Self::may_move`].
    fn may_write<D: HostDir>(
        &self,
        what: &str,
        opened: &Opened,
        place: &PathEnd<D>,
    ) -> Result<Meant, FsError> {
        let mount = &opened.mount;
        let protected = place.protected || mount.closed.holds(place);
        self.may_write_real(what, mount, &place.real, protected)?;
        let meant = mount.meant(place);
        if meant == Meant::Itself {
            return Err(self.refuse_meant(what, mount, &place.real, "is what"));
        }
        Ok(meant)
    }

    /// Checks that a writable name may also be removed, replaced, or the target of a move, because these acts
    /// can change the meaning of a protected link.
    fn may_move<D>(
        &self,
        what: &str,
        opened: &Opened,
        place: &PathEnd<D>,
        meant: Meant,
    ) -> Result<(), FsError> {
        if meant == Meant::OnTheWay {
            let how = "is on the way to what";
            return Err(self.refuse_meant(what, &opened.mount, &place.real, how));
        }
        Ok(())
    }

    fn refuse_meant(&self, what: &str, mount: &MountInfo, real: &str, how: &str) -> FsError {
        let path = mount.guest_path(real);
        let shown = Shown::clipped(&path, SHOWN_PATH);
        let facts = format!("`{shown}` {how} a link with a protected name means");
        self.refuse(what, DenyCode::PathNotAllowed, facts)
    }

    /// Checks like [`Self::may_write`], for an open file.
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
            Access::Overlay | Access::ReadWrite if protected => {
                let path = path();
                let facts = format!("`{}` is protected", Shown::clipped(&path, SHOWN_PATH));
                Err(self.refuse(what, DenyCode::PathNotAllowed, facts))
            }
            Access::Overlay | Access::ReadWrite => Ok(()),
        }
    }

    /// Refuses to change a file with several hard links, which may lead outside the mount.
    fn has_one_name(
        &self,
        what: &str,
        mount: &MountInfo,
        real: &str,
        found: &Found,
    ) -> Result<(), FsError> {
        if walk::kind(&found.stat) != FileType::RegularFile || found.names <= 1 {
            return Ok(());
        }
        let path = mount.guest_path(real);
        let shown = Shown::clipped(&path, SHOWN_PATH);
        let facts = format!("`{shown}` has {} hard links", found.names);
        Err(self.refuse(what, DenyCode::PathNotAllowed, facts))
    }

    /// Reserves bytes for a write.
    fn reserve_write(&self, what: &str, bytes: u64) -> Result<(), FsError> {
        reserve(&self.record, what, Meter::Write, bytes)
            .map_err(|()| ErrorCode::InsufficientSpace.into())
    }

    /// The guest's error for a failed change.
    fn fault(&self, what: &str, fault: Fault) -> FsError {
        match fault {
            Fault::Errno(errno) => error(errno),
            Fault::Full(facts) => self.refuse(what, DenyCode::LimitReached, facts),
            Fault::Io(error) => error.into(),
        }
    }

    fn made(&self, mount: &MountInfo, real: &str) {
        self.record.path_made(&mount.guest_path(real));
    }

    fn moved(&self, mount: &MountInfo, from: &str, to: &str) {
        self.record.path_moved(&mount.guest_path(from), &mount.guest_path(to));
    }

    fn wrote(&self, mount: &MountInfo, real: &str) {
        self.record.path_written(&mount.guest_path(real));
    }

    /// A number for a file, constant in this store, that reveals nothing about the host.
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

/// An open directory at which a path begins.
struct Base {
    start: Start,
    opened: Opened,
}

impl FilesView<'_> {
    /// wasmtime-wasi's own host, for calls that need no check here.
    fn inner(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.ctx.inner, table: self.table }
    }

    /// Counts a call into the host, and regularly lets other tasks run. A guest that calls in a loop uses
    /// little fuel, so fuel alone would not make it yield.
    async fn pace(&mut self) {
        self.ctx.record.host_call();
        self.ctx.calls = self.ctx.calls.wrapping_add(1);
        if self.ctx.calls.is_multiple_of(CALLS_PER_PAUSE) {
            tokio::task::yield_now().await;
        }
    }

    /// Makes the next call yield, because this call was slow.
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
    fn file(&self, fd: &Resource<Descriptor>) -> Result<(Content, Opened), FsError> {
        let opened = self.opened(fd)?;
        match self.table.get(fd)? {
            Descriptor::File(file) => {
                let content = Content { file: Arc::clone(&file.file), over: opened.over.clone() };
                Ok((content, opened))
            }
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

impl Content {
    /// The file with the present content: a lower file may have been copied to the layer since it was opened.
    pub(crate) fn file(&self) -> &Arc<File> {
        match &self.over {
            Some(Over::Reader(reader)) => reader.moved().map_or(&self.file, |(_, file)| file),
            Some(Over::Dir(_) | Over::Upper(_)) | None => &self.file,
        }
    }

    /// The layer's file whose growth the quota limits, if the content is in the layer.
    pub(crate) fn upper(&self) -> Option<&Upper> {
        match &self.over {
            Some(Over::Upper(upper)) => Some(upper),
            Some(Over::Dir(_) | Over::Reader(_)) | None => None,
        }
    }
}

/// Runs code with the tree of a directory: a locked overlay, or the host's own file system.
macro_rules! on_tree {
    ($base:expr, |$tree:ident| $act:expr) => {
        match &$base.opened.mount.overlay {
            Some(overlay) => {
                let $tree = &mut overlay.view();
                $act
            }
            None => {
                let $tree = &mut $crate::imports::files::walk::Disk;
                $act
            }
        }
    };
}
use on_tree;

/// Records a refusal.
fn refuse(record: &Record, what: &str, code: DenyCode, facts: String) {
    record.deny(Denial::new(code, what, clip(&facts)));
}

/// Reserves bytes from the budget, or records its exhaustion.
fn reserve(record: &Record, what: &str, meter: Meter, bytes: u64) -> Result<(), ()> {
    record.reserve(meter, bytes).map_err(|exhausted| {
        refuse(record, what, DenyCode::LimitReached, format!("{bytes} more bytes: {exhausted}"));
    })
}

/// The `wasi:filesystem` error of a refusal.
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

/// The `wasi:filesystem` error of an operating system's error.
fn error(errno: Errno) -> FsError {
    FsError::from(std::io::Error::from(errno))
}
