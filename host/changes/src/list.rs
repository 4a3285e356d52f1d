//! From what the overlay tells to what a person decides about: one entry a file, with what is known
//! of it in the workspace as it is now.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use belljar_sandbox::{Change, ChangeKind, Digest, Original, Overlay, is_protected};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::change::{Changes, Conflict, FileChange, FileDifference, Node};
use crate::workspace::{State, Workspace};
use crate::{ChangesError, later, plan, text};

/// Changes that are listed. An overlay holds fewer names, but a directory that was renamed or deleted
/// may hold any number.
const MOST: usize = 200_000;

/// Directories in directories that are looked into.
const DEEPEST: usize = 256;

pub(crate) fn list(overlay: &Overlay) -> Result<Changes, ChangesError> {
    let workspace = Workspace::new(Arc::clone(overlay.lower()));
    let told = overlay.changes();
    let mut lister = Lister {
        overlay,
        workspace: &workspace,
        changed: told.iter().map(|change| change.path.clone()).collect(),
        vacated: told.iter().filter_map(|change| renamed_from(&change.kind)).collect(),
        dirs: BTreeMap::new(),
        files: Vec::new(),
    };
    for change in &told {
        lister.add(change)?;
    }
    let mut files = lister.files;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    later::mark(&mut files, overlay, &workspace);
    plan::spread(&mut files);
    Ok(Changes { files, overlay: overlay.clone(), workspace })
}

fn renamed_from(kind: &ChangeKind) -> Option<PathBuf> {
    match kind {
        ChangeKind::Renamed { from, .. } => Some(from.clone()),
        ChangeKind::Added | ChangeKind::Modified | ChangeKind::Deleted | ChangeKind::Mode => None,
    }
}

struct Lister<'a> {
    overlay: &'a Overlay,
    workspace: &'a Workspace,
    /// Paths that the overlay told of.
    changed: HashSet<PathBuf>,
    /// Places in the workspace whose content is seen elsewhere.
    vacated: HashSet<PathBuf>,
    /// Directories that are new or renamed, with their places in the workspace.
    dirs: BTreeMap<PathBuf, Option<PathBuf>>,
    files: Vec<FileChange>,
}

/// The result of a comparison with the workspace.
#[derive(Default)]
struct Checked {
    conflict: Option<Conflict>,
    merges: bool,
    /// The thing that stands there now.
    now: Option<State>,
}

impl Lister<'_> {
    fn add(&mut self, change: &Change) -> Result<(), ChangesError> {
        let place = self.place(&change.path);
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
            node: if change.directory { Node::Directory } else { Node::File },
            binary: false,
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
        let vacant = self.is_vacant(&file, &place)?;
        let at = self.files.len();
        match (&file.kind, file.node) {
            (FileDifference::Added, Node::Directory) => {
                self.dirs.insert(file.path.clone(), None);
                self.files.push(file);
            }
            (FileDifference::Renamed { from, .. }, Node::Directory) => {
                let from = from.clone();
                file.conflict = self.check_dir(&file)?;
                self.dirs.insert(file.path.clone(), Some(from.clone()));
                let (path, part_of) = (file.path.clone(), file.path.clone());
                self.files.push(file);
                self.moved(&path, &from, &part_of, 0)?;
            }
            (FileDifference::Deleted, Node::Directory) => {
                let path = file.path.clone();
                let hidden = file.original.and_then(|original| original.hidden);
                self.files.push(file);
                let inside = self.deleted(&path, &place, &path, hidden, 0)?;
                self.set_conflict(at, inside);
            }
            _ => {
                let checked = self.check(&file)?;
                file.conflict = checked.conflict;
                file.merges = checked.merges;
                self.count(&mut file, checked.now)?;
                self.files.push(file);
            }
        }
        self.set_conflict(at, vacant);
        let Some(file) = self.files.get_mut(at) else { return Ok(()) };
        let places = [Some(&file.path), file.below.as_ref()];
        if places.into_iter().flatten().any(|path| is_protected_path(path)) {
            file.conflict = Some(Conflict::Protected);
        }
        file.runs_later = later::by_change(file, self.overlay.path());
        Ok(())
    }

    fn set_conflict(&mut self, at: usize, conflict: Option<Conflict>) {
        if let Some(file) = self.files.get_mut(at) {
            file.conflict = file.conflict.take().or(conflict);
        }
    }

    /// The place in the workspace as it is now of a path as the agent sees it.
    fn place(&self, path: &Path) -> PathBuf {
        let above = path.ancestors().skip(1).find_map(|above| Some((above, self.dirs.get(above)?)));
        match above {
            Some((above, Some(from))) => {
                path.strip_prefix(above).map_or_else(|_| path.to_owned(), |rest| from.join(rest))
            }
            Some((_, None)) | None => path.to_owned(),
        }
    }

    /// Something in the way of what comes to a path.
    fn is_vacant(&self, file: &FileChange, place: &Path) -> Result<Option<Conflict>, ChangesError> {
        let comes = matches!(file.kind, FileDifference::Added | FileDifference::Renamed { .. });
        // What was deleted at the same path was told just before, with what it held.
        let below = self.files.iter().rev().take_while(|it| it.path.starts_with(&file.path));
        let goes =
            below.into_iter().any(|it| it.path == file.path && it.kind == FileDifference::Deleted);
        if !comes || goes || self.vacated.contains(place) {
            return Ok(None);
        }
        let Some(now) = self.look(place)? else { return self.lacks_dir(&file.path, place) };
        let same = match (&file.kind, file.node, now.node()) {
            (FileDifference::Added, Node::Directory, Node::Directory) => true,
            (FileDifference::Added, Node::File, Node::File) => {
                self.digest_below(place)? == Some(self.digest_after(&file.path)?)
            }
            _ => false,
        };
        Ok((!same).then_some(Conflict::InTheWay))
    }

    /// Whether there is no directory in the workspace for something to come to.
    fn lacks_dir(&self, path: &Path, place: &Path) -> Result<Option<Conflict>, ChangesError> {
        let (above, dir) = (path.parent().unwrap_or(path), place.parent().unwrap_or(place));
        if self.dirs.contains_key(above) || dir.as_os_str().is_empty() {
            return Ok(None);
        }
        let now = self.look(dir)?.map(|now| now.node());
        Ok((now != Some(Node::Directory)).then_some(Conflict::NoDirectory))
    }

    fn check_dir(&self, file: &FileChange) -> Result<Option<Conflict>, ChangesError> {
        let below = file.below.as_deref().unwrap_or(&file.path);
        let Some(now) = self.look(below)? else { return Ok(Some(Conflict::Gone)) };
        let same = file.original.is_none_or(|original| now.inode == original.identity.1);
        let stays = now.node() == Node::Directory && same;
        Ok((!stays).then_some(Conflict::OtherKind))
    }

    /// Compares a file or link with the workspace.
    fn check(&self, file: &FileChange) -> Result<Checked, ChangesError> {
        let Some(below) = &file.below else { return Ok(Checked::default()) };
        let Some(now) = self.look(below)? else {
            let conflict = match file.kind {
                FileDifference::Deleted => None,
                FileDifference::Added
                | FileDifference::Modified
                | FileDifference::Mode
                | FileDifference::Renamed { .. } => {
                    self.lacks_dir(&file.path, &file.place)?.or(Some(Conflict::Gone))
                }
            };
            return Ok(Checked { conflict, ..Checked::default() });
        };
        let told = |conflict| Ok(Checked { conflict, merges: false, now: Some(now) });
        let was = file.original.as_ref();
        match now.node() {
            Node::Special => return told(Some(Conflict::Special)),
            Node::Directory => return told(Some(Conflict::OtherKind)),
            Node::File | Node::Link => {}
        }
        let content = match &file.kind {
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
        if now.node() == Node::Link {
            return told(Some(Conflict::OtherKind));
        }
        let digest = self.digest_below(below)?;
        let known = was.and_then(|was| was.digest);
        if digest.is_some() && digest == known {
            return told(None);
        }
        if file.kind == FileDifference::Deleted {
            return told(Some(Conflict::Changed));
        }
        if digest == Some(self.digest_after(&file.path)?) {
            return told(None);
        }
        let merged = merged(self.overlay, self.workspace, file)?;
        let conflict = merged.is_none().then_some(Conflict::Changed);
        Ok(Checked { merges: merged.is_some(), conflict, now: Some(now) })
    }

    /// Counts bytes and lines.
    fn count(&self, file: &mut FileChange, now: Option<State>) -> Result<(), ChangesError> {
        if let Some(now) = now {
            file.node = now.node();
            file.size_before = Some(now.size);
            file.mode_before = Some(now.mode);
        }
        let content = match &file.kind {
            FileDifference::Renamed { modified: false, .. } | FileDifference::Mode => {
                file.size_after = file.size_before;
                return Ok(());
            }
            FileDifference::Deleted if file.node != Node::File => return Ok(()),
            FileDifference::Deleted
            | FileDifference::Added
            | FileDifference::Modified
            | FileDifference::Renamed { .. } => contents(self.overlay, self.workspace, file)?,
        };
        if file.kind != FileDifference::Deleted {
            // What replaces a link is a file.
            file.node = Node::File;
        }
        file.size_after = content.size_after;
        match content.texts {
            Some((before, after)) => (file.added, file.removed) = text::count(&before, &after),
            None => file.binary = true,
        }
        Ok(())
    }

    /// Lists what a directory holds that was renamed, other than what was told apart.
    fn moved(
        &mut self,
        path: &Path,
        from: &Path,
        part_of: &Path,
        depth: usize,
    ) -> Result<(), ChangesError> {
        let names = match self.overlay.list(path, MOST as u64) {
            Ok(names) if depth < DEEPEST => names,
            Ok(_) => return Err(ChangesError::TooMany(MOST)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(ChangesError::io("list", path)(error)),
        };
        for (name, directory) in names {
            let (path, from) = (path.join(&name), from.join(&name));
            if self.changed.contains(&path) {
                continue;
            }
            if directory {
                self.moved(&path, &from, part_of, depth + 1)?;
                continue;
            }
            let Some(now) = self.look(&from)? else { continue };
            let kind = FileDifference::Renamed { from: from.clone(), modified: false };
            self.part(path, from, kind, now, part_of)?;
        }
        Ok(())
    }

    /// Lists what a directory holds that was deleted. Gives what the agent has not seen of it.
    fn deleted(
        &mut self,
        path: &Path,
        below: &Path,
        part_of: &Path,
        hidden: Option<SystemTime>,
        depth: usize,
    ) -> Result<Option<Conflict>, ChangesError> {
        let Some(now) = self.look(below)? else { return Ok(None) };
        if now.node() != Node::Directory {
            return Ok(Some(Conflict::OtherKind));
        }
        if depth >= DEEPEST {
            return Err(ChangesError::TooMany(MOST));
        }
        let mut inside = None;
        let names = self.workspace.names(below).map_err(ChangesError::io("list", below))?;
        for name in names {
            let (path, below) = (path.join(&name), below.join(&name));
            let Some(now) = self.look(&below)? else { continue };
            if self.vacated.contains(&below) {
                continue;
            }
            let new = hidden.is_none_or(|hidden| changed(&now) >= Some(hidden));
            let found = match now.node() {
                _ if is_protected_path(Path::new(&name)) => Some(Conflict::Protected),
                Node::Directory => self.deleted(&path, &below, part_of, hidden, depth + 1)?,
                Node::Special => Some(Conflict::Special),
                Node::File | Node::Link if new => Some(Conflict::NewInside(below.clone())),
                Node::File | Node::Link => None,
            };
            inside = inside.or(found);
            if now.node() != Node::Directory {
                self.part(path, below, FileDifference::Deleted, now, part_of)?;
            }
        }
        Ok(inside)
    }

    /// Lists one thing that is renamed or deleted with its directory.
    fn part(
        &mut self,
        path: PathBuf,
        below: PathBuf,
        kind: FileDifference,
        now: State,
        part_of: &Path,
    ) -> Result<(), ChangesError> {
        if self.files.len() >= MOST {
            return Err(ChangesError::TooMany(MOST));
        }
        let mode_after = (kind != FileDifference::Deleted).then_some(now.mode);
        let mut file = FileChange {
            path,
            kind,
            node: now.node(),
            binary: false,
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
        self.count(&mut file, Some(now))?;
        file.runs_later = later::by_change(&file, self.overlay.path());
        self.files.push(file);
        Ok(())
    }

    fn look(&self, path: &Path) -> Result<Option<State>, ChangesError> {
        self.workspace.look(path).map_err(ChangesError::io("look at", path))
    }

    fn digest_below(&self, path: &Path) -> Result<Option<Digest>, ChangesError> {
        match self.workspace.open(path) {
            Ok((file, _)) => digest(&file).map(Some).map_err(ChangesError::io("read", path)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP) => Ok(None),
            Err(errno) => Err(ChangesError::io("open", path)(errno)),
        }
    }

    fn digest_after(&self, path: &Path) -> Result<Digest, ChangesError> {
        let file = self.overlay.open_file(path).map_err(ChangesError::io("open", path))?;
        digest(&file).map_err(ChangesError::io("read", path))
    }
}

/// When anything of it changed last.
fn changed(state: &State) -> Option<SystemTime> {
    let (seconds, nanoseconds) = state.changed;
    let whole = Duration::from_secs(u64::try_from(seconds).ok()?);
    Some(SystemTime::UNIX_EPOCH + whole + Duration::from_nanos(nanoseconds.into()))
}

/// Whether a part of a path has a protected name.
pub(crate) fn is_protected_path(path: &Path) -> bool {
    path.iter().any(|name| is_protected(&name.to_string_lossy()))
}

/// Both contents of a file.
pub(crate) struct Contents {
    pub(crate) size_after: Option<u64>,
    /// Both as texts; `None` = one is none, or is too large for one.
    pub(crate) texts: Option<(Vec<u8>, Vec<u8>)>,
}

/// The content that a change begins with, open. Where the workspace changed too, it is what the
/// agent began with, if that is known.
pub(crate) fn before(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
) -> Result<Option<File>, ChangesError> {
    let Some(below) = &file.below else { return Ok(None) };
    if (file.merges || file.conflict == Some(Conflict::Changed))
        && let Some(base) = base(overlay, file.original.as_ref())
    {
        return Ok(Some(base));
    }
    match workspace.open(below) {
        Ok((file, _)) => Ok(Some(file)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP) => Ok(None),
        Err(errno) => Err(ChangesError::io("open", below)(errno)),
    }
}

/// The content that a change leads to, open.
pub(crate) fn after(overlay: &Overlay, file: &FileChange) -> Result<Option<File>, ChangesError> {
    match file.kind {
        FileDifference::Deleted => Ok(None),
        FileDifference::Added
        | FileDifference::Modified
        | FileDifference::Renamed { .. }
        | FileDifference::Mode => {
            overlay.open_file(&file.path).map(Some).map_err(ChangesError::io("open", &file.path))
        }
    }
}

pub(crate) fn contents(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
) -> Result<Contents, ChangesError> {
    let failed = |error: io::Error| ChangesError::io("read", &file.path)(error);
    let (before, after) = (before(overlay, workspace, file)?, after(overlay, file)?);
    let size =
        |file: &Option<File>| file.as_ref().map(|file| Ok(file.metadata()?.len())).transpose();
    let size_after = size(&after).map_err(failed)?;
    let text = |file: Option<File>| file.map_or(Ok(Some(Vec::new())), read_text);
    let texts = text(before).and_then(|before| Ok(before.zip(text(after)?))).map_err(failed)?;
    Ok(Contents { size_after, texts })
}

fn base(overlay: &Overlay, original: Option<&Original>) -> Option<File> {
    overlay.base(&original?.digest?).ok()
}

/// Both versions as one, if that is possible.
pub(crate) fn merged(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
) -> Result<Option<Vec<u8>>, ChangesError> {
    let versions = versions(overlay, workspace, file)?;
    Ok(versions.and_then(|[base, ours, theirs]| text::merge(&base, &ours, &theirs)))
}

/// A text as the agent began with it, as it is in the workspace, and as the agent has it; `None` = one
/// is not known, or no text.
pub(crate) fn versions(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
) -> Result<Option<[Vec<u8>; 3]>, ChangesError> {
    let failed = |error: io::Error| ChangesError::io("read", &file.path)(error);
    let (Some(below), Some(base)) = (&file.below, base(overlay, file.original.as_ref())) else {
        return Ok(None);
    };
    let Ok((ours, _)) = workspace.open(below) else { return Ok(None) };
    let Some(theirs) = after(overlay, file)? else { return Ok(None) };
    let mut texts = Vec::new();
    for file in [base, ours, theirs] {
        match read_text(file).map_err(failed)? {
            Some(text) => texts.push(text),
            None => return Ok(None),
        }
    }
    Ok(texts.try_into().ok())
}

/// A file as a text; `None` = it is none, or too large for one.
fn read_text(file: File) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    file.take(text::MAX_TEXT + 1).read_to_end(&mut content)?;
    let fits = content.len() as u64 <= text::MAX_TEXT && !text::is_binary(&content);
    Ok(fits.then_some(content))
}

/// The SHA-256 of a file.
pub(crate) fn digest(mut file: &File) -> io::Result<Digest> {
    let mut sum = Sha256::new();
    let mut part = vec![0; 64 << 10];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(Digest::from_bytes(sum.finalize().into())),
            read => sum.update(part.get(..read).unwrap_or_default()),
        }
    }
}
