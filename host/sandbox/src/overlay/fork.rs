//! An overlay for one subagent: it begins as a copy of its parent's overlay and is merged back.
//!
//! ```text
//! DIR/base   the parent's layer at the time of the copy; never written again
//! DIR/mine   the layer of the subagent
//! ```
//!
//! Both are layers over the same lower directory. They are made beside `DIR` and then moved there, so that a
//! killed process never leaves half of a fork: opening `DIR` again finds the whole fork or makes a new one.
//!
//! A merge compares three trees: the subagent's, the common base, and the parent's. It proceeds path by path
//! with the operations that guests have, each of them atomic. Merging again finishes an interrupted merge,
//! because equal files are left alone. For example, if both changed `a.txt`, the parent's version stays and
//! the subagent's becomes `a.txt.from-scout`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use belljar_work::StopSignal;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::acts::Fault;
use super::lower::is_file;
use super::record::{Origin, identity};
use super::rel::Rel;
use super::view::{DirAt, Found, ReadFile, View};
use super::{Overlay, OverlayError};
use crate::imports::files::names::is_protected;
use crate::imports::files::walk::{PathEnd, Steps as _, kind};

pub(super) const BASE: &str = "base";
pub(super) const MINE: &str = "mine";

/// Conflicts that are listed one by one; further ones are only counted.
const MAX_TOLD: usize = 100;
/// Names that are tried for a file beside a conflicting one.
const MAX_BESIDE: u32 = 1_000;
/// Bytes compared in one step.
const STEP: usize = 64 << 10;

/// A subagent's overlay. The fork stays on disk, and counts in the pool, until a merge or a discard.
#[derive(Debug)]
pub struct Fork {
    dir: PathBuf,
    mine: Overlay,
}

/// The result of a merge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// Files and directories of the parent that the merge changed.
    pub changed: u64,
    /// The paths that both sides changed, at most a hundred of them.
    pub conflicts: Vec<MergeConflict>,
    /// The count of further conflicts.
    pub more: u64,
}

/// A path changed on both sides. The parent's version stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflict {
    /// The path.
    pub path: PathBuf,
    /// The path of the subagent's version after the merge. `None` = no version exists: the subagent removed
    /// or moved the file that the parent changed, or the file is a link.
    pub beside: Option<PathBuf>,
}

impl Overlay {
    /// Opens the fork in the directory `dir`, or makes a new one that begins as a copy of this overlay. A new
    /// fork counts in the pool with the size of this overlay, until a merge or a discard; an existing fork
    /// was counted before.
    ///
    /// # Errors
    ///
    /// The directory cannot be made or opened, or the pool has no room for a copy of this size.
    pub fn fork(&self, dir: impl AsRef<Path>) -> Result<Fork, OverlayError> {
        self.fork_until(dir, &StopSignal::never())
    }

    /// Opens or makes a fork like [`Overlay::fork`], and stops between two files when the signal is raised. A
    /// stopped call leaves no new fork behind.
    ///
    /// # Errors
    ///
    /// Those of [`Overlay::fork`], and an error for a raised signal.
    pub fn fork_until(
        &self,
        dir: impl AsRef<Path>,
        stop: &StopSignal,
    ) -> Result<Fork, OverlayError> {
        let dir = dir.as_ref();
        let failed = |source| {
            let lower = self.shared.path.clone();
            OverlayError { lower, layer: dir.to_owned(), source }
        };
        let is_new = !dir.join(MINE).exists();
        if is_new {
            self.copy_to(dir, stop).map_err(failed)?;
        }
        let mine = self.opened_like(&dir.join(MINE), stop)?;
        if is_new {
            mine.shared.room.joins(mine.used().files);
        }
        Ok(Fork { dir: dir.to_owned(), mine })
    }

    /// Opens another layer over the same lower directory, with the same bounds.
    fn opened_like(&self, layer: &Path, stop: &StopSignal) -> Result<Self, OverlayError> {
        Self::open_with(&self.shared.path, layer, self.shared.room.bounds(), stop)
    }
}

impl Fork {
    /// The path of the layer of the fork in `dir`.
    pub fn layer_in(dir: &Path) -> PathBuf {
        dir.join(MINE)
    }

    /// The overlay that the subagent reads and changes.
    pub fn overlay(&self) -> &Overlay {
        &self.mine
    }

    /// Removes the fork, with all its changes.
    ///
    /// # Errors
    ///
    /// The directory cannot be removed.
    pub fn discard(self) -> io::Result<()> {
        let files = self.mine.used().files;
        // The maker of digests would otherwise write into a directory that is being removed.
        self.mine.shared.digests.wait();
        // Under its own name the fork is whole or missing, whenever the process dies.
        let gone = self.dir.with_extension("gone");
        match std::fs::remove_dir_all(&gone) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::rename(&self.dir, &gone)?;
        std::fs::remove_dir_all(&gone)?;
        self.mine.shared.room.leaves(files);
        Ok(())
    }

    /// The paths at which the fork differs from its base: at most `most` of them, and the count of further
    /// ones. A new directory and its content count as one path.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn changed(&self, most: usize) -> io::Result<(Vec<PathBuf>, u64)> {
        let base = self
            .mine
            .opened_like(&self.dir.join(BASE), &StopSignal::never())
            .map_err(|error| error.source)?;
        let (views, found) = ((base.view(), self.mine.view()), (Vec::new(), 0));
        let (before, after) = (top(&views.0, &base), top(&views.1, &self.mine));
        let mut comparison = Comparison { base: views.0, mine: views.1, most, found };
        comparison.dir(&Rel::default(), &before, &after)?;
        Ok(comparison.found)
    }

    /// Merges the subagent's changes into the parent's overlay, and removes the fork. `name` is the
    /// subagent's name and becomes part of the names of conflicting files, for example `FILE.from-scout`.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written, or the parent's overlay is full. The fork then stays, and so do the
    /// changes that were merged before the error.
    pub fn merge(self, parent: &Overlay, name: &str) -> io::Result<Merged> {
        let base = parent
            .opened_like(&self.dir.join(BASE), &StopSignal::never())
            .map_err(|error| error.source)?;
        let mut merge = Merge {
            parent,
            base: base.view(),
            mine: self.mine.view(),
            suffix: suffix(name),
            merged: Merged::default(),
        };
        let (before, after) = (top(&merge.base, &base), top(&merge.mine, &self.mine));
        merge.dir(&Rel::default(), &Rel::default(), Some(&before), Some(&after))?;
        let merged = std::mem::take(&mut merge.merged);
        drop(merge);
        drop(base);
        self.discard()?;
        Ok(merged)
    }
}

fn top(view: &View<'_>, overlay: &Overlay) -> DirAt {
    view.dir(&View::root(), Some(overlay.lower()))
}

/// The suffix of a file beside a conflicting one, for example `.from-scout`.
fn suffix(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let name: String = name.chars().take(64).map(plain).collect();
    format!(".from-{name}")
}

struct Merge<'a> {
    parent: &'a Overlay,
    base: View<'a>,
    mine: View<'a>,
    suffix: String,
    merged: Merged,
}

/// Collects the paths at which a fork differs from its base.
struct Comparison<'a> {
    base: View<'a>,
    mine: View<'a>,
    most: usize,
    found: (Vec<PathBuf>, u64),
}

impl Comparison<'_> {
    fn dir(&mut self, path: &Rel, before: &DirAt, after: &DirAt) -> io::Result<()> {
        for name in names((&self.base, Some(before)), (&self.mine, Some(after)))? {
            let path = path.join(&name);
            let was = thing(&mut self.base, Some(before), &name)?;
            let is = thing(&mut self.mine, Some(after), &name)?;
            let is_same = match (was, is) {
                (Thing::Nothing, Thing::Nothing) => true,
                (Thing::Other(was), Thing::Other(is)) => was == is,
                (Thing::File(was), Thing::File(is)) => same(&was, &is)?,
                (Thing::Dir(was), Thing::Dir(is)) => {
                    self.dir(&path, &was, &is)?;
                    true
                }
                (Thing::Nothing | Thing::Dir(_) | Thing::File(_) | Thing::Other(_), _) => false,
            };
            if is_same {
                continue;
            }
            let (found, more) = &mut self.found;
            match found.len() < self.most {
                true => found.push(PathBuf::from(OsStr::from_bytes(path.as_bytes()))),
                false => *more += 1,
            }
        }
        Ok(())
    }
}

/// The names that may differ between two directories, each with its own view.
fn names(
    (base, before): (&View<'_>, Option<&DirAt>),
    (mine, after): (&View<'_>, Option<&DirAt>),
) -> io::Result<Vec<OsString>> {
    let mut names: Vec<OsString> = match (before, after) {
        (Some(before), Some(after)) if View::is_of_one_place(before, after) => {
            base.known_names(before).chain(mine.known_names(after)).collect()
        }
        _ => {
            let mut names = Vec::new();
            for (view, dir) in [(base, before), (mine, after)] {
                if let Some(dir) = dir {
                    names.extend(view.list(dir, u64::MAX)?.into_iter().map(|(name, _)| name));
                }
            }
            names
        }
    };
    names.sort();
    names.dedup();
    Ok(names)
}

/// The object that a name refers to.
enum Thing {
    Nothing,
    Dir(DirAt),
    File(Content),
    /// A link or a special file. Guests cannot change such a file, but can move a directory that contains it.
    /// The origin is always in the lower directory.
    Other(Origin),
}

/// An open file with its permissions.
struct Content {
    file: File,
    mode: u32,
}

impl Merge<'_> {
    /// Merges one directory from its base version to the subagent's version. `to` is the parent's path for
    /// the changes.
    fn dir(
        &mut self,
        path: &Rel,
        to: &Rel,
        before: Option<&DirAt>,
        after: Option<&DirAt>,
    ) -> io::Result<()> {
        for name in names((&self.base, before), (&self.mine, after))? {
            // Guests cannot change a protected name.
            if is_protected(&name.to_string_lossy()) {
                continue;
            }
            let (path, to) = (path.join(&name), to.join(&name));
            let was = thing(&mut self.base, before, &name)?;
            let is = thing(&mut self.mine, after, &name)?;
            match (was, is) {
                (Thing::Nothing, Thing::Nothing) | (Thing::Other(_), Thing::Other(_)) => {}
                (Thing::Dir(was), Thing::Dir(is)) => {
                    self.dir(&path, &to, Some(&was), Some(&is))?;
                }
                (Thing::Dir(was), is) => {
                    self.dir(&path, &to, Some(&was), None)?;
                    self.remove_dir(&to)?;
                    self.put_thing(&path, &to, &Thing::Nothing, is)?;
                }
                (was, is @ Thing::Dir(_)) => {
                    self.remove(&to, &was)?;
                    self.put_thing(&path, &to, &Thing::Nothing, is)?;
                }
                (was, Thing::Nothing) => self.remove(&to, &was)?,
                (was, is) => self.put_thing(&path, &to, &was, is)?,
            }
        }
        Ok(())
    }

    fn put_thing(&mut self, path: &Rel, to: &Rel, was: &Thing, is: Thing) -> io::Result<()> {
        match is {
            Thing::Nothing => Ok(()),
            Thing::Dir(dir) => {
                let to = self.make_dir(to)?;
                self.dir(path, &to, None, Some(&dir))
            }
            Thing::File(file) => self.put(to, was, &file),
            Thing::Other(origin) => self.put_other(to, &origin),
        }
    }

    /// Makes the parent's directory for a directory of the subagent: at `to`, or beside it if another object
    /// has that name.
    fn make_dir(&mut self, to: &Rel) -> io::Result<Rel> {
        let found = place(&self.parent.view(), self.parent, to)?.is_some();
        let here = if found { to.clone() } else { self.dirs(to)? };
        for n in 0..MAX_BESIDE {
            let at = if n == 0 { here.clone() } else { self.beside(&here, n) };
            let mut view = self.parent.view();
            let Some((dir, name)) = place(&view, self.parent, &at)? else { continue };
            match thing(&mut view, Some(&dir), &name)? {
                Thing::Dir(_) => {}
                Thing::Nothing => {
                    view.make_dir(&PathEnd::of_name(dir, name)).map_err(failed)?;
                    self.merged.changed += 1;
                }
                Thing::File(_) | Thing::Other(_) => continue,
            }
            drop(view);
            if n > 0 || !found {
                self.conflict(to, Some(&at));
            }
            return Ok(at);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Makes the missing parent directories of a path that the parent removed or moved, and returns the path.
    fn dirs(&mut self, to: &Rel) -> io::Result<Rel> {
        let mut names: Vec<&OsStr> = to.names().collect();
        let last = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
        let mut at = Rel::default();
        for name in names {
            at = self.make_dir(&at.join(name))?;
        }
        Ok(at.join(last))
    }

    /// Writes a file to the parent if the parent still has the base version; otherwise beside it.
    fn put(&mut self, to: &Rel, was: &Thing, file: &Content) -> io::Result<()> {
        if let Thing::File(was) = was
            && same(was, file)?
        {
            return Ok(());
        }
        let found = place(&self.parent.view(), self.parent, to)?.is_some();
        let here = if found { to.clone() } else { self.dirs(to)? };
        for n in u32::from(!found)..MAX_BESIDE {
            let at = if n == 0 { here.clone() } else { self.beside(&here, n) };
            // The view is held until the write, so nothing changes in between.
            let mut view = self.parent.view();
            let Some((dir, name)) = place(&view, self.parent, &at)? else { continue };
            let free = match thing(&mut view, Some(&dir), &name)? {
                Thing::Nothing => n > 0 || matches!(was, Thing::Nothing),
                Thing::File(there) if same(&there, file)? => {
                    drop(view);
                    if n > 0 {
                        self.conflict(to, Some(&at));
                    }
                    return Ok(());
                }
                Thing::File(there) => match was {
                    Thing::File(was) if n == 0 => same(&there, was)?,
                    Thing::Nothing | Thing::Dir(_) | Thing::File(_) | Thing::Other(_) => false,
                },
                Thing::Dir(_) | Thing::Other(_) => false,
            };
            if !free {
                continue;
            }
            view.put_file(&PathEnd::of_name(dir, name), &file.file, file.mode).map_err(failed)?;
            drop(view);
            self.merged.changed += 1;
            if n > 0 {
                self.conflict(to, Some(&at));
            }
            return Ok(());
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Shows a link that was moved with its directory at the new path.
    fn put_other(&mut self, to: &Rel, origin: &Origin) -> io::Result<()> {
        let mut view = self.parent.view();
        let Some((dir, name)) = place(&view, self.parent, to)? else { return Ok(()) };
        match thing(&mut view, Some(&dir), &name)? {
            Thing::Nothing => {
                view.put_other(&PathEnd::of_name(dir, name), origin.clone()).map_err(failed)?;
                self.merged.changed += 1;
            }
            Thing::Other(there) if there == *origin => {}
            Thing::Dir(_) | Thing::File(_) | Thing::Other(_) => {
                drop(view);
                self.conflict(to, None);
            }
        }
        Ok(())
    }

    /// Removes a file from the parent if the parent still has the base version.
    fn remove(&mut self, to: &Rel, was: &Thing) -> io::Result<()> {
        let mut view = self.parent.view();
        let Some((dir, name)) = place(&view, self.parent, to)? else { return Ok(()) };
        let same = match (thing(&mut view, Some(&dir), &name)?, was) {
            (Thing::Nothing, _) => return Ok(()),
            (Thing::File(there), Thing::File(was)) => same(&there, was)?,
            (Thing::Other(_), Thing::Other(_)) => true,
            (Thing::Dir(_) | Thing::File(_) | Thing::Other(_), _) => false,
        };
        if same {
            let place = PathEnd::of_name(dir, name);
            let found = view.find(&place)?;
            view.remove(&place, &found).map_err(failed)?;
            self.merged.changed += 1;
        } else if !matches!(was, Thing::Nothing) {
            drop(view);
            self.conflict(to, None);
        }
        Ok(())
    }

    /// Removes a directory like [`Self::remove`]; its entries are removed already.
    fn remove_dir(&mut self, to: &Rel) -> io::Result<()> {
        let mut view = self.parent.view();
        let Some((dir, name)) = place(&view, self.parent, to)? else { return Ok(()) };
        let Thing::Dir(_) = thing(&mut view, Some(&dir), &name)? else { return Ok(()) };
        let place = PathEnd::of_name(dir, name);
        let found = view.find(&place)?;
        match view.remove(&place, &found) {
            Ok(()) => self.merged.changed += 1,
            Err(Fault::Errno(Errno::NOTEMPTY)) => {
                drop(view);
                self.conflict(to, None);
            }
            Err(fault) => return Err(failed(fault)),
        }
        Ok(())
    }

    fn beside(&self, to: &Rel, n: u32) -> Rel {
        let mut path = to.as_bytes().to_vec();
        path.extend_from_slice(self.suffix.as_bytes());
        if n > 1 {
            path.extend_from_slice(format!("-{n}").as_bytes());
        }
        Rel::from_bytes(&path).unwrap_or_default()
    }

    fn conflict(&mut self, path: &Rel, beside: Option<&Rel>) {
        if self.merged.conflicts.len() >= MAX_TOLD {
            self.merged.more += 1;
            return;
        }
        let shown = |rel: &Rel| PathBuf::from(OsStr::from_bytes(rel.as_bytes()));
        let conflict = MergeConflict { path: shown(path), beside: beside.map(shown) };
        self.merged.conflicts.push(conflict);
    }
}

/// The parent's directory that contains a path, and the last name. `None` = the directory is missing or is
/// another kind of object.
fn place(view: &View<'_>, overlay: &Overlay, path: &Rel) -> io::Result<Option<(DirAt, OsString)>> {
    let mut dir = top(view, overlay);
    let mut names: Vec<&OsStr> = path.names().collect();
    let last = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
    for name in names {
        dir = match view.enter(&dir, name) {
            Ok(next) => next,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
    }
    Ok(Some((dir, last.to_owned())))
}

fn thing(view: &mut View<'_>, dir: Option<&DirAt>, name: &OsStr) -> io::Result<Thing> {
    let Some(dir) = dir else { return Ok(Thing::Nothing) };
    let place = PathEnd::of_name(dir.again()?, name.to_owned());
    let found = match view.find(&place) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Thing::Nothing),
        Err(errno) => return Err(errno.into()),
    };
    Ok(match kind(&found.stat) {
        FileType::Directory => Thing::Dir(view.enter(place.at(), name)?),
        FileType::RegularFile => match opened(view, &place, &found)? {
            Some(file) => Thing::File(Content { file, mode: view.mode(&found) }),
            None => return Err(Errno::NXIO.into()),
        },
        _ => Thing::Other(view.origin(&place, &found).ok_or(Errno::NOENT)?),
    })
}

fn opened(view: &mut View<'_>, place: &PathEnd<DirAt>, found: &Found) -> io::Result<Option<File>> {
    Ok(match view.open_to_read(place, found)? {
        ReadFile::Lower(_, file) | ReadFile::Upper(_, file) => Some(file),
        ReadFile::Special => None,
    })
}

/// Whether two files have equal content and permissions.
fn same(one: &Content, other: &Content) -> io::Result<bool> {
    use std::os::unix::fs::FileExt as _;
    let (a, b) = (rustix::fs::fstat(&one.file)?, rustix::fs::fstat(&other.file)?);
    if one.mode != other.mode || a.st_size != b.st_size || !is_file(&a) || !is_file(&b) {
        return Ok(false);
    }
    if identity(&a) == identity(&b) {
        return Ok(true);
    }
    let (mut left, mut right) = (vec![0; STEP], vec![0; STEP]);
    let (mut at, length) = (0, u64::try_from(a.st_size).unwrap_or(0));
    while at < length {
        let step = usize::try_from(length - at).unwrap_or(STEP).min(STEP);
        let (left, right) = (left.get_mut(..step), right.get_mut(..step));
        let (Some(left), Some(right)) = (left, right) else { break };
        one.file.read_exact_at(left, at)?;
        other.file.read_exact_at(right, at)?;
        if left != right {
            return Ok(false);
        }
        at += step as u64;
    }
    Ok(true)
}

fn failed(fault: Fault) -> io::Error {
    match fault {
        Fault::Errno(errno) => errno.into(),
        Fault::Full(facts) => io::Error::new(io::ErrorKind::QuotaExceeded, facts),
        Fault::Io(error) => error,
    }
}
