//! Checks who owns the store's file, because files in a directory that others can write may be forged.
//!
//! SQLite opens its files by name, and closing a second handle of a file would drop this process's locks. So
//! the directory is opened, and the files are inspected through its handle. The result stays true as long as
//! no other user can write to the directory.

use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::process::{Uid, geteuid};

use crate::error::StoreError;

/// The suffixes of the files that SQLite keeps beside the store's file, and the empty suffix for the file
/// itself.
const BESIDE: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// A function that returns why a file or directory is not this user's own; `None` if it is.
type Judge = fn(&Stat, Uid) -> Option<String>;

/// Refuses a file of another user, or in a directory where others can replace it. A missing file passes.
pub(crate) fn check_owner(path: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::Io {
        what: "look at",
        path: path.to_owned(),
        source: error,
    };
    // A symbolic link is followed, and its target is checked.
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(failed(error)),
    };
    let parent = real.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory =
        rustix::fs::open(parent, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let us = geteuid();
    let about = rustix::fs::fstat(&directory).map_err(|error| failed(error.into()))?;
    let refused = |path: &Path, why| Err(StoreError::NotOurs { path: path.to_owned(), why });
    if let Some(why) = directory_fault(&about, us) {
        return refused(parent, why);
    }
    let Some(name) = real.file_name() else { return Ok(()) };
    let beside = BESIDE.map(|end| {
        let mut name = name.to_owned();
        name.push(end);
        name
    });
    // The locks of sessions are files in a directory of their own.
    let locks = Path::new(name).with_extension("locks").into_os_string();
    let judged = beside.into_iter().map(|name| (name, file_fault as Judge));
    for (name, judge) in judged.chain([(locks, locks_fault as Judge)]) {
        match rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => {
                if let Some(why) = judge(&about, us) {
                    return refused(&parent.join(name), why);
                }
            }
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
    Ok(())
}

/// The reason why this directory is not the user's alone. In directories of the system, for example a sticky
/// `/tmp`, others cannot replace the user's files.
fn directory_fault(about: &Stat, us: Uid) -> Option<String> {
    let owner = Uid::from_raw(about.st_uid);
    if owner != us && !owner.is_root() {
        return Some(format!("is a directory of user {}", about.st_uid));
    }
    let mode = Mode::from_raw_mode(about.st_mode);
    let sticky = mode.contains(Mode::SVTX);
    let others = mode.intersects(Mode::WGRP | Mode::WOTH);
    (others && !sticky).then(|| "is a directory that others may write to".to_owned())
}

/// The reason why this is not the user's own directory for the locks of sessions.
fn locks_fault(about: &Stat, us: Uid) -> Option<String> {
    if FileType::from_raw_mode(about.st_mode) != FileType::Directory {
        return Some("is not a directory".to_owned());
    }
    directory_fault(about, us)
}

/// The reason why this is not the user's own file.
fn file_fault(about: &Stat, us: Uid) -> Option<String> {
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Some("is not a regular file".to_owned());
    }
    let owner = Uid::from_raw(about.st_uid);
    (owner != us).then(|| format!("is a file of user {}", about.st_uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    /// The attributes of a file or directory with the given kind, mode and owner.
    fn about(kind: FileType, mode: u32, owner: u32) -> Stat {
        let file = tempfile::tempfile().unwrap();
        let mut about = rustix::fs::fstat(&file).unwrap();
        about.st_mode = kind.as_raw_mode() | mode;
        about.st_uid = owner;
        about
    }

    #[test]
    fn what_belongs_to_somebody_else_is_not_ours() {
        let us = Uid::from_raw(1000);
        let directory = |mode, owner| directory_fault(&about(FileType::Directory, mode, owner), us);
        assert_eq!(directory(0o755, 1000), None);
        assert_eq!(directory(0o755, 0), None);
        assert_eq!(directory(0o1777, 0), None, "the system's directory for temporary files");
        assert_eq!(directory(0o700, 1001).unwrap(), "is a directory of user 1001");
        for mode in [0o777, 0o775, 0o702] {
            assert!(directory(mode, 1000).unwrap().contains("others may write"), "{mode:o}");
        }
        let file = |kind, owner| file_fault(&about(kind, 0o644, owner), us);
        assert_eq!(file(FileType::RegularFile, 1000), None);
        assert_eq!(file(FileType::RegularFile, 0).unwrap(), "is a file of user 0");
        assert_eq!(file(FileType::RegularFile, 1001).unwrap(), "is a file of user 1001");
        assert!(file(FileType::Symlink, 1000).is_some());
    }

    #[test]
    fn the_directory_of_the_locks_is_ours_and_a_link_in_its_place_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (file, locks) = (dir.path().join("belljar.db"), dir.path().join("belljar.locks"));
        fs::create_dir(&locks).unwrap();
        assert!(check_owner(&file).is_ok());
        fs::set_permissions(&locks, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = check_owner(&file).unwrap_err();
        assert!(refused.to_string().contains("belljar.locks"), "{refused}");
        fs::remove_dir(&locks).unwrap();
        std::os::unix::fs::symlink("/tmp", &locks).unwrap();
        let refused = check_owner(&file).unwrap_err();
        assert!(refused.to_string().contains("is not a directory"), "{refused}");
    }

    #[test]
    fn a_directory_that_others_write_to_is_refused_and_the_systems_own_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("belljar.db");
        let mode =
            |mode| fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        mode(0o777);
        let refused = check_owner(&file).unwrap_err();
        assert!(matches!(&refused, StoreError::NotOurs { .. }), "{refused}");
        assert!(refused.to_string().contains("chmod go-w"), "{refused}");
        mode(0o1777);
        assert!(check_owner(&file).is_ok());
        // A link in place of a file that SQLite keeps beside the store's file.
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("belljar.db-wal")).unwrap();
        let refused = check_owner(&file).unwrap_err();
        assert!(refused.to_string().contains("belljar.db-wal"), "{refused}");
    }
}
