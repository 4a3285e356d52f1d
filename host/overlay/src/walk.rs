//! Resolves the paths of guests, one name at a time.
//!
//! Each step opens one name in a directory that is open already, without following links. So no step can
//! leave the mount, whatever another process replaces meanwhile. Links are read and expanded here. The
//! result is an open parent directory and one last name, so the path changed is exactly the path checked for
//! protected names and access. Therefore neither the operating system nor wasmtime-wasi ever gets a whole
//! path. For example, `a/../../etc` fails at the second `..`.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

use belljar_policy::is_protected;
use belljar_policy::spelling::{parse_spelled, spell_name};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use rustix::io::Errno;

/// The longest path of a guest, in bytes: Linux's own `PATH_MAX`.
pub const MAX_PATH: usize = 4096;
/// The deepest directory below a descriptor. One file descriptor of the host is open per
/// level while a path is resolved.
pub const MAX_DEPTH: usize = 128;
/// The most links followed in one path, as on Linux.
const MAX_LINKS: u32 = 40;
/// The most names on one path, with the names in the targets of links. Bounded, because links to long paths
/// could multiply into long work.
const MAX_STEPS: u32 = 1024;

/// Whether the last name of a path is followed if it is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowMode {
    /// The path ends at the link's target.
    Yes,
    /// The path ends at the link.
    No,
}

/// Why a path cannot be resolved.
#[derive(Debug)]
pub enum WalkError {
    /// An error of the operating system.
    Errno(Errno),
    /// The path leads out of the directory where it starts, for this reason.
    Escape(&'static str),
}

impl From<Errno> for WalkError {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// The directory where a path starts.
#[derive(Debug, Clone)]
pub struct WalkStart {
    /// The open directory.
    pub dir: Arc<File>,
    /// The path below the mount, without links; empty for the mount itself.
    pub real: Arc<str>,
    /// Whether the directory has a protected name or is below one.
    pub protected: bool,
}

/// Opening of subdirectories and reading of links.
pub trait DirStepper {
    /// A directory that was opened.
    type Dir;

    /// Opens the subdirectory `name` of `top`, without following a link.
    fn enter_dir(&self, top: &Self::Dir, name: &OsStr) -> Result<Self::Dir, Errno>;

    /// The target of `name` in `top`; `None`: not a link.
    fn read_link(&self, top: &Self::Dir, name: &OsStr) -> Result<Option<OsString>, Errno>;
}

/// A directory that may exist on the host.
pub trait HostDir {
    /// The host's directory, if it exists.
    fn host_dir(&self) -> Option<BorrowedFd<'_>>;
}

/// Where a path ends: an open directory, and one name in it.
#[derive(Debug)]
pub struct PathEnd<D = DiskDir> {
    dir: D,
    /// The name in the directory; `None` = the directory itself.
    pub name: Option<OsString>,
    /// The path below the mount, without links, as guests see it.
    pub real: String,
    /// Whether the path contains a protected name.
    pub protected: bool,
    /// Whether the path ended in `/`, so that only a directory is valid.
    pub must_be_dir: bool,
}

/// An open directory of the host: the one in which the path started, or one below it.
#[derive(Debug)]
pub enum DiskDir {
    /// The directory at which the path starts.
    Start(Arc<File>),
    /// A directory that was opened on the way.
    Below(OwnedFd),
}

/// Steps in the host's own directories.
pub struct DiskTree;

impl DirStepper for DiskTree {
    type Dir = DiskDir;

    fn enter_dir(&self, top: &DiskDir, name: &OsStr) -> Result<DiskDir, Errno> {
        let flags = PASS | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(top.as_fd(), name, flags, Mode::empty()).map(DiskDir::Below)
    }

    fn read_link(&self, top: &DiskDir, name: &OsStr) -> Result<Option<OsString>, Errno> {
        match readlinkat(top.as_fd(), name, Vec::new()) {
            Ok(target) => Ok(Some(OsString::from_vec(target.into_bytes()))),
            Err(Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl AsFd for DiskDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Start(file) => file.as_fd(),
            Self::Below(fd) => fd.as_fd(),
        }
    }
}

impl HostDir for DiskDir {
    fn host_dir(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl PathEnd {
    /// The directory that contains the name.
    pub fn parent_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The status of the object at the path, without following a link.
    pub fn stat_entry(&self) -> Result<Stat, Errno> {
        let stat = statat(self.parent_fd(), self.name_arg(), AtFlags::SYMLINK_NOFOLLOW)?;
        if self.must_be_dir && file_type(&stat) != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        Ok(stat)
    }
}

impl<D> PathEnd<D> {
    /// A name in a directory, for the host itself, unchecked.
    pub fn from_name(dir: D, name: OsString) -> Self {
        let real = spell_name(&name).into_owned();
        Self { dir, name: Some(name), real, protected: false, must_be_dir: false }
    }

    /// The directory that contains the name.
    pub fn parent_dir(&self) -> &D {
        &self.dir
    }

    /// The name as an argument for the operating system; `.` for the directory itself.
    pub fn name_arg(&self) -> &OsStr {
        self.name.as_deref().unwrap_or(OsStr::new("."))
    }

    /// The parent's path below the mount, without links.
    pub fn parent_real(&self) -> &str {
        match (&self.name, self.real.rsplit_once('/')) {
            (None, _) => &self.real,
            (Some(_), Some((parent, _))) => parent,
            (Some(_), None) => "",
        }
    }
}

/// The type in a file's status.
pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Flags to pass through a directory, for which no right to list it is needed.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PASS: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PASS: OFlags = OFlags::RDONLY;

/// Resolves a path that starts at the directory `first` of `start`.
pub fn walk_by<S: DirStepper>(
    steps: &S,
    first: S::Dir,
    start: &WalkStart,
    path: &str,
    follow: FollowMode,
) -> Result<PathEnd<S::Dir>, WalkError> {
    if path.is_empty() {
        return Err(Errno::NOENT.into());
    }
    if path.len() > MAX_PATH {
        return Err(Errno::NAMETOOLONG.into());
    }
    if path.contains('\0') {
        return Err(Errno::INVAL.into());
    }
    if path.starts_with('/') {
        return Err(WalkError::Escape("the path is absolute"));
    }
    let mut walk = PathWalk {
        steps,
        first,
        start,
        stack: Vec::new(),
        queue: VecDeque::new(),
        links: 0,
        by_protected_link: false,
    };
    let must_be_dir = walk.enqueue_names(&meant_path(path));
    walk.walk_names(follow, must_be_dir)
}

/// The path with the escapes in its names decoded: `\xE9` stands for a byte that is not text.
fn meant_path(path: &str) -> Cow<'_, OsStr> {
    if !path.contains('\\') {
        return Cow::Borrowed(OsStr::new(path));
    }
    let names: Vec<Cow<'_, OsStr>> = path.split('/').map(parse_spelled).collect();
    Cow::Owned(names.join(OsStr::new("/")))
}

struct PathWalk<'a, S: DirStepper> {
    steps: &'a S,
    first: S::Dir,
    start: &'a WalkStart,
    /// The directories entered and not left again, each with its name.
    stack: Vec<(S::Dir, OsString)>,
    /// The names that are still to be followed.
    queue: VecDeque<OsString>,
    links: u32,
    /// Whether a link with a protected name was followed.
    by_protected_link: bool,
}

impl<S: DirStepper> PathWalk<'_, S> {
    /// Follows the queued names one after the other. A link puts the names of its target at the front of the
    /// queue. Returns the end of the path.
    fn walk_names(
        mut self,
        follow: FollowMode,
        mut must_be_dir: bool,
    ) -> Result<PathEnd<S::Dir>, WalkError> {
        let mut steps = 0;
        while let Some(name) = self.queue.pop_front() {
            steps += 1;
            if steps > MAX_STEPS {
                return Err(Errno::NAMETOOLONG.into());
            }
            if name == ".." {
                if self.stack.pop().is_none() {
                    return Err(WalkError::Escape("the path leads above its start"));
                }
                continue;
            }
            let last = self.queue.is_empty();
            if !last {
                self.enter_name(name)?;
                continue;
            }
            if follow == FollowMode::Yes
                && let Some(target) = self.link_at(&name)?
            {
                must_be_dir |= self.expand_link(&name, &target)?;
                continue;
            }
            return Ok(self.into_path_end(Some(name), must_be_dir));
        }
        Ok(self.into_path_end(None, must_be_dir))
    }

    /// Opens a subdirectory; if the name is a link, follows it instead.
    fn enter_name(&mut self, name: OsString) -> Result<(), WalkError> {
        match self.steps.enter_dir(self.current_dir(), &name) {
            Ok(dir) if self.stack.len() < MAX_DEPTH => {
                self.stack.push((dir, name));
                Ok(())
            }
            Ok(_) => Err(Errno::NAMETOOLONG.into()),
            Err(Errno::NOTDIR | Errno::LOOP) => match self.link_at(&name)? {
                Some(target) => self.expand_link(&name, &target).map(drop),
                None => Err(Errno::NOTDIR.into()),
            },
            Err(errno) => Err(errno.into()),
        }
    }

    /// The target of the name in the current directory; `None`: not a link.
    fn link_at(&self, name: &OsStr) -> Result<Option<OsString>, WalkError> {
        Ok(self.steps.read_link(self.current_dir(), name)?)
    }

    /// Puts the target of a link in front of the names to follow. Returns whether it must be a directory.
    fn expand_link(&mut self, name: &OsStr, target: &OsStr) -> Result<bool, WalkError> {
        self.links += 1;
        self.by_protected_link |= is_protected(&name.to_string_lossy());
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        if target.as_bytes().starts_with(b"/") {
            return Err(WalkError::Escape("a link on the path is absolute"));
        }
        Ok(self.enqueue_names(target))
    }

    /// Puts the names of a path in front of the names to follow. Returns whether the path must be a
    /// directory, because it ends in `/` or `.`.
    fn enqueue_names(&mut self, path: &OsStr) -> bool {
        let mut ends_as_dir = false;
        for name in path.as_bytes().split(|b| *b == b'/').rev() {
            match name {
                b"" | b"." => ends_as_dir |= self.queue.is_empty(),
                name => self.queue.push_front(OsStr::from_bytes(name).to_owned()),
            }
        }
        ends_as_dir
    }

    /// The path, relative to the mount, of a name in the current directory.
    fn real_path(&self, name: Option<&OsStr>) -> String {
        let mut real = self.start.real.to_string();
        for part in self.stack.iter().map(|(_, part)| &**part).chain(name) {
            if !real.is_empty() {
                real.push('/');
            }
            real.push_str(&spell_name(part));
        }
        real
    }

    fn current_dir(&self) -> &S::Dir {
        self.stack.last().map_or(&self.first, |(dir, _)| dir)
    }

    /// The end of the walk: the last directory, the last name if any, and whether the path is protected.
    fn into_path_end(mut self, name: Option<OsString>, must_be_dir: bool) -> PathEnd<S::Dir> {
        let real = self.real_path(name.as_deref());
        let mut parts = self.stack.iter().map(|(_, part)| part).chain(&name);
        let protected = self.start.protected
            || self.by_protected_link
            || parts.any(|part| is_protected(&part.to_string_lossy()));
        let dir = match self.stack.pop() {
            Some((dir, _)) => dir,
            None => self.first,
        };
        PathEnd { dir, name, real, protected, must_be_dir }
    }
}
