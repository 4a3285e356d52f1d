//! The number of file descriptors that this process may open: set to the system's maximum.

/// Raises the soft limit of open file descriptors to the hard limit, and returns the new limit. The soft
/// limit is low (1,024 on most machines) for programs that use `select`, which belljar does not. Programs
/// that belljar starts, for example hook commands and git, inherit the limit.
#[cfg(unix)]
pub(crate) fn raise_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let known = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: known.maximum, maximum: known.maximum };
    // If the system refuses, the earlier limit stays.
    let now = if setrlimit(Resource::Nofile, wanted).is_ok() { wanted } else { known };
    now.current.unwrap_or(u64::MAX)
}

/// The number of file descriptors that the system allows a process.
#[cfg(not(unix))]
pub(crate) fn raise_limit() -> u64 {
    8_192
}
