//! Reviews one overlay: lists its changes, and applies, undoes or discards them with a journal.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_sandbox::Overlay;
use belljar_work::StopSignal;
use serde::Serialize;

use crate::change::{Changes, Conflict};
use crate::execute::{Executor, Fuse};
use crate::journal::{Entry, Journal, Level, Record, Step};
use crate::list::Depth;
use crate::workspace::Workspace;
use crate::{ChangesError, Node, Selection, apply, list, paths, plan, undo};

/// One overlay, with the journal of its applied changes. All methods wait for the disk: call them on a thread
/// that may block, and while no agent works in the overlay. A file that an agent holds open for writing
/// during an apply becomes a separate copy.
#[derive(Debug)]
pub struct Review {
    overlay: Overlay,
    workspace: Workspace,
    journal: Journal,
    recovered: Option<Recovered>,
    fuse: Fuse,
    stop: StopSignal,
}

/// How opening a review ended an interrupted apply or undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovered {
    /// All changes were applied; the overlay now shows the workspace's files.
    Finished,
    /// All changes were undone, or an interrupted undo was completed.
    TakenBack {
        /// Files that another program changed meanwhile. They stay, with the originals in the journal.
        left: Vec<PathBuf>,
    },
}

/// Options of an apply. By default, files that would run later and conflicts are not applied.
#[derive(Debug, Clone, Default)]
pub struct ApplyOptions {
    /// Whether files are applied that other programs would run or act on.
    pub also_what_runs: bool,
    /// Paths at which the agent's version wins a conflict.
    pub theirs: Option<Selection>,
    /// Paths at which the workspace's version wins a conflict; the agent's is stored for an undo.
    pub mine: Option<Selection>,
}

/// The result of an apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Paths that now have the agent's version, including those needed by a selected one.
    #[serde(serialize_with = "paths::all")]
    pub applied: Vec<PathBuf>,
    /// Paths that now have both changes: the agent's and the workspace's.
    #[serde(serialize_with = "paths::all")]
    pub merged: Vec<PathBuf>,
    /// The count of files and links, without directories, in `applied` and `merged`.
    pub files: usize,
    /// Paths at which the workspace's version stayed and the agent's change was dropped.
    #[serde(serialize_with = "paths::all")]
    pub dropped: Vec<PathBuf>,
    /// The dropped paths that [`Review::undo`] cannot restore: a new or renamed directory with its content,
    /// and unreadable files.
    #[serde(serialize_with = "paths::all")]
    pub lost: Vec<PathBuf>,
    /// Paths that were not applied, with the reason.
    #[serde(serialize_with = "paths::each")]
    pub conflicts: Vec<(PathBuf, Conflict)>,
    /// Paths that were not applied because other programs would run them, with the reason.
    #[serde(serialize_with = "paths::each")]
    pub held_back: Vec<(PathBuf, &'static str)>,
}

/// The result of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// The journal has no apply to undo.
    Nothing,
    /// The workspace is as before the last apply, and the changes are in the overlay again.
    TakenBack {
        /// The restored paths.
        restored: Vec<PathBuf>,
        /// The number of restored files and links, including those in directories. A renamed one counts once.
        files: usize,
    },
    /// Files at these paths were changed since the apply, so the undo did nothing.
    Refused {
        /// The changed paths.
        changed: Vec<PathBuf>,
    },
}

/// The stored originals for an undo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The count of applies.
    pub applies: usize,
    /// The size in bytes.
    pub bytes: u64,
}

impl Applied {
    /// Whether [`Review::undo`] would restore any file.
    pub fn can_be_undone(&self) -> bool {
        let kept = self.dropped.iter().any(|path| !self.lost.contains(path));
        kept || !self.applied.is_empty() || !self.merged.is_empty()
    }
}

impl Review {
    /// Opens the journal of an overlay; creates the journal if missing, but not its parent directories. The
    /// directory has to be private to the host, and outside the workspace. An interrupted apply is finished
    /// or undone.
    ///
    /// # Errors
    ///
    /// The journal cannot be used, or an interrupted apply can be neither finished nor undone.
    pub fn open(overlay: &Overlay, journal: impl AsRef<Path>) -> Result<Self, ChangesError> {
        Self::open_with(overlay, journal.as_ref(), Fuse::new(usize::MAX))
    }

    /// Opens a review like [`Self::open`]; the fuse simulates a crash after some steps.
    pub(crate) fn open_with(
        overlay: &Overlay,
        journal: &Path,
        fuse: Fuse,
    ) -> Result<Self, ChangesError> {
        let workspace = Workspace::new(Arc::clone(overlay.lower()));
        let journal = Journal::open(journal)?;
        let overlay = overlay.clone();
        let stop = StopSignal::never();
        let mut review = Self { overlay, workspace, journal, recovered: None, fuse, stop };
        review.recovered = review.recover()?;
        Ok(review)
    }

    /// Whether the journal has an interrupted apply, which [`Self::open`] would finish or undo. Writes
    /// nothing.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn is_interrupted(journal: impl AsRef<Path>) -> Result<bool, ChangesError> {
        let Some(journal) = Journal::known(journal.as_ref()) else { return Ok(false) };
        for entry in journal.entries()? {
            let is_begun = entry.read()?.is_some();
            if is_begun && (entry.undoing()?.is_some() || !entry.is_done() || !entry.is_settled()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the journal has an apply that [`Self::undo`] may undo. Writes nothing.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn has_applied(journal: impl AsRef<Path>) -> Result<bool, ChangesError> {
        let Some(journal) = Journal::known(journal.as_ref()) else { return Ok(false) };
        let last = journal.entries()?.pop().map(|entry| entry.read()).transpose()?;
        Ok(last.flatten().is_some())
    }

    /// The changes of an overlay for a reader without the right to decide: writes neither the workspace, nor
    /// the overlay, nor the journal, and leaves an interrupted apply.
    ///
    /// # Errors
    ///
    /// Those of [`Self::changes`].
    pub fn look(overlay: &Overlay, stop: &StopSignal) -> Result<Changes, ChangesError> {
        let mut changes = list::list(overlay, Depth::Conflicts, stop)?;
        apply::find_elsewhere(&mut changes)?;
        Ok(changes)
    }

    /// The same review with a signal that stops its work with an error. An apply or undo that has begun
    /// completes.
    #[must_use]
    pub fn until(mut self, stop: &StopSignal) -> Self {
        self.stop = stop.clone();
        self
    }

    /// The end of an interrupted apply, if opening found one.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.recovered.as_ref()
    }

    /// The changes of the overlay, without counts of lines.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the overlay has too many changes.
    pub fn changes(&self) -> Result<Changes, ChangesError> {
        Self::look(&self.overlay, &self.stop)
    }

    /// The changes of the overlay without a check for conflicts.
    ///
    /// # Errors
    ///
    /// Those of [`Self::changes`].
    pub fn names(&self) -> Result<Changes, ChangesError> {
        Self::look_at_names(&self.overlay, &self.stop)
    }

    /// The same as [`Self::names`], for a caller without the right to decide.
    ///
    /// # Errors
    ///
    /// Those of [`Self::changes`].
    pub fn look_at_names(overlay: &Overlay, stop: &StopSignal) -> Result<Changes, ChangesError> {
        list::list(overlay, Depth::Names, stop)
    }

    /// Applies the selected changes and the changes that they need.
    ///
    /// # Errors
    ///
    /// A file changed during the apply, or a file cannot be written; the workspace is then restored.
    pub fn apply(
        &self,
        selection: &Selection,
        options: &ApplyOptions,
    ) -> Result<Applied, ChangesError> {
        let _lock = self.journal.lock()?;
        let changes = self.changes()?;
        let chosen = plan::choose(&changes.files, selection, options, &self.stop)?;
        let mut files = Vec::new();
        for at in &chosen.applied {
            files.extend(changes.files.get(*at));
        }
        let mut applied = Applied {
            dropped: chosen.dropped,
            conflicts: chosen.conflicts,
            held_back: chosen.held_back,
            ..Applied::default()
        };
        applied.dropped.dedup();
        if !files.is_empty() || !applied.dropped.is_empty() {
            let theirs = |path: &Path| options.theirs.as_ref().is_some_and(|it| it.takes(path));
            let entry = self.journal.begin(self.next_number()?)?;
            let what = (files.as_slice(), applied.dropped.as_slice());
            (applied.merged, applied.lost) = self.perform(&changes, what, theirs, &entry)?;
            let merged: HashSet<&PathBuf> = applied.merged.iter().collect();
            let names = files.iter().map(|file| &file.path);
            applied.applied = names.filter(|path| !merged.contains(path)).cloned().collect();
            applied.applied.dedup();
            applied.files = files.iter().filter(|file| file.node != Node::Directory).count();
        }
        self.journal.trim()?;
        Ok(applied)
    }

    fn next_number(&self) -> Result<u64, ChangesError> {
        let last = self.journal.last_number()?;
        Ok(last.max(self.overlay.settled()) + 1)
    }

    fn perform(
        &self,
        changes: &Changes,
        (files, dropped): (&[&crate::FileChange], &[PathBuf]),
        theirs: impl Fn(&Path) -> bool,
        entry: &Entry,
    ) -> Result<(Vec<PathBuf>, Vec<PathBuf>), ChangesError> {
        let prepared = apply::prepare(changes, files, dropped, theirs, entry);
        // From here on, the apply cannot be stopped.
        let prepared =
            prepared.and_then(|prepared| self.stop.check().map(|()| prepared).map_err(Into::into));
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                entry.remove()?;
                return Err(error);
            }
        };
        self.fuse.step()?;
        entry.write(&prepared.record)?;
        let steps = self.executor(entry, &prepared.record);
        let mut level = Level::Going;
        for (at, step) in prepared.record.steps.iter().enumerate() {
            if step.level() != level {
                level = step.level();
                self.fuse.step()?;
                self.unless_failed(entry, &prepared.record, entry.mark_level(level))?;
            }
            let is_merged = matches!(step, Step::Put { merged: true, .. });
            let done = steps.run(at, |path| match is_merged {
                true => {
                    let from = entry.merged(at);
                    std::fs::File::open(&from).map_err(ChangesError::io("open", &from))
                }
                false => self.overlay.open_file(path).map_err(ChangesError::io("open", path)),
            });
            self.unless_failed(entry, &prepared.record, done)?;
        }
        self.unless_failed(entry, &prepared.record, steps.sync())?;
        self.fuse.step()?;
        self.unless_failed(entry, &prepared.record, entry.mark_level(Level::Placing))?;
        for at in 0..prepared.record.steps.len() {
            self.unless_failed(entry, &prepared.record, steps.put_in_place(at))?;
        }
        self.unless_failed(entry, &prepared.record, steps.sync())?;
        self.fuse.step()?;
        entry.mark_done()?;
        self.finish(entry, &prepared.record)?;
        Ok((prepared.merged, prepared.lost))
    }

    /// Undoes all steps if `done` is an error.
    fn unless_failed(
        &self,
        entry: &Entry,
        record: &Record,
        done: Result<(), ChangesError>,
    ) -> Result<(), ChangesError> {
        if done.is_err() && !self.fuse.is_burnt() {
            self.take_back(entry, record)?;
        }
        done
    }

    fn executor<'a>(&'a self, entry: &'a Entry, record: &'a Record) -> Executor<'a> {
        Executor { workspace: &self.workspace, entry, record, fuse: &self.fuse }
    }

    /// Updates the overlay after a complete apply.
    fn finish(&self, entry: &Entry, record: &Record) -> Result<(), ChangesError> {
        if self.overlay.settled() < record.number {
            self.fuse.step()?;
            let settled = self.overlay.settle(record.number, &record.settled());
            settled.map_err(ChangesError::Overlay)?;
        }
        self.fuse.step()?;
        entry.mark_settled()
    }

    /// Undoes an incomplete apply. Returns the paths that stay because another program changed them.
    fn take_back(&self, entry: &Entry, record: &Record) -> Result<Vec<PathBuf>, ChangesError> {
        let left = self.executor(entry, record).take_back()?;
        let versions = record.files_by_path();
        let places = record.steps.iter().filter_map(|step| match step {
            Step::Remove { below, .. } | Step::RemoveDir { below, .. } => Some(below.0.clone()),
            Step::Stage { from, .. } => Some(from.0.clone()),
            Step::Put { path, before: Some(_), .. } => {
                // The path before all moves.
                let (below, _) = versions.get(path.0.as_path())?;
                Some((*below)?.to_owned())
            }
            Step::Put { .. } | Step::MakeDir { .. } | Step::Place { .. } => None,
        });
        // Files that differed from the agent's original before the apply still differ, so they are
        // left out.
        let befores = record.befores_by_place();
        let stays: HashSet<&PathBuf> = left.iter().collect();
        let same = |place: &Path| befores.get(place).is_none_or(|(_, was)| was.same);
        let places = places.filter(|place| !stays.contains(place) && same(place));
        let places: Vec<PathBuf> = places.collect();
        self.fuse.step()?;
        self.overlay.see_again(&places).map_err(ChangesError::Overlay)?;
        self.fuse.step()?;
        entry.end(&left)?;
        Ok(left)
    }

    fn recover(&self) -> Result<Option<Recovered>, ChangesError> {
        let _lock = self.journal.lock()?;
        let mut recovered = None;
        for entry in self.journal.entries()? {
            let Some(record) = entry.read()? else {
                entry.remove()?;
                continue;
            };
            if let Some(number) = entry.undoing()? {
                let left = self.finish_undo(&entry, &record, number)?;
                recovered = Some(Recovered::TakenBack { left });
            } else if !entry.is_done() {
                let left = self.take_back(&entry, &record)?;
                recovered = Some(Recovered::TakenBack { left });
            } else if !entry.is_settled() {
                self.finish(&entry, &record)?;
                recovered = Some(Recovered::Finished);
            }
        }
        Ok(recovered)
    }

    /// Undoes the last apply, if its files were not changed since: the workspace is restored, and the changes
    /// are in the overlay again, including dropped ones. An agent's later change at such a path stays in the
    /// overlay, as a version of the file before the apply. A file with several hard links is a separate file
    /// afterwards.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written; the undo is then completed when the review is next opened.
    pub fn undo(&self) -> Result<Undone, ChangesError> {
        let _lock = self.journal.lock()?;
        let entries = self.journal.entries()?;
        let Some(entry) = entries.last() else { return Ok(Undone::Nothing) };
        let Some(record) = entry.read()? else { return Ok(Undone::Nothing) };
        let changed = undo::changed_since(&self.workspace, &record, &self.stop)?;
        if !changed.is_empty() {
            return Ok(Undone::Refused { changed });
        }
        undo::keep_again(&self.workspace, entry, &record, &self.stop)?;
        self.fuse.step()?;
        let number = self.next_number()?;
        entry.mark_undoing(number)?;
        let left = self.finish_undo(entry, &record, number)?;
        let settled = record.settled();
        let moved = settled.moved.into_iter().flat_map(|(from, to)| [from, to]);
        let all = settled.gone.into_iter().chain(moved).chain(settled.directories);
        let given_up = record.given_up.iter().map(|given| given.path.0.clone());
        let mut restored: Vec<PathBuf> = all.chain(settled.files).chain(given_up).collect();
        let left: HashSet<PathBuf> = left.into_iter().collect();
        restored.retain(|path| !left.contains(path));
        restored.sort();
        restored.dedup();
        let files = record.files();
        let is_left = |path: &Path| left.iter().any(|left| left.as_path() == path);
        let files = files.into_iter().filter(|path| !is_left(path)).count();
        Ok(Undone::TakenBack { restored, files })
    }

    fn finish_undo(
        &self,
        entry: &Entry,
        record: &Record,
        number: u64,
    ) -> Result<Vec<PathBuf>, ChangesError> {
        let left = self.executor(entry, record).take_back()?;
        if self.overlay.settled() < number {
            self.fuse.step()?;
            undo::unsettle(&self.overlay, entry, record, &left, number)?;
        }
        self.fuse.step()?;
        entry.end(&left)?;
        Ok(left)
    }

    /// Discards the selected changes, so that the agent sees the workspace's files again. Returns the paths.
    /// A renamed or deleted directory is one change with all its content.
    ///
    /// # Errors
    ///
    /// The overlay cannot be written, and is then unchanged.
    pub fn discard(&self, selection: &Selection) -> Result<Vec<PathBuf>, ChangesError> {
        let _lock = self.journal.lock()?;
        let changes = self.overlay.changes();
        let listed = if selection.is_all() { None } else { Some(self.names()?) };
        let listed = listed.iter().flat_map(|listed| &listed.files);
        let with = listed.filter(|file| selection.takes(&file.path));
        let with: HashSet<&PathBuf> = with.filter_map(|file| file.part_of.as_ref()).collect();
        let chosen = changes.iter().map(|change| &change.path);
        let chosen = chosen.filter(|path| selection.takes(path) || with.contains(path));
        // Everything below a deleted directory belongs to that one change.
        let mut roots: HashSet<&Path> = HashSet::new();
        for path in chosen {
            self.stop.check()?;
            if !path.ancestors().any(|above| roots.contains(above)) {
                roots.insert(path);
            }
        }
        let goes = |path: &Path| path.ancestors().any(|above| roots.contains(above));
        let mut gone: Vec<PathBuf> =
            changes.iter().map(|change| &change.path).filter(|path| goes(path)).cloned().collect();
        let mut roots: Vec<PathBuf> = roots.into_iter().map(Path::to_path_buf).collect();
        roots.sort();
        self.stop.check()?;
        self.overlay.discard(&roots).map_err(ChangesError::Overlay)?;
        gone.dedup();
        Ok(gone)
    }

    /// The count and size of the stored originals for an undo.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn kept(&self) -> Result<Kept, ChangesError> {
        Ok(Kept { applies: self.journal.entries()?.len(), bytes: self.journal.bytes()? })
    }
}
