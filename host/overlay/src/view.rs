//! Looks up names in the overlay: in the index first, then in the lower directory.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{Dir, FileType, OFlags, Stat};
use rustix::io::Errno;

use super::lower::{LowerDir, is_file};
use super::record::{ContentOrigin, FileTime, FileTimes, LowerState, stat_identity};
use super::rel::{RelPath, split_last};
use super::room::UpperFile;
use super::state::{LowerReader, OverlayShared, OverlayState};
use super::tree::{IndexNode, ROOT};
use crate::walk::{DirStepper, HostDir, PathEnd, file_type};

/// A locked overlay during one operation.
pub struct OverlayView<'a> {
    pub(super) shared: &'a OverlayShared,
    pub(super) state: MutexGuard<'a, OverlayState>,
}

/// How a descriptor remembers its directory, so that it stays valid when the directory is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirRef(DirKey);

#[derive(Debug, Clone, PartialEq, Eq)]
enum DirKey {
    /// A directory of the index.
    Known(u64),
    /// The directory at the path of the lower directory, without changes.
    Lower(RelPath),
}

/// A directory a lookup returned. Valid until the view is dropped.
#[derive(Debug)]
pub struct DirAt {
    pub(super) at: DirPlace,
    /// The lower directory that shows through here, open; `None`: there is none.
    pub(super) lower: Option<LowerDir>,
}

/// Where a directory is in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirPlace {
    /// The directory with the given number.
    Known(u64),
    /// The index has no change in the lower directory or below.
    Lower,
    /// The directory was removed.
    Gone,
}

/// What a name in a directory refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameMeaning {
    Nothing,
    Dir(u64),
    File(u64),
    /// The lower directory's object, unchanged.
    Lower,
}

/// The result of a lookup.
pub struct FoundEntry {
    /// The status that guests see.
    pub stat: Stat,
    /// The number of names of a file; a file with several names cannot be changed.
    pub names: u32,
    pub(super) child: NameMeaning,
}

/// A file, open for reading.
pub enum ReadFile {
    /// A file of the lower directory, with its open state.
    Lower(Arc<LowerReader>, File),
    /// A file of the layer.
    Upper(Arc<UpperFile>, File),
    /// Something that is no regular file, because another program replaced it meanwhile.
    Special,
}

impl FoundEntry {
    /// An object of the host's file system, unchanged.
    pub fn on_disk(stat: Stat) -> Self {
        let names = u32::try_from(stat.st_nlink).unwrap_or(u32::MAX);
        Self { stat, names, child: NameMeaning::Lower }
    }
}

impl LowerReader {
    /// The layer's copy that replaces the file for this reader; `None` = not copied yet.
    pub fn moved_copy(&self) -> Option<(&Arc<UpperFile>, &Arc<File>)> {
        self.moved.get().map(|(upper, file)| (upper, file))
    }

    fn file_times(&self) -> FileTimes {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores times that a guest set while the file was not copied.
    pub(super) fn set_times(&self, times: FileTimes) {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner) = times;
    }

    /// Makes this reader use a copy, if `identity` is that of its file.
    pub(super) fn move_to(&self, identity: (u64, u64), upper: &Arc<UpperFile>, file: Arc<File>) {
        if self.identity == identity {
            let _ = self.moved.set((Arc::clone(upper), file));
        }
    }
}

impl DirAt {
    /// The reference that a descriptor of this directory stores.
    pub fn to_dir_ref(&self) -> DirRef {
        match (self.at, &self.lower) {
            (DirPlace::Known(id), _) => DirRef(DirKey::Known(id)),
            (DirPlace::Lower, Some(lower)) => DirRef(DirKey::Lower(lower.rel.clone())),
            (DirPlace::Lower, None) | (DirPlace::Gone, _) => OverlayView::removed_ref(),
        }
    }
}

impl DirAt {
    /// Makes a second handle of the directory.
    pub(super) fn try_clone(&self) -> std::io::Result<Self> {
        let lower = self.lower.as_ref().map(LowerDir::try_clone).transpose()?;
        Ok(Self { at: self.at, lower })
    }
}

impl HostDir for DirAt {
    fn host_dir(&self) -> Option<BorrowedFd<'_>> {
        self.lower.as_ref().map(AsFd::as_fd)
    }
}

impl DirStepper for OverlayView<'_> {
    type Dir = DirAt;

    fn enter_dir(&self, top: &DirAt, name: &OsStr) -> Result<DirAt, Errno> {
        match self.find_child(top, name) {
            NameMeaning::Nothing => Err(Errno::NOENT),
            NameMeaning::File(_) => Err(Errno::NOTDIR),
            NameMeaning::Dir(id) => self.known_dir(top, name, id),
            NameMeaning::Lower => {
                let lower = top.lower.as_ref().ok_or(Errno::NOENT)?.enter_dir(name)?;
                Ok(DirAt { at: DirPlace::Lower, lower: Some(lower) })
            }
        }
    }

    /// The target of a link by its name in a directory. `None` if the name is not a link.
    fn read_link(&self, top: &DirAt, name: &OsStr) -> Result<Option<OsString>, Errno> {
        match self.find_child(top, name) {
            NameMeaning::Nothing | NameMeaning::Dir(_) => Ok(None),
            NameMeaning::File(id) => match self.content_below(id) {
                Some(rel) => {
                    let (dir, name) = self.shared.lower.find_parent(&rel)?;
                    dir.link_target(name)
                }
                None => Ok(None),
            },
            NameMeaning::Lower => {
                top.lower.as_ref().map_or(Ok(None), |lower| lower.link_target(name))
            }
        }
    }
}

impl<'a> OverlayView<'a> {
    pub(super) fn new(shared: &'a OverlayShared) -> Self {
        Self { shared, state: shared.lock_state() }
    }

    /// The root of the overlay.
    pub fn root_ref() -> DirRef {
        DirRef(DirKey::Known(ROOT))
    }

    /// A reference to a removed directory.
    pub fn removed_ref() -> DirRef {
        // Numbers are never reused, and no directory gets this one.
        DirRef(DirKey::Known(u64::MAX))
    }

    /// The directory of a descriptor. `dir` is the opened lower directory, if any.
    pub fn resolve_dir(&self, remembered: &DirRef, dir: Option<&Arc<File>>) -> DirAt {
        let below = &self.shared.lower;
        let lower =
            |rel: &RelPath| dir.map(|dir| below.dir_from_handle(Arc::clone(dir), rel.clone()));
        match &remembered.0 {
            DirKey::Known(id) => match self.state.tree.find_dir(*id) {
                Some(known) => {
                    let below = known.origin.as_ref().and_then(|origin| lower(&origin.rel));
                    DirAt { at: DirPlace::Known(*id), lower: below }
                }
                None => DirAt { at: DirPlace::Gone, lower: None },
            },
            DirKey::Lower(rel) => match self.where_is(rel) {
                DirPlace::Gone => DirAt { at: DirPlace::Gone, lower: None },
                at => DirAt { at, lower: lower(rel) },
            },
        }
    }

    /// Where the directory at a lower path is in the index.
    fn where_is(&self, rel: &RelPath) -> DirPlace {
        let tree = &self.state.tree;
        if tree.is_plain() {
            return if rel.as_bytes().is_empty() { DirPlace::Known(ROOT) } else { DirPlace::Lower };
        }
        if let Some(id) = tree.dir_below(rel.as_bytes()) {
            return DirPlace::Known(id);
        }
        let mut path = rel.as_bytes();
        while let Some((above, name)) = split_last(path) {
            if let Some(known) = tree.dir_below(above).and_then(|id| tree.find_dir(id)) {
                let hidden = known.entries.contains_key(name);
                return if hidden { DirPlace::Gone } else { DirPlace::Lower };
            }
            path = above;
        }
        DirPlace::Gone
    }

    /// The meaning of a name in a directory: from the index if the index has the name, else the lower
    /// directory's.
    pub(super) fn find_child(&self, dir: &DirAt, name: &OsStr) -> NameMeaning {
        match dir.at {
            DirPlace::Gone => NameMeaning::Nothing,
            DirPlace::Lower => NameMeaning::Lower,
            DirPlace::Known(id) => {
                let entry = self.state.tree.find_dir(id).and_then(|known| known.entries.get(name));
                match entry.map(|entry| entry.node) {
                    Some(None) => NameMeaning::Nothing,
                    Some(Some(IndexNode::Directory(id))) => NameMeaning::Dir(id),
                    Some(Some(IndexNode::File(id))) => NameMeaning::File(id),
                    None if dir.lower.is_some() => NameMeaning::Lower,
                    None => NameMeaning::Nothing,
                }
            }
        }
    }

    /// The directory with the number `id`, whose name in `above` is `name`.
    pub(super) fn known_dir(&self, above: &DirAt, name: &OsStr, id: u64) -> Result<DirAt, Errno> {
        let known = self.state.tree.find_dir(id).ok_or(Errno::NOENT)?;
        let lower = match (&known.origin, &above.lower) {
            (None, _) => None,
            // Usually the directory was not moved, so its lower directory is one step from the parent's.
            (Some(origin), Some(lower)) if origin.rel == lower.rel.join(name) => {
                lower.find_dir(name)?
            }
            (Some(origin), _) => self.shared.lower.find_dir(&origin.rel)?,
        };
        Ok(DirAt { at: DirPlace::Known(id), lower })
    }

    /// All names the index has in a directory, also hidden ones.
    pub(super) fn known_names(&self, dir: &DirAt) -> impl Iterator<Item = OsString> {
        let known = match dir.at {
            DirPlace::Known(id) => self.state.tree.find_dir(id),
            DirPlace::Lower | DirPlace::Gone => None,
        };
        known.into_iter().flat_map(|known| known.entries.keys().cloned())
    }

    /// Whether the same lower directory shows through both.
    pub(super) fn is_of_one_place(one: &DirAt, other: &DirAt) -> bool {
        match (&one.lower, &other.lower) {
            (Some(one), Some(other)) => one.rel == other.rel,
            (Some(_) | None, _) => false,
        }
    }

    /// The lower object behind an object that guests cannot change, for example a link.
    pub(super) fn content_origin(
        &self,
        place: &PathEnd<DirAt>,
        found: &FoundEntry,
    ) -> Option<ContentOrigin> {
        match found.child {
            NameMeaning::File(id) => self.state.tree.find_file(id)?.record.origin.clone(),
            NameMeaning::Lower => {
                let rel = place.parent_dir().lower.as_ref()?.rel.join(place.name.as_deref()?);
                Some(ContentOrigin { rel, seen: LowerState::from_stat(&found.stat) })
            }
            NameMeaning::Dir(_) | NameMeaning::Nothing => None,
        }
    }

    /// The lower path of a file's content; `None`: the layer has the content.
    pub(super) fn content_below(&self, id: u64) -> Option<RelPath> {
        let record = &self.state.tree.find_file(id)?.record;
        let origin = record.origin.as_ref().filter(|_| !record.copied)?;
        Some(origin.rel.clone())
    }

    /// The object at a path.
    pub fn find_entry(&self, place: &PathEnd<DirAt>) -> Result<FoundEntry, Errno> {
        let found = self.look_up(place)?;
        if place.must_be_dir && file_type(&found.stat) != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        Ok(found)
    }

    /// Looks up a path like [`Self::find_entry`], but ignores a final `/`, which requires a directory.
    pub fn look_up(&self, place: &PathEnd<DirAt>) -> Result<FoundEntry, Errno> {
        match &place.name {
            None => self.dir_entry(place.parent_dir()),
            Some(name) => self.find_name(place.parent_dir(), name),
        }
    }

    fn dir_entry(&self, dir: &DirAt) -> Result<FoundEntry, Errno> {
        let child = match dir.at {
            DirPlace::Known(id) => NameMeaning::Dir(id),
            DirPlace::Lower | DirPlace::Gone => NameMeaning::Lower,
        };
        Ok(FoundEntry { stat: self.dir_stat(dir)?, names: 1, child })
    }

    fn find_name(&self, dir: &DirAt, name: &OsStr) -> Result<FoundEntry, Errno> {
        let child = self.find_child(dir, name);
        let (stat, names) = match child {
            NameMeaning::Nothing => return Err(Errno::NOENT),
            NameMeaning::Dir(id) => (self.dir_stat(&self.known_dir(dir, name, id)?)?, 1),
            NameMeaning::File(id) => self.file_stat(id)?,
            NameMeaning::Lower => (dir.lower.as_ref().ok_or(Errno::NOENT)?.stat_entry(name)?, 1),
        };
        Ok(FoundEntry { stat, names, child })
    }

    /// The status of a directory.
    pub fn dir_stat(&self, dir: &DirAt) -> Result<Stat, Errno> {
        let id = match (dir.at, &dir.lower) {
            (DirPlace::Lower, Some(lower)) => return lower.own_stat(),
            (DirPlace::Known(id), _) => Some(id),
            (DirPlace::Lower, None) | (DirPlace::Gone, _) => None,
        };
        let known = id.and_then(|id| self.state.tree.find_dir(id));
        let mut stat = match &dir.lower {
            Some(lower) => lower.own_stat()?,
            None => {
                let mut stat = rustix::fs::fstat(self.shared.layer.empty_dir())?;
                // No file system has this device number, so the inode is not mistaken for another's.
                (stat.st_dev, stat.st_ino) = (!0, id.unwrap_or(u64::MAX));
                stat
            }
        };
        match known {
            Some(known) => {
                set_times(&mut stat, known.times);
                if let Some(at) = known.changed {
                    (stat.st_ctime, stat.st_ctime_nsec) = (at.seconds as _, at.nanoseconds as _);
                }
            }
            None => stat.st_nlink = 0,
        }
        Ok(stat)
    }

    /// The status of a file of the index, and the number of its names.
    fn file_stat(&self, id: u64) -> Result<(Stat, u32), Errno> {
        let file = self.state.tree.find_file(id).ok_or(Errno::NOENT)?;
        let names = file.names;
        let stat = match self.content_below(id) {
            Some(rel) => {
                let (dir, name) = self.shared.lower.find_parent(&rel)?;
                let mut stat = dir.stat_entry(name)?;
                set_times(&mut stat, file.times);
                if names > 1 {
                    stat.st_nlink = names as _;
                }
                stat
            }
            None => {
                let upper = self.state.uppers.get(&id).ok_or(Errno::NOENT)?;
                self.as_seen(upper, self.shared.layer.stat_content(id)?)
            }
        };
        Ok((stat, names))
    }

    /// The status of a file of the layer as guests see it: with the link count and the inode of the overlay.
    fn as_seen(&self, upper: &UpperFile, mut stat: Stat) -> Stat {
        stat.st_nlink = self.count_names(upper) as _;
        if let Some((device, inode)) = upper.identity {
            (stat.st_dev, stat.st_ino) = (device as _, inode);
        }
        stat
    }

    /// The number of names of a file of the layer.
    pub(crate) fn count_names(&self, upper: &UpperFile) -> u32 {
        self.state.tree.find_file(upper.id).map_or(0, |file| file.names)
    }

    /// The status of an open file of the layer.
    pub fn upper_stat(&self, upper: &UpperFile, file: &File) -> Result<Stat, Errno> {
        Ok(self.as_seen(upper, rustix::fs::fstat(file)?))
    }

    /// The status of an open file of the lower directory.
    pub fn reader_stat(&self, reader: &LowerReader, file: &File) -> Result<Stat, Errno> {
        let mut stat = rustix::fs::fstat(file)?;
        let known = self.state.tree.file_below(reader.rel.as_bytes());
        set_times(&mut stat, reader.file_times());
        if let Some(known) = known.and_then(|id| self.state.tree.find_file(id)) {
            if known.names > 1 {
                stat.st_nlink = known.names as _;
            }
        } else if self.where_is(&reader.rel) == DirPlace::Gone {
            // The file's name was removed, or refers to another object now.
            stat.st_nlink = stat.st_nlink.saturating_sub(1);
        }
        Ok(stat)
    }

    /// Opens the result of a lookup for reading.
    pub fn open_to_read(
        &mut self,
        place: &PathEnd<DirAt>,
        found: &FoundEntry,
    ) -> Result<ReadFile, Errno> {
        let below = match found.child {
            NameMeaning::File(id) => match self.content_below(id) {
                Some(rel) => {
                    let (dir, name) = self.shared.lower.find_parent(&rel)?;
                    let (file, stat) = dir.open_entry(name)?;
                    (rel, file, stat)
                }
                None => {
                    let upper = Arc::clone(self.state.uppers.get(&id).ok_or(Errno::NOENT)?);
                    let file = self.shared.layer.open_file(id, OFlags::RDONLY)?;
                    return Ok(ReadFile::Upper(upper, file));
                }
            },
            NameMeaning::Lower => {
                let lower = place.parent_dir().lower.as_ref().ok_or(Errno::NOENT)?;
                let name = place.name.as_deref().ok_or(Errno::ISDIR)?;
                let (file, stat) = lower.open_entry(name)?;
                (lower.rel.join(name), file, stat)
            }
            NameMeaning::Dir(_) | NameMeaning::Nothing => return Err(Errno::ISDIR),
        };
        let (rel, file, stat) = below;
        if !is_file(&stat) {
            return Ok(ReadFile::Special);
        }
        Ok(ReadFile::Lower(self.shared_reader(rel, stat_identity(&stat)), file))
    }

    /// The reader of a lower file, which all its descriptors share.
    fn shared_reader(&mut self, rel: RelPath, identity: (u64, u64)) -> Arc<LowerReader> {
        let known = self.state.readers.get(&rel).and_then(std::sync::Weak::upgrade);
        if let Some(known) = known.filter(|known| known.identity == identity) {
            return known;
        }
        if self.state.readers.len() >= SWEEP_AT.max(2 * self.state.live_readers) {
            self.state.readers.retain(|_, reader| reader.strong_count() > 0);
            self.state.live_readers = self.state.readers.len();
        }
        let known = self.state.tree.file_below(rel.as_bytes());
        let times = known.and_then(|id| self.state.tree.find_file(id)).map(|known| known.times);
        let (moved, times) = (OnceLock::new(), Mutex::new(times.unwrap_or_default()));
        let reader = Arc::new(LowerReader { rel: rel.clone(), identity, moved, times });
        self.state.readers.insert(rel, Arc::downgrade(&reader));
        reader
    }

    /// The directory at a path, and a handle for its descriptor: of the lower directory, or of an empty
    /// directory if none exists.
    pub fn open_dir(
        &self,
        place: &PathEnd<DirAt>,
        found: &FoundEntry,
    ) -> Result<(DirRef, Option<Arc<File>>), Errno> {
        let entered;
        let dir = match &place.name {
            None => place.parent_dir(),
            Some(name) => {
                entered = match found.child {
                    NameMeaning::Dir(id) => self.known_dir(place.parent_dir(), name, id)?,
                    _ => self.enter_dir(place.parent_dir(), name)?,
                };
                &entered
            }
        };
        let lower = dir.lower.as_ref().map(LowerDir::open_listing).transpose()?;
        Ok((dir.to_dir_ref(), lower.map(Arc::new)))
    }

    /// An empty directory in place of a missing lower directory.
    pub fn empty_dir(&self) -> &Arc<File> {
        self.shared.layer.empty_dir()
    }

    /// Whether a directory is the lower directory's own, with no change and nothing hidden in it.
    pub fn is_unchanged(&self, dir: &DirAt) -> bool {
        dir.at == DirPlace::Lower && !self.shared.lower.is_veiled()
    }

    /// The names in a directory with their types, at most one more than `bound`.
    pub fn list_dir(&self, dir: &DirAt, bound: u64) -> Result<Vec<(OsString, FileType)>, Errno> {
        self.list_with(dir, bound, false)
    }

    /// Lists the names like [`Self::list_dir`], with the invisible directory, because a directory that contains
    /// it can neither be removed as empty nor moved.
    pub fn list_all(&self, dir: &DirAt, bound: u64) -> Result<Vec<(OsString, FileType)>, Errno> {
        self.list_with(dir, bound, true)
    }

    fn list_with(
        &self,
        dir: &DirAt,
        bound: u64,
        veiled: bool,
    ) -> Result<Vec<(OsString, FileType)>, Errno> {
        let id = match dir.at {
            // Like a removed directory of the host, it lists nothing.
            DirPlace::Gone => return Ok(Vec::new()),
            DirPlace::Lower => None,
            DirPlace::Known(id) => self.state.tree.find_dir(id),
        };
        let most = usize::try_from(bound).unwrap_or(usize::MAX);
        let mut names = Vec::new();
        let own = id.into_iter().flat_map(|known| &known.entries);
        for (name, entry) in own {
            let file_type = match entry.node {
                None => continue,
                Some(IndexNode::Directory(_)) => FileType::Directory,
                Some(IndexNode::File(file)) => {
                    let record = self.state.tree.find_file(file).map(|file| &file.record);
                    let origin = record.and_then(|record| record.origin.as_ref());
                    let below = origin.filter(|_| record.is_some_and(|record| !record.copied));
                    below.map_or(FileType::RegularFile, |below| below.seen.kind.file_type())
                }
            };
            names.push((name.clone(), file_type));
        }
        if let Some(lower) = &dir.lower {
            for entry in Dir::new(lower.open_listing()?)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." || id.is_some_and(|id| id.entries.contains_key(name))
                {
                    continue;
                }
                if !veiled && lower.may_veil(entry.ino()) && lower.is_veil_name(name) {
                    continue;
                }
                let file_type = match entry.file_type() {
                    FileType::Unknown => match lower.find_stat(name)? {
                        Some(stat) => file_type(&stat),
                        None => continue,
                    },
                    known => known,
                };
                names.push((name.to_owned(), file_type));
                if names.len() > most {
                    break;
                }
            }
        }
        Ok(names)
    }
}

/// The number of readers at which unused ones are removed.
const SWEEP_AT: usize = 1024;

fn set_times(stat: &mut Stat, times: FileTimes) {
    let FileTimes { accessed, modified } = times;
    if let Some(FileTime { seconds, nanoseconds }) = accessed {
        (stat.st_atime, stat.st_atime_nsec) = (seconds as _, nanoseconds as _);
    }
    if let Some(FileTime { seconds, nanoseconds }) = modified {
        (stat.st_mtime, stat.st_mtime_nsec) = (seconds as _, nanoseconds as _);
    }
}
