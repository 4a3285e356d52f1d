//! Checks who owns the operator's files. The home's settings are obeyed, and can run commands as hooks, so a
//! home is only read if nobody else could have written it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::setup::exit::Failure;
use crate::setup::home::{HomePaths, create_private};

/// The parts of the home that decide agents' rights, beside `belljar.toml`. A writer of such a directory
/// could add any file.
const DECIDES: [&str; 8] =
    ["", "agents", "commands", "skills", "teams", "tools", "mcp", "libraries"];

/// Refuses a home in which others could have written one of these parts. A missing part is accepted.
pub(crate) fn check_home(places: &HomePaths) -> Result<(), Failure> {
    for name in DECIDES {
        let path = if name.is_empty() { places.home.clone() } else { places.home.join(name) };
        if let Ok(directory) = File::open(&path) {
            check_ownership(&directory, &path)?;
        }
    }
    Ok(())
}

/// INV-512: makes these directories, if missing. A directory that is made later might be unreadable behind
/// the OS sandbox, together with the first tool or agent in it.
pub(crate) fn make_missing(home: &Path) {
    for name in DECIDES.iter().filter(|name| !name.is_empty()) {
        // Ignored, because a home that cannot be written now gets no new file while this process runs either.
        let _ = create_private(&home.join(name));
    }
}

/// Refuses an open file, unless it belongs to this user or root, and nobody else can write it.
#[cfg(unix)]
pub(crate) fn check_ownership(file: &File, path: &Path) -> Result<(), Failure> {
    use belljar_policy::ShownPath as _;
    use std::os::unix::fs::MetadataExt as _;
    let about = file.metadata().map_err(|error| {
        Failure::usage(format!("failed to look at `{}`: {error}", path.to_shown()))
    })?;
    let us = rustix::process::geteuid().as_raw();
    let Some((why, hint)) = judge_mode(about.uid(), about.mode(), us) else {
        return Ok(());
    };
    let hint = match hint {
        OwnershipHint::Own => {
            format!("look at what it says, then `chown {us} {}`", path.to_shown())
        }
        OwnershipHint::Close => {
            format!("look at what it says, then `chmod go-w {}`", path.to_shown())
        }
    };
    Err(Failure::usage(format!("`{}` {why}, so nothing in it is obeyed", path.to_shown()))
        .with_hint(hint))
}

#[cfg(not(unix))]
pub(crate) fn check_ownership(_file: &File, _path: &Path) -> Result<(), Failure> {
    Ok(())
}

/// The kind of hint for a file that others could have written: change its owner, or its mode.
#[cfg(unix)]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OwnershipHint {
    Own,
    Close,
}

/// The reason why somebody else could have written a file with this owner and mode; `None` = nobody could. A
/// directory's sticky bit does not help: others cannot replace files in it, but can add new ones, which would
/// be obeyed.
#[cfg(unix)]
pub(super) fn judge_mode(owner: u32, mode: u32, us: u32) -> Option<(String, OwnershipHint)> {
    const OTHERS_WRITE: u32 = 0o022;
    if owner != us && owner != 0 {
        return Some((
            format!("belongs to user {owner}, and you are user {us}"),
            OwnershipHint::Own,
        ));
    }
    if mode & OTHERS_WRITE != 0 {
        return Some((
            format!("may be written by others (mode {:o})", mode & 0o7777),
            OwnershipHint::Close,
        ));
    }
    None
}

/// Makes a file for its owner only, whatever the umask; an error if the name is taken.
pub(crate) fn create_new_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens a file for writing, and keeps its content. A new file is for its owner only.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a directory with a unique name for its owner only, whatever the umask. The mode is set when it is
/// made, because behind the OS sandbox no mode can be changed.
pub(crate) fn private_directory(prefix: &str, inside: &Path) -> io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir_in(inside)
}

/// Makes a file, or a directory with its content, private to its owner. Links are not followed.
#[cfg(unix)]
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let kind = std::fs::symlink_metadata(path)?.file_type();
    if kind.is_dir() || kind.is_file() {
        let mode = if kind.is_dir() { 0o700 } else { 0o600 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    }
    if kind.is_dir() {
        for entry in std::fs::read_dir(path)? {
            make_private(&entry?.path())?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn make_private(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_another_user_owns_or_may_write_is_not_ours() {
        let file = |owner, mode| judge_mode(owner, mode, 1000).map(|(_, hint)| hint);
        for mode in [0o600, 0o640, 0o644, 0o444] {
            assert_eq!(file(1000, mode), None, "{mode:o}");
            assert_eq!(file(0, mode), None, "{mode:o}: root's");
            assert_eq!(file(1001, mode), Some(OwnershipHint::Own), "{mode:o}");
        }
        for mode in [0o666, 0o664, 0o602, 0o1666] {
            assert_eq!(file(1000, mode), Some(OwnershipHint::Close), "{mode:o}");
            assert_eq!(file(0, mode), Some(OwnershipHint::Close), "{mode:o}");
        }
        // The same is true of directories, with or without the sticky bit.
        assert_eq!(file(1000, 0o755), None);
        for mode in [0o775, 0o1777] {
            assert_eq!(file(1000, mode), Some(OwnershipHint::Close), "{mode:o}");
        }
        assert_eq!(
            judge_mode(1000, 0o600, 0).map(|(_, hint)| hint),
            Some(OwnershipHint::Own),
            "to root"
        );
    }
}
