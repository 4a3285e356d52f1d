//! Reads and writes below a directory whose files may be a stranger's, for example a workspace.
//!
//! INV-433: each name is opened from the handle of the directory above, and no link is followed. Otherwise a
//! repository with `.mcp.json -> ../home/.docker/config.json` would get a copy of a person's token, and
//! `.belljar -> /elsewhere` would make files there.
//!
//! In a person's own home, handwritten files may be links, because managers of dotfiles make such links: the
//! home itself, `belljar.toml`, which is written at its target ([`DirectoryHandle::parent_in_home`]), and the folders `agents`,
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

/// The most names that are tried for a new file beside another.
const MAX_TRIES: u32 = 100;

/// Flags of `openat` with which a link is refused.
const STAY: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// An open directory, with the path by which it was opened.
pub(crate) struct DirectoryHandle {
    root: OwnedFd,
    path: PathBuf,
}

/// A file to make or read, as the open directory around it and its name.
struct FileSlot {
    directory: OwnedFd,
    name: std::ffi::OsString,
    /// The path, for error messages.
    path: PathBuf,
}

/// The permitted readers of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAudience {
    /// Its owner alone.
    Owner,
    /// All users that the umask permits.
    Everybody,
}

impl FileAudience {
    fn file_mode(self) -> Mode {
        Mode::from_raw_mode(if self == Self::Owner { 0o600 } else { 0o666 })
    }

    fn directory_mode(self) -> Mode {
        Mode::from_raw_mode(if self == Self::Owner { 0o700 } else { 0o777 })
    }
}

impl DirectoryHandle {
    /// Opens a directory whose files may be a stranger's. The directory itself may be a link, because a
    /// person chose the path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { root, path: path.to_path_buf() })
    }

    /// Opens the directory of a file in a person's own home, made if missing, and returns it with the file's
    /// name. If the file is a link, these are the directory and name of the link's target.
    pub(crate) fn parent_in_home(file: &Path) -> io::Result<(Self, PathBuf)> {
        let is_link = file.symlink_metadata().is_ok_and(|about| about.is_symlink());
        let file = if is_link { file.canonicalize()? } else { file.to_path_buf() };
        let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
        let (parent, name) = file.parent().zip(file.file_name()).ok_or_else(unnamed)?;
        create_private(parent)?;
        Ok((Self::open(parent)?, name.into()))
    }

    /// The path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a whole file; an error if it has more than `limit` bytes; `None` = missing.
    ///
    /// # Errors
    ///
    /// When the file, or a directory on the way, is a link; when it is no regular file, or a hard link to
    /// another person's file.
    pub(crate) fn read_file(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let slot = match self.find_slot(path, None) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            slot => slot?,
        };
        let Some(file) = slot.open_file()? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            let why = format!("larger than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(Some(bytes))
    }

    /// Writes a new file and its missing directories. Returns false if the name is taken, and changes nothing
    /// then.
    pub(crate) fn create_file(
        &self,
        path: &Path,
        bytes: &[u8],
        whose: FileAudience,
    ) -> io::Result<bool> {
        let slot = self.find_slot(path, Some(whose))?;
        if slot.stat()?.is_some() {
            slot.open_file()?;
            return Ok(false);
        }
        let mut file = slot.make_file(&slot.name, whose)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        if written.is_err() {
            // An incomplete file would take the name, and the next attempt would keep it.
            let _ = unlinkat(&slot.directory, &*slot.name, AtFlags::empty());
        }
        written.map(|()| true)
    }

    /// Replaces a file, or makes a new one. The content is written to a temporary file first, so that no
    /// reader finds half of it. The mode of the old file is kept.
    pub(crate) fn replace_file(
        &self,
        path: &Path,
        bytes: &[u8],
        whose: FileAudience,
    ) -> io::Result<()> {
        let slot = self.find_slot(path, Some(whose))?;
        let mode = match slot.open_file()? {
            Some(old) => Some(old.metadata()?.permissions()),
            None => None,
        };
        let (mut file, beside) = slot.make_beside(whose)?;
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

    /// Opens a file for a later overwrite, made if missing. The old content stays until the caller writes.
    pub(crate) fn open_to_write(&self, path: &Path) -> io::Result<File> {
        let slot = self.find_slot(path, None)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY | STAY;
        let opened =
            openat(&slot.directory, &*slot.name, flags, FileAudience::Everybody.file_mode());
        let file = slot.check_regular(opened)?;
        // The file is overwritten in place, so another hard link to it would change too.
        if file.metadata()?.nlink() > 1 {
            return Err(unfit_error(&slot.path, "another name of a file that lies elsewhere"));
        }
        Ok(file)
    }

    /// Opens a directory below this one, made if missing.
    pub(crate) fn open_or_make(&self, path: &Path, whose: FileAudience) -> io::Result<Self> {
        let root = self.walk_to(path, Some(whose))?;
        Ok(Self { root, path: self.path.join(path) })
    }

    /// Refuses a path that leads through a link, or to something that is no directory. A missing directory is
    /// accepted.
    pub(crate) fn check_reachable(&self, path: &Path) -> io::Result<()> {
        match self.walk_to(path, None) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            walked => walked.map(drop),
        }
    }

    /// Returns true if there is no file of this name. An error if the name belongs to something other than a
    /// regular file.
    pub(crate) fn is_free(&self, path: &Path) -> io::Result<bool> {
        Ok(self.find_slot(path, None)?.open_file()?.is_none())
    }

    /// Makes a new directory; an error if the name is taken.
    pub(crate) fn new_directory(&self, path: &Path, whose: FileAudience) -> io::Result<Self> {
        let slot = self.find_slot(path, None)?;
        mkdirat(&slot.directory, &*slot.name, whose.directory_mode())
            .map_err(|error| to_io_error(error, &slot.path))?;
        self.open_or_make(path, whose)
    }

    /// Moves a file or a folder to a free name in another directory. All of it is moved, or nothing.
    pub(crate) fn move_new(&self, from: &Path, to: &Self, name: &Path) -> io::Result<()> {
        let (from, to) = (self.find_slot(from, None)?, to.find_slot(name, None)?);
        let about = from.stat()?.ok_or(io::ErrorKind::NotFound)?;
        let kind = FileType::from_raw_mode(about.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::Directory) {
            return Err(unfit_error(&from.path, self::format_kind(kind)));
        }
        move_new((&from.directory, &from.name), (&to.directory, &to.name))
    }

    /// Opens the directory around `path`, and returns it with the file's name. With `make`, missing
    /// directories are made.
    fn find_slot(&self, path: &Path, make: Option<FileAudience>) -> io::Result<FileSlot> {
        let name = path.file_name().filter(|_| !path.ends_with(".."));
        let name = name.ok_or_else(|| self.outside_error(path))?.to_owned();
        let parent = path.parent().unwrap_or(Path::new(""));
        let directory = self.walk_to(parent, make)?;
        Ok(FileSlot { directory, name, path: self.path.join(path) })
    }

    /// Opens a directory below this one, name by name, without following links.
    fn walk_to(&self, path: &Path, make: Option<FileAudience>) -> io::Result<OwnedFd> {
        let mut at = self.root.as_fd().try_clone_to_owned()?;
        let mut way = self.path.clone();
        for part in path.components() {
            let name = match part {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                Component::Prefix(_) | Component::RootDir | Component::ParentDir => {
                    return Err(self.outside_error(path));
                }
            };
            way.push(name);
            if let Some(whose) = make {
                match mkdirat(&at, name, whose.directory_mode()) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(to_io_error(error, &way)),
                }
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | STAY;
            let next = openat(&at, name, flags, Mode::empty());
            at = next.map_err(|error| why_no_directory(&at, name, error, &way))?;
        }
        Ok(at)
    }

    /// The error for a path that leads out of this directory.
    fn outside_error(&self, path: &Path) -> io::Error {
        use belljar_policy::ShownPath as _;
        let (path, root) = (path.to_shown(), self.path.to_shown());
        let why = format!("`{path}` does not lie below `{root}`");
        io::Error::new(io::ErrorKind::InvalidInput, why)
    }
}

impl FileSlot {
    /// The metadata of the name, without following a link; `None` = missing.
    fn stat(&self) -> io::Result<Option<rustix::fs::Stat>> {
        match statat(&self.directory, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(to_io_error(error, &self.path)),
        }
    }

    /// Opens the existing file for reading; `None` = missing.
    fn open_file(&self) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | STAY;
        match openat(&self.directory, &*self.name, flags, Mode::empty()) {
            Err(Errno::NOENT) => Ok(None),
            opened => self.check_regular(opened).map(Some),
        }
    }

    /// Checks an opened file: it must be regular, and no hard link to another person's file.
    fn check_regular(&self, opened: rustix::io::Result<OwnedFd>) -> io::Result<File> {
        let file = match opened {
            Ok(file) => File::from(file),
            // The name is a link, or a FIFO or socket that was opened for writing.
            Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR | Errno::OPNOTSUPP) => {
                return Err(unfit_error(&self.path, self.kind_word()));
            }
            Err(error) => return Err(to_io_error(error, &self.path)),
        };
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(unfit_error(&self.path, self.kind_word()));
        }
        let own = rustix::fs::fstat(&self.directory)?.st_uid;
        if about.nlink() > 1 && about.uid() != own {
            let why = "another name of a file that belongs to somebody else";
            return Err(unfit_error(&self.path, why));
        }
        Ok(file)
    }

    fn kind_word(&self) -> &'static str {
        let stat = self.stat().ok().flatten();
        stat.map_or("no regular file", |stat| format_kind(FileType::from_raw_mode(stat.st_mode)))
    }

    fn make_file(&self, name: &OsStr, whose: FileAudience) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | STAY;
        let made = openat(&self.directory, name, flags, whose.file_mode());
        made.map(File::from).map_err(|error| to_io_error(error, &self.path))
    }

    /// Makes a temporary file in the same directory; returns it with its name.
    fn make_beside(&self, whose: FileAudience) -> io::Result<(File, std::ffi::OsString)> {
        for number in 0..MAX_TRIES {
            let name = format!(".belljar-{}-{number}.new", std::process::id());
            let name = std::ffi::OsString::from(name);
            match self.make_file(&name, whose) {
                Ok(file) => return Ok((file, name)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// The error for a path that is no directory, naming what it is instead, for example a link.
fn why_no_directory(at: &OwnedFd, name: &OsStr, error: Errno, way: &Path) -> io::Error {
    match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if matches!(error, Errno::LOOP | Errno::NOTDIR) => {
            unfit_error(way, format_kind(FileType::from_raw_mode(stat.st_mode)))
        }
        Ok(_) | Err(_) => to_io_error(error, way),
    }
}

/// The name of a file type in an error.
fn format_kind(kind: FileType) -> &'static str {
    match kind {
        FileType::Symlink => "a link",
        FileType::Directory => "a directory",
        FileType::RegularFile => "a file",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => "a special file",
    }
}

/// The error for a file that is neither read nor written because of its type `what`.
fn unfit_error(path: &Path, what: &str) -> io::Error {
    use belljar_policy::ShownPath as _;
    let why = format!(
        "`{}` is {what}: belljar follows no link here, and takes regular files alone",
        path.to_shown()
    );
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

fn to_io_error(error: Errno, path: &Path) -> io::Error {
    use belljar_policy::ShownPath as _;
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("`{}`: {error}", path.to_shown()))
}

/// The folders of a home that a person fills by hand, and may keep elsewhere.
const BY_HAND: [&str; 4] = ["agents", "commands", "skills", "teams"];

/// Opens a directory of a home, or of a data root, by its whole path. Missing directories are made, readable
/// by their owner alone.
pub(crate) fn in_home(home: &Path, path: &Path) -> io::Result<DirectoryHandle> {
    create_private(home)?;
    let below = path.strip_prefix(home).unwrap_or(path);
    let mut parts = below.components();
    let first = parts.next().map(|part| home.join(part));
    let by_hand = first.filter(|first| BY_HAND.iter().any(|name| first.ends_with(name)));
    match by_hand.filter(|first| first.is_symlink()) {
        Some(first) => {
            DirectoryHandle::open(&first)?.open_or_make(parts.as_path(), FileAudience::Owner)
        }
        None => DirectoryHandle::open(home)?.open_or_make(below, FileAudience::Owner),
    }
}

/// Refuses a directory of a home, or of a data root, that is a link or is below one. A missing directory is
/// accepted. Opens nothing, because the OS sandbox may let this process read only a part of the root.
pub(crate) fn no_link(root: &Path, path: &Path) -> io::Result<()> {
    let mut way = root.to_path_buf();
    for part in path.strip_prefix(root).unwrap_or(path).components() {
        way.push(part);
        match way.symlink_metadata() {
            Ok(about) if about.is_dir() => {}
            Ok(about) if about.is_symlink() => return Err(unfit_error(&way, "a link")),
            Ok(_) => return Err(unfit_error(&way, "no directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens the directory for a file that a person named for output, and returns it with the file's path below
/// it. A file in the workspace is written below the workspace's own handle, because files there may be a
/// stranger's. Elsewhere the person's path is followed.
pub(crate) fn output_place(
    path: &Path,
    workspace: &Path,
) -> io::Result<(DirectoryHandle, PathBuf)> {
    let absolute = normalize_path(&std::path::absolute(path)?);
    if let Some((root, below)) = in_workspace(&absolute, workspace) {
        return Ok((DirectoryHandle::open(root)?, below));
    }
    let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
    let (parent, name) = absolute.parent().zip(absolute.file_name()).ok_or_else(unnamed)?;
    Ok((DirectoryHandle::open(parent)?, name.into()))
}

/// Like [`output_place`], for a directory, which is made if missing.
pub(crate) fn output_directory(path: &Path, workspace: &Path) -> io::Result<DirectoryHandle> {
    let absolute = normalize_path(&std::path::absolute(path)?);
    if let Some((root, below)) = in_workspace(&absolute, workspace) {
        return DirectoryHandle::open(root)?.open_or_make(&below, FileAudience::Everybody);
    }
    std::fs::create_dir_all(&absolute)?;
    DirectoryHandle::open(&absolute)
}

/// Splits a path in the workspace, in any spelling, into the workspace and the rest; `None` = not in the
/// workspace.
fn in_workspace<'a>(path: &'a Path, workspace: &Path) -> Option<(&'a Path, PathBuf)> {
    // The root directory as a workspace contains everything, so it does not count.
    workspace.parent()?;
    let is_it = |above: &&Path| above.canonicalize().is_ok_and(|found| found == workspace);
    let root = path.ancestors().filter(is_it).last()?;
    path.strip_prefix(root).ok().map(|below| (root, below.to_path_buf()))
}

/// Removes `..` from a path by its names alone, wherever links lead.
fn normalize_path(path: &Path) -> PathBuf {
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

    /// A workspace with one file of each type, beside a directory of the person's.
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
        let below = DirectoryHandle::open(&work).unwrap();
        for path in ["link.json", "dangling.json", "way/token.json", "fifo", "folder", "../own/x"] {
            let path = Path::new(path);
            assert!(below.read_file(path, 100).is_err(), "{path:?}");
            assert!(below.replace_file(path, b"x", FileAudience::Everybody).is_err(), "{path:?}");
            assert!(below.create_file(path, b"x", FileAudience::Everybody).is_err(), "{path:?}");
            assert!(below.open_to_write(path).is_err(), "{path:?}");
        }
        assert!(below.open_or_make(Path::new("way/new"), FileAudience::Owner).is_err());
        assert!(below.create_file(Path::new("way/deep/x"), b"x", FileAudience::Owner).is_err());
        let text = below.read_file(Path::new("link.json"), 100).unwrap_err().to_string();
        assert!(text.contains("link.json` is a link"), "{text}");
        let text = below
            .create_file(Path::new("way/x"), b"x", FileAudience::Owner)
            .unwrap_err()
            .to_string();
        assert!(text.contains("way` is a link"), "{text}");
        let names: Vec<_> = fs::read_dir(&own).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["token.json"], "nothing was made");
        assert_eq!(fs::read(own.join("token.json")).unwrap(), b"{\"token\": 1}");
        assert_eq!(fs::read_dir(&work).unwrap().count(), 5, "nothing is left beside");

        let path = Path::new("deep/down/own.json");
        assert_eq!(below.read_file(path, 100).unwrap(), None);
        assert!(below.create_file(path, b"one", FileAudience::Everybody).unwrap());
        assert!(!below.create_file(path, b"two", FileAudience::Everybody).unwrap());
        below.replace_file(path, b"three", FileAudience::Everybody).unwrap();
        assert_eq!(below.read_file(path, 100).unwrap().as_deref(), Some(&b"three"[..]));
        assert!(below.read_file(path, 4).is_err());
    }

    #[test]
    fn a_file_keeps_its_mode_and_what_is_made_for_its_owner_is_closed() {
        let (_dir, work, _) = world();
        let below = DirectoryHandle::open(&work).unwrap();
        let mode = |path: &str| fs::metadata(work.join(path)).unwrap().permissions().mode() & 0o777;
        below.create_file(Path::new("a/b"), b"x", FileAudience::Owner).unwrap();
        assert_eq!((mode("a"), mode("a/b")), (0o700, 0o600));
        fs::set_permissions(work.join("a/b"), fs::Permissions::from_mode(0o640)).unwrap();
        below.replace_file(Path::new("a/b"), b"y", FileAudience::Owner).unwrap();
        assert_eq!(mode("a/b"), 0o640);
    }

    #[test]
    fn a_linked_file_of_ones_own_home_is_written_where_it_lies() {
        let (_dir, work, own) = world();
        let (below, name) = DirectoryHandle::parent_in_home(&work.join("link.json")).unwrap();
        below.replace_file(&name, b"new", FileAudience::Owner).unwrap();
        assert_eq!(fs::read(own.join("token.json")).unwrap(), b"new");
        assert!(fs::symlink_metadata(work.join("link.json")).unwrap().is_symlink());
        assert!(DirectoryHandle::parent_in_home(&work.join("dangling.json")).is_err());
        let (below, name) = DirectoryHandle::parent_in_home(&work.join("made/here.json")).unwrap();
        below.replace_file(&name, b"x", FileAudience::Owner).unwrap();
        assert_eq!(fs::read(work.join("made/here.json")).unwrap(), b"x");
    }

    #[test]
    fn output_in_a_workspace_goes_through_no_link_and_elsewhere_the_way_is_the_persons() {
        let (_dir, work, own) = world();
        let work = work.canonicalize().unwrap();
        let make = |path: &Path| -> io::Result<File> {
            let (below, path) = output_place(path, &work)?;
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
