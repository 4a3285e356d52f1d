//! Attacks on objects that processes share by a number or a name: memory, semaphores, messages, keys.

use super::{CALLS, ENDS, INTRUDERS, WORKS, WallAct, control_may, new_act};
use crate::wall::raw::{Done, RawArgument, call_kernel};

/// The result of making a shared object. If no wall prevented that, the object is removed again, because it
/// would outlive its maker.
fn remove_if_made(made: Done, remove: impl FnOnce(i64) -> Done) -> Done {
    let id = made?;
    remove(id)?;
    Ok(id)
}

pub(super) const ACTS: &[WallAct] = &[
    new_act("wall-shared-memory-attach", CALLS, WORKS, |t| {
        call_kernel(libc::SYS_shmat, [t.memory.into(), 0.into(), 0.into()])
    }),
    new_act("wall-shared-memory-make", CALLS, WORKS, |_| {
        let flags = libc::IPC_CREAT | 0o600;
        remove_if_made(
            call_kernel(libc::SYS_shmget, [0.into(), 4_096.into(), flags.into()]),
            |id| call_kernel(libc::SYS_shmctl, [id.into(), libc::IPC_RMID.into(), 0.into()]),
        )
    }),
    new_act("wall-shared-memory-remove", CALLS, WORKS, |t| {
        call_kernel(libc::SYS_shmctl, [t.memory.into(), libc::IPC_RMID.into(), 0.into()])
    }),
    new_act("wall-shared-semaphore-raise", CALLS, WORKS, |t| {
        let raise = RawArgument::Bytes(vec![0, 0, 1, 0, 0, 0]);
        call_kernel(libc::SYS_semop, [t.semaphores.into(), raise, 1.into()])
    }),
    new_act("wall-shared-semaphore-wait", CALLS, WORKS, |t| {
        let raise = RawArgument::Bytes(vec![0, 0, 1, 0, 0, 0]);
        call_kernel(libc::SYS_semtimedop, [t.semaphores.into(), raise, 1.into(), 0.into()])
    }),
    new_act("wall-shared-semaphore-set", CALLS, WORKS, |t| {
        let set = libc::SETVAL;
        call_kernel(libc::SYS_semctl, [t.semaphores.into(), 0.into(), set.into(), 9.into()])
    }),
    new_act("wall-shared-semaphore-open", CALLS, WORKS, |_| {
        remove_if_made(call_kernel(libc::SYS_semget, [0.into(), 1.into(), 0o600.into()]), |id| {
            call_kernel(libc::SYS_semctl, [id.into(), 0.into(), libc::IPC_RMID.into(), 0.into()])
        })
    }),
    new_act("wall-shared-message-send", CALLS, WORKS, |t| {
        let message = RawArgument::Bytes([1_u64.to_le_bytes(), *b"too-late"].concat());
        call_kernel(
            libc::SYS_msgsnd,
            [t.messages.into(), message, 8.into(), libc::IPC_NOWAIT.into()],
        )
    }),
    new_act("wall-shared-message-take", CALLS, WORKS, |t| {
        let (room, now) = (RawArgument::with_room(64), libc::IPC_NOWAIT);
        call_kernel(libc::SYS_msgrcv, [t.messages.into(), room, 8.into(), 0.into(), now.into()])
    }),
    new_act("wall-shared-message-remove", CALLS, WORKS, |t| {
        call_kernel(libc::SYS_msgctl, [t.messages.into(), libc::IPC_RMID.into(), 0.into()])
    }),
    new_act("wall-shared-queue-open", CALLS, control_may("not every kernel has it"), |t| {
        call_kernel(
            libc::SYS_mq_open,
            [RawArgument::from_text(&t.name), libc::O_RDWR.into(), 0.into(), 0.into()],
        )
    }),
    new_act("wall-shared-queue-remove", CALLS, control_may("not every kernel has it"), |t| {
        call_kernel(libc::SYS_mq_unlink, [RawArgument::from_text(&t.name)])
    }),
    new_act("wall-shared-keys-add", INTRUDERS, ENDS, |_| {
        let (kind, name, value) = (
            RawArgument::from_text("user"),
            RawArgument::from_text("belljar"),
            RawArgument::from_text("x"),
        );
        call_kernel(libc::SYS_add_key, [kind, name, value, 1.into(), (-4).into()])
    }),
    new_act("wall-shared-keys-ask", INTRUDERS, ENDS, |_| {
        call_kernel(
            libc::SYS_request_key,
            [RawArgument::from_text("user"), RawArgument::from_text("belljar"), 0.into(), 0.into()],
        )
    }),
    new_act("wall-shared-keys-read", INTRUDERS, ENDS, |_| {
        let read = 11;
        call_kernel(
            libc::SYS_keyctl,
            [read.into(), (-4).into(), RawArgument::with_room(64), 64.into()],
        )
    }),
];
