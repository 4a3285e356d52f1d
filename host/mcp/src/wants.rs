//! Finds the setting that would fix an error which a server's program reports.

/// A setting in `[mcp.NAME]` of `belljar.toml` that allows more to the server's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SettingsKey {
    Directories,
    Processes,
    Network,
    Memory,
}

/// Parts of error messages of the C library and of language runtimes, in lower case, with the setting that
/// each suggests.
const WORDS: &[(&str, SettingsKey)] = &[
    ("eacces", SettingsKey::Directories),
    ("[errno 13]", SettingsKey::Directories),
    ("permission denied", SettingsKey::Directories),
    ("cannot fork", SettingsKey::Processes),
    ("can't fork", SettingsKey::Processes),
    ("enosys", SettingsKey::Processes),
    ("[errno 38]", SettingsKey::Processes),
    ("function not implemented", SettingsKey::Processes),
    ("ended: it has more than", SettingsKey::Processes),
    ("eai_again", SettingsKey::Network),
    ("enetunreach", SettingsKey::Network),
    ("getaddrinfo", SettingsKey::Network),
    ("name or service not known", SettingsKey::Network),
    ("name resolution", SettingsKey::Network),
    ("network is unreachable", SettingsKey::Network),
    ("cannot allocate memory", SettingsKey::Memory),
    ("enomem", SettingsKey::Memory),
    ("heap out of memory", SettingsKey::Memory),
    ("memoryerror", SettingsKey::Memory),
];

/// The settings that these error messages suggest, each once. The messages are the program's, so they only
/// cause a hint, and grant nothing.
pub(crate) fn suggest_keys(complaints: &str) -> Vec<SettingsKey> {
    let lower = complaints.to_ascii_lowercase();
    let mut keys: Vec<SettingsKey> = Vec::new();
    for line in lower.lines() {
        // A refused socket has the same error text as a refused file, for example `permission denied`.
        let of_socket = ["socket(", "socket:"].iter().any(|word| line.contains(word));
        let wanted = WORDS.iter().filter(|(word, _)| line.contains(word)).map(|(_, key)| *key);
        keys.extend(wanted.map(|key| match key {
            SettingsKey::Directories | SettingsKey::Processes if of_socket => SettingsKey::Network,
            key => key,
        }));
    }
    keys.sort();
    keys.dedup();
    keys
}

impl SettingsKey {
    /// A text for the operator that names the problem and the setting. The caller adds where the setting
    /// belongs, for example under `[mcp.git]` in `belljar.toml`.
    pub(crate) fn describe_fix(self) -> &'static str {
        match self {
            Self::Directories => {
                "it may not reach a file: `directories = { \"/DIR\" = \"read\" }` (or `read-write`) lets it, \
                 also for an interpreter that is not the system's,"
            }
            Self::Processes => {
                "it may not start another program, or not so many: `processes = 4` lets it"
            }
            Self::Network => "it has no network: `network = true` gives it any address",
            Self::Memory => "its memory is used up: `memory_mib` gives it more",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_the_key_that_would_allow_it() {
        for (complaint, expected) in [
            ("OSError: [Errno 38] Function not implemented", vec![SettingsKey::Processes]),
            ("sh: 1: Cannot fork", vec![SettingsKey::Processes]),
            ("Error: spawn git ENOSYS", vec![SettingsKey::Processes]),
            (
                "belljar: ended: it has more than 1 processes and 512 threads",
                vec![SettingsKey::Processes],
            ),
            (
                "PermissionError: [Errno 13] Permission denied: '/srv/x'",
                vec![SettingsKey::Directories],
            ),
            ("Error: EACCES: permission denied, open '/srv/x'", vec![SettingsKey::Directories]),
            (
                "socket.gaierror: [Errno -3] Temporary failure in name resolution",
                vec![SettingsKey::Network],
            ),
            (
                "self._sock = socket.socket(): [Errno 13] Permission denied",
                vec![SettingsKey::Network],
            ),
            ("MemoryError\nPermission denied", vec![SettingsKey::Directories, SettingsKey::Memory]),
            ("listening on /run/x.sock\nready", vec![]),
        ] {
            assert_eq!(suggest_keys(complaint), expected, "{complaint}");
        }
    }
}
