//! Things that processes share by a number or a name: memory, semaphores, messages, keys.

use super::{Act, CALLS, ENDS, INTRUDERS, WORKS, act, may};
use crate::wall::raw::{Arg, Done, call};

/// The result of making a thing for nobody, which is removed again where no wall stops it: it would
/// outlive its maker.
fn made(made: Done, remove: impl FnOnce(i64) -> Done) -> Done {
    let id = made?;
    remove(id)?;
    Ok(id)
}

pub(super) const ACTS: &[Act] = &[
    act("wall-shared-memory-attach", CALLS, WORKS, |t| {
        call(libc::SYS_shmat, [t.memory.into(), 0.into(), 0.into()])
    }),
    act("wall-shared-memory-make", CALLS, WORKS, |_| {
        let flags = libc::IPC_CREAT | 0o600;
        made(call(libc::SYS_shmget, [0.into(), 4_096.into(), flags.into()]), |id| {
            call(libc::SYS_shmctl, [id.into(), libc::IPC_RMID.into(), 0.into()])
        })
    }),
    act("wall-shared-memory-remove", CALLS, WORKS, |t| {
        call(libc::SYS_shmctl, [t.memory.into(), libc::IPC_RMID.into(), 0.into()])
    }),
    act("wall-shared-semaphore-raise", CALLS, WORKS, |t| {
        let raise = Arg::Bytes(vec![0, 0, 1, 0, 0, 0]);
        call(libc::SYS_semop, [t.semaphores.into(), raise, 1.into()])
    }),
    act("wall-shared-semaphore-wait", CALLS, WORKS, |t| {
        let raise = Arg::Bytes(vec![0, 0, 1, 0, 0, 0]);
        call(libc::SYS_semtimedop, [t.semaphores.into(), raise, 1.into(), 0.into()])
    }),
    act("wall-shared-semaphore-set", CALLS, WORKS, |t| {
        let set = libc::SETVAL;
        call(libc::SYS_semctl, [t.semaphores.into(), 0.into(), set.into(), 9.into()])
    }),
    act("wall-shared-semaphore-open", CALLS, WORKS, |_| {
        made(call(libc::SYS_semget, [0.into(), 1.into(), 0o600.into()]), |id| {
            call(libc::SYS_semctl, [id.into(), 0.into(), libc::IPC_RMID.into(), 0.into()])
        })
    }),
    act("wall-shared-message-send", CALLS, WORKS, |t| {
        let message = Arg::Bytes([1_u64.to_le_bytes(), *b"too-late"].concat());
        call(libc::SYS_msgsnd, [t.messages.into(), message, 8.into(), libc::IPC_NOWAIT.into()])
    }),
    act("wall-shared-message-take", CALLS, WORKS, |t| {
        let (room, now) = (Arg::room(64), libc::IPC_NOWAIT);
        call(libc::SYS_msgrcv, [t.messages.into(), room, 8.into(), 0.into(), now.into()])
    }),
    act("wall-shared-message-remove", CALLS, WORKS, |t| {
        call(libc::SYS_msgctl, [t.messages.into(), libc::IPC_RMID.into(), 0.into()])
    }),
    act("wall-shared-queue-open", CALLS, may("not every kernel has it"), |t| {
        call(libc::SYS_mq_open, [Arg::text(&t.name), libc::O_RDWR.into(), 0.into(), 0.into()])
    }),
    act("wall-shared-queue-remove", CALLS, may("not every kernel has it"), |t| {
        call(libc::SYS_mq_unlink, [Arg::text(&t.name)])
    }),
    act("wall-shared-keys-add", INTRUDERS, ENDS, |_| {
        let (kind, name, value) = (Arg::text("user"), Arg::text("belljar"), Arg::text("x"));
        call(libc::SYS_add_key, [kind, name, value, 1.into(), (-4).into()])
    }),
    act("wall-shared-keys-ask", INTRUDERS, ENDS, |_| {
        call(libc::SYS_request_key, [Arg::text("user"), Arg::text("belljar"), 0.into(), 0.into()])
    }),
    act("wall-shared-keys-read", INTRUDERS, ENDS, |_| {
        let read = 11;
        call(libc::SYS_keyctl, [read.into(), (-4).into(), Arg::room(64), 64.into()])
    }),
];
