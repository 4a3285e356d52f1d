//! The private directory of a running program: its home, and its temporary files.
//!
//! The program's keeper locks the directory while it is in use, and removes it at the end. If a keeper is
//! killed, the next keeper removes its directory.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::program::Program;

/// The directory where these are made. Not `TMPDIR`, which may be the program's own setting.
const PLACE: &str = "/tmp";

/// The `PATH` of a program, after the directory of the program itself.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The limit of open descriptors during the removal. Each level of directories needs one, so a directory
/// nested deeper is not removed.
const LEVELS: u64 = 512;

/// The beginning of a directory's name. The keeper's process id and the time follow.
const PREFIX: &str = "belljar-program-";

/// The most left directories that one keeper removes, so that its program does not wait long.
const MAX_REMOVED: usize = 8;

/// How often to try to make a directory: another keeper may take the new one for a left one, and remove it.
const MAX_TRIES: u32 = 8;

/// A directory that only the current user can enter. Dropping this value removes it.
#[derive(Debug)]
pub(super) struct ScratchDir {
    path: PathBuf,
    /// The lock on the directory, held until the directory is removed.
    _lock: File,
}

impl ScratchDir {
    /// Makes a directory, after removing those of killed keepers. INV-494: each keeper makes one, for a
    /// program.
    ///
    /// # Errors
    ///
    /// The directory cannot be made.
    pub(super) fn create_new() -> io::Result<Self> {
        remove_left(Path::new(PLACE));
        Self::make_in(Path::new(PLACE))
    }

    fn make_in(place: &Path) -> io::Result<Self> {
        for _ in 0..MAX_TRIES {
            if let Some(made) = Self::try_make(place)? {
                return Ok(made);
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Makes and locks a directory. `None`: another keeper took it for a left one and removed it before it
    /// was locked.
    fn try_make(place: &Path) -> io::Result<Option<Self>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let own = rustix::process::getpid().as_raw_nonzero();
        let path = place.join(format!("{PREFIX}{own}-{}", now.as_nanos()));
        // Fails if the directory exists: whoever made it could read the program's files.
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = match File::open(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if lock.try_lock().is_err() || !path.exists() {
            return Ok(None);
        }
        let made = Self { path, _lock: lock };
        for part in ["home", "tmp"] {
            fs::DirBuilder::new().mode(0o700).create(made.path.join(part))?;
        }
        Ok(Some(made))
    }

    /// Grants the directory to a program, and sets variables of its command to it, for example `HOME`.
    /// Variables the operator set stay.
    pub(super) fn grant_to(&self, program: &mut Program, command: &mut Command) {
        program.write.insert(self.path.clone());
        let mut path = OsString::new();
        if let Some(directory) = program.path.parent() {
            path.push(directory);
            path.push(":");
        }
        path.push(SYSTEM_PATH);
        let defaults = [
            ("PATH", path),
            ("HOME", self.path.join("home").into()),
            ("TMPDIR", self.path.join("tmp").into()),
        ];
        for (name, value) in defaults {
            if std::env::var_os(name).is_none() {
                command.env(OsStr::new(name), value);
            }
        }
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        // The removal calls itself for each level of directories, so the limit of descriptors bounds its
        // depth.
        let most = getrlimit(Resource::Nofile).maximum;
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(LEVELS), maximum: most });
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// INV-563: removes the directories of killed keepers. Links, directories of other users, and directories a
/// keeper or another process still uses are not touched. A directory that cannot be removed stays.
fn remove_left(place: &Path) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let named = entries.filter(|entry| keeper_of(&entry.file_name()).is_some_and(is_gone));
    for path in named.map(|entry| entry.path()).filter(|path| is_own(path)).take(MAX_REMOVED) {
        let Ok(lock) = File::open(&path) else { continue };
        if lock.try_lock().is_ok() && !is_used(&path) {
            // Removing does not follow links.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// The process id of the keeper that made a directory with the given name.
fn keeper_of(name: &OsStr) -> Option<u32> {
    let (keeper, time) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
    let digits = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
    keeper.parse().ok().filter(|_| digits)
}

/// Whether a process is gone. The lock alone would not tell, because an older belljar did not lock its
/// directories.
fn is_gone(process: u32) -> bool {
    !Path::new(&format!("/proc/{process}")).exists() && Path::new("/proc/self").exists()
}

/// Whether the path is a directory, not a link, that belongs to the current user and has mode 700.
fn is_own(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_dir() && found.uid() == own && found.mode() & 0o777 == 0o700)
}

/// Whether a process works in the directory or has a file of it open: a process of the program may outlive
/// the keeper.
fn is_used(path: &Path) -> bool {
    let links = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
    let leads = |link: &Path| fs::read_link(link).is_ok_and(|to| to.starts_with(path));
    let own = std::process::id();
    let others = links("/proc".into()).filter(|process| {
        let id = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        id.is_some_and(|id| id != own)
    });
    let mut others = others.map(|process| process.path());
    others.any(|process| {
        leads(&process.join("cwd")) || links(process.join("fd")).any(|link| leads(&link.path()))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// No process has this id: it is larger than the largest of Linux.
    const GONE: &str = "belljar-program-4194305-1";

    fn made(place: &Path, name: &str) -> PathBuf {
        let path = place.join(name);
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        fs::create_dir_all(path.join("home/deep")).unwrap();
        fs::write(path.join("home/deep/file"), "x").unwrap();
        path
    }

    #[test]
    fn what_a_killed_keeper_left_goes_and_links_in_it_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let kept = place.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "mine").unwrap();
        let left = made(place.path(), GONE);
        symlink(&kept, left.join("home/link")).unwrap();
        remove_left(place.path());
        assert!(!left.exists());
        assert_eq!(fs::read(kept.join("file")).unwrap(), b"mine");
    }

    #[test]
    fn what_is_in_use_or_not_known_or_a_link_is_no_leftover_of_a_program() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| made(place.path(), name);
        let elsewhere = at("elsewhere");
        let link = place.path().join("belljar-program-4194306-1");
        symlink(&elsewhere, &link).unwrap();
        let open = at("belljar-program-4194307-1");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let locked = at("belljar-program-4194308-1");
        let lock = File::open(&locked).unwrap();
        lock.try_lock().unwrap();
        let used = at("belljar-program-4194309-1");
        let mut worker =
            Command::new("cat").current_dir(&used).stdin(std::process::Stdio::piped()).spawn();
        let living = at(&format!("{PREFIX}{}-1", std::process::id()));
        let others = ["belljar-program-", "belljar-program-4194305-x", "belljar-program-x-1"];
        let others = others.map(at);
        let own = ScratchDir::make_in(place.path()).unwrap();
        remove_left(place.path());
        for path in [&link, &elsewhere, &open, &locked, &used, &living, &own.path] {
            assert!(path.join("home").exists(), "{}", path.display());
        }
        others.iter().for_each(|path| assert!(path.exists(), "{}", path.display()));
        // From here on nobody uses them.
        let worker = worker.as_mut().unwrap();
        drop((worker.stdin.take(), lock));
        worker.wait().unwrap();
        remove_left(place.path());
        assert!(!locked.exists() && !used.exists() && living.exists() && own.path.exists());
        let path = own.path.clone();
        drop(own);
        assert!(!path.exists());
    }
}
