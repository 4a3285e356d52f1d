//! `wasi:filesystem`: belljar's own implementation, with wasmtime-wasi's types.
//!
//! wasmtime-wasi checks the access of each preopened directory, but no names, no kinds of file, and no
//! amounts. This implementation checks on every call
//!
//! - the mount's access, so that read-only and read-write mounts can share a store;
//! - the protected names, on the path as resolved ([`resolve_path`]) and not as spelled;
//! - that only regular files and directories are opened;
//! - the limits of bytes, open files, new files and listed entries.
//!
//! For example, writing `/workspace/belljar.toml` is refused although the mount is writable.
//!
//! A guest cannot make symbolic links, whatever its grants, because the user's other programs follow links
//! without checking mounts. For the same reason it cannot move a link, nor write to a file with several hard
//! links, one of which may be outside of the mount.
//!
//! File operations run on the calling thread: on a local disk, another thread would cost several times as
//! much as the operation. [`FilesView::pace_call`] lets other tasks and timers run in between. Slow
//! operations (`sync`, long listings) run on a blocking thread.

mod alias;
mod closed;
mod counter;
mod disk;
mod host;
mod mount;
mod open;
mod over;
mod paths;
#[cfg(test)]
mod seam;
mod streams;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use belljar_overlay::walk::{
    FollowMode, HostDir, PathEnd, WalkError, WalkStart, file_type, walk_by,
};
use belljar_overlay::{ChangeFault, DirRef, FoundEntry, LowerReader, UpperFile};
use belljar_policy::{DenyCode, Limits, Meter, MountAccess, ShownText, WORKSPACE};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

use self::alias::ProtectedLinkRole;
pub(crate) use self::closed::ClosedPaths;
use self::counter::{OpenCounter, OpenSlot};
use self::mount::MountInfo;
pub(crate) use self::mount::OpenMount;
use self::tree::FileTree;
use crate::receipt::Denial;
use crate::receipt::record::{CallRecord, clip_text};

/// The most files, directories and hard links that one store may make: an empty file uses an inode of the
/// disk, but no bytes billed.
pub(crate) const MAX_MADE: u64 = 10_000;
/// The most entries in all open listings of a store. A listing is read as a whole, and an entry takes about
/// 100 bytes of memory.
pub(crate) const MAX_LISTED: u64 = 32_768;
/// The most open streams of a store: one for each open file.
pub(crate) const MAX_STREAMS: u64 = 256;
/// The number of calls after which other tasks may run: usually some ten microseconds of work, for the
/// longest paths some milliseconds.
const CALLS_PER_PAUSE: u32 = 16;
/// The workspace's second name for commands, which resolve relative paths at it.
const HERE: &str = ".";
/// The most characters of a path that a refusal shows.
const SHOWN_PATH: usize = 256;

/// The files of one store: mounts and open descriptors.
pub(crate) struct FilesCtx {
    mounts: Vec<OpenMount>,
    record: Arc<CallRecord>,
    inner: WasiFilesystemCtx,
    /// What is known about each open descriptor, by its number in the resource table. A descriptor without an
    /// entry here is refused.
    open: HashMap<u32, OpenDescriptor>,
    /// The open listings, by their number in the resource table.
    listings: HashMap<u32, OpenListing>,
    listed: u64,
    files: OpenCounter,
    streams: OpenCounter,
    made: u64,
    calls: u32,
    /// A random salt, so that `metadata-hash` does not reveal the host's inode numbers.
    salt: RandomState,
    /// The names under which a guest opens the workspace.
    workspace_names: Vec<String>,
}

/// What is known about an open descriptor.
#[derive(Clone)]
struct OpenDescriptor {
    mount: Arc<MountInfo>,
    /// The path relative to the mount, with links resolved.
    real: Arc<str>,
    protected: bool,
    /// What the descriptor refers to in the overlay, if the mount has one.
    over: Option<OverlayTarget>,
    /// Counts as one open file, until the descriptor and its streams are dropped.
    slot: Arc<OpenSlot>,
}

/// What a descriptor refers to in an overlay.
#[derive(Clone)]
enum OverlayTarget {
    Dir(Arc<OverDir>),
    /// A file of the lower directory, open for reading.
    Reader(Arc<LowerReader>),
    /// A file of the layer.
    Upper(Arc<UpperFile>),
}

/// A directory in an overlay.
struct OverDir {
    dir: DirRef,
    /// Whether the host has this directory below the overlay, so that the descriptor holds it open.
    lower: bool,
}

/// An open file, whose content is in the lower directory or in the layer.
#[derive(Clone)]
pub(crate) struct FileContent {
    file: Arc<File>,
    over: Option<OverlayTarget>,
}

/// An open listing of a directory.
struct OpenListing {
    /// How many entries the listing counts as, for [`MAX_LISTED`].
    held: u64,
    /// The entries that were not read yet, if belljar made the listing; otherwise the resource table has
    /// them.
    merged: Option<std::vec::IntoIter<types::DirectoryEntry>>,
}

/// The files of a store with its resource table, which the host functions need together.
pub(crate) struct FilesView<'a> {
    /// The files.
    pub(crate) ctx: &'a mut FilesCtx,
    /// The table of all resources of the store.
    pub(crate) table: &'a mut ResourceTable,
}

/// A store's data that has files.
pub(crate) trait HasFiles: Send + 'static {
    /// The files and the table, borrowed together.
    fn files_view(&mut self) -> FilesView<'_>;
}

/// Links `wasi:filesystem/types` and `wasi:filesystem/preopens`.
pub(crate) fn add_to_linker<T: HasFiles>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    types::add_to_linker::<T, FilesMarker>(linker, |data| data.files_view())?;
    preopens::add_to_linker::<T, FilesMarker>(linker, |data| data.files_view())
}

struct FilesMarker;

impl HasData for FilesMarker {
    type Data<'a> = FilesView<'a>;
}

impl FilesCtx {
    /// Makes the files of a new store, without a system call.
    pub(crate) fn new(mounts: &[OpenMount], limits: &Limits, record: Arc<CallRecord>) -> Self {
        Self {
            mounts: mounts.to_vec(),
            record,
            inner: WasiFilesystemCtx::default(),
            open: HashMap::new(),
            listings: HashMap::new(),
            listed: 0,
            files: OpenCounter::new(limits.open_files),
            streams: OpenCounter::new(MAX_STREAMS),
            made: 0,
            calls: 0,
            salt: RandomState::new(),
            workspace_names: vec![WORKSPACE.to_owned()],
        }
    }

    /// Sets the names of the workspace for a command: `path`, and `.`, at which programs of preview 1
    /// resolve relative names. If `path` is `/`, it is the only name, as with `--dir .::/`. INV-502: both
    /// names mean the same mount with the same access, and no other.
    pub(crate) fn open_at(&mut self, path: &str) {
        self.workspace_names = match path {
            "/" => vec![path.to_owned()],
            path => vec![HERE.to_owned(), path.to_owned()],
        };
    }

    /// Records a refusal, and returns the guest's error for it.
    fn refuse_operation(&self, what: &str, code: DenyCode, facts: String) -> FsError {
        record_refusal(&self.record, what, code, facts);
        guest_error(code).into()
    }

    /// Counts one more open file of the store, or refuses it.
    fn acquire_slot(&self, what: &str) -> Result<Arc<OpenSlot>, FsError> {
        match self.files.acquire_slot() {
            Some(slot) => Ok(Arc::new(slot)),
            None => {
                let facts = format!("{} files are open already", self.files.limit());
                record_refusal(&self.record, what, DenyCode::LimitReached, facts);
                // The interface has no error code for too many open files.
                Err(ErrorCode::InsufficientMemory.into())
            }
        }
    }

    /// Counts one more file, directory or link the guest makes, or refuses it.
    fn count_made(&mut self, what: &str) -> Result<(), FsError> {
        if self.made >= MAX_MADE {
            let facts = format!("{MAX_MADE} files and directories were made already");
            return Err(self.refuse_operation(what, DenyCode::LimitReached, facts));
        }
        self.made += 1;
        Ok(())
    }

    /// Resolves a path. If it leads out of the directory where it starts, refuses it and records the
    /// refusal.
    fn resolve_path<T: FileTree>(
        &self,
        tree: &T,
        what: &str,
        from: &BaseDir,
        path: &str,
        follow: FollowMode,
    ) -> Result<PathEnd<T::Dir>, FsError> {
        let first = tree.base_dir(from);
        #[cfg(test)]
        if seam::allows_all() {
            // The only case where the operating system gets a whole path, which a test wants.
            return Ok(PathEnd::from_name(first, path.into()));
        }
        match walk_by(tree, first, &from.start, path, follow) {
            Ok(place) => Ok(place),
            Err(WalkError::Errno(errno)) => Err(to_fs_error(errno)),
            Err(WalkError::Escape(why)) => {
                let facts = format!(
                    "`{}` from `{}`: {why}",
                    ShownText::clip_line(path, SHOWN_PATH),
                    ShownText::clip_line(&from.opened.guest_path(), SHOWN_PATH),
                );
                Err(self.refuse_operation(what, DenyCode::PathNotAllowed, facts))
            }
        }
    }

    /// Checks that a path may be written: first the mount's access, then protected names, then closed
    /// directories, then links with protected names. Returns the path's relation to such links, for
    /// [`Self::may_move`].
    fn may_write<D: HostDir>(
        &self,
        what: &str,
        opened: &OpenDescriptor,
        place: &PathEnd<D>,
    ) -> Result<ProtectedLinkRole, FsError> {
        let mount = &opened.mount;
        let protected = place.protected || mount.closed.contains_place(place);
        self.may_write_real(what, mount, &place.real, protected)?;
        let meant = mount.protected_link_role(place);
        if meant == ProtectedLinkRole::Itself {
            return Err(self.refuse_meant(what, mount, &place.real, "is what"));
        }
        Ok(meant)
    }

    /// Checks that a path that may be written may also be removed, moved or replaced: not if a link with a
    /// protected name leads through it, because the link would then mean something else.
    fn may_move<D>(
        &self,
        what: &str,
        opened: &OpenDescriptor,
        place: &PathEnd<D>,
        meant: ProtectedLinkRole,
    ) -> Result<(), FsError> {
        if meant == ProtectedLinkRole::OnTheWay {
            let how = "is on the way to what";
            return Err(self.refuse_meant(what, &opened.mount, &place.real, how));
        }
        Ok(())
    }

    fn refuse_meant(&self, what: &str, mount: &MountInfo, real: &str, how: &str) -> FsError {
        let path = mount.guest_path(real);
        let shown = ShownText::clip_line(&path, SHOWN_PATH);
        let facts = format!("`{shown}` {how} a link with a protected name means");
        self.refuse_operation(what, DenyCode::PathNotAllowed, facts)
    }

    /// Checks like [`Self::may_write`], for a file open already.
    fn may_write_open(&self, what: &str, opened: &OpenDescriptor) -> Result<(), FsError> {
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
            MountAccess::Read => {
                let facts = format!(
                    "`{}`: the mount `{}` is read-only",
                    ShownText::clip_line(&path(), SHOWN_PATH),
                    mount.guest
                );
                Err(self.refuse_operation(what, DenyCode::ReadOnly, facts))
            }
            MountAccess::Overlay | MountAccess::ReadWrite if protected => {
                let path = path();
                let facts = format!("`{}` is protected", ShownText::clip_line(&path, SHOWN_PATH));
                Err(self.refuse_operation(what, DenyCode::PathNotAllowed, facts))
            }
            MountAccess::Overlay | MountAccess::ReadWrite => Ok(()),
        }
    }

    /// Refuses to change a file with several hard links, because one may be outside of the mount.
    fn check_single_name(
        &self,
        what: &str,
        mount: &MountInfo,
        real: &str,
        found: &FoundEntry,
    ) -> Result<(), FsError> {
        if file_type(&found.stat) != FileType::RegularFile || found.names <= 1 {
            return Ok(());
        }
        let path = mount.guest_path(real);
        let shown = ShownText::clip_line(&path, SHOWN_PATH);
        let facts = format!("`{shown}` has {} hard links", found.names);
        Err(self.refuse_operation(what, DenyCode::PathNotAllowed, facts))
    }

    /// Bills bytes to the budget before a write, or refuses the write.
    fn reserve_write(&self, what: &str, bytes: u64) -> Result<(), FsError> {
        reserve_bytes(&self.record, what, Meter::Write, bytes)
            .map_err(|()| ErrorCode::InsufficientSpace.into())
    }

    /// The guest's error for a change that failed.
    fn change_error(&self, what: &str, fault: ChangeFault) -> FsError {
        match fault {
            ChangeFault::Errno(errno) => to_fs_error(errno),
            ChangeFault::Full(facts) => self.refuse_operation(what, DenyCode::LimitReached, facts),
            ChangeFault::Io(error) => error.into(),
        }
    }

    fn record_made(&self, mount: &MountInfo, real: &str) {
        self.record.path_made(&mount.guest_path(real));
    }

    fn record_moved(&self, mount: &MountInfo, from: &str, to: &str) {
        self.record.path_moved(&mount.guest_path(from), &mount.guest_path(to));
    }

    fn record_written(&self, mount: &MountInfo, real: &str) {
        self.record.path_written(&mount.guest_path(real));
    }

    /// Two numbers that identify a file within this store, and reveal nothing about the host.
    fn metadata_hash(&self, stat: &Stat) -> types::MetadataHashValue {
        let of = |part: u8| self.salt.hash_one((part, stat.st_dev, stat.st_ino));
        types::MetadataHashValue { lower: of(0), upper: of(1) }
    }
}

impl OpenDescriptor {
    fn guest_path(&self) -> String {
        self.mount.guest_path(&self.real)
    }
}

/// The open directory where a path starts.
struct BaseDir {
    start: WalkStart,
    opened: OpenDescriptor,
}

impl FilesView<'_> {
    /// wasmtime-wasi's own implementation, for calls that need no check of belljar's.
    fn wasi_view(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.ctx.inner, table: self.table }
    }

    /// Counts a call into the host, and now and then lets other tasks run. Fuel alone would not do that,
    /// because a guest that calls in a loop uses little.
    async fn pace_call(&mut self) {
        self.ctx.record.host_call();
        self.ctx.calls = self.ctx.calls.wrapping_add(1);
        if self.ctx.calls.is_multiple_of(CALLS_PER_PAUSE) {
            tokio::task::yield_now().await;
        }
    }

    /// Lets other tasks run at the next call, because this one took long.
    fn yield_next(&mut self) {
        self.ctx.calls = u32::MAX;
    }

    fn find_descriptor(&self, fd: &Resource<Descriptor>) -> Result<OpenDescriptor, FsError> {
        self.ctx.open.get(&fd.rep()).cloned().ok_or_else(|| ErrorCode::BadDescriptor.into())
    }

    /// The directory a descriptor refers to.
    fn find_directory(&self, fd: &Resource<Descriptor>) -> Result<BaseDir, FsError> {
        let opened = self.find_descriptor(fd)?;
        match self.table.get(fd)? {
            Descriptor::Dir(dir) => {
                let start = WalkStart {
                    dir: Arc::clone(&dir.dir),
                    real: Arc::clone(&opened.real),
                    protected: opened.protected,
                };
                Ok(BaseDir { start, opened })
            }
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// The regular file a descriptor refers to.
    fn find_file(
        &self,
        fd: &Resource<Descriptor>,
    ) -> Result<(FileContent, OpenDescriptor), FsError> {
        let opened = self.find_descriptor(fd)?;
        match self.table.get(fd)? {
            Descriptor::File(file) => {
                let content =
                    FileContent { file: Arc::clone(&file.file), over: opened.over.clone() };
                Ok((content, opened))
            }
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// The file or directory a descriptor refers to.
    fn find_object(
        &self,
        fd: &Resource<Descriptor>,
    ) -> Result<(Arc<File>, OpenDescriptor), FsError> {
        let opened = self.find_descriptor(fd)?;
        match self.table.get(fd)? {
            Descriptor::File(file) => Ok((Arc::clone(&file.file), opened)),
            Descriptor::Dir(dir) => Ok((Arc::clone(&dir.dir), opened)),
        }
    }
}

impl FileContent {
    /// The file to read or write now: a file of the lower directory may have been copied to the layer since
    /// it was opened.
    pub(crate) fn current_file(&self) -> &Arc<File> {
        match &self.over {
            Some(OverlayTarget::Reader(reader)) => {
                reader.moved_copy().map_or(&self.file, |(_, file)| file)
            }
            Some(OverlayTarget::Dir(_) | OverlayTarget::Upper(_)) | None => &self.file,
        }
    }

    /// The file of the layer, whose growth counts against the overlay's quota; `None` outside of a layer.
    pub(crate) fn upper_file(&self) -> Option<&UpperFile> {
        match &self.over {
            Some(OverlayTarget::Upper(upper)) => Some(upper),
            Some(OverlayTarget::Dir(_) | OverlayTarget::Reader(_)) | None => None,
        }
    }
}

/// Runs code on the files of a mount: on its overlay, locked, or else on the host's own directories.
macro_rules! on_tree {
    ($base:expr, |$tree:ident| $act:expr) => {
        match &$base.opened.mount.overlay {
            Some(overlay) => {
                let $tree = &mut overlay.lock_view();
                $act
            }
            None => {
                let $tree = &mut belljar_overlay::walk::DiskTree;
                $act
            }
        }
    };
}
use on_tree;

/// Records a refusal in the call's record.
fn record_refusal(record: &CallRecord, what: &str, code: DenyCode, facts: String) {
    record.add_denial(Denial::new(code, what, clip_text(&facts)));
}

/// Bills bytes to the budget; if it has not so many left, records that and fails.
fn reserve_bytes(record: &CallRecord, what: &str, meter: Meter, bytes: u64) -> Result<(), ()> {
    record.reserve_bytes(meter, bytes).map_err(|exhausted| {
        record_refusal(
            record,
            what,
            DenyCode::LimitReached,
            format!("{bytes} more bytes: {exhausted}"),
        );
    })
}

/// The guest's error code for a refusal.
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

/// The guest's error for an error of the operating system.
fn to_fs_error(errno: Errno) -> FsError {
    FsError::from(std::io::Error::from(errno))
}
