//! Operations on paths other than opening: make, remove, rename, link, set times, read the status.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use belljar_overlay::walk::{FollowMode, PathEnd, file_type};
use belljar_policy::spelling::{is_plain, spell_name};
use belljar_policy::{DenyCode, ShownText};
use rustix::fs::{AtFlags, FileType, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, statat};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, OpenMode};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorStat, DescriptorType, ErrorCode, NewTimestamp, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};

use super::alias::{DirContent, ProtectedLinkRole};
use super::tree::{FileTree, has_file_type};
use super::{BaseDir, FilesView, OpenDescriptor, OverlayTarget, SHOWN_PATH, on_tree, to_fs_error};

impl FilesView<'_> {
    /// Resolves a path that will be written, and checks that it may be. A link as the last name is not
    /// followed.
    fn resolve_writable<T: FileTree>(
        &self,
        tree: &T,
        what: &str,
        base: &BaseDir,
        path: &str,
    ) -> Result<(PathEnd<T::Dir>, ProtectedLinkRole), FsError> {
        let place = self.ctx.resolve_path(tree, what, base, path, FollowMode::No)?;
        let meant = self.ctx.may_write(what, &base.opened, &place)?;
        Ok((place, meant))
    }

    /// Resolves a path whose last name will be removed, moved or replaced, and checks that it may be.
    fn resolve_movable<T: FileTree>(
        &self,
        tree: &T,
        what: &str,
        base: &BaseDir,
        path: &str,
    ) -> Result<PathEnd<T::Dir>, FsError> {
        let (place, meant) = self.resolve_writable(tree, what, base, path)?;
        self.ctx.may_move(what, &base.opened, &place, meant)?;
        Ok(place)
    }

    fn refuse_place<D>(
        &self,
        what: &str,
        base: &BaseDir,
        place: &PathEnd<D>,
        why: &str,
    ) -> FsError {
        let path = base.opened.mount.guest_path(&place.real);
        let facts = format!("`{}` {why}", ShownText::clip_line(&path, SHOWN_PATH));
        self.ctx.refuse_operation(what, DenyCode::PathNotAllowed, facts)
    }

    /// Checks that a descriptor may be written: a file was opened for writing, with all checks then; a
    /// directory is not closed now.
    pub(super) fn is_for_writing(
        &self,
        what: &str,
        fd: &Resource<Descriptor>,
        opened: &OpenDescriptor,
    ) -> Result<(), FsError> {
        let may = match (self.table.get(fd)?, &opened.over) {
            (Descriptor::File(file), _) => file.open_mode.contains(OpenMode::WRITE),
            // A directory that is only in the overlay cannot be closed, because closed directories are the
            // host's.
            (Descriptor::Dir(_), Some(OverlayTarget::Dir(dir))) if !dir.lower => true,
            (Descriptor::Dir(dir), _) => !opened.mount.closed.contains_dir(dir.dir.as_fd()),
        };
        if may {
            return Ok(());
        }
        let path = opened.guest_path();
        let facts =
            format!("`{}` is not open for writing", ShownText::clip_line(&path, SHOWN_PATH));
        Err(self.ctx.refuse_operation(what, DenyCode::PathNotAllowed, facts))
    }

    /// Makes a directory, and records the change in the receipt.
    pub(crate) fn make_dir(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<()> {
        let what = "create-directory";
        let base = self.find_directory(fd)?;
        on_tree!(base, |tree| {
            let (place, _) = self.resolve_writable(tree, what, &base, path)?;
            if place.name.is_none() {
                return Err(ErrorCode::Exist.into());
            }
            self.ctx.count_made(what)?;
            tree.make_dir(&place).map_err(|fault| self.ctx.change_error(what, fault))?;
            self.ctx.record_written(&base.opened.mount, &place.real);
            Ok(())
        })
    }

    /// Removes an empty directory, and records the change in the receipt.
    pub(crate) fn remove_dir(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<()> {
        let what = "remove-directory";
        let base = self.find_directory(fd)?;
        on_tree!(base, |tree| {
            let place = self.resolve_movable(tree, what, &base, path)?;
            if place.name.is_none() {
                return Err(ErrorCode::Invalid.into());
            }
            tree.remove_dir(&place).map_err(|fault| self.ctx.change_error(what, fault))?;
            self.ctx.record_written(&base.opened.mount, &place.real);
            Ok(())
        })
    }

    /// Removes a name of a file, and records the change in the receipt.
    pub(crate) fn unlink_file(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<()> {
        let what = "unlink-file";
        let base = self.find_directory(fd)?;
        on_tree!(base, |tree| {
            let place = self.resolve_movable(tree, what, &base, path)?;
            let found = tree.find_at(&place).map_err(to_fs_error)?;
            if has_file_type(&found.stat, FileType::Directory) {
                return Err(ErrorCode::IsDirectory.into());
            }
            tree.unlink_at(&place, &found).map_err(|fault| self.ctx.change_error(what, fault))?;
            self.ctx.record_written(&base.opened.mount, &place.real);
            Ok(())
        })
    }

    /// Refuses to make a symbolic link. The path is checked first, so that the guest gets the error that fits
    /// best.
    pub(crate) fn refuse_symlink(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<()> {
        let base = self.find_directory(fd)?;
        on_tree!(base, |tree| {
            let (place, _) = self.resolve_writable(tree, "symlink", &base, path)?;
            Err(self.refuse_place("symlink", &base, &place, "would be a symbolic link"))
        })
    }

    /// Renames a file or directory. For two different mounts, both paths are checked, so that refusals are
    /// recorded, and the call then fails with `cross-device`.
    pub(crate) fn rename_path(
        &mut self,
        old_fd: &Resource<Descriptor>,
        old_path: &str,
        new_fd: &Resource<Descriptor>,
        new_path: &str,
    ) -> FsResult<()> {
        let (old_base, new_base) = (self.find_directory(old_fd)?, self.find_directory(new_fd));
        if let Some(new_base) = other_mount(&old_base, &new_base) {
            on_tree!(old_base, |tree| self
                .resolve_movable(tree, "rename", &old_base, old_path)
                .map(drop))?;
            on_tree!(new_base, |tree| self
                .resolve_movable(tree, "rename", new_base, new_path)
                .map(drop))?;
            return Err(ErrorCode::CrossDevice.into());
        }
        on_tree!(old_base, |tree| {
            let old = self.resolve_movable(tree, "rename", &old_base, old_path)?;
            let new_base = new_base?;
            let new = self.resolve_movable(tree, "rename", &new_base, new_path)?;
            self.rename_in(tree, &old_base, [&old, &new])
        })
    }

    /// Renames within a mount. A directory is searched first, and is refused if there is a protected name
    /// inside, or too much to search. Links and special files are refused.
    fn rename_in<T: FileTree>(
        &mut self,
        tree: &mut T,
        base: &BaseDir,
        [old, new]: [&PathEnd<T::Dir>; 2],
    ) -> FsResult<()> {
        if old.name.is_none() || new.name.is_none() {
            return Err(ErrorCode::Busy.into());
        }
        let found = tree.find_at(old).map_err(to_fs_error)?;
        match file_type(&found.stat) {
            FileType::RegularFile if new.must_be_dir => return Err(ErrorCode::NotDirectory.into()),
            FileType::RegularFile => {}
            FileType::Directory => {
                self.yield_next();
                match tree.search_content(old, &base.opened.mount.closed).map_err(to_fs_error)? {
                    DirContent::Plain => {}
                    DirContent::Protected => {
                        let why = "holds what is protected";
                        return Err(self.refuse_place("rename", base, old, why));
                    }
                    DirContent::TooMuch => {
                        let why = "holds too much to be searched for protected names";
                        return Err(self.refuse_place("rename", base, old, why));
                    }
                }
            }
            FileType::Symlink => {
                return Err(self.refuse_place("rename", base, old, "is a symbolic link"));
            }
            _ => return Err(self.refuse_place("rename", base, old, "is a special file")),
        }
        tree.rename_at(old, new, &found).map_err(|fault| self.ctx.change_error("rename", fault))?;
        self.ctx.record_moved(&base.opened.mount, &old.real, &new.real);
        Ok(())
    }

    /// Makes a hard link. For two different mounts, both paths are checked, so that refusals are recorded,
    /// and the call then fails with `cross-device`.
    pub(crate) fn hard_link(
        &mut self,
        old_fd: &Resource<Descriptor>,
        old_path: &str,
        new_fd: &Resource<Descriptor>,
        new_path: &str,
    ) -> FsResult<()> {
        let (old_base, new_base) = (self.find_directory(old_fd)?, self.find_directory(new_fd));
        if let Some(new_base) = other_mount(&old_base, &new_base) {
            on_tree!(old_base, |tree| self
                .resolve_writable(tree, "link", &old_base, old_path)
                .map(drop))?;
            on_tree!(new_base, |tree| self
                .resolve_writable(tree, "link", new_base, new_path)
                .map(drop))?;
            return Err(ErrorCode::CrossDevice.into());
        }
        on_tree!(old_base, |tree| {
            let (old, _) = self.resolve_writable(tree, "link", &old_base, old_path)?;
            let new_base = new_base?;
            let (new, _) = self.resolve_writable(tree, "link", &new_base, new_path)?;
            self.link_in(tree, &old_base, [&old, &new])
        })
    }

    fn link_in<T: FileTree>(
        &mut self,
        tree: &mut T,
        base: &BaseDir,
        [old, new]: [&PathEnd<T::Dir>; 2],
    ) -> FsResult<()> {
        let found = tree.find_at(old).map_err(to_fs_error)?;
        if !has_file_type(&found.stat, FileType::RegularFile) {
            return Err(self.refuse_place("link", base, old, "is not a regular file"));
        }
        // A second hard link would change the file's link count, and keep the file after its owner removes
        // the first.
        self.ctx.check_single_name("link", &base.opened.mount, &old.real, &found)?;
        if new.must_be_dir || new.name.is_none() {
            return Err(ErrorCode::NotDirectory.into());
        }
        self.ctx.count_made("link")?;
        tree.link_at(old, new, &found).map_err(|fault| self.ctx.change_error("link", fault))?;
        self.ctx.record_written(&base.opened.mount, &new.real);
        Ok(())
    }

    /// Sets the times of a file or directory by its path, and records the change in the receipt.
    pub(crate) fn touch_at(
        &mut self,
        fd: &Resource<Descriptor>,
        flags: PathFlags,
        path: &str,
        times: &Timestamps,
    ) -> FsResult<()> {
        let what = "set-times";
        let base = self.find_directory(fd)?;
        on_tree!(base, |tree| {
            let place = self.ctx.resolve_path(tree, what, &base, path, follow_mode(flags))?;
            self.ctx.may_write(what, &base.opened, &place)?;
            let found = tree.find_at(&place).map_err(to_fs_error)?;
            self.ctx.check_single_name(what, &base.opened.mount, &place.real, &found)?;
            tree.set_times_at(&place, &found, times)
                .map_err(|fault| self.ctx.change_error(what, fault))?;
            self.ctx.record_written(&base.opened.mount, &place.real);
            Ok(())
        })
    }

    /// The status of a file or directory by its path.
    pub(crate) fn stat_path(
        &mut self,
        fd: &Resource<Descriptor>,
        flags: PathFlags,
        path: &str,
    ) -> FsResult<Stat> {
        let base = self.find_directory(fd)?;
        on_tree!(base, |tree| {
            let place = self.ctx.resolve_path(tree, "stat", &base, path, follow_mode(flags))?;
            tree.find_at(&place).map(|found| found.stat).map_err(to_fs_error)
        })
    }

    /// Reads the target of a symbolic link. An absolute target is refused, because it is a path of the host.
    pub(crate) fn read_link(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<String> {
        let base = self.find_directory(fd)?;
        on_tree!(base, |tree| {
            let place = self.ctx.resolve_path(tree, "readlink", &base, path, FollowMode::No)?;
            let target = tree.link_target(&place)?;
            let target = spell_name(OsStr::from_bytes(target.as_bytes())).into_owned();
            if target.starts_with('/') {
                return Err(self.refuse_place("readlink", &base, &place, "is an absolute link"));
            }
            Ok(target)
        })
    }
}

/// Returns `new` if it is in another mount than `old`. Two mounts of a directory count as two.
fn other_mount<'a>(old: &BaseDir, new: &'a FsResult<BaseDir>) -> Option<&'a BaseDir> {
    new.as_ref().ok().filter(|new| !Arc::ptr_eq(&old.opened.mount, &new.opened.mount))
}

fn follow_mode(flags: PathFlags) -> FollowMode {
    if flags.contains(PathFlags::SYMLINK_FOLLOW) { FollowMode::Yes } else { FollowMode::No }
}

/// Converts two new times for the operating system.
pub(crate) fn to_timestamps(access: NewTimestamp, change: NewTimestamp) -> FsResult<Timestamps> {
    Ok(Timestamps { last_access: to_timespec(access)?, last_modification: to_timespec(change)? })
}

fn to_timespec(time: NewTimestamp) -> FsResult<Timespec> {
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

/// Converts the status of a file for the guest.
#[expect(clippy::useless_conversion, reason = "the widths differ between platforms")]
pub(crate) fn descriptor_stat(stat: &Stat) -> DescriptorStat {
    let time = |seconds: i64, nanoseconds: u64| {
        let seconds = u64::try_from(seconds).ok()?;
        Some(Datetime { seconds, nanoseconds: u32::try_from(nanoseconds).ok()? })
    };
    DescriptorStat {
        type_: descriptor_type(file_type(stat)),
        link_count: stat.st_nlink.into(),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        data_access_timestamp: time(stat.st_atime.into(), stat.st_atime_nsec.into()),
        data_modification_timestamp: time(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
        status_change_timestamp: time(stat.st_ctime.into(), stat.st_ctime_nsec.into()),
    }
}

pub(super) fn descriptor_type(kind: FileType) -> DescriptorType {
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

/// What a listing has to know about a directory before it reads the entries.
pub(crate) struct EntryCount {
    /// The number of entries without `.` and `..`. Counting stops at one more than the limit.
    pub(crate) count: u64,
    /// Whether the guest gets another spelling for a name, for example because it is not text.
    pub(crate) odd: bool,
}

/// Counts the entries of a directory, up to `bound` and one more.
pub(crate) fn count_entries(dir: impl AsFd, bound: u64) -> FsResult<EntryCount> {
    let (mut count, mut odd) = (0_u64, false);
    for entry in rustix::fs::Dir::read_from(dir).map_err(to_fs_error)? {
        let entry = entry.map_err(to_fs_error)?;
        odd |= !is_plain(OsStr::from_bytes(entry.file_name().to_bytes()));
        count += 1;
        if count > bound.saturating_add(2) {
            break;
        }
    }
    Ok(EntryCount { count: count.saturating_sub(2), odd })
}

/// Reads the entries of a directory, without `.` and `..`. Fails if there are more than `bound`.
pub(crate) fn all_entries(dir: impl AsFd, bound: u64) -> FsResult<Vec<(OsString, FileType)>> {
    let mut all = Vec::new();
    for entry in rustix::fs::Dir::read_from(&dir).map_err(to_fs_error)? {
        let entry = entry.map_err(to_fs_error)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if all.len() as u64 >= bound {
            return Err(ErrorCode::InsufficientSpace.into());
        }
        let file_type = match entry.file_type() {
            // Some file systems do not return the type with the name.
            FileType::Unknown => statat(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| file_type(&stat)),
            told => told,
        };
        all.push((name.to_owned(), file_type));
    }
    Ok(all)
}
