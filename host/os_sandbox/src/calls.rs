//! System calls: seccomp.
//!
//! A list of what is refused, not of what is allowed: wasmtime, SQLite, the C library and their
//! next versions may call whatever an ordinary program calls. What is gone is what no part of a
//! host of tools has a reason for, and what has a history of faults in the kernel.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// What only somebody calls who has taken the process over: the kernel ends it.
const FATAL: &[i64] = &[
    // Other processes' memory and descriptors.
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    // Other views of the file system, past the paths that landlock knows.
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

/// The same, where the processor has it.
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

/// What a library may try and does without: it fails with `EPERM`.
const REFUSED: &[i64] = &[
    // A new program: the broker starts those that there are.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Work that the kernel does on its own, past this filter.
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    // The machine: its clock, its name, its accounts, its log.
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
    // What landlock does not hold of a file, as far as nobody here needs it: its owner, its
    // attributes; special files.
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_mknodat,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
];

/// The same, where the processor has it.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[libc::SYS_chown, libc::SYS_lchown, libc::SYS_mknod];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Marks a call of the x32 interface, which a kernel may offer beside the usual one: the same
/// calls under other numbers.
const X32: i64 = 0x4000_0000;

/// Calls that x32 has under numbers of its own: execve, ptrace, kexec_load, process_vm_readv,
/// process_vm_writev, execveat.
const X32_OWN: &[i64] = &[520, 521, 528, 539, 540, 545];

/// The same for ioctl.
const X32_IOCTL: &[i64] = &[514];

/// Families of sockets that are left: local ones, IP, and netlink for the list of addresses
/// that name resolution sorts by.
const FAMILIES: &[i32] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// What is left of IP: whatever the type means, TCP, UDP.
const PROTOCOLS: &[i32] = &[0, libc::IPPROTO_TCP, libc::IPPROTO_UDP];

/// The part of a socket's type that is no flag.
const TYPE: u64 = 0xf;

/// An old name for sockets that see every frame.
const PACKET: i32 = 10;

/// Types of sockets below any protocol.
const LOW_TYPES: &[i32] = &[libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_DCCP, PACKET];

/// Terminal requests that type for the person (`TIOCSTI`, `TIOCLINUX`): what is typed into the
/// shell's terminal runs when this process has ended.
const TYPING: &[u64] = &[0x5412, 0x541c];

/// Flags of `clone` that make a namespace, in which a process may do more than before.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Takes the calls away from this thread, and those that it makes.
pub(crate) fn confine(network: bool) -> Result<(), String> {
    for program in programs(network)? {
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// One program for each answer. The kernel asks all and takes the hardest.
fn programs(network: bool) -> Result<Vec<BpfProgram>, String> {
    let fatal = [numbers(FATAL), numbers(FATAL_HERE)].concat();
    let errno = |code: i32| SeccompAction::Errno(code.unsigned_abs());
    Ok(vec![
        // The flags of clone3 lie in memory, where no filter looks: without it the C library
        // takes clone.
        program(always(numbers(&[libc::SYS_clone3])), errno(libc::ENOSYS))?,
        program(refused(network)?, errno(libc::EPERM))?,
        program(always(fatal), SeccompAction::KillProcess)?,
    ])
}

fn program(rules: Rules, action: SeccompAction) -> Result<BpfProgram, String> {
    let target: TargetArch = std::env::consts::ARCH.try_into().map_err(text)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, target).map_err(text)?;
    filter.try_into().map_err(text)
}

fn refused(network: bool) -> Result<Rules, String> {
    let mut rules = always([numbers(REFUSED), numbers(REFUSED_HERE), marked(X32_OWN)].concat());
    for call in numbers(&[libc::SYS_socket]) {
        rules.insert(call, if network { sockets()? } else { Vec::new() });
    }
    for call in [numbers(&[libc::SYS_ioctl]), marked(X32_IOCTL)].concat() {
        let typing = TYPING.iter().map(|request| rule(vec![when(1, Op::Eq, *request)?]));
        rules.insert(call, typing.collect::<Result<_, _>>()?);
    }
    for call in numbers(&[libc::SYS_clone]) {
        let namespaces = NAMESPACES.iter().map(|flag| {
            let flag = number(*flag);
            rule(vec![when(0, Op::MaskedEq(flag), flag)?])
        });
        rules.insert(call, namespaces.collect::<Result<_, _>>()?);
    }
    Ok(rules)
}

/// Which sockets are refused; no rule at all would mean every one.
fn sockets() -> Result<Vec<SeccompRule>, String> {
    let is_none_of = |argument: u8, values: &[i32]| -> Result<Vec<_>, String> {
        values.iter().map(|value| when(argument, Op::Ne, number(*value))).collect()
    };
    let mut rules = vec![rule(is_none_of(0, FAMILIES)?)?];
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut other_protocol = is_none_of(2, PROTOCOLS)?;
        other_protocol.push(when(0, Op::Eq, number(family))?);
        rules.push(rule(other_protocol)?);
        for low in LOW_TYPES {
            rules.push(rule(vec![
                when(0, Op::Eq, number(family))?,
                when(1, Op::MaskedEq(TYPE), number(*low))?,
            ])?);
        }
    }
    rules.push(rule(vec![
        when(0, Op::Eq, number(libc::AF_NETLINK))?,
        when(2, Op::Ne, number(libc::NETLINK_ROUTE))?,
    ])?);
    Ok(rules)
}

/// Refused whatever the arguments.
fn always(calls: impl IntoIterator<Item = i64>) -> Rules {
    calls.into_iter().map(|call| (call, Vec::new())).collect()
}

/// The calls by all their numbers.
fn numbers(calls: &[i64]) -> Vec<i64> {
    [calls.to_vec(), marked(calls)].concat()
}

/// The calls of x32; none where there is no such thing.
fn marked(calls: &[i64]) -> Vec<i64> {
    if cfg!(target_arch = "x86_64") {
        calls.iter().map(|call| call | X32).collect()
    } else {
        Vec::new()
    }
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(text)
}

/// The kernel itself looks at the lower half of these arguments alone.
fn when(argument: u8, op: Op, value: u64) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, Len::Dword, op, value).map_err(text)
}

fn number(value: i32) -> u64 {
    u64::from(value.unsigned_abs())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
