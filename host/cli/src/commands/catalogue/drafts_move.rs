//! Moving a file or folder in one step, and never over something that is there.

use std::io;
use std::path::Path;

/// Moves `from` to `to`, which must not exist. Either all of it is moved or nothing.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn move_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot promise it in one step.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => link_then_remove(from, to),
        done => done.map_err(io::Error::from),
    }
}

/// Moves `from` to `to`, which must not exist.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn move_new(from: &Path, to: &Path) -> io::Result<()> {
    link_then_remove(from, to)
}

/// A hard link is made only where nothing is. Folders have none; renaming one over a folder
/// fails unless that is empty, and over a file it fails too.
fn link_then_remove(from: &Path, to: &Path) -> io::Result<()> {
    if std::fs::symlink_metadata(from)?.is_dir() {
        if std::fs::symlink_metadata(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        return std::fs::rename(from, to);
    }
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_ever_overwritten() {
        for step in [move_new, link_then_remove] {
            let dir = tempfile::tempdir().unwrap();
            let (from, to) = (dir.path().join("from"), dir.path().join("to"));
            std::fs::write(&from, "draft").unwrap();
            std::fs::write(&to, "kept").unwrap();
            assert_eq!(step(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(std::fs::read(&to).unwrap(), b"kept");
            assert_eq!(std::fs::read(&from).unwrap(), b"draft");
            std::fs::remove_file(&to).unwrap();
            std::fs::create_dir(&to).unwrap();
            assert!(step(&from, &to).is_err());
            std::fs::remove_dir(&to).unwrap();
            step(&from, &to).unwrap();
            assert_eq!(std::fs::read(&to).unwrap(), b"draft");
            assert!(!from.exists());
        }
    }

    #[test]
    fn a_folder_moves_whole_and_not_over_another() {
        for step in [move_new, link_then_remove] {
            let dir = tempfile::tempdir().unwrap();
            let (from, to) = (dir.path().join("from"), dir.path().join("to"));
            std::fs::create_dir(&from).unwrap();
            std::fs::write(from.join("a"), "x").unwrap();
            std::fs::create_dir(&to).unwrap();
            assert_eq!(step(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            std::fs::remove_dir(&to).unwrap();
            step(&from, &to).unwrap();
            assert_eq!(std::fs::read(to.join("a")).unwrap(), b"x");
        }
    }
}
