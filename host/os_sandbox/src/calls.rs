//! Restricts the system calls of a process, with seccomp.
//!
//! There is a list of allowed calls ([`allowed`]); every other call fails. Two further lists say how. A call
//! that only an intruder makes ends the process. A call a library may try and can do without fails with
//! `EPERM`. All other calls fail with `ENOSYS`, as on a kernel that lacks them, because the C library then
//! uses an older call.

mod allowed;
mod program;

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// Calls that only an intruder makes: the kernel ends the process.
const FATAL: &[i64] = &[
    // Memory and descriptors of other processes.
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    // Other views of the file system, in which landlock's rules for paths would not apply.
    libc::SYS_chroot,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    libc::SYS_unshare,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_perf_event_open,
    libc::SYS_reboot,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_userfaultfd,
    // Keys of the session.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
];

/// More entries of [`FATAL`], for x86-64 only.
#[cfg(target_arch = "x86_64")]
const FATAL_HERE: &[i64] = &[
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_kexec_file_load,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
];
#[cfg(not(target_arch = "x86_64"))]
const FATAL_HERE: &[i64] = &[];

/// Calls that a library may try and can do without; each fails with `EPERM`.
const REFUSED: &[i64] = &[
    // Executing a program: only the broker starts programs, from its fixed list.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Work the kernel does in the background, where this filter does not apply.
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    // Limits, processors, priorities and signals of other processes.
    libc::SYS_get_robust_list,
    libc::SYS_getpgid,
    libc::SYS_ioprio_get,
    libc::SYS_ioprio_set,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_setpgid,
    libc::SYS_setsid,
    libc::SYS_tkill,
    // Objects that processes share by a number or a name instead of a file.
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
    // Listening for connections; `serve` listens before the OS sandbox is in force.
    libc::SYS_listen,
    // Watching files by name, and file handles: landlock checks neither.
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_init1,
    libc::SYS_name_to_handle_at,
    // The machine's clock, name, accounts and log.
    libc::SYS_acct,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_personality,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // Properties of files that landlock does not protect and belljar does not need: owner, attributes,
    // special files.
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_mknodat,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
];

/// More entries of [`REFUSED`], for x86-64 only.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_fork,
    libc::SYS_inotify_init,
    libc::SYS_lchown,
    libc::SYS_mknod,
    libc::SYS_vfork,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// The bit that marks a call of the x32 interface, which some kernels have beside the usual one: the same
/// calls under other numbers.
const X32: i64 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Restricts the system calls of the current thread, and of all threads it makes. `network`: whether the
/// process may make sockets.
pub(crate) fn confine_calls(network: bool) -> Result<(), String> {
    for program in filter_programs(network)? {
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Restricts the system calls of the current process, before it executes a program. `processes`: the program
/// may start others. `signals`: it may signal its descendants; otherwise only itself.
pub(crate) fn confine_program(network: bool, processes: bool, signals: bool) -> Result<(), String> {
    for filter in program::program_filters(network, processes, signals)? {
        seccompiler::apply_filter(&filter).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// One filter for each way to answer. The kernel runs all filters and takes the strictest answer; of two
/// error numbers, that of the filter that was added last.
fn filter_programs(network: bool) -> Result<Vec<BpfProgram>, String> {
    let fatal = [call_numbers(FATAL), call_numbers(FATAL_HERE)].concat();
    let refused = [call_numbers(REFUSED), call_numbers(REFUSED_HERE)].concat();
    let errno = |code: i32| SeccompAction::Errno(code.unsigned_abs());
    let (allow, unknown) = (SeccompAction::Allow, errno(libc::ENOSYS));
    Ok(vec![
        filter_program(allowed::allowed_rules(network)?, allow.clone(), unknown)?,
        filter_program(match_always(refused), errno(libc::EPERM), allow.clone())?,
        filter_program(match_always(fatal), SeccompAction::KillProcess, allow)?,
    ])
}

/// Makes a filter with the answer `action` for calls that match `rules`, and `otherwise` for all others.
fn filter_program(
    rules: Rules,
    action: SeccompAction,
    otherwise: SeccompAction,
) -> Result<BpfProgram, String> {
    let target: TargetArch = std::env::consts::ARCH.try_into().map_err(error_text)?;
    let filter = SeccompFilter::new(rules, otherwise, action, target).map_err(error_text)?;
    filter.try_into().map_err(error_text)
}

/// Rules that match these calls, whatever their arguments are.
fn match_always(calls: impl IntoIterator<Item = i64>) -> Rules {
    calls.into_iter().map(|call| (call, Vec::new())).collect()
}

/// The numbers of the calls in all interfaces of the kernel.
fn call_numbers(calls: &[i64]) -> Vec<i64> {
    [calls.to_vec(), x32_numbers(calls)].concat()
}

/// The numbers of the calls in the x32 interface. Empty on processors other than x86-64.
fn x32_numbers(calls: &[i64]) -> Vec<i64> {
    if cfg!(target_arch = "x86_64") {
        calls.iter().map(|call| call | X32).collect()
    } else {
        Vec::new()
    }
}

fn new_rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(error_text)
}

/// A rule that matches if all its conditions hold. A condition is the index of an argument, a comparison and
/// a value.
fn when_all(conditions: &[(u8, Op, u64)]) -> Result<SeccompRule, String> {
    let each =
        conditions.iter().map(|(argument, op, value)| new_condition(*argument, op.clone(), *value));
    new_rule(each.collect::<Result<_, _>>()?)
}

/// A condition on the lower 32 bits of an argument, because the kernel ignores the upper ones of these
/// arguments.
fn new_condition(argument: u8, op: Op, value: u64) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, Len::Dword, op, value).map_err(error_text)
}

fn to_argument(value: i32) -> u64 {
    u64::from(value.unsigned_abs())
}

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
