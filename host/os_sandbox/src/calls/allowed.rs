//! The system calls a process may make. These are the calls of wasmtime, tokio, SQLite, rustls and the C
//! library, as `strace` showed for the whole program, and variants other kernels or C libraries use. All
//! others fail with `ENOSYS`, as on a kernel that lacks them.

use super::{Rules, new_condition, new_rule, to_argument, when_all};
use seccompiler::SeccompCmpOp as Op;

/// Calls allowed whatever their arguments are. None has a key, or the id of another process, as an argument.
/// Landlock checks paths; where it does not, a call only shows whether a file exists.
const PLAIN: &[i64] = &[
    // Open files.
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getdents64,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_read,
    libc::SYS_readahead,
    libc::SYS_readv,
    libc::SYS_sendfile,
    libc::SYS_sync_file_range,
    libc::SYS_write,
    libc::SYS_writev,
    // Files by path.
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getcwd,
    libc::SYS_linkat,
    libc::SYS_mkdirat,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_readlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_statx,
    libc::SYS_symlinkat,
    libc::SYS_umask,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    // Waiting.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_nanosleep,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    // Memory of this process.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_memfd_create,
    libc::SYS_mincore,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_mseal,
    libc::SYS_msync,
    libc::SYS_munmap,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    // Threads.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_getcpu,
    libc::SYS_gettid,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    // Handling of signals to the current process.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    // Identity and limits of this process.
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getgroups,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrlimit,
    libc::SYS_getrusage,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_setrlimit,
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_uname,
    // Open sockets. The rule for `socket` limits the kinds of sockets.
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_shutdown,
];

/// Older forms of the calls in [`PLAIN`], for x86-64 only.
#[cfg(target_arch = "x86_64")]
const PLAIN_HERE: &[i64] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_creat,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_getdents,
    libc::SYS_getpgrp,
    libc::SYS_link,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_open,
    libc::SYS_pause,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_select,
    libc::SYS_stat,
    libc::SYS_symlink,
    libc::SYS_time,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const PLAIN_HERE: &[i64] = &[];

/// Calls of kernels that are newer than libc's list of numbers: `map_shadow_stack`, `futex_wake`,
/// `futex_wait` and `futex_requeue`. The C library uses them if the kernel has them.
const NEWER: &[i64] = &[453, 454, 455, 456];

/// Calls whose first argument is the id of a process or thread. Allowed with 0 only, which means the caller.
const OWN: &[i64] = &[libc::SYS_prlimit64, libc::SYS_sched_getaffinity, libc::SYS_getsid];

/// Calls whose second argument is the id of a process, and whose first says what kind of id it is.
const OWN_BY_KIND: &[i64] = &[libc::SYS_getpriority, libc::SYS_setpriority];

/// Calls whose first argument is a clock, allowed for clocks of the system. Numbers above [`LAST_CLOCK`]
/// mean clocks of devices or of other processes.
const CLOCKS: &[i64] =
    &[libc::SYS_clock_getres, libc::SYS_clock_gettime, libc::SYS_clock_nanosleep];
const LAST_CLOCK: u64 = 11;

/// The families of internet sockets that may be made. Local (Unix) sockets are not allowed, because they
/// could reach any listener on a path, which landlock does not check up to version 7; the C library works
/// without them.
pub(super) const IP: &[i32] = &[libc::AF_INET, libc::AF_INET6];

/// The protocols of internet sockets: the default of the socket's type, TCP, UDP.
pub(super) const PROTOCOLS: &[i32] = &[0, libc::IPPROTO_TCP, libc::IPPROTO_UDP];

/// The bits of a socket's type that are not flags.
pub(super) const TYPE: u64 = 0xf;

/// The allowed requests to a device, by number: settings and size of a terminal, non-blocking mode, the
/// number of readable bytes, and which pages of a mapping were written.
const REQUESTS: &[u64] = &[
    0x5401,
    0x5402,
    0x5403,
    0x5404,
    0x5409,
    0x540b,
    0x540f,
    0x5413,
    0x541b,
    0x5421,
    0x5450,
    0x5451,
    0x802c_542a,
    0x402c_542b,
    0x402c_542c,
    0x402c_542d,
    0xc060_6610,
];

/// The allowed operations on a descriptor: duplication, flags, locks, the size of a pipe, seals. Left out
/// are setting who gets signals, and watching a directory.
const DESCRIPTORS: &[i32] = &[
    libc::F_DUPFD,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_OFD_GETLK,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
    libc::F_DUPFD_CLOEXEC,
    libc::F_SETPIPE_SZ,
    libc::F_GETPIPE_SZ,
    libc::F_ADD_SEALS,
    libc::F_GET_SEALS,
];

/// The allowed settings of a process for itself: names of threads and mappings, ending with the parent,
/// fewer privileges. Making the process dumpable is left out: see [`allowed_rules`].
const SELF: &[i32] = &[
    libc::PR_SET_PDEATHSIG,
    libc::PR_GET_DUMPABLE,
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_GET_SECCOMP,
    libc::PR_CAPBSET_READ,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_SET_VMA,
];

/// The allowed options of sockets, by level: buffers, timeouts and keep-alive. Packet filters and routing
/// are left out.
const OPTIONS: &[(i32, &[i32])] = &[
    (
        libc::SOL_SOCKET,
        &[
            libc::SO_REUSEADDR,
            libc::SO_SNDBUF,
            libc::SO_RCVBUF,
            libc::SO_KEEPALIVE,
            libc::SO_LINGER,
            libc::SO_RCVTIMEO,
            libc::SO_SNDTIMEO,
        ],
    ),
    (
        libc::IPPROTO_TCP,
        &[
            libc::TCP_NODELAY,
            libc::TCP_KEEPIDLE,
            libc::TCP_KEEPINTVL,
            libc::TCP_KEEPCNT,
            libc::TCP_QUICKACK,
            libc::TCP_USER_TIMEOUT,
        ],
    ),
    (libc::IPPROTO_IP, &[libc::IP_TOS, libc::IP_MTU_DISCOVER, libc::IP_RECVERR]),
    (libc::IPPROTO_IPV6, &[libc::IPV6_MTU_DISCOVER, libc::IPV6_RECVERR, libc::IPV6_V6ONLY]),
];

/// The flags of `clone` that make new namespaces, always refused.
pub(super) const NAMESPACES: i32 = libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS;

/// The flags of `clone` that make a thread with the memory of the current process. New processes and
/// namespaces are refused.
const THREAD: i32 = libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND;
const NO_THREAD: i32 =
    NAMESPACES | libc::CLONE_PARENT | libc::CLONE_PIDFD | libc::CLONE_PTRACE | libc::CLONE_VFORK;

/// The rules for all allowed calls and their arguments. `network`: whether the process may make sockets.
pub(super) fn allowed_rules(network: bool) -> Result<Rules, String> {
    let plain = PLAIN.iter().chain(PLAIN_HERE).chain(NEWER);
    let mut rules: Rules = plain.map(|call| (*call, Vec::new())).collect();
    for call in OWN {
        rules.insert(*call, vec![when_all(&[(0, Op::Eq, 0)])?]);
    }
    for call in OWN_BY_KIND {
        // The first 0 is `PRIO_PROCESS`, the second means the caller.
        rules.insert(*call, vec![when_all(&[(0, Op::Eq, 0), (1, Op::Eq, 0)])?]);
    }
    for call in CLOCKS {
        rules.insert(*call, vec![when_all(&[(0, Op::Le, LAST_CLOCK)])?]);
    }
    allow_signals(&mut rules)?;
    let among = |argument: u8, values: &mut dyn Iterator<Item = u64>| -> Result<Vec<_>, String> {
        values.map(|value| when_all(&[(argument, Op::Eq, value)])).collect()
    };
    rules.insert(libc::SYS_ioctl, among(1, &mut REQUESTS.iter().copied())?);
    rules.insert(libc::SYS_fcntl, among(1, &mut DESCRIPTORS.iter().map(|one| to_argument(*one)))?);
    let mut own = among(0, &mut SELF.iter().map(|one| to_argument(*one)))?;
    // A process that hides its memory ([`crate::conceal_process`]) must not show it again.
    own.push(when_all(&[(0, Op::Eq, to_argument(libc::PR_SET_DUMPABLE)), (1, Op::Eq, 0)])?);
    rules.insert(libc::SYS_prctl, own);
    let (thread, no_thread) = (to_argument(THREAD), to_argument(NO_THREAD));
    rules.insert(
        libc::SYS_clone,
        vec![new_rule(vec![new_condition(0, Op::MaskedEq(thread | no_thread), thread)?])?],
    );
    // Only a filter without flags may be added, which restricts the process further.
    rules.insert(libc::SYS_seccomp, vec![when_all(&[(0, Op::Eq, 1), (1, Op::Eq, 0)])?]);
    allow_sockets(&mut rules, network)?;
    Ok(rules)
}

/// Allows signals to the current process, and to no other.
fn allow_signals(rules: &mut Rules) -> Result<(), String> {
    let own = u64::from(std::process::id());
    for call in [libc::SYS_kill, libc::SYS_tgkill] {
        rules.insert(call, vec![when_all(&[(0, Op::Eq, own)])?]);
    }
    Ok(())
}

fn allow_sockets(rules: &mut Rules, network: bool) -> Result<(), String> {
    // Pairs of local sockets are allowed: their ends are connected to each other and cannot be connected
    // elsewhere.
    let stream = to_argument(libc::SOCK_STREAM);
    let local = (0, Op::Eq, to_argument(libc::AF_UNIX));
    rules.insert(libc::SYS_socketpair, vec![when_all(&[local, (1, Op::MaskedEq(TYPE), stream)])?]);
    let mut options = Vec::new();
    for (level, names) in OPTIONS {
        for name in *names {
            options.push(when_all(&[
                (1, Op::Eq, to_argument(*level)),
                (2, Op::Eq, to_argument(*name)),
            ])?);
        }
    }
    rules.insert(libc::SYS_setsockopt, options);
    if !network {
        return Ok(());
    }
    let mut made = Vec::new();
    for family in IP {
        for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM] {
            for protocol in PROTOCOLS {
                made.push(when_all(&[
                    (0, Op::Eq, to_argument(*family)),
                    (1, Op::MaskedEq(TYPE), to_argument(kind)),
                    (2, Op::Eq, to_argument(*protocol)),
                ])?);
            }
        }
    }
    made.push(when_all(&[
        (0, Op::Eq, to_argument(libc::AF_NETLINK)),
        (2, Op::Eq, to_argument(libc::NETLINK_ROUTE)),
    ])?);
    rules.insert(libc::SYS_socket, made);
    Ok(())
}

#[cfg(test)]
pub(super) fn plain_calls() -> impl Iterator<Item = i64> {
    PLAIN.iter().chain(PLAIN_HERE).chain(NEWER).copied()
}
