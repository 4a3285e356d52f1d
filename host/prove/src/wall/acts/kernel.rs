//! Attacks on the kernel: mounts, modules, counters, io_uring, clocks, the terminal, and other system call
//! numbers.

use super::{
    ARGUMENTS, CALLS, ENDS, INTRUDERS, WORKS, WallAct, control_harms, control_may, new_act,
};
use crate::wall::raw::{Done, RawArgument, call_kernel};
use crate::wall::stage::AttackTargets;

fn call_with_zeros(number: i64) -> Done {
    call_kernel(number, [0.into(), 0.into(), 0.into(), 0.into(), 0.into()])
}

fn call_at_path(number: i64, targets: &AttackTargets) -> Done {
    call_kernel(number, [RawArgument::from_path(&targets.path_at("outside")), 0.into(), 0.into()])
}

fn call_typed(number: i64, request: i64) -> Done {
    call_kernel(number, [0.into(), request.into(), RawArgument::from_text("x")])
}

/// The attacks that exist on every processor.
pub(super) const ACTS: &[WallAct] = &[
    new_act("wall-mount-add", INTRUDERS, ENDS, |t| {
        let (at, kind) = (
            RawArgument::from_path(&t.path_at("outside/private")),
            RawArgument::from_text("tmpfs"),
        );
        call_kernel(libc::SYS_mount, [RawArgument::from_text("none"), at, kind, 0.into(), 0.into()])
    }),
    new_act("wall-mount-remove", INTRUDERS, ENDS, |t| call_at_path(libc::SYS_umount2, t)),
    new_act("wall-mount-root", INTRUDERS, ENDS, |t| call_at_path(libc::SYS_chroot, t)),
    new_act("wall-mount-pivot", INTRUDERS, ENDS, |t| call_at_path(libc::SYS_pivot_root, t)),
    new_act("wall-mount-tree", INTRUDERS, ENDS, |t| {
        let path = RawArgument::from_path(&t.path_at("outside"));
        call_kernel(libc::SYS_open_tree, [libc::AT_FDCWD.into(), path, 1.into()])
    }),
    new_act("wall-mount-move", INTRUDERS, ENDS, |_| call_with_zeros(libc::SYS_move_mount)),
    new_act("wall-mount-open", INTRUDERS, ENDS, |_| {
        call_kernel(libc::SYS_fsopen, [RawArgument::from_text("tmpfs"), 0.into()])
    }),
    new_act("wall-mount-configure", INTRUDERS, ENDS, |_| call_with_zeros(libc::SYS_fsconfig)),
    new_act("wall-mount-make", INTRUDERS, ENDS, |_| call_with_zeros(libc::SYS_fsmount)),
    new_act("wall-mount-pick", INTRUDERS, ENDS, |t| call_at_path(libc::SYS_fspick, t)),
    new_act("wall-mount-attributes", INTRUDERS, ENDS, |_| call_with_zeros(libc::SYS_mount_setattr)),
    new_act("wall-kernel-bpf", INTRUDERS, ENDS, |_| {
        call_kernel(libc::SYS_bpf, [5.into(), RawArgument::with_room(128), 128.into()])
    }),
    new_act("wall-kernel-counters", INTRUDERS, ENDS, |t| {
        let victim = t.victim;
        let attributes = RawArgument::with_room(128);
        call_kernel(
            libc::SYS_perf_event_open,
            [attributes, victim.into(), (-1).into(), (-1).into(), 0.into()],
        )
    }),
    new_act("wall-kernel-faults", INTRUDERS, ENDS, |_| call_with_zeros(libc::SYS_userfaultfd)),
    new_act("wall-kernel-ring", CALLS, control_may("some containers forbid it"), |_| {
        call_kernel(libc::SYS_io_uring_setup, [1.into(), RawArgument::with_room(120)])
    }),
    new_act("wall-kernel-ring-enter", CALLS, control_may("some containers forbid it"), |t| {
        call_kernel(libc::SYS_io_uring_enter, [t.held.ring.into(), 0.into(), 0.into(), 0.into()])
    }),
    new_act("wall-kernel-ring-register", CALLS, control_may("some containers forbid it"), |t| {
        let (what_it_can, room) = (8, RawArgument::with_room(16));
        call_kernel(
            libc::SYS_io_uring_register,
            [t.held.ring.into(), what_it_can.into(), room, 0.into()],
        )
    }),
    new_act("wall-kernel-module", INTRUDERS, ENDS, |_| call_with_zeros(libc::SYS_init_module)),
    new_act("wall-kernel-module-of-a-file", INTRUDERS, ENDS, |_| {
        call_with_zeros(libc::SYS_finit_module)
    }),
    new_act("wall-kernel-module-remove", INTRUDERS, ENDS, |_| {
        call_kernel(libc::SYS_delete_module, [RawArgument::from_text("belljar"), 0.into()])
    }),
    new_act("wall-kernel-kexec", INTRUDERS, ENDS, |_| call_with_zeros(libc::SYS_kexec_load)),
    new_act("wall-kernel-reboot", INTRUDERS, ENDS, |_| call_with_zeros(libc::SYS_reboot)),
    new_act("wall-kernel-swap", INTRUDERS, ENDS, |t| call_at_path(libc::SYS_swapon, t)),
    new_act(
        "wall-kernel-account",
        CALLS,
        control_harms("it would end the accounts that the system keeps"),
        |_| call_with_zeros(libc::SYS_acct),
    ),
    new_act("wall-kernel-quota", CALLS, control_may("not every kernel has it"), |_| {
        let sync = 0x8000_0100_i64;
        call_kernel(libc::SYS_quotactl, [sync.into(), 0.into(), 0.into(), 0.into()])
    }),
    new_act("wall-kernel-log", CALLS, control_may("root alone may"), |_| {
        call_kernel(libc::SYS_syslog, [3.into(), RawArgument::with_room(64), 64.into()])
    }),
    new_act("wall-kernel-personality", CALLS, control_may("some containers forbid it"), |_| {
        call_kernel(libc::SYS_personality, [0x0040_0000.into()])
    }),
    new_act(
        "wall-kernel-clock",
        CALLS,
        control_harms("it would set the clock of this machine"),
        |_| call_kernel(libc::SYS_clock_settime, [0.into(), 0.into()]),
    ),
    new_act("wall-kernel-clock-rate", CALLS, control_may("some containers forbid it"), |_| {
        call_kernel(libc::SYS_clock_adjtime, [0.into(), RawArgument::with_room(256)])
    }),
    new_act("wall-kernel-name", CALLS, control_harms("it would rename this machine"), |_| {
        call_kernel(libc::SYS_sethostname, [RawArgument::from_text("x"), 1.into()])
    }),
    new_act("wall-kernel-user", CALLS, control_may("root alone may"), |_| {
        call_kernel(libc::SYS_setresuid, [0.into(), 0.into(), 0.into()])
    }),
    new_act("wall-kernel-capabilities", CALLS, WORKS, |_| {
        // An empty set of capabilities, for this process.
        let version = 0x2008_0522_u64.to_le_bytes().to_vec();
        call_kernel(libc::SYS_capset, [RawArgument::Bytes(version), RawArgument::with_room(24)])
    }),
    new_act("wall-kernel-secret-memory", CALLS, control_may("not every kernel has it"), |_| {
        call_kernel(libc::SYS_memfd_secret, [0.into()])
    }),
    new_act(
        "wall-terminal-type",
        ARGUMENTS,
        control_may("it is for a terminal of one's own"),
        |_| call_typed(libc::SYS_ioctl, 0x5412),
    ),
    new_act(
        "wall-terminal-type-upper-half",
        ARGUMENTS,
        control_may("it is for a terminal of one's own"),
        |_| call_typed(libc::SYS_ioctl, 0x1_0000_5412),
    ),
    new_act(
        "wall-terminal-console",
        ARGUMENTS,
        control_may("it is for a terminal of one's own"),
        |_| call_typed(libc::SYS_ioctl, 0x541c),
    ),
    new_act("wall-number-unknown", CALLS, control_harms("no kernel has this call, so far"), |_| {
        call_with_zeros(1_000)
    }),
];

/// The attacks that exist only on this processor; the x32 interface has the same calls under other numbers.
#[cfg(target_arch = "x86_64")]
pub(super) const ACTS_HERE: &[WallAct] = &[
    new_act("wall-kernel-ports", INTRUDERS, ENDS, |_| call_kernel(libc::SYS_iopl, [3.into()])),
    new_act("wall-kernel-port", INTRUDERS, ENDS, |_| {
        call_kernel(libc::SYS_ioperm, [0x80.into(), 1.into(), 1.into()])
    }),
    new_act("wall-kernel-segments", INTRUDERS, ENDS, |_| {
        call_kernel(libc::SYS_modify_ldt, [0.into(), RawArgument::with_room(64), 64.into()])
    }),
    new_act("wall-files-mode-chmod", CALLS, WORKS, |t| {
        call_kernel(
            libc::SYS_chmod,
            [RawArgument::from_path(&t.path_at("outside/secret.txt")), 0o777.into()],
        )
    }),
    new_act("wall-number-x32-run", CALLS, control_may("few kernels have these numbers"), |t| {
        let script = RawArgument::from_path(&t.path_at("outside/script.sh"));
        call_kernel(0x4000_0000 | 520, [script, 0.into(), 0.into()])
    }),
    new_act("wall-number-x32-trace", CALLS, control_may("few kernels have these numbers"), |t| {
        call_kernel(0x4000_0000 | 521, [16.into(), t.victim.into(), 0.into(), 0.into()])
    }),
    new_act("wall-number-x32-socket", CALLS, control_may("few kernels have these numbers"), |_| {
        let number = 0x4000_0000 | libc::SYS_socket;
        call_kernel(number, [libc::AF_UNIX.into(), libc::SOCK_STREAM.into(), 0.into()])
    }),
    new_act("wall-number-x32-type", CALLS, control_may("few kernels have these numbers"), |_| {
        call_typed(0x4000_0000 | 514, 0x5412)
    }),
    new_act("wall-number-x32-own", CALLS, control_may("few kernels have these numbers"), |_| {
        call_with_zeros(0x4000_0000 | libc::SYS_getpid)
    }),
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const ACTS_HERE: &[WallAct] = &[];
