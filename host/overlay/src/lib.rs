//! Copy-on-write views of directories, and the changes in them: listed, applied, undone, merged.
//!
//! ```text
//! overlay   a directory that is only read, and a layer with all changes (`overlay`, `view`, `acts`, `fork`)
//! layers    the overlays of one session, and the copies of its subagents
//! changes   the changes of one overlay, for the person who decides
//! walk      guest paths, resolved one name at a time
//! ```
//!
//! For example, an agent writes `/workspace/a.txt`: the sandbox resolves the path with [`walk`], an
//! [`OverlayView`] stores the content in the layer, [`SessionLayers`] keeps the layer from turn to turn, and an
//! [`OverlayReview`] shows the change and applies it.
//!
//! The crate has no WebAssembly, no agent, no session and no store. `belljar-sandbox` uses it below its file
//! host; `belljar-agent`, `belljar-session` and the entrances use it directly.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod acts;
mod bases;
mod beside;
mod changes;
mod copies;
mod differences;
mod digest;
mod digests;
mod fork;
mod host;
mod index;
mod layer;
mod layers;
mod lower;
mod overlay;
mod record;
mod rel;
mod room;
mod state;
mod tree;
mod veil;
mod view;
pub mod walk;
mod way;

pub use acts::ChangeFault;
pub use changes::{
    AppliedChanges, ApplyOptions, ApplyRecovery, ChangeConflict, ChangeStat, Changes, ChangesError,
    FileChange, FileDifference, KeptCopies, MAX_TEXT, MergeClash, NodeKind, OverlayReview,
    PathSelection, UndoOutcome, changed_lines, unified_diff,
};
pub use differences::{Change, ChangeKind, OriginalState};
pub use digest::Digest;
pub use fork::{MergeConflict, MergeResult, OverlayFork};
pub(crate) use host::{ChangeOrigin, SettledChanges, UnsettledChanges, UnsettledFile};
pub use layers::{CopyEnding, LayersError, OverlayLayer, SessionLayers, held_in};
pub use overlay::{Overlay, OverlayError};
pub use room::{GrowthGuard, OverlayPool, OverlayQuota, QuotaFull, UpperFile};
pub use state::LowerReader;
pub use view::{DirAt, DirRef, FoundEntry, OverlayView, ReadFile};
