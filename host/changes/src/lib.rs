//! The changes of an overlay, for the person who decides about them: lists, counts, patches;
//! applying them to the workspace, taking that back, and giving them up.
//!
//! A [`Review`] is one overlay with the journal of what was applied from it. It knows no session, no
//! store and no terminal.
//!
//! # What is guaranteed
//!
//! - Nothing is written outside the workspace, whatever names and links lie in it or are put there
//!   meanwhile, and nothing with a protected name.
//! - A file that changed in the workspace since the agent read it first is not overwritten, unless
//!   the caller says so of this path.
//! - A file is replaced as one; an apply that is killed is finished or taken back when the review is
//!   opened next, and each file is then what it was or what the agent made of it.
//! - Memory is bounded, whatever an agent wrote: texts above [`MAX_TEXT`] are not compared by lines,
//!   and contents are copied in steps.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod apply;
mod before;
mod change;
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

pub use change::{Changes, Conflict, FileChange, FileDifference, Node, Stat};
pub use error::ChangesError;
pub use review::{Applied, ApplyOptions, Kept, Recovered, Review, Undone};
pub use selection::Selection;
pub use text::Clash;

/// Bytes of a text whose lines are compared and merged; what is larger counts as binary.
pub const MAX_TEXT: u64 = text::MAX_TEXT;

#[cfg(test)]
mod tests;
