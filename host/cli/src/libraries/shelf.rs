//! `libraries/` in the home: one directory for each installed library, changed by one process at
//! a time.
//!
//! A change makes a new directory, then writes the lock, then removes the old directory. An interruption
//! leaves a directory that is not in the lock; the next change removes it.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use belljar_definition::Slug;
use belljar_policy::ShownPath as _;
use belljar_sandbox::Digest;

use super::gather::GatheredFile;
use super::lock::{InstalledLibrary, LibraryLock};
use crate::setup::below;
use crate::setup::exit::Failure;
use crate::setup::home::{HomePaths, create_private};
use crate::setup::ours::{create_new_private, open_private, private_directory};

/// Held while the shelf is changed.
const BUSY: &str = ".busy";

/// How directories begin whose content is being written.
const STAGED: &str = ".new-";

/// Hexadecimal digits of the content's digest in a directory's name.
const DIGITS: usize = 12;

/// The libraries' directory, held by this process.
pub(crate) struct LibraryShelf {
    dir: PathBuf,
    /// The libraries that are installed.
    pub(crate) lock: LibraryLock,
    /// Let go when it is closed.
    _busy: File,
}

impl LibraryShelf {
    /// Makes the directory, if missing: what the OS sandbox lets through has to be there before.
    pub(crate) fn make_directory(places: &HomePaths) -> Result<(), Failure> {
        let dir = places.libraries_directory();
        below::in_home(&places.home, &dir).map(drop).map_err(|error| {
            Failure::new(format!(
                "the libraries in `{}` cannot be changed: {error}",
                dir.to_shown()
            ))
        })
    }

    /// Opens the directory, made if missing, locks it for this process and reads the installed libraries.
    pub(crate) fn open_locked(places: &HomePaths) -> Result<Self, Failure> {
        let dir = places.libraries_directory();
        let failed = |error: io::Error| {
            Failure::new(format!(
                "the libraries in `{}` cannot be changed: {error}",
                dir.to_shown()
            ))
        };
        Self::make_directory(places)?;
        let busy = open_private(&dir.join(BUSY)).map_err(failed)?;
        match busy.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::new("another belljar is changing the libraries")
                    .with_hint("try again when it has finished"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let lock = LibraryLock::read(&dir)?;
        Ok(Self { dir, lock, _busy: busy })
    }

    /// Opens the directory for a change of something that a person has seen before, `what`: it has to be as
    /// it was then. A question that waits holds no lock.
    pub(crate) fn open_unchanged(
        places: &HomePaths,
        what: &str,
        is_same: impl FnOnce(&LibraryLock) -> bool,
    ) -> Result<Self, Failure> {
        let shelf = Self::open_locked(places)?;
        match is_same(&shelf.lock) {
            true => Ok(shelf),
            false => Err(Failure::new(format!("{what} has been changed meanwhile"))
                .with_hint("nothing is changed; repeat the command")),
        }
    }

    /// The directory.
    #[cfg(test)]
    pub(crate) fn directory_path(&self) -> &Path {
        &self.dir
    }

    /// Installs these files as the library, replacing the earlier ones.
    pub(crate) fn install_library(
        &mut self,
        name: &Slug,
        files: &[GatheredFile],
        with: impl FnOnce(String, BTreeMap<PathBuf, Digest>) -> InstalledLibrary,
    ) -> Result<(), Failure> {
        self.install_files(name.as_str(), files, |lock, directory, digests| {
            lock.libraries.insert(name.clone(), with(directory, digests));
        })
    }

    /// Installs these files as a plugin or a marketplace, replacing the earlier ones: `note` writes the new
    /// directory and the digests into the lock.
    pub(crate) fn install_files(
        &mut self,
        name: &str,
        files: &[GatheredFile],
        note: impl FnOnce(&mut LibraryLock, String, BTreeMap<PathBuf, Digest>),
    ) -> Result<(), Failure> {
        self.sweep_directories();
        let install = || -> io::Result<()> {
            let digests: BTreeMap<PathBuf, Digest> = files
                .iter()
                .map(|file| (PathBuf::from(&file.path), Digest::hash_bytes(&file.bytes)))
                .collect();
            let staged = private_directory(STAGED, &self.dir)?;
            for file in files {
                write_file(&staged.path().join(&file.path), &file.bytes)?;
            }
            let directory = self.free_directory_name(name, &digests)?;
            // Renamed away, there is nothing left for it to remove.
            fs::rename(staged.keep(), self.dir.join(&directory))?;
            let mut lock = self.lock.clone();
            note(&mut lock, directory, digests);
            lock.write(&self.dir)?;
            self.lock = lock;
            Ok(())
        };
        let done = install().map_err(|error| {
            Failure::new(format!(
                "library `{name}` cannot be written to `{}`: {error}",
                self.dir.to_shown()
            ))
        });
        self.sweep_directories();
        done
    }

    /// Changes the lock, and removes the directories that it does not have any more.
    pub(crate) fn change_lock(
        &mut self,
        change: impl FnOnce(&mut LibraryLock),
    ) -> Result<(), Failure> {
        let mut lock = self.lock.clone();
        change(&mut lock);
        self.replace_lock(lock)?;
        self.sweep_directories();
        Ok(())
    }

    /// Notes another revision of a library with unchanged files.
    pub(crate) fn note_revision(
        &mut self,
        name: &Slug,
        revision: Option<String>,
    ) -> Result<(), Failure> {
        let mut lock = self.lock.clone();
        if let Some(library) = lock.libraries.get_mut(name) {
            library.revision = revision;
        }
        self.replace_lock(lock)
    }

    /// Takes a library away.
    pub(crate) fn remove_library(&mut self, name: &Slug) -> Result<(), Failure> {
        let mut lock = self.lock.clone();
        lock.libraries.remove(name);
        self.replace_lock(lock)?;
        self.sweep_directories();
        Ok(())
    }

    fn replace_lock(&mut self, lock: LibraryLock) -> Result<(), Failure> {
        lock.write(&self.dir).map_err(|error| {
            Failure::new(format!(
                "the libraries in `{}` stay as they are: {error}",
                self.dir.to_shown()
            ))
        })?;
        self.lock = lock;
        Ok(())
    }

    /// Removes belljar's directories that are not in the lock: of a removed library, or an interrupted
    /// change. Failures are retried the next time.
    fn sweep_directories(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if self.lock.has_directory(&name) || !is_ours(&name) {
                continue;
            }
            let _ = match entry.file_type() {
                Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
                Ok(_) | Err(_) => fs::remove_file(entry.path()),
            };
        }
    }

    /// A free name for a directory with this content.
    fn free_directory_name(
        &self,
        name: &str,
        files: &BTreeMap<PathBuf, Digest>,
    ) -> io::Result<String> {
        let mut listing = String::new();
        for (path, digest) in files {
            listing.push_str(&format!("{digest} {}\n", path.to_string_lossy()));
        }
        let digest = Digest::hash_bytes(listing.as_bytes()).to_string();
        let short = digest.get(..DIGITS).unwrap_or(&digest);
        // Slugs have a longest length, and a directory's name has to be one.
        let stem: String = name.replace('/', "-").chars().take(40).collect();
        let stem = stem.trim_end_matches('-');
        let mut names = (1..1000).map(|number| match number {
            1 => format!("{stem}-{short}"),
            number => format!("{stem}-{short}-{number}"),
        });
        let free = names.find(|name| fs::symlink_metadata(self.dir.join(name)).is_err());
        free.ok_or_else(|| io::Error::other("every name for its directory is taken"))
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        create_private(folder)?;
    }
    let mut file = create_new_private(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Whether belljar gives such names: staged content, or a name with a digest behind it.
fn is_ours(name: &str) -> bool {
    let is_digest =
        |part: &str| part.len() == DIGITS && part.bytes().all(|b| b.is_ascii_hexdigit());
    name.starts_with(STAGED) || name.split('-').skip(1).any(is_digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::libraries::LibrarySource;

    fn shelf(dir: &Path) -> LibraryShelf {
        let home = dir.to_path_buf();
        let (cache, workspace) = (home.join("cache"), home.clone());
        LibraryShelf::open_locked(&HomePaths { home, cache, workspace, user_home: None }).unwrap()
    }

    fn names(shelf: &LibraryShelf) -> Vec<String> {
        let entries = fs::read_dir(shelf.directory_path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn install(shelf: &mut LibraryShelf, text: &str) -> String {
        let name = Slug::from_name("x").unwrap();
        let files = [GatheredFile { path: "a/b.md".into(), bytes: text.into() }];
        shelf
            .install_library(&name, &files, |directory, files| InstalledLibrary {
                directory,
                source: LibrarySource::Directory { path: "/srv".into() },
                revision: None,
                files,
            })
            .unwrap();
        shelf.lock.libraries[&name].directory.clone()
    }

    #[test]
    fn a_new_content_takes_the_place_of_the_old_one_and_leftovers_go() {
        let dir = tempfile::tempdir().unwrap();
        let mut shelf = shelf(dir.path());
        let first = install(&mut shelf, "one");
        assert_eq!(names(&shelf), [".busy", "lock.toml", &first]);
        // As a change leaves them that was cut off.
        fs::create_dir(shelf.directory_path().join(".new-abc")).unwrap();
        fs::write(shelf.directory_path().join(".new-lock"), "half").unwrap();
        fs::create_dir_all(shelf.directory_path().join("y-0123456789ab/a")).unwrap();
        fs::create_dir(shelf.directory_path().join("mine")).unwrap();
        let second = install(&mut shelf, "two");
        assert_eq!(names(&shelf), [".busy", "lock.toml", "mine", &second]);
        // The same content again does not touch the directory that is in use.
        let third = install(&mut shelf, "two");
        assert_ne!(third, second);
        assert_eq!(names(&shelf), [".busy", "lock.toml", "mine", &third]);
        shelf.remove_library(&Slug::from_name("x").unwrap()).unwrap();
        assert_eq!(names(&shelf), [".busy", "lock.toml", "mine"]);
    }

    #[test]
    fn what_was_changed_meanwhile_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let name = Slug::from_name("x").unwrap();
        let open = |before: &LibraryLock| {
            let home = dir.path().to_path_buf();
            let (cache, workspace) = (home.join("cache"), home.clone());
            let places = HomePaths { home, cache, workspace, user_home: None };
            LibraryShelf::open_unchanged(&places, "library `x`", |lock| {
                lock.libraries.get(&name) == before.libraries.get(&name)
            })
        };
        let mut first = shelf(dir.path());
        install(&mut first, "one");
        let before = first.lock.clone();
        drop(first);
        drop(open(&before).unwrap());
        let mut other = shelf(dir.path());
        install(&mut other, "two");
        drop(other);
        let refused = open(&before).err().unwrap();
        assert!(refused.message.contains("library `x` has been changed meanwhile"));
    }

    #[test]
    fn two_do_not_change_the_libraries_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let first = shelf(dir.path());
        let home = dir.path().to_path_buf();
        let (cache, workspace) = (home.join("cache"), home.clone());
        let places = HomePaths { home, cache, workspace, user_home: None };
        assert!(LibraryShelf::open_locked(&places).is_err());
        drop(first);
        assert!(LibraryShelf::open_locked(&places).is_ok());
    }
}
