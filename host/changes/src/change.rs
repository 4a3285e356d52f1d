//! One change, and a list of changes.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use belljar_policy::ShownPath as _;
use belljar_sandbox::{Original, Overlay};
use belljar_work::StopSignal;
use serde::{Serialize, Serializer};

use crate::diff::MAX_STEPS;
use crate::text::{self, Clash};
use crate::workspace::Workspace;
use crate::{ChangesError, Selection, content, later, patch, paths};

/// Something that an overlay changes: a file, a link, or a directory by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Where the agent sees it, relative to the workspace.
    #[serde(serialize_with = "paths::serialize")]
    pub path: PathBuf,
    /// The difference.
    #[serde(flatten)]
    pub kind: FileDifference,
    /// The kind of file: the present one, or the deleted one.
    pub node: Node,
    /// Not text, or larger than [`crate::MAX_TEXT`]: lines cannot be counted.
    pub binary: bool,
    /// Whether lines were counted, if any: see [`Changes::count`].
    pub counted: bool,
    /// All lines between the first and the last different one count as replaced, because a comparison would
    /// take too long.
    pub replaced: bool,
    /// Lines that are new.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
    /// Bytes before. `None` = missing before.
    pub size_before: Option<u64>,
    /// Bytes after. `None` = deleted.
    pub size_after: Option<u64>,
    /// Permissions before.
    pub mode_before: Option<u32>,
    /// Permissions after.
    pub mode_after: Option<u32>,
    /// Why other programs would run or read the file, for a person.
    pub runs_later: Option<&'static str>,
    /// Why it cannot be applied.
    pub conflict: Option<Conflict>,
    /// It changed in the workspace too, and both merge.
    pub merges: bool,
    /// The directory of the same rename or deletion; the two are applied together.
    #[serde(serialize_with = "paths::some")]
    pub part_of: Option<PathBuf>,
    /// The place in the workspace, for example `src/main.rs`. `None` = no place.
    #[serde(skip)]
    pub(crate) below: Option<PathBuf>,
    /// The present place of the path in the workspace.
    #[serde(skip)]
    pub(crate) place: PathBuf,
    #[serde(skip)]
    pub(crate) original: Option<Original>,
}

/// The difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "change")]
pub enum FileDifference {
    /// It is new.
    Added,
    /// Its content is another.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another place, and maybe another content.
    Renamed {
        /// Its place in the workspace.
        #[serde(serialize_with = "paths::serialize")]
        from: PathBuf,
        /// Whether its content is another too.
        modified: bool,
    },
    /// Its permissions alone are others.
    Mode,
}

/// The kind of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Node {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A socket, a device or the like, which is left alone.
    Special,
}

/// Why a change is left, and the workspace as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conflict {
    /// It changed in the workspace too, and both do not merge.
    Changed,
    /// It is gone from the workspace.
    Gone,
    /// Its directory is gone from the workspace, or is something else by now.
    NoDirectory,
    /// Another file is in the way, for example a new one of the person's.
    InTheWay,
    /// It is something else by now: a link, a directory, a file.
    OtherKind,
    /// The directory has this entry, which the agent has not seen.
    NewInside(PathBuf),
    /// The change cannot be applied without the one at this path.
    Needs(PathBuf),
    /// The name decides about rights: only a person writes such a file.
    Protected,
    /// A socket, a device or the like.
    Special,
    /// It lies on another file system.
    Elsewhere,
}

/// How much is changed. Displays as `3 files changed (+41 -7)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Stat {
    /// Files and links. Directories are not counted.
    pub files: usize,
    /// Lines that are new.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
    /// Changes that other programs would run or read, including directories: as many as listed
    /// ([`Changes::told`]).
    pub run_later: usize,
    /// Files of source text, which the next build or test run executes, under any name.
    pub code: usize,
    /// Changes that cannot be applied.
    pub conflicts: usize,
    /// Files whose lines were not counted.
    pub uncounted: usize,
}

impl FileChange {
    /// Whether the file is source text for a build or a test run, and remains. Files that run later by
    /// themselves are counted separately.
    pub fn is_code(&self) -> bool {
        let stays = self.kind != FileDifference::Deleted && self.node == Node::File;
        stays && self.runs_later.is_none() && later::is_code(&self.path)
    }
}

/// A text before and after; `None` = it is not there.
type Sides = (Option<String>, Option<String>);

/// The changes of an overlay, sorted by path; a directory comes before its content.
#[derive(Clone)]
pub struct Changes {
    pub(crate) files: Vec<FileChange>,
    pub(crate) overlay: Overlay,
    pub(crate) workspace: Workspace,
    pub(crate) stop: StopSignal,
}

/// How long the lines of one list are counted.
const COUNT_TIME: Duration = Duration::from_secs(10);

/// Steps of all comparisons for one list together: see `diff.rs`.
const COUNT_STEPS: u64 = 8 * MAX_STEPS;

impl Changes {
    /// Each of them.
    pub fn files(&self) -> &[FileChange] {
        &self.files
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The selected changes.
    #[must_use]
    pub fn only(&self, selection: &Selection) -> Self {
        let mut only = self.clone();
        only.files.retain(|file| selection.takes(&file.path));
        only
    }

    /// Counts the lines of all changes. As [`Self::count`].
    ///
    /// # Errors
    ///
    /// As those of [`Self::count`].
    pub fn counted(mut self) -> Result<Self, ChangesError> {
        self.count(|_| true)?;
        Ok(self)
    }

    /// Counts the lines of these changes, for 10 seconds; others, and those left then, are marked as not
    /// counted.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or the signal is raised.
    pub fn count(&mut self, of: impl Fn(&FileChange) -> bool) -> Result<(), ChangesError> {
        let part = self.stop.within(COUNT_TIME);
        let mut steps = COUNT_STEPS;
        for file in &mut self.files {
            if file.counted || !of(file) {
                continue;
            }
            if part.is_raised() {
                break;
            }
            match content::count(&self.overlay, &self.workspace, file, &mut steps, &part) {
                Err(ChangesError::Stopped(_)) => break,
                counted => counted?,
            }
        }
        Ok(self.stop.check()?)
    }

    /// How much is changed.
    pub fn stat(&self) -> Stat {
        let mut stat = Stat::default();
        for file in &self.files {
            let counts = file.node != Node::Directory;
            stat.files += usize::from(counts);
            stat.added += file.added;
            stat.removed += file.removed;
            stat.code += usize::from(file.is_code());
            stat.conflicts += usize::from(file.conflict.is_some());
            stat.uncounted += usize::from(counts && !file.counted);
        }
        stat.run_later = self.told().filter(|file| file.runs_later.is_some()).count();
        stat
    }

    /// The changes to list one by one: a new directory is listed by its content, if any.
    pub fn told(&self) -> impl Iterator<Item = &FileChange> {
        let next = self.files.iter().skip(1).map(Some).chain([None]);
        let told = |(file, next): &(&FileChange, Option<&FileChange>)| {
            let below = next.is_some_and(|next| next.path.starts_with(&file.path));
            !(below && file.node == Node::Directory && file.kind == FileDifference::Added)
        };
        self.files.iter().zip(next).filter(told).map(|(file, _)| file)
    }

    /// Writes a patch for `git apply`: from the present workspace to the agent's view; for a file that
    /// changed in the workspace too, from the agent's original, if known. Empty directories are left out,
    /// because git has none.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or `out` takes no more.
    pub fn patch(&self, out: &mut impl Write) -> Result<(), ChangesError> {
        self.patch_in(Path::new(""), out)
    }

    /// Like [`Self::patch`], with paths below `prefix`, this directory's place in its repository: git reads a
    /// patch from the top of the repository, wherever it is started.
    ///
    /// # Errors
    ///
    /// As of [`Self::patch`].
    pub fn patch_in(&self, prefix: &Path, out: &mut impl Write) -> Result<(), ChangesError> {
        for file in self.files.iter().filter(|file| !is_gits(&file.path)) {
            self.stop.check()?;
            patch::write(self, file, prefix, out)?;
        }
        Ok(())
    }

    /// The number of changes left out of a patch: those below `.git`, which `git apply` refuses.
    pub fn not_in_patch(&self) -> usize {
        self.files.iter().filter(|file| is_gits(&file.path)).count()
    }

    /// The same of those below `.git`, for a person to read.
    ///
    /// # Errors
    ///
    /// As [`Self::patch`].
    pub fn patch_of_git(&self, out: &mut impl Write) -> Result<(), ChangesError> {
        let files = self.files.iter().filter(|file| is_gits(&file.path));
        files.into_iter().try_for_each(|file| self.patch_of(file, out))
    }

    /// The text of a file before and after, if small enough to compare; `None` for a side without the file.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn texts_of(&self, file: &FileChange) -> Result<Option<Sides>, ChangesError> {
        if file.node != Node::File || file.binary {
            return Ok(None);
        }
        self.stop.check()?;
        let before = content::before(&self.overlay, &self.workspace, file)?.is_some();
        let after = content::after(&self.overlay, file)?.is_some();
        let texts = content::contents(&self.overlay, &self.workspace, file)?.texts;
        let text = |there: bool, bytes: Vec<u8>| match there {
            true => String::from_utf8(bytes).map(Some),
            false => Ok(None),
        };
        Ok(texts.and_then(|(old, new)| Some((text(before, old).ok()?, text(after, new).ok()?))))
    }

    /// The part of the patch about one file.
    ///
    /// # Errors
    ///
    /// As [`Self::patch`].
    pub fn patch_of(&self, file: &FileChange, out: &mut impl Write) -> Result<(), ChangesError> {
        self.stop.check()?;
        patch::write(self, file, Path::new(""), out)
    }
}

impl Changes {
    /// The lines that prevent a merge, if the workspace changed the file too; empty if the file is not text,
    /// or its original is unknown.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn clashes(&self, file: &FileChange) -> Result<Vec<Clash>, ChangesError> {
        if file.conflict != Some(Conflict::Changed) {
            return Ok(Vec::new());
        }
        let versions = content::versions(&self.overlay, &self.workspace, file)?;
        let Some([base, ours, theirs]) = versions else { return Ok(Vec::new()) };
        Ok(text::clashes(&base, &ours, &theirs, &self.stop)?)
    }
}

fn is_gits(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

impl Serialize for Changes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut all = to.serialize_struct("Changes", 2)?;
        all.serialize_field("stat", &self.stat())?;
        all.serialize_field("files", &self.files)?;
        all.end()
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.files).finish()
    }
}

impl fmt::Display for Stat {
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

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("it changed in the workspace too, and both do not merge"),
            Self::Gone => f.write_str("it is gone from the workspace"),
            Self::NoDirectory => f.write_str("its directory is gone from the workspace"),
            Self::InTheWay => f.write_str("something else has its place in the workspace"),
            Self::OtherKind => f.write_str("it is something else in the workspace by now"),
            Self::NewInside(path) => {
                write!(f, "the agent has not seen `{}` as it is in the workspace", path.shown())
            }
            Self::Needs(path) => {
                write!(f, "it needs the change of `{}`, which is left", path.shown())
            }
            Self::Protected => {
                f.write_str("its name decides about rights: only a person writes it")
            }
            Self::Special => f.write_str("it is no file, directory or link"),
            Self::Elsewhere => f.write_str("it lies on another file system"),
        }
    }
}

impl Serialize for Conflict {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
