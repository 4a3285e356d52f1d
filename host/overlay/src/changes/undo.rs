//! Undoes an apply, provided that all its files are unchanged.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::{ChangeOrigin, Overlay, UnsettledChanges, UnsettledFile};
use belljar_work::StopSignal;

use crate::changes::disk::is_ours;
use crate::changes::journal::{ApplyEntry, ApplyRecord, ApplyStep, create_file};
use crate::changes::paths::PathSet;
use crate::changes::workspace::Workspace;
use crate::changes::{ChangesError, NodeKind};

/// The paths that changed since the apply.
pub(crate) fn changed_since(
    workspace: &Workspace,
    record: &ApplyRecord,
    stop: &StopSignal,
) -> Result<Vec<PathBuf>, ChangesError> {
    let look =
        |path: &Path| workspace.look_at(path).map_err(ChangesError::from_io("look at", path));
    let arrived = record.steps.iter().filter_map(|step| match step {
        ApplyStep::Put { path, .. } | ApplyStep::MakeDir { path } => Some(path.0.as_path()),
        ApplyStep::Place { to, .. } => Some(to.0.as_path()),
        ApplyStep::Remove { .. } | ApplyStep::Stage { .. } | ApplyStep::RemoveDir { .. } => None,
    });
    let arrived: HashSet<&Path> = arrived.collect();
    let moves = MovedPaths::from_record(record);
    let mut changed = Vec::new();
    for step in &record.steps {
        stop.check_raised()?;
        let same = match step {
            ApplyStep::Put { path, digest, .. } => match workspace.open_parent(&path.0) {
                Ok((dir, name)) => is_ours(&dir, name, digest),
                Err(_) => false,
            },
            ApplyStep::Place { before, to, .. } => {
                look(&to.0)?.is_some_and(|now| now.is_same(before))
            }
            ApplyStep::MakeDir { path } => match look(&path.0)?.map(|now| now.node_kind()) {
                Some(NodeKind::Directory) => {
                    let names = workspace
                        .list_names(&path.0)
                        .map_err(ChangesError::from_io("list", &path.0))?;
                    let new = names.iter().map(|name| path.0.join(name));
                    let new: Vec<_> =
                        new.filter(|path| !arrived.contains(path.as_path())).collect();
                    changed.extend(new);
                    true
                }
                Some(NodeKind::File | NodeKind::Link | NodeKind::Special) | None => false,
            },
            ApplyStep::Remove { below, .. } | ApplyStep::RemoveDir { below, .. } => {
                let now = moves.place_after(&below.0);
                arrived.contains(now.as_path()) || look(&now)?.is_none()
            }
            ApplyStep::Stage { from, .. } => {
                let now = moves.place_after(&from.0);
                arrived.contains(now.as_path())
                    || arrived.contains(from.0.as_path())
                    || look(&from.0)?.is_none()
            }
        };
        if !same {
            let (ApplyStep::Place { to: path, .. }
            | ApplyStep::Remove { below: path, .. }
            | ApplyStep::RemoveDir { below: path, .. }
            | ApplyStep::Stage { from: path, .. }
            | ApplyStep::Put { path, .. }
            | ApplyStep::MakeDir { path }) = step;
            changed.push(path.0.clone());
        }
    }
    changed.sort();
    changed.dedup();
    Ok(changed)
}

/// The moves of an apply, from the old to the new path.
struct MovedPaths<'a>(HashMap<&'a Path, &'a Path>);

impl<'a> MovedPaths<'a> {
    fn from_record(record: &'a ApplyRecord) -> Self {
        let moved = record.moved.iter();
        Self(moved.map(|(from, to)| (from.0.as_path(), to.0.as_path())).collect())
    }

    /// The path after all moves of a path before them.
    fn place_after(&self, place: &Path) -> PathBuf {
        let moved = place.ancestors().find_map(|above| {
            let to = self.0.get(above)?;
            let rest = place.strip_prefix(above).ok()?;
            Some(if rest.as_os_str().is_empty() { to.to_path_buf() } else { to.join(rest) })
        });
        moved.unwrap_or_else(|| place.to_owned())
    }
}

/// Copies the files for the overlay, before they are removed from the workspace.
pub(crate) fn keep_again(
    workspace: &Workspace,
    entry: &ApplyEntry,
    record: &ApplyRecord,
    stop: &StopSignal,
) -> Result<(), ChangesError> {
    for (at, step) in record.steps.iter().enumerate() {
        stop.check_raised()?;
        let ApplyStep::Put { path, merged, .. } = step else { continue };
        let path = &path.0;
        if *merged && entry.overlay_copy_path(at).exists() {
            // The agent's own version was stored at the apply.
            continue;
        }
        let (mut file, _) =
            workspace.open_file(path).map_err(ChangesError::from_io("open", path))?;
        let to = entry.overlay_copy_path(at);
        let mut copy = || -> io::Result<()> {
            let mut copy = create_file(&to)?;
            io::copy(&mut file, &mut copy)?;
            copy.sync_all()
        };
        copy().map_err(ChangesError::from_io("write", &to))?;
    }
    Ok(())
}

/// Returns the changes to the overlay. `left` = paths that another program changed.
pub(crate) fn return_to_overlay(
    overlay: &Overlay,
    entry: &ApplyEntry,
    record: &ApplyRecord,
    left: &[PathBuf],
    number: u64,
) -> Result<(), ChangesError> {
    let settled = record.to_settled();
    let befores = record.befores_by_place();
    let left: PathSet<'_> = left.iter().map(PathBuf::as_path).collect();
    let before = |place: &Path, path: &Path| match befores.get(place) {
        Some((at, was)) => {
            let same = !left.has_below(place) && !left.contains(path);
            was.to_before(entry, *at, same)
        }
        None => {
            let place = place.to_owned();
            Ok(ChangeOrigin { place, original: None, same: true, base: None })
        }
    };
    let open = |path: PathBuf| File::open(&path).map_err(ChangesError::from_io("open", &path));
    let versions = record.files_by_path();
    let (mut files, mut dropped) = (Vec::new(), Vec::new());
    for (at, step) in record.steps.iter().enumerate() {
        let ApplyStep::Put { path, .. } = step else { continue };
        let Some((below, mode)) = versions.get(path.0.as_path()).copied() else { continue };
        let content = Some(open(entry.overlay_copy_path(at))?);
        let before = below.map(|below| before(below, &path.0)).transpose()?;
        let path = path.0.clone();
        files.push(UnsettledFile { path, before, mode, content, dropped: false });
    }
    for (at, given) in record.given_up.iter().enumerate() {
        let path = &given.path.0;
        let below = given.below.as_ref().map(|below| &below.0);
        if let Some(below) = below.filter(|_| given.hides) {
            dropped.push(before(below, path)?);
        }
        if let Some(mode) = given.file {
            let content = given.copied.then(|| open(entry.dropped_path(at))).transpose()?;
            let before = below.map(|below| before(below, path)).transpose()?;
            let path = path.clone();
            files.push(UnsettledFile { path, before, mode, content, dropped: true });
        }
    }
    let gone = settled.gone.iter().map(|place| before(place, place));
    let gone = gone.collect::<Result<_, _>>()?;
    let (moved, directories) = (settled.moved, settled.directories);
    let unsettled = UnsettledChanges { gone, moved, directories, files, dropped };
    overlay.unsettle_changes(number, &unsettled).map_err(ChangesError::Overlay)
}
