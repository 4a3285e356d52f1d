//! Texts about the end of copied layers.

use crate::{MergeConflict, MergeResult};
use belljar_policy::{GuestPath, ShownPath as _};

/// The ending of a copied layer.
#[derive(Debug)]
pub struct CopyEnding {
    pub(super) guest: GuestPath,
    pub(super) ended: CopyResult,
}

#[derive(Debug)]
pub(super) enum CopyResult {
    Merged(Box<MergeResult>),
    Dropped { changed: bool },
    Failed,
}

impl CopyEnding {
    /// The text of layers that could not be opened.
    pub fn failure() -> Self {
        Self { guest: GuestPath::workspace(), ended: CopyResult::Failed }
    }

    /// Whether the layer could be neither merged nor dropped.
    pub fn is_failed(&self) -> bool {
        matches!(self.ended, CopyResult::Failed)
    }

    /// A line for the parent of the layers' subagent.
    pub fn line_for_parent(&self) -> Option<String> {
        let guest = &self.guest;
        match &self.ended {
            CopyResult::Merged(merged) if merged.changed == 0 && merged.conflicts.is_empty() => {
                None
            }
            CopyResult::Merged(merged) => {
                let changed = merged.changed;
                let stays =
                    format_conflicts(merged, "both of you changed, and yours stays", "its version");
                Some(format!("{guest}: {changed} of its changes are yours now{stays}"))
            }
            CopyResult::Dropped { changed } => changed.then(|| {
                format!("{guest}: it did not conclude: what it changed there was dropped")
            }),
            CopyResult::Failed => {
                Some(format!("{guest}: what it changed there could not be merged"))
            }
        }
    }

    /// A line for the agent of the worktree.
    pub fn line_for_worktree(&self) -> Option<String> {
        let guest = &self.guest;
        match &self.ended {
            CopyResult::Merged(merged) if merged.changed == 0 && merged.conflicts.is_empty() => {
                Some(format!("{guest}: nothing was changed in it"))
            }
            CopyResult::Merged(merged) => {
                let changed = merged.changed;
                let both = "both it and your files changed, and your files stay as they are";
                let stays = format_conflicts(merged, both, "the worktree's version");
                Some(format!("{guest}: {changed} of its changes are in your files now{stays}"))
            }
            CopyResult::Dropped { changed } => {
                changed.then(|| format!("{guest}: what was changed in it was dropped"))
            }
            CopyResult::Failed => Some(format!("{guest}: it could not be ended, and is as it was")),
        }
    }
}

/// The lines about files that both sides changed, for the model and the person.
fn format_conflicts(merged: &MergeResult, both: &str, version: &str) -> String {
    let MergeResult { conflicts, more, .. } = merged;
    if conflicts.is_empty() {
        return String::new();
    }
    let told = |MergeConflict { path, beside }: &MergeConflict| match beside {
        Some(beside) => format!("`{}` ({version} is `{}`)", path.to_shown(), beside.to_shown()),
        None => format!("`{}`", path.to_shown()),
    };
    let named: Vec<String> = conflicts.iter().map(told).collect();
    let further = if *more > 0 { format!(", and {more} more") } else { String::new() };
    format!("; {both}: {}{further}", named.join(", "))
}
