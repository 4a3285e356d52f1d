//! Reads and writes below a directory that others fill, for example a workspace, which may be a stranger's
//! repository.
//!
//! INV-433: each name is opened from the handle of the directory above, and no link is followed. Otherwise a
//! repository with `.mcp.json -> ../home/.docker/config.json` would get a copy of a person's token, and
//! `.belljar -> /elsewhere` would make files there.
//!
//! In a person's own home, handwritten files may be links, because managers of dotfiles make such links: the
//! home itself, `belljar.toml`, which is written at its target ([`Below::own`]), and the folders `agents`,
//! `skills` and `teams`. The data root may be on another disk. INV-487: all other files in a home and in a
//! data root are belljar's own, and are reached through no link ([`in_home`]).

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::setup::home::create_private;
use crate::setup::move_new::move_new;

/// Names that are tried for a file beside another.
const MAX_TRIES: u32 = 100;

const STAY: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// An open directory, with its path.
pub(crate) struct Below {
    root: OwnedFd,
    path: PathBuf,
}

/// A file to make or read: its open directory, and the name.
struct Slot {
    directory: OwnedFd,
    name: std::ffi::OsString,
    /// For messages.
    path: PathBuf,
}

/// The permitted readers of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// Its owner alone.
    Owner,
    /// Whoever the umask lets.
    Everybody,
}

impl For {
    fn file(self) -> Mode {
        Mode::from_raw_mode(if self == Self::Owner { 0o600 } else { 0o666 })
    }

    fn directory(self) -> Mode {
        Mode::from_raw_mode(if self == Self::Owner { 0o700 } else { 0o777 })
    }
}

impl Below {
    /// A directory of others. A link to it is allowed, because the path is the person's.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { root, path: path.to_path_buf() })
    }

    /// The directory of a file in a person's own home, made if missing, and the file's name; for a link,
    /// those of the target.
    pub(crate) fn own(file: &Path) -> io::Result<(Self, PathBuf)> {
        let is_link = file.symlink_metadata().is_ok_and(|about| about.is_symlink());
        let file = if is_link { file.canonicalize()? } else { file.to_path_buf() };
        let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
        let (parent, name) = file.parent().zip(file.file_name()).ok_or_else(unnamed)?;
        create_private(parent)?;
        Ok((Self::open(parent)?, name.into()))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The whole file, if it has at most `limit` bytes; `None` = missing.
    ///
    /// # Errors
    ///
    /// When the file, or a directory on the way, is a link; when it is no regular file, or a hard link to
    /// another person's file.
    pub(crate) fn read(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let slot = match self.slot(path, None) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            slot => slot?,
        };
        let Some(file) = slot.open()? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            let why = format!("larger than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(Some(bytes))
    }

    /// Writes a new file with its directories; `false` = the name is taken, and nothing changed.
    pub(crate) fn create(&self, path: &Path, bytes: &[u8], whose: For) -> io::Result<bool> {
        let slot = self.slot(path, Some(whose))?;
        if slot.stat()?.is_some() {
            slot.open()?;
            return Ok(false);
        }
        let mut file = slot.make(&slot.name, whose)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        if written.is_err() {
            // Half a file would be kept by the next one.
            let _ = unlinkat(&slot.directory, &*slot.name, AtFlags::empty());
        }
        written.map(|()| true)
    }

    /// Replaces a file, or makes a new one: written beside first, so that no reader finds half of it. The
    /// mode of the old file is kept.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8], whose: For) -> io::Result<()> {
        let slot = self.slot(path, Some(whose))?;
        let mode = match slot.open()? {
            Some(old) => Some(old.metadata()?.permissions()),
            None => None,
        };
        let (mut file, beside) = slot.beside(whose)?;
        let put = || -> io::Result<()> {
            file.write_all(bytes)?;
            if let Some(mode) = mode {
                file.set_permissions(std::fs::Permissions::from_mode(mode.mode() & 0o777))?;
            }
            file.sync_all()?;
            Ok(renameat(&slot.directory, &*beside, &slot.directory, &*slot.name)?)
        };
        let put = put();
        if put.is_err() {
            let _ = unlinkat(&slot.directory, &*beside, AtFlags::empty());
        }
        put
    }

    /// Opens a file for a later overwrite, made if missing. The old content stays until then.
    pub(crate) fn open_to_write(&self, path: &Path) -> io::Result<File> {
        let slot = self.slot(path, None)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY | STAY;
        let opened = openat(&slot.directory, &*slot.name, flags, For::Everybody.file());
        let file = slot.regular(opened)?;
        // Written in place, so a second name of the file would be written too.
        if file.metadata()?.nlink() > 1 {
            return Err(unfit(&slot.path, "another name of a file that lies elsewhere"));
        }
        Ok(file)
    }

    /// Opens a directory below this one, made if missing.
    pub(crate) fn directory(&self, path: &Path, whose: For) -> io::Result<Self> {
        let root = self.walk(path, Some(whose))?;
        Ok(Self { root, path: self.path.join(path) })
    }

    /// Refuses a directory to which a link leads, or that is none; one that is not there is fit.
    pub(crate) fn reaches(&self, path: &Path) -> io::Result<()> {
        match self.walk(path, None) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            walked => walked.map(drop),
        }
    }

    /// Whether nothing has this name, in a directory that is there. What has it is a regular file.
    pub(crate) fn is_free(&self, path: &Path) -> io::Result<bool> {
        Ok(self.slot(path, None)?.open()?.is_none())
    }

    /// Makes a new directory; an error where something of that name is there.
    pub(crate) fn new_directory(&self, path: &Path, whose: For) -> io::Result<Self> {
        let slot = self.slot(path, None)?;
        mkdirat(&slot.directory, &*slot.name, whose.directory())
            .map_err(|error| told(error, &slot.path))?;
        self.directory(path, whose)
    }

    /// Moves a file or a folder to a name in another directory, where nothing is. All of it is moved, or
    /// nothing.
    pub(crate) fn move_new(&self, from: &Path, to: &Self, name: &Path) -> io::Result<()> {
        let (from, to) = (self.slot(from, None)?, to.slot(name, None)?);
        let about = from.stat()?.ok_or(io::ErrorKind::NotFound)?;
        let kind = FileType::from_raw_mode(about.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::Directory) {
            return Err(unfit(&from.path, self::kind(kind)));
        }
        move_new((&from.directory, &from.name), (&to.directory, &to.name))
    }

    fn slot(&self, path: &Path, make: Option<For>) -> io::Result<Slot> {
        let name = path.file_name().filter(|_| !path.ends_with(".."));
        let name = name.ok_or_else(|| self.leaves(path))?.to_owned();
        let parent = path.parent().unwrap_or(Path::new(""));
        let directory = self.walk(parent, make)?;
        Ok(Slot { directory, name, path: self.path.join(path) })
    }

    /// Opens a directory name by name.
    fn walk(&self, path: &Path, make: Option<For>) -> io::Result<OwnedFd> {
        let mut at = self.root.as_fd().try_clone_to_owned()?;
        let mut way = self.path.clone();
        for part in path.components() {
            let name = match part {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                Component::Prefix(_) | Component::RootDir | Component::ParentDir => {
                    return Err(self.leaves(path));
                }
            };
            way.push(name);
            if let Some(whose) = make {
                match mkdirat(&at, name, whose.directory()) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(told(error, &way)),
                }
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | STAY;
            let next = openat(&at, name, flags, Mode::empty());
            at = next.map_err(|error| why_no_directory(&at, name, error, &way))?;
        }
        Ok(at)
    }

    fn leaves(&self, path: &Path) -> io::Error {
        use belljar_policy::ShownPath as _;
        let (path, root) = (path.shown(), self.path.shown());
        let why = format!("`{path}` does not lie below `{root}`");
        io::Error::new(io::ErrorKind::InvalidInput, why)
    }
}

impl Slot {
    fn stat(&self) -> io::Result<Option<rustix::fs::Stat>> {
        match statat(&self.directory, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(told(error, &self.path)),
        }
    }

    /// The file that is there; `None` = none is.
    fn open(&self) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | STAY;
        match openat(&self.directory, &*self.name, flags, Mode::empty()) {
            Err(Errno::NOENT) => Ok(None),
            opened => self.regular(opened).map(Some),
        }
    }

    /// The opened file, if regular and not a hard link to another person's file.
    fn regular(&self, opened: rustix::io::Result<OwnedFd>) -> io::Result<File> {
        let file = match opened {
            Ok(file) => File::from(file),
            // A link; or a FIFO or a socket, opened to be written.
            Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR | Errno::OPNOTSUPP) => {
                return Err(unfit(&self.path, self.kind()));
            }
            Err(error) => return Err(told(error, &self.path)),
        };
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(unfit(&self.path, self.kind()));
        }
        let own = rustix::fs::fstat(&self.directory)?.st_uid;
        if about.nlink() > 1 && about.uid() != own {
            let why = "another name of a file that belongs to somebody else";
            return Err(unfit(&self.path, why));
        }
        Ok(file)
    }

    fn kind(&self) -> &'static str {
        let stat = self.stat().ok().flatten();
        stat.map_or("no regular file", |stat| kind(FileType::from_raw_mode(stat.st_mode)))
    }

    fn make(&self, name: &OsStr, whose: For) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | STAY;
        let made = openat(&self.directory, name, flags, whose.file());
        made.map(File::from).map_err(|error| told(error, &self.path))
    }

    fn beside(&self, whose: For) -> io::Result<(File, std::ffi::OsString)> {
        for number in 0..MAX_TRIES {
            let name = format!(".belljar-{}-{number}.new", std::process::id());
            let name = std::ffi::OsString::from(name);
            match self.make(&name, whose) {
                Ok(file) => return Ok((file, name)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

fn why_no_directory(at: &OwnedFd, name: &OsStr, error: Errno, way: &Path) -> io::Error {
    match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if matches!(error, Errno::LOOP | Errno::NOTDIR) => {
            unfit(way, kind(FileType::from_raw_mode(stat.st_mode)))
        }
        Ok(_) | Err(_) => told(error, way),
    }
}

fn kind(kind: FileType) -> &'static str {
    match kind {
        FileType::Symlink => "a link",
        FileType::Directory => "a directory",
        FileType::RegularFile => "a file",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => "a special file",
    }
}

/// The error about a file that is neither read nor written.
fn unfit(path: &Path, what: &str) -> io::Error {
    use belljar_policy::ShownPath as _;
    let why = format!(
        "`{}` is {what}: belljar follows no link here, and takes regular files alone",
        path.shown()
    );
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

fn told(error: Errno, path: &Path) -> io::Error {
    use belljar_policy::ShownPath as _;
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("`{}`: {error}", path.shown()))
}

/// The folders of a home that a person fills by hand, and may keep elsewhere.
const BY_HAND: [&str; 3] = ["agents", "skills", "teams"];

/// Opens a directory of a home, or of a data root, by its whole path; makes missing ones, for the owner
/// alone.
pub(crate) fn in_home(home: &Path, path: &Path) -> io::Result<Below> {
    create_private(home)?;
    let below = path.strip_prefix(home).unwrap_or(path);
    let mut parts = below.components();
    let first = parts.next().map(|part| home.join(part));
    let by_hand = first.filter(|first| BY_HAND.iter().any(|name| first.ends_with(name)));
    match by_hand.filter(|first| first.is_symlink()) {
        Some(first) => Below::open(&first)?.directory(parts.as_path(), For::Owner),
        None => Below::open(home)?.directory(below, For::Owner),
    }
}

/// Refuses a directory of a home, or of a data root, that is a link, or is reached through one below the root; a
/// missing directory is fit. Opens nothing, because the OS sandbox may let this process read only a part of the
/// root.
pub(crate) fn no_link(root: &Path, path: &Path) -> io::Result<()> {
    let mut way = root.to_path_buf();
    for part in path.strip_prefix(root).unwrap_or(path).components() {
        way.push(part);
        match way.symlink_metadata() {
            Ok(about) if about.is_dir() => {}
            Ok(about) if about.is_symlink() => return Err(unfit(&way, "a link")),
            Ok(_) => return Err(unfit(&way, "no directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A file that a person named for output, as a directory and the path below it. In the workspace, the
/// directory is the workspace, for what lies there may be somebody else's; elsewhere it is that of
/// the file, and the way to it is the person's.
pub(crate) fn output(path: &Path, workspace: &Path) -> io::Result<(Below, PathBuf)> {
    let absolute = plain(&std::path::absolute(path)?);
    if let Some((root, below)) = in_workspace(&absolute, workspace) {
        return Ok((Below::open(root)?, below));
    }
    let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
    let (parent, name) = absolute.parent().zip(absolute.file_name()).ok_or_else(unnamed)?;
    Ok((Below::open(parent)?, name.into()))
}

/// Like [`output`], for a directory, made if missing.
pub(crate) fn output_directory(path: &Path, workspace: &Path) -> io::Result<Below> {
    let absolute = plain(&std::path::absolute(path)?);
    if let Some((root, below)) = in_workspace(&absolute, workspace) {
        return Below::open(root)?.directory(&below, For::Everybody);
    }
    std::fs::create_dir_all(&absolute)?;
    Below::open(&absolute)
}

/// The part of a path that is the workspace, in any spelling, and the rest.
fn in_workspace<'a>(path: &'a Path, workspace: &Path) -> Option<(&'a Path, PathBuf)> {
    // The root of all is nobody's workspace in particular.
    workspace.parent()?;
    let is_it = |above: &&Path| above.canonicalize().is_ok_and(|found| found == workspace);
    let root = path.ancestors().filter(is_it).last()?;
    path.strip_prefix(root).ok().map(|below| (root, below.to_path_buf()))
}

/// The path without `..`, by names alone: as the person typed it, wherever links lead.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A workspace with a file of each kind beside a directory of a person's.
    fn world() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let [work, own] = ["work", "own"].map(|name| dir.path().join(name));
        fs::create_dir_all(work.join("folder")).unwrap();
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("token.json"), "{\"token\": 1}").unwrap();
        symlink(own.join("token.json"), work.join("link.json")).unwrap();
        symlink(own.join("new.json"), work.join("dangling.json")).unwrap();
        symlink(&own, work.join("way")).unwrap();
        let fifo = (FileType::Fifo, Mode::RUSR | Mode::WUSR);
        rustix::fs::mknodat(rustix::fs::CWD, work.join("fifo"), fifo.0, fifo.1, 0).unwrap();
        (dir, work, own)
    }

    #[test]
    fn nothing_is_read_or_written_through_a_link_and_its_neighbour_is() {
        let (_dir, work, own) = world();
        let below = Below::open(&work).unwrap();
        for path in ["link.json", "dangling.json", "way/token.json", "fifo", "folder", "../own/x"] {
            let path = Path::new(path);
            assert!(below.read(path, 100).is_err(), "{path:?}");
            assert!(below.replace(path, b"x", For::Everybody).is_err(), "{path:?}");
            assert!(below.create(path, b"x", For::Everybody).is_err(), "{path:?}");
            assert!(below.open_to_write(path).is_err(), "{path:?}");
        }
        assert!(below.directory(Path::new("way/new"), For::Owner).is_err());
        assert!(below.create(Path::new("way/deep/x"), b"x", For::Owner).is_err());
        let text = below.read(Path::new("link.json"), 100).unwrap_err().to_string();
        assert!(text.contains("link.json` is a link"), "{text}");
        let text = below.create(Path::new("way/x"), b"x", For::Owner).unwrap_err().to_string();
        assert!(text.contains("way` is a link"), "{text}");
        let names: Vec<_> = fs::read_dir(&own).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["token.json"], "nothing was made");
        assert_eq!(fs::read(own.join("token.json")).unwrap(), b"{\"token\": 1}");
        assert_eq!(fs::read_dir(&work).unwrap().count(), 5, "nothing is left beside");

        let path = Path::new("deep/down/own.json");
        assert_eq!(below.read(path, 100).unwrap(), None);
        assert!(below.create(path, b"one", For::Everybody).unwrap());
        assert!(!below.create(path, b"two", For::Everybody).unwrap());
        below.replace(path, b"three", For::Everybody).unwrap();
        assert_eq!(below.read(path, 100).unwrap().as_deref(), Some(&b"three"[..]));
        assert!(below.read(path, 4).is_err());
    }

    #[test]
    fn a_file_keeps_its_mode_and_what_is_made_for_its_owner_is_closed() {
        let (_dir, work, _) = world();
        let below = Below::open(&work).unwrap();
        let mode = |path: &str| fs::metadata(work.join(path)).unwrap().permissions().mode() & 0o777;
        below.create(Path::new("a/b"), b"x", For::Owner).unwrap();
        assert_eq!((mode("a"), mode("a/b")), (0o700, 0o600));
        fs::set_permissions(work.join("a/b"), fs::Permissions::from_mode(0o640)).unwrap();
        below.replace(Path::new("a/b"), b"y", For::Owner).unwrap();
        assert_eq!(mode("a/b"), 0o640);
    }

    #[test]
    fn a_linked_file_of_ones_own_home_is_written_where_it_lies() {
        let (_dir, work, own) = world();
        let (below, name) = Below::own(&work.join("link.json")).unwrap();
        below.replace(&name, b"new", For::Owner).unwrap();
        assert_eq!(fs::read(own.join("token.json")).unwrap(), b"new");
        assert!(fs::symlink_metadata(work.join("link.json")).unwrap().is_symlink());
        assert!(Below::own(&work.join("dangling.json")).is_err());
        let (below, name) = Below::own(&work.join("made/here.json")).unwrap();
        below.replace(&name, b"x", For::Owner).unwrap();
        assert_eq!(fs::read(work.join("made/here.json")).unwrap(), b"x");
    }

    #[test]
    fn output_in_a_workspace_goes_through_no_link_and_elsewhere_the_way_is_the_persons() {
        let (_dir, work, own) = world();
        let work = work.canonicalize().unwrap();
        let make = |path: &Path| -> io::Result<File> {
            let (below, path) = output(path, &work)?;
            below.open_to_write(&path)
        };
        for path in ["way/out.yaml", "link.json", "folder/../way/out.yaml"] {
            assert!(make(&work.join(path)).is_err(), "{path}");
        }
        assert!(!own.join("out.yaml").exists());
        fs::write(own.join("rc"), "mine").unwrap();
        fs::hard_link(own.join("rc"), work.join("second")).unwrap();
        assert!(make(&work.join("second")).is_err(), "written where it lies");
        assert!(output_directory(&work.join("way/new"), &work).is_err());
        symlink(&work, own.join("alias")).unwrap();
        assert!(make(&own.join("alias/way/out.yaml")).is_err(), "by another name");
        make(&own.join("alias/folder/out.yaml")).unwrap();
        output_directory(&own.join("made/deep"), &work).unwrap();
        make(&work.join("folder/out.yaml")).unwrap();
        make(&own.join("out.yaml")).unwrap();
    }
}
