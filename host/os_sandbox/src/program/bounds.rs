//! The limits of a program's processes that the kernel enforces.

use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use super::Program;

/// Descriptors of one process.
const FILES: u64 = 1_024;

/// Bytes of one written file, because an endless log must not fill the disk at once.
const FILE: u64 = 1 << 30;

/// Bytes of a stack, which is not counted as data.
const STACK: u64 = 64 << 20;

/// A lower priority than the host's, so that a program does not slow the host.
const NICE: i32 = 5;

/// Threads of all processes of a program. The kernel counts threads by user, not by program, so the keeper
/// counts them.
pub(crate) const MAX_THREADS: usize = 512;

/// Lowers the limits of this process, which the program inherits, and makes this process end together with
/// its keeper.
pub(super) fn lower_limits(program: &Program) -> Result<(), String> {
    let limits = [
        // Private writable memory; unwritten address space does not count.
        (Resource::Data, program.memory),
        (Resource::Stack, STACK),
        (Resource::Nofile, FILES),
        (Resource::Fsize, FILE),
        (Resource::Core, 0),
        (Resource::Msgqueue, 0),
    ];
    for (resource, limit) in limits {
        let most = rustix::process::getrlimit(resource).maximum;
        let limit = most.map_or(limit, |most| most.min(limit));
        let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
        setrlimit(resource, limit).map_err(|error| format!("bounding it: {error}"))?;
    }
    let _ = rustix::process::nice(NICE);
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("binding it to its keeper: {error}"))?;
    std::env::set_current_dir("/").map_err(|error| format!("leaving the directory: {error}"))
}
