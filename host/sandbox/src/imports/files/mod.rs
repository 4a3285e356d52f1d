//! `wasi:filesystem`: belljar's own host over wasmtime-wasi's types.
//!
//! wasmtime-wasi checks access for each preopen, but not the amount written, names, or kinds of file. This
//! host checks on every call
//!
//! - the mount's access, so that read-only and read-write mounts can share a store;
//! - the protected names, on the path as resolved ([`resolve_path`]) and not as spelled;
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
//! local disk). [`FilesView::pace_call`] lets other tasks and timers run in between; slow operations (`sync`, long
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
use self::walk::{FollowMode, HostDir, PathEnd, WalkError, WalkStart, walk_by};
use crate::overlay::{ChangeFault, DirRef, FoundEntry, LowerReader, UpperFile};
use crate::receipt::Denial;
use crate::receipt::record::{CallRecord, clip_text};

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
    record: Arc<CallRecord>,
    inner: WasiFilesystemCtx,
    /// The facts about each descriptor, by its number in the resource table. Added and removed with the
    /// resource; a descriptor without an entry is useless.
    open: HashMap<u32, OpenDescriptor>,
    /// Open listings, by number in the resource table.
    listings: HashMap<u32, OpenListing>,
    listed: u64,
    files: OpenCounter,
    streams: OpenCounter,
    made: u64,
    calls: u32,
    /// The secret salt that hides the host's inode numbers in `metadata-hash`.
    salt: RandomState,
    /// The workspace's names among the preopened directories.
    workspace_names: Vec<String>,
}

/// The facts about an open descriptor.
#[derive(Clone)]
struct OpenDescriptor {
    mount: Arc<MountInfo>,
    /// The path below the mount, with links resolved.
    real: Arc<str>,
    protected: bool,
    /// The object in an overlay, if the mount has one.
    over: Option<OverlayTarget>,
    /// The place in the count of open files; freed with the descriptor and the last of its streams.
    slot: Arc<OpenSlot>,
}

/// The object of an overlay that a descriptor refers to.
#[derive(Clone)]
enum OverlayTarget {
    Dir(Arc<OverDir>),
    /// A file of the lower directory.
    Reader(Arc<LowerReader>),
    /// A file of the layer.
    Upper(Arc<UpperFile>),
}

/// A directory of an overlay.
struct OverDir {
    dir: DirRef,
    /// Whether the descriptor's own directory is the lower one; otherwise no lower directory exists.
    lower: bool,
}

/// An open file, whether its content is in the lower directory or the layer.
#[derive(Clone)]
pub(crate) struct FileContent {
    file: Arc<File>,
    over: Option<OverlayTarget>,
}

/// An open listing.
struct OpenListing {
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
    /// The files of a new store. No system call is made.
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
    fn refuse_operation(&self, what: &str, code: DenyCode, facts: String) -> FsError {
        record_refusal(&self.record, what, code, facts);
        guest_error(code).into()
    }

    /// Reserves one of the store's open files.
    fn acquire_slot(&self, what: &str) -> Result<Arc<OpenSlot>, FsError> {
        match self.files.acquire_slot() {
            Some(slot) => Ok(Arc::new(slot)),
            None => {
                let facts = format!("{} files are open already", self.files.limit());
                record_refusal(&self.record, what, DenyCode::LimitReached, facts);
                // The interface has no error for too many open files.
                Err(ErrorCode::InsufficientMemory.into())
            }
        }
    }

    /// Counts one more file, directory or link.
    fn count_made(&mut self, what: &str) -> Result<(), FsError> {
        if self.made >= MAX_MADE {
            let facts = format!("{MAX_MADE} files and directories were made already");
            return Err(self.refuse_operation(what, DenyCode::LimitReached, facts));
        }
        self.made += 1;
        Ok(())
    }

    /// Resolves a path. A path that leaves the starting directory is refused and recorded.
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
            // The only case in which the operating system gets a whole path.
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

    /// Checks that a path may be written: the mount's access, then protected names, then closed directories.
    /// Returns the path's relation to protected links, for [`Self::may_move`].
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

    /// Checks that a writable name may also be removed, replaced, or the target of a move, because these acts
    /// can change the meaning of a protected link.
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

    /// Checks like [`Self::may_write`], for an open file.
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

    /// Refuses to change a file with several hard links, which may lead outside the mount.
    fn check_single_name(
        &self,
        what: &str,
        mount: &MountInfo,
        real: &str,
        found: &FoundEntry,
    ) -> Result<(), FsError> {
        if walk::file_type(&found.stat) != FileType::RegularFile || found.names <= 1 {
            return Ok(());
        }
        let path = mount.guest_path(real);
        let shown = ShownText::clip_line(&path, SHOWN_PATH);
        let facts = format!("`{shown}` has {} hard links", found.names);
        Err(self.refuse_operation(what, DenyCode::PathNotAllowed, facts))
    }

    /// Reserves bytes for a write.
    fn reserve_write(&self, what: &str, bytes: u64) -> Result<(), FsError> {
        reserve_bytes(&self.record, what, Meter::Write, bytes)
            .map_err(|()| ErrorCode::InsufficientSpace.into())
    }

    /// The guest's error for a failed change.
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

    /// A number for a file, constant in this store, that reveals nothing about the host.
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

/// An open directory at which a path begins.
struct BaseDir {
    start: WalkStart,
    opened: OpenDescriptor,
}

impl FilesView<'_> {
    /// wasmtime-wasi's own host, for calls that need no check here.
    fn wasi_view(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.ctx.inner, table: self.table }
    }

    /// Counts a call into the host, and regularly lets other tasks run. A guest that calls in a loop uses
    /// little fuel, so fuel alone would not make it yield.
    async fn pace_call(&mut self) {
        self.ctx.record.host_call();
        self.ctx.calls = self.ctx.calls.wrapping_add(1);
        if self.ctx.calls.is_multiple_of(CALLS_PER_PAUSE) {
            tokio::task::yield_now().await;
        }
    }

    /// Makes the next call yield, because this call was slow.
    fn yield_next(&mut self) {
        self.ctx.calls = u32::MAX;
    }

    fn find_descriptor(&self, fd: &Resource<Descriptor>) -> Result<OpenDescriptor, FsError> {
        self.ctx.open.get(&fd.rep()).cloned().ok_or_else(|| ErrorCode::BadDescriptor.into())
    }

    /// The directory behind a descriptor.
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

    /// The regular file behind a descriptor.
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

    /// The file or directory behind a descriptor.
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
    /// The file with the present content: a lower file may have been copied to the layer since it was opened.
    pub(crate) fn current_file(&self) -> &Arc<File> {
        match &self.over {
            Some(OverlayTarget::Reader(reader)) => {
                reader.moved_copy().map_or(&self.file, |(_, file)| file)
            }
            Some(OverlayTarget::Dir(_) | OverlayTarget::Upper(_)) | None => &self.file,
        }
    }

    /// The layer's file whose growth the quota limits, if the content is in the layer.
    pub(crate) fn upper_file(&self) -> Option<&UpperFile> {
        match &self.over {
            Some(OverlayTarget::Upper(upper)) => Some(upper),
            Some(OverlayTarget::Dir(_) | OverlayTarget::Reader(_)) | None => None,
        }
    }
}

/// Runs code with the tree of a directory: a locked overlay, or the host's own file system.
macro_rules! on_tree {
    ($base:expr, |$tree:ident| $act:expr) => {
        match &$base.opened.mount.overlay {
            Some(overlay) => {
                let $tree = &mut overlay.lock_view();
                $act
            }
            None => {
                let $tree = &mut $crate::imports::files::walk::DiskTree;
                $act
            }
        }
    };
}
use on_tree;

/// Records a refusal.
fn record_refusal(record: &CallRecord, what: &str, code: DenyCode, facts: String) {
    record.add_denial(Denial::new(code, what, clip_text(&facts)));
}

/// Reserves bytes from the budget, or records its exhaustion.
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
fn to_fs_error(errno: Errno) -> FsError {
    FsError::from(std::io::Error::from(errno))
}
