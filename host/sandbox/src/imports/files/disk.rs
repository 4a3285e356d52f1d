//! Operations on the host's own directories, for mounts without an overlay.

use std::ffi::CString;
use std::fs::File;
use std::sync::Arc;

use belljar_overlay::walk::{DiskDir, DiskTree, PathEnd, file_type};
use belljar_overlay::{ChangeFault, FoundEntry};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Timestamps, fchmod, fstat, linkat, mkdirat, openat,
    readlinkat, renameat, unlinkat, utimensat,
};
use rustix::io::Errno;
use wasmtime_wasi::p2::FsResult;

use super::alias::{DirContent, search_directory};
use super::closed::ClosedPaths;
use super::open::OpenRequest;
use super::tree::{FileTree, has_file_type};
use super::{BaseDir, FilesCtx, OverlayTarget, to_fs_error};

impl FileTree for DiskTree {
    fn base_dir(&self, base: &BaseDir) -> DiskDir {
        DiskDir::Start(Arc::clone(&base.start.dir))
    }

    fn find_at(&self, place: &PathEnd) -> Result<FoundEntry, Errno> {
        place.stat_entry().map(FoundEntry::on_disk)
    }

    fn link_target(&self, place: &PathEnd) -> FsResult<CString> {
        readlinkat(place.parent_fd(), place.name_arg(), Vec::new()).map_err(to_fs_error)
    }

    fn open_dir(
        &self,
        place: &PathEnd,
        _found: &FoundEntry,
    ) -> Result<(Arc<File>, Option<OverlayTarget>), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(place.parent_fd(), place.name_arg(), flags, Mode::empty())?;
        Ok((Arc::new(File::from(opened)), None))
    }

    fn open_file(
        &mut self,
        ctx: &FilesCtx,
        base: &BaseDir,
        place: &PathEnd,
        found: Option<&FoundEntry>,
        ask: &OpenRequest,
    ) -> FsResult<(File, Option<OverlayTarget>)> {
        let create = found.is_none();
        // The process's umask narrows this mode.
        let mode = Mode::from_raw_mode(0o666);
        let opened = openat(place.parent_fd(), place.name_arg(), ask.file_flags(create), mode)
            .map_err(to_fs_error)?;
        let stat = fstat(&opened).map_err(to_fs_error)?;
        if !has_file_type(&stat, FileType::RegularFile) {
            return Err(ctx.refuse_special(&base.opened, &place.real));
        }
        if ask.write {
            let found = FoundEntry::on_disk(stat);
            ctx.check_single_name("open", &base.opened.mount, &place.real, &found)?;
        }
        let file = File::from(opened);
        if ask.truncate {
            file.set_len(0)?;
        }
        Ok((file, None))
    }

    fn make_dir(&mut self, place: &PathEnd) -> Result<(), ChangeFault> {
        // The process's umask narrows this mode.
        Ok(mkdirat(place.parent_fd(), place.name_arg(), Mode::from_raw_mode(0o777))?)
    }

    fn remove_dir(&mut self, place: &PathEnd) -> Result<(), ChangeFault> {
        Ok(unlinkat(place.parent_fd(), place.name_arg(), AtFlags::REMOVEDIR)?)
    }

    fn unlink_at(&mut self, place: &PathEnd, _found: &FoundEntry) -> Result<(), ChangeFault> {
        Ok(unlinkat(place.parent_fd(), place.name_arg(), AtFlags::empty())?)
    }

    fn search_content(&self, place: &PathEnd, closed: &ClosedPaths) -> Result<DirContent, Errno> {
        search_directory(place.parent_fd(), place.name_arg(), closed)
    }

    fn rename_at(
        &mut self,
        old: &PathEnd,
        new: &PathEnd,
        found: &FoundEntry,
    ) -> Result<(), ChangeFault> {
        if has_file_type(&found.stat, FileType::RegularFile) {
            keep_mode(old, new);
        }
        Ok(renameat(old.parent_fd(), old.name_arg(), new.parent_fd(), new.name_arg())?)
    }

    fn link_at(
        &mut self,
        old: &PathEnd,
        new: &PathEnd,
        _found: &FoundEntry,
    ) -> Result<(), ChangeFault> {
        Ok(linkat(
            old.parent_fd(),
            old.name_arg(),
            new.parent_fd(),
            new.name_arg(),
            AtFlags::empty(),
        )?)
    }

    fn set_times_at(
        &mut self,
        place: &PathEnd,
        _found: &FoundEntry,
        times: &Timestamps,
    ) -> Result<(), ChangeFault> {
        Ok(utimensat(place.parent_fd(), place.name_arg(), times, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// The permission bits a replacing file takes over from the replaced one; set-user-id and the like are not
/// among them.
const KEPT_MODE: u32 = 0o777;

/// Before a file replaces another one, gives it the other's permissions. If the file cannot be opened, it
/// keeps its own.
fn keep_mode(from: &PathEnd, onto: &PathEnd) {
    let Ok(replaced) = onto.stat_entry() else { return };
    if !has_file_type(&replaced, FileType::RegularFile) {
        return;
    }
    // Neither follows a link nor blocks, in case another program put something else there.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(from.parent_fd(), from.name_arg(), flags, Mode::empty()) else { return };
    // A file with several hard links may also be outside of the mount.
    if fstat(&file)
        .is_ok_and(|stat| file_type(&stat) == FileType::RegularFile && stat.st_nlink == 1)
    {
        let _ = fchmod(file, Mode::from_raw_mode(replaced.st_mode & KEPT_MODE));
    }
}
