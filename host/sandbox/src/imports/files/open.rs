//! `open-at` and the preopened directories.

use std::sync::Arc;

use belljar_policy::{Access, DenyCode, Shown, WORKSPACE};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, File, FsPerms, OpenMode};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};

use super::counter::Slot;
use super::tree::Tree;
use super::walk::{Follow, PathEnd, kind};
use super::{Base, FilesCtx, FilesView, Opened, Over, OverDir, SHOWN_PATH, error, on_tree};
use crate::overlay::{Found, View};

/// The options of a guest's open request.
pub(super) struct Ask {
    follow: Follow,
    read: bool,
    pub(super) write: bool,
    create: bool,
    exclusive: bool,
    pub(super) truncate: bool,
    directory: bool,
}

impl Ask {
    fn of(path: PathFlags, open: OpenFlags, flags: DescriptorFlags) -> FsResult<Self> {
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
            follow: if follow { Follow::Yes } else { Follow::No },
            read: flags.contains(DescriptorFlags::READ) || !write,
            write: write || create || truncate,
            create,
            exclusive,
            truncate,
            directory,
        })
    }

    /// The flags for reading, writing, or both.
    pub(super) fn access(&self) -> OFlags {
        match (self.read, self.write) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (true | false, false) => OFlags::RDONLY,
        }
    }

    pub(super) fn file_flags(&self, create: bool) -> OFlags {
        // Nonblocking, because opening a swapped-in FIFO would wait for its other end.
        let mut flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        flags |= self.access();
        if create {
            flags |= OFlags::CREATE;
        }
        if create && self.exclusive {
            flags |= OFlags::EXCL;
        }
        flags
    }

    fn mode(&self) -> OpenMode {
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, self.read);
        mode.set(OpenMode::WRITE, self.write);
        mode
    }
}

impl FilesView<'_> {
    /// Opens a file or directory.
    pub(crate) fn open(
        &mut self,
        fd: &Resource<Descriptor>,
        path_flags: PathFlags,
        path: &str,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let base = self.base(fd)?;
        let ask = Ask::of(path_flags, open_flags, flags)?;
        on_tree!(base, |tree| self.open_in(tree, &base, path, &ask))
    }

    fn open_in<T: Tree>(
        &mut self,
        tree: &mut T,
        base: &Base,
        path: &str,
        ask: &Ask,
    ) -> FsResult<Resource<Descriptor>> {
        let place = self.ctx.walk(tree, "open", base, path, ask.follow)?;
        if ask.write {
            self.ctx.may_write("open", &base.opened, &place)?;
        }
        let found = match tree.find(&place) {
            Ok(found) => Some(found),
            Err(Errno::NOENT) if ask.create => None,
            Err(errno) => return Err(error(errno)),
        };
        let slot = self.ctx.slot("open")?;
        let Some(found) = found else {
            if ask.directory || place.must_be_dir {
                return Err(ErrorCode::NotDirectory.into());
            }
            self.ctx.make("open")?;
            return self.open_file(tree, base, &place, None, ask, slot);
        };
        match kind(&found.stat) {
            _ if ask.create && ask.exclusive => Err(ErrorCode::Exist.into()),
            FileType::Directory if ask.write => Err(ErrorCode::IsDirectory.into()),
            FileType::Directory => self.open_dir(tree, base, &place, &found, slot),
            FileType::RegularFile if ask.directory || place.must_be_dir => {
                Err(ErrorCode::NotDirectory.into())
            }
            FileType::RegularFile => self.open_file(tree, base, &place, Some(&found), ask, slot),
            // Only reached if the open must not follow links.
            FileType::Symlink => Err(ErrorCode::Loop.into()),
            _ => Err(self.ctx.special(&base.opened, &place.real)),
        }
    }

    fn open_dir<T: Tree>(
        &mut self,
        tree: &T,
        base: &Base,
        place: &PathEnd<T::Dir>,
        found: &Found,
        slot: Arc<Slot>,
    ) -> FsResult<Resource<Descriptor>> {
        let (opened, over) = tree.open_dir(place, found).map_err(error)?;
        let (perms, writes) = perms(base, place);
        let mut dir = base.opened.mount.root.clone();
        dir.dir = opened;
        dir.perms = perms;
        dir.open_mode = OpenMode::READ;
        dir.open_mode.set(OpenMode::WRITE, writes);
        self.push(Descriptor::Dir(dir), base, place, over, slot)
    }

    fn open_file<T: Tree>(
        &mut self,
        tree: &mut T,
        base: &Base,
        place: &PathEnd<T::Dir>,
        found: Option<&Found>,
        ask: &Ask,
        slot: Arc<Slot>,
    ) -> FsResult<Resource<Descriptor>> {
        let (opened, over) = tree.open_file(self.ctx, base, place, found, ask)?;
        if found.is_none() {
            self.ctx.made(&base.opened.mount, &place.real);
        } else if ask.truncate {
            self.ctx.wrote(&base.opened.mount, &place.real);
        }
        let file = File::new(opened, perms(base, place).0, ask.mode(), true);
        self.push(Descriptor::File(file), base, place, over, slot)
    }

    fn push<D>(
        &mut self,
        descriptor: Descriptor,
        base: &Base,
        place: &PathEnd<D>,
        over: Option<Over>,
        slot: Arc<Slot>,
    ) -> FsResult<Resource<Descriptor>> {
        let opened = Opened {
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

    /// The mounts as preopened directories, as many as may be open.
    pub(crate) fn preopens(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
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
            let Ok(slot) = self.ctx.slot("get-directories") else { break };
            let fd = self.table.push(Descriptor::Dir(mount.info.root.clone()))?;
            let root = || Over::Dir(Arc::new(OverDir { dir: View::root(), lower: true }));
            let opened = Opened {
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
    /// Refuses a FIFO, a device, a socket.
    pub(super) fn special(&self, opened: &Opened, real: &str) -> FsError {
        let path = opened.mount.guest_path(real);
        let shown = Shown::clipped(&path, SHOWN_PATH);
        let facts = format!("`{shown}` is neither a regular file nor a directory");
        self.refuse("open", DenyCode::SpecialFile, facts)
    }
}

/// wasmtime-wasi's permissions on the descriptor, a second layer below belljar's own checks; and whether the
/// directory is reported as writable.
fn perms<D>(base: &Base, place: &PathEnd<D>) -> (FsPerms, bool) {
    match base.opened.mount.access {
        Access::ReadWrite if !place.protected => (FsPerms::ReadWrite, true),
        Access::Overlay => (FsPerms::ReadOnly, !place.protected),
        Access::ReadWrite | Access::Read => (FsPerms::ReadOnly, false),
    }
}
