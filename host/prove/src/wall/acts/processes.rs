//! Attacks on other processes: their signals, memory, limits and processors; and starting new processes.

use super::{
    ARGUMENTS, CALLS, ENDS, INTRUDERS, WORKS, WallAct, control_harms, control_may, new_act,
};
use crate::wall::raw::{Done, RawArgument, call_kernel};
use crate::wall::stage::AttackTargets;

/// Makes a system call whose first argument is the victim's process id.
fn call_on_victim<const N: usize>(
    number: i64,
    targets: &AttackTargets,
    rest: [RawArgument; N],
) -> Done {
    let mut rest = rest.into_iter();
    let mut next = || rest.next().unwrap_or(RawArgument::Number(0));
    call_kernel(number, [targets.victim.into(), next(), next(), next(), next(), next()])
}

/// The signal that ends a process.
const KILL: i32 = libc::SIGKILL;

/// The information about a signal that a process queues; the kernel refuses any other origin anyway.
fn queued_signal() -> RawArgument {
    let (signal, origin) = (KILL, libc::SI_QUEUE);
    let mut told = [signal.to_le_bytes(), [0; 4], origin.to_le_bytes()].concat();
    told.resize(128, 0);
    RawArgument::Bytes(told)
}

/// Makes a process. If no wall prevents that, the new process ends at once.
fn make_process<const N: usize>(number: i64, arguments: [RawArgument; N]) -> Done {
    let made = call_kernel(number, arguments)?;
    if made == 0 {
        call_kernel(libc::SYS_exit_group, [0.into()])?;
    }
    Ok(made)
}

/// The id of a process's CPU-time clock, for `clock_gettime`, as Linux encodes it: the inverted process id,
/// then three bits for the kind of clock (2 = the time by the scheduler).
fn clock_of(process: i32) -> i64 {
    i64::from((!process) << 3 | 2)
}

/// Executes the script outside the mounts, by `execve` or `execveat`.
fn execute_script(targets: &AttackTargets, number: i64) -> Done {
    let script = RawArgument::from_path(&targets.path_at("outside/script.sh"));
    match number {
        libc::SYS_execve => call_kernel(number, [script, 0.into(), 0.into()]),
        _ => call_kernel(number, [libc::AT_FDCWD.into(), script, 0.into(), 0.into(), 0.into()]),
    }
}

pub(super) const ACTS: &[WallAct] = &[
    new_act("wall-process-kill", ARGUMENTS, WORKS, |t| {
        call_on_victim(libc::SYS_kill, t, [KILL.into()])
    }),
    new_act("wall-process-kill-look", ARGUMENTS, WORKS, |t| {
        call_on_victim(libc::SYS_kill, t, [0.into()])
    }),
    new_act("wall-process-kill-group", ARGUMENTS, WORKS, |_| {
        call_kernel(libc::SYS_kill, [0.into(), libc::SIGCONT.into()])
    }),
    new_act(
        "wall-process-kill-all",
        ARGUMENTS,
        control_harms("it would reach every process of this user"),
        |_| call_kernel(libc::SYS_kill, [(-1).into(), libc::SIGCONT.into()]),
    ),
    new_act("wall-process-tkill", CALLS, WORKS, |t| {
        call_on_victim(libc::SYS_tkill, t, [KILL.into()])
    }),
    new_act("wall-process-tgkill", ARGUMENTS, WORKS, |t| {
        call_on_victim(libc::SYS_tgkill, t, [t.victim.into(), KILL.into()])
    }),
    new_act("wall-process-queue", CALLS, WORKS, |t| {
        call_on_victim(libc::SYS_rt_sigqueueinfo, t, [KILL.into(), queued_signal()])
    }),
    new_act("wall-process-queue-thread", CALLS, WORKS, |t| {
        call_on_victim(
            libc::SYS_rt_tgsigqueueinfo,
            t,
            [t.victim.into(), KILL.into(), queued_signal()],
        )
    }),
    new_act("wall-process-owner-of-a-descriptor", ARGUMENTS, WORKS, |t| {
        call_kernel(libc::SYS_fcntl, [0.into(), libc::F_SETOWN.into(), t.victim.into()])
    }),
    new_act("wall-process-open", CALLS, WORKS, |t| call_on_victim(libc::SYS_pidfd_open, t, [])),
    new_act("wall-process-signal-by-descriptor", CALLS, WORKS, |t| {
        call_kernel(
            libc::SYS_pidfd_send_signal,
            [t.held.victim.into(), KILL.into(), 0.into(), 0.into()],
        )
    }),
    new_act("wall-process-take-descriptor", INTRUDERS, ENDS, |t| {
        call_kernel(libc::SYS_pidfd_getfd, [t.held.victim.into(), 0.into(), 0.into()])
    }),
    new_act("wall-process-trace", INTRUDERS, ENDS, |t| {
        let attach = 16;
        call_kernel(libc::SYS_ptrace, [attach.into(), t.victim.into(), 0.into(), 0.into()])
    }),
    new_act("wall-process-read-memory", INTRUDERS, ENDS, |t| {
        call_on_victim(libc::SYS_process_vm_readv, t, [])
    }),
    new_act("wall-process-write-memory", INTRUDERS, ENDS, |t| {
        call_on_victim(libc::SYS_process_vm_writev, t, [])
    }),
    new_act("wall-process-compare", INTRUDERS, ENDS, |t| {
        call_on_victim(libc::SYS_kcmp, t, [t.victim.into()])
    }),
    new_act("wall-process-limit", ARGUMENTS, WORKS, |t| {
        let one_second = RawArgument::Bytes([1_u64.to_le_bytes(), 1_u64.to_le_bytes()].concat());
        call_on_victim(
            libc::SYS_prlimit64,
            t,
            [libc::RLIMIT_CPU.cast_signed().into(), one_second, 0.into()],
        )
    }),
    new_act("wall-process-limit-read", ARGUMENTS, WORKS, |t| {
        call_on_victim(libc::SYS_prlimit64, t, [0.into(), 0.into(), RawArgument::with_room(16)])
    }),
    new_act("wall-process-processors", CALLS, WORKS, |t| {
        let first = RawArgument::Bytes(1_u64.to_le_bytes().to_vec());
        call_on_victim(libc::SYS_sched_setaffinity, t, [8.into(), first])
    }),
    new_act("wall-process-processors-read", ARGUMENTS, WORKS, |t| {
        call_on_victim(libc::SYS_sched_getaffinity, t, [128.into(), RawArgument::with_room(128)])
    }),
    new_act("wall-process-scheduler", CALLS, WORKS, |t| {
        call_on_victim(
            libc::SYS_sched_setscheduler,
            t,
            [libc::SCHED_IDLE.into(), RawArgument::with_room(4)],
        )
    }),
    new_act("wall-process-scheduler-parameter", CALLS, WORKS, |t| {
        call_on_victim(libc::SYS_sched_setparam, t, [RawArgument::with_room(4)])
    }),
    new_act("wall-process-scheduler-attributes", CALLS, WORKS, |t| {
        call_on_victim(libc::SYS_sched_setattr, t, [RawArgument::with_room(64)])
    }),
    new_act("wall-process-scheduler-read", CALLS, WORKS, |t| {
        call_on_victim(libc::SYS_sched_getscheduler, t, [])
    }),
    new_act("wall-process-priority", ARGUMENTS, WORKS, |t| {
        call_kernel(libc::SYS_setpriority, [0.into(), t.victim.into(), 19.into()])
    }),
    new_act(
        "wall-process-priority-of-all",
        ARGUMENTS,
        control_harms("it would slow every process of this user down"),
        |_| {
            let of_a_user = 2;
            call_kernel(libc::SYS_setpriority, [of_a_user.into(), 0.into(), 1.into()])
        },
    ),
    new_act("wall-process-io-priority", CALLS, WORKS, |t| {
        let idle = 3 << 13;
        call_kernel(libc::SYS_ioprio_set, [1.into(), t.victim.into(), idle.into()])
    }),
    new_act("wall-process-group", CALLS, WORKS, |_| {
        call_kernel(libc::SYS_setpgid, [0.into(), 0.into()])
    }),
    new_act("wall-process-group-read", CALLS, WORKS, |t| call_on_victim(libc::SYS_getpgid, t, [])),
    new_act("wall-process-session-read", ARGUMENTS, WORKS, |t| {
        call_on_victim(libc::SYS_getsid, t, [])
    }),
    new_act("wall-process-session", CALLS, WORKS, |_| call_kernel(libc::SYS_setsid, [])),
    new_act("wall-process-locks-read", CALLS, WORKS, |t| {
        call_on_victim(
            libc::SYS_get_robust_list,
            t,
            [RawArgument::with_room(8), RawArgument::with_room(8)],
        )
    }),
    new_act("wall-process-clock-read", ARGUMENTS, WORKS, |t| {
        call_kernel(
            libc::SYS_clock_gettime,
            [clock_of(t.victim).into(), RawArgument::with_room(16)],
        )
    }),
    new_act(
        "wall-process-advise-memory",
        CALLS,
        control_may("it needs a privilege over the other process"),
        |t| {
            let (cold, of_none) = (20, RawArgument::with_room(16));
            call_kernel(
                libc::SYS_process_madvise,
                [t.held.victim.into(), of_none, 0.into(), cold.into(), 0.into()],
            )
        },
    ),
    new_act("wall-process-free-memory", CALLS, control_may("it is for a process that ends"), |t| {
        call_kernel(libc::SYS_process_mrelease, [t.held.victim.into(), 0.into()])
    }),
    new_act(
        "wall-process-move-pages",
        CALLS,
        control_may("it needs a kernel with NUMA, and a privilege over the other process"),
        |t| call_on_victim(libc::SYS_move_pages, t, []),
    ),
    new_act(
        "wall-process-migrate-pages",
        CALLS,
        control_may("it needs a kernel with NUMA, and a privilege over the other process"),
        |t| call_on_victim(libc::SYS_migrate_pages, t, []),
    ),
    new_act("wall-process-wait", CALLS, control_may("this process has no child"), |_| {
        call_kernel(libc::SYS_wait4, [(-1).into(), 0.into(), libc::WNOHANG.into(), 0.into()])
    }),
    new_act("wall-program-run", CALLS, WORKS, |t| execute_script(t, libc::SYS_execve)),
    new_act("wall-program-run-at", CALLS, WORKS, |t| execute_script(t, libc::SYS_execveat)),
    new_act("wall-program-run-from-memory", CALLS, WORKS, |t| {
        let file = call_kernel(libc::SYS_memfd_create, [RawArgument::from_text("x"), 0.into()])?;
        let script = format!("#!/bin/sh\necho out > {}\n", t.path_at("outside/ran.txt").display());
        let length = i64::try_from(script.len()).unwrap_or_default();
        call_kernel(
            libc::SYS_write,
            [file.into(), RawArgument::Bytes(script.into()), length.into()],
        )?;
        let itself = libc::AT_EMPTY_PATH;
        let none = RawArgument::from_text("");
        call_kernel(libc::SYS_execveat, [file.into(), none, 0.into(), 0.into(), itself.into()])
    }),
    new_act("wall-program-fork", ARGUMENTS, WORKS, |_| {
        make_process(
            libc::SYS_clone,
            [libc::SIGCHLD.into(), 0.into(), 0.into(), 0.into(), 0.into()],
        )
    }),
    new_act("wall-program-clone3", CALLS, WORKS, |_| {
        make_process(libc::SYS_clone3, [RawArgument::with_room(88), 88.into()])
    }),
    new_act("wall-namespace-clone", ARGUMENTS, control_may("some containers forbid it"), |_| {
        let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
        make_process(libc::SYS_clone, [flags.into(), 0.into(), 0.into(), 0.into(), 0.into()])
    }),
    new_act("wall-namespace-unshare", INTRUDERS, ENDS, |_| {
        call_kernel(libc::SYS_unshare, [libc::CLONE_NEWUSER.into()])
    }),
    new_act("wall-namespace-enter", INTRUDERS, ENDS, |_| {
        call_kernel(libc::SYS_setns, [0.into(), 0.into()])
    }),
    new_act("wall-process-dumpable", ARGUMENTS, WORKS, |_| {
        call_kernel(
            libc::SYS_prctl,
            [libc::PR_SET_DUMPABLE.into(), 1.into(), 0.into(), 0.into(), 0.into()],
        )
    }),
    new_act(
        "wall-process-tracer",
        ARGUMENTS,
        control_may("it needs the kernel's module Yama"),
        |t| {
            let tracer = libc::PR_SET_PTRACER;
            call_kernel(
                libc::SYS_prctl,
                [tracer.into(), t.victim.into(), 0.into(), 0.into(), 0.into()],
            )
        },
    ),
];
