//! Moves a file or folder in one step; an existing file or folder is never replaced.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, linkat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// A name, with the open directory that it is in.
type Named<'a> = (&'a OwnedFd, &'a OsStr);

/// Moves `from` to `to`, which must not exist, in one step.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(super) fn move_new(from: Named<'_>, to: Named<'_>) -> io::Result<()> {
    use rustix::fs::{RenameFlags, renameat_with};
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // The file system does not support this operation.
        Err(Errno::INVAL | Errno::NOSYS) => link_then_remove(from, to),
        done => done.map_err(io::Error::from),
    }
}

/// Moves `from` to `to`, which must not exist.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(super) fn move_new(from: Named<'_>, to: Named<'_>) -> io::Result<()> {
    link_then_remove(from, to)
}

/// Moves by a hard link, which never replaces a file. A folder has no hard links, so it is renamed; that
/// fails if the target is a file, or a folder that is not empty.
fn link_then_remove(from: Named<'_>, to: Named<'_>) -> io::Result<()> {
    let about = statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(about.st_mode) == FileType::Directory {
        return match statat(to.0, to.1, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(renameat(from.0, from.1, to.0, to.1)?),
            Err(error) => Err(error.into()),
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        };
    }
    linkat(from.0, from.1, to.0, to.1, AtFlags::empty())?;
    Ok(unlinkat(from.0, from.1, AtFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn step(by: usize, dir: &Path) -> io::Result<()> {
        let dir = OwnedFd::from(std::fs::File::open(dir).unwrap());
        let (from, to) = ((&dir, OsStr::new("from")), (&dir, OsStr::new("to")));
        if by == 0 { move_new(from, to) } else { link_then_remove(from, to) }
    }

    #[test]
    fn nothing_is_ever_overwritten() {
        for by in [0, 1] {
            let dir = tempfile::tempdir().unwrap();
            let (from, to) = (dir.path().join("from"), dir.path().join("to"));
            std::fs::write(&from, "draft").unwrap();
            std::fs::write(&to, "kept").unwrap();
            let refused = step(by, dir.path()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(std::fs::read(&to).unwrap(), b"kept");
            assert_eq!(std::fs::read(&from).unwrap(), b"draft");
            std::fs::remove_file(&to).unwrap();
            std::fs::create_dir(&to).unwrap();
            assert!(step(by, dir.path()).is_err());
            std::fs::remove_dir(&to).unwrap();
            step(by, dir.path()).unwrap();
            assert_eq!(std::fs::read(&to).unwrap(), b"draft");
            assert!(!from.exists());
        }
    }

    #[test]
    fn a_folder_moves_whole_and_not_over_another() {
        for by in [0, 1] {
            let dir = tempfile::tempdir().unwrap();
            let (from, to) = (dir.path().join("from"), dir.path().join("to"));
            std::fs::create_dir(&from).unwrap();
            std::fs::write(from.join("a"), "x").unwrap();
            std::fs::create_dir(&to).unwrap();
            let refused = step(by, dir.path()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            std::fs::remove_dir(&to).unwrap();
            step(by, dir.path()).unwrap();
            assert_eq!(std::fs::read(to.join("a")).unwrap(), b"x");
        }
    }
}
