//! The kernel itself: mounts, modules, counters, rings, clocks, the terminal, other numbers.

use super::{ARGUMENTS, Act, CALLS, ENDS, INTRUDERS, WORKS, act, harms, may};
use crate::wall::raw::{Arg, Done, call};
use crate::wall::stage::Targets;

fn none(number: i64) -> Done {
    call(number, [0.into(), 0.into(), 0.into(), 0.into(), 0.into()])
}

fn at(number: i64, targets: &Targets) -> Done {
    call(number, [Arg::path(&targets.at("outside")), 0.into(), 0.into()])
}

fn typed(number: i64, request: i64) -> Done {
    call(number, [0.into(), request.into(), Arg::text("x")])
}

/// Where every processor has them.
pub(super) const ACTS: &[Act] = &[
    act("wall-mount-add", INTRUDERS, ENDS, |t| {
        let (at, kind) = (Arg::path(&t.at("outside/private")), Arg::text("tmpfs"));
        call(libc::SYS_mount, [Arg::text("none"), at, kind, 0.into(), 0.into()])
    }),
    act("wall-mount-remove", INTRUDERS, ENDS, |t| at(libc::SYS_umount2, t)),
    act("wall-mount-root", INTRUDERS, ENDS, |t| at(libc::SYS_chroot, t)),
    act("wall-mount-pivot", INTRUDERS, ENDS, |t| at(libc::SYS_pivot_root, t)),
    act("wall-mount-tree", INTRUDERS, ENDS, |t| {
        let path = Arg::path(&t.at("outside"));
        call(libc::SYS_open_tree, [libc::AT_FDCWD.into(), path, 1.into()])
    }),
    act("wall-mount-move", INTRUDERS, ENDS, |_| none(libc::SYS_move_mount)),
    act("wall-mount-open", INTRUDERS, ENDS, |_| {
        call(libc::SYS_fsopen, [Arg::text("tmpfs"), 0.into()])
    }),
    act("wall-mount-configure", INTRUDERS, ENDS, |_| none(libc::SYS_fsconfig)),
    act("wall-mount-make", INTRUDERS, ENDS, |_| none(libc::SYS_fsmount)),
    act("wall-mount-pick", INTRUDERS, ENDS, |t| at(libc::SYS_fspick, t)),
    act("wall-mount-attributes", INTRUDERS, ENDS, |_| none(libc::SYS_mount_setattr)),
    act("wall-kernel-bpf", INTRUDERS, ENDS, |_| {
        call(libc::SYS_bpf, [5.into(), Arg::room(128), 128.into()])
    }),
    act("wall-kernel-counters", INTRUDERS, ENDS, |t| {
        let victim = t.victim;
        let attributes = Arg::room(128);
        call(
            libc::SYS_perf_event_open,
            [attributes, victim.into(), (-1).into(), (-1).into(), 0.into()],
        )
    }),
    act("wall-kernel-faults", INTRUDERS, ENDS, |_| none(libc::SYS_userfaultfd)),
    act("wall-kernel-ring", CALLS, may("some containers forbid it"), |_| {
        call(libc::SYS_io_uring_setup, [1.into(), Arg::room(120)])
    }),
    act("wall-kernel-ring-enter", CALLS, may("some containers forbid it"), |t| {
        call(libc::SYS_io_uring_enter, [t.held.ring.into(), 0.into(), 0.into(), 0.into()])
    }),
    act("wall-kernel-ring-register", CALLS, may("some containers forbid it"), |t| {
        let (what_it_can, room) = (8, Arg::room(16));
        call(libc::SYS_io_uring_register, [t.held.ring.into(), what_it_can.into(), room, 0.into()])
    }),
    act("wall-kernel-module", INTRUDERS, ENDS, |_| none(libc::SYS_init_module)),
    act("wall-kernel-module-of-a-file", INTRUDERS, ENDS, |_| none(libc::SYS_finit_module)),
    act("wall-kernel-module-remove", INTRUDERS, ENDS, |_| {
        call(libc::SYS_delete_module, [Arg::text("belljar"), 0.into()])
    }),
    act("wall-kernel-kexec", INTRUDERS, ENDS, |_| none(libc::SYS_kexec_load)),
    act("wall-kernel-reboot", INTRUDERS, ENDS, |_| none(libc::SYS_reboot)),
    act("wall-kernel-swap", INTRUDERS, ENDS, |t| at(libc::SYS_swapon, t)),
    act(
        "wall-kernel-account",
        CALLS,
        harms("it would end the accounts that the system keeps"),
        |_| none(libc::SYS_acct),
    ),
    act("wall-kernel-quota", CALLS, may("not every kernel has it"), |_| {
        let sync = 0x8000_0100_i64;
        call(libc::SYS_quotactl, [sync.into(), 0.into(), 0.into(), 0.into()])
    }),
    act("wall-kernel-log", CALLS, may("root alone may"), |_| {
        call(libc::SYS_syslog, [3.into(), Arg::room(64), 64.into()])
    }),
    act("wall-kernel-personality", CALLS, may("some containers forbid it"), |_| {
        call(libc::SYS_personality, [0x0040_0000.into()])
    }),
    act("wall-kernel-clock", CALLS, harms("it would set the clock of this machine"), |_| {
        call(libc::SYS_clock_settime, [0.into(), 0.into()])
    }),
    act("wall-kernel-clock-rate", CALLS, may("some containers forbid it"), |_| {
        call(libc::SYS_clock_adjtime, [0.into(), Arg::room(256)])
    }),
    act("wall-kernel-name", CALLS, harms("it would rename this machine"), |_| {
        call(libc::SYS_sethostname, [Arg::text("x"), 1.into()])
    }),
    act("wall-kernel-user", CALLS, may("root alone may"), |_| {
        call(libc::SYS_setresuid, [0.into(), 0.into(), 0.into()])
    }),
    act("wall-kernel-capabilities", CALLS, WORKS, |_| {
        // None, of this process.
        let version = 0x2008_0522_u64.to_le_bytes().to_vec();
        call(libc::SYS_capset, [Arg::Bytes(version), Arg::room(24)])
    }),
    act("wall-kernel-secret-memory", CALLS, may("not every kernel has it"), |_| {
        call(libc::SYS_memfd_secret, [0.into()])
    }),
    act("wall-terminal-type", ARGUMENTS, may("it is for a terminal of one's own"), |_| {
        typed(libc::SYS_ioctl, 0x5412)
    }),
    act(
        "wall-terminal-type-upper-half",
        ARGUMENTS,
        may("it is for a terminal of one's own"),
        |_| typed(libc::SYS_ioctl, 0x1_0000_5412),
    ),
    act("wall-terminal-console", ARGUMENTS, may("it is for a terminal of one's own"), |_| {
        typed(libc::SYS_ioctl, 0x541c)
    }),
    act("wall-number-unknown", CALLS, harms("no kernel has this call, so far"), |_| none(1_000)),
];

/// Where this processor has them: the interface of x32 is the same calls under other numbers.
#[cfg(target_arch = "x86_64")]
pub(super) const ACTS_HERE: &[Act] = &[
    act("wall-kernel-ports", INTRUDERS, ENDS, |_| call(libc::SYS_iopl, [3.into()])),
    act("wall-kernel-port", INTRUDERS, ENDS, |_| {
        call(libc::SYS_ioperm, [0x80.into(), 1.into(), 1.into()])
    }),
    act("wall-kernel-segments", INTRUDERS, ENDS, |_| {
        call(libc::SYS_modify_ldt, [0.into(), Arg::room(64), 64.into()])
    }),
    act("wall-files-mode-chmod", CALLS, WORKS, |t| {
        call(libc::SYS_chmod, [Arg::path(&t.at("outside/secret.txt")), 0o777.into()])
    }),
    act("wall-number-x32-run", CALLS, may("few kernels have these numbers"), |t| {
        let script = Arg::path(&t.at("outside/script.sh"));
        call(0x4000_0000 | 520, [script, 0.into(), 0.into()])
    }),
    act("wall-number-x32-trace", CALLS, may("few kernels have these numbers"), |t| {
        call(0x4000_0000 | 521, [16.into(), t.victim.into(), 0.into(), 0.into()])
    }),
    act("wall-number-x32-socket", CALLS, may("few kernels have these numbers"), |_| {
        let number = 0x4000_0000 | libc::SYS_socket;
        call(number, [libc::AF_UNIX.into(), libc::SOCK_STREAM.into(), 0.into()])
    }),
    act("wall-number-x32-type", CALLS, may("few kernels have these numbers"), |_| {
        typed(0x4000_0000 | 514, 0x5412)
    }),
    act("wall-number-x32-own", CALLS, may("few kernels have these numbers"), |_| {
        none(0x4000_0000 | libc::SYS_getpid)
    }),
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const ACTS_HERE: &[Act] = &[];
