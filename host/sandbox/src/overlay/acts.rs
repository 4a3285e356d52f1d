//! Changes an overlay. Each change is one record, written before it takes effect.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::fs::{FileType, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use rustix::io::Errno;

use super::beside;
use super::layer::copy;
use super::lower::is_file;
use super::record::{Act, FileRecord, FileTimes, IndexRecord, Origin, Seen, Time, mode};
use super::rel::Rel;
use super::room::{Full, Growing, Upper};
use super::view::{At, Child, DirAt, Found, View};
use crate::imports::files::walk::{PathEnd, kind};

/// The most levels of directories below the root, and bytes of a path, for a change. A moved directory may
/// contain as much again below its new path, which still fits a record of the index.
const MAX_LEVELS: usize = 256;
const MAX_PATH: usize = 16 << 10;

/// Bytes of a name, as on most file systems, because applying the changes makes the same name in the lower
/// directory.
const MAX_NAME: usize = 255;

/// The modes of files and directories that a guest makes.
const NEW_FILE: u32 = 0o644;
const NEW_DIRECTORY: u32 = 0o755;

/// Why a change failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An error of the operating system.
    Errno(Errno),
    /// The quota is used up, with a text for the operator.
    Full(String),
    /// The layer cannot be written.
    Io(io::Error),
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<Full> for Fault {
    fn from(Full(facts): Full) -> Self {
        Self::Full(facts)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A file that is about to be copied to the layer.
struct Source {
    file: File,
    stat: Stat,
    rel: Rel,
    /// The file's number, if the index has the file.
    known: Option<u64>,
}

impl View<'_> {
    /// Makes a file at a free path, and opens it.
    pub(crate) fn make_file(
        &mut self,
        place: &PathEnd<DirAt>,
        flags: OFlags,
    ) -> Result<(Arc<Upper>, File), Fault> {
        let (path, hidden) = self.free(place)?;
        self.has_room(1)?;
        let id = self.state.tree.next_file();
        self.shared.layer.create(id)?;
        let file = FileRecord { copied: true, mode: NEW_FILE, origin: None };
        let act = Act::File { path, id, file, hidden, new: true };
        let opened = self.shared.layer.open_file(id, flags);
        let done = opened.map_err(Fault::from).and_then(|opened| {
            self.commit(act)?;
            Ok(opened)
        });
        if done.is_err() {
            self.shared.layer.remove(id);
        }
        let opened = done?;
        let upper = Arc::new(Upper::new(&self.shared.room, id, None));
        self.state.uppers.insert(id, Arc::clone(&upper));
        Ok((upper, opened))
    }

    pub(crate) fn make_dir(&mut self, place: &PathEnd<DirAt>) -> Result<(), Fault> {
        let (path, hidden) = self.free(place)?;
        self.has_room(1)?;
        self.commit(Act::Directory { path, origin: None, mode: NEW_DIRECTORY, hidden })
    }

    /// The bytes that have to be copied before the file can be written.
    pub(crate) fn to_copy(&self, place: &PathEnd<DirAt>, found: &Found) -> Result<u64, Fault> {
        Ok(self.source(place, found)?.map_or(0, |source| length(&source.stat)))
    }

    /// Opens a file for writing. At most `keep` bytes of a lower file's content are copied to the layer
    /// first.
    pub(crate) fn open_to_write(
        &mut self,
        place: &PathEnd<DirAt>,
        found: &Found,
        flags: OFlags,
        keep: u64,
    ) -> Result<(Arc<Upper>, File), Fault> {
        let id = match (self.source(place, found)?, found.child) {
            (Some(source), _) => self.copy_up(place, source, keep)?,
            (None, Child::File(id)) => id,
            (None, _) => return Err(Errno::ISDIR.into()),
        };
        let file = self.shared.layer.open_file(id, flags)?;
        Ok((self.upper(id)?, file))
    }

    /// The file to copy, if its content is not in the layer.
    fn source(&self, place: &PathEnd<DirAt>, found: &Found) -> Result<Option<Source>, Fault> {
        let (rel, known, opened) = match found.child {
            Child::File(id) => match self.content_below(id) {
                Some(rel) => {
                    let (dir, name) = self.shared.lower.place(&rel)?;
                    let opened = dir.open(name)?;
                    (rel, Some(id), opened)
                }
                None => return Ok(None),
            },
            Child::Lower => {
                let lower = place.at().lower.as_ref().ok_or(Errno::NOENT)?;
                let name = place.name.as_deref().ok_or(Errno::ISDIR)?;
                (lower.rel.join(name), None, lower.open(name)?)
            }
            Child::Dir(_) | Child::Nothing => return Ok(None),
        };
        let (file, stat) = opened;
        if !is_file(&stat) {
            // The file was a regular one at the lookup.
            return Err(Errno::NXIO.into());
        }
        Ok(Some(Source { file, stat, rel, known }))
    }

    fn copy_up(&mut self, place: &PathEnd<DirAt>, from: Source, keep: u64) -> Result<u64, Fault> {
        let seen = Seen::of(&from.stat);
        let identity = (seen.device, seen.inode);
        let (id, act) = match from.known {
            Some(id) => (id, Act::CopiedUp { id }),
            None => {
                let path = self.path_at(place)?;
                self.has_room(1)?;
                let id = self.state.tree.next_file();
                let origin = Some(Origin { rel: from.rel.clone(), seen });
                let file = FileRecord { copied: true, mode: seen.mode, origin };
                (id, Act::File { path, id, file, hidden: Some(seen), new: false })
            }
        };
        let times = self.state.tree.file(id).map(|file| file.times).unwrap_or_default();
        let upper = Arc::new(Upper::new(&self.shared.room, id, Some(identity)));
        let mut growing = upper.grow();
        growing.to(keep)?;
        let to = self.shared.layer.create(id)?;
        let copied = beside::copying(keep, || copy(&from.file, &to, keep)).and_then(|copied| {
            // A shared file may have grown meanwhile, so the copy is cut.
            to.set_len(copied)?;
            if keep > 0 || length(&from.stat) == 0 {
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
        self.shared.digests.add(seen, from.file);
        Ok(id)
    }

    /// Records a copied file; after a failure, no part of the copy remains.
    fn settle_file(
        &mut self,
        id: u64,
        copied: io::Result<u64>,
        growing: Growing<'_>,
        act: Act,
    ) -> Result<(), Fault> {
        let done = match copied {
            Ok(copied) => {
                growing.settle(copied);
                self.commit(act)
            }
            Err(error) => {
                drop(growing);
                Err(error.into())
            }
        };
        done.inspect_err(|_| self.shared.layer.remove(id))
    }

    /// Sets the content at a path atomically; an existing file loses the name. For the host.
    pub(super) fn put_file(
        &mut self,
        place: &PathEnd<DirAt>,
        from: &File,
        mode: u32,
    ) -> Result<(), Fault> {
        let path = self.path_at(place)?;
        let name = place.name.as_deref().ok_or(Errno::EXIST)?;
        let hidden = self.hides(place.at(), name)?;
        self.has_room(1)?;
        let (origin, original) = match self.look_up(place) {
            Ok(found) => {
                let source = self.source(place, &found)?;
                (self.origin(place, &found), source.map(|source| source.file))
            }
            Err(Errno::NOENT) => (None, None),
            Err(errno) => return Err(errno.into()),
        };
        let identity = origin.as_ref().map(|origin| (origin.seen.device, origin.seen.inode));
        let seen = origin.as_ref().map(|origin| origin.seen);
        let id = self.state.tree.next_file();
        let upper = Arc::new(Upper::new(&self.shared.room, id, identity));
        let length = length(&rustix::fs::fstat(from).map_err(Fault::Errno)?);
        let mut growing = upper.grow();
        growing.to(length)?;
        let to = self.shared.layer.create(id)?;
        let copied = beside::copying(length, || copy(from, &to, length)).and_then(|copied| {
            to.set_len(copied)?;
            to.set_modified(from.metadata()?.modified()?)?;
            Ok(copied)
        });
        let file = FileRecord { copied: true, mode, origin };
        let act = Act::File { path, id, file, hidden, new: true };
        self.settle_file(id, copied, growing, act)?;
        self.state.uppers.insert(id, upper);
        if let (Some(seen), Some(original)) = (seen, original) {
            self.shared.digests.add(seen, original);
        }
        Ok(())
    }

    /// Shows a lower object that guests cannot change at a free path. For the host.
    pub(super) fn put_other(
        &mut self,
        place: &PathEnd<DirAt>,
        origin: Origin,
    ) -> Result<(), Fault> {
        let (path, hidden) = self.free(place)?;
        self.has_room(1)?;
        let id = self.state.tree.next_file();
        let file = FileRecord { copied: false, mode: origin.seen.mode, origin: Some(origin) };
        self.commit(Act::File { path, id, file, hidden, new: true })
    }

    /// Removes a name of a file, or an empty directory.
    pub(crate) fn remove(&mut self, place: &PathEnd<DirAt>, found: &Found) -> Result<(), Fault> {
        let name = place.name.as_deref().ok_or(Errno::INVAL)?;
        if kind(&found.stat) == FileType::Directory && !self.is_empty(place.at(), name, found)? {
            return Err(Errno::NOTEMPTY.into());
        }
        let path = self.path_at(place)?;
        let hidden = self.hides(place.at(), name)?;
        // A hidden name counts as a new one.
        if found.child == Child::Lower || self.is_own_place(found) {
            self.has_room(1)?;
        }
        self.commit(Act::Gone { path, hidden })
    }

    fn is_own_place(&self, found: &Found) -> bool {
        matches!(found.child, Child::Dir(id) if self.state.tree.is_own_place(id))
    }

    fn is_empty(&self, dir: &DirAt, name: &OsStr, found: &Found) -> Result<bool, Errno> {
        use crate::imports::files::walk::Steps as _;
        let found = match found.child {
            Child::Dir(id) => self.known_dir(dir, name, id)?,
            _ => self.enter(dir, name)?,
        };
        Ok(self.list_all(&found, 0)?.is_empty())
    }

    /// Moves a name by the rules of the operating system. A file gets the replaced file's permissions.
    pub(crate) fn rename(
        &mut self,
        [old, new]: [&PathEnd<DirAt>; 2],
        found: &Found,
    ) -> Result<(), Fault> {
        let busy = Errno::BUSY;
        let old_name = old.name.as_deref().ok_or(busy)?;
        let new_name = new.name.as_deref().ok_or(busy)?;
        let (from, to) = (self.path_at(old)?, self.path_at(new)?);
        let is_dir = kind(&found.stat) == FileType::Directory;
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
            let same = matches!(found.child, Child::File(_)) && found.child == target.child;
            if from == to || same {
                return Ok(());
            }
            match (is_dir, kind(&target.stat) == FileType::Directory) {
                (true, false) => return Err(Errno::NOTDIR.into()),
                (false, true) => return Err(Errno::ISDIR.into()),
                (true, true) if !self.is_empty(new.at(), new_name, target)? => {
                    return Err(Errno::NOTEMPTY.into());
                }
                _ => {}
            }
        }
        let left = self.hides(old.at(), old_name)?;
        let hidden = self.hides(new.at(), new_name)?;
        self.has_room(2)?;
        let replaced = target.filter(|target| is_file(&target.stat) && found.names == 1);
        let mode = replaced.as_ref().map(|target| self.mode(target));
        if found.child == Child::Lower && !is_dir {
            self.take_in(old, &from, found)?;
        }
        let below = new.at().lower.as_ref();
        let replaced = below.zip(replaced).and_then(|(lower, target)| {
            let opened = (target.child == Child::Lower).then(|| lower.open(new_name));
            opened.and_then(Result::ok)
        });
        self.commit(Act::Moved { from, to, left, hidden, mode })?;
        // A program that writes to another name and renames is changing the replaced file, so its
        // digest is needed.
        if let Some((file, stat)) = replaced {
            self.shared.digests.add(Seen::of(&stat), file);
        }
        Ok(())
    }

    /// The file's permissions.
    pub(super) fn mode(&self, found: &Found) -> u32 {
        match found.child {
            Child::File(id) => self.state.tree.file(id).map_or(NEW_FILE, |file| file.record.mode),
            _ => mode(&found.stat),
        }
    }

    /// Adds another name to a file.
    pub(crate) fn link(
        &mut self,
        [old, new]: [&PathEnd<DirAt>; 2],
        found: &Found,
    ) -> Result<(), Fault> {
        let (path, hidden) = self.free(new)?;
        let from = self.path_at(old)?;
        self.has_room(2)?;
        let id = match found.child {
            Child::File(id) => id,
            _ => self.take_in(old, &from, found)?,
        };
        self.commit(Act::Link { path, id, hidden })
    }

    /// Sets times of a file or directory.
    pub(crate) fn touch(
        &mut self,
        place: &PathEnd<DirAt>,
        found: &Found,
        times: &Timestamps,
    ) -> Result<(), Fault> {
        let path = match &place.name {
            Some(_) => self.path_at(place)?,
            None => return self.touch_dir(place.at(), times),
        };
        let known = match found.child {
            Child::File(id) if self.content_below(id).is_none() => {
                return Ok(self.shared.layer.set_times(id, times)?);
            }
            Child::File(id) => Some(id),
            Child::Lower if kind(&found.stat) != FileType::Directory => {
                self.has_room(1)?;
                Some(self.take_in(place, &path, found)?)
            }
            _ => None,
        };
        self.commit(Act::Times { path, times: stated(times) })?;
        // A reader shows these times even after the last name is removed.
        let file = known.and_then(|id| self.state.tree.file(id));
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
    pub(crate) fn touch_dir(&mut self, dir: &DirAt, times: &Timestamps) -> Result<(), Fault> {
        match self.path_of(dir)? {
            Some(path) => self.commit(Act::Times { path, times: stated(times) }),
            None => Ok(()),
        }
    }

    /// Adds a lower file to the index without changing it.
    fn take_in(&mut self, place: &PathEnd<DirAt>, path: &Rel, found: &Found) -> Result<u64, Fault> {
        let name = place.name.as_deref().ok_or(Errno::INVAL)?;
        let lower = place.at().lower.as_ref().ok_or(Errno::NOENT)?;
        let seen = Seen::of(&found.stat);
        let origin = Some(Origin { rel: lower.rel.join(name), seen });
        let id = self.state.tree.next_file();
        let file = FileRecord { copied: false, mode: seen.mode, origin };
        let path = path.clone();
        self.commit(Act::File { path, id, file, hidden: Some(seen), new: false })?;
        Ok(id)
    }

    /// Checks that a path is free; returns the path and the hidden lower object, if any.
    fn free(&self, place: &PathEnd<DirAt>) -> Result<(Rel, Option<Seen>), Fault> {
        let name = place.name.as_deref().ok_or(Errno::EXIST)?;
        match self.look_up(place) {
            Ok(_) => return Err(Errno::EXIST.into()),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok((self.path_at(place)?, self.hides(place.at(), name)?))
    }

    /// The lower object that an entry of this name hides. An already hidden object stays the one of that
    /// time. The path of an invisible directory is not free.
    fn hides(&self, dir: &DirAt, name: &OsStr) -> Result<Option<Seen>, Errno> {
        if dir.lower.as_ref().is_some_and(|lower| lower.veils(name)) {
            return Err(Errno::PERM);
        }
        if let At::Known(id) = dir.at
            && let Some(entry) = self.state.tree.dir(id).and_then(|known| known.entries.get(name))
            && entry.hidden.is_some()
        {
            return Ok(entry.hidden);
        }
        match &dir.lower {
            Some(lower) => Ok(lower.look(name)?.as_ref().map(Seen::of)),
            None => Ok(None),
        }
    }

    /// The path of an object that is about to be changed.
    pub(super) fn path_at(&self, place: &PathEnd<DirAt>) -> Result<Rel, Errno> {
        let dir = self.path_of(place.at())?.ok_or(Errno::NOENT)?;
        let path = place.name.as_deref().map_or_else(|| dir.clone(), |name| dir.join(name));
        if place.name.as_ref().is_some_and(|name| name.len() > MAX_NAME) {
            return Err(Errno::NAMETOOLONG);
        }
        if path.as_bytes().len() > MAX_PATH || path.names().count() > MAX_LEVELS {
            return Err(Errno::NAMETOOLONG);
        }
        Ok(path)
    }

    /// The path of a directory as guests see it; `None` = it was removed.
    fn path_of(&self, dir: &DirAt) -> Result<Option<Rel>, Errno> {
        let tree = &self.state.tree;
        let lower = match (dir.at, &dir.lower) {
            (At::Known(id), _) => return Ok(tree.path_of(id)),
            (At::Lower, Some(lower)) => &lower.rel,
            (At::Lower, None) | (At::Gone, _) => return Ok(None),
        };
        let mut names: Vec<&OsStr> = Vec::new();
        let mut path = lower.as_bytes();
        loop {
            if let Some(above) = tree.dir_below(path).and_then(|id| tree.path_of(id)) {
                return Ok(Some(names.iter().rev().fold(above, |path, name| path.join(name))));
            }
            let Some((above, name)) = super::rel::split(path) else { return Ok(None) };
            names.push(name);
            path = above;
        }
    }

    fn has_room(&self, entries: u64) -> Result<(), Fault> {
        let used = self.state.tree.count();
        self.shared.room.admit(used, entries).map_err(|Full(facts)| Fault::Full(facts))
    }

    fn upper(&self, id: u64) -> Result<Arc<Upper>, Errno> {
        self.state.uppers.get(&id).map(Arc::clone).ok_or(Errno::NOENT)
    }

    /// Records a change, and applies it.
    fn commit(&mut self, act: Act) -> Result<(), Fault> {
        self.write_down(act)?;
        self.note_digests();
        Ok(())
    }

    /// Records the new digests. A lost digest is computed again on demand, if the file still exists.
    pub(super) fn note_digests(&mut self) {
        for (seen, digest) in self.shared.digests.take() {
            let _ = self.write_down(Act::Digest { seen, digest });
        }
    }

    pub(super) fn write_down(&mut self, act: Act) -> Result<(), Fault> {
        let record = IndexRecord { at: Time::now(), act };
        let state = &mut *self.state;
        state.index.append(&record)?;
        match state.tree.apply(&record) {
            Ok(None) => {}
            Ok(Some(id)) => {
                state.uppers.remove(&id);
                self.shared.layer.remove(id);
            }
            Err(_) => {
                state.index.take_back(&record);
                return Err(Errno::IO.into());
            }
        }
        if state.index.is_long() {
            // If this fails, the present index stays valid, only longer.
            let _ = state.index.replace(&state.tree.records());
        }
        Ok(())
    }
}

fn length(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Times for the index, with the present filled in.
fn stated(times: &Timestamps) -> FileTimes {
    let stated = |time: &Timespec| match time.tv_nsec {
        UTIME_OMIT => None,
        UTIME_NOW => Some(Time::now()),
        nanoseconds => Some(Time::of(time.tv_sec, nanoseconds)),
    };
    FileTimes { accessed: stated(&times.last_access), modified: stated(&times.last_modification) }
}

/// The times of a copy: the file's, or the explicitly set ones.
fn kept_times(stat: &Stat, times: FileTimes) -> Timestamps {
    let time = |set: Option<Time>, own: Time| {
        let Time { seconds, nanoseconds } = set.unwrap_or(own);
        Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() }
    };
    Timestamps {
        last_access: time(times.accessed, Time::of(stat.st_atime, stat.st_atime_nsec)),
        last_modification: time(times.modified, Time::of(stat.st_mtime, stat.st_mtime_nsec)),
    }
}
