//! The trees of files under operations on paths: the host's directories themselves, or an overlay.
//!
//! The checks of a guest's operations are written once, above this trait; see `paths.rs` and `open.rs`.

use std::fs::File;
use std::sync::Arc;

use rustix::fs::{Stat, Timestamps};
use rustix::io::Errno;
use wasmtime_wasi::p2::FsResult;

use super::alias::DirContent;
use super::closed::Closed;
use super::open::Ask;
use super::walk::{HostDir, PathEnd, Steps};
use super::{Base, FilesCtx, Over};
use crate::overlay::{Fault, Found};

/// A tree of files. No method follows a link as the last name.
pub(super) trait Tree: Steps<Dir: HostDir> {
    /// The directory of a descriptor.
    fn first(&self, base: &Base) -> Self::Dir;

    /// Looks up the object at a path.
    fn find(&self, place: &PathEnd<Self::Dir>) -> Result<Found, Errno>;

    /// The target of a link.
    fn target(&self, place: &PathEnd<Self::Dir>) -> FsResult<std::ffi::CString>;

    /// Opens a directory that a lookup returned, for listing.
    fn open_dir(
        &self,
        place: &PathEnd<Self::Dir>,
        found: &Found,
    ) -> Result<(Arc<File>, Option<Over>), Errno>;

    /// Opens a file that a lookup returned, or makes one. The file itself is checked after it is open and
    /// before any change; truncation comes last.
    fn open_file(
        &mut self,
        ctx: &FilesCtx,
        base: &Base,
        place: &PathEnd<Self::Dir>,
        found: Option<&Found>,
        ask: &Ask,
    ) -> FsResult<(File, Option<Over>)>;

    /// Makes a directory.
    fn make_dir(&mut self, place: &PathEnd<Self::Dir>) -> Result<(), Fault>;

    /// Removes an empty directory.
    fn remove_dir(&mut self, place: &PathEnd<Self::Dir>) -> Result<(), Fault>;

    /// Removes an object that is not a directory.
    fn unlink(&mut self, place: &PathEnd<Self::Dir>, found: &Found) -> Result<(), Fault>;

    /// Searches a directory for content that must not be moved.
    fn search(&self, place: &PathEnd<Self::Dir>, closed: &Closed) -> Result<DirContent, Errno>;

    /// Moves an object. A file gets the replaced file's permissions, because a guest cannot set permissions:
    /// a tool that writes to a temporary name and renames would otherwise remove a script's executable bit.
    fn rename(
        &mut self,
        old: &PathEnd<Self::Dir>,
        new: &PathEnd<Self::Dir>,
        found: &Found,
    ) -> Result<(), Fault>;

    /// Adds a name to a regular file.
    fn link(
        &mut self,
        old: &PathEnd<Self::Dir>,
        new: &PathEnd<Self::Dir>,
        found: &Found,
    ) -> Result<(), Fault>;

    /// Sets times of an object.
    fn touch(
        &mut self,
        place: &PathEnd<Self::Dir>,
        found: &Found,
        times: &Timestamps,
    ) -> Result<(), Fault>;
}

/// Whether a status is of this type.
pub(super) fn is(stat: &Stat, kind: rustix::fs::FileType) -> bool {
    super::walk::kind(stat) == kind
}
