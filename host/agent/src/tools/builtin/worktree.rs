//! A worktree: a copy of an agent's overlays that the agent enters and leaves.
//!
//! The copy is a fork of the agent's layers, as for a subagent with `isolation: worktree` (`layers.rs`). It
//! is stored under the address of the call that entered it, so a resumed run finds it again. An agent
//! that ends inside a worktree leaves it automatically.

use std::path::PathBuf;
use std::time::Duration;

use belljar_overlay::{CopyEnding, LayersError, SessionLayers};
use belljar_policy::{MountAccess, ShownPath as _, ShownText};
use belljar_work::WorkKind;

use crate::agent_loop::current_jar::{CurrentJar, EnteredWorktree};
use crate::agent_loop::job::AgentJob;
use crate::agent_loop::ledger::Ledger;
use crate::limits::MAX_TOLD_CHANGES;
use crate::outcome::RunStatus;
use crate::tools::answer::CallAnswer;
use crate::tools::builtin::arguments::WorktreeCall;
use crate::tools::call::PlacedCall;
use crate::tools::executor::CallExecutor;

/// The work of copying and merging files, which may take long.
const WORKTREE: WorkKind =
    WorkKind { name: "making or ending a worktree", time: Duration::from_secs(600) };

/// The name of a worktree for which the model gave no name.
const UNNAMED: &str = "worktree";

const TWICE: &str = "you are in a worktree already: leave it before you enter another";
const OUTSIDE: &str = "there is no worktree to leave: nothing was done. What is changed in one is kept \
at the end of the turn in which it was entered";
const NONE: &str = "there is no overlay here that a worktree could be a copy of: nothing was done";
const FAILED: &str = "no worktree could be made: you work where you did";
const ENTERED: &str = "You work in a worktree now: a copy of your files as they are, in the same \
places. What you change, and what subagents that you start change, stays in it until you leave it. \
At the end of your turn it is kept.";

impl CallExecutor<'_> {
    /// The layers in which the agent and new subagents work now: the worktree's inside a worktree.
    pub(crate) fn current_layers(&self) -> Option<SessionLayers> {
        self.jar.current_layers(self.job)
    }

    /// Enters or leaves a worktree.
    pub(crate) async fn worktree(&self, call: PlacedCall<'_>, asked: &WorktreeCall) -> CallAnswer {
        let done = match asked {
            WorktreeCall::Enter { name } => self.enter_worktree(call, name.as_deref()).await,
            WorktreeCall::Keep { .. } => self.leave_worktree(true, false).await,
            WorktreeCall::Remove { discard_changes } => {
                self.leave_worktree(false, *discard_changes).await
            }
        };
        match done {
            Ok(content) => CallAnswer { content, is_error: false },
            Err(content) => CallAnswer { content, is_error: true },
        }
    }

    /// Moves the agent of a resumed run into or out of a worktree, as a call did before the process died.
    /// Files are not copied or merged again.
    pub(crate) async fn worktree_was(&self, call: PlacedCall<'_>, asked: &WorktreeCall) {
        let to = match asked {
            WorktreeCall::Enter { name } => self.current_layers().map(|layers| EnteredWorktree {
                is_new: false,
                ..self.plan_worktree(call, &layers, name.as_deref())
            }),
            WorktreeCall::Keep { .. } | WorktreeCall::Remove { .. } => {
                if let Some(worktree) = self.jar.worktree() {
                    // Ended subagents had begun to resume in the worktree: their copies are removed.
                    worktree.layers.discard_layers();
                }
                None
            }
        };
        self.jar.switch_worktree(self.job, self.ledger, to).await;
    }

    /// The worktree that the call enters; its files are not copied yet.
    fn plan_worktree(
        &self,
        call: PlacedCall<'_>,
        layers: &SessionLayers,
        name: Option<&str>,
    ) -> EnteredWorktree {
        let address = format!("{}/worktree-{}-{}", self.job.address, call.step, call.position);
        EnteredWorktree {
            layers: layers.fork_layers(&address),
            name: name.unwrap_or(UNNAMED).to_owned(),
            before: self.background.started_count(),
            is_new: true,
        }
    }

    /// Copies the overlays and moves the agent into the copy. Returns the text for the model.
    async fn enter_worktree(
        &self,
        call: PlacedCall<'_>,
        name: Option<&str>,
    ) -> Result<String, String> {
        if self.jar.worktree().is_some() {
            return Err(TWICE.to_owned());
        }
        let mounts = self.job.rights.mounts();
        let layers = self
            .current_layers()
            .filter(|_| mounts.iter().any(|mount| mount.access == MountAccess::Overlay));
        let layers = layers.ok_or_else(|| NONE.to_owned())?;
        let worktree = self.plan_worktree(call, &layers, name);
        let (own, rights) = (worktree.layers.clone(), self.job.rights.clone());
        // A separate thread copies the files, which may take long.
        let owner = self.job.shared.host.owner_of_layers();
        let made = belljar_work::run_job(&WORKTREE, &owner, move |stop| {
            own.open_overlays_until(&rights, stop).map(drop).map_err(|error| {
                own.discard_layers();
                error.to_string()
            })
        });
        if let Err(error) = made.await.unwrap_or_else(|error| Err(error.to_string())) {
            self.job.record_warning(self.ledger, format!("no worktree: {error}"));
            return Err(FAILED.to_owned());
        }
        self.jar.switch_worktree(self.job, self.ledger, Some(worktree)).await;
        let mut text = ENTERED.to_owned();
        for mount in mounts.iter().filter(|mount| mount.access == MountAccess::ReadWrite) {
            text.push_str(&format!(" `{}` is not copied: it is written directly.", mount.guest));
        }
        Ok(text)
    }

    /// Moves the agent out of its worktree, and merges the worktree's changes (`keep`) or drops them. Returns
    /// the text for the model.
    async fn leave_worktree(&self, keep: bool, discard: bool) -> Result<String, String> {
        let worktree = self.jar.worktree().ok_or_else(|| OUTSIDE.to_owned())?;
        let running = self.background.running_since(worktree.before);
        if !running.is_empty() {
            let ids: Vec<String> = running.iter().map(|id| format!("`{id}`")).collect();
            let ids = ids.join(", ");
            return Err(format!(
                "subagents still work in the worktree: {ids}. Wait for them first"
            ));
        }
        // The process died after the worktree had been left: only the answer is missing.
        if !worktree.is_new && !worktree.layers.is_made() {
            self.jar.switch_worktree(self.job, self.ledger, None).await;
            worktree.layers.discard_layers();
            return Ok(match keep {
                true => format!(
                    "The worktree is left. What was changed in it is kept; where both were changed, \
                     its version stands beside as `FILE.from-{}`.",
                    worktree.name
                ),
                false => "The worktree is left, and dropped.".to_owned(),
            });
        }
        if !keep && !discard {
            self.refuse_if_changed(&worktree).await?;
        }
        // From here on no store writes to the worktree's overlays.
        self.jar.close_jar(self.job, self.ledger).await;
        let told = end_worktree(self.job, &worktree, keep).await;
        let lines: Vec<String> = told.iter().filter_map(CopyEnding::line_for_worktree).collect();
        if told.iter().any(CopyEnding::is_failed) {
            return Err(format!("you are still in the worktree. {}", lines.join("\n")));
        }
        self.jar.switch_worktree(self.job, self.ledger, None).await;
        let text = if keep {
            "The worktree is left, and kept."
        } else {
            "The worktree is left, and dropped."
        };
        Ok([text.to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n"))
    }

    /// An error with the changed paths if the worktree has changes, so they are not dropped unseen.
    async fn refuse_if_changed(&self, worktree: &EnteredWorktree) -> Result<(), String> {
        let (layers, rights) = (worktree.layers.clone(), self.job.rights.clone());
        let owner = self.job.shared.host.owner_of_layers();
        let looked = belljar_work::run_job(&WORKTREE, &owner, move |stop| {
            layers.open_overlays_until(&rights, stop).map_err(|error| error.to_string())?;
            layers.changed_paths(MAX_TOLD_CHANGES)
        });
        let (named, more) = match looked.await.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(changed) => changed,
            Err(error) => {
                self.job.record_warning(
                    self.ledger,
                    format!("the worktree cannot be looked at: {error}"),
                );
                return Err("nothing was done: the worktree cannot be looked at".to_owned());
            }
        };
        if named.is_empty() {
            return Ok(());
        }
        let shown = |path: &PathBuf| format!("`{}`", path.to_shown());
        let mut list: Vec<String> = named.iter().map(shown).collect();
        if more > 0 {
            list.push(format!("and {more} more"));
        }
        Err(format!(
            "nothing was done: what is changed in the worktree would be lost: {}. `keep` keeps it; \
             with `discard_changes` it is dropped",
            list.join(", ")
        ))
    }
}

/// Leaves the worktree of an agent that ends; returns a note for the outcome. The changes of a top agent are
/// kept for a person's decision, those of a subagent if it concluded.
pub(crate) async fn end(
    jar: &CurrentJar,
    job: &AgentJob,
    ledger: &Ledger,
    status: RunStatus,
) -> Vec<String> {
    let Some(worktree) = jar.worktree() else { return Vec::new() };
    let concluded = match status {
        RunStatus::Completed | RunStatus::Partial => true,
        RunStatus::Failed | RunStatus::Cancelled => !job.depth.is_child(),
    };
    jar.switch_worktree(job, ledger, None).await;
    if !worktree.is_new && !worktree.layers.is_made() {
        worktree.layers.discard_layers();
        return Vec::new();
    }
    let told = end_worktree(job, &worktree, concluded).await;
    let name = ShownText::clip_line(&worktree.name, 64);
    let lines = told.iter().filter_map(CopyEnding::line_for_worktree);
    lines.map(|line| format!("worktree `{name}`: {line}")).collect()
}

/// Merges or drops the changes of a worktree on another thread.
async fn end_worktree(job: &AgentJob, worktree: &EnteredWorktree, keep: bool) -> Vec<CopyEnding> {
    let (worktree, rights) = (worktree.clone(), job.rights.clone());
    let owner = job.shared.host.owner_of_layers();
    // The merge is not interrupted, because a half-merged state would be useless.
    let done = belljar_work::run_job(&WORKTREE, &owner, move |_| {
        // A worktree from a dead process must be opened first.
        worktree.layers.open_overlays(&rights)?;
        Ok::<_, LayersError>(worktree.layers.end(keep, &worktree.name))
    });
    match done.await {
        Ok(Ok(told)) => told,
        Ok(Err(error)) => worktree_failure(&error),
        Err(error) => worktree_failure(&error),
    }
}

fn worktree_failure(error: &dyn std::error::Error) -> Vec<CopyEnding> {
    tracing::warn!(target: "belljar::agent", "a worktree could not be ended: {error}");
    vec![CopyEnding::failure()]
}
