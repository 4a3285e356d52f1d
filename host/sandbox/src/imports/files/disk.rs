//! Operations in the host's own directories.

use std::ffi::CString;
use std::fs::File;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Timestamps, fchmod, fstat, linkat, mkdirat, openat,
    readlinkat, renameat, unlinkat, utimensat,
};
use rustix::io::Errno;
use wasmtime_wasi::p2::FsResult;

use super::alias::{DirContent, content};
use super::closed::Closed;
use super::open::Ask;
use super::tree::{Tree, is};
use super::walk::{Dir, Disk, PathEnd, kind};
use super::{Base, FilesCtx, Over, error};
use crate::overlay::{Fault, Found};

impl Tree for Disk {
    fn first(&self, base: &Base) -> Dir {
        Dir::Start(Arc::clone(&base.start.dir))
    }

    fn find(&self, place: &PathEnd) -> Result<Found, Errno> {
        place.stat().map(Found::on_disk)
    }

    fn target(&self, place: &PathEnd) -> FsResult<CString> {
        readlinkat(place.dir(), place.arg(), Vec::new()).map_err(error)
    }

    fn open_dir(
        &self,
        place: &PathEnd,
        _found: &Found,
    ) -> Result<(Arc<File>, Option<Over>), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(place.dir(), place.arg(), flags, Mode::empty())?;
        Ok((Arc::new(File::from(opened)), None))
    }

    fn open_file(
        &mut self,
        ctx: &FilesCtx,
        base: &Base,
        place: &PathEnd,
        found: Option<&Found>,
        ask: &Ask,
    ) -> FsResult<(File, Option<Over>)> {
        let create = found.is_none();
        // The process's umask narrows this mode.
        let mode = Mode::from_raw_mode(0o666);
        let opened =
            openat(place.dir(), place.arg(), ask.file_flags(create), mode).map_err(error)?;
        let stat = fstat(&opened).map_err(error)?;
        if !is(&stat, FileType::RegularFile) {
            return Err(ctx.special(&base.opened, &place.real));
        }
        if ask.write {
            let found = Found::on_disk(stat);
            ctx.has_one_name("open", &base.opened.mount, &place.real, &found)?;
        }
        let file = File::from(opened);
        if ask.truncate {
            file.set_len(0)?;
        }
        Ok((file, None))
    }

    fn make_dir(&mut self, place: &PathEnd) -> Result<(), Fault> {
        // The process's umask narrows this mode.
        Ok(mkdirat(place.dir(), place.arg(), Mode::from_raw_mode(0o777))?)
    }

    fn remove_dir(&mut self, place: &PathEnd) -> Result<(), Fault> {
        Ok(unlinkat(place.dir(), place.arg(), AtFlags::REMOVEDIR)?)
    }

    fn unlink(&mut self, place: &PathEnd, _found: &Found) -> Result<(), Fault> {
        Ok(unlinkat(place.dir(), place.arg(), AtFlags::empty())?)
    }

    fn search(&self, place: &PathEnd, closed: &Closed) -> Result<DirContent, Errno> {
        content(place.dir(), place.arg(), closed)
    }

    fn rename(&mut self, old: &PathEnd, new: &PathEnd, found: &Found) -> Result<(), Fault> {
        if is(&found.stat, FileType::RegularFile) {
            keep_mode(old, new);
        }
        Ok(renameat(old.dir(), old.arg(), new.dir(), new.arg())?)
    }

    fn link(&mut self, old: &PathEnd, new: &PathEnd, _found: &Found) -> Result<(), Fault> {
        Ok(linkat(old.dir(), old.arg(), new.dir(), new.arg(), AtFlags::empty())?)
    }

    fn touch(&mut self, place: &PathEnd, _found: &Found, times: &Timestamps) -> Result<(), Fault> {
        Ok(utimensat(place.dir(), place.arg(), times, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// Permission bits copied to a replacing file, without set-user-id and the like.
const KEPT_MODE: u32 = 0o777;

/// Sets a file's permissions to those of the file that is about to be replaced. Best effort: a file that
/// cannot be opened keeps its own.
fn keep_mode(from: &PathEnd, onto: &PathEnd) {
    let Ok(replaced) = onto.stat() else { return };
    if !is(&replaced, FileType::RegularFile) {
        return;
    }
    // Neither following links nor blocking, in case the file was swapped.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(from.dir(), from.arg(), flags, Mode::empty()) else { return };
    // A file with another name may be outside the mount under that name.
    if fstat(&file).is_ok_and(|stat| kind(&stat) == FileType::RegularFile && stat.st_nlink == 1) {
        let _ = fchmod(file, Mode::from_raw_mode(replaced.st_mode & KEPT_MODE));
    }
}
