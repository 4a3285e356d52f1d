//! The private directory of a running program: its home, and room for temporary files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::program::Program;

/// Where such directories are made. `TMPDIR` is the program's own by now.
const PLACE: &str = "/tmp";

/// Where programs are looked for, behind the directory of the program itself.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Descriptors for the removal. Each level of nesting takes one: a deeper directory is not removed.
const LEVELS: u64 = 512;

/// A directory that no other user may enter. Dropping `Scratch` removes the directory.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// A new one. INV-494: made by a keeper, for one program.
    ///
    /// # Errors
    ///
    /// Where it cannot be made.
    pub(super) fn make() -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let own = rustix::process::getpid().as_raw_nonzero();
        let path = Path::new(PLACE).join(format!("belljar-program-{own}-{}", now.as_nanos()));
        let made = Self(path);
        // The directory must be new: the maker of an old one could read its files.
        std::fs::DirBuilder::new().mode(0o700).create(&made.0)?;
        for part in ["home", "tmp"] {
            std::fs::DirBuilder::new().mode(0o700).create(made.0.join(part))?;
        }
        Ok(made)
    }

    /// Grants the directory to a program, and sets the command's variables, for example `HOME`, to it. The
    /// operator's settings in `env` stay.
    pub(super) fn give(&self, program: &mut Program, command: &mut Command) {
        program.write.insert(self.0.clone());
        let mut path = OsString::new();
        if let Some(directory) = program.path.parent() {
            path.push(directory);
            path.push(":");
        }
        path.push(SYSTEM_PATH);
        let defaults = [
            ("PATH", path),
            ("HOME", self.0.join("home").into()),
            ("TMPDIR", self.0.join("tmp").into()),
        ];
        for (name, value) in defaults {
            if std::env::var_os(name).is_none() {
                command.env(OsStr::new(name), value);
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        // As deep as it is nested, so deep the removal calls itself.
        let most = getrlimit(Resource::Nofile).maximum;
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(LEVELS), maximum: most });
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
