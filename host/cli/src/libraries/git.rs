//! Runs git on copies: reads one commit of a repository on this machine.
//!
//! Git runs programs from a repository's own configuration (for example file system monitors, filters,
//! hooks), and takes objects from any named place. So git never sees a stranger's repository: [`repository`]
//! copies its objects and the names of its commits. From that copy, git writes the objects of one commit as a
//! pack, and makes a new repository of the pack, in which git has computed the name of every object itself.
//! The commit's files come from there.
//!
//! ```text
//! stranger's repository ──> copy ──> pack of one commit ──> new repository ──> list and content
//! ```

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use belljar_policy::ShownText;
use rustix::process::{Pid, Signal, kill_process_group};

use super::archive::MAX_UNPACKED;
use super::commit::{GitCommit, MAX_LISTING, NOT_CLONED, TOO_LONG};
use super::fetch::HelperProcess;
use super::folder::WorkDeadline;
use super::gather::CollectScope;
use super::repository;
use crate::setup::exit::Failure;

/// How long git may take for all steps. A repository with a long history is copied in a minute.
pub(super) const MAX_TIME: Duration = Duration::from_secs(300);

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
    "submodule.recurse=false",
    "core.bigFileThreshold=16m",
    "core.packedGitLimit=256m",
    "core.packedGitWindowSize=32m",
    "pack.threads=1",
];

/// Bounds for git and its children before the start: address space (three times the need of the largest
/// honest repository), the size of a written file, no core dump. On a system without one of the bounds, the
/// others hold.
const BOUNDED: &str = "ulimit -c 0; ulimit -v 3145728 2>/dev/null; ulimit -f 8388608 2>/dev/null; \
    exec git \"$@\"";

/// The status that the shell ends with where there is no such program.
const NO_PROGRAM: i32 = 127;

/// Whether a directory is a work tree or a bare repository.
pub(super) fn is_repository(path: &Path) -> bool {
    let bare =
        path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir();
    bare || path.join(".git").symlink_metadata().is_ok()
}

/// The repository around a folder, and the folder's path below the repository's root.
pub(super) fn find_around(path: &Path) -> Option<(&Path, &Path)> {
    let root = path.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok())?;
    Some((root, path.strip_prefix(root).ok()?))
}

/// The commit named by `rev`, or the checked-out one; of `folder` alone, if given.
pub(super) fn read_commit(
    repository: &Path,
    rev: Option<&str>,
    folder: Option<&str>,
    scope: CollectScope,
) -> Result<GitCommit, Failure> {
    let temporary = tempfile::tempdir().map_err(|error| {
        Failure::new(format!("failed to make a temporary directory for git: {error}"))
    })?;
    let git = GitRunner {
        home: temporary.path(),
        until: WorkDeadline::after_limit(MAX_TIME),
        program: GitProgram::Bounded,
    };
    let (copy, clean) = (temporary.path().join("copy.git"), temporary.path().join("clean.git"));
    let shown = ShownText::new(&repository.to_string_lossy()).to_string();
    let failed = |done: &GitOutput| {
        Failure::usage(format!("git cannot read the repository `{shown}`: {}", done.words))
            .with_hint("nothing of it is installed")
    };
    let has_commits =
        repository::copy_repository(repository, &copy, git.until).map_err(|unfit| {
            Failure::usage(format!("the repository `{shown}` {}", unfit.why)).with_hint(unfit.hint)
        })?;
    if !has_commits && rev.is_none() {
        return Err(empty_repository(&shown));
    }
    let id = git.resolve_id(&copy, rev.unwrap_or("HEAD"), &shown)?;

    // Objects of this commit alone, whatever its history; some are left out, each with a mark.
    let mut command = git.command_in(&copy);
    let longest = format!("--filter=blob:limit={}", scope.longest_file() + 1);
    command.args(["rev-list", "--objects", "--no-walk", "--no-object-names", &longest]);
    command.args(["--filter-print-omitted", "--missing=print", &id]);
    let listed = git.run_command(&mut command, None, MAX_LISTING)?;
    if !listed.status.success() {
        return Err(failed(&listed));
    }
    let ids = listed.output_text();
    let present = ids.lines().filter(|line| !line.starts_with(['~', '?']));
    let present = git.input_file(present)?;
    let too_long = ids.lines().filter_map(|line| line.strip_prefix('~')).map(str::to_owned);
    let too_long: BTreeSet<String> = too_long.collect();

    let mut command = git.command_in(&copy);
    command.args(["pack-objects", "--quiet", "--stdout"]);
    let packed = git.run_command(&mut command, Some(present), MAX_UNPACKED)?;
    if !packed.status.success() {
        return Err(failed(&packed));
    }
    git.init_repository(&clean, id.len() == 64)?;
    let mut command = git.command_in(&clean);
    command.args(["index-pack", "--stdin"]);
    let indexed = git.run_command(&mut command, Some(packed.output), 1 << 10)?;
    if !indexed.status.success() {
        return Err(failed(&indexed));
    }
    let mut commit = git.extract_commit(&clean, id, folder, &shown)?;
    (commit.too_long, commit.absent) = (too_long, NOT_CLONED);
    Ok(commit)
}

/// The refusal of a repository without commits.
pub(super) fn empty_repository(shown: &str) -> Failure {
    Failure::usage(format!("the repository `{shown}` is empty: it has no commit yet"))
        .with_hint("nothing of it is installed")
}

/// The environment of git: one directory of ours, removed afterwards.
pub(super) struct GitRunner<'a> {
    pub(super) home: &'a Path,
    pub(super) until: WorkDeadline,
    pub(super) program: GitProgram<'a>,
}

/// How git is started.
pub(super) enum GitProgram<'a> {
    /// With the bounds of a shell, and without any protocol: on copies of files of this machine.
    Bounded,
    /// With one host, through the gate of a helper process.
    Fetching {
        /// The gate, whose messages are read while git runs.
        gate: &'a RefCell<HelperProcess>,
        /// The command before git's own arguments.
        command: Vec<OsString>,
        /// The permitted protocol, for example `https`.
        protocol: &'static str,
    },
}

/// The result of a git command.
pub(super) struct GitOutput {
    pub(super) status: ExitStatus,
    /// At its beginning.
    pub(super) output: File,
    /// The complaints of git; escaped.
    pub(super) words: String,
}

impl GitOutput {
    /// All of the output, as text.
    pub(super) fn output_text(&self) -> String {
        let mut text = String::new();
        // What cannot be read is as good as nothing said.
        let _ = (&self.output).read_to_string(&mut text);
        text
    }
}

impl GitRunner<'_> {
    fn base_command(&self) -> Command {
        let (mut command, protocol) = match &self.program {
            GitProgram::Bounded => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", BOUNDED, "git"]);
                (command, "none")
            }
            GitProgram::Fetching { command: words, protocol, .. } => {
                let mut words = words.iter();
                let mut command = Command::new(words.next().map_or("git".into(), OsString::clone));
                command.args(words);
                (command, *protocol)
            }
        };
        command.env_clear().current_dir(self.home).env("GIT_ALLOW_PROTOCOL", protocol);
        // A separate process group, so that git's children end with it.
        command.process_group(0);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        for (name, value) in [
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

    /// A git command for the repository `place`, whatever repository git would find by itself.
    pub(super) fn command_in(&self, place: &Path) -> Command {
        let mut command = self.base_command();
        command.arg("--git-dir").arg(place);
        command
    }

    /// Makes an empty bare repository; `is_long` = its ids have 64 digits.
    pub(super) fn init_repository(&self, place: &Path, is_long: bool) -> Result<(), Failure> {
        let mut command = self.base_command();
        let format = if is_long { "--object-format=sha256" } else { "--object-format=sha1" };
        command.args(["init", "--quiet", "--bare", "--template=", format, "--"]);
        let made = self.run_command(command.arg(place), None, 1 << 10)?;
        match made.status.success() {
            true => Ok(()),
            false => Err(Failure::new(format!("git cannot make a repository: {}", made.words))),
        }
    }

    /// The list of a commit's files and the content of all objects of its repository.
    pub(super) fn extract_commit(
        &self,
        place: &Path,
        id: String,
        folder: Option<&str>,
        shown: &str,
    ) -> Result<GitCommit, Failure> {
        let listing = self.list_files(place, &id, folder, shown)?;
        let mut command = self.command_in(place);
        command.args(["cat-file", "--batch", "--batch-all-objects", "--unordered", "--buffer"]);
        let contents = self.run_command(&mut command, None, MAX_UNPACKED)?;
        if !contents.status.success() {
            let words = &contents.words;
            return Err(Failure::usage(format!("git cannot give the files of `{id}`: {words}"))
                .with_hint("nothing of it is installed"));
        }
        let (too_long, absent) = (BTreeSet::new(), TOO_LONG);
        Ok(GitCommit { id, listing, contents: contents.output, too_long, absent })
    }

    /// `git ls-tree` of a commit, or of a folder of it.
    pub(super) fn list_files(
        &self,
        place: &Path,
        id: &str,
        folder: Option<&str>,
        shown: &str,
    ) -> Result<File, Failure> {
        let tree = format!("{id}:{}", folder.unwrap_or_default());
        let mut command = self.command_in(place);
        command.args(["ls-tree", "-r", "-z", "--full-tree", &tree]);
        let listed = self.run_command(&mut command, None, MAX_LISTING)?;
        if listed.status.success() {
            return Ok(listed.output);
        }
        Err(match folder {
            Some(folder) => {
                let folder = ShownText::clip_line(folder, 200);
                Failure::usage(format!("there is no folder `{folder}` in `{shown}` at `{id}`"))
                    .with_hint("nothing of it is installed")
            }
            None => {
                Failure::usage(format!("git cannot list the files of `{id}`: {}", listed.words))
            }
        })
    }

    /// A file with these lines, for the input of git.
    pub(super) fn input_file<'l>(
        &self,
        lines: impl Iterator<Item = &'l str>,
    ) -> Result<File, Failure> {
        let write = || -> io::Result<File> {
            let mut file = io::BufWriter::new(tempfile::tempfile_in(self.home)?);
            for line in lines {
                writeln!(file, "{line}")?;
            }
            let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.seek(SeekFrom::Start(0))?;
            Ok(file)
        };
        write().map_err(|error| Failure::new(format!("failed to write for git: {error}")))
    }

    /// The id of the commit that `wanted` names, for example a branch; `shown` = the source, for the error.
    pub(super) fn resolve_id(
        &self,
        place: &Path,
        wanted: &str,
        shown: &str,
    ) -> Result<String, Failure> {
        let mut command = self.command_in(place);
        command.args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
        let parsed =
            self.run_command(command.arg(format!("{wanted}^{{commit}}")), None, 1 << 10)?;
        let id = parsed.output_text().trim().to_owned();
        if !parsed.status.success() || id.is_empty() {
            let wanted = ShownText::clip_line(wanted, 80);
            return Err(Failure::usage(format!("`{shown}` has no commit `{wanted}`"))
                .with_hint("give a branch, a tag or a commit with `--rev`"));
        }
        Ok(id)
    }

    /// Runs git to its end with this input. At most `limit` bytes of output are kept; more is an error.
    pub(super) fn run_command(
        &self,
        command: &mut Command,
        input: Option<File>,
        limit: u64,
    ) -> Result<GitOutput, Failure> {
        let failed = |error: io::Error| Failure::new(format!("failed to run git: {error}"));
        let mut words = tempfile::tempfile().map_err(failed)?;
        let mut output = tempfile::tempfile().map_err(failed)?;
        command.stdin(input.map_or_else(Stdio::null, Stdio::from)).stdout(Stdio::piped());
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

    /// Waits for output of git; meanwhile reads the messages of the gate.
    fn wait_until_readable(&self, from: &impl std::os::fd::AsFd) -> io::Result<()> {
        use std::os::fd::AsFd as _;

        use rustix::event::{PollFd, PollFlags, poll};
        use rustix::time::Timespec;
        loop {
            let left = self.until.time_left()?;
            let seconds = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
            let most = Timespec { tv_sec: seconds, tv_nsec: i64::from(left.subsec_nanos()) };
            let ready = match &self.program {
                GitProgram::Bounded => poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&most))
                    .map(|found| found > 0),
                GitProgram::Fetching { gate, .. } => {
                    let mut gate = gate.borrow_mut();
                    let (found, heard) = {
                        let gate = gate.as_fd();
                        let mut fds = [
                            PollFd::new(from, PollFlags::IN),
                            PollFd::from_borrowed_fd(gate, PollFlags::IN),
                        ];
                        let found = poll(&mut fds, Some(&most));
                        (found.map(|_| !fds[0].revents().is_empty()), !fds[1].revents().is_empty())
                    };
                    if heard {
                        gate.hear_messages()?;
                    }
                    found
                }
            };
            match ready {
                Ok(false) | Err(rustix::io::Errno::INTR) => {}
                Ok(true) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
