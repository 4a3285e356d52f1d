//! Tests the syscall filters with a BPF interpreter, because a test cannot make most of the listed system
//! calls. `tests/walls.rs` shows that the kernel obeys the filters.

use super::*;

const ALLOWED: u32 = 0x7fff_0000;
const KILLED: u32 = 0x8000_0000;

fn refused_with(errno: i32) -> u32 {
    0x0005_0000 | errno.unsigned_abs()
}

/// The kernel's answer to a system call: the strictest answer of all filter programs.
fn answer(network: bool, call: i64, arguments: [u64; 6]) -> u32 {
    hardest(filter_programs(network).unwrap(), call, arguments)
}

fn hardest(programs: Vec<BpfProgram>, call: i64, arguments: [u64; 6]) -> u32 {
    // In reverse, because of two errors the kernel returns the error of the later program.
    let answers = programs.into_iter().rev().map(|p| run(&p, call, arguments));
    // The kernel compares the answers as signed numbers, so "kill" is the least.
    answers.min_by_key(|answer| (answer & 0xffff_0000).cast_signed()).unwrap()
}

/// Interprets a filter program. Supports only the instructions that the filters use.
fn run(program: &BpfProgram, call: i64, arguments: [u64; 6]) -> u32 {
    let mut data = [0_u8; 64];
    let arch: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
    data[..4].copy_from_slice(&u32::try_from(call).unwrap().to_le_bytes());
    data[4..8].copy_from_slice(&arch.to_le_bytes());
    for (place, argument) in data[16..].chunks_mut(8).zip(arguments) {
        place.copy_from_slice(&argument.to_le_bytes());
    }
    let (mut at, mut value) = (0, 0_u32);
    loop {
        let step = &program[at];
        at += 1;
        let jump = |yes: bool| usize::from(if yes { step.jt } else { step.jf });
        match step.code {
            0x20 => {
                let from = usize::try_from(step.k).unwrap();
                value = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
            }
            0x54 => value &= step.k,
            0x05 => at += usize::try_from(step.k).unwrap(),
            0x15 => at += jump(value == step.k),
            0x25 => at += jump(value > step.k),
            0x35 => at += jump(value >= step.k),
            0x06 => return step.k,
            code => panic!("an instruction that this test does not know: {code:#x}"),
        }
    }
}

const NO_ARGUMENTS: [u64; 6] = [0; 6];

#[test]
fn what_only_an_intruder_calls_ends_the_process_and_the_rest_is_refused() {
    for call in FATAL.iter().chain(FATAL_HERE) {
        assert_eq!(answer(true, *call, NO_ARGUMENTS), KILLED, "{call}");
    }
    for call in REFUSED.iter().chain(REFUSED_HERE) {
        assert_eq!(answer(true, *call, NO_ARGUMENTS), refused_with(libc::EPERM), "{call}");
    }
    assert_eq!(answer(true, libc::SYS_clone3, NO_ARGUMENTS), refused_with(libc::ENOSYS));
}

#[test]
fn what_is_not_on_the_list_is_refused_whatever_its_number() {
    let plain: Vec<i64> = allowed::plain_calls().collect();
    for call in 0..=1_023 {
        // No rule allows these arguments.
        let odd = answer(true, call, [u64::MAX; 6]);
        assert_eq!(odd == ALLOWED, plain.contains(&call), "{call}: {odd:#x}");
    }
    let named = |call: &i64| FATAL.contains(call) || REFUSED.contains(call);
    assert_eq!(plain.iter().find(|call| named(call)), None);
    for call in [
        libc::SYS_chdir,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_mq_timedsend,
        libc::SYS_wait4,
        libc::SYS_truncate,
        libc::SYS_memfd_secret,
        libc::SYS_landlock_restrict_self,
    ] {
        assert_ne!(answer(true, call, NO_ARGUMENTS), ALLOWED, "{call}");
    }
}

#[test]
fn a_call_that_names_a_process_is_left_for_this_one_alone() {
    let other = u64::from(std::process::id()) + 1;
    for call in [libc::SYS_prlimit64, libc::SYS_sched_getaffinity, libc::SYS_getsid] {
        assert_eq!(answer(true, call, NO_ARGUMENTS), ALLOWED, "{call}");
        for pid in [1, other, u64::from(u32::MAX)] {
            let asked = answer(true, call, [pid, 0, 0, 0, 0, 0]);
            assert_eq!(asked, refused_with(libc::ENOSYS), "{call} {pid}");
        }
    }
    for call in [libc::SYS_kill, libc::SYS_tgkill] {
        assert_eq!(answer(true, call, [other - 1, 0, 0, 0, 0, 0]), ALLOWED, "{call}");
        for pid in [0, 1, other, u64::from(u32::MAX), u64::MAX] {
            assert_ne!(answer(true, call, [pid, 9, 9, 0, 0, 0]), ALLOWED, "{call} {pid}");
        }
    }
    for call in [libc::SYS_getpriority, libc::SYS_setpriority] {
        assert_eq!(answer(true, call, NO_ARGUMENTS), ALLOWED);
        for (kind, who) in [(0, 1), (0, other), (1, 0), (1, 1), (2, 0)] {
            assert_ne!(answer(true, call, [kind, who, 0, 0, 0, 0]), ALLOWED, "{call} {kind}");
        }
    }
    // A clock of another process has a number made from the bitwise complement of the process id.
    let clock = u64::from((!4_711_u32) << 3 | 2);
    assert_ne!(answer(true, libc::SYS_clock_gettime, [clock, 0, 0, 0, 0, 0]), ALLOWED);
    assert_eq!(answer(true, libc::SYS_clock_gettime, [1, 0, 0, 0, 0, 0]), ALLOWED);
    // These commands choose the process that a descriptor signals.
    for command in [libc::F_SETOWN, 15, 10, 1_026, 1_024] {
        let asked = answer(true, libc::SYS_fcntl, [0, to_argument(command), other, 0, 0, 0]);
        assert_ne!(asked, ALLOWED, "{command}");
    }
}

#[test]
fn a_process_makes_threads_and_no_process_or_namespace() {
    // The flags of the C library for a new thread.
    let thread = 0x003d_0f00;
    let clone = |flags: u64| answer(true, libc::SYS_clone, [flags, 0, 0, 0, 0, 0]);
    assert_eq!(clone(thread), ALLOWED);
    assert_ne!(clone(to_argument(libc::SIGCHLD)), ALLOWED, "fork");
    assert_ne!(clone(to_argument(libc::CLONE_VM | libc::CLONE_VFORK)), ALLOWED, "posix_spawn");
    for flag in [
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWUTS,
    ] {
        for flags in [to_argument(flag) | to_argument(libc::SIGCHLD), to_argument(flag) | thread] {
            assert_ne!(clone(flags), ALLOWED, "{flags:#x}");
        }
    }
}

#[test]
fn nothing_is_typed_for_the_person_and_nothing_makes_it_dumpable() {
    for request in [0x5412, 0x541c, 0x5423, 0x8912, 0x4004_6109] {
        // The kernel only looks at the lower half of the request, so the upper half must not change the
        // answer.
        for upper in [0, 1 << 32, u64::MAX << 32] {
            let arguments = [0, request | upper, 0, 0, 0, 0];
            assert_ne!(
                answer(true, libc::SYS_ioctl, arguments),
                ALLOWED,
                "{request:#x} {upper:#x}"
            );
        }
    }
    assert_eq!(answer(true, libc::SYS_ioctl, [0, 0x5401, 0, 0, 0, 0]), ALLOWED);
    let prctl = |option: i32, value| {
        answer(true, libc::SYS_prctl, [to_argument(option), value, 0, 0, 0, 0])
    };
    assert_eq!(prctl(libc::PR_SET_NAME, 0), ALLOWED);
    assert_eq!(prctl(libc::PR_SET_DUMPABLE, 0), ALLOWED);
    assert_ne!(prctl(libc::PR_SET_DUMPABLE, 1), ALLOWED);
    for option in [libc::PR_SET_PTRACER, libc::PR_SET_MM, libc::PR_SET_CHILD_SUBREAPER] {
        assert_ne!(prctl(option, 0), ALLOWED, "{option}");
    }
}

#[test]
fn sockets_are_of_ip_or_list_addresses() {
    let socket = |family: i32, kind: i32, protocol: i32| {
        let arguments = [to_argument(family), to_argument(kind), to_argument(protocol), 0, 0, 0];
        answer(true, libc::SYS_socket, arguments)
    };
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    for (family, kind, protocol) in [
        (libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP),
        (libc::AF_INET6, libc::SOCK_STREAM | flags, 0),
        (libc::AF_INET, libc::SOCK_DGRAM | flags, libc::IPPROTO_UDP),
        (libc::AF_NETLINK, libc::SOCK_RAW | flags, libc::NETLINK_ROUTE),
    ] {
        assert_eq!(socket(family, kind, protocol), ALLOWED, "{family} {kind} {protocol}");
        let arguments = [to_argument(family), to_argument(kind), to_argument(protocol), 0, 0, 0];
        assert_ne!(answer(false, libc::SYS_socket, arguments), ALLOWED, "without network");
    }
    let left = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    for family in (0..64).filter(|family| !left.contains(family)) {
        for kind in [libc::SOCK_RAW, libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET] {
            assert_ne!(socket(family, kind, 0), ALLOWED, "{family}");
        }
    }
    const PACKET: i32 = 10;
    for (family, kind, protocol) in [
        (libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        (libc::AF_INET, libc::SOCK_RAW | flags, libc::IPPROTO_TCP),
        (libc::AF_INET6, libc::SOCK_RAW, 0),
        (libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP),
        (libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP),
        (libc::AF_INET6, libc::SOCK_STREAM, 262),
        (libc::AF_INET, PACKET, 0),
        (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT),
        (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER),
    ] {
        assert_ne!(socket(family, kind, protocol), ALLOWED, "{family} {kind} {protocol}");
    }
    let pair = |kind: i32| {
        let arguments = [to_argument(libc::AF_UNIX), to_argument(kind), 0, 0, 0, 0];
        answer(true, libc::SYS_socketpair, arguments)
    };
    assert_eq!(pair(libc::SOCK_STREAM | flags), ALLOWED);
    assert_ne!(pair(libc::SOCK_DGRAM), ALLOWED, "it can be sent anywhere");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_other_numbers_of_a_call_are_no_way_around() {
    for call in FATAL.iter().chain(FATAL_HERE) {
        assert_eq!(answer(true, call | X32, NO_ARGUMENTS), KILLED, "{call}");
    }
    for call in 0..=1_023 {
        assert_ne!(answer(true, call | X32, NO_ARGUMENTS), ALLOWED, "{call}");
    }
}

#[test]
fn a_program_has_no_more_of_the_machine_than_its_files_and_its_streams() {
    let ask = |processes, call, arguments| {
        hardest(program::program_filters(false, processes, true).unwrap(), call, arguments)
    };
    let refused = refused_with(libc::EPERM);
    for processes in [false, true] {
        for call in FATAL.iter().chain(FATAL_HERE) {
            assert_eq!(ask(processes, *call, NO_ARGUMENTS), refused, "{call}");
        }
        for call in [
            libc::SYS_fchownat,
            libc::SYS_shmget,
            libc::SYS_mq_open,
            libc::SYS_io_uring_setup,
            libc::SYS_inotify_init1,
            libc::SYS_listen,
            libc::SYS_pidfd_open,
        ] {
            assert_eq!(ask(processes, call, NO_ARGUMENTS), refused, "{call}");
        }
        for call in [libc::SYS_memfd_create, libc::SYS_clone3, libc::SYS_socket] {
            let local = [to_argument(libc::AF_UNIX), to_argument(libc::SOCK_STREAM), 0, 0, 0, 0];
            assert_eq!(ask(processes, call, local), refused_with(libc::ENOSYS), "{call}");
        }
        for call in [libc::SYS_execve, libc::SYS_wait4, libc::SYS_chdir, libc::SYS_openat] {
            assert_eq!(ask(processes, call, NO_ARGUMENTS), ALLOWED, "{call}");
        }
        let mapped = |flags: i32| {
            ask(processes, libc::SYS_mmap, [0, 0, 0, to_argument(flags), 0, 0]) == ALLOWED
        };
        assert!(mapped(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) && mapped(libc::MAP_SHARED));
        assert!(!mapped(libc::MAP_SHARED | libc::MAP_ANONYMOUS), "memory that nobody counts");
        let grows = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_GROWSDOWN;
        assert!(!mapped(grows), "memory that is not counted as data");
        // INV-550: the kernel skips the call and returns 0.
        assert_eq!(ask(processes, libc::SYS_utimensat, [3, 0, 0, 0, 0, 0]), ALLOWED);
        for path in [1, 1 << 40] {
            let by_path = ask(processes, libc::SYS_utimensat, [3, path, 0, 0, 0, 0]);
            assert_eq!(by_path, refused_with(0));
        }
        for call in [libc::SYS_fchmodat, libc::SYS_fchmodat2] {
            assert_eq!(ask(processes, call, NO_ARGUMENTS), refused_with(0), "{call}");
        }
        #[cfg(target_arch = "x86_64")]
        {
            assert_eq!(ask(processes, libc::SYS_chmod, NO_ARGUMENTS), refused_with(0));
            assert_eq!(ask(processes, libc::SYS_chmod | X32, NO_ARGUMENTS), refused);
        }
        for call in [libc::SYS_listxattr, libc::SYS_setxattr, libc::SYS_fgetxattr] {
            assert_eq!(
                ask(processes, call, NO_ARGUMENTS),
                refused_with(libc::EOPNOTSUPP),
                "{call}"
            );
        }
        let cloned = |flags: i32| {
            ask(processes, libc::SYS_clone, [to_argument(flags), 0, 0, 0, 0, 0]) == ALLOWED
        };
        assert_eq!(cloned(libc::SIGCHLD), processes);
        assert!(!cloned(libc::SIGCHLD | libc::CLONE_NEWUSER));
        assert!(!cloned(libc::SIGCHLD | libc::CLONE_PARENT));
        assert!(cloned(libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND));
        let other = ask(processes, libc::SYS_kill, [1, 0, 0, 0, 0, 0]);
        assert_eq!(other == ALLOWED, processes, "then it is landlock that keeps it from others");
    }
    let tcp = [to_argument(libc::AF_INET), to_argument(libc::SOCK_STREAM), 0, 0, 0, 0];
    let socket = |network: bool| {
        hardest(program::program_filters(network, false, true).unwrap(), libc::SYS_socket, tcp)
    };
    assert!(socket(true) == ALLOWED && socket(false) != ALLOWED);
    // An old kernel does not keep signals inside the sandbox.
    let filters = program::program_filters(false, true, false).unwrap();
    assert_ne!(hardest(filters, libc::SYS_kill, [1, 0, 0, 0, 0, 0]), ALLOWED);
}
