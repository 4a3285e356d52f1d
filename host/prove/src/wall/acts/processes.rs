//! Other processes: their signals, memory, limits, processors; new ones.

use super::{ARGUMENTS, Act, CALLS, ENDS, INTRUDERS, WORKS, act, harms, may};
use crate::wall::raw::{Arg, Done, call};
use crate::wall::stage::Targets;

fn of_victim<const N: usize>(number: i64, targets: &Targets, rest: [Arg; N]) -> Done {
    let mut rest = rest.into_iter();
    let mut next = || rest.next().unwrap_or(Arg::Number(0));
    call(number, [targets.victim.into(), next(), next(), next(), next(), next()])
}

/// The signal that ends a process.
const KILL: i32 = libc::SIGKILL;

/// The kernel's information about a signal that a process queues: any other origin is refused
/// anyway.
fn queued() -> Arg {
    let (signal, origin) = (KILL, libc::SI_QUEUE);
    let mut told = [signal.to_le_bytes(), [0; 4], origin.to_le_bytes()].concat();
    told.resize(128, 0);
    Arg::Bytes(told)
}

/// Makes a process; where there is no wall to stop it, that one ends at once.
fn doubled<const N: usize>(number: i64, arguments: [Arg; N]) -> Done {
    let made = call(number, arguments)?;
    if made == 0 {
        call(libc::SYS_exit_group, [0.into()])?;
    }
    Ok(made)
}

/// The clock of another process: its number turned over.
fn clock_of(process: i32) -> i64 {
    i64::from((!process) << 3 | 2)
}

fn run(targets: &Targets, number: i64) -> Done {
    let script = Arg::path(&targets.at("outside/script.sh"));
    match number {
        libc::SYS_execve => call(number, [script, 0.into(), 0.into()]),
        _ => call(number, [libc::AT_FDCWD.into(), script, 0.into(), 0.into(), 0.into()]),
    }
}

pub(super) const ACTS: &[Act] = &[
    act("wall-process-kill", ARGUMENTS, WORKS, |t| of_victim(libc::SYS_kill, t, [KILL.into()])),
    act("wall-process-kill-look", ARGUMENTS, WORKS, |t| of_victim(libc::SYS_kill, t, [0.into()])),
    act("wall-process-kill-group", ARGUMENTS, WORKS, |_| {
        call(libc::SYS_kill, [0.into(), libc::SIGCONT.into()])
    }),
    act(
        "wall-process-kill-all",
        ARGUMENTS,
        harms("it would reach every process of this user"),
        |_| call(libc::SYS_kill, [(-1).into(), libc::SIGCONT.into()]),
    ),
    act("wall-process-tkill", CALLS, WORKS, |t| of_victim(libc::SYS_tkill, t, [KILL.into()])),
    act("wall-process-tgkill", ARGUMENTS, WORKS, |t| {
        of_victim(libc::SYS_tgkill, t, [t.victim.into(), KILL.into()])
    }),
    act("wall-process-queue", CALLS, WORKS, |t| {
        of_victim(libc::SYS_rt_sigqueueinfo, t, [KILL.into(), queued()])
    }),
    act("wall-process-queue-thread", CALLS, WORKS, |t| {
        of_victim(libc::SYS_rt_tgsigqueueinfo, t, [t.victim.into(), KILL.into(), queued()])
    }),
    act("wall-process-owner-of-a-descriptor", ARGUMENTS, WORKS, |t| {
        call(libc::SYS_fcntl, [0.into(), libc::F_SETOWN.into(), t.victim.into()])
    }),
    act("wall-process-open", CALLS, WORKS, |t| of_victim(libc::SYS_pidfd_open, t, [])),
    act("wall-process-signal-by-descriptor", CALLS, WORKS, |t| {
        call(libc::SYS_pidfd_send_signal, [t.held.victim.into(), KILL.into(), 0.into(), 0.into()])
    }),
    act("wall-process-take-descriptor", INTRUDERS, ENDS, |t| {
        call(libc::SYS_pidfd_getfd, [t.held.victim.into(), 0.into(), 0.into()])
    }),
    act("wall-process-trace", INTRUDERS, ENDS, |t| {
        let attach = 16;
        call(libc::SYS_ptrace, [attach.into(), t.victim.into(), 0.into(), 0.into()])
    }),
    act("wall-process-read-memory", INTRUDERS, ENDS, |t| {
        of_victim(libc::SYS_process_vm_readv, t, [])
    }),
    act("wall-process-write-memory", INTRUDERS, ENDS, |t| {
        of_victim(libc::SYS_process_vm_writev, t, [])
    }),
    act("wall-process-compare", INTRUDERS, ENDS, |t| {
        of_victim(libc::SYS_kcmp, t, [t.victim.into()])
    }),
    act("wall-process-limit", ARGUMENTS, WORKS, |t| {
        let one_second = Arg::Bytes([1_u64.to_le_bytes(), 1_u64.to_le_bytes()].concat());
        of_victim(
            libc::SYS_prlimit64,
            t,
            [libc::RLIMIT_CPU.cast_signed().into(), one_second, 0.into()],
        )
    }),
    act("wall-process-limit-read", ARGUMENTS, WORKS, |t| {
        of_victim(libc::SYS_prlimit64, t, [0.into(), 0.into(), Arg::room(16)])
    }),
    act("wall-process-processors", CALLS, WORKS, |t| {
        let first = Arg::Bytes(1_u64.to_le_bytes().to_vec());
        of_victim(libc::SYS_sched_setaffinity, t, [8.into(), first])
    }),
    act("wall-process-processors-read", ARGUMENTS, WORKS, |t| {
        of_victim(libc::SYS_sched_getaffinity, t, [128.into(), Arg::room(128)])
    }),
    act("wall-process-scheduler", CALLS, WORKS, |t| {
        of_victim(libc::SYS_sched_setscheduler, t, [libc::SCHED_IDLE.into(), Arg::room(4)])
    }),
    act("wall-process-scheduler-parameter", CALLS, WORKS, |t| {
        of_victim(libc::SYS_sched_setparam, t, [Arg::room(4)])
    }),
    act("wall-process-scheduler-attributes", CALLS, WORKS, |t| {
        of_victim(libc::SYS_sched_setattr, t, [Arg::room(64)])
    }),
    act("wall-process-scheduler-read", CALLS, WORKS, |t| {
        of_victim(libc::SYS_sched_getscheduler, t, [])
    }),
    act("wall-process-priority", ARGUMENTS, WORKS, |t| {
        call(libc::SYS_setpriority, [0.into(), t.victim.into(), 19.into()])
    }),
    act(
        "wall-process-priority-of-all",
        ARGUMENTS,
        harms("it would slow every process of this user down"),
        |_| {
            let of_a_user = 2;
            call(libc::SYS_setpriority, [of_a_user.into(), 0.into(), 1.into()])
        },
    ),
    act("wall-process-io-priority", CALLS, WORKS, |t| {
        let idle = 3 << 13;
        call(libc::SYS_ioprio_set, [1.into(), t.victim.into(), idle.into()])
    }),
    act("wall-process-group", CALLS, WORKS, |_| call(libc::SYS_setpgid, [0.into(), 0.into()])),
    act("wall-process-group-read", CALLS, WORKS, |t| of_victim(libc::SYS_getpgid, t, [])),
    act("wall-process-session-read", ARGUMENTS, WORKS, |t| of_victim(libc::SYS_getsid, t, [])),
    act("wall-process-session", CALLS, WORKS, |_| call(libc::SYS_setsid, [])),
    act("wall-process-locks-read", CALLS, WORKS, |t| {
        of_victim(libc::SYS_get_robust_list, t, [Arg::room(8), Arg::room(8)])
    }),
    act("wall-process-clock-read", ARGUMENTS, WORKS, |t| {
        call(libc::SYS_clock_gettime, [clock_of(t.victim).into(), Arg::room(16)])
    }),
    act(
        "wall-process-advise-memory",
        CALLS,
        may("it needs a privilege over the other process"),
        |t| {
            let (cold, of_none) = (20, Arg::room(16));
            call(
                libc::SYS_process_madvise,
                [t.held.victim.into(), of_none, 0.into(), cold.into(), 0.into()],
            )
        },
    ),
    act("wall-process-free-memory", CALLS, may("it is for a process that ends"), |t| {
        call(libc::SYS_process_mrelease, [t.held.victim.into(), 0.into()])
    }),
    act(
        "wall-process-move-pages",
        CALLS,
        may("it needs a kernel with NUMA, and a privilege over the other process"),
        |t| of_victim(libc::SYS_move_pages, t, []),
    ),
    act(
        "wall-process-migrate-pages",
        CALLS,
        may("it needs a kernel with NUMA, and a privilege over the other process"),
        |t| of_victim(libc::SYS_migrate_pages, t, []),
    ),
    act("wall-process-wait", CALLS, may("this process has no child"), |_| {
        call(libc::SYS_wait4, [(-1).into(), 0.into(), libc::WNOHANG.into(), 0.into()])
    }),
    act("wall-program-run", CALLS, WORKS, |t| run(t, libc::SYS_execve)),
    act("wall-program-run-at", CALLS, WORKS, |t| run(t, libc::SYS_execveat)),
    act("wall-program-run-from-memory", CALLS, WORKS, |t| {
        let file = call(libc::SYS_memfd_create, [Arg::text("x"), 0.into()])?;
        let script = format!("#!/bin/sh\necho out > {}\n", t.at("outside/ran.txt").display());
        let length = i64::try_from(script.len()).unwrap_or_default();
        call(libc::SYS_write, [file.into(), Arg::Bytes(script.into()), length.into()])?;
        let itself = libc::AT_EMPTY_PATH;
        let none = Arg::text("");
        call(libc::SYS_execveat, [file.into(), none, 0.into(), 0.into(), itself.into()])
    }),
    act("wall-program-fork", ARGUMENTS, WORKS, |_| {
        doubled(libc::SYS_clone, [libc::SIGCHLD.into(), 0.into(), 0.into(), 0.into(), 0.into()])
    }),
    act("wall-program-clone3", CALLS, WORKS, |_| {
        doubled(libc::SYS_clone3, [Arg::room(88), 88.into()])
    }),
    act("wall-namespace-clone", ARGUMENTS, may("some containers forbid it"), |_| {
        let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
        doubled(libc::SYS_clone, [flags.into(), 0.into(), 0.into(), 0.into(), 0.into()])
    }),
    act("wall-namespace-unshare", INTRUDERS, ENDS, |_| {
        call(libc::SYS_unshare, [libc::CLONE_NEWUSER.into()])
    }),
    act("wall-namespace-enter", INTRUDERS, ENDS, |_| call(libc::SYS_setns, [0.into(), 0.into()])),
    act("wall-process-dumpable", ARGUMENTS, WORKS, |_| {
        call(
            libc::SYS_prctl,
            [libc::PR_SET_DUMPABLE.into(), 1.into(), 0.into(), 0.into(), 0.into()],
        )
    }),
    act("wall-process-tracer", ARGUMENTS, may("it needs the kernel's module Yama"), |t| {
        let tracer = libc::PR_SET_PTRACER;
        call(libc::SYS_prctl, [tracer.into(), t.victim.into(), 0.into(), 0.into(), 0.into()])
    }),
];
