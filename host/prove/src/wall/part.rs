//! The parent: sets the stage, has each attack made, and looks at the result.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::BufRead as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use async_trait::async_trait;

use super::acts::{Act, all};
use super::child::Line;
use super::stage::{Answer, Stage};
use crate::attack::{Kind, Report};
use crate::part::Part;

/// How long a child may take before it counts as not stopped.
const PATIENCE: Duration = Duration::from_secs(20);

/// Errors that say "refused". `EXDEV` is what landlock says of a move or a link.
const REFUSALS: [i32; 4] = [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::EXDEV];

/// Attacks on the OS sandbox.
pub struct WallPart {
    program: PathBuf,
    child: Vec<OsString>,
    victim: Vec<OsString>,
    /// One stage for all: an attack that changes it has failed, and it is set anew.
    stage: Arc<Mutex<Option<Stage>>>,
}

impl WallPart {
    /// `program child... ID TARGETS` is to call [`super::attack`], and `program victim...`
    /// [`super::be_victim`].
    pub fn new(program: PathBuf, child: Vec<OsString>, victim: Vec<OsString>) -> Self {
        Self { program, child, victim, stage: Arc::default() }
    }

    fn setting(&self) -> Setting {
        let Self { program, child, victim, stage } = self;
        Setting {
            program: program.clone(),
            child: child.clone(),
            victim: victim.clone(),
            stage: Arc::clone(stage),
        }
    }
}

#[async_trait]
impl Part for WallPart {
    fn ids(&self) -> Vec<&'static str> {
        all().map(|act| act.id).collect()
    }

    async fn prepare(&self) -> Result<()> {
        let setting = self.setting();
        tokio::task::spawn_blocking(move || setting.set()).await?
    }

    async fn make(&self, id: &'static str) -> Report {
        let Some(act) = all().find(|act| act.id == id) else {
            return Report::unmade(id, Kind::Wall, "there is no such attack");
        };
        let setting = self.setting();
        let made = tokio::task::spawn_blocking(move || setting.make(act)).await;
        made.unwrap_or_else(|error| Report::unmade(id, Kind::Wall, error.to_string()))
    }
}

/// What an attack is made with.
struct Setting {
    program: PathBuf,
    child: Vec<OsString>,
    victim: Vec<OsString>,
    stage: Arc<Mutex<Option<Stage>>>,
}

impl Setting {
    fn set(&self) -> Result<()> {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if stage.is_none() {
            let mut victim = Command::new(&self.program);
            victim.args(&self.victim);
            *stage = Some(Stage::new(victim).context("the stage cannot be set")?);
        }
        Ok(())
    }

    fn make(&self, act: &'static Act) -> Report {
        let begun = Instant::now();
        let mut report = Report::unmade(act.id, Kind::Wall, "");
        report.stopped_by = act.stopped_by;
        match self.set().and_then(|()| self.judge(act)) {
            Ok((result, answers)) => {
                report.result = result;
                let mut took: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
                took.sort();
                report.neighbour_calls = took.len();
                report.neighbour_median = took.get(took.len() / 2).copied().unwrap_or_default();
                report.neighbour_worst = took.last().copied().unwrap_or_default();
            }
            Err(error) => report.result = Err(format!("the attack could not be made: {error:#}")),
        }
        report.elapsed = begun.elapsed();
        if report.result.is_err() {
            // What it has left must not be taken for the next one's.
            *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        report
    }

    fn judge(&self, act: &Act) -> Result<(Result<String, String>, Vec<Answer>)> {
        let mut held = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = held.as_mut().context("there is no stage")?;
        let (picture, before) = (stage.picture()?, stage.ask()?);
        let output = self.run(act, stage)?;
        let mut faults = Vec::new();
        let told = match told(act, &output) {
            Ok(told) => told,
            Err(fault) => {
                faults.push(fault);
                String::new()
            }
        };
        let mut answers = vec![before];
        match stage.ask() {
            Ok(after) => {
                let same = answers.iter().all(|answer| answer.text == after.text);
                let was = answers.first().map(|answer| answer.text.trim().to_owned());
                if !same {
                    faults.push(format!(
                        "a process outside is {} and was {was:?}",
                        after.text.trim()
                    ));
                }
                answers.push(after);
            }
            Err(error) => faults.push(format!("{error:#}")),
        }
        faults.extend(stage.callers().map(|caller| format!("it reached {caller}")));
        faults.extend(changed(&picture, &stage.picture()?));
        Ok((if faults.is_empty() { Ok(told) } else { Err(faults.join("; ")) }, answers))
    }

    fn run(&self, act: &Act, stage: &Stage) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.child)
            .arg(act.id)
            .arg(serde_json::to_string(&stage.targets)?)
            .current_dir(stage.targets.at("workspace"))
            .env("BELLJAR_HOME", stage.targets.home())
            .env_remove("BELLJAR_CACHE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn()?;
        ended(child).with_context(|| format!("it went on for {} seconds", PATIENCE.as_secs()))
    }
}

/// Waits for a child's end, and ends one that takes too long.
fn ended(child: std::process::Child) -> Result<Output> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let patience = Timespec { tv_sec: PATIENCE.as_secs().try_into()?, tv_nsec: 0 };
    let mut waited = [PollFd::new(&process, PollFlags::IN)];
    if poll(&mut waited, Some(&patience))? == 0 {
        let _ = pidfd_send_signal(&process, Signal::KILL);
        let _ = child.wait_with_output();
        anyhow::bail!("it had to be ended");
    }
    Ok(child.wait_with_output()?)
}

/// What the attacker was told; an error says what got through, or why nothing is proven.
fn told(act: &Act, output: &Output) -> Result<String, String> {
    let lines: Vec<Line> = output
        .stdout
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str(&line).ok())
        .collect();
    let mut lines = lines.into_iter();
    let Some(Line::Stands { landlock, seccomp, missing }) = lines.next() else {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "the child did not come as far as its wall: {}: {words}",
            output.status
        ));
    };
    if landlock.is_none_or(|version| version < act.landlock) || !seccomp {
        let has = landlock.map_or("none".to_owned(), |version| version.to_string());
        return Err(format!(
            "this kernel lacks what stops it: landlock {} is needed and it has {has}; {}",
            act.landlock,
            missing.join("; ")
        ));
    }
    let came = lines.next();
    let granted = lines.next();
    match (came, granted, output.status.signal()) {
        (None, None, Some(libc::SIGSYS)) => Ok("the kernel ended the process".to_owned()),
        (Some(Line::Refused(number)), Some(Line::Granted(None)), None) => {
            let error = std::io::Error::from_raw_os_error(number);
            match REFUSALS.contains(&number) {
                true => Ok(error.to_string()),
                false => Err(format!("it failed for another reason: {error}")),
            }
        }
        (Some(Line::Worked(gave)), ..) => Err(format!("it worked, and gave {gave}")),
        (Some(Line::Failed(why)), ..) => Err(format!("the attack could not be made: {why}")),
        (came, granted, _) => Err(format!("{came:?}, then {granted:?}, then {}", output.status)),
    }
}

/// Every difference between two pictures.
fn changed<T: PartialEq>(before: &BTreeMap<String, T>, after: &BTreeMap<String, T>) -> Vec<String> {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let new = after.keys().filter(|name| !before.contains_key(*name));
    let other = before.iter().filter(|(name, was)| after.get(*name).is_some_and(|is| is != *was));
    gone.map(|name| format!("`{name}` is gone"))
        .chain(new.map(|name| format!("`{name}` is new")))
        .chain(other.map(|(name, _)| format!("`{name}` has changed")))
        .collect()
}
