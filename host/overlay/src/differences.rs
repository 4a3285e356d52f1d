//! Lists the changes in an overlay for the host. Guests do not see the list.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use super::Overlay;
use super::digests::digest_file;
use super::record::{FileTime, FileTimes, IndexChange, LowerKind, LowerState};
use super::rel::RelPath;
use super::tree::{FileNode, IndexEntry, IndexNode, ROOT};
use super::view::{OverlayView, ReadFile};
use super::way::place_at;
use crate::Digest;

/// A difference between the overlay and the lower directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path in the overlay, as the agent sees it.
    pub path: PathBuf,
    /// What kind of difference it is.
    pub kind: ChangeKind,
    /// Whether the changed object is a directory; for a deletion, whether it was.
    pub directory: bool,
    /// The permissions of the file, for example `0o755`; for a deleted file, as before.
    pub mode: u32,
    /// The lower file before the agent first changed, deleted or moved the file. For a rename, the file at
    /// `from`. `None` = no lower file.
    pub original: Option<OriginalState>,
}

/// The kind of a difference. A directory is listed before its entries; lower entries of a directory that is
/// new, renamed or deleted are not listed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// The object is new.
    Added,
    /// The file's content may differ. A replaced file counts as modified too.
    Modified,
    /// The object is deleted, with everything below.
    Deleted,
    /// The object was moved from another path.
    Renamed {
        /// The path in the lower directory.
        from: PathBuf,
        /// Whether the content may differ too. Changes below a moved directory are listed separately.
        modified: bool,
    },
    /// The permissions differ, and nothing else.
    Mode,
}

/// The state of a lower file at one moment. Before an apply, the host compares this state with the present
/// one, so a file changed by another program is not overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OriginalState {
    /// The device and the inode.
    pub identity: (u64, u64),
    /// The size in bytes.
    pub size: u64,
    /// When the content was last changed.
    pub modified: SystemTime,
    /// When the content or the status was last changed.
    pub changed: SystemTime,
    /// The permissions.
    pub mode: u32,
    /// Whether the object was a directory.
    pub directory: bool,
    /// Whether the object was a link.
    pub link: bool,
    /// For a deletion: when the object was hidden; for a directory, the earliest such time of its entries.
    /// Later changes to the object were never visible to the agent.
    pub hidden: Option<SystemTime>,
    /// The number of hard links. A file with several must not be changed in place, because another link may
    /// be anywhere.
    pub links: u64,
    /// The SHA-256 of the content before the agent changed it. `None`: the file was not changed, has over 256
    /// MiB, or was changed by somebody else before the digest was made.
    pub digest: Option<Digest>,
}

impl Overlay {
    /// All differences from the lower directory, sorted by path. Waits for missing digests, so call it on a
    /// thread that may block.
    pub fn list_changes(&self) -> Vec<Change> {
        self.shared.digests.wait_idle();
        let mut view = self.lock_view();
        view.note_digests();
        view.make_digests();
        let mut changes = ChangeCollector::from_view(&view);
        changes.collect_dir(ROOT, &RelPath::default());
        let mut changes = changes.found;
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        changes
    }

    /// Opens a file for reading, as the agent sees it. Does not follow links, neither the agent's path nor
    /// the lower directory's.
    ///
    /// # Errors
    ///
    /// There is no regular file at the path.
    pub fn open_file(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let rel = RelPath::from_bytes(path.as_ref().as_os_str().as_bytes());
        let rel = rel.ok_or(io::ErrorKind::InvalidInput)?;
        let mut view = self.lock_view();
        let place = place_at(&view, self.lower_dir(), &rel)?;
        let found = view.find_entry(&place)?;
        match view.open_to_read(&place, &found)? {
            ReadFile::Lower(_, file) | ReadFile::Upper(_, file) => Ok(file),
            ReadFile::Special => Err(Errno::INVAL.into()),
        }
    }
}

impl OverlayView<'_> {
    /// Makes digests that are missing because a process was killed before making them.
    fn make_digests(&mut self) {
        let tree = &self.state.tree;
        let origins = tree.iter_files().filter_map(|(_, file)| {
            let origin = file.record.origin.as_ref().filter(|_| file.record.copied)?;
            let missing = tree.find_digest(&origin.seen).is_none();
            missing.then(|| (origin.rel.clone(), origin.seen))
        });
        let origins: Vec<_> = origins.collect();
        for (rel, seen) in origins {
            let opened =
                self.shared.lower.find_parent(&rel).and_then(|(dir, name)| dir.open_entry(name));
            if let Ok((file, _)) = opened
                && let Some(digest) = digest_file(&seen, &file, &self.shared.bases)
            {
                let _ = self.write_down(IndexChange::Digest { seen, digest });
            }
        }
    }
}

/// Collects the changes by walking the index.
struct ChangeCollector<'a> {
    view: &'a OverlayView<'a>,
    /// Lower paths whose objects were moved, so no deletion is listed there.
    moved: HashSet<RelPath>,
    /// Files that are still at their lower path; further names of such a file are new files.
    at_home: HashSet<u64>,
    /// Files already listed as renamed.
    renamed: HashSet<u64>,
    /// The changes collected so far.
    found: Vec<Change>,
}

impl<'a> ChangeCollector<'a> {
    /// Prepares the comparison of an overlay with the lower directory.
    fn from_view(view: &'a OverlayView<'a>) -> Self {
        let mut all = Self {
            view,
            moved: HashSet::new(),
            at_home: HashSet::new(),
            renamed: HashSet::new(),
            found: Vec::new(),
        };
        all.find_moved(ROOT);
        all
    }

    /// Collects the lower paths of all objects that now have another path, and the files that still have a
    /// name at their original path.
    fn find_moved(&mut self, id: u64) {
        let tree = &self.view.state.tree;
        let Some(dir) = tree.find_dir(id) else { return };
        for (name, entry) in &dir.entries {
            let own = dir.origin.as_ref().map(|lower| lower.rel.join(name));
            let from = match entry.node {
                Some(IndexNode::Directory(id)) => {
                    self.find_moved(id);
                    tree.find_dir(id).and_then(|dir| dir.origin.as_ref()).map(|lower| &lower.rel)
                }
                Some(IndexNode::File(id)) => {
                    let origin = tree.find_file(id).and_then(|file| file.record.origin.as_ref());
                    if origin.is_some_and(|origin| Some(&origin.rel) == own.as_ref()) {
                        self.at_home.insert(id);
                    }
                    origin.map(|origin| &origin.rel)
                }
                None => None,
            };
            self.moved.extend(from.filter(|from| own.as_ref() != Some(from)).cloned());
        }
    }

    /// Collects the changes below a directory of the index, by name.
    fn collect_dir(&mut self, id: u64, path: &RelPath) {
        let tree = &self.view.state.tree;
        let Some(dir) = tree.find_dir(id) else { return };
        let mut names: Vec<_> = dir.entries.iter().collect();
        names.sort_by_key(|(name, _)| *name);
        for (name, entry) in names {
            let own = dir.origin.as_ref().map(|lower| lower.rel.join(name));
            let path = path.join(name);
            match entry.node {
                None => self.collect_deleted(&path, own.as_ref(), entry),
                Some(IndexNode::File(id)) => {
                    if let Some(file) = tree.find_file(id) {
                        self.collect_file(path, own.as_ref(), entry, (id, file));
                    }
                }
                Some(IndexNode::Directory(id)) => {
                    self.sub_dir(&path, own.as_ref(), entry, id);
                    self.collect_dir(id, &path);
                }
            }
        }
    }

    /// Adds a deletion, if a lower object is hidden at the path.
    fn collect_deleted(&mut self, path: &RelPath, own: Option<&RelPath>, entry: &IndexEntry) {
        let Some(hidden) = entry.hidden else { return };
        if own.is_none_or(|own| !self.moved.contains(own)) {
            let directory = hidden.kind == LowerKind::Directory;
            self.add_change(path, ChangeKind::Deleted, directory, hidden.mode, Some(&hidden));
            let original = self.found.last_mut().and_then(|told| told.original.as_mut());
            if let Some(original) = original {
                original.hidden = entry.since.map(system_time);
            }
        }
    }

    /// Adds the change of a file: added, changed, or moved.
    fn collect_file(
        &mut self,
        path: RelPath,
        own: Option<&RelPath>,
        entry: &IndexEntry,
        (id, file): (u64, &FileNode),
    ) {
        let FileNode { record, times, .. } = file;
        let origin = record.origin.as_ref().filter(|origin| {
            // A file with several names has one that is the original path or counts as the rename; the
            // others are new files.
            Some(&origin.rel) == own || (!self.at_home.contains(&id) && self.renamed.insert(id))
        });
        let (kind, original) = match origin {
            Some(origin) if Some(&origin.rel) == own => {
                let kind = if record.copied || *times != FileTimes::default() {
                    ChangeKind::Modified
                } else if record.mode != origin.seen.mode {
                    ChangeKind::Mode
                } else {
                    return;
                };
                (kind, Some(&origin.seen))
            }
            Some(origin) => {
                // The former object at the new path counts as deleted, unless it was moved too.
                self.collect_deleted(&path, own, entry);
                let (from, modified) = (host_path(&origin.rel), record.copied);
                (ChangeKind::Renamed { from, modified }, Some(&origin.seen))
            }
            None => match &entry.hidden {
                Some(hidden)
                    if hidden.kind == LowerKind::File
                        && own.is_none_or(|own| !self.moved.contains(own)) =>
                {
                    (ChangeKind::Modified, Some(hidden))
                }
                _ => {
                    self.collect_deleted(&path, own, entry);
                    (ChangeKind::Added, None)
                }
            },
        };
        self.add_change(&path, kind, false, record.mode, original);
    }

    /// Adds the change of a directory: none if the directory shows its own lower directory, a move if it
    /// shows another, and otherwise an addition.
    fn sub_dir(&mut self, path: &RelPath, own: Option<&RelPath>, entry: &IndexEntry, id: u64) {
        let Some(dir) = self.view.state.tree.find_dir(id) else { return };
        match &dir.origin {
            Some(lower) if Some(&lower.rel) == own => {}
            Some(lower) => {
                self.collect_deleted(path, own, entry);
                let from = host_path(&lower.rel);
                let kind = ChangeKind::Renamed { from, modified: false };
                let mode = lower.seen.map_or(dir.mode, |seen| seen.mode);
                self.add_change(path, kind, true, mode, lower.seen.as_ref());
            }
            None => {
                self.collect_deleted(path, own, entry);
                self.add_change(path, ChangeKind::Added, true, dir.mode, None);
            }
        }
    }

    /// Adds a change to the list, with the state of the lower object if the change has one.
    fn add_change(
        &mut self,
        path: &RelPath,
        kind: ChangeKind,
        directory: bool,
        mode: u32,
        seen: Option<&LowerState>,
    ) {
        let path = host_path(path);
        let original = seen.map(|seen| self.original_state(seen));
        self.found.push(Change { path, kind, directory, mode, original });
    }

    /// The state of a lower object in the form for the host, with the digest if known.
    fn original_state(&self, seen: &LowerState) -> OriginalState {
        let digest = self.view.state.tree.find_digest(seen);
        OriginalState {
            identity: (seen.device, seen.inode),
            size: seen.size,
            modified: system_time(seen.modified),
            changed: system_time(seen.changed),
            mode: seen.mode,
            directory: seen.kind == LowerKind::Directory,
            link: seen.kind == LowerKind::Link,
            hidden: None,
            links: seen.links,
            digest: digest.map(Digest::from_bytes),
        }
    }
}

impl OriginalState {
    /// This state as the index stores it.
    pub(super) fn to_snapshot(self) -> LowerState {
        let kind = match (self.directory, self.link) {
            (true, _) => LowerKind::Directory,
            (false, true) => LowerKind::Link,
            (false, false) => LowerKind::File,
        };
        LowerState {
            kind,
            device: self.identity.0,
            inode: self.identity.1,
            size: self.size,
            modified: index_time(self.modified),
            changed: index_time(self.changed),
            mode: self.mode,
            links: self.links,
        }
    }

    /// The time of hiding as the index stores it.
    pub(super) fn hidden_since(&self) -> Option<FileTime> {
        self.hidden.map(index_time)
    }
}

fn host_path(rel: &RelPath) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(rel.as_bytes()))
}

/// Converts a time of the index to the system's type.
fn system_time(time: FileTime) -> SystemTime {
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let begun = if time.seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    let part = Duration::from_nanos(time.nanoseconds.into());
    begun.and_then(|time| time.checked_add(part)).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Converts a time back, as the inverse of [`system_time`].
fn index_time(time: SystemTime) -> FileTime {
    let seconds = |whole: u64| i64::try_from(whole).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => FileTime::from_parts(seconds(since.as_secs()), since.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            match before.subsec_nanos() {
                0 => FileTime::from_parts(-seconds(before.as_secs()), 0),
                part => FileTime::from_parts(-seconds(before.as_secs()) - 1, 1_000_000_000 - part),
            }
        }
    }
}
