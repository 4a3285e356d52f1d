//! Converts an overlay's differences to a list for a person: one entry per file, with its present state in
//! the workspace.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use belljar_policy::is_protected;
use belljar_work::StopSignal;

use crate::{Change, ChangeKind, Digest, Overlay};
use rustix::io::Errno;

use crate::changes::change::{ChangeConflict, Changes, FileChange, FileDifference, NodeKind};
use crate::changes::content::{digest_until, merge_versions, open_result};
use crate::changes::workspace::{FileState, Workspace};
use crate::changes::{ChangesError, later, plan};

/// The most listed changes. An overlay has fewer names, but a renamed or deleted directory may contain any
/// number.
const MOST: usize = 200_000;

/// The deepest nesting of directories that are listed.
const DEEPEST: usize = 256;

/// How much is determined about changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListDepth {
    /// Only their names; no file is read.
    Names,
    /// Also their conflicts.
    Conflicts,
}

/// Lists the changes of an overlay for a person. Ends early once `stop` is raised.
pub(crate) fn list_changes(
    overlay: &Overlay,
    depth: ListDepth,
    stop: &StopSignal,
) -> Result<Changes, ChangesError> {
    let workspace = Workspace::new(Arc::clone(overlay.lower_dir()));
    let told = overlay.list_changes();
    let mut lister = ChangeLister {
        overlay,
        workspace: &workspace,
        changed: told.iter().map(|change| change.path.clone()).collect(),
        vacated: told.iter().filter_map(|change| renamed_from(&change.kind)).collect(),
        dirs: BTreeMap::new(),
        files: Vec::new(),
        depth,
        stop,
    };
    for change in &told {
        lister.add_change(change)?;
    }
    let mut files = lister.files;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    later::mark_later(&mut files, overlay, &workspace, stop)?;
    plan::spread_conflicts(&mut files, stop)?;
    Ok(Changes { files, overlay: overlay.clone(), workspace, stop: stop.clone() })
}

/// The former path of a renamed object.
fn renamed_from(kind: &ChangeKind) -> Option<PathBuf> {
    match kind {
        ChangeKind::Renamed { from, .. } => Some(from.clone()),
        ChangeKind::Added | ChangeKind::Modified | ChangeKind::Deleted | ChangeKind::Mode => None,
    }
}

struct ChangeLister<'a> {
    overlay: &'a Overlay,
    workspace: &'a Workspace,
    /// The paths that the overlay lists as changed.
    changed: HashSet<PathBuf>,
    /// Paths in the workspace whose content is visible at another path.
    vacated: HashSet<PathBuf>,
    /// New or renamed directories, with their paths in the workspace.
    dirs: BTreeMap<PathBuf, Option<PathBuf>>,
    files: Vec<FileChange>,
    depth: ListDepth,
    stop: &'a StopSignal,
}

/// The result of a comparison with the workspace.
#[derive(Default)]
struct WorkspaceCheck {
    conflict: Option<ChangeConflict>,
    merges: bool,
    /// The present state in the workspace.
    now: Option<FileState>,
}

impl ChangeLister<'_> {
    /// Adds one difference of the overlay as an entry of the list, with conflicts.
    fn add_change(&mut self, change: &Change) -> Result<(), ChangesError> {
        self.stop.check_raised()?;
        let place = self.workspace_place(&change.path);
        let (kind, below) = match &change.kind {
            ChangeKind::Added => (FileDifference::Added, None),
            ChangeKind::Modified => (FileDifference::Modified, Some(place.clone())),
            ChangeKind::Deleted => (FileDifference::Deleted, Some(place.clone())),
            ChangeKind::Mode => (FileDifference::Mode, Some(place.clone())),
            ChangeKind::Renamed { from, modified } => (
                FileDifference::Renamed { from: from.clone(), modified: *modified },
                Some(from.clone()),
            ),
        };
        let mut file = FileChange {
            path: change.path.clone(),
            node: if change.directory { NodeKind::Directory } else { NodeKind::File },
            binary: false,
            counted: false,
            replaced: false,
            added: 0,
            removed: 0,
            size_before: None,
            size_after: None,
            mode_before: change.original.map(|original| original.mode),
            mode_after: (kind != FileDifference::Deleted).then_some(change.mode),
            runs_later: None,
            conflict: None,
            merges: false,
            part_of: None,
            below,
            place: place.clone(),
            original: change.original,
            kind,
        };
        let vacant = match self.depth {
            ListDepth::Names => None,
            ListDepth::Conflicts => self.is_vacant(&file, &place)?,
        };
        let at = self.files.len();
        match (&file.kind, file.node) {
            (FileDifference::Added, NodeKind::Directory) => {
                self.dirs.insert(file.path.clone(), None);
                self.files.push(file);
            }
            (FileDifference::Renamed { from, .. }, NodeKind::Directory) => {
                let from = from.clone();
                file.conflict = self.check_dir(&file)?;
                self.dirs.insert(file.path.clone(), Some(from.clone()));
                let (path, part_of) = (file.path.clone(), file.path.clone());
                self.files.push(file);
                self.list_moved(&path, &from, &part_of, 0)?;
            }
            (FileDifference::Deleted, NodeKind::Directory) => {
                let path = file.path.clone();
                let hidden = file.original.and_then(|original| original.hidden);
                self.files.push(file);
                let inside = self.list_deleted(&path, &place, &path, hidden, 0)?;
                self.set_conflict(at, inside);
            }
            _ => {
                let checked = self.check_workspace(&file)?;
                file.conflict = checked.conflict;
                file.merges = checked.merges;
                self.measure_file(&mut file, checked.now)?;
                self.files.push(file);
            }
        }
        self.set_conflict(at, vacant);
        let Some(file) = self.files.get_mut(at) else { return Ok(()) };
        let places = [Some(&file.path), file.below.as_ref()];
        if places.into_iter().flatten().any(|path| is_protected_path(path)) {
            file.conflict = Some(ChangeConflict::Protected);
        }
        file.runs_later = later::by_change(file, self.overlay.path());
        Ok(())
    }

    fn set_conflict(&mut self, at: usize, conflict: Option<ChangeConflict>) {
        if let Some(file) = self.files.get_mut(at) {
            file.conflict = file.conflict.take().or(conflict);
        }
    }

    /// The present path in the workspace of a path in the agent's view.
    fn workspace_place(&self, path: &Path) -> PathBuf {
        let above = path.ancestors().skip(1).find_map(|above| Some((above, self.dirs.get(above)?)));
        match above {
            Some((above, Some(from))) => {
                path.strip_prefix(above).map_or_else(|_| path.to_owned(), |rest| from.join(rest))
            }
            Some((_, None)) | None => path.to_owned(),
        }
    }

    /// Checks that no other file of the workspace has the path of a new or renamed one.
    fn is_vacant(
        &self,
        file: &FileChange,
        place: &Path,
    ) -> Result<Option<ChangeConflict>, ChangesError> {
        let comes = matches!(file.kind, FileDifference::Added | FileDifference::Renamed { .. });
        // A deletion at the same path comes just before, with its content.
        let below = self.files.iter().rev().take_while(|it| it.path.starts_with(&file.path));
        let goes =
            below.into_iter().any(|it| it.path == file.path && it.kind == FileDifference::Deleted);
        if !comes || goes || self.vacated.contains(place) {
            return Ok(None);
        }
        let Some(now) = self.look_at(place)? else { return self.lacks_dir(&file.path, place) };
        let same = match (&file.kind, file.node, now.node_kind()) {
            (FileDifference::Added, NodeKind::Directory, NodeKind::Directory) => true,
            (FileDifference::Added, NodeKind::File, NodeKind::File) => {
                self.digest_below(place)? == Some(self.digest_after(&file.path)?)
            }
            _ => false,
        };
        Ok((!same).then_some(ChangeConflict::InTheWay))
    }

    /// Checks that the workspace has a directory for a new or renamed file.
    fn lacks_dir(&self, path: &Path, place: &Path) -> Result<Option<ChangeConflict>, ChangesError> {
        let (above, dir) = (path.parent().unwrap_or(path), place.parent().unwrap_or(place));
        if self.dirs.contains_key(above) || dir.as_os_str().is_empty() {
            return Ok(None);
        }
        let now = self.look_at(dir)?.map(|now| now.node_kind());
        Ok((now != Some(NodeKind::Directory)).then_some(ChangeConflict::NoDirectory))
    }

    /// The conflict of a directory's change with the workspace: the directory is gone or replaced. `None` = none.
    fn check_dir(&self, file: &FileChange) -> Result<Option<ChangeConflict>, ChangesError> {
        let below = file.below.as_deref().unwrap_or(&file.path);
        let Some(now) = self.look_at(below)? else { return Ok(Some(ChangeConflict::Gone)) };
        let same = file.original.is_none_or(|original| now.inode == original.identity.1);
        let stays = now.node_kind() == NodeKind::Directory && same;
        Ok((!stays).then_some(ChangeConflict::OtherKind))
    }

    /// Compares a file or link with the workspace.
    fn check_workspace(&self, file: &FileChange) -> Result<WorkspaceCheck, ChangesError> {
        let Some(below) = &file.below else { return Ok(WorkspaceCheck::default()) };
        let Some(now) = self.look_at(below)? else {
            let conflict = match file.kind {
                FileDifference::Deleted => None,
                FileDifference::Added
                | FileDifference::Modified
                | FileDifference::Mode
                | FileDifference::Renamed { .. } => {
                    self.lacks_dir(&file.path, &file.place)?.or(Some(ChangeConflict::Gone))
                }
            };
            return Ok(WorkspaceCheck { conflict, ..WorkspaceCheck::default() });
        };
        let told = |conflict| Ok(WorkspaceCheck { conflict, merges: false, now: Some(now) });
        let was = file.original.as_ref();
        match now.node_kind() {
            NodeKind::Special => return told(Some(ChangeConflict::Special)),
            NodeKind::Directory => return told(Some(ChangeConflict::OtherKind)),
            NodeKind::File | NodeKind::Link => {}
        }
        let content = match &file.kind {
            _ if self.depth == ListDepth::Names => false,
            FileDifference::Modified
            | FileDifference::Deleted
            | FileDifference::Renamed { modified: true, .. } => true,
            FileDifference::Renamed { modified: false, .. }
            | FileDifference::Mode
            | FileDifference::Added => false,
        };
        if !content || was.is_some_and(|was| now.is_as(was)) {
            return told(None);
        }
        if now.node_kind() == NodeKind::Link {
            return told(Some(ChangeConflict::OtherKind));
        }
        let digest = self.digest_below(below)?;
        let known = was.and_then(|was| was.digest);
        if digest.is_some() && digest == known {
            return told(None);
        }
        if file.kind == FileDifference::Deleted {
            return told(Some(ChangeConflict::Changed));
        }
        if digest == Some(self.digest_after(&file.path)?) {
            return told(None);
        }
        let merged = merge_versions(self.overlay, self.workspace, file, self.stop)?;
        let conflict = merged.is_none().then_some(ChangeConflict::Changed);
        Ok(WorkspaceCheck { merges: merged.is_some(), conflict, now: Some(now) })
    }

    /// Records kind, size and permissions.
    fn measure_file(
        &self,
        file: &mut FileChange,
        now: Option<FileState>,
    ) -> Result<(), ChangesError> {
        if let Some(now) = now {
            file.node = now.node_kind();
            file.size_before = Some(now.size);
            file.mode_before = Some(now.mode);
        }
        match &file.kind {
            FileDifference::Renamed { modified: false, .. } | FileDifference::Mode => {
                file.size_after = file.size_before;
            }
            FileDifference::Deleted => {}
            FileDifference::Added | FileDifference::Modified | FileDifference::Renamed { .. } => {
                // A link is always replaced by a file.
                file.node = NodeKind::File;
                let after = open_result(self.overlay, file)?;
                let size = after.map(|file| file.metadata().map(|meta| meta.len())).transpose();
                file.size_after = size.map_err(ChangesError::from_io("read", &file.path))?;
            }
        }
        Ok(())
    }

    /// Lists the content of a renamed directory, except for separate changes.
    fn list_moved(
        &mut self,
        path: &Path,
        from: &Path,
        part_of: &Path,
        depth: usize,
    ) -> Result<(), ChangesError> {
        self.stop.check_raised()?;
        let names = match self.overlay.list_dir(path, MOST as u64) {
            Ok(names) if depth < DEEPEST => names,
            Ok(_) => return Err(ChangesError::TooMany(MOST)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(ChangesError::from_io("list", path)(error)),
        };
        for (name, directory) in names {
            let (path, from) = (path.join(&name), from.join(&name));
            if self.changed.contains(&path) {
                continue;
            }
            if directory {
                self.list_moved(&path, &from, part_of, depth + 1)?;
                continue;
            }
            let Some(now) = self.look_at(&from)? else { continue };
            let kind = FileDifference::Renamed { from: from.clone(), modified: false };
            self.list_part(path, from, kind, now, part_of)?;
        }
        Ok(())
    }

    /// Lists the content of a deleted directory. Returns the parts that the agent has not seen.
    fn list_deleted(
        &mut self,
        path: &Path,
        below: &Path,
        part_of: &Path,
        hidden: Option<SystemTime>,
        depth: usize,
    ) -> Result<Option<ChangeConflict>, ChangesError> {
        self.stop.check_raised()?;
        let Some(now) = self.look_at(below)? else { return Ok(None) };
        if now.node_kind() != NodeKind::Directory {
            return Ok(Some(ChangeConflict::OtherKind));
        }
        if depth >= DEEPEST {
            return Err(ChangesError::TooMany(MOST));
        }
        let mut inside = None;
        let names =
            self.workspace.list_names(below).map_err(ChangesError::from_io("list", below))?;
        for name in names {
            let (path, below) = (path.join(&name), below.join(&name));
            let Some(now) = self.look_at(&below)? else { continue };
            if self.vacated.contains(&below) {
                continue;
            }
            let new = hidden.is_none_or(|hidden| last_change(&now) >= Some(hidden));
            let found = match now.node_kind() {
                _ if is_protected_path(Path::new(&name)) => Some(ChangeConflict::Protected),
                NodeKind::Directory => {
                    self.list_deleted(&path, &below, part_of, hidden, depth + 1)?
                }
                NodeKind::Special => Some(ChangeConflict::Special),
                NodeKind::File | NodeKind::Link if new => {
                    Some(ChangeConflict::NewInside(below.clone()))
                }
                NodeKind::File | NodeKind::Link => None,
            };
            inside = inside.or(found);
            if now.node_kind() != NodeKind::Directory {
                self.list_part(path, below, FileDifference::Deleted, now, part_of)?;
            }
        }
        Ok(inside)
    }

    /// Lists a file that is renamed or deleted together with its directory.
    fn list_part(
        &mut self,
        path: PathBuf,
        below: PathBuf,
        kind: FileDifference,
        now: FileState,
        part_of: &Path,
    ) -> Result<(), ChangesError> {
        if self.files.len() >= MOST {
            return Err(ChangesError::TooMany(MOST));
        }
        let mode_after = (kind != FileDifference::Deleted).then_some(now.mode);
        let mut file = FileChange {
            path,
            kind,
            node: now.node_kind(),
            binary: false,
            counted: false,
            replaced: false,
            added: 0,
            removed: 0,
            size_before: Some(now.size),
            size_after: None,
            mode_before: Some(now.mode),
            mode_after,
            runs_later: None,
            conflict: None,
            merges: false,
            part_of: Some(part_of.to_owned()),
            place: below.clone(),
            below: Some(below),
            original: None,
        };
        self.measure_file(&mut file, Some(now))?;
        file.runs_later = later::by_change(&file, self.overlay.path());
        self.files.push(file);
        Ok(())
    }

    fn look_at(&self, path: &Path) -> Result<Option<FileState>, ChangesError> {
        self.workspace.look_at(path).map_err(ChangesError::from_io("look at", path))
    }

    /// The digest of a file in the lower directory; `None` = no file.
    fn digest_below(&self, path: &Path) -> Result<Option<Digest>, ChangesError> {
        match self.workspace.open_file(path) {
            Ok((file, _)) => digest_until(&file, path, self.stop).map(Some),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP) => Ok(None),
            Err(errno) => Err(ChangesError::from_io("open", path)(errno)),
        }
    }

    fn digest_after(&self, path: &Path) -> Result<Digest, ChangesError> {
        let file = self.overlay.open_file(path).map_err(ChangesError::from_io("open", path))?;
        digest_until(&file, path, self.stop)
    }
}

/// The time of the last change of the content or status.
fn last_change(state: &FileState) -> Option<SystemTime> {
    let (seconds, nanoseconds) = state.changed;
    let whole = Duration::from_secs(u64::try_from(seconds).ok()?);
    Some(SystemTime::UNIX_EPOCH + whole + Duration::from_nanos(nanoseconds.into()))
}

/// Whether a part of a path has a protected name.
pub(crate) fn is_protected_path(path: &Path) -> bool {
    path.iter().any(|name| is_protected(&name.to_string_lossy()))
}
