//! The system calls of a confined program: those of a host, more that language runtimes need, and calls for
//! processes if the program may have several. Refused are local sockets, shared memory without a file, and
//! changes of permissions or times by path.
//!
//! Landlock does not check changes of a file's permissions and times, so calls that change them by path do
//! nothing. Programs take a refusal for a broken disk and stop, for example Git with its objects, and Python
//! with each file it copies. So the filter answers that the call succeeded; the file keeps the permissions
//! with which it was made.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
};

use super::{
    FATAL, FATAL_HERE, REFUSED, REFUSED_HERE, Rules, allowed, call_numbers, error_text,
    filter_program, match_always, new_condition, new_rule, to_argument, when_all,
};

/// Calls allowed in addition to a host's, whatever their arguments are.
const BESIDES: &[i64] = &[
    // Executing another program, which the same OS sandbox confines.
    libc::SYS_execve,
    libc::SYS_wait4,
    libc::SYS_waitid,
    // Calls with paths, for which landlock checks the use.
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

/// More entries of [`BESIDES`], for x86-64 only.
#[cfg(target_arch = "x86_64")]
const BESIDES_HERE: &[i64] = &[libc::SYS_alarm];
#[cfg(not(target_arch = "x86_64"))]
const BESIDES_HERE: &[i64] = &[];

/// Calls that only a program with several processes may make.
const OF_PROCESSES: &[i64] =
    &[libc::SYS_getpgid, libc::SYS_getsid, libc::SYS_setpgid, libc::SYS_setsid];

/// More entries of [`OF_PROCESSES`], for x86-64 only.
#[cfg(target_arch = "x86_64")]
const OF_PROCESSES_HERE: &[i64] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const OF_PROCESSES_HERE: &[i64] = &[];

/// The flags of `clone` that are refused: new namespaces, tracing, another parent.
const NO_PROCESS: i32 = allowed::NAMESPACES | libc::CLONE_PARENT | libc::CLONE_PTRACE;

/// INV-550: calls that would change a file's permissions by its path. They change nothing and return
/// success.
const DONE: &[i64] = &[libc::SYS_fchmodat, libc::SYS_fchmodat2];

/// More entries of [`DONE`], for x86-64 only.
#[cfg(target_arch = "x86_64")]
const DONE_HERE: &[i64] = &[libc::SYS_chmod];
#[cfg(not(target_arch = "x86_64"))]
const DONE_HERE: &[i64] = &[];

/// Calls for extended attributes. They fail as on a file system that has none.
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

/// One filter for each way to answer, as for a host. A call for which a host would be killed only fails
/// here.
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

/// Rules for the calls that do nothing and return success.
fn done_rules() -> Result<Rules, String> {
    let mut rules = match_always(DONE.iter().chain(DONE_HERE).copied());
    let by_path = SeccompCondition::new(1, Len::Qword, Op::Ne, 0).map_err(error_text)?;
    rules.insert(libc::SYS_utimensat, vec![new_rule(vec![by_path])?]);
    Ok(rules)
}

fn program_rules(network: bool, processes: bool, signals: bool) -> Result<Rules, String> {
    let mut rules = allowed::allowed_rules(network)?;
    rules.extend(match_always(BESIDES.iter().chain(BESIDES_HERE).copied()));
    // A file without a name would be memory no limit counts, and could contain a program that is not in the
    // operator's list.
    rules.remove(&libc::SYS_memfd_create);
    let shared = to_argument(libc::MAP_SHARED);
    let nameless = to_argument(libc::MAP_ANONYMOUS);
    // Memory that grows like a stack does not count as data, so it is refused.
    let fixed = new_condition(3, Op::MaskedEq(to_argument(libc::MAP_GROWSDOWN)), 0)?;
    let private = new_rule(vec![new_condition(3, Op::MaskedEq(shared), 0)?, fixed.clone()])?;
    let of_a_file = new_rule(vec![new_condition(3, Op::MaskedEq(nameless), 0)?, fixed])?;
    rules.insert(libc::SYS_mmap, vec![private, of_a_file]);
    // The times of an open file may be changed, those of a path may not.
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
