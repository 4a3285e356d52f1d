//! One commit of a git repository, as an archive.
//!
//! Git runs programs from a repository's own configuration (for example file system monitors, filters,
//! hooks), and takes objects from any named place. So git never sees a stranger's repository: [`repository`]
//! copies its objects and the names of its commits. `upload-pack` serves that copy to a bare clone, in which
//! git has computed the name of every object itself, and the commit's files come from there.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use belljar_policy::ShownText;
use rustix::process::{Pid, Signal, kill_process_group};

use super::archive::MAX_UNPACKED;
use super::folder::WorkDeadline;
use super::repository;
use crate::setup::exit::Failure;

/// How long git may take for one step. A repository with a long history is cloned in a minute.
const MAX_TIME: Duration = Duration::from_secs(300);

/// Characters of git's own words that are shown.
const MAX_WORDS: usize = 400;

/// Settings for git before its command.
const CONFIG: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "submodule.recurse=false",
    "core.bigFileThreshold=16m",
    "core.packedGitLimit=256m",
    "core.packedGitWindowSize=32m",
    "pack.threads=1",
];

/// Attributes with which `git archive` changes a file's text.
const AS_COMMITTED: &str =
    "-export-subst -filter -ident -text -eol -crlf -working-tree-encoding -diff";

/// Bounds for git and its children before the start: address space (three times the need of the largest
/// honest repository), the size of a written file, no core dump. On a system without one of the bounds, the
/// others hold.
const BOUNDED: &str = "ulimit -c 0; ulimit -v 3145728 2>/dev/null; ulimit -f 8388608 2>/dev/null; \
    exec git \"$@\"";

/// The status that the shell ends with where there is no such program.
const NO_PROGRAM: i32 = 127;

/// A complete commit.
pub(crate) struct GitCommit {
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

/// The commit named by `rev`, or the checked-out one.
pub(super) fn read_commit(repository: &Path, rev: Option<&str>) -> Result<GitCommit, Failure> {
    let temporary = tempfile::tempdir().map_err(|error| {
        Failure::new(format!("failed to make a temporary directory for git: {error}"))
    })?;
    let git = GitRunner { home: temporary.path(), until: WorkDeadline::after_limit(MAX_TIME) };
    let (copy, clone) = (temporary.path().join("copy.git"), temporary.path().join("clone.git"));
    let shown = ShownText::new(&repository.to_string_lossy()).to_string();
    let failed = |what: String, done: &GitOutput| {
        Failure::usage(format!("{what}: {}", done.words)).with_hint("nothing of it is installed")
    };
    repository::copy_repository(repository, &copy, git.until).map_err(|unfit| {
        Failure::usage(format!("the repository `{shown}` {}", unfit.why)).with_hint(unfit.hint)
    })?;
    let mut command = git.base_command();
    command.args(["clone", "--quiet", "--bare", "--no-local", "--template=", "--"]);
    let cloned = git.run_command(command.arg(&copy).arg(&clone), 0)?;
    if !cloned.status.success() {
        return Err(failed(format!("git cannot read the repository `{shown}`"), &cloned));
    }

    let id = git.resolve_id(&clone, rev.unwrap_or("HEAD"), &shown)?;
    override_attributes(&clone)
        .map_err(|error| Failure::new(format!("failed to prepare the clone for git: {error}")))?;
    let mut command = git.command_in_clone(&clone);
    command.args(["archive", "--format=tar", &id]);
    let archived = git.run_command(&mut command, MAX_UNPACKED)?;
    if !archived.status.success() {
        return Err(failed(format!("git cannot give the files of `{id}`"), &archived));
    }
    Ok(GitCommit { id, archive: archived.output })
}

/// Makes git return files as committed: attributes in the commit would change their text. The clone's own
/// attributes have precedence.
fn override_attributes(clone: &Path) -> io::Result<()> {
    let folder = clone.join("info");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("attributes"), format!("* {AS_COMMITTED}\n"))
}

/// The environment of git: one directory of ours, removed afterwards.
struct GitRunner<'a> {
    home: &'a Path,
    until: WorkDeadline,
}

/// The result of a git command.
struct GitOutput {
    status: ExitStatus,
    /// At its beginning.
    output: File,
    /// The complaints of git; escaped.
    words: String,
}

impl GitOutput {
    fn output_text(&self) -> String {
        let mut text = String::new();
        // What cannot be read is as good as nothing said.
        let _ = (&self.output).read_to_string(&mut text);
        text
    }
}

impl GitRunner<'_> {
    fn base_command(&self) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", BOUNDED, "git"]).env_clear().current_dir(self.home);
        // A separate process group, so that git's children end with it.
        command.process_group(0);
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

    /// A git command for the repository `clone`, whatever repository git would find by itself.
    fn command_in_clone(&self, clone: &Path) -> Command {
        let mut command = self.base_command();
        command.arg("--git-dir").arg(clone);
        command
    }

    /// The id of the commit that `wanted` names, for example a branch; `shown` = the source, for the error.
    fn resolve_id(&self, clone: &Path, wanted: &str, shown: &str) -> Result<String, Failure> {
        let mut command = self.command_in_clone(clone);
        command.args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
        let parsed = self.run_command(command.arg(format!("{wanted}^{{commit}}")), 1 << 10)?;
        let id = parsed.output_text().trim().to_owned();
        if !parsed.status.success() || id.is_empty() {
            let wanted = ShownText::clip_line(wanted, 80);
            return Err(Failure::usage(format!("`{shown}` has no commit `{wanted}`"))
                .with_hint("give a branch, a tag or a commit with `--rev`"));
        }
        Ok(id)
    }

    /// Runs git to its end. At most `limit` bytes of output are kept; more is an error.
    fn run_command(&self, command: &mut Command, limit: u64) -> Result<GitOutput, Failure> {
        let failed = |error: io::Error| Failure::new(format!("failed to run git: {error}"));
        let mut words = tempfile::tempfile().map_err(failed)?;
        let mut output = tempfile::tempfile().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(words.try_clone().map_err(failed)?);
        let mut child = command.spawn().map_err(failed)?;
        let copied = self.copy_output(&mut child, &mut output, limit);
        let status = match copied {
            // The output is closed, so git has ended or ends now.
            Ok(()) => child.wait(),
            Err(error) => Err(error),
        };
        if status.is_err() {
            // No longer needed; both calls fail only if git has ended.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
        }
        let status = status.map_err(failed)?;
        if status.code() == Some(NO_PROGRAM) {
            return Err(Failure::new("the program `git` is not there").with_hint(
                "install git, or give a copy of the directory without `.git`, or an archive",
            ));
        }
        output.seek(SeekFrom::Start(0)).map_err(failed)?;
        words.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut said = Vec::new();
        words.take(16 << 10).read_to_end(&mut said).map_err(failed)?;
        let said = String::from_utf8_lossy(&said);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(GitOutput { status, output, words: ShownText::clip_line(&said, MAX_WORDS).to_string() })
    }

    fn copy_output(&self, child: &mut Child, to: &mut File, limit: u64) -> io::Result<()> {
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

    fn wait_until_readable(&self, from: &impl std::os::fd::AsFd) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        use rustix::time::Timespec;
        loop {
            let left = self.until.time_left()?;
            let seconds = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
            let most = Timespec { tv_sec: seconds, tv_nsec: i64::from(left.subsec_nanos()) };
            match poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&most)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
