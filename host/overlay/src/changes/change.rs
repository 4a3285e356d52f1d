//! One change, and a list of changes.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{OriginalState, Overlay};
use belljar_policy::ShownPath as _;
use belljar_work::StopSignal;
use serde::{Serialize, Serializer};

use crate::changes::diff::MAX_STEPS;
use crate::changes::text::{self, MergeClash};
use crate::changes::workspace::Workspace;
use crate::changes::{ChangesError, PathSelection, content, later, patch, paths};

/// One change of an overlay: to a file, a link, or a directory without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// The path that the agent sees, relative to the workspace.
    #[serde(serialize_with = "paths::serialize")]
    pub path: PathBuf,
    /// The kind of difference.
    #[serde(flatten)]
    pub kind: FileDifference,
    /// The kind of the present file, or of the deleted one.
    pub node: NodeKind,
    /// Whether the file is not text or is larger than [`crate::changes::MAX_TEXT`], so that lines cannot be counted.
    pub binary: bool,
    /// Whether the lines were counted, if there are any: see [`Changes::count_lines`].
    pub counted: bool,
    /// Whether all lines between the first and the last difference count as replaced, because a comparison
    /// would take too long.
    pub replaced: bool,
    /// The count of new lines.
    pub added: u64,
    /// The count of removed lines.
    pub removed: u64,
    /// Size before, in bytes. `None` = the file did not exist.
    pub size_before: Option<u64>,
    /// Size after, in bytes. `None` = deleted.
    pub size_after: Option<u64>,
    /// Permissions before.
    pub mode_before: Option<u32>,
    /// Permissions after.
    pub mode_after: Option<u32>,
    /// Why other programs would run or read the file later, as a text for a person.
    pub runs_later: Option<&'static str>,
    /// Why the change cannot be applied.
    pub conflict: Option<ChangeConflict>,
    /// Whether the workspace's file changed too, and both changes merge.
    pub merges: bool,
    /// The path of the renamed or deleted directory that contains this file; both changes are applied
    /// together.
    #[serde(serialize_with = "paths::some")]
    pub part_of: Option<PathBuf>,
    /// The path in the workspace before the change, for example `src/main.rs`. `None` = no such path.
    #[serde(skip)]
    pub(crate) below: Option<PathBuf>,
    /// The path in the workspace at present.
    #[serde(skip)]
    pub(crate) place: PathBuf,
    #[serde(skip)]
    pub(crate) original: Option<OriginalState>,
}

/// The kind of difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "change")]
pub enum FileDifference {
    /// A new file.
    Added,
    /// The content differs.
    Modified,
    /// The file was deleted.
    Deleted,
    /// The path differs, and possibly the content.
    Renamed {
        /// The path in the workspace.
        #[serde(serialize_with = "paths::serialize")]
        from: PathBuf,
        /// Whether the content differs too.
        modified: bool,
    },
    /// Only the permissions differ.
    Mode,
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A socket, a device or the like, which is never changed.
    Special,
}

/// Why a change is not applied, so that the workspace stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeConflict {
    /// The workspace's file changed too, and the changes do not merge.
    Changed,
    /// The workspace's file was deleted.
    Gone,
    /// The parent directory was deleted from the workspace, or replaced by another kind of file.
    NoDirectory,
    /// Another file has the path, for example a new one of the person's.
    InTheWay,
    /// The workspace's file was replaced by another kind: a link, a directory, a file.
    OtherKind,
    /// The directory has this entry, which the agent has not seen and would delete.
    NewInside(PathBuf),
    /// The change at this path must be applied first.
    Needs(PathBuf),
    /// The name decides about rights: only a person writes such a file.
    Protected,
    /// A socket, a device or the like.
    Special,
    /// The path is on another file system.
    Elsewhere,
}

/// The size of a set of changes. Displays as `3 files changed (+41 -7)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ChangeStat {
    /// Files and links. Directories are not counted.
    pub files: usize,
    /// New lines.
    pub added: u64,
    /// Removed lines.
    pub removed: u64,
    /// Changes that other programs would run or read, directories included: as many as listed by
    /// [`Changes::listed_changes`].
    pub run_later: usize,
    /// Files of source code, which the next build or test run executes, whatever their names.
    pub code: usize,
    /// Changes that cannot be applied.
    pub conflicts: usize,
    /// Files whose lines were not counted.
    pub uncounted: usize,
}

impl FileChange {
    /// Whether the file is source code for a build or a test run, and is not deleted. Files that run later by
    /// themselves are counted separately.
    pub fn is_code(&self) -> bool {
        let stays = self.kind != FileDifference::Deleted && self.node == NodeKind::File;
        stays && self.runs_later.is_none() && later::is_code(&self.path)
    }
}

/// A text before and after; `None` = no file on that side.
type Sides = (Option<String>, Option<String>);

/// The changes of an overlay, sorted by path, with each directory before its content.
#[derive(Clone)]
pub struct Changes {
    pub(crate) files: Vec<FileChange>,
    pub(crate) overlay: Overlay,
    pub(crate) workspace: Workspace,
    pub(crate) stop: StopSignal,
}

/// The longest time for counting the lines of one list.
const COUNT_TIME: Duration = Duration::from_secs(10);

/// The most comparison steps for one list: see `diff.rs`.
const COUNT_STEPS: u64 = 8 * MAX_STEPS;

impl Changes {
    /// All changes.
    pub fn files(&self) -> &[FileChange] {
        &self.files
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The selected changes.
    #[must_use]
    pub fn select_changes(&self, selection: &PathSelection) -> Self {
        let mut only = self.clone();
        only.files.retain(|file| selection.includes_path(&file.path));
        only
    }

    /// Counts the lines of all changes like [`Self::count_lines`].
    ///
    /// # Errors
    ///
    /// Those of [`Self::count_lines`].
    pub fn with_line_counts(mut self) -> Result<Self, ChangesError> {
        self.count_lines(|_| true)?;
        Ok(self)
    }

    /// Counts the lines of the selected changes, for at most 10 seconds; other changes, and those that remain
    /// after this time, are marked as not counted.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the signal is raised.
    pub fn count_lines(&mut self, of: impl Fn(&FileChange) -> bool) -> Result<(), ChangesError> {
        let part = self.stop.with_part_timeout(COUNT_TIME);
        let mut steps = COUNT_STEPS;
        for file in &mut self.files {
            if file.counted || !of(file) {
                continue;
            }
            if part.is_raised() {
                break;
            }
            match content::count_lines(&self.overlay, &self.workspace, file, &mut steps, &part) {
                Err(ChangesError::Stopped(_)) => break,
                counted => counted?,
            }
        }
        Ok(self.stop.check_raised()?)
    }

    /// The size of all changes.
    pub fn change_stat(&self) -> ChangeStat {
        let mut stat = ChangeStat::default();
        for file in &self.files {
            let counts = file.node != NodeKind::Directory;
            stat.files += usize::from(counts);
            stat.added += file.added;
            stat.removed += file.removed;
            stat.code += usize::from(file.is_code());
            stat.conflicts += usize::from(file.conflict.is_some());
            stat.uncounted += usize::from(counts && !file.counted);
        }
        stat.run_later = self.listed_changes().filter(|file| file.runs_later.is_some()).count();
        stat
    }

    /// The changes to list one by one: a new directory with content is left out, because its content is
    /// listed.
    pub fn listed_changes(&self) -> impl Iterator<Item = &FileChange> {
        let next = self.files.iter().skip(1).map(Some).chain([None]);
        let told = |(file, next): &(&FileChange, Option<&FileChange>)| {
            let below = next.is_some_and(|next| next.path.starts_with(&file.path));
            !(below && file.node == NodeKind::Directory && file.kind == FileDifference::Added)
        };
        self.files.iter().zip(next).filter(told).map(|(file, _)| file)
    }

    /// Writes a patch for `git apply`: from the present workspace to the agent's view, or, for a file that
    /// changed in the workspace too, from the original version, if known. Empty directories are left out,
    /// because git cannot store them.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or `out` cannot be written.
    pub fn write_patch(&self, out: &mut impl Write) -> Result<(), ChangesError> {
        self.patch_in(Path::new(""), out)
    }

    /// Writes a patch like [`Self::write_patch`], with paths below `prefix`, the workspace's path in its
    /// repository: git resolves a patch from the top of the repository, wherever it is started.
    ///
    /// # Errors
    ///
    /// Those of [`Self::write_patch`].
    pub fn patch_in(&self, prefix: &Path, out: &mut impl Write) -> Result<(), ChangesError> {
        for file in self.files.iter().filter(|file| !is_gits(&file.path)) {
            self.stop.check_raised()?;
            patch::write_change(self, file, prefix, out)?;
        }
        Ok(())
    }

    /// The number of changes that a patch leaves out: those below `.git`, which `git apply` refuses.
    pub fn not_in_patch(&self) -> usize {
        self.files.iter().filter(|file| is_gits(&file.path)).count()
    }

    /// Writes the patch of the changes below `.git`, for a person to read.
    ///
    /// # Errors
    ///
    /// Those of [`Self::write_patch`].
    pub fn patch_of_git(&self, out: &mut impl Write) -> Result<(), ChangesError> {
        let files = self.files.iter().filter(|file| is_gits(&file.path));
        files.into_iter().try_for_each(|file| self.patch_of(file, out))
    }

    /// The text of a file before and after, `None` for a side without the file. Returns `None` altogether if
    /// the file is not text or is too large to compare.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn texts_of(&self, file: &FileChange) -> Result<Option<Sides>, ChangesError> {
        if file.node != NodeKind::File || file.binary {
            return Ok(None);
        }
        self.stop.check_raised()?;
        let before = content::open_original(&self.overlay, &self.workspace, file)?.is_some();
        let after = content::open_result(&self.overlay, file)?.is_some();
        let texts = content::read_contents(&self.overlay, &self.workspace, file)?.texts;
        let text = |there: bool, bytes: Vec<u8>| match there {
            true => String::from_utf8(bytes).map(Some),
            false => Ok(None),
        };
        Ok(texts.and_then(|(old, new)| Some((text(before, old).ok()?, text(after, new).ok()?))))
    }

    /// Writes the part of the patch about one file.
    ///
    /// # Errors
    ///
    /// Those of [`Self::write_patch`].
    pub fn patch_of(&self, file: &FileChange, out: &mut impl Write) -> Result<(), ChangesError> {
        self.stop.check_raised()?;
        patch::write_change(self, file, Path::new(""), out)
    }
}

impl Changes {
    /// The lines that prevent a merge with the workspace's changes; empty if the file is not text, or its
    /// original is unknown.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn find_clashes(&self, file: &FileChange) -> Result<Vec<MergeClash>, ChangesError> {
        if file.conflict != Some(ChangeConflict::Changed) {
            return Ok(Vec::new());
        }
        let versions = content::read_versions(&self.overlay, &self.workspace, file)?;
        let Some([base, ours, theirs]) = versions else { return Ok(Vec::new()) };
        Ok(text::find_clashes(&base, &ours, &theirs, &self.stop)?)
    }
}

fn is_gits(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

impl Serialize for Changes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut all = to.serialize_struct("Changes", 2)?;
        all.serialize_field("stat", &self.change_stat())?;
        all.serialize_field("files", &self.files)?;
        all.end()
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.files).finish()
    }
}

impl fmt::Display for ChangeStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = if self.files == 1 { "file" } else { "files" };
        write!(f, "{} {files} changed", self.files)?;
        match self.uncounted {
            0 => write!(f, " (+{} -{})", self.added, self.removed),
            all if all == self.files => Ok(()),
            left => write!(f, " (+{} -{}, without {left})", self.added, self.removed),
        }
    }
}

impl fmt::Display for ChangeConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("it changed in the workspace too, and both do not merge"),
            Self::Gone => f.write_str("it is gone from the workspace"),
            Self::NoDirectory => f.write_str("its directory is gone from the workspace"),
            Self::InTheWay => f.write_str("something else has its place in the workspace"),
            Self::OtherKind => f.write_str("it is something else in the workspace by now"),
            Self::NewInside(path) => {
                write!(f, "the agent has not seen `{}` as it is in the workspace", path.to_shown())
            }
            Self::Needs(path) => {
                write!(f, "it needs the change of `{}`, which is left", path.to_shown())
            }
            Self::Protected => {
                f.write_str("its name decides about rights: only a person writes it")
            }
            Self::Special => f.write_str("it is no file, directory or link"),
            Self::Elsewhere => f.write_str("it lies on another file system"),
        }
    }
}

impl Serialize for ChangeConflict {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
