//! `kill -9` of whole processes that have to do with an overlay: of `belljar run` while its agent
//! writes, and of `belljar apply`. Nothing is half written, nothing acknowledged is lost, nothing is
//! there twice; a workspace is as it was or as the agent left it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use belljar_store::{Store, StoredSession};

/// Lines that a run writes: one by one outside of a worktree, inside, and outside again.
const LINES: usize = 6;

/// Files that an apply changes, and as many that it makes and removes.
const FILES: usize = 12;

const SETTINGS: &str = "[models.bench]\nkind = 'scripted'\nmodel = 'transcript.yaml'\n\
[roles]\nmain = 'bench'\n";

const AGENT: &str = "---\nname: tidy\ndescription: Tidies.\n\
tools: Bash, EnterWorktree, ExitWorktree\n---\nYou tidy.\n";

/// The notice that a call was cut off.
const UNKNOWN: &str = "it is not known how far";

/// The kills that were made, and what was found after them.
#[derive(Debug, Default)]
pub(crate) struct OverlayKills {
    /// Kills of runs.
    pub(crate) runs: usize,
    /// Of these, before anything was stored.
    pub(crate) early: usize,
    /// Calls that were cut off.
    pub(crate) interrupted: usize,
    /// Lines that were found.
    pub(crate) lines: usize,
    /// Kills of applies.
    pub(crate) applies: usize,
    /// Of these, the changes were applied all the same.
    pub(crate) applied: usize,
}

/// A home, and workspaces for it.
struct Place {
    binary: PathBuf,
    dir: tempfile::TempDir,
}

/// A program that is killed with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills so many runs and so many applies.
pub(crate) async fn run(
    binary: &Path,
    runs: usize,
    applies: usize,
) -> anyhow::Result<OverlayKills> {
    let mut kills = OverlayKills::default();
    kills_of_runs(binary, runs, &mut kills).await.context("a run that was killed")?;
    kills_of_applies(binary, applies, &mut kills).await.context("an apply that was killed")?;
    Ok(kills)
}

impl Place {
    fn new(binary: &Path, transcript: &str) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let home = dir.path().join("home");
        fs::create_dir_all(home.join("agents"))?;
        fs::write(home.join("belljar.toml"), SETTINGS)?;
        fs::write(home.join("transcript.yaml"), transcript)?;
        fs::write(home.join("agents/tidy.md"), AGENT)?;
        Ok(Self { binary: binary.to_owned(), dir })
    }

    fn workspace(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.dir.path().join(name);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    fn command(&self, workspace: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(args)
            .current_dir(workspace)
            .env("BELLJAR_HOME", self.dir.path().join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end, which has to be one of these.
    fn done(&self, workspace: &Path, args: &[&str], codes: &[i32]) -> anyhow::Result<Output> {
        let output = self.command(workspace, args).output()?;
        let code = output.status.code().unwrap_or(-1);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(codes.contains(&code), "`belljar {}` exits {code}: {said}", args.join(" "));
        Ok(output)
    }

    /// Starts a command and waits until it has begun with its work, or has ended.
    async fn begun(
        &self,
        workspace: &Path,
        args: &[&str],
        begun: &dyn Fn() -> bool,
    ) -> anyhow::Result<Running> {
        let mut command = self.command(workspace, args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running(command.spawn()?);
        while running.0.try_wait()?.is_none() && !begun() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(running)
    }

    /// How long a command takes in all, and how long once it has begun.
    async fn life(
        &self,
        workspace: &Path,
        args: &[&str],
        begun: &dyn Fn() -> bool,
    ) -> anyhow::Result<(Duration, Duration)> {
        let start = Instant::now();
        let mut running = self.begun(workspace, args, begun).await?;
        let begun = Instant::now();
        let ended = running.0.wait()?;
        ensure!(ended.success(), "`belljar {}` that is not killed: {ended}", args.join(" "));
        Ok((start.elapsed(), begun.elapsed()))
    }

    /// Kills a command: most times at a moment of its work, sometimes at any of its life.
    async fn killed(
        &self,
        workspace: &Path,
        args: &[&str],
        round: usize,
        (life, work): (Duration, Duration),
        begun: &dyn Fn() -> bool,
    ) -> anyhow::Result<()> {
        let anywhere = round % 4 == 3;
        let running = self.begun(workspace, args, &|| anywhere || begun()).await?;
        let life = if anywhere { life } else { work };
        tokio::time::sleep(life.mul_f64(part(round))).await;
        drop(running);
        Ok(())
    }

    /// The names below the directory of overlays: sessions, or what is in their journals.
    fn overlays(&self, depth: usize) -> Vec<PathBuf> {
        let mut found = vec![self.dir.path().join("home/sessions/store/belljar.overlays/local")];
        for _ in 0..depth {
            let below =
                found.iter().flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten());
            found = below.map(|entry| entry.path()).collect();
        }
        found
    }

    /// The session of a workspace, and how many calls of the shell it knows: those that made their
    /// effect, and all.
    async fn session(
        &self,
        workspace: &Path,
    ) -> anyhow::Result<Option<(StoredSession, usize, usize)>> {
        let path = self.dir.path().join("home/sessions/store/belljar.db");
        if !path.exists() {
            return Ok(None);
        }
        let store = Store::open(&path).await?;
        let shown = workspace.canonicalize()?.to_string_lossy().into_owned();
        let page = store.sessions_page(None, belljar_store::MAX_LISTED).await?;
        let found = page.into_iter().find(|session| session.workspace == shown);
        let (mut made, mut known) = (0, 0);
        if let Some(session) = &found {
            for stored in store.latest_receipts(&session.id, None, 10_000).await? {
                if stored.receipt.tool == "shell" {
                    known += 1;
                    let error = stored.receipt.body["error"].as_str().unwrap_or_default();
                    made += usize::from(!error.contains(UNKNOWN));
                }
            }
        }
        store.close().await;
        Ok(found.map(|session| (session, made, known)))
    }
}

/// A run that writes a line in each of its steps, two of them in a worktree.
fn transcript_of_lines() -> String {
    let mut turns = String::new();
    for line in 0..LINES {
        if line == 2 {
            turns.push_str("      - calls: [{name: EnterWorktree}]\n");
        }
        if line == 4 {
            turns.push_str("      - calls: [{name: ExitWorktree, arguments: {action: keep}}]\n");
        }
        let command = format!(
            "echo line {line} >> log.txt; echo copy {line} > copy-{line}.tmp; \
             mv copy-{line}.tmp copy-{line}.txt"
        );
        turns.push_str(&format!(
            "      - calls: [{{name: Bash, arguments: {{command: \"{command}\"}}}}]\n"
        ));
    }
    format!(
        "transcript: 1\neach_run: true\nagents:\n  - agent: tidy\n    turns:\n{turns}      - say: done\n"
    )
}

async fn kills_of_runs(
    binary: &Path,
    kills: usize,
    found: &mut OverlayKills,
) -> anyhow::Result<()> {
    let place = Place::new(binary, &transcript_of_lines())?;
    let task = ["--quiet", "run", "--agent", "tidy", "go"];
    let whole = place.workspace("whole")?;
    let life = place.life(&whole, &task, &|| !place.overlays(1).is_empty()).await?;
    let (_, made, _) = place.session(&whole).await?.context("a run that was not killed")?;
    ensure!(made == LINES, "{made} calls of a run that was not killed");
    for round in 0..kills {
        let workspace = place.workspace(&format!("run-{round}"))?;
        let sessions = place.overlays(1).len();
        let begun = || place.overlays(1).len() > sessions;
        place.killed(&workspace, &task, round, life, &begun).await?;
        found.runs += 1;
        ensure!(fs::read_dir(&workspace)?.next().is_none(), "the workspace was written");
        let Some((session, ..)) = place.session(&workspace).await? else {
            found.early += 1;
            continue;
        };
        let id = session.id.as_str();
        // What is there opens, whatever it is; a session without an overlay has no changes.
        place.done(&workspace, &["--quiet", "changes", id, "--json"], &[0, 2])?;
        place.done(&workspace, &["--quiet", "chat", "--resume", id], &[0])?;
        place.done(&workspace, &["--quiet", "apply", id, "--yes"], &[0])?;
        let (_, made, known) = place.session(&workspace).await?.context("its session is gone")?;
        found.interrupted += known - made;
        let log = fs::read_to_string(workspace.join("log.txt")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let all: Vec<String> = (0..LINES).map(|line| format!("line {line}")).collect();
        let mut left = all.iter();
        for line in &lines {
            ensure!(left.any(|next| next == line), "round {round}: `{line}` in {lines:?}");
        }
        ensure!(
            known == LINES && (made..=known).contains(&lines.len()),
            "round {round}: {lines:?}, where {made} of {known} calls were made for certain"
        );
        found.lines += lines.len();
        for (name, text) in files(&workspace)? {
            let whole = name == "log.txt"
                || (0..LINES).any(|line| {
                    // A call that was cut off may have left what it makes first.
                    let number = format!("copy-{line}");
                    let ready = name == format!("{number}.txt") && text == format!("copy {line}\n");
                    ready || (made < known && name == format!("{number}.tmp"))
                });
            ensure!(whole, "round {round}: `{name}` holds {text:?}");
        }
        fs::remove_dir_all(&workspace)?;
    }
    Ok(())
}

async fn kills_of_applies(
    binary: &Path,
    kills: usize,
    found: &mut OverlayKills,
) -> anyhow::Result<()> {
    let command = "for f in old-*.txt; do echo new > $f; done; rm gone-*.txt; mkdir -p deep/er; \
                   i=0; while [ $i -lt 12 ]; do echo made > deep/er/made-$i.txt; i=$((i+1)); done";
    let transcript = format!(
        "transcript: 1\neach_run: true\nagents:\n  - agent: tidy\n    turns:\n      \
         - calls: [{{name: Bash, arguments: {{command: \"{command}\"}}}}]\n      - say: done\n"
    );
    let place = Place::new(binary, &transcript)?;
    let workspace = place.workspace("work")?;
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    for number in 0..FILES {
        old.insert(format!("old-{number}.txt"), format!("old {number}\n"));
        old.insert(format!("gone-{number}.txt"), "gone\n".to_owned());
        new.insert(format!("old-{number}.txt"), "new\n".to_owned());
        new.insert(format!("deep/er/made-{number}.txt"), "made\n".to_owned());
    }
    for (name, text) in &old {
        fs::write(workspace.join(name), text)?;
    }
    place.done(&workspace, &["--quiet", "run", "--agent", "tidy", "go"], &[0])?;
    let apply = ["--quiet", "apply", "--yes"];
    // `SESSION/0/journal/...`: an apply writes down what it is about to do.
    let begun = |before: &[PathBuf]| place.overlays(4) != before;
    let journal = place.overlays(4);
    let life = place.life(&workspace, &apply, &|| begun(&journal)).await?;
    ensure!(files(&workspace)? == new, "an apply that was not killed");
    place.done(&workspace, &["--quiet", "undo"], &[0])?;
    ensure!(files(&workspace)? == old, "an undo that was not killed");
    for round in 0..kills {
        let journal = place.overlays(4);
        place.killed(&workspace, &apply, round, life, &|| begun(&journal)).await?;
        found.applies += 1;
        // The next command finishes it or takes it back.
        place.done(&workspace, &["--quiet", "changes", "--json"], &[0])?;
        let now = files(&workspace)?;
        ensure!(now == old || now == new, "round {round}: neither old nor new: {now:?}");
        if now == new {
            found.applied += 1;
            place.done(&workspace, &["--quiet", "undo"], &[0])?;
            ensure!(files(&workspace)? == old, "round {round}: not taken back");
        }
    }
    place.done(&workspace, &apply, &[0])?;
    ensure!(files(&workspace)? == new, "an apply after {kills} that were killed");
    Ok(())
}

/// A part of a life, between nothing and all of it: rounds spread over it evenly, in no order.
fn part(round: usize) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    (round as f64 * GOLDEN).fract()
}

/// All files of a workspace, by their paths.
fn files(workspace: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let (mut files, mut left) = (BTreeMap::new(), vec![workspace.to_owned()]);
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            let name = path.strip_prefix(workspace)?.to_string_lossy().into_owned();
            files.insert(name, fs::read_to_string(&path)?);
        }
    }
    Ok(files)
}
