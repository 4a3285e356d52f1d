//! Which commands there are.

/// Commands of the shell language itself.
#[rustfmt::skip]
pub const LANGUAGE: &[&str] = &[
    ".", ":", "[", "alias", "break", "caller", "cd", "continue", "dirs", "echo", "enable", "eval",
    "exit", "export", "false", "hash", "help", "jobs", "kill", "local", "mapfile", "popd", "printf",
    "pushd", "pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source",
    "test", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "wait",
];

/// Programs that work on text, files and archives.
///
/// The interpreter has more: those that answer with invented facts (users, processes, the
/// kernel, a network), and helpers that no other machine has. They are left out, so that a
/// script which needs one fails here instead of going wrong.
#[rustfmt::skip]
pub const PROGRAMS: &[&str] = &[
    // Text.
    "awk", "cat", "column", "comm", "cut", "diff", "egrep", "envsubst", "expand", "fgrep", "fmt",
    "fold", "gawk", "grep", "head", "join", "jq", "nl", "paste", "patch", "rev", "rg", "sed",
    "shuf", "sort", "split", "strings", "tac", "tail", "tee", "tr", "tsort", "unexpand", "uniq",
    "wc", "yq",
    // Files.
    "basename", "chmod", "cmp", "cp", "dd", "dirname", "du", "file", "find", "install", "link",
    "ln", "ls", "mkdir", "mktemp", "mv", "readlink", "realpath", "rm", "rmdir", "stat", "touch",
    "tree", "truncate", "unlink",
    // Bytes and archives.
    "b2sum", "base32", "base64", "bunzip2", "bzcat", "bzip2", "cksum", "gunzip", "gzip", "hexdump",
    "md5sum", "od", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shasum", "sum",
    "tar", "unzip", "xxd", "zcat", "zip",
    // Numbers, time, running commands.
    "bc", "date", "env", "expr", "factor", "nohup", "numfmt", "printenv", "seq", "sleep", "sync",
    "timeout", "which", "xargs", "yes",
];

/// Programs by which a script is run; the interpreter has them built in.
const SHELLS: &[&str] = &["bash", "sh"];

/// Whether the interpreter's own command of this name is there.
pub(crate) fn is_kept(name: &str) -> bool {
    LANGUAGE.contains(&name) || PROGRAMS.contains(&name)
}

/// Whether there is a program of this name, which can be called by its path.
pub(crate) fn is_program(name: &str) -> bool {
    const ALSO: &[&str] = &["[", "echo", "false", "kill", "printf", "pwd", "test", "true"];
    [PROGRAMS, SHELLS, ALSO].iter().any(|names| names.contains(&name))
}
