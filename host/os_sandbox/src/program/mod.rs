//! Programs that speak on their standard streams: a file of the operator's, started by the broker, and
//! confined by this program before it becomes that one.
//!
//! ```text
//! broker ──> keeper, which ends all that is below it ──> this program: bounds, the wall, no privilege
//!                                                           └─ becomes the program
//! ```
//!
//! A program is let through to the directories that it was given, to the system's own programs and
//! libraries, and to nothing else of the file system. It has the environment that it was given and no
//! other, no descriptor but its three streams, and a network only where it was given one. Where the
//! kernel cannot confine it, it is not started.

#[cfg(target_os = "linux")]
mod bounds;
#[cfg(target_os = "linux")]
mod confine;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
pub(crate) use self::bounds::MAX_THREADS;

/// A program, and all that it may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name, for messages.
    pub name: String,
    /// Its file: a whole path.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Files and directories among them that it never executes, as the operator says.
    #[serde(default)]
    pub data: BTreeSet<PathBuf>,
    /// Directories that it reads, with programs in them that it may become or start.
    pub read: BTreeSet<PathBuf>,
    /// Directories that it reads and writes.
    pub write: BTreeSet<PathBuf>,
    /// Whether it has a network: any address then.
    pub network: bool,
    /// Bytes of memory that each of its processes may hold as its own.
    pub memory: u64,
    /// Processes that it may have beside its first.
    pub processes: u32,
}

/// The variables of a program's environment. Their values are not shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment(pub BTreeMap<String, String>);

/// A program as the broker is told of it, once: with its environment, or why it has none and is not
/// started.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The program.
    pub program: Program,
    /// Its environment.
    pub environment: Result<Environment, String>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The exit code of a program that could not be started. Its reason is on stderr.
const NOT_STARTED: u8 = 126;

/// The body of a process that becomes a program: `text` is what the keeper was given. Before the program's
/// first instruction its bounds hold and its wall stands; where they cannot, it does not become it.
pub fn become_program(text: &OsStr) -> ExitCode {
    let program = text.to_str().and_then(|text| serde_json::from_str::<Program>(text).ok());
    let why = match program {
        Some(program) => becomes(&program),
        None => "it is not described as belljar does it".to_owned(),
    };
    let _ = writeln!(io::stderr(), "belljar: not started: {why}");
    ExitCode::from(NOT_STARTED)
}

/// Returns only where it cannot.
#[cfg(target_os = "linux")]
fn becomes(program: &Program) -> String {
    use std::os::unix::process::CommandExt as _;
    crate::process::inherit_nothing();
    if let Err(why) = bounds::lower(program).and_then(|()| confine::confine(program)) {
        return why;
    }
    let error = std::process::Command::new(&program.path).args(&program.args).exec();
    format!("`{}`: {error}", program.path.to_string_lossy())
}

#[cfg(not(target_os = "linux"))]
fn becomes(_program: &Program) -> String {
    "it needs the OS sandbox of Linux".to_owned()
}
