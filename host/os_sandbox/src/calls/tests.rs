//! The filters, asked about every call of the lists by an interpreter of their own, for a test
//! cannot make most of those calls. That the kernel heeds a filter is shown by `tests/walls.rs`.

use super::*;

const ALLOWED: u32 = 0x7fff_0000;
const KILLED: u32 = 0x8000_0000;

fn refused_with(errno: i32) -> u32 {
    0x0005_0000 | errno.unsigned_abs()
}

/// What the kernel answers to this call: the hardest of all programs' answers.
fn answer(network: bool, call: i64, arguments: [u64; 6]) -> u32 {
    let answers = programs(network).unwrap().into_iter().map(|p| run(&p, call, arguments));
    // Signed, as the kernel compares them: to kill is below everything else.
    answers.min_by_key(|answer| (answer & 0xffff_0000).cast_signed()).unwrap()
}

/// Runs a program of the instructions that filters are made of.
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
fn what_every_program_calls_is_left_alone() {
    for call in [
        libc::SYS_read,
        libc::SYS_openat,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_futex,
        libc::SYS_memfd_create,
        libc::SYS_getrandom,
        libc::SYS_connect,
        libc::SYS_fchmod,
        libc::SYS_renameat2,
        libc::SYS_seccomp,
        libc::SYS_landlock_restrict_self,
        libc::SYS_exit_group,
    ] {
        assert_eq!(answer(true, call, NO_ARGUMENTS), ALLOWED, "{call}");
    }
    let thread = (libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_THREAD) as u64;
    assert_eq!(answer(true, libc::SYS_clone, [thread, 0, 0, 0, 0, 0]), ALLOWED);
    let ioctl = |request: u64| answer(true, libc::SYS_ioctl, [0, request, 0, 0, 0, 0]);
    assert_eq!(ioctl(0x5401), ALLOWED, "a terminal's settings");
}

#[test]
fn a_namespace_is_made_by_no_flag() {
    for flag in NAMESPACES {
        let flags = number(*flag) | number(libc::SIGCHLD);
        let answer = answer(true, libc::SYS_clone, [flags, 0, 0, 0, 0, 0]);
        assert_eq!(answer, refused_with(libc::EPERM), "{flag:#x}");
    }
}

#[test]
fn nothing_is_typed_for_the_person() {
    for request in TYPING {
        // The kernel looks at the lower half alone, so the upper half must not matter here.
        for upper in [0, 1 << 32, u64::MAX << 32] {
            let arguments = [0, request | upper, 0, 0, 0, 0];
            let answer = answer(true, libc::SYS_ioctl, arguments);
            assert_eq!(answer, refused_with(libc::EPERM), "{request:#x} {upper:#x}");
        }
    }
}

#[test]
fn sockets_are_local_or_of_ip_or_list_addresses() {
    let socket = |family: i32, kind: i32, protocol: i32| {
        let arguments = [number(family), number(kind), number(protocol), 0, 0, 0];
        answer(true, libc::SYS_socket, arguments)
    };
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    for (family, kind, protocol) in [
        (libc::AF_UNIX, libc::SOCK_STREAM, 0),
        (libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP),
        (libc::AF_INET6, libc::SOCK_STREAM | flags, 0),
        (libc::AF_INET, libc::SOCK_DGRAM | flags, libc::IPPROTO_UDP),
        (libc::AF_NETLINK, libc::SOCK_RAW | flags, libc::NETLINK_ROUTE),
    ] {
        assert_eq!(socket(family, kind, protocol), ALLOWED, "{family} {kind} {protocol}");
        let arguments = [number(family), number(kind), number(protocol), 0, 0, 0];
        let closed = answer(false, libc::SYS_socket, arguments);
        assert_eq!(closed, refused_with(libc::EPERM), "without network");
    }
    for family in (0..64).filter(|family| !FAMILIES.contains(family)) {
        assert_eq!(socket(family, libc::SOCK_RAW, 0), refused_with(libc::EPERM), "{family}");
    }
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
        let refused = refused_with(libc::EPERM);
        assert_eq!(socket(family, kind, protocol), refused, "{family} {kind} {protocol}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_other_numbers_of_a_call_are_no_way_around() {
    for call in FATAL.iter().chain(FATAL_HERE) {
        assert_eq!(answer(true, call | X32, NO_ARGUMENTS), KILLED, "{call}");
    }
    for call in REFUSED.iter().chain(REFUSED_HERE).chain(X32_OWN) {
        assert_eq!(answer(true, call | X32, NO_ARGUMENTS), refused_with(libc::EPERM), "{call}");
    }
    let packet = [number(libc::AF_PACKET), 0, 0, 0, 0, 0];
    assert_eq!(answer(true, libc::SYS_socket | X32, packet), refused_with(libc::EPERM));
    let typing = [0, number(0x5412), 0, 0, 0, 0];
    assert_eq!(answer(true, 514 | X32, typing), refused_with(libc::EPERM));
}
