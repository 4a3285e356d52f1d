//! One mount of the jar as the interpreter's filesystem.

use super::errors::{refused, shell};
use super::modes::Modes;
use bashkit::{DirEntry, FileSystem, FileSystemExt, FileType, Metadata, Result, async_trait};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A directory that scripts reach, and where it is for `std::fs`.
///
/// In a component both are the same path, and the host decides every access. Natively (in
/// tests) the directory is anywhere, and nothing confines a script to it.
#[derive(Debug, Clone)]
pub struct Mount {
    /// The absolute path that scripts use.
    pub guest: String,
    /// The directory behind it.
    pub host: PathBuf,
}

/// The interpreter follows symbolic links itself, in its own view of the paths; so nothing
/// here follows one in the last component, and a link that leads out of a mount ends at what
/// scripts can see there.
#[derive(Debug)]
pub(crate) struct Disk {
    mount: Mount,
    modes: Modes,
}

impl Disk {
    pub(crate) fn new(mount: Mount) -> Disk {
        Disk { mount, modes: Modes::default() }
    }

    fn path(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix("/").unwrap_or(path);
        if below.as_os_str().is_empty() {
            self.mount.host.clone()
        } else {
            self.mount.host.join(below)
        }
    }

    /// The path for reading or writing content, refused when it is a link.
    fn content(&self, path: &Path) -> io::Result<PathBuf> {
        let path = self.path(path);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => Err(ErrorKind::InvalidInput.into()),
            Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
            _ => Ok(path),
        }
    }

    fn write(&self, path: &Path, content: &[u8], options: &mut fs::OpenOptions) -> Result<()> {
        let mut write = || {
            let path = self.content(path)?;
            options.write(true).create(true).open(&path)?.write_all(content)
        };
        write().map_err(shell)
    }

    fn remove_now(&self, path: &Path, recursive: bool) -> io::Result<()> {
        let path = self.path(path);
        let found = fs::symlink_metadata(&path)?;
        self.modes.forget(&path);
        match (found.is_dir(), recursive) {
            (true, true) => fs::remove_dir_all(&path),
            (true, false) => fs::remove_dir(&path),
            (false, _) => fs::remove_file(&path),
        }
    }

    fn metadata(found: &fs::Metadata, mode: u32) -> Metadata {
        let kind = found.file_type();
        let modified = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Metadata {
            file_type: file_type(kind),
            size: found.len(),
            mode,
            modified,
            created: found.created().unwrap_or(modified),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.path(path))? {
            let entry = entry?;
            // One that vanished in between is not there.
            let Ok(found) = fs::symlink_metadata(entry.path()) else { continue };
            let mode = self.modes.listed(&entry.path(), found.file_type());
            entries.push(DirEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                metadata: Self::metadata(&found, mode),
            });
        }
        // Directories have no order of their own that a test could rely on.
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}

fn file_type(kind: fs::FileType) -> FileType {
    if kind.is_dir() {
        FileType::Directory
    } else if kind.is_symlink() {
        FileType::Symlink
    } else {
        FileType::File
    }
}

#[async_trait]
impl FileSystemExt for Disk {
    fn backend_kind(&self) -> &'static str {
        "mount"
    }
}

#[async_trait]
impl FileSystem for Disk {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        self.content(path).and_then(fs::read).map_err(shell)
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.write(path, content, fs::OpenOptions::new().truncate(true))
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.write(path, content, fs::OpenOptions::new().append(true))
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        let path = self.path(path);
        let made = if recursive { fs::create_dir_all(path) } else { fs::create_dir(path) };
        made.map_err(shell)
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        self.remove_now(path, recursive).map_err(shell)
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        let path = self.path(path);
        let found = fs::symlink_metadata(&path).map_err(shell)?;
        let mode = self.modes.of(&path, found.file_type());
        Ok(Self::metadata(&found, mode))
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.list(path).map_err(shell)
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        Ok(fs::symlink_metadata(self.path(path)).is_ok())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let (from, to) = (self.path(from), self.path(to));
        fs::rename(&from, &to).map_err(shell)?;
        self.modes.rename(&from, &to);
        Ok(())
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let copy = || {
            let (from, to) = (self.content(from)?, self.content(to)?);
            fs::copy(from, to).map(|_| ())
        };
        copy().map_err(shell)
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        link::make(&self.mount, target, &self.path(link)).map_err(shell)
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        fs::read_link(self.path(path)).map_err(shell)
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        let path = self.path(path);
        if fs::symlink_metadata(&path).is_err() {
            return Err(refused(ErrorKind::NotFound));
        }
        self.modes.set(&path, mode);
        Ok(())
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        let set = || {
            let file = fs::OpenOptions::new().write(true).open(self.path(path))?;
            file.set_times(fs::FileTimes::new().set_modified(time))
        };
        set().map_err(shell)
    }
}

/// Symbolic links, which std makes only through calls of one platform.
mod link {
    use super::Mount;
    use std::io;
    use std::path::Path;

    #[cfg(target_family = "wasm")]
    pub(super) fn make(mount: &Mount, target: &Path, link: &Path) -> io::Result<()> {
        use wasip2::filesystem::preopens::get_directories;

        let text =
            |path: &Path| path.to_str().map(str::to_owned).ok_or(io::ErrorKind::InvalidInput);
        let below = text(link.strip_prefix(&mount.host).unwrap_or(link))?;
        let found = get_directories().into_iter().find(|(_, name)| *name == mount.guest);
        let (directory, _) = found.ok_or(io::ErrorKind::NotFound)?;
        directory.symlink_at(&text(target)?, &below).map_err(|code| {
            use wasip2::filesystem::types::ErrorCode;
            let kind = match code {
                ErrorCode::Exist => io::ErrorKind::AlreadyExists,
                ErrorCode::NoEntry => io::ErrorKind::NotFound,
                ErrorCode::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
                ErrorCode::Access | ErrorCode::NotPermitted => io::ErrorKind::PermissionDenied,
                other => return io::Error::other(other.message()),
            };
            kind.into()
        })
    }

    #[cfg(not(target_family = "wasm"))]
    pub(super) fn make(_mount: &Mount, target: &Path, link: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(target, link)
    }
}
