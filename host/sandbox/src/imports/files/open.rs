//! Opening of files and directories (`open-at`), and the directories a guest starts with.

use std::sync::Arc;

use belljar_overlay::walk::{FollowMode, PathEnd, file_type};
use belljar_overlay::{FoundEntry, OverlayView};
use belljar_policy::{DenyCode, MountAccess, ShownText, WORKSPACE};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, File, FsPerms, OpenMode};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};

use super::counter::OpenSlot;
use super::tree::FileTree;
use super::{
    BaseDir, FilesCtx, FilesView, OpenDescriptor, OverDir, OverlayTarget, SHOWN_PATH, on_tree,
    to_fs_error,
};

/// The options of a guest's request to open something.
pub(super) struct OpenRequest {
    follow: FollowMode,
    read: bool,
    pub(super) write: bool,
    create: bool,
    exclusive: bool,
    pub(super) truncate: bool,
    directory: bool,
}

impl OpenRequest {
    /// Converts the flags of `open-at`. Refuses flags for synchronous writing, and a directory combined with
    /// flags that make or truncate a file.
    fn from_flags(path: PathFlags, open: OpenFlags, flags: DescriptorFlags) -> FsResult<Self> {
        let sync = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(sync) {
            return Err(ErrorCode::Unsupported.into());
        }
        let create = open.contains(OpenFlags::CREATE);
        let exclusive = open.contains(OpenFlags::EXCLUSIVE);
        let truncate = open.contains(OpenFlags::TRUNCATE);
        let directory = open.contains(OpenFlags::DIRECTORY);
        if directory && (create || exclusive || truncate) {
            return Err(ErrorCode::Invalid.into());
        }
        let follow = path.contains(PathFlags::SYMLINK_FOLLOW) && !(create && exclusive);
        let write = flags.contains(DescriptorFlags::WRITE);
        Ok(Self {
            follow: if follow { FollowMode::Yes } else { FollowMode::No },
            read: flags.contains(DescriptorFlags::READ) || !write,
            write: write || create || truncate,
            create,
            exclusive,
            truncate,
            directory,
        })
    }

    /// The operating system's flag for reading, writing, or both.
    pub(super) fn access_flags(&self) -> OFlags {
        match (self.read, self.write) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (true | false, false) => OFlags::RDONLY,
        }
    }

    pub(super) fn file_flags(&self, create: bool) -> OFlags {
        // Does not block: if another program put a FIFO there meanwhile, opening it would wait for its other
        // end.
        let mut flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        flags |= self.access_flags();
        if create {
            flags |= OFlags::CREATE;
        }
        if create && self.exclusive {
            flags |= OFlags::EXCL;
        }
        flags
    }

    fn open_mode(&self) -> OpenMode {
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, self.read);
        mode.set(OpenMode::WRITE, self.write);
        mode
    }
}

impl FilesView<'_> {
    /// Opens a file or directory.
    pub(crate) fn open_path(
        &mut self,
        fd: &Resource<Descriptor>,
        path_flags: PathFlags,
        path: &str,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let base = self.find_directory(fd)?;
        let ask = OpenRequest::from_flags(path_flags, open_flags, flags)?;
        on_tree!(base, |tree| self.open_in(tree, &base, path, &ask))
    }

    fn open_in<T: FileTree>(
        &mut self,
        tree: &mut T,
        base: &BaseDir,
        path: &str,
        ask: &OpenRequest,
    ) -> FsResult<Resource<Descriptor>> {
        let place = self.ctx.resolve_path(tree, "open", base, path, ask.follow)?;
        if ask.write {
            self.ctx.may_write("open", &base.opened, &place)?;
        }
        let found = match tree.find_at(&place) {
            Ok(found) => Some(found),
            Err(Errno::NOENT) if ask.create => None,
            Err(errno) => return Err(to_fs_error(errno)),
        };
        let slot = self.ctx.acquire_slot("open")?;
        let Some(found) = found else {
            if ask.directory || place.must_be_dir {
                return Err(ErrorCode::NotDirectory.into());
            }
            self.ctx.count_made("open")?;
            return self.open_file(tree, base, &place, None, ask, slot);
        };
        match file_type(&found.stat) {
            _ if ask.create && ask.exclusive => Err(ErrorCode::Exist.into()),
            FileType::Directory if ask.write => Err(ErrorCode::IsDirectory.into()),
            FileType::Directory => self.open_dir(tree, base, &place, &found, slot),
            FileType::RegularFile if ask.directory || place.must_be_dir => {
                Err(ErrorCode::NotDirectory.into())
            }
            FileType::RegularFile => self.open_file(tree, base, &place, Some(&found), ask, slot),
            // A link is found here only if the guest asked not to follow links.
            FileType::Symlink => Err(ErrorCode::Loop.into()),
            _ => Err(self.ctx.refuse_special(&base.opened, &place.real)),
        }
    }

    /// Opens a directory, and makes a descriptor with the access that the mount and the path allow.
    fn open_dir<T: FileTree>(
        &mut self,
        tree: &T,
        base: &BaseDir,
        place: &PathEnd<T::Dir>,
        found: &FoundEntry,
        slot: Arc<OpenSlot>,
    ) -> FsResult<Resource<Descriptor>> {
        let (opened, over) = tree.open_dir(place, found).map_err(to_fs_error)?;
        let (perms, writes) = descriptor_perms(base, place);
        let mut dir = base.opened.mount.root.clone();
        dir.dir = opened;
        dir.perms = perms;
        dir.open_mode = OpenMode::READ;
        dir.open_mode.set(OpenMode::WRITE, writes);
        self.push_descriptor(Descriptor::Dir(dir), base, place, over, slot)
    }

    /// Opens or makes a file, records a change in the receipt, and makes the descriptor.
    fn open_file<T: FileTree>(
        &mut self,
        tree: &mut T,
        base: &BaseDir,
        place: &PathEnd<T::Dir>,
        found: Option<&FoundEntry>,
        ask: &OpenRequest,
        slot: Arc<OpenSlot>,
    ) -> FsResult<Resource<Descriptor>> {
        let (opened, over) = tree.open_file(self.ctx, base, place, found, ask)?;
        if found.is_none() {
            self.ctx.record_made(&base.opened.mount, &place.real);
        } else if ask.truncate {
            self.ctx.record_written(&base.opened.mount, &place.real);
        }
        let file = File::new(opened, descriptor_perms(base, place).0, ask.open_mode(), true);
        self.push_descriptor(Descriptor::File(file), base, place, over, slot)
    }

    /// Adds a descriptor to the resource table, with the facts that later calls check.
    fn push_descriptor<D>(
        &mut self,
        descriptor: Descriptor,
        base: &BaseDir,
        place: &PathEnd<D>,
        over: Option<OverlayTarget>,
        slot: Arc<OpenSlot>,
    ) -> FsResult<Resource<Descriptor>> {
        let opened = OpenDescriptor {
            mount: Arc::clone(&base.opened.mount),
            real: place.real.as_str().into(),
            protected: place.protected,
            over,
            slot,
        };
        let fd = self.table.push(descriptor)?;
        self.ctx.open.insert(fd.rep(), opened);
        Ok(fd)
    }

    /// Opens the mounts for the guest, each with its guest path. If the limit of open files is reached, the
    /// rest is left out.
    pub(crate) fn preopen_mounts(
        &mut self,
    ) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let mut found = Vec::new();
        let mut mounts = Vec::new();
        for mount in self.ctx.mounts.clone() {
            let name = mount.info.guest.to_string();
            if name == WORKSPACE {
                let names = self.ctx.workspace_names.iter();
                mounts.extend(names.map(|name| (mount.clone(), name.clone())));
            } else {
                mounts.push((mount, name));
            }
        }
        for (mount, name) in mounts {
            let Ok(slot) = self.ctx.acquire_slot("get-directories") else { break };
            let fd = self.table.push(Descriptor::Dir(mount.info.root.clone()))?;
            let root = || {
                OverlayTarget::Dir(Arc::new(OverDir { dir: OverlayView::root_ref(), lower: true }))
            };
            let opened = OpenDescriptor {
                over: mount.info.overlay.is_some().then(root),
                real: "".into(),
                protected: mount.info.protected,
                mount: Arc::clone(&mount.info),
                slot,
            };
            self.ctx.open.insert(fd.rep(), opened);
            found.push((fd, name));
        }
        Ok(found)
    }
}

impl FilesCtx {
    /// Refuses to open a FIFO, a device or a socket, and records the refusal.
    pub(super) fn refuse_special(&self, opened: &OpenDescriptor, real: &str) -> FsError {
        let path = opened.mount.guest_path(real);
        let shown = ShownText::clip_line(&path, SHOWN_PATH);
        let facts = format!("`{shown}` is neither a regular file nor a directory");
        self.refuse_operation("open", DenyCode::SpecialFile, facts)
    }
}

/// The permissions that wasmtime-wasi checks, a second time after belljar's own checks, and whether the
/// guest sees the directory as writable. Overlays are read-only for wasmtime-wasi, because writes go through
/// belljar.
fn descriptor_perms<D>(base: &BaseDir, place: &PathEnd<D>) -> (FsPerms, bool) {
    match base.opened.mount.access {
        MountAccess::ReadWrite if !place.protected => (FsPerms::ReadWrite, true),
        MountAccess::Overlay => (FsPerms::ReadOnly, !place.protected),
        MountAccess::ReadWrite | MountAccess::Read => (FsPerms::ReadOnly, false),
    }
}
