//! One shell session: a working directory, variables and functions that last.

use crate::files::{Mount, Outside};
use crate::{absent, files, limits, programs, utilities};
use bashkit::{Bash, ExecOptions, SessionLimits};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};

/// Where a session starts, and its `HOME`.
pub const START: &str = "/workspace";

/// The exit code of a script that could not be run to its end: bash's for bad syntax.
const GAVE_UP: i32 = 2;

/// A shell with what it keeps between scripts.
pub struct Session {
    bash: Bash,
    runtime: Runtime,
}

/// What came of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finished {
    /// Everything written to standard output.
    pub stdout: Vec<u8>,
    /// Everything written to standard error.
    pub stderr: Vec<u8>,
    /// The exit code, 0 to 255.
    pub code: i32,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Session {
    /// A session over these mounts; everything else is a `/tmp` in memory.
    ///
    /// # Errors
    ///
    /// When the executor cannot be made, or two mounts stand at the same place.
    pub fn new(mounts: &[Mount]) -> io::Result<Session> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let outside = Outside::new();
        runtime.block_on(outside.tidy()).map_err(io::Error::other)?;
        let mut builder = Bash::builder()
            .fs(Arc::new(outside))
            // Its own root has invented users, processors and programs.
            .rootfs(false)
            .limits(limits::execution())
            .memory_limits(limits::memory())
            .session_limits(SessionLimits::unlimited())
            .builtin_filter(utilities::is_kept)
            .command_resolver(Arc::new(absent::Resolver))
            .cwd(START);
        for (name, value) in [("HOME", START), ("USER", "agent"), ("PWD", START), ("TZ", "UTC")] {
            builder = builder.env(name, value);
        }
        for (name, program) in programs::all() {
            builder = builder.builtin(name, program);
        }
        let bash = builder.build();
        for mount in mounts {
            let disk = files::Disk::new(mount.clone());
            bash.mount(&mount.guest, Arc::new(disk)).map_err(io::Error::other)?;
        }
        Ok(Session { bash, runtime })
    }

    /// Runs a script. What it changes in the session lasts; `set` options, traps and the
    /// positional parameters are those of a new script each time.
    pub fn run(&mut self, script: &str) -> Finished {
        // Kept apart because an error of the interpreter drops what the script had printed.
        let printed = Arc::new(Mutex::new(Finished::default()));
        let into = Arc::clone(&printed);
        let options = ExecOptions::new().streaming(Box::new(move |stdout, stderr| {
            let mut printed = into.lock().unwrap_or_else(PoisonError::into_inner);
            printed.stdout.extend_from_slice(stdout.as_bytes());
            printed.stderr.extend_from_slice(stderr.as_bytes());
        }));
        match self.runtime.block_on(self.bash.exec_with_options(script, options)) {
            Ok(result) => Finished {
                stdout: result.stdout.into_bytes(),
                stderr: result.stderr.into_bytes(),
                code: result.exit_code,
            },
            // The interpreter gave up: bad syntax or one of the limits.
            Err(error) => {
                let mut done =
                    std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner));
                done.stderr.extend_from_slice(format!("shell: {error}\n").as_bytes());
                done.code = GAVE_UP;
                done
            }
        }
    }
}
