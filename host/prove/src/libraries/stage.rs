//! Where an attack on libraries takes place: a home, a source, and what lies outside of both.

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

/// The content of every file that is nobody's to install.
pub(super) const CANARY: &str = "this is somebody else's and is not to be installed";

/// The library that is there before an attack.
pub(super) const HONEST: &str = "honest";

/// The name under which hostile sources are added.
pub(super) const HOSTILE: &str = "hostile";

/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(4);

/// Bytes of a file that its picture is made of. The rest of a larger one is its length.
const MAX_PICTURE: u64 = 1 << 20;

/// The beginning of every stage, made once.
pub(super) struct Template {
    program: PathBuf,
    dir: TempDir,
    git: bool,
}

/// One attack's own.
pub(super) struct Stage {
    program: PathBuf,
    cache: PathBuf,
    /// Removed with it.
    _dir: TempDir,
    root: PathBuf,
    seen: Mutex<Seen>,
    /// The picture of everything outside the home, taken when the source was ready.
    before: Mutex<Option<Picture>>,
    /// The honest library as it was.
    honest: Picture,
}

/// The measurements meanwhile.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The largest memory of a program that was attacked, in bytes.
    pub(super) peak: u64,
    /// How long each look at the honest library took.
    pub(super) calls: Vec<Duration>,
    wrong: Vec<String>,
}

/// How a program ended.
pub(super) struct Done {
    pub(super) code: Option<i32>,
    pub(super) said: String,
    pub(super) stdout: String,
}

type Picture = BTreeMap<PathBuf, String>;

pub(super) fn agent(name: &str, text: &str) -> String {
    format!("---\nname: {name}\ndescription: Reads.\ntools: Read\n---\n{text}\n")
}

impl Template {
    pub(super) async fn new(program: &Path) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir().context("failed to make a directory for the attacks")?;
        let git = std::process::Command::new("git")
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        let template = Self { program: program.to_owned(), dir, git };
        template.fill()?;
        let stage = template.stage()?;
        let source = template.dir.path().canonicalize()?.join("honest");
        let done = stage.run(&["agents", "add", text(&source)?, "--yes"]).await?;
        ensure!(done.code == Some(0), "the honest library is not installed: {}", done.said);
        stage.look().await;
        let seen = stage.seen();
        ensure!(seen.wrong.is_empty(), "{}", seen.wrong.join("; "));
        copy(&stage.path("home"), &template.dir.path().join("home"))?;
        Ok(template)
    }

    /// The sources that attacks begin with.
    fn fill(&self) -> anyhow::Result<()> {
        let root = self.dir.path();
        for name in ["home", "cache"] {
            fs::create_dir(root.join(name))?;
        }
        put(&root.join("honest/agents/reader.md"), agent("reader", "Read.").as_bytes())?;
        put(&root.join("outside/agents/stolen.md"), agent("stolen", CANARY).as_bytes())?;
        put(&root.join("outside/secret.md"), agent("secret", CANARY).as_bytes())?;
        put(&root.join("repository/agents/guest.md"), agent("guest", "Read.").as_bytes())?;
        if self.git {
            for name in ["outside", "repository"] {
                let at = root.join(name);
                git(&at, &["init", "--quiet", "--initial-branch=main"])?;
                git(&at, &["add", "."])?;
                git(&at, &["commit", "--quiet", "-m", "one"])?;
            }
        }
        Ok(())
    }

    pub(super) fn has_git(&self) -> bool {
        self.git
    }

    pub(super) fn stage(&self) -> anyhow::Result<Stage> {
        let dir = tempfile::tempdir().context("failed to make a directory for an attack")?;
        let root = dir.path().canonicalize()?;
        for name in ["home", "outside", "repository"] {
            copy(&self.dir.path().join(name), &root.join(name))?;
        }
        for name in ["tmp", "workspace"] {
            fs::create_dir_all(root.join(name))?;
        }
        let honest = picture(&root.join("home"), &[])?;
        Ok(Stage {
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

impl Stage {
    /// A path on the stage: `outside` is nobody's, `repository` a work tree with the agent
    /// `guest`, a git repository where git is there.
    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// Writes a file on the stage.
    pub(super) fn put(&self, below: &str, bytes: impl AsRef<[u8]>) -> std::io::Result<PathBuf> {
        let path = self.path(below);
        put(&path, bytes.as_ref())?;
        Ok(path)
    }

    /// Runs git in a directory of the stage, as the attacker does at home.
    pub(super) fn git(&self, at: &str, args: &[&str]) -> anyhow::Result<String> {
        git(&self.path(at), args)
    }

    /// As [`Self::git`], for a command without arguments that reads a file.
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
    pub(super) fn holds(&self, below: &str, text: &str) -> anyhow::Result<bool> {
        for entry in WalkDir::new(self.path(below)) {
            let entry = entry?;
            if entry.file_type().is_file() && holds(entry.path(), text)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds a source: it has to be refused, and the home to stay as it was.
    pub(super) async fn refuses(&self, source: &Path) -> Stopped {
        self.refuses_as(source, HOSTILE).await
    }

    /// As [`Self::refuses`], under a name of the attacker's.
    pub(super) async fn refuses_as(&self, source: &Path, name: &str) -> Stopped {
        let before = picture(&self.path("home"), &[])?;
        let source = text(source)?;
        let done = self.attack(&["agents", "add", source, "--yes", "--name", name]).await?;
        self.stayed(done, &before)
    }

    /// Adds a source: of it these agents have to be installed, and nothing else.
    pub(super) async fn takes(&self, source: &Path, agents: &[&str]) -> Stopped {
        let source = text(source)?;
        let done = self.attack(&["agents", "add", source, "--yes", "--name", HOSTILE]).await?;
        if done.code != Some(0) {
            return Err(Escape::new(format!("it ended with {:?}: {}", done.code, done.said)));
        }
        let installed = self.installed()?;
        if installed != agents {
            return Err(Escape::new(format!("installed are {installed:?}, not {agents:?}")));
        }
        Ok(Verdict::told(done.said))
    }

    /// Updates the hostile library, which has to be refused and to stay as it was.
    pub(super) async fn refuses_update(&self) -> Stopped {
        let before = picture(&self.path("home"), &[])?;
        let done = self.attack(&["agents", "update", HOSTILE, "--yes"]).await?;
        self.stayed(done, &before)
    }

    /// Runs a command that has to be refused, and the home to stay as it was.
    pub(super) async fn refuses_command(&self, args: &[&str]) -> Stopped {
        let before = picture(&self.path("home"), &[])?;
        let done = self.attack(args).await?;
        self.stayed(done, &before)
    }

    /// Runs an agent that has to be blocked: no session of it is kept, so nothing of it began.
    pub(super) async fn blocks(&self, args: &[&str]) -> Stopped {
        let done = self.attack(args).await?;
        let began = self.path("home/sessions").exists() && self.holds("home/sessions", "guest")?;
        match (done.code, began) {
            (Some(4), false) => Ok(Verdict::told(done.said)),
            (code, _) => Err(Escape::new(format!("it ended with {code:?}: {}", done.said))),
        }
    }

    /// Runs a command that has to end well.
    pub(super) async fn ends_well(&self, args: &[&str]) -> Stopped {
        let done = self.attack(args).await?;
        match done.code {
            Some(0) => Ok(Verdict::told(done.said)),
            code => Err(Escape::new(format!("it ended with {code:?}: {}", done.said))),
        }
    }

    /// Runs a command to its end. Its output must not hold this text.
    pub(super) async fn says_without(&self, args: &[&str], text: &str) -> Stopped {
        let done = self.attack(args).await?;
        match done.said.contains(text) {
            true => Err(Escape::new(format!("it says `{text}`: {}", done.said))),
            false => Ok(Verdict::told(done.said)),
        }
    }

    fn stayed(&self, done: Done, before: &Picture) -> Stopped {
        if !matches!(done.code, Some(1 | 2)) {
            return Err(Escape::new(format!("it ended with {:?}: {}", done.code, done.said)));
        }
        let mut after = picture(&self.path("home"), &[])?;
        // The folder of the libraries and what is held while they are changed.
        after.retain(|path, _| before.contains_key(path) || !path.ends_with(".busy"));
        match after == *before {
            true => Ok(Verdict::told(done.said)),
            false => {
                Err(Escape::new(format!("the home has changed: {}", difference(before, &after))))
            }
        }
    }

    /// The file names of the hostile library's agents, in order.
    fn installed(&self) -> anyhow::Result<Vec<String>> {
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

    /// Runs the program on what was made, with a look at the honest library meanwhile.
    async fn attack(&self, args: &[&str]) -> anyhow::Result<Done> {
        let before = self.outside()?;
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let (done, ()) = tokio::join!(self.run(args), self.look());
        done
    }

    /// The files on the stage beside the home.
    fn outside(&self) -> anyhow::Result<Picture> {
        picture(&self.root, &["home"])
    }

    /// Runs the program to its end, or to [`TIME_BOUND`].
    pub(super) async fn run(&self, args: &[&str]) -> anyhow::Result<Done> {
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
                    let now = id.and_then(peak).unwrap_or_default();
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
        Ok(Done { code: output.status.code(), said, stdout })
    }

    /// Looks at the honest library as a person does.
    pub(super) async fn look(&self) {
        let began = Instant::now();
        let wrong = match self.run(&["agents", "list", "--json"]).await {
            Ok(done) if done.stdout.contains("\"library/honest/reader\"") => None,
            Ok(done) => Some(format!("the honest library is not listed: {}", done.said)),
            Err(error) => Some(format!("the neighbour got no answer: {error:#}")),
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.calls.push(began.elapsed());
        seen.wrong.extend(wrong);
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The forbidden effects of an attack, whatever it was told.
    pub(super) async fn faults(&self, took: Duration) -> Vec<String> {
        self.look().await;
        let mut faults = self.seen().wrong;
        if took > 2 * TIME_BOUND {
            faults.push(format!("it took {} s", took.as_secs()));
        }
        let peak = self.seen().peak;
        if peak > MEMORY_BOUND {
            faults.push(format!("the program had {peak} bytes of memory"));
        }
        if let Err(error) = self.compare(&mut faults) {
            faults.push(format!("the stage cannot be looked at: {error:#}"));
        }
        faults
    }

    fn compare(&self, faults: &mut Vec<String>) -> anyhow::Result<()> {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let before = before.context("the program was not run")?;
        let after = self.outside()?;
        if after != before {
            let what = difference(&before, &after);
            faults.push(format!("something outside the home has changed: {what}"));
        }
        let home = picture(&self.path("home"), &[])?;
        for (path, was) in &self.honest {
            let is_honest = path.to_string_lossy().contains(&format!("libraries/{HONEST}-"));
            if is_honest && home.get(path) != Some(was) {
                faults.push(format!("`{}` of the honest library has changed", path.display()));
            }
        }
        for entry in WalkDir::new(self.path("home")) {
            let entry = entry?;
            if entry.file_type().is_file() && holds(entry.path(), CANARY)? {
                faults.push(format!("`{}` holds what was outside", entry.path().display()));
            }
        }
        Ok(())
    }
}

/// The most memory that a process has had, in bytes; `None` where the system does not say.
fn peak(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path on the stage is not UTF-8")
}

fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
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

fn holds(path: &Path, text: &str) -> anyhow::Result<bool> {
    let bytes = fs::read(path)?;
    Ok(bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

/// Kinds, lengths, links and contents of all that lies below a directory.
fn picture(root: &Path, without: &[&str]) -> anyhow::Result<Picture> {
    let mut picture = Picture::new();
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
fn difference(before: &Picture, after: &Picture) -> String {
    let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
    let path = before.keys().chain(after.keys()).find(differs);
    path.map_or_else(String::new, |path| format!("`{}`", path.display()))
}

fn git(at: &Path, args: &[&str]) -> anyhow::Result<String> {
    run_git(at, args, Stdio::null())
}

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
