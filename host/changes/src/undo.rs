//! Taking an apply back: only while all of it is as it was left.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use belljar_sandbox::{Overlay, Unsettled, UnsettledFile};

use crate::disk::is_ours;
use crate::journal::{Entry, Record, Step, create};
use crate::workspace::Workspace;
use crate::{ChangesError, Node};

/// What is not as the apply has left it.
pub(crate) fn changed_since(
    workspace: &Workspace,
    record: &Record,
) -> Result<Vec<PathBuf>, ChangesError> {
    let look = |path: &Path| workspace.look(path).map_err(ChangesError::io("look at", path));
    let arrived = record.steps.iter().filter_map(|step| match step {
        Step::Put { path, .. } | Step::MakeDir { path } => Some(path.0.as_path()),
        Step::Place { to, .. } => Some(to.0.as_path()),
        Step::Remove { .. } | Step::Stage { .. } | Step::RemoveDir { .. } => None,
    });
    let arrived: HashSet<&Path> = arrived.collect();
    let mut changed = Vec::new();
    for step in &record.steps {
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
                let now = after(record, &below.0);
                arrived.contains(now.as_path()) || look(&now)?.is_none()
            }
            Step::Stage { from, .. } => {
                let now = after(record, &from.0);
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

/// Where a place of before is after all moves.
fn after(record: &Record, place: &Path) -> PathBuf {
    for above in place.ancestors() {
        let moved = record.moved.iter().find(|(from, _)| from.0 == above);
        if let Some((_, to)) = moved
            && let Ok(rest) = place.strip_prefix(above)
        {
            return if rest.as_os_str().is_empty() { to.0.clone() } else { to.0.join(rest) };
        }
    }
    place.to_owned()
}

/// Copies what goes back into the overlay, before it is taken out of the workspace.
pub(crate) fn keep_again(
    workspace: &Workspace,
    entry: &Entry,
    record: &Record,
) -> Result<(), ChangesError> {
    for (at, step) in record.steps.iter().enumerate() {
        let Step::Put { path, .. } = step else { continue };
        let path = &path.0;
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

/// Gives the changes back to the overlay.
pub(crate) fn unsettle(
    overlay: &Overlay,
    entry: &Entry,
    record: &Record,
    number: u64,
) -> Result<(), ChangesError> {
    let settled = record.settled();
    let mut files = Vec::new();
    for (at, step) in record.steps.iter().enumerate() {
        let Step::Put { path, .. } = step else { continue };
        let version = record.files.iter().find(|(known, ..)| known == path);
        let Some((path, below, mode)) = version else { continue };
        let from = entry.again(at);
        let content = File::open(&from).map_err(ChangesError::io("open", &from))?;
        let below = below.as_ref().map(|below| below.0.clone());
        files.push(UnsettledFile { path: path.0.clone(), below, mode: *mode, content });
    }
    let (gone, moved, directories) = (settled.gone, settled.moved, settled.directories);
    let unsettled = Unsettled { gone, moved, directories, files };
    overlay.unsettle(number, &unsettled).map_err(ChangesError::Overlay)
}
