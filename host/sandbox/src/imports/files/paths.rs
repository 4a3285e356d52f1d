//! Operations on paths other than opening: make, remove, rename, link, look.

use std::os::fd::AsFd;
use std::sync::Arc;

use belljar_policy::{DenyCode, Shown};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, fchmod,
    fstat, linkat, mkdirat, openat, readlinkat, renameat, unlinkat, utimensat,
};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, OpenMode};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorStat, DescriptorType, ErrorCode, NewTimestamp, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};

use super::alias::{Content, Meant, content};
use super::walk::{Follow, Place, kind};
use super::{Base, FilesView, Opened, SHOWN_PATH, error};

impl FilesView<'_> {
    /// Resolves a path that is about to be written. The last name is not followed.
    fn target(
        &self,
        what: &str,
        fd: &Resource<Descriptor>,
        path: &str,
    ) -> Result<(Base, Place), FsError> {
        let (base, place, _) = self.writable(what, fd, path)?;
        Ok((base, place))
    }

    fn writable(
        &self,
        what: &str,
        fd: &Resource<Descriptor>,
        path: &str,
    ) -> Result<(Base, Place, Meant), FsError> {
        let base = self.base(fd)?;
        let place = self.ctx.walk(what, &base, path, Follow::No)?;
        let meant = self.ctx.may_write(what, &base.opened, &place)?;
        Ok((base, place, meant))
    }

    /// Resolves a path of which the last name is about to go, to come from elsewhere, or to be
    /// replaced.
    fn moved(
        &self,
        what: &str,
        fd: &Resource<Descriptor>,
        path: &str,
    ) -> Result<(Base, Place), FsError> {
        let (base, place, meant) = self.writable(what, fd, path)?;
        self.ctx.may_move(what, &base.opened, &place, meant)?;
        Ok((base, place))
    }

    fn refuse_place(&self, what: &str, base: &Base, place: &Place, why: &str) -> FsError {
        let path = base.opened.mount.guest_path(&place.real);
        let facts = format!("`{}` {why}", Shown::clipped(&path, SHOWN_PATH));
        self.ctx.refuse(what, DenyCode::PathNotAllowed, facts)
    }

    /// Whether what is open was opened to be written, when all was looked at; of a directory, whether
    /// it may be now.
    pub(super) fn is_for_writing(
        &self,
        what: &str,
        fd: &Resource<Descriptor>,
        opened: &Opened,
    ) -> Result<(), FsError> {
        let may = match self.table.get(fd)? {
            Descriptor::File(file) => file.open_mode.contains(OpenMode::WRITE),
            Descriptor::Dir(dir) => !opened.mount.closed.reaches(dir.dir.as_fd()),
        };
        if may {
            return Ok(());
        }
        let path = opened.guest_path();
        let facts = format!("`{}` is not open for writing", Shown::clipped(&path, SHOWN_PATH));
        Err(self.ctx.refuse(what, DenyCode::PathNotAllowed, facts))
    }

    pub(crate) fn make_dir(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<()> {
        let (base, place) = self.target("create-directory", fd, path)?;
        if place.name.is_none() {
            return Err(ErrorCode::Exist.into());
        }
        self.ctx.make("create-directory")?;
        // The process's umask narrows it.
        mkdirat(place.dir(), place.arg(), Mode::from_raw_mode(0o777)).map_err(error)?;
        self.ctx.wrote(&base.opened.mount, &place.real);
        Ok(())
    }

    pub(crate) fn remove_dir(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<()> {
        let (base, place) = self.moved("remove-directory", fd, path)?;
        if place.name.is_none() {
            return Err(ErrorCode::Invalid.into());
        }
        unlinkat(place.dir(), place.arg(), AtFlags::REMOVEDIR).map_err(error)?;
        self.ctx.wrote(&base.opened.mount, &place.real);
        Ok(())
    }

    pub(crate) fn unlink(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<()> {
        let (base, place) = self.moved("unlink-file", fd, path)?;
        if kind(&place.stat().map_err(error)?) == FileType::Directory {
            return Err(ErrorCode::IsDirectory.into());
        }
        unlinkat(place.dir(), place.arg(), AtFlags::empty()).map_err(error)?;
        self.ctx.wrote(&base.opened.mount, &place.real);
        Ok(())
    }

    /// Links are never made: the access is checked first only for the better message.
    pub(crate) fn symlink(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<()> {
        let (base, place) = self.target("symlink", fd, path)?;
        Err(self.refuse_place("symlink", &base, &place, "would be a symbolic link"))
    }

    pub(crate) fn rename(
        &mut self,
        old_fd: &Resource<Descriptor>,
        old_path: &str,
        new_fd: &Resource<Descriptor>,
        new_path: &str,
    ) -> FsResult<()> {
        let (old_base, old) = self.moved("rename", old_fd, old_path)?;
        let (new_base, new) = self.moved("rename", new_fd, new_path)?;
        if !Arc::ptr_eq(&old_base.opened.mount, &new_base.opened.mount) {
            return Err(ErrorCode::CrossDevice.into());
        }
        if old.name.is_none() || new.name.is_none() {
            return Err(ErrorCode::Busy.into());
        }
        match kind(&old.stat().map_err(error)?) {
            FileType::RegularFile if new.must_be_dir => return Err(ErrorCode::NotDirectory.into()),
            FileType::RegularFile => keep_mode(&old, &new),
            FileType::Directory => match self.search(&old_base, &old)? {
                Content::Plain => {}
                Content::Protected => {
                    return Err(self.refuse_place(
                        "rename",
                        &old_base,
                        &old,
                        "holds what is protected",
                    ));
                }
                Content::TooMuch => {
                    let why = "holds too much to be searched for protected names";
                    return Err(self.refuse_place("rename", &old_base, &old, why));
                }
            },
            FileType::Symlink => {
                return Err(self.refuse_place("rename", &old_base, &old, "is a symbolic link"));
            }
            _ => return Err(self.refuse_place("rename", &old_base, &old, "is a special file")),
        }
        renameat(old.dir(), old.arg(), new.dir(), new.arg()).map_err(error)?;
        self.ctx.wrote(&old_base.opened.mount, &old.real);
        self.ctx.wrote(&new_base.opened.mount, &new.real);
        Ok(())
    }

    fn search(&mut self, base: &Base, place: &Place) -> FsResult<Content> {
        self.tire();
        content(place.dir(), place.arg(), &base.opened.mount.closed).map_err(error)
    }

    pub(crate) fn hard_link(
        &mut self,
        old_fd: &Resource<Descriptor>,
        old_path: &str,
        new_fd: &Resource<Descriptor>,
        new_path: &str,
    ) -> FsResult<()> {
        let (old_base, old) = self.target("link", old_fd, old_path)?;
        let (new_base, new) = self.target("link", new_fd, new_path)?;
        if !Arc::ptr_eq(&old_base.opened.mount, &new_base.opened.mount) {
            return Err(ErrorCode::CrossDevice.into());
        }
        let stat = old.stat().map_err(error)?;
        if kind(&stat) != FileType::RegularFile {
            return Err(self.refuse_place("link", &old_base, &old, "is not a regular file"));
        }
        // One more name would change the file, and keep it after its owner has removed theirs.
        self.ctx.has_one_name("link", &old_base.opened.mount, &old.real, &stat)?;
        if new.must_be_dir || new.name.is_none() {
            return Err(ErrorCode::NotDirectory.into());
        }
        self.ctx.make("link")?;
        linkat(old.dir(), old.arg(), new.dir(), new.arg(), AtFlags::empty()).map_err(error)?;
        self.ctx.wrote(&new_base.opened.mount, &new.real);
        Ok(())
    }

    pub(crate) fn touch_at(
        &mut self,
        fd: &Resource<Descriptor>,
        flags: PathFlags,
        path: &str,
        times: &Timestamps,
    ) -> FsResult<()> {
        let base = self.base(fd)?;
        let place = self.ctx.walk("set-times", &base, path, follow(flags))?;
        self.ctx.may_write("set-times", &base.opened, &place)?;
        let stat = place.stat().map_err(error)?;
        self.ctx.has_one_name("set-times", &base.opened.mount, &place.real, &stat)?;
        utimensat(place.dir(), place.arg(), times, AtFlags::SYMLINK_NOFOLLOW).map_err(error)?;
        self.ctx.wrote(&base.opened.mount, &place.real);
        Ok(())
    }

    pub(crate) fn look(
        &mut self,
        fd: &Resource<Descriptor>,
        flags: PathFlags,
        path: &str,
    ) -> FsResult<Stat> {
        let base = self.base(fd)?;
        let place = self.ctx.walk("stat", &base, path, follow(flags))?;
        place.stat().map_err(error)
    }

    /// A link's text. An absolute one names a place on the host, so it is refused.
    pub(crate) fn read_link(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<String> {
        let base = self.base(fd)?;
        let place = self.ctx.walk("readlink", &base, path, Follow::No)?;
        let target = readlinkat(place.dir(), place.arg(), Vec::new()).map_err(error)?;
        let target = target.into_string().map_err(|_| ErrorCode::IllegalByteSequence)?;
        if target.starts_with('/') {
            return Err(self.refuse_place("readlink", &base, &place, "is an absolute link"));
        }
        Ok(target)
    }
}

fn follow(flags: PathFlags) -> Follow {
    if flags.contains(PathFlags::SYMLINK_FOLLOW) { Follow::Yes } else { Follow::No }
}

/// Times for the operating system.
pub(crate) fn timestamps(access: NewTimestamp, change: NewTimestamp) -> FsResult<Timestamps> {
    Ok(Timestamps { last_access: timespec(access)?, last_modification: timespec(change)? })
}

fn timespec(time: NewTimestamp) -> FsResult<Timespec> {
    Ok(match time {
        NewTimestamp::NoChange => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        NewTimestamp::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        NewTimestamp::Timestamp(Datetime { seconds, nanoseconds }) => {
            if nanoseconds >= 1_000_000_000 {
                return Err(ErrorCode::Invalid.into());
            }
            let tv_sec = seconds.try_into().map_err(|_| ErrorCode::Overflow)?;
            Timespec { tv_sec, tv_nsec: nanoseconds.into() }
        }
    })
}

/// A file's status for the guest.
#[expect(clippy::useless_conversion, reason = "the widths differ between platforms")]
pub(crate) fn descriptor_stat(stat: &Stat) -> DescriptorStat {
    let time = |seconds: i64, nanoseconds: u64| {
        let seconds = u64::try_from(seconds).ok()?;
        Some(Datetime { seconds, nanoseconds: u32::try_from(nanoseconds).ok()? })
    };
    DescriptorStat {
        type_: descriptor_type(kind(stat)),
        link_count: stat.st_nlink.into(),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        data_access_timestamp: time(stat.st_atime.into(), stat.st_atime_nsec.into()),
        data_modification_timestamp: time(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
        status_change_timestamp: time(stat.st_ctime.into(), stat.st_ctime_nsec.into()),
    }
}

fn descriptor_type(kind: FileType) -> DescriptorType {
    match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::Unknown => DescriptorType::Unknown,
    }
}

/// The entries of a directory, without `.` and `..`, counted up to one past the bound.
pub(crate) fn entries(dir: impl AsFd, bound: u64) -> FsResult<u64> {
    let mut count = 0;
    for entry in rustix::fs::Dir::read_from(dir).map_err(error)? {
        entry.map_err(error)?;
        count += 1;
        if count > bound.saturating_add(2) {
            break;
        }
    }
    Ok(count.saturating_sub(2))
}

/// Permissions that a file passes on to the one that replaces it: not set-user-id and its like.
const KEPT_MODE: u32 = 0o777;

/// Gives a file the permissions of the file that it is about to replace. A guest cannot set
/// permissions, so a tool that writes beside a file and renames would otherwise take away a
/// script's executable bit. Best effort: a file that cannot be opened keeps its own.
fn keep_mode(from: &Place, onto: &Place) {
    let Ok(replaced) = onto.stat() else { return };
    if kind(&replaced) != FileType::RegularFile {
        return;
    }
    // Not followed and not waited for, should somebody have put something else in its place.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(from.dir(), from.arg(), flags, Mode::empty()) else { return };
    // A file with another name may lie outside the mount under it.
    if fstat(&file).is_ok_and(|stat| kind(&stat) == FileType::RegularFile && stat.st_nlink == 1) {
        let _ = fchmod(file, Mode::from_raw_mode(replaced.st_mode & KEPT_MODE));
    }
}
