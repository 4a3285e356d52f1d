//! One commit of a git repository, as an archive.
//!
//! Git runs what a repository's own configuration names (file system monitors, filters, hooks,
//! credential helpers), so nothing but `upload-pack`, which is made to serve repositories that
//! nobody trusts, runs in a stranger's. It fills a bare clone of our own, and everything else
//! happens there, without any configuration, hook or protocol but that of files.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use belljar_policy::Shown;

use super::archive::MAX_UNPACKED;
use crate::exit::Failure;

/// How long git may take for one step. A repository with a long history is cloned in a minute.
const MAX_TIME: Duration = Duration::from_secs(300);

/// Characters of git's own words that are shown.
const MAX_WORDS: usize = 400;

/// What git is told before its command.
const CONFIG: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "submodule.recurse=false",
];

/// A commit of which everything is there.
pub(crate) struct Commit {
    /// Its full id.
    pub(super) id: String,
    /// Its files, as tar; a file without a name.
    pub(super) archive: File,
}

/// Whether a directory is a work tree or a bare repository.
pub(super) fn is_repository(path: &Path) -> bool {
    let bare =
        path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir();
    bare || path.join(".git").symlink_metadata().is_ok()
}

/// The commit that `rev` names, or the one that is checked out.
pub(super) fn commit(repository: &Path, rev: Option<&str>) -> Result<Commit, Failure> {
    let temporary = tempfile::tempdir().map_err(|error| {
        Failure::new(format!("failed to make a temporary directory for git: {error}"))
    })?;
    let git = Git { home: temporary.path(), began: Instant::now() };
    let clone = temporary.path().join("clone.git");
    let mut address = OsStr::new("file://").to_owned();
    address.push(repository);
    let shown = Shown::new(&repository.to_string_lossy()).to_string();
    let failed = |what: String, done: &Done| {
        Failure::usage(format!("{what}: {}", done.words)).hint("nothing of it is installed")
    };
    let mut command = git.command();
    command.args(["clone", "--quiet", "--bare", "--no-local", "--template=", "--"]);
    let cloned = git.run(command.arg(&address).arg(&clone), 0)?;
    if !cloned.status.success() {
        return Err(failed(format!("git cannot read the repository `{shown}`"), &cloned));
    }

    let wanted = rev.unwrap_or("HEAD");
    let mut command = git.in_clone(&clone);
    command.args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
    let parsed = git.run(command.arg(format!("{wanted}^{{commit}}")), 1 << 10)?;
    let id = parsed.text().trim().to_owned();
    if !parsed.status.success() || id.is_empty() {
        let wanted = Shown::clipped(wanted, 80);
        return Err(Failure::usage(format!("`{shown}` has no commit `{wanted}`"))
            .hint("give a branch, a tag or a commit with `--rev`"));
    }

    let mut command = git.in_clone(&clone);
    command.args(["archive", "--format=tar", &id]);
    let archived = git.run(&mut command, MAX_UNPACKED)?;
    if !archived.status.success() {
        return Err(failed(format!("git cannot give the files of `{id}`"), &archived));
    }
    Ok(Commit { id, archive: archived.output })
}

/// How git is started: from one directory that is ours and is removed afterwards.
struct Git<'a> {
    home: &'a Path,
    began: Instant,
}

/// What git did.
struct Done {
    status: ExitStatus,
    /// At its beginning.
    output: File,
    /// What it complained of; escaped.
    words: String,
}

impl Done {
    fn text(&self) -> String {
        let mut text = String::new();
        // What cannot be read is as good as nothing said.
        let _ = (&self.output).read_to_string(&mut text);
        text
    }
}

impl Git<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.env_clear().current_dir(self.home);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        for (name, value) in [
            ("GIT_ALLOW_PROTOCOL", "file"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("LC_ALL", "C"),
        ] {
            command.env(name, value);
        }
        command.env("HOME", self.home);
        for setting in CONFIG {
            command.args(["-c", setting]);
        }
        command
    }

    /// Git in the clone, wherever it would look for a repository otherwise.
    fn in_clone(&self, clone: &Path) -> Command {
        let mut command = self.command();
        command.arg("--git-dir").arg(clone);
        command
    }

    /// Runs git to its end. Of what it prints at most `limit` bytes are kept; more is an error.
    fn run(&self, command: &mut Command, limit: u64) -> Result<Done, Failure> {
        let failed = |error: io::Error| Failure::new(format!("failed to run git: {error}"));
        let mut words = tempfile::tempfile().map_err(failed)?;
        let mut output = tempfile::tempfile().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(words.try_clone().map_err(failed)?);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::new("the program `git` is not there")
                .hint("install git, or give a copy of the directory without `.git`, or an archive"),
            _ => failed(error),
        })?;
        let copied = self.copy(&mut child, &mut output, limit);
        let status = match copied {
            // Its output is closed, so it has ended or does so now.
            Ok(()) => child.wait(),
            Err(error) => Err(error),
        };
        if status.is_err() {
            // It is of no more use; both fail only where it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        let status = status.map_err(failed)?;
        output.seek(SeekFrom::Start(0)).map_err(failed)?;
        words.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut said = Vec::new();
        words.take(16 << 10).read_to_end(&mut said).map_err(failed)?;
        let said = String::from_utf8_lossy(&said);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Done { status, output, words: Shown::clipped(&said, MAX_WORDS).to_string() })
    }

    fn copy(&self, child: &mut Child, to: &mut File, limit: u64) -> io::Result<()> {
        let Some(mut from) = child.stdout.take() else { return Ok(()) };
        let (mut left, mut buffer) = (limit, vec![0; 64 << 10]);
        loop {
            self.wait_until_readable(&from)?;
            let read = from.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            left = left.checked_sub(read as u64).ok_or_else(|| {
                io::Error::other(format!("the commit holds more than {limit} bytes"))
            })?;
            to.write_all(buffer.get(..read).unwrap_or_default())?;
        }
    }

    fn left(&self) -> io::Result<Duration> {
        MAX_TIME
            .checked_sub(self.began.elapsed())
            .ok_or_else(|| io::Error::other(format!("it took more than {MAX_TIME:?}")))
    }

    #[cfg(unix)]
    fn wait_until_readable(&self, from: &impl std::os::fd::AsFd) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        use rustix::time::Timespec;
        loop {
            let left = self.left()?;
            let seconds = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
            let most = Timespec { tv_sec: seconds, tv_nsec: i64::from(left.subsec_nanos()) };
            match poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&most)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    #[cfg(not(unix))]
    fn wait_until_readable<T>(&self, _from: &T) -> io::Result<()> {
        self.left().map(drop)
    }
}
