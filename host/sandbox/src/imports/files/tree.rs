//! The trees that operations on paths act on: the host's directories themselves, or an overlay.
//!
//! The checks of a guest's operations are written once, around this; see `paths.rs` and `open.rs`.

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

/// A tree of files. None of these follows a link in the last place.
pub(super) trait Tree: Steps<Dir: HostDir> {
    /// The directory of a descriptor.
    fn first(&self, base: &Base) -> Self::Dir;

    /// The thing that stands at a place.
    fn find(&self, place: &PathEnd<Self::Dir>) -> Result<Found, Errno>;

    /// The target of a link.
    fn target(&self, place: &PathEnd<Self::Dir>) -> FsResult<std::ffi::CString>;

    /// Opens a directory that was found, for listing.
    fn open_dir(
        &self,
        place: &PathEnd<Self::Dir>,
        found: &Found,
    ) -> Result<(Arc<File>, Option<Over>), Errno>;

    /// Opens a found file, or makes one. Checks on the file itself are made on the open file, before any
    /// change; truncation comes last.
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

    /// Removes what was found and is no directory.
    fn unlink(&mut self, place: &PathEnd<Self::Dir>, found: &Found) -> Result<(), Fault>;

    /// Whether a directory may be moved.
    fn search(&self, place: &PathEnd<Self::Dir>, closed: &Closed) -> Result<DirContent, Errno>;

    /// Moves what was found. A file gets the replaced file's permissions, because a guest cannot set
    /// permissions: a tool that writes beside a script and renames would otherwise remove the executable bit.
    fn rename(
        &mut self,
        old: &PathEnd<Self::Dir>,
        new: &PathEnd<Self::Dir>,
        found: &Found,
    ) -> Result<(), Fault>;

    /// Gives a regular file one more name.
    fn link(
        &mut self,
        old: &PathEnd<Self::Dir>,
        new: &PathEnd<Self::Dir>,
        found: &Found,
    ) -> Result<(), Fault>;

    /// Sets times of what was found.
    fn touch(
        &mut self,
        place: &PathEnd<Self::Dir>,
        found: &Found,
        times: &Timestamps,
    ) -> Result<(), Fault>;
}

/// Whether the file at a place has this status's type.
pub(super) fn is(stat: &Stat, kind: rustix::fs::FileType) -> bool {
    super::walk::kind(stat) == kind
}
