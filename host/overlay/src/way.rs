//! Resolves paths for the host. Links are not followed, and protected names do not matter.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::Arc;

use super::rel::RelPath;
use super::view::{DirAt, OverlayView};
use crate::walk::{DirStepper as _, PathEnd};

/// The directory at the path `rel`, as guests see it. `lower` is the open lower directory.
pub(super) fn dir_at(
    view: &OverlayView<'_>,
    lower: &Arc<File>,
    rel: &RelPath,
) -> io::Result<DirAt> {
    enter_names(view, lower, rel.names())
}

/// The directory around a path, with the path's last name.
pub(super) fn place_at(
    view: &OverlayView<'_>,
    lower: &Arc<File>,
    path: &RelPath,
) -> io::Result<PathEnd<DirAt>> {
    let mut names = path.names();
    let name = names.next_back().ok_or(io::ErrorKind::IsADirectory)?;
    Ok(PathEnd::from_name(enter_names(view, lower, names)?, name.to_owned()))
}

/// Enters directories one name after another.
fn enter_names<'a>(
    view: &OverlayView<'_>,
    lower: &Arc<File>,
    names: impl Iterator<Item = &'a OsStr>,
) -> io::Result<DirAt> {
    let mut dir = view.resolve_dir(&OverlayView::root_ref(), Some(lower));
    for name in names {
        dir = view.enter_dir(&dir, name)?;
    }
    Ok(dir)
}
