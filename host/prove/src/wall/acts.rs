//! The attacks: what a taken-over process tries, one system call or a few.

mod broker;
mod files;
mod kernel;
mod processes;
mod shared;
mod sockets;

use super::raw::Done;
use super::stage::Targets;

/// One attack.
pub(crate) struct Act {
    /// Its name. Unique; begins with `wall`.
    pub(crate) id: &'static str,
    /// What stops it.
    pub(crate) stopped_by: &'static str,
    /// The version of landlock without which nothing stops it.
    pub(crate) landlock: u32,
    /// Makes it. What works is an error of the OS sandbox.
    pub(crate) run: fn(&Targets) -> Done,
}

/// A call that is not on the list of those that are left.
const CALLS: &str = "seccomp: not among the calls that are left (INV-130)";

/// A call that is on it with other arguments.
const ARGUMENTS: &str = "seccomp: left for other arguments alone (INV-131)";

/// A path that was not let through.
const PATHS: &str = "landlock: the path was not let through (INV-60)";

/// What decides about later processes.
const KEPT: &str = "landlock: neither the cache nor any settings are let through (INV-132)";

const BROKER: &str = "the broker: no request names this (INV-133)";

const fn act(id: &'static str, stopped_by: &'static str, run: fn(&Targets) -> Done) -> Act {
    Act { id, stopped_by, landlock: 1, run }
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Act> {
    files::ACTS
        .iter()
        .chain(processes::ACTS)
        .chain(sockets::ACTS)
        .chain(shared::ACTS)
        .chain(kernel::ACTS)
        .chain(kernel::ACTS_HERE)
        .chain(broker::ACTS)
}
