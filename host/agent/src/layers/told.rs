//! Texts about the end of copied layers.

use belljar_policy::{GuestPath, ShownPath as _};
use belljar_sandbox::{MergeConflict, Merged};

/// The ending of a copied layer.
#[derive(Debug)]
pub(crate) struct Told {
    pub(super) guest: GuestPath,
    pub(super) ended: Ended,
}

#[derive(Debug)]
pub(super) enum Ended {
    Merged(Box<Merged>),
    Dropped { changed: bool },
    Failed,
}

impl Told {
    /// The text of layers that could not be opened.
    pub(crate) fn failure() -> Self {
        Self { guest: GuestPath::workspace(), ended: Ended::Failed }
    }

    pub(crate) fn failed(&self) -> bool {
        matches!(self.ended, Ended::Failed)
    }

    /// A line for the parent of the layers' subagent.
    pub(crate) fn of_child(&self) -> Option<String> {
        let guest = &self.guest;
        match &self.ended {
            Ended::Merged(merged) if merged.changed == 0 && merged.conflicts.is_empty() => None,
            Ended::Merged(merged) => {
                let changed = merged.changed;
                let stays =
                    conflicts(merged, "both of you changed, and yours stays", "its version");
                Some(format!("{guest}: {changed} of its changes are yours now{stays}"))
            }
            Ended::Dropped { changed } => changed.then(|| {
                format!("{guest}: it did not conclude: what it changed there was dropped")
            }),
            Ended::Failed => Some(format!("{guest}: what it changed there could not be merged")),
        }
    }

    /// A line for the agent of the worktree.
    pub(crate) fn of_worktree(&self) -> Option<String> {
        let guest = &self.guest;
        match &self.ended {
            Ended::Merged(merged) if merged.changed == 0 && merged.conflicts.is_empty() => {
                Some(format!("{guest}: nothing was changed in it"))
            }
            Ended::Merged(merged) => {
                let changed = merged.changed;
                let both = "both it and your files changed, and your files stay as they are";
                let stays = conflicts(merged, both, "the worktree's version");
                Some(format!("{guest}: {changed} of its changes are in your files now{stays}"))
            }
            Ended::Dropped { changed } => {
                changed.then(|| format!("{guest}: what was changed in it was dropped"))
            }
            Ended::Failed => Some(format!("{guest}: it could not be ended, and is as it was")),
        }
    }
}

fn conflicts(merged: &Merged, both: &str, version: &str) -> String {
    let Merged { conflicts, more, .. } = merged;
    if conflicts.is_empty() {
        return String::new();
    }
    let told = |MergeConflict { path, beside }: &MergeConflict| match beside {
        Some(beside) => format!("`{}` ({version} is `{}`)", path.shown(), beside.shown()),
        None => format!("`{}`", path.shown()),
    };
    let named: Vec<String> = conflicts.iter().map(told).collect();
    let further = if *more > 0 { format!(", and {more} more") } else { String::new() };
    format!("; {both}: {}{further}", named.join(", "))
}
