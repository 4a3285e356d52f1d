//! Finds the setting that would fix a program's error message.

/// A key of a server that is a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Directories,
    Processes,
    Network,
    Memory,
}

/// Parts of error messages of the C library and of language runtimes, in lower case, with the setting that
/// each suggests.
const WORDS: &[(&str, Key)] = &[
    ("eacces", Key::Directories),
    ("[errno 13]", Key::Directories),
    ("permission denied", Key::Directories),
    ("cannot fork", Key::Processes),
    ("can't fork", Key::Processes),
    ("enosys", Key::Processes),
    ("[errno 38]", Key::Processes),
    ("function not implemented", Key::Processes),
    ("ended: it has more than", Key::Processes),
    ("eai_again", Key::Network),
    ("enetunreach", Key::Network),
    ("getaddrinfo", Key::Network),
    ("name or service not known", Key::Network),
    ("name resolution", Key::Network),
    ("network is unreachable", Key::Network),
    ("cannot allocate memory", Key::Memory),
    ("enomem", Key::Memory),
    ("heap out of memory", Key::Memory),
    ("memoryerror", Key::Memory),
];

/// The settings keys that error messages suggest, each once. The messages are the program's, so this names
/// keys and grants nothing.
pub(crate) fn keys(complaints: &str) -> Vec<Key> {
    let lower = complaints.to_ascii_lowercase();
    let mut keys: Vec<Key> = Vec::new();
    for line in lower.lines() {
        // A socket that may not be made is refused in the words of a file.
        let of_socket = ["socket(", "socket:"].iter().any(|word| line.contains(word));
        let wanted = WORDS.iter().filter(|(word, _)| line.contains(word)).map(|(_, key)| *key);
        keys.extend(wanted.map(|key| match key {
            Key::Directories | Key::Processes if of_socket => Key::Network,
            key => key,
        }));
    }
    keys.sort();
    keys.dedup();
    keys
}

impl Key {
    /// The effect of the key: the beginning of a sentence that ends with the key's place.
    pub(crate) fn hint(self) -> &'static str {
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
            ("OSError: [Errno 38] Function not implemented", vec![Key::Processes]),
            ("sh: 1: Cannot fork", vec![Key::Processes]),
            ("Error: spawn git ENOSYS", vec![Key::Processes]),
            ("belljar: ended: it has more than 1 processes and 512 threads", vec![Key::Processes]),
            ("PermissionError: [Errno 13] Permission denied: '/srv/x'", vec![Key::Directories]),
            ("Error: EACCES: permission denied, open '/srv/x'", vec![Key::Directories]),
            (
                "socket.gaierror: [Errno -3] Temporary failure in name resolution",
                vec![Key::Network],
            ),
            ("self._sock = socket.socket(): [Errno 13] Permission denied", vec![Key::Network]),
            ("MemoryError\nPermission denied", vec![Key::Directories, Key::Memory]),
            ("listening on /run/x.sock\nready", vec![]),
        ] {
            assert_eq!(keys(complaint), expected, "{complaint}");
        }
    }
}
