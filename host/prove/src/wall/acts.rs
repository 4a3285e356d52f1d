//! The attacks that a process makes which was taken over: one or a few system calls each.
//!
//! A call that fails proves nothing by itself: it may fail because of its arguments, or because of a right
//! that the attacker lacks anyway. So each row states which errors come from the wall, and what the same call
//! does without a wall ([`ControlProof`]).

mod broker;
mod files;
mod kernel;
mod processes;
mod shared;
mod sockets;

use super::raw::Done;
use super::stage::AttackTargets;

/// One attack on the OS sandbox.
pub(crate) struct WallAct {
    /// The unique name, which begins with `wall`.
    pub(crate) id: &'static str,
    /// The part of the wall that stops the attack.
    pub(crate) by: WallDefence,
    /// The version of landlock that is needed to stop the attack.
    pub(crate) landlock: u32,
    /// The proof that the wall was the reason.
    pub(crate) control: ControlProof,
    /// Makes the attack. If this call succeeds, the OS sandbox has failed.
    pub(crate) run: fn(&AttackTargets) -> Done,
}

/// A part of the wall, with the errors by which a call that it refuses can be recognised.
#[derive(Debug)]
pub(crate) struct WallDefence {
    pub(crate) text: &'static str,
    /// The error numbers (`errno`); if there are none, the wall ends the process.
    pub(crate) errors: &'static [i32],
}

/// How it is proved that the wall stopped an attack, and nothing else did.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ControlProof {
    /// The same call succeeds for everybody without the wall. If it does not, nothing is proved.
    Works,
    /// The same call succeeds without the wall, except under this condition.
    May(&'static str),
    /// The kernel ends the process by a signal that only a filter of system calls sends.
    Ends,
    /// The call is not made without the wall, for this reason.
    Harms(&'static str),
    /// A similar call that is allowed succeeds behind the same wall.
    Beside(fn(&AttackTargets) -> Done),
}

/// A system call that is not on the list of allowed ones. The error depends on whether the filter knows the
/// call.
const CALLS: WallDefence = WallDefence {
    text: "seccomp: not among the calls that are left (INV-130)",
    errors: &[libc::EPERM, libc::ENOSYS],
};

/// A system call that only an intruder makes.
const INTRUDERS: WallDefence = WallDefence {
    text: "seccomp: what only an intruder calls ends the process (INV-62)",
    errors: &[],
};

/// A system call that is allowed with other arguments.
const ARGUMENTS: WallDefence = WallDefence {
    text: "seccomp: left for other arguments alone (INV-131)",
    errors: &[libc::ENOSYS],
};

/// A path that is not allowed. Landlock answers a move or a link with `EXDEV`.
const PATHS: WallDefence = WallDefence {
    text: "landlock: the path was not let through (INV-60)",
    errors: &[libc::EACCES, libc::EXDEV],
};

/// The rule about TLS certificates.
const TLS_KEYS: WallDefence = WallDefence {
    text: "landlock: certificates are let through, and no private key beside them (INV-430)",
    errors: &[libc::EACCES],
};

/// The rule about processes that are started later.
const KEPT: WallDefence = WallDefence {
    text: "landlock: neither the cache nor any settings are let through (INV-132)",
    errors: &[libc::EACCES, libc::EXDEV],
};

/// A port that is not allowed.
const PORTS: WallDefence =
    WallDefence { text: "landlock: no TCP port is taken (INV-62)", errors: &[libc::EACCES] };

/// A refusal by the broker: a message, or a socket that it closes without one.
const BROKER: WallDefence =
    WallDefence { text: "the broker: no request names this (INV-133)", errors: &[libc::EPERM] };

const WORKS: ControlProof = ControlProof::Works;
const ENDS: ControlProof = ControlProof::Ends;

const fn control_may(unless: &'static str) -> ControlProof {
    ControlProof::May(unless)
}

const fn control_harms(why: &'static str) -> ControlProof {
    ControlProof::Harms(why)
}

/// Makes a row of the table of attacks.
const fn new_act(
    id: &'static str,
    by: WallDefence,
    control: ControlProof,
    run: fn(&AttackTargets) -> Done,
) -> WallAct {
    WallAct { id, by, landlock: 1, control, run }
}

/// Every attack on the OS sandbox.
pub(crate) fn list_acts() -> impl Iterator<Item = &'static WallAct> {
    files::ACTS
        .iter()
        .chain(processes::ACTS)
        .chain(sockets::ACTS)
        .chain(shared::ACTS)
        .chain(kernel::ACTS)
        .chain(kernel::ACTS_HERE)
        .chain(broker::ACTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_ends_the_process_or_has_errors_of_its_own() {
        for act in list_acts() {
            let ends = matches!(act.control, ControlProof::Ends);
            assert_eq!(ends, act.by.errors.is_empty(), "{}", act.id);
            for foreign in [libc::EFAULT, libc::EBADF, libc::EINVAL, libc::ESRCH, libc::ENOENT] {
                assert!(!act.by.errors.contains(&foreign), "{}", act.id);
            }
        }
    }

    #[test]
    fn most_acts_that_fail_by_an_error_are_shown_to_work_without_the_wall() {
        let (mut works, mut may, mut harms) = (0, 0, 0);
        for act in list_acts() {
            match act.control {
                ControlProof::Works => works += 1,
                ControlProof::May(_) => may += 1,
                ControlProof::Harms(_) => harms += 1,
                ControlProof::Ends | ControlProof::Beside(_) => {}
            }
        }
        assert!(works > may + harms && harms < 10, "{works}, {may}, {harms}");
    }
}
