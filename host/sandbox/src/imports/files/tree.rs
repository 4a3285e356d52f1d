//! The trees of files under operations on paths: the host's directories themselves, or an overlay.
//!
//! The checks of a guest's operations are written once, above this trait; see `paths.rs` and `open.rs`.

use std::fs::File;
use std::sync::Arc;

use rustix::fs::{Stat, Timestamps};
use rustix::io::Errno;
use wasmtime_wasi::p2::FsResult;

use super::alias::DirContent;
use super::closed::ClosedPaths;
use super::open::OpenRequest;
use super::walk::{DirStepper, HostDir, PathEnd};
use super::{BaseDir, FilesCtx, OverlayTarget};
use crate::overlay::{ChangeFault, FoundEntry};

/// A tree of files. No method follows a link as the last name.
pub(super) trait FileTree: DirStepper<Dir: HostDir> {
    /// The directory of a descriptor.
    fn base_dir(&self, base: &BaseDir) -> Self::Dir;

    /// Looks up the object at a path.
    fn find_at(&self, place: &PathEnd<Self::Dir>) -> Result<FoundEntry, Errno>;

    /// The target of a link.
    fn link_target(&self, place: &PathEnd<Self::Dir>) -> FsResult<std::ffi::CString>;

    /// Opens a directory that a lookup returned, for listing.
    fn open_dir(
        &self,
        place: &PathEnd<Self::Dir>,
        found: &FoundEntry,
    ) -> Result<(Arc<File>, Option<OverlayTarget>), Errno>;

    /// Opens a file that a lookup returned, or makes one. The file itself is checked after it is open and
    /// before any change; truncation comes last.
    fn open_file(
        &mut self,
        ctx: &FilesCtx,
        base: &BaseDir,
        place: &PathEnd<Self::Dir>,
        found: Option<&FoundEntry>,
        ask: &OpenRequest,
    ) -> FsResult<(File, Option<OverlayTarget>)>;

    /// Makes a directory.
    fn make_dir(&mut self, place: &PathEnd<Self::Dir>) -> Result<(), ChangeFault>;

    /// Removes an empty directory.
    fn remove_dir(&mut self, place: &PathEnd<Self::Dir>) -> Result<(), ChangeFault>;

    /// Removes an object that is not a directory.
    fn unlink_at(
        &mut self,
        place: &PathEnd<Self::Dir>,
        found: &FoundEntry,
    ) -> Result<(), ChangeFault>;

    /// Searches a directory for content that must not be moved.
    fn search_content(
        &self,
        place: &PathEnd<Self::Dir>,
        closed: &ClosedPaths,
    ) -> Result<DirContent, Errno>;

    /// Moves an object. A file gets the replaced file's permissions, because a guest cannot set permissions:
    /// a tool that writes to a temporary name and renames would otherwise remove a script's executable bit.
    fn rename_at(
        &mut self,
        old: &PathEnd<Self::Dir>,
        new: &PathEnd<Self::Dir>,
        found: &FoundEntry,
    ) -> Result<(), ChangeFault>;

    /// Adds a name to a regular file.
    fn link_at(
        &mut self,
        old: &PathEnd<Self::Dir>,
        new: &PathEnd<Self::Dir>,
        found: &FoundEntry,
    ) -> Result<(), ChangeFault>;

    /// Sets times of an object.
    fn set_times_at(
        &mut self,
        place: &PathEnd<Self::Dir>,
        found: &FoundEntry,
        times: &Timestamps,
    ) -> Result<(), ChangeFault>;
}

/// Whether a status is of this type.
pub(super) fn has_file_type(stat: &Stat, kind: rustix::fs::FileType) -> bool {
    super::walk::file_type(stat) == kind
}
