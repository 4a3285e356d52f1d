//! The changes of an overlay, for the person who decides: lists, counts, patches; applying them to the
//! workspace, undoing an apply, and discarding changes.
//!
//! A [`OverlayReview`] is one overlay with its journal of applies. It has no session, no store and no terminal. For
//! example, `belljar changes` lists [`OverlayReview::list_changes`], and `belljar apply` calls [`OverlayReview::apply_changes`].
//!
//! # What is guaranteed
//!
//! - Nothing is written outside the workspace, whatever names and links it contains or receives meanwhile,
//!   and no file with a protected name is written.
//! - A file that changed in the workspace since the agent's first read is not overwritten, unless the caller
//!   allows it for the path.
//! - A file is replaced atomically; a killed apply is finished or undone at the next opening of the review,
//!   and each file is then either the original or the agent's version.
//! - Memory is bounded, whatever an agent wrote: texts above [`MAX_TEXT`] are not compared by lines, and
//!   contents are copied in steps.
//! - Time is bounded too: a comparison of two texts has a number of steps, the counts of a list have a time,
//!   and every call that only reads stops with the [`StopSignal`](belljar_work::StopSignal) of
//!   [`OverlayReview::with_stop`].

mod apply;
mod before;
mod change;
mod content;
mod diff;
mod disk;
mod error;
mod execute;
mod journal;
mod later;
mod list;
mod patch;
mod paths;
mod plan;
mod review;
mod selection;
mod text;
mod undo;
mod workspace;

pub use change::{ChangeConflict, ChangeStat, Changes, FileChange, FileDifference, NodeKind};
pub use error::ChangesError;
pub use review::{
    AppliedChanges, ApplyOptions, ApplyRecovery, KeptCopies, OverlayReview, UndoOutcome,
};
pub use selection::PathSelection;
pub use text::MergeClash;

/// The difference of two texts as a unified diff without names; empty if they are equal.
///
/// # Errors
///
/// The signal is raised.
pub fn unified_diff(
    before: &[u8],
    after: &[u8],
    stop: &belljar_work::StopSignal,
) -> Result<Vec<u8>, belljar_work::WorkStopped> {
    text::unified_diff(before, after, stop)
}

/// The numbers of lines that are only in the second text, and only in the first.
///
/// # Errors
///
/// The signal is raised.
pub fn changed_lines(
    before: &[u8],
    after: &[u8],
    stop: &belljar_work::StopSignal,
) -> Result<(u64, u64), belljar_work::WorkStopped> {
    let counted = text::count_differences(before, after, &mut diff::StepMeter::new(stop))?;
    Ok((counted.added, counted.removed))
}

/// Bytes of a compared and merged text; a larger one counts as binary.
pub const MAX_TEXT: u64 = text::MAX_TEXT;

#[cfg(test)]
mod tests;
