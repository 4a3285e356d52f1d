//! The real shells.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::{Case, Outcome, Said, Tree, WORKSPACE};

/// Seconds of one script in a real shell. None of them waits for anything.
const TIMEOUT: &str = "30";

/// How `timeout` says that it had to end something.
const TIMED_OUT: i32 = 124;

/// Programs that cases use, and the Debian packages that have them.
const NEEDED: &[(&str, &str)] = &[
    ("bash", "bash"),
    ("dash", "dash"),
    ("gawk", "gawk"),
    ("jq", "jq"),
    ("diff", "diffutils"),
    ("find", "findutils"),
    ("tar", "tar"),
    ("gzip", "gzip"),
    ("bc", "bc"),
    ("xxd", "xxd"),
    ("patch", "patch"),
    ("column", "bsdextrautils"),
    ("strings", "binutils"),
];

/// bash and dash with the utilities of GNU.
///
/// `awk` is gawk, whatever the machine's own is: mawk, Debian's default, lacks `length` of an
/// array, and its `printf %c` and `srand` differ; what models write is tested against gawk.
#[derive(Debug)]
pub struct Reference {
    bin: TempDir,
}

/// The outcome in the real shells.
#[derive(Debug)]
pub enum Expected {
    /// Both did this.
    Agreed(Outcome),
    /// They differ; this is bash's.
    BashOnly(Outcome),
}

impl Reference {
    /// Finds the programs.
    pub fn new() -> Reference {
        for (program, package) in NEEDED {
            assert!(
                which(program).is_some(),
                "`{program}` is missing\nhint: on Debian, `apt-get install {package}`"
            );
        }
        let bin = tempfile::tempdir().expect("a directory");
        let gawk = which("gawk").expect("gawk is there");
        std::os::unix::fs::symlink(gawk, bin.path().join("awk")).expect("a link");
        Reference { bin }
    }

    /// Runs a case in both.
    pub fn run(&self, case: &Case) -> Expected {
        let bash = self.run_in("bash", case);
        if bash == self.run_in("dash", case) {
            Expected::Agreed(bash)
        } else {
            Expected::BashOnly(bash)
        }
    }

    fn run_in(&self, shell: &str, case: &Case) -> Outcome {
        let root = tempfile::tempdir().expect("a workspace");
        // A machine may have its temporary directory behind a link; `pwd -P` must not show it.
        let workspace = fs::canonicalize(root.path()).expect("a path").join("w");
        fs::create_dir(&workspace).expect("make the workspace");
        case.fill(&workspace);
        let done = Command::new("timeout")
            .args([TIMEOUT, shell, "-c", &case.script])
            .current_dir(&workspace)
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.bin.path().display()))
            .env("HOME", &workspace)
            .env("USER", "agent")
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .output()
            .expect("start the shell");
        let code = done.status.code().unwrap_or_default();
        assert_ne!(code, TIMED_OUT, "`{}` does not end", case.title());
        let stdout = String::from_utf8_lossy(&done.stdout);
        let neutral = stdout.replace(&*workspace.to_string_lossy(), WORKSPACE);
        Outcome {
            said: Said::Apart { stdout: neutral, complained: !done.stderr.is_empty() },
            code,
            tree: Tree::read(&workspace, WORKSPACE),
        }
    }
}

impl Default for Reference {
    fn default() -> Self {
        Self::new()
    }
}

fn which(program: &str) -> Option<PathBuf> {
    let folders = ["/usr/local/bin", "/usr/bin", "/bin"];
    folders.iter().map(|folder| Path::new(folder).join(program)).find(|path| path.exists())
}
