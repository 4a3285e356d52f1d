//! The system calls of a confined program: the calls of a host, further calls that language runtimes need,
//! and calls for processes if the program may have several. No local socket, no shared memory without a file,
//! no change of permissions or times outside the program's directories.
//!
//! Landlock does not check changes of a file's permissions and times, so every such call with a path has no
//! effect. Programs treat a refusal like a broken disk and stop (Git's objects, each file copied in Python),
//! so the filter answers that the call succeeded: a file keeps the permissions with which it was made.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
};

use super::{
    FATAL, FATAL_HERE, REFUSED, REFUSED_HERE, Rules, allowed, call_numbers, error_text,
    filter_program, match_always, new_condition, new_rule, to_argument, when_all,
};

/// Calls that are also allowed, whatever the arguments.
const BESIDES: &[i64] = &[
    // Executing another program, which stays behind the same wall.
    libc::SYS_execve,
    libc::SYS_wait4,
    libc::SYS_waitid,
    // Calls with paths, whose use landlock checks.
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_statfs,
    libc::SYS_truncate,
    // Timers.
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
    // Descriptors and memory of the program itself.
    libc::SYS_signalfd4,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_vmsplice,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_get_mempolicy,
    // Identity, capabilities and scheduling of the process.
    libc::SYS_capget,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
];

/// Further such calls of some processors.
#[cfg(target_arch = "x86_64")]
const BESIDES_HERE: &[i64] = &[libc::SYS_alarm];
#[cfg(not(target_arch = "x86_64"))]
const BESIDES_HERE: &[i64] = &[];

/// Calls that are allowed only to a program with several processes.
const OF_PROCESSES: &[i64] =
    &[libc::SYS_getpgid, libc::SYS_getsid, libc::SYS_setpgid, libc::SYS_setsid];

/// Further such calls of some processors.
#[cfg(target_arch = "x86_64")]
const OF_PROCESSES_HERE: &[i64] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const OF_PROCESSES_HERE: &[i64] = &[];

/// Flags of `clone` that are refused: new namespaces, tracing, another parent.
const NO_PROCESS: i32 = allowed::NAMESPACES | libc::CLONE_PARENT | libc::CLONE_PTRACE;

/// INV-550: calls that would change a file's permissions by its path. Nothing is changed, and the answer is
/// success.
const DONE: &[i64] = &[libc::SYS_fchmodat, libc::SYS_fchmodat2];

/// Further such calls of some processors.
#[cfg(target_arch = "x86_64")]
const DONE_HERE: &[i64] = &[libc::SYS_chmod];
#[cfg(not(target_arch = "x86_64"))]
const DONE_HERE: &[i64] = &[];

/// Calls for extended attributes, answered as on a file system without such attributes.
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

/// One filter for each kind of answer, as for a host; a call that would kill a host is only refused here.
pub(super) fn program_filters(
    network: bool,
    processes: bool,
    signals: bool,
) -> Result<Vec<BpfProgram>, String> {
    let rules = program_rules(network, processes, signals)?;
    let lists = [FATAL, FATAL_HERE, REFUSED, REFUSED_HERE].map(call_numbers).concat();
    let refused: Vec<i64> = lists.into_iter().filter(|call| !rules.contains_key(call)).collect();
    let errno = |code: i32| SeccompAction::Errno(code.unsigned_abs());
    let allow = SeccompAction::Allow;
    Ok(vec![
        filter_program(rules, allow.clone(), errno(libc::ENOSYS))?,
        filter_program(match_always(refused), errno(libc::EPERM), allow.clone())?,
        filter_program(
            match_always(ATTRIBUTES.iter().copied()),
            errno(libc::EOPNOTSUPP),
            allow.clone(),
        )?,
        filter_program(done_rules()?, errno(0), allow)?,
    ])
}

/// The calls that do nothing and are answered with success.
fn done_rules() -> Result<Rules, String> {
    let mut rules = match_always(DONE.iter().chain(DONE_HERE).copied());
    let by_path = SeccompCondition::new(1, Len::Qword, Op::Ne, 0).map_err(error_text)?;
    rules.insert(libc::SYS_utimensat, vec![new_rule(vec![by_path])?]);
    Ok(rules)
}

fn program_rules(network: bool, processes: bool, signals: bool) -> Result<Rules, String> {
    let mut rules = allowed::allowed_rules(network)?;
    rules.extend(match_always(BESIDES.iter().chain(BESIDES_HERE).copied()));
    // A file without a name is uncounted memory, and could hold an unlisted program.
    rules.remove(&libc::SYS_memfd_create);
    let shared = to_argument(libc::MAP_SHARED);
    let nameless = to_argument(libc::MAP_ANONYMOUS);
    // Memory that grows like a stack is not counted as data.
    let fixed = new_condition(3, Op::MaskedEq(to_argument(libc::MAP_GROWSDOWN)), 0)?;
    let private = new_rule(vec![new_condition(3, Op::MaskedEq(shared), 0)?, fixed.clone()])?;
    let of_a_file = new_rule(vec![new_condition(3, Op::MaskedEq(nameless), 0)?, fixed])?;
    rules.insert(libc::SYS_mmap, vec![private, of_a_file]);
    // The times of an open file may change; those of a path may not.
    let open = SeccompCondition::new(1, Len::Qword, Op::Eq, 0).map_err(error_text)?;
    rules.insert(libc::SYS_utimensat, vec![new_rule(vec![open])?]);
    if processes {
        rules.extend(match_always(OF_PROCESSES.iter().chain(OF_PROCESSES_HERE).copied()));
        let clone = when_all(&[(0, Op::MaskedEq(to_argument(NO_PROCESS)), 0)])?;
        rules.insert(libc::SYS_clone, vec![clone]);
        if signals {
            rules.extend(match_always([libc::SYS_kill, libc::SYS_tgkill]));
        }
    }
    Ok(rules)
}
