//! The changes of an overlay. Each change is one record of the index, written to disk before the change
//! takes effect.

mod fault;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::fs::{FileType, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use rustix::io::Errno;

use super::beside;
use super::layer::copy_bytes;
use super::lower::is_file;
use super::record::{
    ContentOrigin, FileRecord, FileTime, FileTimes, IndexChange, IndexRecord, LowerState,
    permission_mode,
};
use super::rel::RelPath;
use super::room::{GrowthGuard, QuotaFull, UpperFile};
use super::view::{DirAt, DirPlace, FoundEntry, NameMeaning, OverlayView};
use crate::walk::{PathEnd, file_type};
pub use fault::ChangeFault;

/// The limits of a path that is changed: levels of directories below the root, and bytes. If a directory is
/// moved, the paths below it may become twice as long; a record of the index has room for such a path.
const MAX_LEVELS: usize = 256;
const MAX_PATH: usize = 16 << 10;

/// The most bytes of a name, as on most file systems: applying the changes makes the same name in the lower
/// directory.
const MAX_NAME: usize = 255;

/// The permissions of the files and directories a guest makes.
const NEW_FILE: u32 = 0o644;
const NEW_DIRECTORY: u32 = 0o755;

/// A lower file whose content is about to be copied to the layer.
struct CopySource {
    file: File,
    stat: Stat,
    rel: RelPath,
    /// The file's number in the index, if the index already has the file.
    known: Option<u64>,
}

impl OverlayView<'_> {
    /// Makes a file at a free path, and opens it.
    pub fn make_file(
        &mut self,
        place: &PathEnd<DirAt>,
        flags: OFlags,
    ) -> Result<(Arc<UpperFile>, File), ChangeFault> {
        let (path, hidden) = self.free_path(place)?;
        self.has_room(1)?;
        let id = self.state.tree.next_file();
        self.shared.layer.create_content(id)?;
        let file = FileRecord { copied: true, mode: NEW_FILE, origin: None };
        let act = IndexChange::File { path, id, file, hidden, new: true };
        let opened = self.shared.layer.open_file(id, flags);
        let done = opened.map_err(ChangeFault::from).and_then(|opened| {
            self.commit_change(act)?;
            Ok(opened)
        });
        if done.is_err() {
            self.shared.layer.remove_content(id);
        }
        let opened = done?;
        let upper = Arc::new(UpperFile::new(&self.shared.room, id, None));
        self.state.uppers.insert(id, Arc::clone(&upper));
        Ok((upper, opened))
    }

    /// Makes an empty directory.
    pub fn make_dir(&mut self, place: &PathEnd<DirAt>) -> Result<(), ChangeFault> {
        let (path, hidden) = self.free_path(place)?;
        self.has_room(1)?;
        self.commit_change(IndexChange::Directory {
            path,
            origin: None,
            mode: NEW_DIRECTORY,
            hidden,
        })
    }

    /// The bytes that have to be copied before the file can be written.
    pub fn to_copy(&self, place: &PathEnd<DirAt>, found: &FoundEntry) -> Result<u64, ChangeFault> {
        Ok(self.copy_source(place, found)?.map_or(0, |source| file_length(&source.stat)))
    }

    /// Opens a file for writing. At most `keep` bytes of a lower file's content are copied to the layer
    /// first.
    pub fn open_to_write(
        &mut self,
        place: &PathEnd<DirAt>,
        found: &FoundEntry,
        flags: OFlags,
        keep: u64,
    ) -> Result<(Arc<UpperFile>, File), ChangeFault> {
        let id = match (self.copy_source(place, found)?, found.child) {
            (Some(source), _) => self.copy_up(place, source, keep)?,
            (None, NameMeaning::File(id)) => id,
            (None, _) => return Err(Errno::ISDIR.into()),
        };
        let file = self.shared.layer.open_file(id, flags)?;
        Ok((self.find_upper(id)?, file))
    }

    /// The lower file to copy; `None` if the content is in the layer already.
    fn copy_source(
        &self,
        place: &PathEnd<DirAt>,
        found: &FoundEntry,
    ) -> Result<Option<CopySource>, ChangeFault> {
        let (rel, known, opened) = match found.child {
            NameMeaning::File(id) => match self.content_below(id) {
                Some(rel) => {
                    let (dir, name) = self.shared.lower.find_parent(&rel)?;
                    let opened = dir.open_entry(name)?;
                    (rel, Some(id), opened)
                }
                None => return Ok(None),
            },
            NameMeaning::Lower => {
                let lower = place.parent_dir().lower.as_ref().ok_or(Errno::NOENT)?;
                let name = place.name.as_deref().ok_or(Errno::ISDIR)?;
                (lower.rel.join(name), None, lower.open_entry(name)?)
            }
            NameMeaning::Dir(_) | NameMeaning::Nothing => return Ok(None),
        };
        let (file, stat) = opened;
        if !is_file(&stat) {
            // `found` was a regular file; the file that is now opened is not.
            return Err(Errno::NXIO.into());
        }
        Ok(Some(CopySource { file, stat, rel, known }))
    }

    fn copy_up(
        &mut self,
        place: &PathEnd<DirAt>,
        from: CopySource,
        keep: u64,
    ) -> Result<u64, ChangeFault> {
        let seen = LowerState::from_stat(&from.stat);
        let identity = (seen.device, seen.inode);
        let (id, act) = match from.known {
            Some(id) => (id, IndexChange::CopiedUp { id }),
            None => {
                let path = self.path_at(place)?;
                self.has_room(1)?;
                let id = self.state.tree.next_file();
                let origin = Some(ContentOrigin { rel: from.rel.clone(), seen });
                let file = FileRecord { copied: true, mode: seen.mode, origin };
                (id, IndexChange::File { path, id, file, hidden: Some(seen), new: false })
            }
        };
        let times = self.state.tree.find_file(id).map(|file| file.times).unwrap_or_default();
        let upper = Arc::new(UpperFile::new(&self.shared.room, id, Some(identity)));
        let mut growing = upper.lock_length();
        growing.reserve_length(keep)?;
        let to = self.shared.layer.create_content(id)?;
        let copied =
            beside::copy_blocking(keep, || copy_bytes(&from.file, &to, keep)).and_then(|copied| {
                // Another process may have extended the lower file during the copy, so the copy is cut to
                // the reserved length.
                to.set_len(copied)?;
                if keep > 0 || file_length(&from.stat) == 0 {
                    futimens(&to, &kept_times(&from.stat, times))?;
                }
                Ok(copied)
            });
        self.settle_file(id, copied, growing, act)?;
        self.state.uppers.insert(id, Arc::clone(&upper));
        let reader = self.state.readers.get(&from.rel).and_then(std::sync::Weak::upgrade);
        if let Some(reader) = reader {
            let to = self.shared.layer.open_file(id, OFlags::RDONLY)?;
            reader.move_to(identity, &upper, Arc::new(to));
        }
        self.shared.digests.add_file(seen, from.file);
        Ok(id)
    }

    /// Records a copied file in the index. After a failure, no part of the copy remains.
    fn settle_file(
        &mut self,
        id: u64,
        copied: io::Result<u64>,
        growing: GrowthGuard<'_>,
        act: IndexChange,
    ) -> Result<(), ChangeFault> {
        let done = match copied {
            Ok(copied) => {
                growing.settle_length(copied);
                self.commit_change(act)
            }
            Err(error) => {
                drop(growing);
                Err(error.into())
            }
        };
        done.inspect_err(|_| self.shared.layer.remove_content(id))
    }

    /// For the host: sets the content at a path atomically. A file that already has the path loses the name.
    pub(super) fn put_file(
        &mut self,
        place: &PathEnd<DirAt>,
        from: &File,
        mode: u32,
    ) -> Result<(), ChangeFault> {
        let path = self.path_at(place)?;
        let name = place.name.as_deref().ok_or(Errno::EXIST)?;
        let hidden = self.hidden_entry(place.parent_dir(), name)?;
        self.has_room(1)?;
        let (origin, original) = match self.look_up(place) {
            Ok(found) => {
                let source = self.copy_source(place, &found)?;
                (self.content_origin(place, &found), source.map(|source| source.file))
            }
            Err(Errno::NOENT) => (None, None),
            Err(errno) => return Err(errno.into()),
        };
        let identity = origin.as_ref().map(|origin| (origin.seen.device, origin.seen.inode));
        let seen = origin.as_ref().map(|origin| origin.seen);
        let id = self.state.tree.next_file();
        let upper = Arc::new(UpperFile::new(&self.shared.room, id, identity));
        let length = file_length(&rustix::fs::fstat(from).map_err(ChangeFault::Errno)?);
        let mut growing = upper.lock_length();
        growing.reserve_length(length)?;
        let to = self.shared.layer.create_content(id)?;
        let copied =
            beside::copy_blocking(length, || copy_bytes(from, &to, length)).and_then(|copied| {
                to.set_len(copied)?;
                to.set_modified(from.metadata()?.modified()?)?;
                Ok(copied)
            });
        let file = FileRecord { copied: true, mode, origin };
        let act = IndexChange::File { path, id, file, hidden, new: true };
        self.settle_file(id, copied, growing, act)?;
        self.state.uppers.insert(id, upper);
        if let (Some(seen), Some(original)) = (seen, original) {
            self.shared.digests.add_file(seen, original);
        }
        Ok(())
    }

    /// For the host: shows a lower object guests cannot change (a link, for example) at a path where no
    /// object exists.
    pub(super) fn put_other(
        &mut self,
        place: &PathEnd<DirAt>,
        origin: ContentOrigin,
    ) -> Result<(), ChangeFault> {
        let (path, hidden) = self.free_path(place)?;
        self.has_room(1)?;
        let id = self.state.tree.next_file();
        let file = FileRecord { copied: false, mode: origin.seen.mode, origin: Some(origin) };
        self.commit_change(IndexChange::File { path, id, file, hidden, new: true })
    }

    /// Removes a name of a file, or an empty directory.
    pub fn remove_entry(
        &mut self,
        place: &PathEnd<DirAt>,
        found: &FoundEntry,
    ) -> Result<(), ChangeFault> {
        let name = place.name.as_deref().ok_or(Errno::INVAL)?;
        if file_type(&found.stat) == FileType::Directory
            && !self.is_empty(place.parent_dir(), name, found)?
        {
            return Err(Errno::NOTEMPTY.into());
        }
        let path = self.path_at(place)?;
        let hidden = self.hidden_entry(place.parent_dir(), name)?;
        // A name that now only hides a lower object is a new entry for the quota.
        if found.child == NameMeaning::Lower || self.is_own_place(found) {
            self.has_room(1)?;
        }
        self.commit_change(IndexChange::Gone { path, hidden })
    }

    fn is_own_place(&self, found: &FoundEntry) -> bool {
        matches!(found.child, NameMeaning::Dir(id) if self.state.tree.is_own_place(id))
    }

    fn is_empty(&self, dir: &DirAt, name: &OsStr, found: &FoundEntry) -> Result<bool, Errno> {
        use crate::walk::DirStepper as _;
        let found = match found.child {
            NameMeaning::Dir(id) => self.known_dir(dir, name, id)?,
            _ => self.enter_dir(dir, name)?,
        };
        Ok(self.list_all(&found, 0)?.is_empty())
    }

    /// Moves a name by the rules of the operating system. A file gets the replaced file's permissions.
    pub fn rename_entry(
        &mut self,
        [old, new]: [&PathEnd<DirAt>; 2],
        found: &FoundEntry,
    ) -> Result<(), ChangeFault> {
        let busy = Errno::BUSY;
        let old_name = old.name.as_deref().ok_or(busy)?;
        let new_name = new.name.as_deref().ok_or(busy)?;
        let (from, to) = (self.path_at(old)?, self.path_at(new)?);
        let is_dir = file_type(&found.stat) == FileType::Directory;
        if is_dir && to.is_below(&from) {
            return Err(Errno::INVAL.into());
        }
        if from.is_below(&to) {
            return Err(Errno::NOTEMPTY.into());
        }
        let target = match self.look_up(new) {
            Ok(target) => Some(target),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        if let Some(target) = &target {
            let same = matches!(found.child, NameMeaning::File(_)) && found.child == target.child;
            if from == to || same {
                return Ok(());
            }
            match (is_dir, file_type(&target.stat) == FileType::Directory) {
                (true, false) => return Err(Errno::NOTDIR.into()),
                (false, true) => return Err(Errno::ISDIR.into()),
                (true, true) if !self.is_empty(new.parent_dir(), new_name, target)? => {
                    return Err(Errno::NOTEMPTY.into());
                }
                _ => {}
            }
        }
        let left = self.hidden_entry(old.parent_dir(), old_name)?;
        let hidden = self.hidden_entry(new.parent_dir(), new_name)?;
        self.has_room(2)?;
        let replaced = target.filter(|target| is_file(&target.stat) && found.names == 1);
        let mode = replaced.as_ref().map(|target| self.file_mode(target));
        if found.child == NameMeaning::Lower && !is_dir {
            self.take_in(old, &from, found)?;
        }
        let below = new.parent_dir().lower.as_ref();
        let replaced = below.zip(replaced).and_then(|(lower, target)| {
            let opened = (target.child == NameMeaning::Lower).then(|| lower.open_entry(new_name));
            opened.and_then(Result::ok)
        });
        self.commit_change(IndexChange::Moved { from, to, left, hidden, mode })?;
        // A program that writes a new file and renames the file over an old one is in effect changing the
        // old file. The old file's digest is therefore needed to apply the change.
        if let Some((file, stat)) = replaced {
            self.shared.digests.add_file(LowerState::from_stat(&stat), file);
        }
        Ok(())
    }

    /// The permissions of a file, as guests see them.
    pub(super) fn file_mode(&self, found: &FoundEntry) -> u32 {
        match found.child {
            NameMeaning::File(id) => {
                self.state.tree.find_file(id).map_or(NEW_FILE, |file| file.record.mode)
            }
            _ => permission_mode(&found.stat),
        }
    }

    /// Adds another name to a file.
    pub fn link_entry(
        &mut self,
        [old, new]: [&PathEnd<DirAt>; 2],
        found: &FoundEntry,
    ) -> Result<(), ChangeFault> {
        let (path, hidden) = self.free_path(new)?;
        let from = self.path_at(old)?;
        self.has_room(2)?;
        let id = match found.child {
            NameMeaning::File(id) => id,
            _ => self.take_in(old, &from, found)?,
        };
        self.commit_change(IndexChange::Link { path, id, hidden })
    }

    /// Sets times of a file or directory.
    pub fn touch_entry(
        &mut self,
        place: &PathEnd<DirAt>,
        found: &FoundEntry,
        times: &Timestamps,
    ) -> Result<(), ChangeFault> {
        let path = match &place.name {
            Some(_) => self.path_at(place)?,
            None => return self.touch_dir(place.parent_dir(), times),
        };
        let known = match found.child {
            NameMeaning::File(id) if self.content_below(id).is_none() => {
                return Ok(self.shared.layer.set_times(id, times)?);
            }
            NameMeaning::File(id) => Some(id),
            NameMeaning::Lower if file_type(&found.stat) != FileType::Directory => {
                self.has_room(1)?;
                Some(self.take_in(place, &path, found)?)
            }
            _ => None,
        };
        self.commit_change(IndexChange::Times { path, times: to_file_times(times) })?;
        // An open handle shows these times even after the last name is removed.
        let file = known.and_then(|id| self.state.tree.find_file(id));
        if let Some((file, origin)) =
            file.and_then(|file| Some((file, file.record.origin.as_ref()?)))
            && let Some(reader) = self.state.readers.get(&origin.rel)
            && let Some(reader) = reader.upgrade()
        {
            reader.set_times(file.times);
        }
        Ok(())
    }

    /// Sets times of a directory. A removed directory's times are not visible, so they are ignored.
    pub fn touch_dir(&mut self, dir: &DirAt, times: &Timestamps) -> Result<(), ChangeFault> {
        match self.path_of(dir)? {
            Some(path) => {
                self.commit_change(IndexChange::Times { path, times: to_file_times(times) })
            }
            None => Ok(()),
        }
    }

    /// Adds a lower file to the index, with its content still in the lower directory. Returns the file's
    /// number.
    fn take_in(
        &mut self,
        place: &PathEnd<DirAt>,
        path: &RelPath,
        found: &FoundEntry,
    ) -> Result<u64, ChangeFault> {
        let name = place.name.as_deref().ok_or(Errno::INVAL)?;
        let lower = place.parent_dir().lower.as_ref().ok_or(Errno::NOENT)?;
        let seen = LowerState::from_stat(&found.stat);
        let origin = Some(ContentOrigin { rel: lower.rel.join(name), seen });
        let id = self.state.tree.next_file();
        let file = FileRecord { copied: false, mode: seen.mode, origin };
        let path = path.clone();
        self.commit_change(IndexChange::File { path, id, file, hidden: Some(seen), new: false })?;
        Ok(id)
    }

    /// Checks that a path is free. Returns the path, and the lower object a new entry would hide, if any.
    fn free_path(
        &self,
        place: &PathEnd<DirAt>,
    ) -> Result<(RelPath, Option<LowerState>), ChangeFault> {
        let name = place.name.as_deref().ok_or(Errno::EXIST)?;
        match self.look_up(place) {
            Ok(_) => return Err(Errno::EXIST.into()),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok((self.path_at(place)?, self.hidden_entry(place.parent_dir(), name)?))
    }

    /// The lower object an entry of the name hides. If the name already hides an object, that object's
    /// recorded state stays. Fails for the name of the veiled directory.
    fn hidden_entry(&self, dir: &DirAt, name: &OsStr) -> Result<Option<LowerState>, Errno> {
        if dir.lower.as_ref().is_some_and(|lower| lower.is_veil_name(name)) {
            return Err(Errno::PERM);
        }
        if let DirPlace::Known(id) = dir.at
            && let Some(entry) =
                self.state.tree.find_dir(id).and_then(|known| known.entries.get(name))
            && entry.hidden.is_some()
        {
            return Ok(entry.hidden);
        }
        match &dir.lower {
            Some(lower) => Ok(lower.find_stat(name)?.as_ref().map(LowerState::from_stat)),
            None => Ok(None),
        }
    }

    /// The path of an object that is about to be changed, checked by the limits of a path.
    pub(super) fn path_at(&self, place: &PathEnd<DirAt>) -> Result<RelPath, Errno> {
        let dir = self.path_of(place.parent_dir())?.ok_or(Errno::NOENT)?;
        let path = place.name.as_deref().map_or_else(|| dir.clone(), |name| dir.join(name));
        if place.name.as_ref().is_some_and(|name| name.len() > MAX_NAME) {
            return Err(Errno::NAMETOOLONG);
        }
        if path.as_bytes().len() > MAX_PATH || path.names().count() > MAX_LEVELS {
            return Err(Errno::NAMETOOLONG);
        }
        Ok(path)
    }

    /// The path of a directory, as guests see the path. `None` if the directory was removed.
    fn path_of(&self, dir: &DirAt) -> Result<Option<RelPath>, Errno> {
        let tree = &self.state.tree;
        let lower = match (dir.at, &dir.lower) {
            (DirPlace::Known(id), _) => return Ok(tree.path_of(id)),
            (DirPlace::Lower, Some(lower)) => &lower.rel,
            (DirPlace::Lower, None) | (DirPlace::Gone, _) => return Ok(None),
        };
        let mut names: Vec<&OsStr> = Vec::new();
        let mut path = lower.as_bytes();
        loop {
            if let Some(above) = tree.dir_below(path).and_then(|id| tree.path_of(id)) {
                return Ok(Some(names.iter().rev().fold(above, |path, name| path.join(name))));
            }
            let Some((above, name)) = super::rel::split_last(path) else { return Ok(None) };
            names.push(name);
            path = above;
        }
    }

    fn has_room(&self, entries: u64) -> Result<(), ChangeFault> {
        let used = self.state.tree.entry_count();
        self.shared
            .room
            .admit_files(used, entries)
            .map_err(|QuotaFull(facts)| ChangeFault::Full(facts))
    }

    fn find_upper(&self, id: u64) -> Result<Arc<UpperFile>, Errno> {
        self.state.uppers.get(&id).map(Arc::clone).ok_or(Errno::NOENT)
    }

    /// Writes a change to the index on disk, and applies the change to the tree in memory.
    fn commit_change(&mut self, act: IndexChange) -> Result<(), ChangeFault> {
        self.write_down(act)?;
        self.note_digests();
        Ok(())
    }

    /// Writes newly computed digests to the index. A digest that cannot be written is computed again when
    /// needed.
    pub(super) fn note_digests(&mut self) {
        for (seen, digest) in self.shared.digests.drain_digests() {
            let _ = self.write_down(IndexChange::Digest { seen, digest });
        }
    }

    pub(super) fn write_down(&mut self, act: IndexChange) -> Result<(), ChangeFault> {
        let record = IndexRecord { at: FileTime::now(), act };
        let state = &mut *self.state;
        state.index.append(&record)?;
        match state.tree.apply_record(&record) {
            Ok(None) => {}
            Ok(Some(id)) => {
                state.uppers.remove(&id);
                self.shared.layer.remove_content(id);
            }
            Err(_) => {
                state.index.take_back(&record);
                return Err(Errno::IO.into());
            }
        }
        if state.index.is_long() {
            // If this fails, the longer index on disk stays valid.
            let _ = state.index.replace_records(&state.tree.to_records());
        }
        Ok(())
    }
}

fn file_length(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// The stated times in the form of the index. "Now" becomes the current time.
fn to_file_times(times: &Timestamps) -> FileTimes {
    let stated = |time: &Timespec| match time.tv_nsec {
        UTIME_OMIT => None,
        UTIME_NOW => Some(FileTime::now()),
        nanoseconds => Some(FileTime::from_parts(time.tv_sec, nanoseconds)),
    };
    FileTimes { accessed: stated(&times.last_access), modified: stated(&times.last_modification) }
}

/// The times of a file's copy: the times set explicitly, else the times of the original.
fn kept_times(stat: &Stat, times: FileTimes) -> Timestamps {
    let time = |set: Option<FileTime>, own: FileTime| {
        let FileTime { seconds, nanoseconds } = set.unwrap_or(own);
        Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() }
    };
    Timestamps {
        last_access: time(times.accessed, FileTime::from_parts(stat.st_atime, stat.st_atime_nsec)),
        last_modification: time(
            times.modified,
            FileTime::from_parts(stat.st_mtime, stat.st_mtime_nsec),
        ),
    }
}
