//! The victim: a process of the same user that is not part of belljar.

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use rustix::process::{
    DumpableBehavior, Resource, getpriority_process, getrlimit, set_dumpable_behavior,
};

use super::raw::call_kernel;

/// The `main` of the victim: answers each line with the parts of its own state that another process could
/// change.
pub(super) fn be_victim() -> ExitCode {
    // The victim is made as open as possible; belljar's own processes are closed to others of the same user.
    let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    let mut lines = std::io::stdin().lock().lines();
    let mut stdout = std::io::stdout().lock();
    while let Some(Ok(_)) = lines.next() {
        let limits: Vec<_> = [Resource::Cpu, Resource::Nofile, Resource::Fsize, Resource::As]
            .into_iter()
            .map(|resource| format!("{:?}", getrlimit(resource)))
            .collect();
        let nice = getpriority_process(None);
        let processors = processor_count();
        let ioprio = call_kernel(libc::SYS_ioprio_get, [1.into(), 0.into()]);
        let policy = call_kernel(libc::SYS_sched_getscheduler, [0.into()]);
        let group = call_kernel(libc::SYS_getpgid, [0.into()]);
        let line = format!("{limits:?} {nice:?} {processors} {ioprio:?} {policy:?} {group:?}\n");
        if stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn processor_count() -> usize {
    std::thread::available_parallelism().map_or(0, std::num::NonZero::get)
}
