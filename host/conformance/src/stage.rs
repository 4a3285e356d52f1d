//! Where the suite's cases take place: workspaces and hosts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::cases;
use crate::peer::PeerListener;

/// Bytes of `large.txt`.
const LARGE: usize = 1 << 20;

/// Directories and loopback addresses for one run of the suite. Made before the OS sandbox goes up;
/// what it listens on and its directory are gone with it.
pub struct SuiteStage {
    directory: TempDir,
    pub(crate) peer: PeerListener,
    pub(crate) stranger: PeerListener,
}

impl SuiteStage {
    /// Makes a directory and listens on two ports of `127.0.0.1`.
    ///
    /// # Errors
    ///
    /// When either cannot be had.
    pub fn new() -> io::Result<Self> {
        let stage = Self {
            directory: tempfile::tempdir()?,
            peer: PeerListener::new()?,
            stranger: PeerListener::new()?,
        };
        let cases: usize = cases::parse_suite()
            .map_err(io::Error::other)?
            .iter()
            .map(|group| group.cases.len())
            .sum();
        for number in 0..cases {
            let workspace = stage.workspace_path(number);
            fs::create_dir_all(workspace.join("notes"))?;
            // Behind the OS sandbox nobody makes a link.
            #[cfg(unix)]
            std::os::unix::fs::symlink("../outside.txt", workspace.join("escape"))?;
        }
        Ok(stage)
    }

    /// The directory below which all files of the suite lie.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The workspace of a case, with its files.
    pub(crate) fn make_workspace(&self, number: usize) -> io::Result<PathBuf> {
        let workspace = self.workspace_path(number);
        for (path, text) in [
            ("notes/a.txt", "alpha\n"),
            ("notes/b.txt", "beta\n"),
            ("notes/ünï 🔔.txt", "snowman ☃\n"),
            ("../outside.txt", "out of reach\n"),
        ] {
            fs::write(workspace.join(path), text)?;
        }
        fs::write(workspace.join("large.txt"), "x".repeat(LARGE))?;
        Ok(workspace)
    }

    fn workspace_path(&self, number: usize) -> PathBuf {
        self.directory().join(format!("case-{number}")).join("workspace")
    }
}
