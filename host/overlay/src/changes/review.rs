//! Reviews one overlay: lists its changes, and applies, undoes or discards them with a journal.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Overlay;
use belljar_work::StopSignal;
use serde::Serialize;

use crate::changes::change::{ChangeConflict, Changes};
use crate::changes::execute::{StepExecutor, StepFuse};
use crate::changes::journal::{ApplyEntry, ApplyJournal, ApplyLevel, ApplyRecord, ApplyStep};
use crate::changes::list::ListDepth;
use crate::changes::workspace::Workspace;
use crate::changes::{ChangesError, NodeKind, PathSelection, apply, list, paths, plan, undo};

/// One overlay, with the journal of applied changes. All methods wait for the disk: call them on a thread
/// that may block, and while no agent works in the overlay. A file open for writing in an agent during an
/// apply becomes a separate copy.
#[derive(Debug)]
pub struct OverlayReview {
    overlay: Overlay,
    workspace: Workspace,
    journal: ApplyJournal,
    recovered: Option<ApplyRecovery>,
    fuse: StepFuse,
    stop: StopSignal,
}

/// How opening a review ended an interrupted apply or undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyRecovery {
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
    /// Whether to apply files that other programs would run or act on, for example a git hook.
    pub also_what_runs: bool,
    /// Paths at which the agent's version wins a conflict.
    pub theirs: Option<PathSelection>,
    /// Paths at which the workspace's version wins a conflict; the agent's is stored for an undo.
    pub mine: Option<PathSelection>,
}

/// The result of an apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AppliedChanges {
    /// Paths that now have the agent's version. Includes unselected paths that a selected one needs, for
    /// example a new directory around a selected file.
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
    /// The dropped paths that [`OverlayReview::undo_apply`] cannot restore: a new or renamed directory with its content,
    /// and unreadable files.
    #[serde(serialize_with = "paths::all")]
    pub lost: Vec<PathBuf>,
    /// Paths that were not applied, with the reason.
    #[serde(serialize_with = "paths::each")]
    pub conflicts: Vec<(PathBuf, ChangeConflict)>,
    /// Paths that were not applied because other programs would run them, with the reason.
    #[serde(serialize_with = "paths::each")]
    pub held_back: Vec<(PathBuf, &'static str)>,
}

/// The result of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoOutcome {
    /// The journal has no apply to undo.
    Nothing,
    /// The workspace is as before the last apply, and the changes are in the overlay again.
    TakenBack {
        /// The restored paths.
        restored: Vec<PathBuf>,
        /// The number of restored files and links, including those in directories. A renamed file counts
        /// once.
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
pub struct KeptCopies {
    /// The count of applies.
    pub applies: usize,
    /// The size in bytes.
    pub bytes: u64,
}

impl AppliedChanges {
    /// Whether [`OverlayReview::undo_apply`] would restore any file.
    pub fn can_be_undone(&self) -> bool {
        let kept = self.dropped.iter().any(|path| !self.lost.contains(path));
        kept || !self.applied.is_empty() || !self.merged.is_empty()
    }
}

impl OverlayReview {
    /// Opens the journal of an overlay; creates the journal if missing, but not its parent directories. The
    /// directory has to be private to the host, and outside the workspace. An interrupted apply is finished
    /// or undone.
    ///
    /// # Errors
    ///
    /// The journal cannot be used, or an interrupted apply can be neither finished nor undone.
    pub fn open(overlay: &Overlay, journal: impl AsRef<Path>) -> Result<Self, ChangesError> {
        Self::open_with(overlay, journal.as_ref(), StepFuse::new(usize::MAX))
    }

    /// Opens a review like [`Self::open`]; the fuse simulates a crash after some steps.
    pub(crate) fn open_with(
        overlay: &Overlay,
        journal: &Path,
        fuse: StepFuse,
    ) -> Result<Self, ChangesError> {
        let workspace = Workspace::new(Arc::clone(overlay.lower_dir()));
        let journal = ApplyJournal::open(journal)?;
        let overlay = overlay.clone();
        let stop = StopSignal::never_raised();
        let mut review = Self { overlay, workspace, journal, recovered: None, fuse, stop };
        review.recovered = review.recover_applies()?;
        Ok(review)
    }

    /// Whether the journal has an interrupted apply, which [`Self::open`] would finish or undo. Writes
    /// nothing.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn is_interrupted(journal: impl AsRef<Path>) -> Result<bool, ChangesError> {
        let Some(journal) = ApplyJournal::find_existing(journal.as_ref()) else { return Ok(false) };
        for entry in journal.list_entries()? {
            let is_begun = entry.read_record()?.is_some();
            if is_begun
                && (entry.undo_number()?.is_some() || !entry.is_done() || !entry.is_settled())
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the journal has an apply that [`Self::undo_apply`] may undo. Writes nothing.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn has_applied(journal: impl AsRef<Path>) -> Result<bool, ChangesError> {
        let Some(journal) = ApplyJournal::find_existing(journal.as_ref()) else { return Ok(false) };
        let last = journal.list_entries()?.pop().map(|entry| entry.read_record()).transpose()?;
        Ok(last.flatten().is_some())
    }

    /// The changes of an overlay for a reader without the right to decide: writes neither the workspace, nor
    /// the overlay, nor the journal, and leaves an interrupted apply.
    ///
    /// # Errors
    ///
    /// Those of [`Self::list_changes`].
    pub fn list_read_only(overlay: &Overlay, stop: &StopSignal) -> Result<Changes, ChangesError> {
        let mut changes = list::list_changes(overlay, ListDepth::Conflicts, stop)?;
        apply::find_elsewhere(&mut changes)?;
        Ok(changes)
    }

    /// The same review with a signal that stops its work with an error. An apply or undo that has begun
    /// completes.
    #[must_use]
    pub fn with_stop(mut self, stop: &StopSignal) -> Self {
        self.stop = stop.clone();
        self
    }

    /// The end of an interrupted apply, if opening found one.
    pub fn recovered_apply(&self) -> Option<&ApplyRecovery> {
        self.recovered.as_ref()
    }

    /// The changes of the overlay, without counts of lines.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the overlay has too many changes.
    pub fn list_changes(&self) -> Result<Changes, ChangesError> {
        Self::list_read_only(&self.overlay, &self.stop)
    }

    /// The changes of the overlay without a check for conflicts.
    ///
    /// # Errors
    ///
    /// Those of [`Self::list_changes`].
    pub fn list_names(&self) -> Result<Changes, ChangesError> {
        Self::look_at_names(&self.overlay, &self.stop)
    }

    /// The same as [`Self::list_names`], for a caller without the right to decide.
    ///
    /// # Errors
    ///
    /// Those of [`Self::list_changes`].
    pub fn look_at_names(overlay: &Overlay, stop: &StopSignal) -> Result<Changes, ChangesError> {
        list::list_changes(overlay, ListDepth::Names, stop)
    }

    /// Applies the selected changes and the changes that they need.
    ///
    /// # Errors
    ///
    /// A file changed during the apply, or a file cannot be written; the workspace is then restored.
    pub fn apply_changes(
        &self,
        selection: &PathSelection,
        options: &ApplyOptions,
    ) -> Result<AppliedChanges, ChangesError> {
        let _lock = self.journal.lock_journal()?;
        let changes = self.list_changes()?;
        let chosen = plan::choose_changes(&changes.files, selection, options, &self.stop)?;
        let mut files = Vec::new();
        for at in &chosen.applied {
            files.extend(changes.files.get(*at));
        }
        let mut applied = AppliedChanges {
            dropped: chosen.dropped,
            conflicts: chosen.conflicts,
            held_back: chosen.held_back,
            ..AppliedChanges::default()
        };
        applied.dropped.dedup();
        if !files.is_empty() || !applied.dropped.is_empty() {
            let theirs =
                |path: &Path| options.theirs.as_ref().is_some_and(|it| it.includes_path(path));
            let entry = self.journal.begin_apply(self.next_number()?)?;
            let what = (files.as_slice(), applied.dropped.as_slice());
            (applied.merged, applied.lost) = self.perform_apply(&changes, what, theirs, &entry)?;
            let merged: HashSet<&PathBuf> = applied.merged.iter().collect();
            let names = files.iter().map(|file| &file.path);
            applied.applied = names.filter(|path| !merged.contains(path)).cloned().collect();
            applied.applied.dedup();
            applied.files = files.iter().filter(|file| file.node != NodeKind::Directory).count();
        }
        self.journal.remove_oldest()?;
        Ok(applied)
    }

    fn next_number(&self) -> Result<u64, ChangesError> {
        let last = self.journal.last_number()?;
        Ok(last.max(self.overlay.settled_number()) + 1)
    }

    /// Writes the journal record of an apply, executes the steps and updates the overlay.
    fn perform_apply(
        &self,
        changes: &Changes,
        (files, dropped): (&[&crate::changes::FileChange], &[PathBuf]),
        theirs: impl Fn(&Path) -> bool,
        entry: &ApplyEntry,
    ) -> Result<(Vec<PathBuf>, Vec<PathBuf>), ChangesError> {
        let prepared = apply::prepare_steps(changes, files, dropped, theirs, entry);
        // From here on, the apply cannot be stopped.
        let prepared = prepared
            .and_then(|prepared| self.stop.check_raised().map(|()| prepared).map_err(Into::into));
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                entry.remove_entry()?;
                return Err(error);
            }
        };
        self.fuse.burn_step()?;
        entry.write_record(&prepared.record)?;
        let steps = self.new_executor(entry, &prepared.record);
        let mut level = ApplyLevel::Going;
        for (at, step) in prepared.record.steps.iter().enumerate() {
            if step.step_level() != level {
                level = step.step_level();
                self.fuse.burn_step()?;
                self.unless_failed(entry, &prepared.record, entry.mark_level(level))?;
            }
            let is_merged = matches!(step, ApplyStep::Put { merged: true, .. });
            let done = steps.run_step(at, |path| match is_merged {
                true => {
                    let from = entry.merged_path(at);
                    std::fs::File::open(&from).map_err(ChangesError::from_io("open", &from))
                }
                false => self.overlay.open_file(path).map_err(ChangesError::from_io("open", path)),
            });
            self.unless_failed(entry, &prepared.record, done)?;
        }
        self.unless_failed(entry, &prepared.record, steps.sync_writes())?;
        self.fuse.burn_step()?;
        self.unless_failed(entry, &prepared.record, entry.mark_level(ApplyLevel::Placing))?;
        for at in 0..prepared.record.steps.len() {
            self.unless_failed(entry, &prepared.record, steps.put_in_place(at))?;
        }
        self.unless_failed(entry, &prepared.record, steps.sync_writes())?;
        self.fuse.burn_step()?;
        entry.mark_done()?;
        self.finish_apply(entry, &prepared.record)?;
        Ok((prepared.merged, prepared.lost))
    }

    /// Undoes all steps if `done` is an error.
    fn unless_failed(
        &self,
        entry: &ApplyEntry,
        record: &ApplyRecord,
        done: Result<(), ChangesError>,
    ) -> Result<(), ChangesError> {
        if done.is_err() && !self.fuse.is_burnt() {
            self.take_back(entry, record)?;
        }
        done
    }

    /// The executor for the steps of one apply.
    fn new_executor<'a>(
        &'a self,
        entry: &'a ApplyEntry,
        record: &'a ApplyRecord,
    ) -> StepExecutor<'a> {
        StepExecutor { workspace: &self.workspace, entry, record, fuse: &self.fuse }
    }

    /// Updates the overlay after a complete apply.
    fn finish_apply(&self, entry: &ApplyEntry, record: &ApplyRecord) -> Result<(), ChangesError> {
        if self.overlay.settled_number() < record.number {
            self.fuse.burn_step()?;
            let settled = self.overlay.settle_changes(record.number, &record.to_settled());
            settled.map_err(ChangesError::Overlay)?;
        }
        self.fuse.burn_step()?;
        entry.mark_settled()
    }

    /// Undoes an incomplete apply. Returns the paths that stay because another program changed them.
    fn take_back(
        &self,
        entry: &ApplyEntry,
        record: &ApplyRecord,
    ) -> Result<Vec<PathBuf>, ChangesError> {
        let left = self.new_executor(entry, record).take_back()?;
        let versions = record.files_by_path();
        let places = record.steps.iter().filter_map(|step| match step {
            ApplyStep::Remove { below, .. } | ApplyStep::RemoveDir { below, .. } => {
                Some(below.0.clone())
            }
            ApplyStep::Stage { from, .. } => Some(from.0.clone()),
            ApplyStep::Put { path, before: Some(_), .. } => {
                // The path before all moves.
                let (below, _) = versions.get(path.0.as_path())?;
                Some((*below)?.to_owned())
            }
            ApplyStep::Put { .. } | ApplyStep::MakeDir { .. } | ApplyStep::Place { .. } => None,
        });
        // Files that differed from the agent's original before the apply still differ, so they are
        // left out.
        let befores = record.befores_by_place();
        let stays: HashSet<&PathBuf> = left.iter().collect();
        let same = |place: &Path| befores.get(place).is_none_or(|(_, was)| was.same);
        let places = places.filter(|place| !stays.contains(place) && same(place));
        let places: Vec<PathBuf> = places.collect();
        self.fuse.burn_step()?;
        self.overlay.see_again(&places).map_err(ChangesError::Overlay)?;
        self.fuse.burn_step()?;
        entry.end_entry(&left)?;
        Ok(left)
    }

    /// Finishes or undoes applies that a killed process left; returns the result, if any.
    fn recover_applies(&self) -> Result<Option<ApplyRecovery>, ChangesError> {
        let _lock = self.journal.lock_journal()?;
        let mut recovered = None;
        for entry in self.journal.list_entries()? {
            let Some(record) = entry.read_record()? else {
                entry.remove_entry()?;
                continue;
            };
            if let Some(number) = entry.undo_number()? {
                let left = self.finish_undo(&entry, &record, number)?;
                recovered = Some(ApplyRecovery::TakenBack { left });
            } else if !entry.is_done() {
                let left = self.take_back(&entry, &record)?;
                recovered = Some(ApplyRecovery::TakenBack { left });
            } else if !entry.is_settled() {
                self.finish_apply(&entry, &record)?;
                recovered = Some(ApplyRecovery::Finished);
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
    pub fn undo_apply(&self) -> Result<UndoOutcome, ChangesError> {
        let _lock = self.journal.lock_journal()?;
        let entries = self.journal.list_entries()?;
        let Some(entry) = entries.last() else { return Ok(UndoOutcome::Nothing) };
        let Some(record) = entry.read_record()? else { return Ok(UndoOutcome::Nothing) };
        let changed = undo::changed_since(&self.workspace, &record, &self.stop)?;
        if !changed.is_empty() {
            return Ok(UndoOutcome::Refused { changed });
        }
        undo::keep_again(&self.workspace, entry, &record, &self.stop)?;
        self.fuse.burn_step()?;
        let number = self.next_number()?;
        entry.mark_undoing(number)?;
        let left = self.finish_undo(entry, &record, number)?;
        let settled = record.to_settled();
        let moved = settled.moved.into_iter().flat_map(|(from, to)| [from, to]);
        let all = settled.gone.into_iter().chain(moved).chain(settled.directories);
        let given_up = record.given_up.iter().map(|given| given.path.0.clone());
        let mut restored: Vec<PathBuf> = all.chain(settled.files).chain(given_up).collect();
        let left: HashSet<PathBuf> = left.into_iter().collect();
        restored.retain(|path| !left.contains(path));
        restored.sort();
        restored.dedup();
        let files = record.changed_files();
        let is_left = |path: &Path| left.iter().any(|left| left.as_path() == path);
        let files = files.into_iter().filter(|path| !is_left(path)).count();
        Ok(UndoOutcome::TakenBack { restored, files })
    }

    /// Executes a started undo to the end, and returns the overlay's changes.
    fn finish_undo(
        &self,
        entry: &ApplyEntry,
        record: &ApplyRecord,
        number: u64,
    ) -> Result<Vec<PathBuf>, ChangesError> {
        let left = self.new_executor(entry, record).take_back()?;
        if self.overlay.settled_number() < number {
            self.fuse.burn_step()?;
            undo::return_to_overlay(&self.overlay, entry, record, &left, number)?;
        }
        self.fuse.burn_step()?;
        entry.end_entry(&left)?;
        Ok(left)
    }

    /// Discards the selected changes, so that the agent sees the workspace's files again. Returns the paths.
    /// A renamed or deleted directory is one change with all its content.
    ///
    /// # Errors
    ///
    /// The overlay cannot be written, and is then unchanged.
    pub fn discard_changes(&self, selection: &PathSelection) -> Result<Vec<PathBuf>, ChangesError> {
        let _lock = self.journal.lock_journal()?;
        let changes = self.overlay.list_changes();
        let listed = if selection.is_all() { None } else { Some(self.list_names()?) };
        let listed = listed.iter().flat_map(|listed| &listed.files);
        let with = listed.filter(|file| selection.includes_path(&file.path));
        let with: HashSet<&PathBuf> = with.filter_map(|file| file.part_of.as_ref()).collect();
        let chosen = changes.iter().map(|change| &change.path);
        let chosen = chosen.filter(|path| selection.includes_path(path) || with.contains(path));
        // Everything below a deleted directory belongs to that one change.
        let mut roots: HashSet<&Path> = HashSet::new();
        for path in chosen {
            self.stop.check_raised()?;
            if !path.ancestors().any(|above| roots.contains(above)) {
                roots.insert(path);
            }
        }
        let goes = |path: &Path| path.ancestors().any(|above| roots.contains(above));
        let mut gone: Vec<PathBuf> =
            changes.iter().map(|change| &change.path).filter(|path| goes(path)).cloned().collect();
        let mut roots: Vec<PathBuf> = roots.into_iter().map(Path::to_path_buf).collect();
        roots.sort();
        self.stop.check_raised()?;
        self.overlay.discard_paths(&roots).map_err(ChangesError::Overlay)?;
        gone.dedup();
        Ok(gone)
    }

    /// The count and size of the stored originals for an undo.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    pub fn kept(&self) -> Result<KeptCopies, ChangesError> {
        Ok(KeptCopies {
            applies: self.journal.list_entries()?.len(),
            bytes: self.journal.total_bytes()?,
        })
    }
}
