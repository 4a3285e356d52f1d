//! The journal on disk: the steps of each apply, and the replaced contents.
//!
//! A record is valid once its file has the name `record`; from then on the workspace may have been changed.
//! `done` marks all steps as done, `settled` the overlay as updated, `undoing` a started undo. Each mark is
//! on disk before its consequences. For example, a crash after `record` and before `done` is undone at the
//! next opening.

use std::collections::{HashMap, HashSet};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::SettledChanges;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::changes::before::RecordedOriginal;
use crate::changes::paths::AnyPath;
use crate::changes::workspace::FileState;
use crate::changes::{ChangesError, NodeKind};

/// Applies that can be undone. Older ones are removed from the journal.
const MOST_KEPT: usize = 32;

/// Bytes of all entries of the journal. The oldest entries are removed to stay below.
pub(crate) const MOST_BYTES: u64 = 2 << 30;

/// One step. `from` and `below` are paths before all steps, `path` and `to` paths after them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum ApplyStep {
    /// A file or a link is removed.
    Remove { below: AnyPath, before: FileState, kept: KeptCopy },
    /// A file is moved to a temporary name at the top of the workspace.
    Stage { from: AnyPath, before: FileState },
    /// A directory is removed, which is empty by then.
    RemoveDir { below: AnyPath, mode: u32 },
    /// A directory is made.
    MakeDir { path: AnyPath },
    /// A file with a temporary name is moved to its new path. `stage` = the index of its [`ApplyStep::Stage`].
    Place { stage: usize, before: FileState, to: AnyPath },
    /// A content is written, and replaces the file at the path.
    Put {
        path: AnyPath,
        before: Option<(FileState, KeptCopy)>,
        mode: u32,
        digest: String,
        merged: bool,
    },
}

/// The steps that may have been done. Within a level, each path refers to one file: a path may have another
/// file after all removals than before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ApplyLevel {
    /// Removals and moves to temporary names.
    Going,
    /// After all removals: directories are made, files moved to their new paths, contents written to
    /// temporary names.
    Coming,
    /// After all directories are made: contents are moved to their paths.
    Placing,
}

/// The stored original of a replaced file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum KeptCopy {
    /// A file, whose content is stored under the index of the step.
    File,
    /// A link, with its target.
    Link(AnyPath),
}

/// One apply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ApplyRecord {
    pub(crate) number: u64,
    pub(crate) steps: Vec<ApplyStep>,
    pub(crate) gone: Vec<AnyPath>,
    pub(crate) moved: Vec<(AnyPath, AnyPath)>,
    pub(crate) directories: Vec<AnyPath>,
    /// The files, with the paths of their originals, and permissions.
    pub(crate) files: Vec<(AnyPath, Option<AnyPath>, u32)>,
    /// The states that the agent began with, by path.
    #[serde(default)]
    pub(crate) befores: Vec<RecordedOriginal>,
    /// Paths whose changes are dropped.
    #[serde(default)]
    pub(crate) dropped: Vec<AnyPath>,
    /// The dropped changes that an undo can restore.
    #[serde(default)]
    pub(crate) given_up: Vec<GivenUp>,
}

/// A change dropped in favour of the workspace's version.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GivenUp {
    pub(crate) path: AnyPath,
    /// The permissions, if the change is to a file.
    pub(crate) file: Option<u32>,
    /// Whether the content is stored, under this entry's index.
    pub(crate) copied: bool,
    /// The path of the original.
    pub(crate) below: Option<AnyPath>,
    /// Whether the change hides the original.
    pub(crate) hides: bool,
}

impl ApplyStep {
    /// The file or link that the step changes, moves or removes.
    fn changed_file(&self) -> Option<&AnyPath> {
        match self {
            Self::Remove { below: path, .. } | Self::Put { path, .. } => Some(path),
            Self::Place { to, before, .. } => {
                (before.node_kind() != NodeKind::Directory).then_some(to)
            }
            Self::Stage { .. } | Self::RemoveDir { .. } | Self::MakeDir { .. } => None,
        }
    }

    /// The level of the step.
    pub(crate) fn step_level(&self) -> ApplyLevel {
        match self {
            Self::Remove { .. } | Self::Stage { .. } | Self::RemoveDir { .. } => ApplyLevel::Going,
            Self::MakeDir { .. } | Self::Place { .. } | Self::Put { .. } => ApplyLevel::Coming,
        }
    }
}

impl ApplyRecord {
    /// The changes of the record in the form that the overlay needs.
    pub(crate) fn to_settled(&self) -> SettledChanges {
        let paths = |paths: &[AnyPath]| paths.iter().map(|path| path.0.clone()).collect();
        SettledChanges {
            gone: paths(&self.gone),
            moved: self.moved.iter().map(|(from, to)| (from.0.clone(), to.0.clone())).collect(),
            directories: paths(&self.directories),
            files: self.files.iter().map(|(path, ..)| path.0.clone()).collect(),
            dropped: paths(&self.dropped),
        }
    }

    /// The files and links that were made, replaced, moved, removed or dropped, each by one path.
    pub(crate) fn changed_files(&self) -> HashSet<&Path> {
        let given_up = self.given_up.iter().filter(|given| given.file.is_some());
        let given_up = given_up.map(|given| &given.path);
        let paths = self.steps.iter().filter_map(ApplyStep::changed_file).chain(given_up);
        paths.map(|path| path.0.as_path()).collect()
    }

    /// The agent's original states by path, each with its index.
    pub(crate) fn befores_by_place(&self) -> HashMap<&Path, (usize, &RecordedOriginal)> {
        let mut found = HashMap::new();
        for (at, was) in self.befores.iter().enumerate() {
            found.entry(was.place.0.as_path()).or_insert((at, was));
        }
        found
    }

    /// The files by path, each with its original's path, and permissions.
    pub(crate) fn files_by_path(&self) -> HashMap<&Path, (Option<&Path>, u32)> {
        let mut found = HashMap::new();
        for (path, below, mode) in &self.files {
            let version = (below.as_ref().map(|below| below.0.as_path()), *mode);
            found.entry(path.0.as_path()).or_insert(version);
        }
        found
    }
}

/// The journal of one overlay.
#[derive(Debug)]
pub(crate) struct ApplyJournal {
    dir: PathBuf,
}

/// One apply in the journal.
#[derive(Debug)]
pub(crate) struct ApplyEntry {
    dir: PathBuf,
    pub(crate) number: u64,
}

/// The directories of an entry's contents.
const CONTENTS: [&str; 5] = ["kept", "merged", "again", "bases", "dropped"];

const RECORD: &str = "record";
const LEVEL: &str = "level";
const DONE: &str = "done";
const SETTLED: &str = "settled";
const UNDOING: &str = "undoing";

/// The prefix of the directory of an apply that could not be undone completely: its contents stay for a
/// person.
const LEFT: &str = "left-";

impl ApplyJournal {
    /// Opens the journal in this directory, and makes the directory if missing.
    pub(crate) fn open(dir: &Path) -> Result<Self, ChangesError> {
        make_dir(dir).map_err(ChangesError::from_io("make", dir))?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// An existing journal; `None` = missing. Creates nothing.
    pub(crate) fn find_existing(dir: &Path) -> Option<Self> {
        dir.is_dir().then(|| Self { dir: dir.to_owned() })
    }

    /// Locks the journal, so that no other process applies or undoes meanwhile.
    pub(crate) fn lock_journal(&self) -> Result<File, ChangesError> {
        let path = self.dir.join("lock");
        let failed = ChangesError::from_io("lock", &path);
        let lock = || -> io::Result<File> {
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
            rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        lock().map_err(failed)
    }

    /// All applies, the oldest first.
    pub(crate) fn list_entries(&self) -> Result<Vec<ApplyEntry>, ChangesError> {
        let failed = |error| ChangesError::from_io("list", &self.dir)(error);
        let mut entries = Vec::new();
        for entry in self.dir.read_dir().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if let Some(number) = name.to_str().and_then(|name| name.parse().ok()) {
                entries.push(ApplyEntry { dir: entry.path(), number });
            }
        }
        entries.sort_by_key(|entry: &ApplyEntry| entry.number);
        Ok(entries)
    }

    /// The highest number ever used, also by an incomplete undo, because its temporary names may remain in
    /// the workspace.
    pub(crate) fn last_number(&self) -> Result<u64, ChangesError> {
        let failed = |error| ChangesError::from_io("list", &self.dir)(error);
        let mut last = 0;
        for entry in self.dir.read_dir().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_str().unwrap_or_default();
            let number = name.strip_prefix(LEFT).unwrap_or(name);
            let number = number.split(|it: char| !it.is_ascii_digit()).next().unwrap_or_default();
            last = last.max(number.parse().unwrap_or(0));
        }
        Ok(last)
    }

    /// Makes the directory of a new apply with this number.
    pub(crate) fn begin_apply(&self, number: u64) -> Result<ApplyEntry, ChangesError> {
        let dir = self.dir.join(number.to_string());
        let failed = |error: io::Error| ChangesError::from_io("make", &dir)(error);
        make_dir(&dir).map_err(failed)?;
        for name in CONTENTS {
            make_dir(&dir.join(name)).map_err(failed)?;
        }
        Ok(ApplyEntry { dir, number })
    }

    /// The size of the journal in bytes.
    pub(crate) fn total_bytes(&self) -> Result<u64, ChangesError> {
        self.list_entries()?.iter().try_fold(0, |sum, entry| Ok(sum + entry.total_bytes()?))
    }

    /// Removes the oldest applies beyond the limits.
    pub(crate) fn remove_oldest(&self) -> Result<(), ChangesError> {
        let mut entries = self.list_entries()?;
        let mut sizes = Vec::new();
        for entry in &entries {
            sizes.push(entry.total_bytes()?);
        }
        let mut bytes: u64 = sizes.iter().sum();
        let mut many = entries.len();
        for (entry, size) in entries.drain(..).zip(sizes) {
            if many <= 1 || (bytes <= MOST_BYTES && many <= MOST_KEPT) {
                break;
            }
            entry.remove_entry()?;
            bytes -= size;
            many -= 1;
        }
        Ok(())
    }
}

impl ApplyEntry {
    /// The path of the original content that step `at` replaces.
    pub(crate) fn kept_path(&self, at: usize) -> PathBuf {
        self.dir.join("kept").join(at.to_string())
    }

    /// The path of the merged content of step `at`.
    pub(crate) fn merged_path(&self, at: usize) -> PathBuf {
        self.dir.join("merged").join(at.to_string())
    }

    /// The path of the agent's content of step `at`, which an undo returns to the overlay.
    pub(crate) fn overlay_copy_path(&self, at: usize) -> PathBuf {
        self.dir.join("again").join(at.to_string())
    }

    /// The path of the content with which the agent began, by the index in `befores` of the record.
    pub(crate) fn base_path(&self, at: usize) -> PathBuf {
        self.dir.join("bases").join(at.to_string())
    }

    /// The path of the agent's version that the person dropped, by the index in `given_up` of the record.
    pub(crate) fn dropped_path(&self, at: usize) -> PathBuf {
        self.dir.join("dropped").join(at.to_string())
    }

    /// Writes the record before its steps are done.
    pub(crate) fn write_record(&self, record: &ApplyRecord) -> Result<(), ChangesError> {
        let path = self.dir.join(RECORD);
        let bytes =
            serde_json::to_vec(record).map_err(|error| self.damaged_record(&error.to_string()))?;
        let write = || -> io::Result<()> {
            // The contents are synced before the record that refers to them.
            crate::changes::disk::sync_disk(File::open(&self.dir)?)?;
            let beside = self.dir.join("record.new");
            let mut file = create_file(&beside)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            std::fs::rename(&beside, &path)?;
            File::open(&self.dir)?.sync_all()?;
            match self.dir.parent() {
                Some(above) => File::open(above)?.sync_all(),
                None => Ok(()),
            }
        };
        write().map_err(ChangesError::from_io("write", &path))
    }

    /// The record, if it was written.
    pub(crate) fn read_record(&self) -> Result<Option<ApplyRecord>, ChangesError> {
        let path = self.dir.join(RECORD);
        match std::fs::read(&path) {
            Ok(bytes) => {
                let record = serde_json::from_slice(&bytes);
                record.map(Some).map_err(|error| self.damaged_record(&error.to_string()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ChangesError::from_io("read", &path)(error)),
        }
    }

    fn damaged_record(&self, why: &str) -> ChangesError {
        ChangesError::Journal { path: self.dir.join(RECORD), why: why.to_owned() }
    }

    /// The level that was reached: see [`ApplyLevel`].
    pub(crate) fn read_level(&self) -> Result<ApplyLevel, ChangesError> {
        let path = self.dir.join(LEVEL);
        match std::fs::read_to_string(&path).as_deref() {
            Ok("coming") => Ok(ApplyLevel::Coming),
            Ok("placing") => Ok(ApplyLevel::Placing),
            Ok("going") => Ok(ApplyLevel::Going),
            Ok(_) => Err(ChangesError::Journal { path, why: "it names no level".to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ApplyLevel::Going),
            Err(_) => Err(ChangesError::Journal { path, why: "it cannot be read".to_owned() }),
        }
    }

    /// Stores that the steps of a level may have been done from now on.
    pub(crate) fn mark_level(&self, level: ApplyLevel) -> Result<(), ChangesError> {
        let name = match level {
            ApplyLevel::Going => "going",
            ApplyLevel::Coming => "coming",
            ApplyLevel::Placing => "placing",
        };
        self.write_mark(LEVEL, name)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.dir.join(DONE).exists()
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.dir.join(SETTLED).exists()
    }

    pub(crate) fn mark_done(&self) -> Result<(), ChangesError> {
        self.write_mark(DONE, "")
    }

    pub(crate) fn mark_settled(&self) -> Result<(), ChangesError> {
        self.write_mark(SETTLED, "")
    }

    /// Marks a started undo with this number.
    pub(crate) fn mark_undoing(&self, number: u64) -> Result<(), ChangesError> {
        self.write_mark(UNDOING, &number.to_string())
    }

    /// The number of the undo, if started.
    pub(crate) fn undo_number(&self) -> Result<Option<u64>, ChangesError> {
        let path = self.dir.join(UNDOING);
        match std::fs::read_to_string(&path) {
            Ok(text) => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(ChangesError::Journal { path, why: "it is no number".to_owned() }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ChangesError::from_io("read", &path)(error)),
        }
    }

    /// Writes a mark as a file, and waits until the mark is on disk.
    fn write_mark(&self, name: &str, content: &str) -> Result<(), ChangesError> {
        let path = self.dir.join(name);
        let write = || -> io::Result<()> {
            let beside = self.dir.join("mark.new");
            let mut file = create_file(&beside)?;
            file.write_all(content.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&beside, &path)?;
            File::open(&self.dir)?.sync_all()
        };
        write().map_err(ChangesError::from_io("write", &path))
    }

    /// Removes the entry.
    pub(crate) fn remove_entry(&self) -> Result<(), ChangesError> {
        // The file that makes the entry valid is removed first.
        let record = self.dir.join(RECORD);
        match std::fs::remove_file(&record) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ChangesError::from_io("remove", &record)(error));
            }
            Ok(()) | Err(_) => {}
        }
        std::fs::remove_dir_all(&self.dir).map_err(ChangesError::from_io("remove", &self.dir))
    }

    /// Removes the entry, or renames it for a person if some paths could not be undone.
    pub(crate) fn end_entry(&self, left: &[PathBuf]) -> Result<(), ChangesError> {
        if left.is_empty() { self.remove_entry() } else { self.keep_for_person() }
    }

    /// Keeps the entry of an undone apply for the person, instead of removing it.
    fn keep_for_person(&self) -> Result<(), ChangesError> {
        let mut to = self.dir.with_file_name(format!("{LEFT}{}", self.number));
        let mut again = 1;
        while to.exists() {
            to.set_file_name(format!("{LEFT}{}-{again}", self.number));
            again += 1;
        }
        std::fs::rename(&self.dir, &to).map_err(ChangesError::from_io("rename", &self.dir))
    }

    /// The bytes of all kept copies of the entry.
    fn total_bytes(&self) -> Result<u64, ChangesError> {
        let mut bytes = 0;
        for name in CONTENTS {
            let dir = self.dir.join(name);
            let size = || -> io::Result<u64> {
                let entries = match dir.read_dir() {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
                    entries => entries?,
                };
                let mut sum = 0;
                for entry in entries {
                    sum += entry?.metadata()?.len();
                }
                Ok(sum)
            };
            bytes += size().map_err(ChangesError::from_io("list", &dir))?;
        }
        Ok(bytes)
    }
}

/// Creates a file of the journal, or truncates an old one.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Makes a directory for the host alone, unless the directory exists.
fn make_dir(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_for_a_person_has_a_name_of_its_own_and_its_number_is_not_used_again() {
        let home = tempfile::tempdir().unwrap();
        let journal = ApplyJournal::open(&home.path().join("journal")).unwrap();
        for at in 0..4 {
            journal.begin_apply(7).unwrap().keep_for_person().unwrap();
            assert_eq!(journal.dir.read_dir().unwrap().count(), at + 1);
            assert!(journal.list_entries().unwrap().is_empty());
            assert_eq!(journal.last_number().unwrap(), 7);
        }
        std::fs::create_dir(journal.dir.join("left-9.again")).unwrap();
        assert_eq!(journal.last_number().unwrap(), 9);
    }
}
