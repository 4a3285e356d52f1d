//! Programs that cannot be here, and what to use instead.

use bashkit::{Builtin, BuiltinContext, CommandResolver, ExecResult, Result, async_trait};
use std::sync::Arc;

/// The shell's exit code for a command that does not exist.
const NOT_FOUND: i32 = 127;

const NO_PROCESSES: &str = "this shell starts no programs, it has only its own utilities";
const NO_NETWORK: &str = "this shell has no network; fetch pages with the tool `web_fetch`";
const NO_USERS: &str = "there are no users in the sandbox";
const NO_SYSTEM: &str = "there is no operating system to ask in the sandbox";

/// Why a program that scripts often call is not here.
#[rustfmt::skip]
const ABSENT: &[(&[&str], &str)] = &[
    (&["git", "gh", "hg", "svn"],
        "there is no version control in the sandbox; read the files themselves"),
    (&["curl", "wget", "http", "ssh", "scp", "sftp", "rsync", "nc", "ping", "dig", "nslookup", "telnet"],
        NO_NETWORK),
    (&["python", "python2", "python3", "pip", "pip3", "uv", "poetry", "pytest", "node", "deno", "bun",
        "npm", "npx", "yarn", "pnpm", "tsc", "ruby", "gem", "bundle", "perl", "php", "lua", "java",
        "javac", "mvn", "gradle", "dotnet", "R"],
        "there is no interpreter for it in the sandbox; use the shell, awk, sed or jq"),
    (&["cargo", "rustc", "rustup", "rustfmt", "go", "gcc", "g++", "cc", "c++", "clang", "make", "cmake",
        "ninja", "meson", "bazel", "zig", "ld"],
        "nothing can be compiled or run in the sandbox; change the files and say what should be run"),
    (&["docker", "podman", "kubectl", "helm", "terraform", "aws", "gcloud", "systemctl", "service", "apt",
        "apt-get", "dpkg", "yum", "dnf", "apk", "brew", "vim", "vi", "nano", "emacs", "less", "more",
        "man", "tmux", "screen", "openssl", "gpg", "sqlite3", "psql", "mysql"],
        NO_PROCESSES),
    (&["whoami", "id", "groups", "who", "users", "logname", "su", "sudo", "chown", "chgrp"], NO_USERS),
    (&["uname", "hostname", "ps", "top", "pgrep", "pkill", "free", "df", "uptime", "nproc", "arch", "mount",
        "lsof", "getconf"],
        NO_SYSTEM),
];

/// Answers for commands that nothing else answers for.
pub(crate) struct Resolver;

impl CommandResolver for Resolver {
    fn resolve(&self, name: &str) -> Option<Arc<dyn Builtin>> {
        let base = name.rsplit('/').next().unwrap_or(name);
        let found = ABSENT.iter().find(|(names, _)| names.contains(&base));
        found.map(|(_, why)| Arc::new(Absent { name: name.to_owned(), why }) as Arc<dyn Builtin>)
    }
}

struct Absent {
    name: String,
    why: &'static str,
}

#[async_trait]
impl Builtin for Absent {
    async fn execute(&self, _context: BuiltinContext<'_>) -> Result<ExecResult> {
        let text = format!("shell: {}: command not found: {}\n", self.name, self.why);
        Ok(ExecResult::err(text, NOT_FOUND))
    }
}
