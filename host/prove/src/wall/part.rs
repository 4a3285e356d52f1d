//! The parent process: sets up the stage, has a child make each attack, and checks the effects.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use belljar_work::{OPERATOR, WorkKind};

use anyhow::{Context as _, Result};
use async_trait::async_trait;

use super::acts::{ControlProof, WallAct, list_acts};
use super::stage::{TLS, VictimAnswer, WallStage};
use super::told::{attacker_answer, control_failure};
use crate::attack::{AttackKind, AttackReport};
use crate::part::ProvePart;

/// The time after which a child that still runs counts as not stopped.
const PATIENCE: Duration = Duration::from_secs(20);

/// The part of `belljar prove` with the attacks on the OS sandbox.
pub struct WallPart {
    program: PathBuf,
    child: Vec<OsString>,
    victim: Vec<OsString>,
    /// The stage of all attacks. After an attack that was not stopped, the next attack gets a new stage.
    stage: Arc<Mutex<Option<WallStage>>>,
}

impl WallPart {
    /// Prepares the attacks. `program` has to call [`super::run_attack`] for the arguments `child... ID TARGETS`,
    /// and [`super::be_victim`] for `victim...`.
    pub fn new(program: PathBuf, child: Vec<OsString>, victim: Vec<OsString>) -> Self {
        Self { program, child, victim, stage: Arc::default() }
    }

    /// Copies the fields for the thread on which an attack is made.
    fn attack_setting(&self) -> AttackSetting {
        let Self { program, child, victim, stage } = self;
        AttackSetting {
            program: program.clone(),
            child: child.clone(),
            victim: victim.clone(),
            stage: Arc::clone(stage),
        }
    }
}

#[async_trait]
impl ProvePart for WallPart {
    fn attack_ids(&self) -> Vec<&'static str> {
        list_acts().map(|act| act.id).collect()
    }

    async fn prepare(&self) -> Result<()> {
        let setting = self.attack_setting();
        belljar_work::run_job(&ATTACK, OPERATOR, move |_| setting.ensure_stage()).await?
    }

    /// Makes the attack with the given name on a thread for blocking work.
    async fn make_attack(&self, id: &'static str) -> AttackReport {
        let Some(act) = list_acts().find(|act| act.id == id) else {
            return AttackReport::for_unmade(id, AttackKind::Wall, "there is no such attack");
        };
        let setting = self.attack_setting();
        let made =
            belljar_work::run_job(&ATTACK, OPERATOR, move |_| setting.make_report(act)).await;
        made.unwrap_or_else(|error| {
            AttackReport::for_unmade(id, AttackKind::Wall, error.to_string())
        })
    }
}

const ATTACK: WorkKind =
    WorkKind { name: "an attack on the OS sandbox", time: Duration::from_secs(600) };

/// Copies of the fields of [`WallPart`], for the thread on which an attack is made.
struct AttackSetting {
    program: PathBuf,
    child: Vec<OsString>,
    victim: Vec<OsString>,
    stage: Arc<Mutex<Option<WallStage>>>,
}

impl AttackSetting {
    /// Builds the stage if there is none.
    fn ensure_stage(&self) -> Result<()> {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if stage.is_none() {
            *stage = Some(self.new_stage()?);
        }
        Ok(())
    }

    fn new_stage(&self) -> Result<WallStage> {
        let mut victim = Command::new(&self.program);
        victim.args(&self.victim);
        WallStage::new(victim).context("the stage cannot be set")
    }

    /// Makes and judges one attack; after one that was not stopped, the stage is dropped.
    fn make_report(&self, act: &'static WallAct) -> AttackReport {
        let begun = Instant::now();
        let mut report = AttackReport::for_unmade(act.id, AttackKind::Wall, "");
        report.stopped_by = act.by.text;
        match self.ensure_stage().and_then(|()| self.judge_act(act)) {
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
            // The effects of an attack that was not stopped must not be blamed on the next one.
            *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        report
    }

    /// Has a child make one attack, and compares the stage and the victim with their state before.
    fn judge_act(&self, act: &WallAct) -> Result<(Result<String, String>, Vec<VictimAnswer>)> {
        let mut held = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = held.as_mut().context("there is no stage")?;
        let (picture, before) = (stage.take_picture()?, stage.ask_victim()?);
        let output = self.run_child(act, stage)?;
        let mut faults = Vec::new();
        let told = match attacker_answer(act, &output)
            .and_then(|told| self.prove_by_control(act, &told))
        {
            Ok(told) => told,
            Err(fault) => {
                faults.push(fault);
                String::new()
            }
        };
        let mut answers = vec![before];
        match stage.ask_victim() {
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
        faults.extend(stage.find_callers().map(|caller| format!("it reached {caller}")));
        faults.extend(list_differences(&picture, &stage.take_picture()?));
        Ok((if faults.is_empty() { Ok(told) } else { Err(faults.join("; ")) }, answers))
    }

    /// The answer to the attacker, with the proof that the wall was the reason.
    fn prove_by_control(&self, act: &WallAct, told: &str) -> Result<String, String> {
        let failed = match act.control {
            ControlProof::Ends => return Ok(format!("{told}, as no error does")),
            ControlProof::Harms(why) => {
                return Ok(format!("{told}; not made without the wall: {why}"));
            }
            ControlProof::Works | ControlProof::May(_) | ControlProof::Beside(_) => self
                .control_fails(act)
                .map_err(|error| format!("what shows the wall could not be made: {error:#}"))?,
        };
        match (failed, act.control) {
            (None, ControlProof::Beside(_)) => Ok(format!("{told}; what is not refused works")),
            (None, _) => Ok(format!("{told}; without the wall it works")),
            (Some(why), ControlProof::May(unless)) => {
                Ok(format!("{told}; without the wall it fails here: {why} ({unless})"))
            }
            (Some(why), ControlProof::Beside(_)) => {
                Err(format!("nothing else works either: {why}"))
            }
            (Some(why), _) => {
                Err(format!("it fails without the wall too, so proves nothing: {why}"))
            }
        }
    }

    /// Makes the control of an attack in a child on a stage of its own: the same call without a wall, or an
    /// allowed call behind one. Returns the reason if the control has no effect.
    fn control_fails(&self, act: &WallAct) -> Result<Option<String>> {
        let mut stage = self.new_stage()?;
        stage.targets.control = true;
        let (picture, before) = (stage.take_picture()?, stage.ask_victim()?);
        let output = self.run_child(act, &stage)?;
        let Some(why) = control_failure(&output) else { return Ok(None) };
        let unharmed = stage.ask_victim().is_ok_and(|after| after.text == before.text);
        let untouched = stage.find_callers().is_none() && stage.take_picture()? == picture;
        Ok((unharmed && untouched).then_some(why))
    }

    /// Starts the child for one attack, with the stage's directories as its surroundings, and waits for its
    /// end.
    fn run_child(&self, act: &WallAct, stage: &WallStage) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.child)
            .arg(act.id)
            .arg(serde_json::to_string(&stage.targets)?)
            .current_dir(stage.targets.path_at("workspace"))
            .env("BELLJAR_HOME", stage.targets.home_path())
            .env("SSL_CERT_DIR", stage.targets.path_at(TLS))
            .env_remove("BELLJAR_CACHE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn()?;
        wait_for_end(child)
            .with_context(|| format!("it went on for {} seconds", PATIENCE.as_secs()))
    }
}

/// Waits until a child ends, and kills it if it takes too long.
fn wait_for_end(child: std::process::Child) -> Result<Output> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let patience = Timespec { tv_sec: PATIENCE.as_secs().try_into()?, tv_nsec: 0 };
    let mut waited = [PollFd::new(&process, PollFlags::IN)];
    // If a runtime waits for children of other attacks, their end interrupts this call by a signal.
    if rustix::io::retry_on_intr(|| poll(&mut waited, Some(&patience)))? == 0 {
        let _ = pidfd_send_signal(&process, Signal::KILL);
        let _ = child.wait_with_output();
        anyhow::bail!("it had to be ended");
    }
    Ok(child.wait_with_output()?)
}

/// The differences between two pictures of the stage, as texts.
fn list_differences<T: PartialEq>(
    before: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
) -> Vec<String> {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let new = after.keys().filter(|name| !before.contains_key(*name));
    let other = before.iter().filter(|(name, was)| after.get(*name).is_some_and(|is| is != *was));
    gone.map(|name| format!("`{name}` is gone"))
        .chain(new.map(|name| format!("`{name}` is new")))
        .chain(other.map(|(name, _)| format!("`{name}` has changed")))
        .collect()
}
