//! The calls that are left to a program: those of a host, those that runtimes of languages make besides,
//! and processes where it may have some. No local socket, no shared memory without a file, no mark on a
//! file outside of its directories.
//!
//! Landlock does not ask about the rights and the times of a file, so no path may change them. Programs
//! take that for a broken disk and give up (Git's objects, each copy of a file with Python), so they are
//! told that it is done: a file keeps the rights with which it was made.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
};

use super::{
    FATAL, FATAL_HERE, REFUSED, REFUSED_HERE, Rules, allowed, always, number, numbers, program,
    rule, text, when, when_all,
};

/// Left besides, whatever the arguments.
const BESIDES: &[i64] = &[
    // Becoming another program. It stays behind the same wall.
    libc::SYS_execve,
    libc::SYS_wait4,
    libc::SYS_waitid,
    // Paths: landlock checks their use.
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_statfs,
    libc::SYS_truncate,
    // Time.
    libc::SYS_getitimer,
    libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_delete,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_gettime,
    libc::SYS_timer_settime,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    // Descriptors and memory of its own.
    libc::SYS_signalfd4,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_vmsplice,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_get_mempolicy,
    // Identity and capabilities of the process.
    libc::SYS_capget,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
];

/// The same, where the processor has them.
#[cfg(target_arch = "x86_64")]
const BESIDES_HERE: &[i64] = &[libc::SYS_alarm];
#[cfg(not(target_arch = "x86_64"))]
const BESIDES_HERE: &[i64] = &[];

/// Left where it may have processes.
const OF_PROCESSES: &[i64] =
    &[libc::SYS_getpgid, libc::SYS_getsid, libc::SYS_setpgid, libc::SYS_setsid];

/// The same, where the processor has them.
#[cfg(target_arch = "x86_64")]
const OF_PROCESSES_HERE: &[i64] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const OF_PROCESSES_HERE: &[i64] = &[];

/// Of `clone`: processes in namespaces, traced, or with another parent.
const NO_PROCESS: i32 = allowed::NAMESPACES | libc::CLONE_PARENT | libc::CLONE_PTRACE;

/// INV-550: what these would change of a file, by its path, stays as it is, and the answer is that it is done.
const DONE: &[i64] = &[libc::SYS_fchmodat, libc::SYS_fchmodat2];

/// The same, where the processor has them.
#[cfg(target_arch = "x86_64")]
const DONE_HERE: &[i64] = &[libc::SYS_chmod];
#[cfg(not(target_arch = "x86_64"))]
const DONE_HERE: &[i64] = &[];

/// Attributes of files beside their rights: answered as by a file system that has none.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_fgetxattr,
    libc::SYS_flistxattr,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
];

/// One filter for each answer, as for a host; what ends a host is only refused here.
pub(super) fn filters(
    network: bool,
    processes: bool,
    signals: bool,
) -> Result<Vec<BpfProgram>, String> {
    let rules = rules(network, processes, signals)?;
    let lists = [FATAL, FATAL_HERE, REFUSED, REFUSED_HERE].map(numbers).concat();
    let refused: Vec<i64> = lists.into_iter().filter(|call| !rules.contains_key(call)).collect();
    let errno = |code: i32| SeccompAction::Errno(code.unsigned_abs());
    let allow = SeccompAction::Allow;
    Ok(vec![
        program(rules, allow.clone(), errno(libc::ENOSYS))?,
        program(always(refused), errno(libc::EPERM), allow.clone())?,
        program(always(ATTRIBUTES.iter().copied()), errno(libc::EOPNOTSUPP), allow.clone())?,
        program(done()?, errno(0), allow)?,
    ])
}

/// The calls that are answered as done.
fn done() -> Result<Rules, String> {
    let mut rules = always(DONE.iter().chain(DONE_HERE).copied());
    let by_path = SeccompCondition::new(1, Len::Qword, Op::Ne, 0).map_err(text)?;
    rules.insert(libc::SYS_utimensat, vec![rule(vec![by_path])?]);
    Ok(rules)
}

fn rules(network: bool, processes: bool, signals: bool) -> Result<Rules, String> {
    let mut rules = allowed::rules(network)?;
    rules.extend(always(BESIDES.iter().chain(BESIDES_HERE).copied()));
    // A nameless file is uncounted memory, and could be an unlisted program.
    rules.remove(&libc::SYS_memfd_create);
    let shared = number(libc::MAP_SHARED);
    let nameless = number(libc::MAP_ANONYMOUS);
    // What grows like a stack is not counted as data.
    let fixed = when(3, Op::MaskedEq(number(libc::MAP_GROWSDOWN)), 0)?;
    let private = rule(vec![when(3, Op::MaskedEq(shared), 0)?, fixed.clone()])?;
    let of_a_file = rule(vec![when(3, Op::MaskedEq(nameless), 0)?, fixed])?;
    rules.insert(libc::SYS_mmap, vec![private, of_a_file]);
    // Times of an open file may change; times of a path may not.
    let open = SeccompCondition::new(1, Len::Qword, Op::Eq, 0).map_err(text)?;
    rules.insert(libc::SYS_utimensat, vec![rule(vec![open])?]);
    if processes {
        rules.extend(always(OF_PROCESSES.iter().chain(OF_PROCESSES_HERE).copied()));
        let clone = when_all(&[(0, Op::MaskedEq(number(NO_PROCESS)), 0)])?;
        rules.insert(libc::SYS_clone, vec![clone]);
        if signals {
            rules.extend(always([libc::SYS_kill, libc::SYS_tgkill]));
        }
    }
    Ok(rules)
}
