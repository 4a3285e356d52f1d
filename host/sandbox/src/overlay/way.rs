//! Resolves paths for the host, without links and protected names.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::Arc;

use super::rel::Rel;
use super::view::{DirAt, View};
use crate::imports::files::walk::{PathEnd, Steps as _};

/// A directory as guests see it. `lower` = the lower directory.
pub(super) fn dir_at(view: &View<'_>, lower: &Arc<File>, rel: &Rel) -> io::Result<DirAt> {
    enter(view, lower, rel.names())
}

/// The directory that contains a path, with the path's last name.
pub(super) fn place_at(
    view: &View<'_>,
    lower: &Arc<File>,
    path: &Rel,
) -> io::Result<PathEnd<DirAt>> {
    let mut names = path.names();
    let name = names.next_back().ok_or(io::ErrorKind::IsADirectory)?;
    Ok(PathEnd::of_name(enter(view, lower, names)?, name.to_owned()))
}

fn enter<'a>(
    view: &View<'_>,
    lower: &Arc<File>,
    names: impl Iterator<Item = &'a OsStr>,
) -> io::Result<DirAt> {
    let mut dir = view.dir(&View::root(), Some(lower));
    for name in names {
        dir = view.enter(&dir, name)?;
    }
    Ok(dir)
}
