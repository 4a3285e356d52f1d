//! Where the suite's cases take place: workspaces and hosts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::peer::Address;

/// Bytes of `large.txt`.
const LARGE: usize = 1 << 20;

/// Directories and loopback addresses for one run of the suite. Made before the OS sandbox goes up;
/// what it listens on and its directory are gone with it.
pub struct Stage {
    directory: TempDir,
    pub(crate) peer: Address,
    pub(crate) stranger: Address,
}

impl Stage {
    /// Makes a directory and listens on two ports of `127.0.0.1`.
    ///
    /// # Errors
    ///
    /// When either cannot be had.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            directory: tempfile::tempdir()?,
            peer: Address::new()?,
            stranger: Address::new()?,
        })
    }

    /// The directory below which all files of the suite lie.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The workspace of a case, new.
    pub(crate) fn workspace(&self, number: usize) -> io::Result<PathBuf> {
        let root = self.directory().join(format!("case-{number}"));
        let workspace = root.join("workspace");
        fs::create_dir_all(workspace.join("notes"))?;
        for (path, text) in [
            ("notes/a.txt", "alpha\n"),
            ("notes/b.txt", "beta\n"),
            ("notes/ünï 🔔.txt", "snowman ☃\n"),
            ("../outside.txt", "out of reach\n"),
        ] {
            fs::write(workspace.join(path), text)?;
        }
        fs::write(workspace.join("large.txt"), "x".repeat(LARGE))?;
        #[cfg(unix)]
        std::os::unix::fs::symlink("../outside.txt", workspace.join("escape"))?;
        Ok(workspace)
    }
}
