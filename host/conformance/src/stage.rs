//! The workspaces and network hosts that the suite's cases use.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::cases;
use crate::peer::PeerListener;

/// The bytes of the file `large.txt`.
const LARGE: usize = 1 << 20;

/// The directories and loopback addresses for a run of the suite. Make it before the OS sandbox is in force.
/// Dropping it removes the directory and closes the ports.
pub struct SuiteStage {
    directory: TempDir,
    pub(crate) peer: PeerListener,
    pub(crate) stranger: PeerListener,
}

impl SuiteStage {
    /// Makes a directory, and listens on two ports of `127.0.0.1`.
    ///
    /// # Errors
    ///
    /// The directory or a port is not available.
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
            // Made now, because a process in the OS sandbox cannot make links.
            #[cfg(unix)]
            std::os::unix::fs::symlink("../outside.txt", workspace.join("escape"))?;
        }
        Ok(stage)
    }

    /// The directory of all files of the suite.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Writes the files into the workspace of a case, and returns its path.
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
