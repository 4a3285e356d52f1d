//! The limits of a program's processes that the kernel enforces.

use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use super::Program;

/// The most open descriptors of a process.
const FILES: u64 = 1_024;

/// The most bytes of a file that the program writes, because an endless log must not fill the disk at once.
const FILE: u64 = 1 << 30;

/// The most bytes of a stack, which does not count as data.
const STACK: u64 = 64 << 20;

/// How much the program's priority is lowered (`nice`), so that it does not slow the host.
const NICE: i32 = 5;

/// The most threads of all processes of a program. The kernel counts the threads of a user, not of a
/// program, so the keeper counts these.
pub(crate) const MAX_THREADS: usize = 512;

/// Lowers the limits of the current process, which the program inherits, and makes the current process end
/// when its keeper ends.
pub(super) fn lower_limits(program: &Program) -> Result<(), String> {
    let limits = [
        // Private writable memory; address space not written does not count.
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
