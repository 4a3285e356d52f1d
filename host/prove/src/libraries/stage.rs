//! The surroundings of an attack on libraries: a home, a source, and files outside of both.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::process::Command;
use walkdir::WalkDir;

use super::{MEMORY_BOUND, TIME_BOUND};
use crate::attack::{Escape, Stopped, Verdict};

/// The content of every file that no attack may get installed.
pub(super) const CANARY: &str = "this is somebody else's and is not to be installed";

/// The name of the library that is installed before an attack.
pub(super) const HONEST: &str = "honest";

/// The name under which hostile sources are added.
pub(super) const HOSTILE: &str = "hostile";

/// The interval between two measurements of a running program's memory.
const LOOK: Duration = Duration::from_millis(4);

/// The most bytes of a file that are compared. Of a larger file, the rest is compared by its length only.
const MAX_PICTURE: u64 = 1 << 20;

/// The files with which every stage begins, made once.
pub(super) struct StageTemplate {
    program: PathBuf,
    dir: TempDir,
    git: bool,
}

/// The directories and the measurements of one attack.
pub(super) struct LibraryStage {
    program: PathBuf,
    cache: PathBuf,
    /// The temporary directory, removed when the stage is dropped.
    _dir: TempDir,
    root: PathBuf,
    seen: Mutex<LibraryMeasurement>,
    /// The entries of the stage outside the home, before the attack's latest command.
    before: Mutex<Option<DirectoryPicture>>,
    /// The entries of the home before the attack, with the honest library's among them.
    honest: DirectoryPicture,
}

/// The measurements during an attack.
#[derive(Debug, Clone, Default)]
pub(super) struct LibraryMeasurement {
    /// The largest memory that an attacked program has used, in bytes.
    pub(super) peak: u64,
    /// The durations of `belljar agents list`, which has to list the honest library during the attack.
    pub(super) calls: Vec<Duration>,
    wrong: Vec<String>,
}

/// The end of a program: its exit code and its output.
pub(super) struct FinishedProgram {
    pub(super) code: Option<i32>,
    pub(super) said: String,
    pub(super) stdout: String,
}

type DirectoryPicture = BTreeMap<PathBuf, String>;

pub(super) fn agent_file(name: &str, text: &str) -> String {
    format!("---\nname: {name}\ndescription: Reads.\ntools: Read\n---\n{text}\n")
}

impl StageTemplate {
    /// Makes the template: checks for git, writes the sources, and installs the honest library in its home.
    pub(super) async fn new(program: &Path) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir().context("failed to make a directory for the attacks")?;
        let git = std::process::Command::new("git")
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        let template = Self { program: program.to_owned(), dir, git };
        template.write_sources()?;
        let stage = template.new_stage()?;
        let source = template.dir.path().canonicalize()?.join("honest");
        let done = stage.run_program(&["agents", "add", path_text(&source)?, "--yes"]).await?;
        ensure!(done.code == Some(0), "the honest library is not installed: {}", done.said);
        stage.check_neighbour().await;
        let seen = stage.measurements();
        ensure!(seen.wrong.is_empty(), "{}", seen.wrong.join("; "));
        copy_tree(&stage.path("home"), &template.dir.path().join("home"))?;
        Ok(template)
    }

    /// Writes the sources that attacks begin with.
    fn write_sources(&self) -> anyhow::Result<()> {
        let root = self.dir.path();
        for name in ["home", "cache"] {
            fs::create_dir(root.join(name))?;
        }
        write_bytes(
            &root.join("honest/agents/reader.md"),
            agent_file("reader", "Read.").as_bytes(),
        )?;
        write_bytes(
            &root.join("outside/agents/stolen.md"),
            agent_file("stolen", CANARY).as_bytes(),
        )?;
        write_bytes(&root.join("outside/secret.md"), agent_file("secret", CANARY).as_bytes())?;
        write_bytes(
            &root.join("repository/agents/guest.md"),
            agent_file("guest", "Read.").as_bytes(),
        )?;
        if self.git {
            for name in ["outside", "repository"] {
                let at = root.join(name);
                git_without_input(&at, &["init", "--quiet", "--initial-branch=main"])?;
                git_without_input(&at, &["add", "."])?;
                git_without_input(&at, &["commit", "--quiet", "-m", "one"])?;
            }
        }
        Ok(())
    }

    pub(super) fn has_git(&self) -> bool {
        self.git
    }

    /// Copies the template to a new directory for one attack, and records the home's files.
    pub(super) fn new_stage(&self) -> anyhow::Result<LibraryStage> {
        let dir = tempfile::tempdir().context("failed to make a directory for an attack")?;
        let root = dir.path().canonicalize()?;
        for name in ["home", "outside", "repository"] {
            copy_tree(&self.dir.path().join(name), &root.join(name))?;
        }
        for name in ["tmp", "workspace"] {
            fs::create_dir_all(root.join(name))?;
        }
        let honest = take_picture(&root.join("home"), &[])?;
        Ok(LibraryStage {
            program: self.program.clone(),
            cache: self.dir.path().join("cache"),
            _dir: dir,
            root,
            seen: Mutex::default(),
            before: Mutex::default(),
            honest,
        })
    }
}

impl LibraryStage {
    /// A path on the stage, for example `outside`, which no attack may get installed, or `repository`, which
    /// holds the agent `guest` and is a git repository if git is installed.
    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// Writes a file on the stage.
    pub(super) fn write_file(
        &self,
        below: &str,
        bytes: impl AsRef<[u8]>,
    ) -> std::io::Result<PathBuf> {
        let path = self.path(below);
        write_bytes(&path, bytes.as_ref())?;
        Ok(path)
    }

    /// Runs git in a directory of the stage, to prepare an attacker's repository.
    pub(super) fn git_command(&self, at: &str, args: &[&str]) -> anyhow::Result<String> {
        git_without_input(&self.path(at), args)
    }

    /// Like [`Self::git_command`], for a command without arguments, with a file as its stdin.
    pub(super) fn git_reading(
        &self,
        at: &str,
        command: &str,
        file: &str,
    ) -> anyhow::Result<String> {
        let file = fs::File::open(self.path(file))?;
        run_git(&self.path(at), &[command], file.into())
    }

    /// Whether a file below a directory of the stage holds a text.
    pub(super) fn contains_text(&self, below: &str, text: &str) -> anyhow::Result<bool> {
        for entry in WalkDir::new(self.path(below)) {
            let entry = entry?;
            if entry.file_type().is_file() && file_contains(entry.path(), text)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds a source. Reports an escape unless the program refuses the source and leaves the home unchanged.
    pub(super) async fn expect_refused(&self, source: &Path) -> Stopped {
        self.expect_refused_as(source, HOSTILE).await
    }

    /// Like [`Self::expect_refused`], with a library name that the attacker chose.
    pub(super) async fn expect_refused_as(&self, source: &Path, name: &str) -> Stopped {
        let before = take_picture(&self.path("home"), &[])?;
        let source = path_text(source)?;
        let done = self.run_attack(&["agents", "add", source, "--yes", "--name", name]).await?;
        self.check_unchanged(done, &before)
    }

    /// Adds a source. Reports an escape unless exactly these agents of the source are installed.
    pub(super) async fn expect_installed(&self, source: &Path, agents: &[&str]) -> Stopped {
        let source = path_text(source)?;
        let done = self.run_attack(&["agents", "add", source, "--yes", "--name", HOSTILE]).await?;
        if done.code != Some(0) {
            return Err(Escape::new(format!("it ended with {:?}: {}", done.code, done.said)));
        }
        let installed = self.installed_agents()?;
        if installed != agents {
            return Err(Escape::new(format!("installed are {installed:?}, not {agents:?}")));
        }
        Ok(Verdict::with_words(done.said))
    }

    /// Updates the hostile library. Reports an escape unless the program refuses and leaves the home
    /// unchanged.
    pub(super) async fn expect_update_refused(&self) -> Stopped {
        let before = take_picture(&self.path("home"), &[])?;
        let done = self.run_attack(&["agents", "update", HOSTILE, "--yes"]).await?;
        self.check_unchanged(done, &before)
    }

    /// Runs a command. Reports an escape unless the program refuses and leaves the home unchanged.
    pub(super) async fn expect_command_refused(&self, args: &[&str]) -> Stopped {
        let before = take_picture(&self.path("home"), &[])?;
        let done = self.run_attack(args).await?;
        self.check_unchanged(done, &before)
    }

    /// Runs an agent. Reports an escape unless the agent is blocked before it begins: exit code 4, and no
    /// session is stored.
    pub(super) async fn expect_blocked(&self, args: &[&str]) -> Stopped {
        let done = self.run_attack(args).await?;
        let began =
            self.path("home/sessions").exists() && self.contains_text("home/sessions", "guest")?;
        match (done.code, began) {
            (Some(4), false) => Ok(Verdict::with_words(done.said)),
            (code, _) => Err(Escape::new(format!("it ended with {code:?}: {}", done.said))),
        }
    }

    /// Runs a command. Reports an escape unless the exit code is 0.
    pub(super) async fn expect_success(&self, args: &[&str]) -> Stopped {
        let done = self.run_attack(args).await?;
        match done.code {
            Some(0) => Ok(Verdict::with_words(done.said)),
            code => Err(Escape::new(format!("it ended with {code:?}: {}", done.said))),
        }
    }

    /// Runs a command to its end. Reports an escape if the output contains the text.
    pub(super) async fn expect_output_without(&self, args: &[&str], text: &str) -> Stopped {
        let done = self.run_attack(args).await?;
        match done.said.contains(text) {
            true => Err(Escape::new(format!("it says `{text}`: {}", done.said))),
            false => Ok(Verdict::with_words(done.said)),
        }
    }

    /// Checks that a command was refused, and that the home is as it was before.
    fn check_unchanged(&self, done: FinishedProgram, before: &DirectoryPicture) -> Stopped {
        if !matches!(done.code, Some(1 | 2)) {
            return Err(Escape::new(format!("it ended with {:?}: {}", done.code, done.said)));
        }
        let mut after = take_picture(&self.path("home"), &[])?;
        // The folder of the libraries, and the lock file that exists while they are changed, may be new.
        after.retain(|path, _| before.contains_key(path) || !path.ends_with(".busy"));
        match after == *before {
            true => Ok(Verdict::with_words(done.said)),
            false => Err(Escape::new(format!(
                "the home has changed: {}",
                first_difference(before, &after)
            ))),
        }
    }

    /// The file names of the hostile library's agents, in order.
    fn installed_agents(&self) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in WalkDir::new(self.path("home/libraries")).sort_by_file_name() {
            let entry = entry?;
            let is_hostile = entry
                .path()
                .components()
                .any(|part| part.as_os_str().to_string_lossy().starts_with(&format!("{HOSTILE}-")));
            if is_hostile && entry.file_type().is_file() {
                let name = entry.path().file_stem().unwrap_or_default();
                names.push(name.to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    /// Runs the attacked program with the given arguments, and checks at the same time that the honest
    /// library is still listed. Before that, records the files outside the home, with which the end of the
    /// attack is compared.
    async fn run_attack(&self, args: &[&str]) -> anyhow::Result<FinishedProgram> {
        let before = self.picture_outside()?;
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let (done, ()) = tokio::join!(self.run_program(args), self.check_neighbour());
        done
    }

    /// The entries of the stage outside the home.
    fn picture_outside(&self) -> anyhow::Result<DirectoryPicture> {
        take_picture(&self.root, &["home"])
    }

    /// Runs the program to its end, or to [`TIME_BOUND`].
    pub(super) async fn run_program(&self, args: &[&str]) -> anyhow::Result<FinishedProgram> {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .current_dir(self.path("workspace"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.root)
            .env("BELLJAR_HOME", self.path("home"))
            .env("BELLJAR_CACHE", &self.cache)
            .env("TMPDIR", self.path("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let child = command.spawn().context("failed to start the program")?;
        let id = child.id();
        let mut ended = std::pin::pin!(child.wait_with_output());
        let (mut ticks, began) = (tokio::time::interval(LOOK), Instant::now());
        let output = loop {
            tokio::select! {
                output = &mut ended => break output?,
                _ = ticks.tick() => {
                    let now = id.and_then(peak_bytes).unwrap_or_default();
                    let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.peak = seen.peak.max(now);
                    if began.elapsed() > TIME_BOUND {
                        bail!("it took more than {} s", TIME_BOUND.as_secs());
                    }
                }
            }
        };
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = format!("{}{stdout}", String::from_utf8_lossy(&output.stderr));
        Ok(FinishedProgram { code: output.status.code(), said, stdout })
    }

    /// Lists the agents as a person does. Records the duration, and a fault if the honest library is missing.
    pub(super) async fn check_neighbour(&self) {
        let began = Instant::now();
        let wrong = match self.run_program(&["agents", "list", "--json"]).await {
            Ok(done) if done.stdout.contains("\"library/honest/reader\"") => None,
            Ok(done) => Some(format!("the honest library is not listed: {}", done.said)),
            Err(error) => Some(format!("the neighbour got no answer: {error:#}")),
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.calls.push(began.elapsed());
        seen.wrong.extend(wrong);
    }

    pub(super) fn measurements(&self) -> LibraryMeasurement {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The forbidden effects of an attack on time, memory, the honest library and files outside the home. The
    /// program's own answer does not count.
    pub(super) async fn find_faults(&self, took: Duration) -> Vec<String> {
        self.check_neighbour().await;
        let mut faults = self.measurements().wrong;
        if took > 2 * TIME_BOUND {
            faults.push(format!("it took {} s", took.as_secs()));
        }
        let peak = self.measurements().peak;
        if peak > MEMORY_BOUND {
            faults.push(format!("the program had {peak} bytes of memory"));
        }
        if let Err(error) = self.compare_pictures(&mut faults) {
            faults.push(format!("the stage cannot be looked at: {error:#}"));
        }
        faults
    }

    /// Compares the files outside the home, and the honest library, with their state before the attack.
    fn compare_pictures(&self, faults: &mut Vec<String>) -> anyhow::Result<()> {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let before = before.context("the program was not run")?;
        let after = self.picture_outside()?;
        if after != before {
            let what = first_difference(&before, &after);
            faults.push(format!("something outside the home has changed: {what}"));
        }
        let home = take_picture(&self.path("home"), &[])?;
        for (path, was) in &self.honest {
            let is_honest = path.to_string_lossy().contains(&format!("libraries/{HONEST}-"));
            if is_honest && home.get(path) != Some(was) {
                faults.push(format!("`{}` of the honest library has changed", path.display()));
            }
        }
        for entry in WalkDir::new(self.path("home")) {
            let entry = entry?;
            if entry.file_type().is_file() && file_contains(entry.path(), CANARY)? {
                faults.push(format!("`{}` holds what was outside", entry.path().display()));
            }
        }
        Ok(())
    }
}

/// The largest memory that a process has used, in bytes; `None` = the system does not report it.
fn peak_bytes(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn path_text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path on the stage is not UTF-8")
}

/// Writes a file, and creates its directories.
fn write_bytes(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}

/// Copies a directory with everything in it.
fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in WalkDir::new(from) {
        let entry = entry?;
        let to = to.join(entry.path().strip_prefix(from)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&to)?;
        } else {
            fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}

fn file_contains(path: &Path, text: &str) -> anyhow::Result<bool> {
    let bytes = fs::read(path)?;
    Ok(bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

/// Records the mode, the length, and the link's target or the content's digest of each entry below a
/// directory.
fn take_picture(root: &Path, without: &[&str]) -> anyhow::Result<DirectoryPicture> {
    let mut picture = DirectoryPicture::new();
    let entries = WalkDir::new(root).into_iter().filter_entry(|entry| {
        entry.depth() != 1 || !without.iter().any(|name| entry.file_name() == *name)
    });
    for entry in entries {
        let entry = entry?;
        let meta = entry.metadata()?;
        let mut about = format!("{:o} {}", meta.mode(), if meta.is_dir() { 0 } else { meta.len() });
        if meta.is_symlink() {
            about.push_str(&format!(" {}", fs::read_link(entry.path())?.display()));
        } else if meta.is_file() {
            let mut bytes = Vec::new();
            fs::File::open(entry.path())?.take(MAX_PICTURE).read_to_end(&mut bytes)?;
            about.push_str(&format!(" {:x}", Sha256::digest(&bytes)));
        }
        picture.insert(entry.path().strip_prefix(root)?.to_owned(), about);
    }
    Ok(picture)
}

/// The first path at which two pictures differ.
fn first_difference(before: &DirectoryPicture, after: &DirectoryPicture) -> String {
    let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
    let path = before.keys().chain(after.keys()).find(differs);
    path.map_or_else(String::new, |path| format!("`{}`", path.display()))
}

fn git_without_input(at: &Path, args: &[&str]) -> anyhow::Result<String> {
    run_git(at, args, Stdio::null())
}

/// Runs git with settings that do not depend on the user's own.
fn run_git(at: &Path, args: &[&str], stdin: Stdio) -> anyhow::Result<String> {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
        .args(["-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"])
        .args(args)
        .current_dir(at)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(stdin)
        .output()
        .context("failed to run git")?;
    let words = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "git {}: {words}", args.join(" "));
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
