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

use crate::changes::ChangesError;
use crate::changes::disk::{
    is_content, is_kept, is_ours, move_to, sync_disk, without_flags, write_beside,
};
use crate::changes::journal::{ApplyEntry, ApplyLevel, ApplyRecord, ApplyStep, KeptCopy};
use crate::changes::workspace::{FileState, Workspace, look_in};

/// The count of files and directories above which the whole disk is synced once.
const MANY: usize = 64;

/// Stops the work after some steps, like a kill: set by tests.
#[derive(Debug)]
pub(crate) struct StepFuse(AtomicUsize);

impl StepFuse {
    pub(crate) fn new(steps: usize) -> Self {
        Self(AtomicUsize::new(steps))
    }

    /// Called before each lasting effect.
    pub(crate) fn burn_step(&self) -> Result<(), StepFailure> {
        let one_less = |left: usize| left.checked_sub(1);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => Ok(()),
            Err(_) => Err(StepFailure::Killed),
        }
    }

    pub(crate) fn is_burnt(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// The reason for stopping between steps.
#[derive(Debug)]
pub(crate) enum StepFailure {
    /// The file at this path is not as recorded in the journal: another program changed the file meanwhile.
    Changed(PathBuf),
    Io(PathBuf, io::Error),
    /// Stopped by a [`StepFuse`].
    Killed,
}

impl From<StepFailure> for ChangesError {
    fn from(stop: StepFailure) -> Self {
        match stop {
            StepFailure::Changed(path) => Self::ChangedMeanwhile { path },
            StepFailure::Io(path, source) => Self::Io { what: "change", path, source },
            StepFailure::Killed => Self::Io {
                what: "change",
                path: PathBuf::new(),
                source: io::ErrorKind::Interrupted.into(),
            },
        }
    }
}

/// Executes the steps of one apply in one workspace.
pub(crate) struct StepExecutor<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) entry: &'a ApplyEntry,
    pub(crate) record: &'a ApplyRecord,
    pub(crate) fuse: &'a StepFuse,
}

type Done = Result<(), StepFailure>;

/// Wraps an error of a step with the path of the file.
fn step_failure<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> StepFailure {
    move |error| {
        let error = error.into();
        match Errno::from_io_error(&error) {
            // A name on the path, or the last one, was replaced meanwhile.
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::EXIST | Errno::NOTEMPTY) => {
                StepFailure::Changed(path.to_owned())
            }
            _ => StepFailure::Io(path.to_owned(), error),
        }
    }
}

impl StepExecutor<'_> {
    /// The temporary name of step `at`, beside the file or at the top. Numbers are never reused.
    fn aside_name(&self, at: usize) -> OsString {
        format!(".belljar-apply-{}-{at}", self.entry.number).into()
    }

    fn open_root(&self) -> Result<OwnedFd, StepFailure> {
        self.workspace.open_directory(Path::new("")).map_err(step_failure(Path::new("")))
    }

    fn open_parent<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), StepFailure> {
        self.workspace.open_parent(path).map_err(step_failure(path))
    }

    /// Executes one step; of a put, only the preparation: the content is written to the temporary name, for
    /// [`Self::put_in_place`]. `content` opens the content to put.
    pub(crate) fn run_step(
        &self,
        at: usize,
        content: impl FnOnce(&Path) -> Result<File, ChangesError>,
    ) -> Result<(), ChangesError> {
        let Some(step) = self.record.steps.get(at) else { return Ok(()) };
        let done = match step {
            ApplyStep::Remove { below, before, .. } => self.remove_file(at, &below.0, before),
            ApplyStep::Stage { from, before } => self.move_to_stage(at, &from.0, before),
            ApplyStep::RemoveDir { below, .. } => self.remove_dir(&below.0),
            ApplyStep::MakeDir { path } => self.make_dir(&path.0),
            ApplyStep::Place { stage, before, to } => self.place_staged(*stage, before, &to.0),
            ApplyStep::Put { path, mode, .. } => {
                self.write_aside(at, &path.0, *mode, &content(&path.0)?)
            }
        };
        Ok(done?)
    }

    /// Waits until the writes are on disk, names included.
    pub(crate) fn sync_writes(&self) -> Result<(), ChangesError> {
        let dirs = self.record.steps.iter().filter_map(|step| match step {
            ApplyStep::Put { path, .. } | ApplyStep::MakeDir { path } => path.0.parent(),
            ApplyStep::Place { to, .. } => to.0.parent(),
            ApplyStep::Remove { below, .. } | ApplyStep::RemoveDir { below, .. } => {
                below.0.parent()
            }
            ApplyStep::Stage { from, .. } => from.0.parent(),
        });
        let dirs: BTreeSet<&Path> = dirs.collect();
        if self.is_large() || dirs.len() > MANY {
            return sync_disk(&self.open_root()?)
                .map_err(ChangesError::from_io("sync", Path::new("")));
        }
        for dir in dirs {
            match self.workspace.open_directory(dir) {
                Ok(opened) => {
                    rustix::fs::fsync(&opened).map_err(ChangesError::from_io("sync", dir))?;
                }
                // The directory was removed or renamed.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(ChangesError::from_io("sync", dir)(errno)),
            }
        }
        Ok(())
    }

    /// Whether one sync of the disk is faster than one for each file.
    fn is_large(&self) -> bool {
        self.record.steps.len() > MANY
    }

    /// Renames a file to a temporary name before the removal, after a check of the file's state.
    fn remove_file(&self, at: usize, path: &Path, before: &FileState) -> Done {
        let (dir, name) = self.open_parent(path)?;
        let aside = self.aside_name(at);
        self.check_state(&dir, name, path, |now| now.is_still(before))?;
        self.fuse.burn_step()?;
        renameat_with(&dir, name, &dir, &aside, RenameFlags::NOREPLACE)
            .or_else(|errno| without_flags(errno, || renameat(&dir, name, &dir, &aside)))
            .map_err(step_failure(path))?;
        // The file moved aside may have changed before the move.
        let is_it = self.check_state(&dir, &aside, path, |now| is_content(now, before));
        if is_it.is_err() {
            let back = renameat_with(&dir, &aside, &dir, name, RenameFlags::NOREPLACE);
            back.map_err(step_failure(path))?;
        }
        is_it?;
        self.fuse.burn_step()?;
        unlinkat(&dir, &aside, AtFlags::empty()).map_err(step_failure(path))
    }

    /// Moves a file to a temporary name after a check of the file's state.
    fn move_to_stage(&self, at: usize, path: &Path, before: &FileState) -> Done {
        let (dir, name) = self.open_parent(path)?;
        let (root, aside) = (self.open_root()?, self.aside_name(at));
        self.check_state(&dir, name, path, |now| now.is_same(before))?;
        self.fuse.burn_step()?;
        move_to((&dir, name), (&root, &aside)).map_err(step_failure(path))?;
        let is_it = self.check_state(&root, &aside, path, |now| now.is_same(before));
        if is_it.is_err() {
            move_to((&root, &aside), (&dir, name)).map_err(step_failure(path))?;
        }
        is_it
    }

    fn remove_dir(&self, path: &Path) -> Done {
        let (dir, name) = self.open_parent(path)?;
        self.fuse.burn_step()?;
        unlinkat(&dir, name, AtFlags::REMOVEDIR).map_err(step_failure(path))
    }

    fn make_dir(&self, path: &Path) -> Done {
        let (dir, name) = self.open_parent(path)?;
        self.fuse.burn_step()?;
        mkdirat(&dir, name, Mode::from_raw_mode(0o755)).map_err(step_failure(path))
    }

    /// Moves a file from a temporary name to the new path.
    fn place_staged(&self, stage: usize, before: &FileState, to: &Path) -> Done {
        let (dir, name) = self.open_parent(to)?;
        let (root, aside) = (self.open_root()?, self.aside_name(stage));
        self.check_state(&root, &aside, to, |now| now.is_same(before))?;
        self.fuse.burn_step()?;
        move_to((&root, &aside), (&dir, name)).map_err(step_failure(to))
    }

    /// Writes new content to a temporary file beside the target.
    fn write_aside(&self, at: usize, path: &Path, mode: u32, content: &File) -> Done {
        let (dir, _) = self.open_parent(path)?;
        self.fuse.burn_step()?;
        let sync = !self.is_large();
        write_beside(&dir, &self.aside_name(at), content, mode, (None, sync))
            .map_err(step_failure(path))
    }

    /// Moves a prepared content to its path.
    pub(crate) fn put_in_place(&self, at: usize) -> Result<(), ChangesError> {
        match self.record.steps.get(at) {
            Some(ApplyStep::Put { path, before, .. }) => {
                let (dir, name) = self.open_parent(&path.0)?;
                let before = before.as_ref().map(|(state, _)| state);
                Ok(self.replace_file(&dir, name, &self.aside_name(at), &path.0, before)?)
            }
            Some(
                ApplyStep::Remove { .. }
                | ApplyStep::Stage { .. }
                | ApplyStep::RemoveDir { .. }
                | ApplyStep::MakeDir { .. }
                | ApplyStep::Place { .. },
            )
            | None => Ok(()),
        }
    }

    /// Renames the temporary file over the target after a check of the target's state.
    fn replace_file(
        &self,
        dir: &OwnedFd,
        name: &OsStr,
        aside: &OsStr,
        path: &Path,
        before: Option<&FileState>,
    ) -> Done {
        let Some(before) = before else {
            self.fuse.burn_step()?;
            return move_to((dir, aside), (dir, name)).map_err(step_failure(path));
        };
        self.check_state(dir, name, path, |now| now.is_still(before))?;
        self.fuse.burn_step()?;
        match renameat_with(dir, aside, dir, name, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                return renameat(dir, aside, dir, name).map_err(step_failure(path));
            }
            Err(errno) => return Err(step_failure(path)(errno)),
        }
        // The replaced file may have changed before the exchange.
        let is_it = self.check_state(dir, aside, path, |now| is_content(now, before));
        if is_it.is_err() {
            renameat_with(dir, aside, dir, name, RenameFlags::EXCHANGE)
                .map_err(step_failure(path))?;
        }
        is_it?;
        self.fuse.burn_step()?;
        unlinkat(dir, aside, AtFlags::empty()).map_err(step_failure(path))
    }

    /// Checks that a name still has the expected state; otherwise the step fails.
    fn check_state(
        &self,
        dir: &OwnedFd,
        name: &OsStr,
        path: &Path,
        is_it: impl FnOnce(&FileState) -> bool,
    ) -> Done {
        match look_in(dir, name).map_err(step_failure(path))? {
            Some(now) if is_it(&now) => Ok(()),
            Some(_) | None => Err(StepFailure::Changed(path.to_owned())),
        }
    }

    /// Undoes all steps that were done, one level after another. Returns the paths that another program
    /// changed; these files stay.
    pub(crate) fn take_back(&self) -> Result<Vec<PathBuf>, ChangesError> {
        let mut left = Vec::new();
        if self.entry.read_level()? == ApplyLevel::Placing {
            self.revert_each(&mut left, |at, step| match step {
                ApplyStep::Put { path, before, digest, .. } => {
                    self.take_out(at, &path.0, before.as_ref(), digest)
                }
                ApplyStep::Place { .. }
                | ApplyStep::MakeDir { .. }
                | ApplyStep::RemoveDir { .. }
                | ApplyStep::Stage { .. }
                | ApplyStep::Remove { .. } => Ok(()),
            })?;
            self.fuse.burn_step()?;
            self.entry.mark_level(ApplyLevel::Coming)?;
        }
        for level in [ApplyLevel::Coming, ApplyLevel::Going] {
            if self.entry.read_level()? == level {
                self.revert_each(&mut left, |at, step| match step.step_level() == level {
                    true => self.revert_step(at, step),
                    false => Ok(()),
                })?;
            }
            if level == ApplyLevel::Coming {
                self.fuse.burn_step()?;
                self.entry.mark_level(ApplyLevel::Going)?;
            }
        }
        Ok(left)
    }

    /// Undoes steps from the last to the first.
    fn revert_each(
        &self,
        left: &mut Vec<PathBuf>,
        back: impl Fn(usize, &ApplyStep) -> Done,
    ) -> Result<(), ChangesError> {
        for (at, step) in self.record.steps.iter().enumerate().rev() {
            match back(at, step) {
                Ok(()) => {}
                Err(StepFailure::Changed(path)) => left.push(path),
                Err(stop @ (StepFailure::Io(..) | StepFailure::Killed)) => return Err(stop.into()),
            }
        }
        Ok(())
    }

    /// Reverts one step, if the step was done.
    fn revert_step(&self, at: usize, step: &ApplyStep) -> Done {
        match step {
            // The content was at most written to its temporary name.
            ApplyStep::Put { path, .. } => match self.find_parent(&path.0)? {
                Some((dir, _)) => self.remove_leftover(&dir, &self.aside_name(at), &path.0),
                None => Ok(()),
            },
            ApplyStep::Place { stage, before, to } => {
                let Some((dir, name)) = self.find_parent(&to.0)? else { return Ok(()) };
                let (root, aside) = (self.open_root()?, self.aside_name(*stage));
                match look_in(&dir, name).map_err(step_failure(&to.0))? {
                    Some(now) if now.is_same(before) => {
                        self.fuse.burn_step()?;
                        move_to((&dir, name), (&root, &aside)).map_err(step_failure(&to.0))
                    }
                    Some(_) | None => Ok(()),
                }
            }
            ApplyStep::MakeDir { path } => {
                let Some((dir, name)) = self.find_parent(&path.0)? else { return Ok(()) };
                self.fuse.burn_step()?;
                match unlinkat(&dir, name, AtFlags::REMOVEDIR) {
                    Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
                    done => done.map_err(step_failure(&path.0)),
                }
            }
            ApplyStep::RemoveDir { below, mode } => {
                let (dir, name) = self.open_parent(&below.0)?;
                if look_in(&dir, name).map_err(step_failure(&below.0))?.is_some() {
                    return Ok(());
                }
                self.fuse.burn_step()?;
                mkdirat(&dir, name, Mode::from_raw_mode(*mode)).map_err(step_failure(&below.0))
            }
            ApplyStep::Stage { from, before } => {
                let (root, aside) = (self.open_root()?, self.aside_name(at));
                match look_in(&root, &aside).map_err(step_failure(&from.0))? {
                    Some(now) if now.is_same(before) => {
                        let (dir, name) = self.open_parent(&from.0)?;
                        self.fuse.burn_step()?;
                        move_to((&root, &aside), (&dir, name)).map_err(step_failure(&from.0))
                    }
                    Some(_) | None => Ok(()),
                }
            }
            ApplyStep::Remove { below, before, kept } => self.put_back(at, &below.0, before, kept),
        }
    }

    /// The directory of a path. `None` = missing, so no step was done there.
    fn find_parent<'a>(&self, path: &'a Path) -> Result<Option<(OwnedFd, &'a OsStr)>, StepFailure> {
        match self.workspace.open_parent(path) {
            Ok(there) => Ok(Some(there)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(step_failure(path)(errno)),
        }
    }

    /// Undoes a put.
    fn take_out(
        &self,
        at: usize,
        path: &Path,
        before: Option<&(FileState, KeptCopy)>,
        digest: &str,
    ) -> Done {
        let Some((dir, name)) = self.find_parent(path)? else { return Ok(()) };
        let aside = self.aside_name(at);
        let now = look_in(&dir, name).map_err(step_failure(path))?;
        let beside = look_in(&dir, &aside).map_err(step_failure(path))?;
        let is_before = |now: &FileState| before.is_some_and(|(state, _)| is_content(now, state));
        let ours = is_ours(&dir, name, digest);
        match now {
            // The new content never reached its path.
            Some(now) if is_before(&now) => return self.remove_leftover(&dir, &aside, path),
            None if before.is_none() => return self.remove_leftover(&dir, &aside, path),
            Some(_) if ours => {}
            // The new content was removed already.
            Some(_)
                if before.is_some_and(|(_, kept)| {
                    is_kept(&dir, name, &self.entry.kept_path(at), kept)
                }) =>
            {
                return self.remove_leftover(&dir, &aside, path);
            }
            Some(_) | None => {
                self.remove_leftover(&dir, &aside, path)?;
                return Err(StepFailure::Changed(path.to_owned()));
            }
        }
        match before {
            None => {
                self.fuse.burn_step()?;
                unlinkat(&dir, name, AtFlags::empty()).map_err(step_failure(path))
            }
            // The original still has its temporary name.
            Some(_) if beside.as_ref().is_some_and(is_before) => {
                self.fuse.burn_step()?;
                renameat(&dir, &aside, &dir, name).map_err(step_failure(path))
            }
            // The concurrent version that was moved aside is the newest, so it returns.
            Some(_) if beside.is_some() => {
                self.fuse.burn_step()?;
                renameat(&dir, &aside, &dir, name).map_err(step_failure(path))?;
                Err(StepFailure::Changed(path.to_owned()))
            }
            Some((state, kept)) => {
                let old = self.restore_original(at, &dir, state, kept, path)?;
                self.fuse.burn_step()?;
                renameat(&dir, &old, &dir, name).map_err(step_failure(path))
            }
        }
    }

    /// Undoes a removal.
    fn put_back(&self, at: usize, path: &Path, before: &FileState, kept: &KeptCopy) -> Done {
        let Some((dir, name)) = self.find_parent(path)? else {
            return Err(StepFailure::Changed(path.to_owned()));
        };
        let aside = self.aside_name(at);
        if let Some(now) = look_in(&dir, name).map_err(step_failure(path))? {
            let same =
                is_content(&now, before) || is_kept(&dir, name, &self.entry.kept_path(at), kept);
            self.remove_leftover(&dir, &aside, path)?;
            return if same { Ok(()) } else { Err(StepFailure::Changed(path.to_owned())) };
        }
        let beside = look_in(&dir, &aside).map_err(step_failure(path))?;
        let from = match beside {
            Some(_) => aside,
            None => self.restore_original(at, &dir, before, kept, path)?,
        };
        self.fuse.burn_step()?;
        move_to((&dir, &from), (&dir, name)).map_err(step_failure(path))?;
        match beside {
            // The file moved aside is not the agent's original.
            Some(now) if !is_content(&now, before) => Err(StepFailure::Changed(path.to_owned())),
            Some(_) | None => Ok(()),
        }
    }

    /// Restores an original under a name that no step uses.
    fn restore_original(
        &self,
        at: usize,
        dir: &OwnedFd,
        before: &FileState,
        kept: &KeptCopy,
        path: &Path,
    ) -> Result<OsString, StepFailure> {
        let mut name = self.aside_name(at);
        name.push("-old");
        self.remove_leftover(dir, &name, path)?;
        self.fuse.burn_step()?;
        match kept {
            KeptCopy::Link(target) => {
                let target = CString::new(target.0.as_os_str().as_bytes()).unwrap_or_default();
                symlinkat(&target, dir, &name).map_err(step_failure(path))?;
            }
            KeptCopy::File => {
                let file = self.entry.kept_path(at);
                let content =
                    File::open(&file).map_err(|error| StepFailure::Io(file.clone(), error))?;
                let modified = (Some(before.modified), true);
                write_beside(dir, &name, &content, before.mode, modified)
                    .map_err(step_failure(path))?;
            }
        }
        Ok(name)
    }

    /// Removes a temporary file that a killed process may have left.
    fn remove_leftover(&self, dir: &OwnedFd, name: &OsStr, path: &Path) -> Done {
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(step_failure(path)(errno)),
        }
    }
}
