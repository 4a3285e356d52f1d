//! Programs belljar talks to on their standard streams, for example MCP servers. They are files of the
//! operator, started by the broker, and confined before they run.
//!
//! ```text
//! broker ──> keeper, which ends all that is below it ──> this program: bounds, the wall, no privilege
//!                                                           └─ becomes the program
//! ```
//!
//! A program can reach the granted directories, the system's programs and libraries, and no other files. Its
//! environment variables are the granted ones, its descriptors are the three streams, and it has a network
//! only if that is granted. If the kernel cannot confine a program, it is not started.

#[cfg(target_os = "linux")]
mod bounds;
#[cfg(target_os = "linux")]
mod confine;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
pub(crate) use self::bounds::MAX_THREADS;

/// A program the operator configured, with its grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The name for messages, for example `work`.
    pub name: String,
    /// The absolute path of the file, for example `/usr/bin/npx`.
    pub path: PathBuf,
    /// The arguments, without the program's name.
    pub args: Vec<String>,
    /// Files and directories the operator declared to be data, never executed by the program. They are not
    /// part of the program's digest.
    #[serde(default)]
    pub data: BTreeSet<PathBuf>,
    /// Directories that may be read, and whose programs may be executed.
    pub read: BTreeSet<PathBuf>,
    /// Directories that may be read and written.
    pub write: BTreeSet<PathBuf>,
    /// Whether the program may use the network, with any address.
    pub network: bool,
    /// The one port of TCP connections that a networked program may open; absent = every port. A kernel
    /// without landlock's rules for connections (before 6.7) does not enforce it.
    #[serde(default)]
    pub only_port: Option<u16>,
    /// Bytes of private memory for each process.
    pub memory: u64,
    /// The most processes beside the first.
    pub processes: u32,
}

/// The environment variables of a program. `Debug` does not show their values.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramEnvironment(pub BTreeMap<String, String>);

/// A program in the broker's list, with its environment variables, or why it cannot start.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownProgram {
    /// The program.
    pub program: Program,
    /// The environment variables, or the reason why the program cannot start.
    pub environment: Result<ProgramEnvironment, String>,
}

impl std::fmt::Debug for ProgramEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The exit code of a program that could not be started; stderr says why.
const NOT_STARTED: u8 = 126;

/// Confines this process and executes the program of the keeper's description `text`, with `more` arguments
/// behind those of the description. The limits and the wall are in force before the program's first
/// instruction; if either fails, the program does not start.
pub fn become_program(text: &OsStr, more: impl Iterator<Item = OsString>) -> ExitCode {
    let program = text.to_str().and_then(|text| serde_json::from_str::<Program>(text).ok());
    let why = match program {
        Some(program) => exec_program(&program, more),
        None => "it is not described as belljar does it".to_owned(),
    };
    let _ = writeln!(io::stderr(), "belljar: not started: {why}");
    ExitCode::from(NOT_STARTED)
}

/// Executes the program. Returns only if that fails, with the reason.
#[cfg(target_os = "linux")]
fn exec_program(program: &Program, more: impl Iterator<Item = OsString>) -> String {
    use std::os::unix::process::CommandExt as _;
    crate::process::inherit_nothing();
    if let Err(why) =
        bounds::lower_limits(program).and_then(|()| confine::confine_to_grants(program))
    {
        return why;
    }
    let error = std::process::Command::new(&program.path).args(&program.args).args(more).exec();
    format!("`{}`: {error}", program.path.to_string_lossy())
}

#[cfg(not(target_os = "linux"))]
fn exec_program(_program: &Program, _more: impl Iterator<Item = OsString>) -> String {
    "it needs the OS sandbox of Linux".to_owned()
}
