//! Resolves paths for the host, without links and protected names.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::Arc;

use super::rel::RelPath;
use super::view::{DirAt, OverlayView};
use crate::walk::{DirStepper as _, PathEnd};

/// A directory as guests see it. `lower` = the lower directory.
pub(super) fn dir_at(
    view: &OverlayView<'_>,
    lower: &Arc<File>,
    rel: &RelPath,
) -> io::Result<DirAt> {
    enter_names(view, lower, rel.names())
}

/// The directory that contains a path, with the path's last name.
pub(super) fn place_at(
    view: &OverlayView<'_>,
    lower: &Arc<File>,
    path: &RelPath,
) -> io::Result<PathEnd<DirAt>> {
    let mut names = path.names();
    let name = names.next_back().ok_or(io::ErrorKind::IsADirectory)?;
    Ok(PathEnd::from_name(enter_names(view, lower, names)?, name.to_owned()))
}

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
