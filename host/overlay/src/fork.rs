//! A fork: an overlay for a subagent that begins as a copy of the parent's overlay, and is merged back.
//!
//! ```text
//! DIR/base   a copy of the parent's layer at the start of the fork; never written again
//! DIR/mine   the layer of the subagent
//! ```
//!
//! Both are layers over the same lower directory. They are made beside `DIR` and then moved there, so that a
//! killed process never leaves half a fork: opening `DIR` finds a whole fork, or makes a new one.
//!
//! A merge compares three trees: the subagent's, the base, and the parent's. The merge goes path by path,
//! with the operations that guests have, each of them atomic. If a merge was interrupted, merging again
//! finishes the work, because equal files are left alone. For example, if both changed `a.txt`, the parent's
//! file stays, and the subagent's becomes `a.txt.from-scout`.

mod comparison;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use belljar_policy::is_protected;
use belljar_work::StopSignal;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::acts::ChangeFault;
use super::lower::is_file;
use super::record::{ContentOrigin, stat_identity};
use super::rel::RelPath;
use super::view::{DirAt, FoundEntry, OverlayView, ReadFile};
use super::{Overlay, OverlayError};

use crate::walk::{DirStepper as _, PathEnd, file_type};
use comparison::{ForkComparison, differing_names};

pub(super) const BASE: &str = "base";
pub(super) const MINE: &str = "mine";

/// The most conflicts listed; further ones are counted.
const MAX_TOLD: usize = 100;
/// The most names to try for a conflicting file.
const MAX_BESIDE: u32 = 1_000;
/// The bytes of two files compared at a time.
const STEP: usize = 64 << 10;

/// A subagent's overlay. Stays on disk, and counts in the pool, until it is merged or discarded.
#[derive(Debug)]
pub struct OverlayFork {
    dir: PathBuf,
    mine: Overlay,
}

/// What a merge did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergeResult {
    /// The number of the parent's files and directories the merge changed.
    pub changed: u64,
    /// The paths that both sides changed, at most a hundred.
    pub conflicts: Vec<MergeConflict>,
    /// The number of further conflicts.
    pub more: u64,
}

/// A path that both sides changed. The parent's version stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflict {
    /// The path in the parent's overlay.
    pub path: PathBuf,
    /// The path of the subagent's version after the merge. `None` = no version: the subagent removed or moved
    /// the file that the parent changed, or the object is a link.
    pub beside: Option<PathBuf>,
}

impl Overlay {
    /// Opens the fork in the directory `dir`, or makes a fork there as a copy of this overlay. A new fork
    /// counts in the pool with this overlay's size, until a merge or a discard; an existing fork is counted
    /// already.
    ///
    /// # Errors
    ///
    /// The directory cannot be made or opened, or the pool has no space for a copy.
    pub fn open_fork(&self, dir: impl AsRef<Path>) -> Result<OverlayFork, OverlayError> {
        self.fork_until(dir, &StopSignal::never_raised())
    }

    /// Like [`Overlay::open_fork`], but stops between two files when `stop` is raised. No new fork remains
    /// then.
    ///
    /// # Errors
    ///
    /// The errors of [`Overlay::open_fork`]; also, `stop` was raised.
    pub fn fork_until(
        &self,
        dir: impl AsRef<Path>,
        stop: &StopSignal,
    ) -> Result<OverlayFork, OverlayError> {
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
            mine.shared.room.join_pool(mine.used_quota().files);
        }
        Ok(OverlayFork { dir: dir.to_owned(), mine })
    }

    /// Opens another layer over the same lower directory, with the same quota.
    fn opened_like(&self, layer: &Path, stop: &StopSignal) -> Result<Self, OverlayError> {
        Self::open_with(&self.shared.path, layer, self.shared.room.quota_and_pool(), stop)
    }
}

impl OverlayFork {
    /// The path of the subagent's layer, for a fork in `dir`.
    pub fn layer_in(dir: &Path) -> PathBuf {
        dir.join(MINE)
    }

    /// The overlay in which the subagent works.
    pub fn overlay(&self) -> &Overlay {
        &self.mine
    }

    /// Removes the fork with all its changes.
    ///
    /// # Errors
    ///
    /// The directory cannot be removed.
    pub fn discard(self) -> io::Result<()> {
        let files = self.mine.used_quota().files;
        // The thread that makes digests must not write into a directory that is being removed.
        self.mine.shared.digests.wait_idle();
        // Renamed first, so that a killed process leaves a whole fork or none under the fork's own name.
        let gone = self.dir.with_extension("gone");
        match std::fs::remove_dir_all(&gone) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::rename(&self.dir, &gone)?;
        std::fs::remove_dir_all(&gone)?;
        self.mine.shared.room.leave_pool(files);
        Ok(())
    }

    /// The paths at which the fork differs from its base, at most `most`, and the number of further paths. A
    /// new directory counts as one path with everything in it.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn changed_paths(&self, most: usize) -> io::Result<(Vec<PathBuf>, u64)> {
        let base = self
            .mine
            .opened_like(&self.dir.join(BASE), &StopSignal::never_raised())
            .map_err(|error| error.source)?;
        let (views, found) = ((base.lock_view(), self.mine.lock_view()), (Vec::new(), 0));
        let (before, after) = (top_dir(&views.0, &base), top_dir(&views.1, &self.mine));
        let mut comparison = ForkComparison { base: views.0, mine: views.1, most, found };
        comparison.compare_dir(&RelPath::default(), &before, &after)?;
        Ok(comparison.found)
    }

    /// Merges the subagent's changes into the parent's overlay, and removes the fork. `name` is the
    /// subagent's name, which becomes part of the names of conflicting files, for example `FILE.from-scout`.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written, or the parent's overlay is full. The fork then stays, and so do the
    /// changes merged before the error.
    pub fn merge_into(self, parent: &Overlay, name: &str) -> io::Result<MergeResult> {
        let base = parent
            .opened_like(&self.dir.join(BASE), &StopSignal::never_raised())
            .map_err(|error| error.source)?;
        let mut merge = ForkMerge {
            parent,
            base: base.lock_view(),
            mine: self.mine.lock_view(),
            suffix: name_suffix(name),
            merged: MergeResult::default(),
        };
        let (before, after) = (top_dir(&merge.base, &base), top_dir(&merge.mine, &self.mine));
        merge.merge_dir(&RelPath::default(), &RelPath::default(), Some(&before), Some(&after))?;
        let merged = std::mem::take(&mut merge.merged);
        drop(merge);
        drop(base);
        self.discard()?;
        Ok(merged)
    }
}

fn top_dir(view: &OverlayView<'_>, overlay: &Overlay) -> DirAt {
    view.resolve_dir(&OverlayView::root_ref(), Some(overlay.lower_dir()))
}

/// The ending of a conflicting file's name, for example `.from-scout`.
fn name_suffix(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let name: String = name.chars().take(64).map(plain).collect();
    format!(".from-{name}")
}

/// A merge of a fork into its parent.
struct ForkMerge<'a> {
    parent: &'a Overlay,
    base: OverlayView<'a>,
    mine: OverlayView<'a>,
    suffix: String,
    merged: MergeResult,
}

/// What a name refers to, in one of the three trees.
enum ForkEntry {
    Nothing,
    Dir(DirAt),
    File(ForkFile),
    /// A link or a special file, whose origin is in the lower directory. Guests cannot change such an object,
    /// but can move the directory around it.
    Other(ContentOrigin),
}

/// An open file with its permissions.
struct ForkFile {
    file: File,
    mode: u32,
}

impl ForkMerge<'_> {
    /// Merges a directory: what differs between `before` (the base) and `after` (the subagent's) is done to
    /// the parent at `to`.
    fn merge_dir(
        &mut self,
        path: &RelPath,
        to: &RelPath,
        before: Option<&DirAt>,
        after: Option<&DirAt>,
    ) -> io::Result<()> {
        for name in differing_names((&self.base, before), (&self.mine, after))? {
            // Guests cannot change an object with a protected name.
            if is_protected(&name.to_string_lossy()) {
                continue;
            }
            let (path, to) = (path.join(&name), to.join(&name));
            let was = read_entry(&mut self.base, before, &name)?;
            let is = read_entry(&mut self.mine, after, &name)?;
            match (was, is) {
                (ForkEntry::Nothing, ForkEntry::Nothing)
                | (ForkEntry::Other(_), ForkEntry::Other(_)) => {}
                (ForkEntry::Dir(was), ForkEntry::Dir(is)) => {
                    self.merge_dir(&path, &to, Some(&was), Some(&is))?;
                }
                (ForkEntry::Dir(was), is) => {
                    self.merge_dir(&path, &to, Some(&was), None)?;
                    self.remove_dir(&to)?;
                    self.put_thing(&path, &to, &ForkEntry::Nothing, is)?;
                }
                (was, is @ ForkEntry::Dir(_)) => {
                    self.remove_file(&to, &was)?;
                    self.put_thing(&path, &to, &ForkEntry::Nothing, is)?;
                }
                (was, ForkEntry::Nothing) => self.remove_file(&to, &was)?,
                (was, is) => self.put_thing(&path, &to, &was, is)?,
            }
        }
        Ok(())
    }

    /// Writes the fork's object of a path to the parent's path `to`.
    fn put_thing(
        &mut self,
        path: &RelPath,
        to: &RelPath,
        was: &ForkEntry,
        is: ForkEntry,
    ) -> io::Result<()> {
        match is {
            ForkEntry::Nothing => Ok(()),
            ForkEntry::Dir(dir) => {
                let to = self.make_dir(to)?;
                self.merge_dir(path, &to, None, Some(&dir))
            }
            ForkEntry::File(file) => self.write_file(to, was, &file),
            ForkEntry::Other(origin) => self.put_other(to, &origin),
        }
    }

    /// Makes a directory of the subagent in the parent, at `to`, or under another name if something else is
    /// there. Returns the path.
    fn make_dir(&mut self, to: &RelPath) -> io::Result<RelPath> {
        let found = find_place(&self.parent.lock_view(), self.parent, to)?.is_some();
        let here = if found { to.clone() } else { self.make_dirs(to)? };
        for n in 0..MAX_BESIDE {
            let at = if n == 0 { here.clone() } else { self.beside_path(&here, n) };
            let mut view = self.parent.lock_view();
            let Some((dir, name)) = find_place(&view, self.parent, &at)? else { continue };
            match read_entry(&mut view, Some(&dir), &name)? {
                ForkEntry::Dir(_) => {}
                ForkEntry::Nothing => {
                    view.make_dir(&PathEnd::from_name(dir, name)).map_err(to_io_error)?;
                    self.merged.changed += 1;
                }
                ForkEntry::File(_) | ForkEntry::Other(_) => continue,
            }
            drop(view);
            if n > 0 || !found {
                self.add_conflict(to, Some(&at));
            }
            return Ok(at);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Makes the missing directories above a path, because the parent removed or moved them. Returns the
    /// path.
    fn make_dirs(&mut self, to: &RelPath) -> io::Result<RelPath> {
        let mut names: Vec<&OsStr> = to.names().collect();
        let last = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
        let mut at = RelPath::default();
        for name in names {
            at = self.make_dir(&at.join(name))?;
        }
        Ok(at.join(last))
    }

    /// Writes a file at the path `to` of the parent if the parent still has the base version there; otherwise
    /// under another name.
    fn write_file(&mut self, to: &RelPath, was: &ForkEntry, file: &ForkFile) -> io::Result<()> {
        if let ForkEntry::File(was) = was
            && is_same_file(was, file)?
        {
            return Ok(());
        }
        let found = find_place(&self.parent.lock_view(), self.parent, to)?.is_some();
        let here = if found { to.clone() } else { self.make_dirs(to)? };
        for n in u32::from(!found)..MAX_BESIDE {
            let at = if n == 0 { here.clone() } else { self.beside_path(&here, n) };
            // The view stays locked until the write, so nothing changes in between.
            let mut view = self.parent.lock_view();
            let Some((dir, name)) = find_place(&view, self.parent, &at)? else { continue };
            let free = match read_entry(&mut view, Some(&dir), &name)? {
                ForkEntry::Nothing => n > 0 || matches!(was, ForkEntry::Nothing),
                ForkEntry::File(there) if is_same_file(&there, file)? => {
                    drop(view);
                    if n > 0 {
                        self.add_conflict(to, Some(&at));
                    }
                    return Ok(());
                }
                ForkEntry::File(there) => match was {
                    ForkEntry::File(was) if n == 0 => is_same_file(&there, was)?,
                    ForkEntry::Nothing
                    | ForkEntry::Dir(_)
                    | ForkEntry::File(_)
                    | ForkEntry::Other(_) => false,
                },
                ForkEntry::Dir(_) | ForkEntry::Other(_) => false,
            };
            if !free {
                continue;
            }
            view.put_file(&PathEnd::from_name(dir, name), &file.file, file.mode)
                .map_err(to_io_error)?;
            drop(view);
            self.merged.changed += 1;
            if n > 0 {
                self.add_conflict(to, Some(&at));
            }
            return Ok(());
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Shows a link at its new path, after its directory was moved.
    fn put_other(&mut self, to: &RelPath, origin: &ContentOrigin) -> io::Result<()> {
        let mut view = self.parent.lock_view();
        let Some((dir, name)) = find_place(&view, self.parent, to)? else { return Ok(()) };
        match read_entry(&mut view, Some(&dir), &name)? {
            ForkEntry::Nothing => {
                view.put_other(&PathEnd::from_name(dir, name), origin.clone())
                    .map_err(to_io_error)?;
                self.merged.changed += 1;
            }
            ForkEntry::Other(there) if there == *origin => {}
            ForkEntry::Dir(_) | ForkEntry::File(_) | ForkEntry::Other(_) => {
                drop(view);
                self.add_conflict(to, None);
            }
        }
        Ok(())
    }

    /// Removes a file from the parent, if the parent still has the base version.
    fn remove_file(&mut self, to: &RelPath, was: &ForkEntry) -> io::Result<()> {
        let mut view = self.parent.lock_view();
        let Some((dir, name)) = find_place(&view, self.parent, to)? else { return Ok(()) };
        let same = match (read_entry(&mut view, Some(&dir), &name)?, was) {
            (ForkEntry::Nothing, _) => return Ok(()),
            (ForkEntry::File(there), ForkEntry::File(was)) => is_same_file(&there, was)?,
            (ForkEntry::Other(_), ForkEntry::Other(_)) => true,
            (ForkEntry::Dir(_) | ForkEntry::File(_) | ForkEntry::Other(_), _) => false,
        };
        if same {
            let place = PathEnd::from_name(dir, name);
            let found = view.find_entry(&place)?;
            view.remove_entry(&place, &found).map_err(to_io_error)?;
            self.merged.changed += 1;
        } else if !matches!(was, ForkEntry::Nothing) {
            drop(view);
            self.add_conflict(to, None);
        }
        Ok(())
    }

    /// Removes a directory from the parent, if it is empty; its merged entries were removed before.
    fn remove_dir(&mut self, to: &RelPath) -> io::Result<()> {
        let mut view = self.parent.lock_view();
        let Some((dir, name)) = find_place(&view, self.parent, to)? else { return Ok(()) };
        let ForkEntry::Dir(_) = read_entry(&mut view, Some(&dir), &name)? else { return Ok(()) };
        let place = PathEnd::from_name(dir, name);
        let found = view.find_entry(&place)?;
        match view.remove_entry(&place, &found) {
            Ok(()) => self.merged.changed += 1,
            Err(ChangeFault::Errno(Errno::NOTEMPTY)) => {
                drop(view);
                self.add_conflict(to, None);
            }
            Err(fault) => return Err(to_io_error(fault)),
        }
        Ok(())
    }

    /// The path for the subagent's version of a file in conflict, for example `a.txt.from-scout`; `n` counts
    /// further attempts.
    fn beside_path(&self, to: &RelPath, n: u32) -> RelPath {
        let mut path = to.as_bytes().to_vec();
        path.extend_from_slice(self.suffix.as_bytes());
        if n > 1 {
            path.extend_from_slice(format!("-{n}").as_bytes());
        }
        RelPath::from_bytes(&path).unwrap_or_default()
    }

    /// Records a conflict in the result of the merge.
    fn add_conflict(&mut self, path: &RelPath, beside: Option<&RelPath>) {
        if self.merged.conflicts.len() >= MAX_TOLD {
            self.merged.more += 1;
            return;
        }
        let shown = |rel: &RelPath| PathBuf::from(OsStr::from_bytes(rel.as_bytes()));
        let conflict = MergeConflict { path: shown(path), beside: beside.map(shown) };
        self.merged.conflicts.push(conflict);
    }
}

/// The parent's directory around a path, and the last name. `None`: there is no such directory.
fn find_place(
    view: &OverlayView<'_>,
    overlay: &Overlay,
    path: &RelPath,
) -> io::Result<Option<(DirAt, OsString)>> {
    let mut dir = top_dir(view, overlay);
    let mut names: Vec<&OsStr> = path.names().collect();
    let last = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
    for name in names {
        dir = match view.enter_dir(&dir, name) {
            Ok(next) => next,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
    }
    Ok(Some((dir, last.to_owned())))
}

/// Finds a name in one of the trees, and opens the file or directory.
fn read_entry(
    view: &mut OverlayView<'_>,
    dir: Option<&DirAt>,
    name: &OsStr,
) -> io::Result<ForkEntry> {
    let Some(dir) = dir else { return Ok(ForkEntry::Nothing) };
    let place = PathEnd::from_name(dir.try_clone()?, name.to_owned());
    let found = match view.find_entry(&place) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(ForkEntry::Nothing),
        Err(errno) => return Err(errno.into()),
    };
    Ok(match file_type(&found.stat) {
        FileType::Directory => ForkEntry::Dir(view.enter_dir(place.parent_dir(), name)?),
        FileType::RegularFile => match open_content(view, &place, &found)? {
            Some(file) => ForkEntry::File(ForkFile { file, mode: view.file_mode(&found) }),
            None => return Err(Errno::NXIO.into()),
        },
        _ => ForkEntry::Other(view.content_origin(&place, &found).ok_or(Errno::NOENT)?),
    })
}

/// Opens the content of a file for reading; `None` = a special file.
fn open_content(
    view: &mut OverlayView<'_>,
    place: &PathEnd<DirAt>,
    found: &FoundEntry,
) -> io::Result<Option<File>> {
    Ok(match view.open_to_read(place, found)? {
        ReadFile::Lower(_, file) | ReadFile::Upper(_, file) => Some(file),
        ReadFile::Special => None,
    })
}

/// Whether two files have the same content and permissions.
fn is_same_file(one: &ForkFile, other: &ForkFile) -> io::Result<bool> {
    use std::os::unix::fs::FileExt as _;
    let (a, b) = (rustix::fs::fstat(&one.file)?, rustix::fs::fstat(&other.file)?);
    if one.mode != other.mode || a.st_size != b.st_size || !is_file(&a) || !is_file(&b) {
        return Ok(false);
    }
    if stat_identity(&a) == stat_identity(&b) {
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

/// Converts a fault of an overlay change to an I/O error.
fn to_io_error(fault: ChangeFault) -> io::Error {
    match fault {
        ChangeFault::Errno(errno) => errno.into(),
        ChangeFault::Full(facts) => io::Error::new(io::ErrorKind::QuotaExceeded, facts),
        ChangeFault::Io(error) => error,
    }
}
