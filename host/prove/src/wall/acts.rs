//! The attacks: what a taken-over process tries, one system call or a few.
//!
//! A call that fails proves nothing by itself: it may fail for its arguments, or for want of a
//! right that the attacker lacks anyway. So each row says which errors are the wall's own, and what
//! the same call with the same arguments does where there is no wall ([`ControlProof`]).

mod broker;
mod files;
mod kernel;
mod processes;
mod shared;
mod sockets;

use super::raw::Done;
use super::stage::AttackTargets;

/// One attack.
pub(crate) struct WallAct {
    /// Its name. Unique; begins with `wall`.
    pub(crate) id: &'static str,
    /// The part of the wall that stops it.
    pub(crate) by: WallDefence,
    /// The version of landlock without which nothing stops it.
    pub(crate) landlock: u32,
    /// The proof that it is the wall.
    pub(crate) control: ControlProof,
    /// Makes it. What works is an error of the OS sandbox.
    pub(crate) run: fn(&AttackTargets) -> Done,
}

/// The part of the wall that stops an attack, and the answers that are its own.
#[derive(Debug)]
pub(crate) struct WallDefence {
    pub(crate) text: &'static str,
    /// The errors; none = the process ends.
    pub(crate) errors: &'static [i32],
}

/// The proof that an attack was stopped by the wall, and by nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ControlProof {
    /// The same works without the wall, for everybody; where it does not, the row proves nothing.
    Works,
    /// The same works without the wall, where this does not stand in the way.
    May(&'static str),
    /// The kernel ends the process by the signal that a filter of calls alone sends.
    Ends,
    /// The same is not made without the wall, for this reason.
    Harms(&'static str),
    /// This, which is not refused, works behind the same wall.
    Beside(fn(&AttackTargets) -> Done),
}

/// A call that is not on the list of those that are left. Whether it is known decides the error.
const CALLS: WallDefence = WallDefence {
    text: "seccomp: not among the calls that are left (INV-130)",
    errors: &[libc::EPERM, libc::ENOSYS],
};

/// A call that nobody but an intruder makes.
const INTRUDERS: WallDefence = WallDefence {
    text: "seccomp: what only an intruder calls ends the process (INV-62)",
    errors: &[],
};

/// A call that is left with other arguments.
const ARGUMENTS: WallDefence = WallDefence {
    text: "seccomp: left for other arguments alone (INV-131)",
    errors: &[libc::ENOSYS],
};

/// A path that was not let through. `EXDEV` is what landlock says of a move or a link.
const PATHS: WallDefence = WallDefence {
    text: "landlock: the path was not let through (INV-60)",
    errors: &[libc::EACCES, libc::EXDEV],
};

/// The rule about certificates.
const TLS_KEYS: WallDefence = WallDefence {
    text: "landlock: certificates are let through, and no private key beside them (INV-430)",
    errors: &[libc::EACCES],
};

/// The rule about later processes.
const KEPT: WallDefence = WallDefence {
    text: "landlock: neither the cache nor any settings are let through (INV-132)",
    errors: &[libc::EACCES, libc::EXDEV],
};

/// A port that was not let through.
const PORTS: WallDefence =
    WallDefence { text: "landlock: no TCP port is taken (INV-62)", errors: &[libc::EACCES] };

/// A refusal in the broker's words, or a socket that it closes without any.
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

const fn new_act(
    id: &'static str,
    by: WallDefence,
    control: ControlProof,
    run: fn(&AttackTargets) -> Done,
) -> WallAct {
    WallAct { id, by, landlock: 1, control, run }
}

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
