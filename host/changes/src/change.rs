//! One change, and all of them.

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
    /// The thing as it is; of what was deleted: as it was.
    pub node: Node,
    /// It is no text, or larger than [`crate::MAX_TEXT`]: its lines cannot be counted.
    pub binary: bool,
    /// Its lines were counted, as far as it has any: see [`Changes::count`].
    pub counted: bool,
    /// All lines between the first and the last one that differ are counted as replaced: comparing them
    /// would take too long.
    pub replaced: bool,
    /// Lines that are new.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
    /// Bytes that it had. `None` = it was not there.
    pub size_before: Option<u64>,
    /// Bytes that it has. `None` = it is gone.
    pub size_after: Option<u64>,
    /// Permissions that it had.
    pub mode_before: Option<u32>,
    /// Permissions that it has.
    pub mode_after: Option<u32>,
    /// Why other programs would run it or act on it, in words for a person.
    pub runs_later: Option<&'static str>,
    /// Why it cannot be applied.
    pub conflict: Option<Conflict>,
    /// It changed in the workspace too, and both merge.
    pub merges: bool,
    /// The directory with which it is renamed or deleted, and without which it is not applied.
    #[serde(serialize_with = "paths::some")]
    pub part_of: Option<PathBuf>,
    /// Its place in the workspace. `None` = it has none there.
    #[serde(skip)]
    pub(crate) below: Option<PathBuf>,
    /// The place in the workspace as it is now of its path.
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
    /// Something else has its place in the workspace.
    InTheWay,
    /// It is something else by now: a link, a directory, a file.
    OtherKind,
    /// The directory has this in it, which the agent has not seen.
    NewInside(PathBuf),
    /// This change cannot be applied, and it needs that.
    Needs(PathBuf),
    /// Its name decides about rights: it is written by nobody but a person.
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
    /// Changes that other programs would run or act on, directories among them: as many as a list
    /// names ([`Changes::told`]).
    pub run_later: usize,
    /// Files of source text, which the next build or run of tests executes, whatever their names are.
    pub code: usize,
    /// Changes that cannot be applied.
    pub conflicts: usize,
    /// Files whose lines were not counted.
    pub uncounted: usize,
}

impl FileChange {
    /// Whether it is source text that a build or a run of tests executes, and stays. What would run
    /// later by itself is told apart.
    pub fn is_code(&self) -> bool {
        let stays = self.kind != FileDifference::Deleted && self.node == Node::File;
        stays && self.runs_later.is_none() && later::is_code(&self.path)
    }
}

/// A text before and after; `None` = it is not there.
type Sides = (Option<String>, Option<String>);

/// The changes of an overlay, sorted by path; a directory stands before what it holds.
#[derive(Clone)]
pub struct Changes {
    pub(crate) files: Vec<FileChange>,
    pub(crate) overlay: Overlay,
    pub(crate) workspace: Workspace,
    pub(crate) stop: StopSignal,
}

/// How long the lines of one list are counted.
const COUNT_TIME: Duration = Duration::from_secs(10);

/// Steps that all comparisons for one list take together: see `diff.rs`.
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

    /// Those that are selected.
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

    /// Counts the lines of these changes, for 10 seconds; the others, and those that are left then, are
    /// told as not counted.
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

    /// The changes that a person is told one by one: a new directory is told by its content, where it
    /// has some.
    pub fn told(&self) -> impl Iterator<Item = &FileChange> {
        let next = self.files.iter().skip(1).map(Some).chain([None]);
        let told = |(file, next): &(&FileChange, Option<&FileChange>)| {
            let below = next.is_some_and(|next| next.path.starts_with(&file.path));
            !(below && file.node == Node::Directory && file.kind == FileDifference::Added)
        };
        self.files.iter().zip(next).filter(told).map(|(file, _)| file)
    }

    /// Writes a patch that `git apply` takes: from the workspace as it is to what the agent sees;
    /// of a file that changed in the workspace too, from what the agent began with, where that is
    /// known. Directories without files are not in it: git has none.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or `out` takes no more.
    pub fn patch(&self, out: &mut impl Write) -> Result<(), ChangesError> {
        self.patch_in(Path::new(""), out)
    }

    /// As [`Self::patch`], with paths as they are seen from the directory in which this one lies at
    /// `prefix`: git reads a patch so, from the top of its repository, wherever it is started.
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

    /// How many changes a patch leaves out: those below `.git`, which `git apply` refuses.
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

    /// The text of a file before and after, where it is one that is small enough to be compared; a
    /// side where it is not there is `None`.
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

    /// The part of the patch that is about one file.
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
    /// The lines by which a text cannot be merged, where the workspace changed it too; none where it
    /// is no text, or nobody knows any more what it began as.
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
