//! Converts chosen changes to steps, and stores the data for undoing them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::{Digest, OriginalState};

use crate::changes::before::RecordedOriginal;
use crate::changes::change::{ChangeConflict, Changes, FileChange, FileDifference, NodeKind};
use crate::changes::disk::keep_copy;
use crate::changes::journal::{
    ApplyEntry, ApplyRecord, ApplyStep, GivenUp, MOST_BYTES, create_file,
};
use crate::changes::paths::{AnyPath, PathSet};
use crate::changes::workspace::FileState;
use crate::changes::{ChangesError, content};

/// The prepared steps, and the paths for the result.
pub(crate) struct PreparedApply {
    pub(crate) record: ApplyRecord,
    pub(crate) merged: Vec<PathBuf>,
    /// Paths whose dropped change an undo cannot restore.
    pub(crate) lost: Vec<PathBuf>,
}

/// Marks changes on another file system as conflicts, because they cannot be moved.
pub(crate) fn find_elsewhere(changes: &mut Changes) -> Result<(), ChangesError> {
    let failed = |errno| ChangesError::from_io("look at", Path::new(""))(errno);
    let root = changes.workspace.open_directory(Path::new("")).map_err(failed)?;
    let root = FileState::from_stat(&rustix::fs::fstat(&root).map_err(failed)?);
    for file in &mut changes.files {
        let FileDifference::Renamed { from, modified: false } = &file.kind else { continue };
        let now =
            changes.workspace.look_at(from).map_err(ChangesError::from_io("look at", from))?;
        if now.is_some_and(|now| !now.is_beside(&root)) && file.conflict.is_none() {
            file.conflict = Some(ChangeConflict::Elsewhere);
        }
    }
    Ok(crate::changes::plan::spread_conflicts(&mut changes.files, &changes.stop)?)
}

/// Makes the steps for these changes, and stores the replaced contents. The workspace is not changed.
pub(crate) fn prepare_steps(
    changes: &Changes,
    chosen: &[&FileChange],
    dropped: &[PathBuf],
    theirs: impl Fn(&Path) -> bool,
    entry: &ApplyEntry,
) -> Result<PreparedApply, ChangesError> {
    let whole = chosen.iter().filter(|file| file.part_of.is_none());
    let mut maker = StepMaker {
        changes,
        entry,
        steps: Vec::new(),
        stages: HashMap::new(),
        bytes: 0,
        merged: Vec::new(),
    };
    let (mut going, mut coming) = (BTreeMap::new(), Vec::new());
    let known = ChosenPlaces::from_changes(chosen);
    for file in whole.clone() {
        match (&file.kind, &file.below) {
            (FileDifference::Renamed { modified: false, .. }, Some(below)) => {
                going.insert(below.clone(), RemovalKind::Stage);
                coming.push(*file);
            }
            (FileDifference::Renamed { .. }, Some(below)) => {
                going.insert(below.clone(), RemovalKind::Remove);
                coming.push(*file);
            }
            (FileDifference::Deleted, Some(below)) if file.node == NodeKind::Directory => {
                maker.collect_directory(below, &known, &mut going, theirs(&file.path))?;
            }
            (FileDifference::Deleted, Some(below)) => {
                going.insert(below.clone(), RemovalKind::Remove);
            }
            (FileDifference::Added | FileDifference::Modified | FileDifference::Mode, _)
            | (_, None) => coming.push(*file),
        }
    }
    // From the inside out: a directory's content is removed before the directory.
    for (below, going) in going.iter().rev() {
        maker.add_removal(below, *going)?;
    }
    coming.sort_by(|one, other| one.path.cmp(&other.path));
    for file in &coming {
        maker.add_arrival(file, &going, &theirs)?;
    }
    let mut record = record_facts(entry.number, whole.clone().copied());
    record.dropped = dropped.iter().map(|path| to_any_path(path)).collect();
    for file in whole {
        maker.note_before(file, &mut record)?;
    }
    let lost = maker.give_up(dropped, &mut record)?;
    record.steps = maker.steps;
    Ok(PreparedApply { record, merged: maker.merged, lost })
}

fn node_of(original: OriginalState) -> NodeKind {
    if original.directory { NodeKind::Directory } else { NodeKind::File }
}

fn to_any_path(path: &Path) -> AnyPath {
    AnyPath(path.to_owned())
}

/// The facts that the overlay needs after the apply.
fn record_facts<'a>(number: u64, whole: impl Iterator<Item = &'a FileChange>) -> ApplyRecord {
    let (steps, gone, moved) = (Vec::new(), Vec::new(), Vec::new());
    let (directories, files) = (Vec::new(), Vec::new());
    let (befores, dropped, given_up) = (Vec::new(), Vec::new(), Vec::new());
    let mut record =
        ApplyRecord { number, steps, gone, moved, directories, files, befores, dropped, given_up };
    for file in whole {
        let version = |below: Option<&PathBuf>| {
            (
                to_any_path(&file.path),
                below.map(|below| to_any_path(below)),
                file.mode_after.unwrap_or(0o644),
            )
        };
        match &file.kind {
            FileDifference::Deleted => record.gone.extend(file.below.as_deref().map(to_any_path)),
            FileDifference::Renamed { from, modified: false } => {
                record.moved.push((to_any_path(from), to_any_path(&file.path)));
            }
            FileDifference::Renamed { from, modified: true } => {
                record.gone.push(to_any_path(from));
                record.files.push(version(Some(from)));
            }
            FileDifference::Added if file.node == NodeKind::Directory => {
                record.directories.push(to_any_path(&file.path))
            }
            FileDifference::Added => record.files.push(version(None)),
            FileDifference::Modified | FileDifference::Mode => {
                record.files.push(version(file.below.as_ref()))
            }
        }
    }
    record
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemovalKind {
    Stage,
    Remove,
    RemoveDir,
}

/// The chosen changes by their earlier paths, indexed once for all removed directories.
struct ChosenPlaces<'a> {
    moved: HashSet<&'a Path>,
    deleted: HashSet<&'a Path>,
}

impl<'a> ChosenPlaces<'a> {
    /// The paths moved or deleted by the selected changes.
    fn from_changes(chosen: &[&'a FileChange]) -> Self {
        let (mut moved, mut deleted) = (HashSet::new(), HashSet::new());
        for file in chosen {
            match &file.kind {
                FileDifference::Renamed { from, .. } => drop(moved.insert(from.as_path())),
                FileDifference::Deleted => deleted.extend(file.below.as_deref()),
                FileDifference::Added | FileDifference::Modified | FileDifference::Mode => {}
            }
        }
        Self { moved, deleted }
    }
}

struct StepMaker<'a> {
    changes: &'a Changes,
    entry: &'a ApplyEntry,
    steps: Vec<ApplyStep>,
    /// Paths whose content was moved to a temporary name, with the index of the step.
    stages: HashMap<PathBuf, (usize, FileState)>,
    bytes: u64,
    merged: Vec<PathBuf>,
}

impl StepMaker<'_> {
    /// Collects the content of a deleted directory, as listed before.
    fn collect_directory(
        &self,
        dir: &Path,
        known: &ChosenPlaces<'_>,
        going: &mut BTreeMap<PathBuf, RemovalKind>,
        unseen: bool,
    ) -> Result<(), ChangesError> {
        let mut open = vec![dir.to_owned()];
        while let Some(dir) = open.pop() {
            self.changes.stop.check_raised()?;
            let workspace = &self.changes.workspace;
            let look = |path: &Path| {
                workspace.look_at(path).map_err(ChangesError::from_io("look at", path))
            };
            if look(&dir)?.is_none() {
                continue;
            }
            going.insert(dir.clone(), RemovalKind::RemoveDir);
            for name in workspace.list_names(&dir).map_err(ChangesError::from_io("list", &dir))? {
                let below = dir.join(name);
                let Some(now) = look(&below)? else { continue };
                match now.node_kind() {
                    _ if known.moved.contains(below.as_path()) => {}
                    NodeKind::Directory => open.push(below),
                    NodeKind::File | NodeKind::Link
                        if unseen || known.deleted.contains(below.as_path()) =>
                    {
                        going.insert(below, RemovalKind::Remove);
                    }
                    NodeKind::File | NodeKind::Link | NodeKind::Special => {
                        return Err(ChangesError::ChangedMeanwhile { path: below });
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the steps that remove a file or link, with a kept copy for undo.
    fn add_removal(&mut self, below: &Path, going: RemovalKind) -> Result<(), ChangesError> {
        self.changes.stop.check_raised()?;
        let at = self.steps.len();
        let workspace = &self.changes.workspace;
        let now = workspace.look_at(below).map_err(ChangesError::from_io("look at", below))?;
        let path = to_any_path(below);
        let step = match (going, now) {
            (RemovalKind::Remove | RemovalKind::RemoveDir, None) => return Ok(()),
            (RemovalKind::Stage, None) => {
                return Err(ChangesError::ChangedMeanwhile { path: below.to_owned() });
            }
            (RemovalKind::Remove, Some(_)) => {
                let Some((before, kept)) = self.keep_original(below, at)? else { return Ok(()) };
                ApplyStep::Remove { below: path, before, kept }
            }
            (RemovalKind::RemoveDir, Some(now)) => {
                ApplyStep::RemoveDir { below: path, mode: now.mode }
            }
            (RemovalKind::Stage, Some(before)) => {
                self.stages.insert(below.to_owned(), (at, before));
                ApplyStep::Stage { from: path, before }
            }
        };
        self.steps.push(step);
        Ok(())
    }

    /// Stores a copy of a file before removal, within the space for copies; returns the file's state and the
    /// copy.
    fn keep_original(
        &mut self,
        path: &Path,
        at: usize,
    ) -> Result<Option<(FileState, crate::changes::journal::KeptCopy)>, ChangesError> {
        let to = self.entry.kept_path(at);
        let state =
            self.changes.workspace.look_at(path).map_err(ChangesError::from_io("look at", path))?;
        let size = state.map_or(0, |state| state.size);
        self.has_room(size)?;
        let kept = keep_copy(&self.changes.workspace, path, &to)?;
        Ok(kept.map(|(state, kept, size)| {
            self.bytes += size;
            (state, kept)
        }))
    }

    /// Checks that a copy of this many bytes fits into the space for kept copies.
    fn has_room(&self, size: u64) -> Result<(), ChangesError> {
        let bytes = self.bytes.saturating_add(size);
        if bytes > MOST_BYTES {
            return Err(ChangesError::TooLarge { bytes, most: MOST_BYTES });
        }
        Ok(())
    }

    /// Copies a content that the workspace does not have, for an undo.
    fn copy_content(&mut self, path: &Path, mut from: File, to: &Path) -> Result<(), ChangesError> {
        let size = from.metadata().map_err(ChangesError::from_io("look at", path))?.len();
        self.has_room(size)?;
        let mut copy = create_file(to).map_err(ChangesError::from_io("write", to))?;
        self.bytes +=
            std::io::copy(&mut from, &mut copy).map_err(ChangesError::from_io("keep", path))?;
        Ok(())
    }

    /// Stores the state at the agent's first read, with the text if the workspace's file differs.
    fn note_before(
        &mut self,
        file: &FileChange,
        record: &mut ApplyRecord,
    ) -> Result<(), ChangesError> {
        self.changes.stop.check_raised()?;
        let (Some(below), Some(original)) = (&file.below, &file.original) else { return Ok(()) };
        let same = if original.directory {
            file.conflict.is_none()
        } else {
            let failed = |errno| ChangesError::from_io("look at", below)(errno);
            let now = self.changes.workspace.look_at(below).map_err(failed)?;
            let as_before = now.is_some_and(|now| now.is_as(original));
            as_before || self.has_digest(below, original.digest.as_ref())?
        };
        let base = original.digest.filter(|_| !same);
        let base = base.and_then(|digest| self.changes.overlay.open_base(&digest).ok());
        let has_base = base.is_some();
        if let Some(base) = base {
            self.copy_content(below, base, &self.entry.base_path(record.befores.len()))?;
        }
        record.befores.push(RecordedOriginal::new(below.clone(), original, same, has_base));
        Ok(())
    }

    /// Whether a file has the wanted digest.
    fn has_digest(&self, path: &Path, wanted: Option<&Digest>) -> Result<bool, ChangesError> {
        let opened = wanted.and_then(|_| self.changes.workspace.open_file(path).ok());
        let Some((file, _)) = opened else { return Ok(false) };
        let found = content::digest_until(&file, path, &self.changes.stop)?;
        Ok(Some(&found) == wanted)
    }

    /// Stores the changes at and below the dropped paths for an undo. Returns the paths that cannot be
    /// stored.
    fn give_up(
        &mut self,
        dropped: &[PathBuf],
        record: &mut ApplyRecord,
    ) -> Result<Vec<PathBuf>, ChangesError> {
        let changes = self.changes;
        let whole = changes.files.iter().filter(|file| file.part_of.is_none());
        let dropped: PathSet<'_> = dropped.iter().map(PathBuf::as_path).collect();
        let mut lost = PathSet::default();
        let mut told: Vec<PathBuf> = Vec::new();
        for file in whole.filter(|file| dropped.has_ancestor(&file.path)) {
            changes.stop.check_raised()?;
            let is_new = file.kind != FileDifference::Deleted;
            let in_lost = lost.has_ancestor(&file.path);
            // A new directory is dropped with its content, and an undo cannot restore the content
            // without the directory.
            if in_lost
                || (is_new && file.original.map_or(file.node, node_of) == NodeKind::Directory)
            {
                lost.insert(&file.path);
                told.push(file.path.clone());
                continue;
            }
            let (copied, hides) = match &file.kind {
                FileDifference::Added | FileDifference::Modified => (true, false),
                FileDifference::Renamed { modified, .. } => (*modified, true),
                FileDifference::Deleted => (false, true),
                FileDifference::Mode => (false, false),
            };
            if copied {
                let Ok(content) = changes.overlay.open_file(&file.path) else {
                    lost.insert(&file.path);
                    told.push(file.path.clone());
                    continue;
                };
                self.copy_content(
                    &file.path,
                    content,
                    &self.entry.dropped_path(record.given_up.len()),
                )?;
            }
            self.note_before(file, record)?;
            record.given_up.push(GivenUp {
                path: to_any_path(&file.path),
                file: is_new.then_some(file.mode_after.unwrap_or(0o644)),
                copied,
                below: file.below.as_deref().map(to_any_path),
                hides,
            });
        }
        Ok(told)
    }

    /// Writes the merged text of a file for its step, and stores the agent's `own` version for the overlay
    /// after an undo. Returns the merged text.
    fn write_merged(
        &mut self,
        file: &FileChange,
        own: File,
        at: usize,
    ) -> Result<File, ChangesError> {
        let Changes { overlay, workspace, stop, .. } = self.changes;
        let text = content::merge_versions(overlay, workspace, file, stop)?;
        let Some(text) = text else {
            return Err(ChangesError::ChangedMeanwhile { path: file.path.clone() });
        };
        let to = self.entry.merged_path(at);
        let write = || -> std::io::Result<()> {
            let mut copy = create_file(&to)?;
            copy.write_all(&text)?;
            copy.sync_all()
        };
        write().map_err(ChangesError::from_io("write", &to))?;
        self.copy_content(&file.path, own, &self.entry.overlay_copy_path(at))?;
        File::open(&to).map_err(ChangesError::from_io("read", &to))
    }

    /// Adds the steps that write the agent's version of one file.
    fn add_arrival(
        &mut self,
        file: &FileChange,
        going: &BTreeMap<PathBuf, RemovalKind>,
        theirs: &impl Fn(&Path) -> bool,
    ) -> Result<(), ChangesError> {
        let at = self.steps.len();
        let path = to_any_path(&file.path);
        let moved = match &file.kind {
            FileDifference::Renamed { from, modified: false } => self.stages.get(from),
            FileDifference::Added
            | FileDifference::Modified
            | FileDifference::Deleted
            | FileDifference::Mode
            | FileDifference::Renamed { .. } => None,
        };
        if let Some((stage, before)) = moved {
            let step = ApplyStep::Place { stage: *stage, before: *before, to: path };
            self.steps.push(step);
            return Ok(());
        }
        // The state before this step: a path that an earlier step vacated is free.
        let left = going.contains_key(&file.place);
        let workspace = &self.changes.workspace;
        let now = workspace
            .look_at(&file.place)
            .map_err(ChangesError::from_io("look at", &file.place))?;
        let now = now.filter(|_| !left);
        if file.node == NodeKind::Directory {
            if now.is_none() {
                self.steps.push(ApplyStep::MakeDir { path });
            }
            return Ok(());
        }
        let merged = file.merges && !theirs(&file.path);
        let own = self.changes.overlay.open_file(&file.path);
        let own = own.map_err(ChangesError::from_io("open", &file.path))?;
        let content = if merged { self.write_merged(file, own, at)? } else { own };
        let digest = content::digest_until(&content, &file.path, &self.changes.stop)?.to_string();
        let before = match now {
            None => None,
            Some(_) => self.keep_original(&file.place, at)?,
        };
        let was = file.original.map(|original| original.mode);
        let mode = match (&before, was) {
            // The workspace's permissions stay, unless the agent changed them.
            (Some((state, _)), Some(was)) if file.mode_after == Some(was) => state.mode,
            _ => file.mode_after.unwrap_or(0o644),
        };
        let step = ApplyStep::Put { path, before, mode, digest, merged };
        self.steps.push(step);
        if merged {
            self.merged.push(file.path.clone());
        }
        Ok(())
    }
}
