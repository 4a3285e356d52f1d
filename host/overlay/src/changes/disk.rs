//! Operations on single files of the workspace: writing to a temporary name, moving to a free path, comparing
//! contents.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, openat,
    renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use crate::changes::journal::{KeptCopy, create_file};
use crate::changes::workspace::{FileState, Workspace, look_in, open_in};
use crate::changes::{ChangesError, NodeKind, content};

/// Whether both states are the same file with the same content. A move changes only the status time, which is
/// ignored.
pub(crate) fn is_content(now: &FileState, before: &FileState) -> bool {
    now.is_same(before) && now.size == before.size && now.modified == before.modified
}

/// Whether a file has the content with this digest.
pub(crate) fn is_ours(dir: &OwnedFd, name: &OsStr, expected: &str) -> bool {
    let found = open_in(dir, name).ok().and_then(|(file, _)| content::file_digest(&file).ok());
    found.is_some_and(|digest| digest.to_string() == expected)
}

/// Whether a name in a directory still has the content and mode of a kept copy.
pub(crate) fn is_kept(dir: &OwnedFd, name: &OsStr, path: &Path, kept: &KeptCopy) -> bool {
    match kept {
        KeptCopy::Link(target) => {
            let found = rustix::fs::readlinkat(dir, name, Vec::new());
            found.is_ok_and(|found| found.to_bytes() == target.0.as_os_str().as_bytes())
        }
        KeptCopy::File => {
            let expected = File::open(path).and_then(|file| content::file_digest(&file));
            expected.is_ok_and(|digest| is_ours(dir, name, &digest.to_string()))
        }
    }
}

/// Moves a file to a free path.
pub(crate) fn move_to(from: (&OwnedFd, &OsStr), to: (&OwnedFd, &OsStr)) -> Result<(), Errno> {
    let moved = renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE);
    moved.or_else(|errno| {
        without_flags(errno, || match look_in(to.0, to.1)? {
            Some(_) => Err(Errno::EXIST),
            None => renameat(from.0, from.1, to.0, to.1),
        })
    })
}

/// Runs `other` on a file system that does not support flags of a rename.
pub(crate) fn without_flags(
    errno: Errno,
    other: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    match errno {
        Errno::INVAL | Errno::NOSYS | Errno::NOTSUP => other(),
        errno => Err(errno),
    }
}

/// Writes a new file with a temporary name.
pub(crate) fn write_beside(
    dir: &OwnedFd,
    name: &OsStr,
    mut content: &File,
    mode: u32,
    (modified, sync): (Option<(i64, u32)>, bool),
) -> io::Result<()> {
    use std::io::Seek as _;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Removes a leftover of this apply, because the name contains its number.
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let mut file = File::from(openat(dir, name, flags, Mode::from_raw_mode(0o600))?);
    content.rewind()?;
    io::copy(&mut content, &mut file)?;
    fchmod(&file, Mode::from_raw_mode(mode & 0o777))?;
    if let Some((seconds, nanoseconds)) = modified {
        let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let last_modification = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
        futimens(&file, &Timestamps { last_access: omit, last_modification })?;
    }
    if sync { file.sync_all() } else { Ok(()) }
}

/// Waits until all writes to a file system are on disk. If the OS sandbox refuses that call, syncs only the
/// directory: replaced contents are stored until then, and survive a dying process.
#[cfg(target_os = "linux")]
pub(crate) fn sync_disk(on_it: impl AsFd) -> Result<(), Errno> {
    match rustix::fs::syncfs(&on_it) {
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::fsync(on_it),
        synced => synced,
    }
}

/// Writes all file systems to disk, because the platform has no call for a single one.
#[cfg(not(target_os = "linux"))]
pub(crate) fn sync_disk(_: impl AsFd) -> Result<(), Errno> {
    rustix::fs::sync();
    Ok(())
}

/// Copies the content for a step's undo, and returns the original state.
pub(crate) fn keep_copy(
    workspace: &Workspace,
    path: &Path,
    to: &Path,
) -> Result<Option<(FileState, KeptCopy, u64)>, ChangesError> {
    let failed = |error: io::Error| ChangesError::from_io("keep", path)(error);
    let Some(state) = workspace.look_at(path).map_err(|errno| failed(errno.into()))? else {
        return Ok(None);
    };
    match state.node_kind() {
        NodeKind::Link => {
            let target = workspace.link_target(path).map_err(|errno| failed(errno.into()))?;
            Ok(Some((state, KeptCopy::Link(crate::changes::paths::AnyPath(target.into())), 0)))
        }
        NodeKind::File => {
            let (mut file, opened) =
                workspace.open_file(path).map_err(|errno| failed(errno.into()))?;
            let mut copy = create_file(to).map_err(ChangesError::from_io("write", to))?;
            let size = io::copy(&mut file, &mut copy).map_err(failed)?;
            let after = FileState::from_stat(
                &rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?,
            );
            if !opened.is_still(&state) || !after.is_still(&state) || size != state.size {
                return Err(ChangesError::ChangedMeanwhile { path: path.to_owned() });
            }
            Ok(Some((state, KeptCopy::File, size)))
        }
        NodeKind::Directory | NodeKind::Special => {
            Err(ChangesError::ChangedMeanwhile { path: path.to_owned() })
        }
    }
}
