//! Executes the steps of an apply on the workspace, and undoes them.
//!
//! Each step checks the replaced file right before and right after. The step is undone if the file was not
//! the journal's, so that no concurrent change is lost. Each undo finds out how far the step went, and can be
//! repeated any number of times. For example, if a person saves `a.txt` while the agent's version replaces
//! the file, the person's version returns.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{
    AtFlags, Mode, RenameFlags, mkdirat, renameat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::ChangesError;
use crate::disk::{is_content, is_kept, is_ours, move_to, sync_disk, without_flags, write_beside};
use crate::journal::{Entry, KeptCopy, Level, Record, Step};
use crate::workspace::{State, Workspace, look_in};

/// The count of files and directories above which the whole disk is synced once.
const MANY: usize = 64;

/// Stops the work after some steps, like a kill: set by tests.
#[derive(Debug)]
pub(crate) struct Fuse(AtomicUsize);

impl Fuse {
    pub(crate) fn new(steps: usize) -> Self {
        Self(AtomicUsize::new(steps))
    }

    /// Called before each lasting effect.
    pub(crate) fn step(&self) -> Result<(), Stop> {
        let one_less = |left: usize| left.checked_sub(1);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => Ok(()),
            Err(_) => Err(Stop::Killed),
        }
    }

    pub(crate) fn is_burnt(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// The reason for stopping between steps.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A file differs from the journal's record.
    Changed(PathBuf),
    Io(PathBuf, io::Error),
    /// Stopped by a [`Fuse`].
    Killed,
}

impl From<Stop> for ChangesError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Changed(path) => Self::ChangedMeanwhile { path },
            Stop::Io(path, source) => Self::Io { what: "change", path, source },
            Stop::Killed => Self::Io {
                what: "change",
                path: PathBuf::new(),
                source: io::ErrorKind::Interrupted.into(),
            },
        }
    }
}

/// Executes the steps of one apply in one workspace.
pub(crate) struct Executor<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) entry: &'a Entry,
    pub(crate) record: &'a Record,
    pub(crate) fuse: &'a Fuse,
}

type Done = Result<(), Stop>;

fn failed<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> Stop {
    move |error| {
        let error = error.into();
        match Errno::from_io_error(&error) {
            // A name on the path, or the last one, was replaced meanwhile.
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::EXIST | Errno::NOTEMPTY) => {
                Stop::Changed(path.to_owned())
            }
            _ => Stop::Io(path.to_owned(), error),
        }
    }
}

impl Executor<'_> {
    /// The temporary name of step `at`, beside the file or at the top. Numbers are never reused.
    fn name(&self, at: usize) -> OsString {
        format!(".belljar-apply-{}-{at}", self.entry.number).into()
    }

    fn root(&self) -> Result<OwnedFd, Stop> {
        self.workspace.dir(Path::new("")).map_err(failed(Path::new("")))
    }

    fn above<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), Stop> {
        self.workspace.above(path).map_err(failed(path))
    }

    /// Executes one step; of a put, only the preparation: the content is written to the temporary name, for
    /// [`Self::put_in_place`]. `content` opens the content to put.
    pub(crate) fn run(
        &self,
        at: usize,
        content: impl FnOnce(&Path) -> Result<File, ChangesError>,
    ) -> Result<(), ChangesError> {
        let Some(step) = self.record.steps.get(at) else { return Ok(()) };
        let done = match step {
            Step::Remove { below, before, .. } => self.remove(at, &below.0, before),
            Step::Stage { from, before } => self.stage(at, &from.0, before),
            Step::RemoveDir { below, .. } => self.remove_dir(&below.0),
            Step::MakeDir { path } => self.make_dir(&path.0),
            Step::Place { stage, before, to } => self.place(*stage, before, &to.0),
            Step::Put { path, mode, .. } => self.put(at, &path.0, *mode, &content(&path.0)?),
        };
        Ok(done?)
    }

    /// Waits until the writes are on disk, names included.
    pub(crate) fn sync(&self) -> Result<(), ChangesError> {
        let dirs = self.record.steps.iter().filter_map(|step| match step {
            Step::Put { path, .. } | Step::MakeDir { path } => path.0.parent(),
            Step::Place { to, .. } => to.0.parent(),
            Step::Remove { below, .. } | Step::RemoveDir { below, .. } => below.0.parent(),
            Step::Stage { from, .. } => from.0.parent(),
        });
        let dirs: BTreeSet<&Path> = dirs.collect();
        if self.is_large() || dirs.len() > MANY {
            return sync_disk(&self.root()?).map_err(ChangesError::io("sync", Path::new("")));
        }
        for dir in dirs {
            match self.workspace.dir(dir) {
                Ok(opened) => {
                    rustix::fs::fsync(&opened).map_err(ChangesError::io("sync", dir))?;
                }
                // The directory was removed or renamed.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(ChangesError::io("sync", dir)(errno)),
            }
        }
        Ok(())
    }

    /// Whether one sync of the disk is faster than one for each file.
    fn is_large(&self) -> bool {
        self.record.steps.len() > MANY
    }

    fn remove(&self, at: usize, path: &Path, before: &State) -> Done {
        let (dir, name) = self.above(path)?;
        let aside = self.name(at);
        self.expect(&dir, name, path, |now| now.is_still(before))?;
        self.fuse.step()?;
        renameat_with(&dir, name, &dir, &aside, RenameFlags::NOREPLACE)
            .or_else(|errno| without_flags(errno, || renameat(&dir, name, &dir, &aside)))
            .map_err(failed(path))?;
        // The file moved aside may have changed before the move.
        let is_it = self.expect(&dir, &aside, path, |now| is_content(now, before));
        if is_it.is_err() {
            let back = renameat_with(&dir, &aside, &dir, name, RenameFlags::NOREPLACE);
            back.map_err(failed(path))?;
        }
        is_it?;
        self.fuse.step()?;
        unlinkat(&dir, &aside, AtFlags::empty()).map_err(failed(path))
    }

    fn stage(&self, at: usize, path: &Path, before: &State) -> Done {
        let (dir, name) = self.above(path)?;
        let (root, aside) = (self.root()?, self.name(at));
        self.expect(&dir, name, path, |now| now.is_same(before))?;
        self.fuse.step()?;
        move_to((&dir, name), (&root, &aside)).map_err(failed(path))?;
        let is_it = self.expect(&root, &aside, path, |now| now.is_same(before));
        if is_it.is_err() {
            move_to((&root, &aside), (&dir, name)).map_err(failed(path))?;
        }
        is_it
    }

    fn remove_dir(&self, path: &Path) -> Done {
        let (dir, name) = self.above(path)?;
        self.fuse.step()?;
        unlinkat(&dir, name, AtFlags::REMOVEDIR).map_err(failed(path))
    }

    fn make_dir(&self, path: &Path) -> Done {
        let (dir, name) = self.above(path)?;
        self.fuse.step()?;
        mkdirat(&dir, name, Mode::from_raw_mode(0o755)).map_err(failed(path))
    }

    fn place(&self, stage: usize, before: &State, to: &Path) -> Done {
        let (dir, name) = self.above(to)?;
        let (root, aside) = (self.root()?, self.name(stage));
        self.expect(&root, &aside, to, |now| now.is_same(before))?;
        self.fuse.step()?;
        move_to((&root, &aside), (&dir, name)).map_err(failed(to))
    }

    fn put(&self, at: usize, path: &Path, mode: u32, content: &File) -> Done {
        let (dir, _) = self.above(path)?;
        self.fuse.step()?;
        let sync = !self.is_large();
        write_beside(&dir, &self.name(at), content, mode, (None, sync)).map_err(failed(path))
    }

    /// Moves a prepared content to its path.
    pub(crate) fn put_in_place(&self, at: usize) -> Result<(), ChangesError> {
        match self.record.steps.get(at) {
            Some(Step::Put { path, before, .. }) => {
                let (dir, name) = self.above(&path.0)?;
                let before = before.as_ref().map(|(state, _)| state);
                Ok(self.replace(&dir, name, &self.name(at), &path.0, before)?)
            }
            Some(
                Step::Remove { .. }
                | Step::Stage { .. }
                | Step::RemoveDir { .. }
                | Step::MakeDir { .. }
                | Step::Place { .. },
            )
            | None => Ok(()),
        }
    }

    fn replace(
        &self,
        dir: &OwnedFd,
        name: &OsStr,
        aside: &OsStr,
        path: &Path,
        before: Option<&State>,
    ) -> Done {
        let Some(before) = before else {
            self.fuse.step()?;
            return move_to((dir, aside), (dir, name)).map_err(failed(path));
        };
        self.expect(dir, name, path, |now| now.is_still(before))?;
        self.fuse.step()?;
        match renameat_with(dir, aside, dir, name, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                return renameat(dir, aside, dir, name).map_err(failed(path));
            }
            Err(errno) => return Err(failed(path)(errno)),
        }
        // The replaced file may have changed before the exchange.
        let is_it = self.expect(dir, aside, path, |now| is_content(now, before));
        if is_it.is_err() {
            renameat_with(dir, aside, dir, name, RenameFlags::EXCHANGE).map_err(failed(path))?;
        }
        is_it?;
        self.fuse.step()?;
        unlinkat(dir, aside, AtFlags::empty()).map_err(failed(path))
    }

    fn expect(
        &self,
        dir: &OwnedFd,
        name: &OsStr,
        path: &Path,
        is_it: impl FnOnce(&State) -> bool,
    ) -> Done {
        match look_in(dir, name).map_err(failed(path))? {
            Some(now) if is_it(&now) => Ok(()),
            Some(_) | None => Err(Stop::Changed(path.to_owned())),
        }
    }

    /// Undoes all steps that were done, one level after another. Returns the paths that another program
    /// changed; these files stay.
    pub(crate) fn take_back(&self) -> Result<Vec<PathBuf>, ChangesError> {
        let mut left = Vec::new();
        if self.entry.level()? == Level::Placing {
            self.each(&mut left, |at, step| match step {
                Step::Put { path, before, digest, .. } => {
                    self.take_out(at, &path.0, before.as_ref(), digest)
                }
                Step::Place { .. }
                | Step::MakeDir { .. }
                | Step::RemoveDir { .. }
                | Step::Stage { .. }
                | Step::Remove { .. } => Ok(()),
            })?;
            self.fuse.step()?;
            self.entry.mark_level(Level::Coming)?;
        }
        for level in [Level::Coming, Level::Going] {
            if self.entry.level()? == level {
                self.each(&mut left, |at, step| match step.level() == level {
                    true => self.revert(at, step),
                    false => Ok(()),
                })?;
            }
            if level == Level::Coming {
                self.fuse.step()?;
                self.entry.mark_level(Level::Going)?;
            }
        }
        Ok(left)
    }

    /// Undoes steps from the last to the first.
    fn each(
        &self,
        left: &mut Vec<PathBuf>,
        back: impl Fn(usize, &Step) -> Done,
    ) -> Result<(), ChangesError> {
        for (at, step) in self.record.steps.iter().enumerate().rev() {
            match back(at, step) {
                Ok(()) => {}
                Err(Stop::Changed(path)) => left.push(path),
                Err(stop @ (Stop::Io(..) | Stop::Killed)) => return Err(stop.into()),
            }
        }
        Ok(())
    }

    fn revert(&self, at: usize, step: &Step) -> Done {
        match step {
            // The content was at most written to its temporary name.
            Step::Put { path, .. } => match self.there(&path.0)? {
                Some((dir, _)) => self.clear(&dir, &self.name(at), &path.0),
                None => Ok(()),
            },
            Step::Place { stage, before, to } => {
                let Some((dir, name)) = self.there(&to.0)? else { return Ok(()) };
                let (root, aside) = (self.root()?, self.name(*stage));
                match look_in(&dir, name).map_err(failed(&to.0))? {
                    Some(now) if now.is_same(before) => {
                        self.fuse.step()?;
                        move_to((&dir, name), (&root, &aside)).map_err(failed(&to.0))
                    }
                    Some(_) | None => Ok(()),
                }
            }
            Step::MakeDir { path } => {
                let Some((dir, name)) = self.there(&path.0)? else { return Ok(()) };
                self.fuse.step()?;
                match unlinkat(&dir, name, AtFlags::REMOVEDIR) {
                    Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
                    done => done.map_err(failed(&path.0)),
                }
            }
            Step::RemoveDir { below, mode } => {
                let (dir, name) = self.above(&below.0)?;
                if look_in(&dir, name).map_err(failed(&below.0))?.is_some() {
                    return Ok(());
                }
                self.fuse.step()?;
                mkdirat(&dir, name, Mode::from_raw_mode(*mode)).map_err(failed(&below.0))
            }
            Step::Stage { from, before } => {
                let (root, aside) = (self.root()?, self.name(at));
                match look_in(&root, &aside).map_err(failed(&from.0))? {
                    Some(now) if now.is_same(before) => {
                        let (dir, name) = self.above(&from.0)?;
                        self.fuse.step()?;
                        move_to((&root, &aside), (&dir, name)).map_err(failed(&from.0))
                    }
                    Some(_) | None => Ok(()),
                }
            }
            Step::Remove { below, before, kept } => self.put_back(at, &below.0, before, kept),
        }
    }

    /// The directory of a path. `None` = missing, so no step was done in it.
    fn there<'a>(&self, path: &'a Path) -> Result<Option<(OwnedFd, &'a OsStr)>, Stop> {
        match self.workspace.above(path) {
            Ok(there) => Ok(Some(there)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(failed(path)(errno)),
        }
    }

    /// Undoes a put.
    fn take_out(
        &self,
        at: usize,
        path: &Path,
        before: Option<&(State, KeptCopy)>,
        digest: &str,
    ) -> Done {
        let Some((dir, name)) = self.there(path)? else { return Ok(()) };
        let aside = self.name(at);
        let now = look_in(&dir, name).map_err(failed(path))?;
        let beside = look_in(&dir, &aside).map_err(failed(path))?;
        let is_before = |now: &State| before.is_some_and(|(state, _)| is_content(now, state));
        let ours = is_ours(&dir, name, digest);
        match now {
            // The new content never reached its path.
            Some(now) if is_before(&now) => return self.clear(&dir, &aside, path),
            None if before.is_none() => return self.clear(&dir, &aside, path),
            Some(_) if ours => {}
            // The new content was removed already.
            Some(_)
                if before
                    .is_some_and(|(_, kept)| is_kept(&dir, name, &self.entry.kept(at), kept)) =>
            {
                return self.clear(&dir, &aside, path);
            }
            Some(_) | None => {
                self.clear(&dir, &aside, path)?;
                return Err(Stop::Changed(path.to_owned()));
            }
        }
        match before {
            None => {
                self.fuse.step()?;
                unlinkat(&dir, name, AtFlags::empty()).map_err(failed(path))
            }
            // The original still has its temporary name.
            Some(_) if beside.as_ref().is_some_and(is_before) => {
                self.fuse.step()?;
                renameat(&dir, &aside, &dir, name).map_err(failed(path))
            }
            // The concurrent version that was moved aside is the newest, so it returns.
            Some(_) if beside.is_some() => {
                self.fuse.step()?;
                renameat(&dir, &aside, &dir, name).map_err(failed(path))?;
                Err(Stop::Changed(path.to_owned()))
            }
            Some((state, kept)) => {
                let old = self.restore(at, &dir, state, kept, path)?;
                self.fuse.step()?;
                renameat(&dir, &old, &dir, name).map_err(failed(path))
            }
        }
    }

    /// Undoes a removal.
    fn put_back(&self, at: usize, path: &Path, before: &State, kept: &KeptCopy) -> Done {
        let Some((dir, name)) = self.there(path)? else {
            return Err(Stop::Changed(path.to_owned()));
        };
        let aside = self.name(at);
        if let Some(now) = look_in(&dir, name).map_err(failed(path))? {
            let same = is_content(&now, before) || is_kept(&dir, name, &self.entry.kept(at), kept);
            self.clear(&dir, &aside, path)?;
            return if same { Ok(()) } else { Err(Stop::Changed(path.to_owned())) };
        }
        let beside = look_in(&dir, &aside).map_err(failed(path))?;
        let from = match beside {
            Some(_) => aside,
            None => self.restore(at, &dir, before, kept, path)?,
        };
        self.fuse.step()?;
        move_to((&dir, &from), (&dir, name)).map_err(failed(path))?;
        match beside {
            // The file moved aside is not the agent's original.
            Some(now) if !is_content(&now, before) => Err(Stop::Changed(path.to_owned())),
            Some(_) | None => Ok(()),
        }
    }

    /// Restores an original under a name that no step uses.
    fn restore(
        &self,
        at: usize,
        dir: &OwnedFd,
        before: &State,
        kept: &KeptCopy,
        path: &Path,
    ) -> Result<OsString, Stop> {
        let mut name = self.name(at);
        name.push("-old");
        self.clear(dir, &name, path)?;
        self.fuse.step()?;
        match kept {
            KeptCopy::Link(target) => {
                let target = CString::new(target.0.as_os_str().as_bytes()).unwrap_or_default();
                symlinkat(&target, dir, &name).map_err(failed(path))?;
            }
            KeptCopy::File => {
                let file = self.entry.kept(at);
                let content = File::open(&file).map_err(|error| Stop::Io(file.clone(), error))?;
                let modified = (Some(before.modified), true);
                write_beside(dir, &name, &content, before.mode, modified).map_err(failed(path))?;
            }
        }
        Ok(name)
    }

    fn clear(&self, dir: &OwnedFd, name: &OsStr, path: &Path) -> Done {
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed(path)(errno)),
        }
    }
}
