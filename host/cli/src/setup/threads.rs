//! The turns of threads on the processors.

/// The time that the scheduler plans for a thread at once, in nanoseconds: the most that it takes. Whoever
/// wakes up beside it and plans less, as everybody does by default, goes first; nobody gets a smaller share of
/// the processors for it. Linux 6.12 and later look at it.
#[cfg(target_os = "linux")]
const PLANNED: u64 = 100_000_000;

/// Has this thread, and all threads and programs that it starts from now on, give way to whoever waits for an
/// answer. What is done behind an answer would keep the client from reading it otherwise. Where the system has
/// no such thing, nothing changes. Call it before the OS sandbox is up, which refuses it.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe interface has these calls")]
pub(crate) fn give_way() {
    // SAFETY: zeroes are a value of each of its fields.
    let mut plan: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or_default();
    // SAFETY: the kernel writes at most `size` bytes to `plan`, which has as many.
    let known = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut plan, size, 0) };
    // The same field means something else for a thread with deadlines.
    if known != 0 || plan.sched_policy != libc::SCHED_OTHER.unsigned_abs() {
        return;
    }
    (plan.size, plan.sched_runtime) = (size, PLANNED);
    // SAFETY: the kernel reads `plan`. An error: threads take their turns as before.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const plan, 0) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_way() {}
