//! Sets how the system's scheduler treats the threads of this process.

/// The scheduler's slice for a thread, in nanoseconds: the maximum. A waking thread with a shorter slice, as
/// by default, goes first; no thread gets a smaller share of the processors. Used by Linux 6.12 and later.
#[cfg(target_os = "linux")]
const PLANNED: u64 = 100_000_000;

/// Makes this thread, and all later threads and programs from it, yield to threads that serve waiting
/// clients. Work after an answer would otherwise delay the client's reading. If the system does not support
/// this, nothing changes. Must be called before the OS sandbox is raised, which refuses the call.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe interface has these calls")]
pub(crate) fn give_way() {
    // SAFETY: all fields are numbers, so zeroes are valid values.
    let mut plan: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or_default();
    // SAFETY: the kernel writes at most `size` bytes to `plan`, which has as many.
    let known = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut plan, size, 0) };
    // For a thread with another scheduling policy, the same field has another meaning.
    if known != 0 || plan.sched_policy != libc::SCHED_OTHER.unsigned_abs() {
        return;
    }
    (plan.size, plan.sched_runtime) = (size, PLANNED);
    // SAFETY: the kernel only reads `plan`. An error is ignored: threads are then scheduled as before.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const plan, 0) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_way() {}
