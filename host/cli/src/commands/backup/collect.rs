//! Finds the files of a backup, in a home and in a data root, and computes their digests.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use belljar_policy::ShownPath as _;
use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};

use super::manifest::{BackupPart, HISTORY, MAX_NAMES, ManifestEntry, is_plain};
use crate::setup::data::WORKSPACES;
use crate::setup::exit::Failure;
use crate::setup::home::{STORE, STORE_FILE};

/// The deepest nesting of directories that is searched.
const MAX_DEPTH: usize = 48;

/// The reason why a link or a device is not in the backup.
const NOT_REGULAR: &str = "it is no regular file";

/// Refuses a backup with more files or directories than a restore accepts.
fn has_room(found: usize, what: &str) -> Result<(), Failure> {
    if found < MAX_NAMES {
        return Ok(());
    }
    Err(Failure::new(format!("there are more than {MAX_NAMES} {what} to back up"))
        .with_hint("leave out `--workspaces`, or move away what agents do not work on"))
}

/// The files and directories of a backup.
#[derive(Debug, Default)]
pub(super) struct BackupFiles {
    /// The directories, parents before their children.
    pub(super) directories: Vec<String>,
    /// The files: the path from which each is read, and its entry in the manifest.
    pub(super) files: Vec<(PathBuf, ManifestEntry)>,
    /// The files that are not in the backup, with the reasons: links, special files, and names that no
    /// archive can have.
    pub(super) left_out: Vec<(PathBuf, &'static str)>,
}

/// How a directory is searched.
#[derive(Debug, Clone, Copy)]
pub(super) struct DirectoryScan {
    /// True if links are followed: only in the operator's own home, where people link their settings. Links
    /// in files of tenants and agents are not followed.
    pub(super) follow: bool,
}

impl BackupFiles {
    /// Adds a home, without its sessions, its cache and the data root: these are added separately or not at
    /// all, because other people's files are in them.
    pub(super) fn add_home(
        &mut self,
        home: &Path,
        cache: &Path,
        root: &Path,
    ) -> Result<(), Failure> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let others = [&home.join("sessions"), cache, &home.join("cache"), root].map(real);
        let skip = |path: &Path| others.contains(&real(path));
        self.walk_directory(
            home,
            BackupPart::Home.as_str(),
            DirectoryScan { follow: true },
            0,
            &skip,
        )
    }

    /// Adds a directory of sessions: its store, from the copy `store`; files that agents handed over; and
    /// tenants' homes. With `workspaces`, also the tenants' workspaces.
    pub(super) fn add_sessions(
        &mut self,
        root: &Path,
        part: BackupPart,
        store: &Path,
        workspaces: bool,
    ) -> Result<(), Failure> {
        let (part, as_it_is) = (part.as_str(), DirectoryScan { follow: false });
        self.directories.push(format!("{part}/{STORE}"));
        self.add_file(store, &format!("{part}/{STORE}/{STORE_FILE}"), as_it_is)?;
        let history = root.join(STORE).join(HISTORY);
        if history.is_file() {
            self.add_file(&history, &format!("{part}/{STORE}/{HISTORY}"), as_it_is)?;
        }
        let [tenants, work] = ["tenants", WORKSPACES].map(|name| root.join(name));
        let names = ["files", "tenants", WORKSPACES];
        for (name, path) in names.map(|name| (name, root.join(name))) {
            if path.is_dir() {
                self.directories.push(format!("{part}/{name}"));
                // Tenants' workspaces may be of any size, so they are added only on request.
                let skip = |path: &Path| !workspaces && is_work(path, &tenants, &work);
                self.walk_directory(&path, &format!("{part}/{name}"), as_it_is, 0, &skip)?;
            }
        }
        Ok(())
    }

    /// Adds a directory with its content, except the paths for which `skip` returns true. `name` = its path
    /// in the backup.
    fn walk_directory(
        &mut self,
        directory: &Path,
        name: &str,
        look: DirectoryScan,
        depth: usize,
        skip: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Failure> {
        if depth > MAX_DEPTH {
            self.left_out.push((directory.to_path_buf(), "it lies too deep"));
            return Ok(());
        }
        let failed = |error: io::Error| unreadable_file(directory, &error.to_string());
        let mut entries: Vec<_> =
            fs::read_dir(directory).and_then(Iterator::collect).map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            if skip(&path) {
                continue;
            }
            let file_name = entry.file_name();
            let own = file_name.to_str().map(|own| format!("{name}/{own}"));
            let Some(own) = own.filter(|own| is_plain(own)) else {
                self.left_out.push((path, "its name is too long, not UTF-8, or has a `\\`"));
                continue;
            };
            let kind = match look.follow {
                true => fs::metadata(&path).map(|found| found.file_type()),
                false => entry.file_type(),
            };
            match kind {
                Ok(kind) if kind.is_dir() => {
                    has_room(self.directories.len(), "directories")?;
                    self.directories.push(own.clone());
                    self.walk_directory(&path, &own, look, depth + 1, skip)?;
                }
                Ok(kind) if kind.is_file() => self.add_file(&path, &own, look)?,
                // A link to nothing.
                Ok(_) => self.left_out.push((path, NOT_REGULAR)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.left_out.push((path, NOT_REGULAR));
                }
                Err(error) => return Err(unreadable_file(&path, &error.to_string())),
            }
        }
        Ok(())
    }

    /// Adds a file with its size and digest.
    fn add_file(&mut self, path: &Path, name: &str, look: DirectoryScan) -> Result<(), Failure> {
        has_room(self.files.len(), "files")?;
        let failed = |error: io::Error| unreadable_file(path, &error.to_string());
        let file = open_file(path, look.follow).map_err(failed)?;
        let executable = is_executable(&file).map_err(failed)?;
        let mut digesting = DigestReader::from_reader(file);
        io::copy(&mut digesting, &mut io::sink()).map_err(failed)?;
        let (size, sha256) = digesting.finish_digest();
        let entry = ManifestEntry { path: name.to_owned(), size, sha256, executable };
        self.files.push((path.to_path_buf(), entry));
        Ok(())
    }
}

/// Returns whether a path is a file that tenants' agents work on: in a workspace, or beside a tenant's home.
/// The workspaces' own directories do not count, because tenants need them.
fn is_work(path: &Path, tenants: &Path, work: &Path) -> bool {
    if let Ok(below) = path.strip_prefix(work) {
        return below.components().count() > 1;
    }
    let mut below = path.strip_prefix(tenants).unwrap_or(Path::new("")).components().skip(1);
    below.next().is_some_and(|top| top.as_os_str() != "home") && below.next().is_some()
}

/// Opens a regular file. Without `follow`, a link is refused.
pub(super) fn open_file(path: &Path, follow: bool) -> io::Result<File> {
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if !follow {
        flags |= OFlags::NOFOLLOW;
    }
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

#[cfg(unix)]
fn is_executable(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(file.metadata()?.permissions().mode() & 0o100 != 0)
}

#[cfg(not(unix))]
fn is_executable(_file: &File) -> io::Result<bool> {
    Ok(false)
}

pub(super) fn unreadable_file(path: &Path, why: &str) -> Failure {
    Failure::new(format!("`{}` cannot be backed up: {why}", path.to_shown()))
}

/// A reader that computes the digest of what is read.
pub(super) struct DigestReader<R> {
    reader: R,
    digest: Sha256,
    size: u64,
}

impl<R: Read> DigestReader<R> {
    pub(super) fn from_reader(reader: R) -> Self {
        Self { reader, digest: Sha256::new(), size: 0 }
    }

    /// The number of bytes that were read, and their SHA-256 in hexadecimal.
    pub(super) fn finish_digest(self) -> (u64, String) {
        let digest = self.digest.finalize();
        (self.size, digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl<R: Read> Read for DigestReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.digest.update(buffer.get(..count).unwrap_or_default());
        self.size = self.size.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        Ok(count)
    }
}
