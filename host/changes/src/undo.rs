//! Undoes an apply, provided that all its files are unchanged.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use belljar_sandbox::{Before, Overlay, Unsettled, UnsettledFile};
use belljar_work::StopSignal;

use crate::disk::is_ours;
use crate::journal::{Entry, Record, Step, create};
use crate::paths::PathSet;
use crate::workspace::Workspace;
use crate::{ChangesError, Node};

/// The paths that changed since the apply.
pub(crate) fn changed_since(
    workspace: &Workspace,
    record: &Record,
    stop: &StopSignal,
) -> Result<Vec<PathBuf>, ChangesError> {
    let look = |path: &Path| workspace.look(path).map_err(ChangesError::io("look at", path));
    let arrived = record.steps.iter().filter_map(|step| match step {
        Step::Put { path, .. } | Step::MakeDir { path } => Some(path.0.as_path()),
        Step::Place { to, .. } => Some(to.0.as_path()),
        Step::Remove { .. } | Step::Stage { .. } | Step::RemoveDir { .. } => None,
    });
    let arrived: HashSet<&Path> = arrived.collect();
    let moves = Moves::of(record);
    let mut changed = Vec::new();
    for step in &record.steps {
        stop.check()?;
        let same = match step {
            Step::Put { path, digest, .. } => match workspace.above(&path.0) {
                Ok((dir, name)) => is_ours(&dir, name, digest),
                Err(_) => false,
            },
            Step::Place { before, to, .. } => look(&to.0)?.is_some_and(|now| now.is_same(before)),
            Step::MakeDir { path } => match look(&path.0)?.map(|now| now.node()) {
                Some(Node::Directory) => {
                    let names =
                        workspace.names(&path.0).map_err(ChangesError::io("list", &path.0))?;
                    let new = names.iter().map(|name| path.0.join(name));
                    let new: Vec<_> =
                        new.filter(|path| !arrived.contains(path.as_path())).collect();
                    changed.extend(new);
                    true
                }
                Some(Node::File | Node::Link | Node::Special) | None => false,
            },
            Step::Remove { below, .. } | Step::RemoveDir { below, .. } => {
                let now = moves.after(&below.0);
                arrived.contains(now.as_path()) || look(&now)?.is_none()
            }
            Step::Stage { from, .. } => {
                let now = moves.after(&from.0);
                arrived.contains(now.as_path())
                    || arrived.contains(from.0.as_path())
                    || look(&from.0)?.is_none()
            }
        };
        if !same {
            let (Step::Place { to: path, .. }
            | Step::Remove { below: path, .. }
            | Step::RemoveDir { below: path, .. }
            | Step::Stage { from: path, .. }
            | Step::Put { path, .. }
            | Step::MakeDir { path }) = step;
            changed.push(path.0.clone());
        }
    }
    changed.sort();
    changed.dedup();
    Ok(changed)
}

/// The moves of an apply, from the old to the new path.
struct Moves<'a>(HashMap<&'a Path, &'a Path>);

impl<'a> Moves<'a> {
    fn of(record: &'a Record) -> Self {
        let moved = record.moved.iter();
        Self(moved.map(|(from, to)| (from.0.as_path(), to.0.as_path())).collect())
    }

    /// The path after all moves of a path before them.
    fn after(&self, place: &Path) -> PathBuf {
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
    entry: &Entry,
    record: &Record,
    stop: &StopSignal,
) -> Result<(), ChangesError> {
    for (at, step) in record.steps.iter().enumerate() {
        stop.check()?;
        let Step::Put { path, merged, .. } = step else { continue };
        let path = &path.0;
        if *merged && entry.again(at).exists() {
            // The agent's own version was stored at the apply.
            continue;
        }
        let (mut file, _) = workspace.open(path).map_err(ChangesError::io("open", path))?;
        let to = entry.again(at);
        let mut copy = || -> io::Result<()> {
            let mut copy = create(&to)?;
            io::copy(&mut file, &mut copy)?;
            copy.sync_all()
        };
        copy().map_err(ChangesError::io("write", &to))?;
    }
    Ok(())
}

/// Returns the changes to the overlay. `left` = paths that another program changed.
pub(crate) fn unsettle(
    overlay: &Overlay,
    entry: &Entry,
    record: &Record,
    left: &[PathBuf],
    number: u64,
) -> Result<(), ChangesError> {
    let settled = record.settled();
    let befores = record.befores_by_place();
    let left: PathSet<'_> = left.iter().map(PathBuf::as_path).collect();
    let before = |place: &Path, path: &Path| match befores.get(place) {
        Some((at, was)) => {
            let same = !left.has_below(place) && !left.contains(path);
            was.before(entry, *at, same)
        }
        None => {
            let place = place.to_owned();
            Ok(Before { place, original: None, same: true, base: None })
        }
    };
    let open = |path: PathBuf| File::open(&path).map_err(ChangesError::io("open", &path));
    let versions = record.files_by_path();
    let (mut files, mut dropped) = (Vec::new(), Vec::new());
    for (at, step) in record.steps.iter().enumerate() {
        let Step::Put { path, .. } = step else { continue };
        let Some((below, mode)) = versions.get(path.0.as_path()).copied() else { continue };
        let content = Some(open(entry.again(at))?);
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
            let content = given.copied.then(|| open(entry.dropped(at))).transpose()?;
            let before = below.map(|below| before(below, path)).transpose()?;
            let path = path.clone();
            files.push(UnsettledFile { path, before, mode, content, dropped: true });
        }
    }
    let gone = settled.gone.iter().map(|place| before(place, place));
    let gone = gone.collect::<Result<_, _>>()?;
    let (moved, directories) = (settled.moved, settled.directories);
    let unsettled = Unsettled { gone, moved, directories, files, dropped };
    overlay.unsettle(number, &unsettled).map_err(ChangesError::Overlay)
}
