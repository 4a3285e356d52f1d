//! The bounds of a program's processes that the kernel keeps.

use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use super::Program;

/// Descriptors of one process.
const FILES: u64 = 1_024;

/// Bytes of one file that it writes: a log without an end does not fill the disk at once.
const FILE: u64 = 1 << 30;

/// Bytes of a stack, which is not counted as data.
const STACK: u64 = 64 << 20;

/// Lower than this process's own, so that it does not keep the host from its work.
const NICE: i32 = 5;

/// Threads of all its processes together. The kernel counts those of a user, not of a program, so its
/// keeper counts them.
pub(crate) const MAX_THREADS: usize = 512;

/// Lowers the limits of this process, which the program inherits, and binds its life to its keeper's.
pub(super) fn lower(program: &Program) -> Result<(), String> {
    let limits = [
        // What is private and can be written; address space that nobody writes is not memory.
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
