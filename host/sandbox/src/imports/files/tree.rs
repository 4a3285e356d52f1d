//! The two kinds of file trees under operations on paths: the host's own directories, or an overlay.
//!
//! A guest's operations are checked above this trait, once for both kinds; see `paths.rs` and `open.rs`.

use std::fs::File;
use std::sync::Arc;

use belljar_overlay::walk::{DirStepper, HostDir, PathEnd};
use belljar_overlay::{ChangeFault, FoundEntry};
use rustix::fs::{Stat, Timestamps};
use rustix::io::Errno;
use wasmtime_wasi::p2::FsResult;

use super::alias::DirContent;
use super::closed::ClosedPaths;
use super::open::OpenRequest;
use super::{BaseDir, FilesCtx, OverlayTarget};

/// A file tree. Its methods do not check rights, and do not follow a link as the last name.
pub(super) trait FileTree: DirStepper<Dir: HostDir> {
    /// The directory a descriptor refers to.
    fn base_dir(&self, base: &BaseDir) -> Self::Dir;

    /// Looks up the object at the end of a path.
    fn find_at(&self, place: &PathEnd<Self::Dir>) -> Result<FoundEntry, Errno>;

    /// The target of a symbolic link.
    fn link_target(&self, place: &PathEnd<Self::Dir>) -> FsResult<std::ffi::CString>;

    /// Opens a directory for listing; `found` is the result of its lookup.
    fn open_dir(
        &self,
        place: &PathEnd<Self::Dir>,
        found: &FoundEntry,
    ) -> Result<(Arc<File>, Option<OverlayTarget>), Errno>;

    /// Opens a file, or makes it if `found`, the result of its lookup, is `None`. What was opened is checked
    /// before anything changes; truncation comes last.
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

    /// Searches a directory for protected names and closed directories, which must not be moved with it.
    fn search_content(
        &self,
        place: &PathEnd<Self::Dir>,
        closed: &ClosedPaths,
    ) -> Result<DirContent, Errno>;

    /// Moves an object. A file takes over the permissions of the file that it replaces, because guests
    /// cannot set permissions: a tool that writes to a temporary name and renames it would otherwise make a
    /// script not executable.
    fn rename_at(
        &mut self,
        old: &PathEnd<Self::Dir>,
        new: &PathEnd<Self::Dir>,
        found: &FoundEntry,
    ) -> Result<(), ChangeFault>;

    /// Adds a hard link to a regular file.
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

/// Whether the object with the given status is of this type.
pub(super) fn has_file_type(stat: &Stat, kind: rustix::fs::FileType) -> bool {
    belljar_overlay::walk::file_type(stat) == kind
}
