//! The temporary directory of a backup or a restore, beside its target. The command removes it at its end,
//! and at a signal. The directory of a killed command is removed by the next command.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use belljar_policy::ShownPath as _;
use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

use crate::setup::exit::{CommandExit, Failure};
use crate::setup::host;
use crate::setup::ours::{create_new_private, private_directory};
use crate::term::out::TerminalOutput;

/// The prefix of the directory's name for a backup.
pub(super) const OF_BACKUP: &str = ".belljar-backup-";

/// The prefix of the directory's name for a restore.
pub(super) const OF_RESTORE: &str = ".belljar-restore-";

/// The file that marks such a directory. It is locked while the command runs.
const MARK: &str = "in-use";

/// The content of the mark.
const TEXT: &[u8] = b"belljar works here, and deletes this directory\n";

/// The most entries of a directory that are searched for leftovers of killed commands.
const MAX_ENTRIES: usize = 100_000;

/// The most attempts to remove a directory in which another process still makes files.
const MAX_TRIES: usize = 100;

/// The directories that are removed at a signal.
static LEFT: Mutex<ScratchRegistry> =
    Mutex::new(ScratchRegistry { directories: Vec::new(), finishing: false });

/// The temporary directories of this command, which a signal removes.
struct ScratchRegistry {
    directories: Vec<PathBuf>,
    /// True if the command is about to complete, and signals no longer stop it.
    finishing: bool,
}

/// A private directory, removed on drop.
pub(super) struct ScratchDirectory {
    directory: TempDir,
    /// The open mark, which holds the lock.
    _mark: File,
}

impl ScratchDirectory {
    /// Makes a directory, after removing leftovers of killed commands in the same place.
    pub(super) fn make_inside(
        prefix: &str,
        inside: &Path,
        out: &TerminalOutput,
    ) -> io::Result<Self> {
        sweep_leftovers(inside, out);
        let directory = {
            let mut left = lock_registry();
            let directory = private_directory(prefix, inside)?;
            left.directories.push(directory.path().to_path_buf());
            directory
        };
        // Renamed to its final name only after it is locked, so that no other command removes it as a
        // leftover.
        let (new, mark) = (directory.path().join("new-mark"), directory.path().join(MARK));
        let mut file = create_new_private(&new)?;
        file.lock()?;
        file.write_all(TEXT)?;
        fs::rename(new, mark)?;
        Ok(Self { directory, _mark: file })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let mut left = lock_registry();
        remove_directory(self.directory.path());
        left.directories.retain(|directory| directory != self.directory.path());
    }
}

/// From now on, Ctrl-C and a request to terminate remove the command's temporary directories, and end it.
pub(super) fn remove_on_signal(out: &TerminalOutput) -> Result<(), Failure> {
    let runtime = host::small_runtime()?;
    let failed = |error: io::Error| Failure::new(format!("failed to wait for signals: {error}"));
    // The signals are received before any directory is made.
    let mut signals = runtime.block_on(async { EndSignals::new() }).map_err(failed)?;
    let out = out.clone();
    #[expect(
        clippy::disallowed_methods,
        reason = "it waits for a signal, for as long as the program lives"
    )]
    std::thread::spawn(move || {
        runtime.block_on(signals.wait_first());
        let left = lock_registry();
        if left.finishing {
            return;
        }
        left.directories.iter().for_each(|directory| remove_directory(directory));
        out.note("stopped; nothing is changed");
        // Exits while the lock is held, so that no new directory is made.
        std::process::exit(i32::from(CommandExit::Cancelled.code()));
    });
    Ok(())
}

/// From now on, no signal stops the command, so that its last steps are not left half done.
pub(super) fn ignore_signals() {
    lock_registry().finishing = true;
}

fn lock_registry() -> MutexGuard<'static, ScratchRegistry> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a directory with its content. Links in it are removed, not followed.
fn remove_directory(directory: &Path) {
    for _ in 0..MAX_TRIES {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Ok(()) | Err(_) => return,
        }
    }
}

/// Removes the directories of killed commands, as far as possible.
fn sweep_leftovers(inside: &Path, out: &TerminalOutput) {
    for entry in fs::read_dir(inside).into_iter().flatten().flatten().take(MAX_ENTRIES) {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        if ![OF_BACKUP, OF_RESTORE].iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let path = entry.path();
        // The lock is held until the directory is removed, so that no other command removes it too.
        if let Some(_mark) = lock_leftover(&path) {
            remove_directory(&path);
            out.note(format_args!("removed what a killed command has left: {}", path.to_shown()));
        }
    }
}

/// Opens and locks the mark of a directory that a killed command of this user has left; `None` = no such
/// directory, or in use. Checked on the open file; no link is followed.
#[cfg(unix)]
fn lock_leftover(path: &Path) -> Option<File> {
    use std::os::unix::fs::MetadataExt as _;
    let us = rustix::process::geteuid().as_raw();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let mark = File::from(rustix::fs::openat(&directory, MARK, flags, Mode::empty()).ok()?);
    let (of, about) = (File::from(directory).metadata().ok()?, mark.metadata().ok()?);
    let ours = of.uid() == us && of.mode() & 0o777 == 0o700 && about.uid() == us;
    if !ours || !about.is_file() || about.len() != TEXT.len() as u64 {
        return None;
    }
    let mut text = Vec::new();
    (&mark).take(TEXT.len() as u64).read_to_end(&mut text).ok()?;
    mark.try_lock().ok().filter(|()| text == TEXT)?;
    let now = fs::symlink_metadata(path).ok()?;
    ((now.dev(), now.ino()) == (of.dev(), of.ino())).then_some(mark)
}

#[cfg(not(unix))]
fn lock_leftover(_path: &Path) -> Option<File> {
    None
}

/// Receives the signals that end a command.
#[cfg(unix)]
struct EndSignals([tokio::signal::unix::Signal; 2]);

#[cfg(unix)]
impl EndSignals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]))
    }

    /// Waits for the first of the signals.
    async fn wait_first(&mut self) {
        let [interrupt, terminate] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct EndSignals;

#[cfg(not(unix))]
impl EndSignals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn wait_first(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn what_is_in_use_or_not_known_or_a_link_is_no_leftover() {
        let dir = tempfile::tempdir().unwrap();
        let out = TerminalOutput::new(true, false);
        let named = |name: &str| dir.path().join(format!("{OF_BACKUP}{name}"));
        let make = |name: &str, text: &[u8], mode: u32| {
            let path = named(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join(MARK), text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join(MARK), TEXT).unwrap();
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o700)).unwrap();
        let left = make("left", TEXT, 0o700);
        symlink(&outside, left.join("link")).unwrap();
        let others = [make("open", TEXT, 0o755), make("other", b"something else", 0o700)];
        let unmarked = named("unmarked");
        fs::create_dir(&unmarked).unwrap();
        let marked_by_link = named("marked-by-link");
        fs::create_dir(&marked_by_link).unwrap();
        fs::set_permissions(&marked_by_link, fs::Permissions::from_mode(0o700)).unwrap();
        symlink(outside.join(MARK), marked_by_link.join(MARK)).unwrap();
        symlink(&outside, named("link")).unwrap();
        let used = ScratchDirectory::make_inside(OF_RESTORE, dir.path(), &out).unwrap();
        assert!(!left.exists());
        let another = ScratchDirectory::make_inside(OF_BACKUP, dir.path(), &out).unwrap();
        assert!(used.path().join(MARK).exists() && another.path().exists());
        for path in others.iter().chain([&unmarked, &marked_by_link, &named("link")]) {
            assert!(path.exists(), "{path:?}");
        }
        assert!(outside.join(MARK).exists());
        let paths = [used.path().to_path_buf(), another.path().to_path_buf()];
        drop((used, another));
        assert!(paths.iter().all(|path| !path.exists()));
    }
}
