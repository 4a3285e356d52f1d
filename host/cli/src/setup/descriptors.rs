//! The number of descriptors of this process: the system's maximum.

/// Raises the soft limit to the hard one, and returns the result. The soft limit is low (1,024 on most
/// machines) for programs with `select`, which belljar does not use; started programs (hook commands, git)
/// inherit the limit.
#[cfg(unix)]
pub(crate) fn raise_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let known = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: known.maximum, maximum: known.maximum };
    // Refused: what holds goes on holding.
    let now = if setrlimit(Resource::Nofile, wanted).is_ok() { wanted } else { known };
    now.current.unwrap_or(u64::MAX)
}

/// The number of descriptors that the system's runtime lets a process have.
#[cfg(not(unix))]
pub(crate) fn raise_limit() -> u64 {
    8_192
}
