//! `open-at` and the preopened directories.

use std::fs::File as StdFile;
use std::sync::Arc;

use belljar_policy::{Access, DenyCode, Shown};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, File, FsPerms, OpenMode};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};

use super::ledger::Slot;
use super::walk::{Follow, Place, kind};
use super::{Base, FilesView, Opened, SHOWN_PATH, error};

/// What a guest asks when it opens something.
struct Ask {
    follow: Follow,
    read: bool,
    write: bool,
    create: bool,
    exclusive: bool,
    truncate: bool,
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

    fn file_flags(&self, create: bool) -> OFlags {
        // Nonblocking: were a FIFO swapped in, the open would else wait for its other end.
        let mut flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        flags |= match (self.read, self.write) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (true | false, false) => OFlags::RDONLY,
        };
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
    /// Opens a file or directory. Every check that concerns the file itself is made on the
    /// open file, before anything of it changes; truncation comes last.
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
        let place = self.ctx.walk("open", &base, path, ask.follow)?;
        if ask.write {
            self.ctx.may_write("open", &base.opened, &place)?;
        }
        let found = match place.stat() {
            Ok(stat) => Some(kind(&stat)),
            Err(Errno::NOENT) if ask.create => None,
            Err(errno) => return Err(error(errno)),
        };
        let slot = self.ctx.slot("open")?;
        match found {
            Some(_) if ask.create && ask.exclusive => Err(ErrorCode::Exist.into()),
            Some(FileType::Directory) if ask.write => Err(ErrorCode::IsDirectory.into()),
            Some(FileType::Directory) => self.open_dir(&base, &place, slot),
            Some(FileType::RegularFile) | None if ask.directory || place.must_be_dir => {
                Err(ErrorCode::NotDirectory.into())
            }
            Some(FileType::RegularFile) => self.open_file(&base, &place, &ask, false, slot),
            None => {
                self.ctx.make("open")?;
                self.open_file(&base, &place, &ask, true, slot)
            }
            // Only where it was asked not to follow it.
            Some(FileType::Symlink) => Err(ErrorCode::Loop.into()),
            Some(_) => Err(self.special(&base.opened, &place.real)),
        }
    }

    fn open_dir(
        &mut self,
        base: &Base,
        place: &Place,
        slot: Arc<Slot>,
    ) -> FsResult<Resource<Descriptor>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(place.dir(), place.arg(), flags, Mode::empty()).map_err(error)?;
        let perms = perms(base, place);
        let mut dir = base.opened.mount.root.clone();
        dir.dir = Arc::new(StdFile::from(opened));
        dir.perms = perms;
        dir.open_mode = OpenMode::READ;
        dir.open_mode.set(OpenMode::WRITE, perms == FsPerms::ReadWrite);
        self.push(Descriptor::Dir(dir), base, place, slot)
    }

    fn open_file(
        &mut self,
        base: &Base,
        place: &Place,
        ask: &Ask,
        create: bool,
        slot: Arc<Slot>,
    ) -> FsResult<Resource<Descriptor>> {
        // The process's umask narrows it.
        let mode = Mode::from_raw_mode(0o666);
        let opened =
            openat(place.dir(), place.arg(), ask.file_flags(create), mode).map_err(error)?;
        let stat = fstat(&opened).map_err(error)?;
        if kind(&stat) != FileType::RegularFile {
            return Err(self.special(&base.opened, &place.real));
        }
        if ask.write {
            self.ctx.has_one_name("open", &base.opened.mount, &place.real, &stat)?;
        }
        let file = StdFile::from(opened);
        if ask.truncate {
            file.set_len(0)?;
        }
        if create || ask.truncate {
            self.ctx.wrote(&base.opened.mount, &place.real);
        }
        let file = File::new(file, perms(base, place), ask.mode(), true);
        self.push(Descriptor::File(file), base, place, slot)
    }

    fn push(
        &mut self,
        descriptor: Descriptor,
        base: &Base,
        place: &Place,
        slot: Arc<Slot>,
    ) -> FsResult<Resource<Descriptor>> {
        let opened = Opened {
            mount: Arc::clone(&base.opened.mount),
            real: place.real.as_str().into(),
            protected: place.protected,
            slot,
        };
        let fd = self.table.push(descriptor)?;
        self.ctx.open.insert(fd.rep(), opened);
        Ok(fd)
    }

    /// Refuses a FIFO, a device, a socket.
    fn special(&self, opened: &Opened, real: &str) -> FsError {
        let path = opened.mount.guest_path(real);
        let shown = Shown::clipped(&path, SHOWN_PATH);
        let facts = format!("`{shown}` is neither a regular file nor a directory");
        self.ctx.refuse("open", DenyCode::SpecialFile, facts)
    }

    /// The mounts, as many as may be open.
    pub(crate) fn preopens(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let mut found = Vec::new();
        for mount in self.ctx.mounts.clone() {
            let Ok(slot) = self.ctx.slot("get-directories") else { break };
            let fd = self.table.push(Descriptor::Dir(mount.info.root.clone()))?;
            let opened = Opened {
                real: "".into(),
                protected: mount.info.protected,
                mount: Arc::clone(&mount.info),
                slot,
            };
            self.ctx.open.insert(fd.rep(), opened);
            found.push((fd, mount.info.guest.to_string()));
        }
        Ok(found)
    }
}

/// What wasmtime-wasi may do with the descriptor: the second layer below our own checks.
fn perms(base: &Base, place: &Place) -> FsPerms {
    match base.opened.mount.access {
        Access::ReadWrite if !place.protected => FsPerms::ReadWrite,
        Access::ReadWrite | Access::Read => FsPerms::ReadOnly,
    }
}
