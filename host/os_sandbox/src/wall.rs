//! What the OS sandbox of a process allows, and putting it in force.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::certificates;

/// How a process may use a path and everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AllowedAccess {
    /// Empty directories below the path may be removed.
    Empty,
    /// Directories may be listed.
    List,
    /// Files may be read and directories listed.
    Read,
    /// Also, programs may be executed.
    Run,
    /// Reading, and creating, changing, moving and removing files and directories; no special files, devices
    /// or links.
    Write,
    /// The path is a device, which may be read, written and controlled.
    Device,
}

/// The OS sandbox of a process, before [`Wall::raise_wall`]: what the process may still use afterwards. The
/// default allows nothing: no file, no network, no new program.
#[derive(Debug, Clone, Default)]
pub struct Wall {
    paths: BTreeMap<PathBuf, AllowedAccess>,
    kept_out: Vec<PathBuf>,
    network: bool,
}

/// The most entries of a directory around an excluded one; later entries are not allowed.
const MAX_AROUND: usize = 10_000;

/// Which parts of the OS sandbox are in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WallStatus {
    /// The version of landlock that restricts files; `None`: files are not restricted.
    pub landlock: Option<u32>,
    /// Whether system calls are restricted.
    pub seccomp: bool,
    /// The parts that are not in force, each with the reason. Empty: all are.
    pub missing: Vec<String>,
}

/// The files a process can reach in its OS sandbox, as they were when it was put in force. Can be serialized
/// for another process, except for paths that are not UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallReach {
    read: Vec<ReachedFile>,
    written: Vec<ReachedFile>,
}

/// A file or directory that can be reached. Another file that comes to the same path later has another
/// identity, and cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ReachedFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl ReachedFile {
    fn from_path(path: PathBuf) -> Self {
        Self { identity: file_identity(&path), path }
    }

    fn is_there(&self) -> bool {
        file_identity(&self.path) == self.identity
    }
}

/// The device and inode of a file, which identify it.
#[cfg(unix)]
fn file_identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn file_identity(_path: &Path) -> Option<(u64, u64)> {
    None
}

impl WallReach {
    /// Whether the process can read a file, or a directory with everything below it. A path that does not
    /// exist is judged by the nearest directory above it that does.
    pub fn can_read(&self, path: &Path) -> bool {
        lies_in(path, &self.read) || self.can_write(path)
    }

    /// Whether the process can write a path, judged as in [`WallReach::can_read`].
    pub fn can_write(&self, path: &Path) -> bool {
        lies_in(path, &self.written)
    }
}

fn lies_in(path: &Path, places: &[ReachedFile]) -> bool {
    let there = path.ancestors().find_map(|above| above.canonicalize().ok());
    let holds =
        |there: &Path, place: &ReachedFile| there.starts_with(&place.path) && place.is_there();
    there.is_some_and(|there| places.iter().any(|place| holds(&there, place)))
}

/// Files of the system that the libraries of all programs read: shared libraries loaded late (name
/// services), locales, time zones, and settings of name resolution. None belongs to a person. Certificates
/// are allowed by [`Wall::allow_certificates`].
pub(crate) const SYSTEM: &[&str] = &[
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/terminfo",
    "/gnu/store",
    "/lib",
    "/lib64",
    "/nix/store",
    "/run/NetworkManager/resolv.conf",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share",
    "/dev/random",
    "/dev/urandom",
    // To find the number of processors that the current process may use.
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/cpuinfo",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    // wasmtime reads here which pages of a slot were written.
    "/proc/self/pagemap",
    // The C library reads here where the first thread's stack is.
    "/proc/self/maps",
];

/// Devices that are opened by name.
const DEVICES: &[&str] = &["/dev/null", "/dev/tty"];

/// Environment variables that name where certificates are.
const CERTIFICATES: &[&str] = &["SSL_CERT_FILE", "SSL_CERT_DIR"];

impl Wall {
    /// Also allows all files the libraries of a program with a network need, and the network: TCP and UDP to
    /// any address, because the network gate decides about addresses.
    pub fn with_system(mut self) -> Self {
        for path in SYSTEM {
            self.allow_path(Path::new(path), AllowedAccess::Read);
        }
        for path in DEVICES {
            self.allow_path(Path::new(path), AllowedAccess::Device);
        }
        self.allow_certificates();
        self.keep_keys_out();
        for path in CERTIFICATES.iter().filter_map(std::env::var_os) {
            for path in std::env::split_paths(&path) {
                self.read_without_keys(&path);
            }
        }
        self.network = true;
        self
    }

    /// INV-430: allows reading the machine's certificates, without the private keys beside them.
    pub(crate) fn allow_certificates(&mut self) {
        for place in certificates::PLACES {
            self.read_without_keys(Path::new(place));
        }
    }

    /// INV-430: excludes private keys that are among certificates in directories that are allowed as a whole.
    pub(crate) fn keep_keys_out(&mut self) {
        for path in
            certificates::WITHIN.iter().flat_map(|place| certificates::key_paths(Path::new(place)))
        {
            self.exclude_directory(&path);
        }
    }

    fn read_without_keys(&mut self, place: &Path) {
        for path in certificates::without_keys(place) {
            self.allow_path(&path, AllowedAccess::Read);
        }
    }

    /// Allows reading a file, or a directory with everything below it. A path that does not exist when the OS
    /// sandbox is put in force stays unreadable, even if it is created later. For a link, its target of that
    /// moment is allowed.
    pub fn allow_read(&mut self, path: &Path) {
        self.allow_path(path, AllowedAccess::Read);
    }

    /// Allows reading a path, as [`Wall::allow_read`], and writing it.
    pub fn allow_write(&mut self, path: &Path) {
        self.allow_path(path, AllowedAccess::Write);
    }

    /// Allows removing empty directories below `path`. For temporary directories, whose parent all users
    /// share.
    pub fn allow_remove_empty(&mut self, path: &Path) {
        self.allow_path(path, AllowedAccess::Empty);
    }

    /// Excludes a directory from reading and writing, even if a directory around it may be read: the other
    /// entries of that one, as they are when the OS sandbox is put in force, are then allowed one by one.
    /// The names in the excluded directory can still be listed, because the right to list is inherited. A
    /// directory around it that may be *written* makes the exclusion useless: see [`Wall::writes_around`].
    pub fn exclude_directory(&mut self, path: &Path) {
        self.kept_out.push(path.to_path_buf());
    }

    /// Whether the path, with links followed, is a writable directory or inside one.
    pub fn writes_around(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        let written = self.paths.iter().filter(|(_, allowed)| **allowed == AllowedAccess::Write);
        written.filter_map(|(written, _)| written.canonicalize().ok()).any(|w| path.starts_with(w))
    }

    /// The files a process in the OS sandbox can ever reach, as they are now.
    pub fn present_reach(&self) -> WallReach {
        let mut reach = WallReach::default();
        for (path, allowed) in self.let_through() {
            let Ok(place) = path.canonicalize() else { continue };
            match allowed {
                AllowedAccess::Write => reach.written.push(ReachedFile::from_path(place)),
                AllowedAccess::Read | AllowedAccess::Run => {
                    reach.read.push(ReachedFile::from_path(place))
                }
                AllowedAccess::Empty | AllowedAccess::List | AllowedAccess::Device => {}
            }
        }
        reach
    }

    /// All allowed paths, with excluded directories taken out.
    pub(crate) fn let_through(&self) -> BTreeMap<PathBuf, AllowedAccess> {
        let found = |path: &PathBuf| path.canonicalize().ok();
        let kept_out: Vec<PathBuf> = self.kept_out.iter().filter_map(found).collect();
        let mut paths = BTreeMap::new();
        for (path, allowed) in &self.paths {
            allow_around(path, *allowed, &kept_out, &mut paths);
        }
        paths
    }

    /// Puts the OS sandbox in force around the current process, for good. A part the kernel does not support
    /// is left out and listed in the result.
    ///
    /// The process must have one thread only, because other threads would stay outside. Otherwise nothing is
    /// done.
    pub fn raise_wall(&self) -> WallStatus {
        match other_threads() {
            Ok(0) => self.raise_for_thread(),
            Ok(count) => WallStatus::not_raised(format!("{count} threads would stay outside")),
            Err(why) => WallStatus::not_raised(why),
        }
    }

    /// Like [`Wall::raise_wall`], but for the current thread and threads it makes: for tests, because their
    /// harness has other threads.
    #[doc(hidden)]
    pub fn raise_for_thread(&self) -> WallStatus {
        let mut raised = WallStatus::default();
        #[cfg(target_os = "linux")]
        {
            let reach = match self.network {
                true => crate::files::TcpReach::Anywhere,
                false => crate::files::TcpReach::Nowhere,
            };
            match crate::files::confine_files(&self.let_through(), reach) {
                Ok((version, lacks)) => {
                    raised.landlock = Some(version);
                    raised.missing.extend(lacks);
                }
                Err(why) => raised.missing.push(format!("landlock: {why}")),
            }
            match crate::calls::confine_calls(self.network) {
                Ok(()) => raised.seccomp = true,
                Err(why) => raised.missing.push(format!("seccomp: {why}")),
            }
        }
        #[cfg(not(target_os = "linux"))]
        raised.missing.push("it needs Linux".to_owned());
        raised
    }

    /// Allows this use of a path. If another use was allowed before, the larger of the two holds.
    pub(crate) fn allow_path(&mut self, path: &Path, allowed: AllowedAccess) {
        add_path(&mut self.paths, path, allowed);
    }
}

impl WallStatus {
    /// The status of an OS sandbox that is not in force, with the reason.
    pub fn not_raised(why: impl Into<String>) -> Self {
        Self { missing: vec![why.into()], ..Self::default() }
    }

    /// Whether all parts are in force.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty()
    }
}

/// Adds a path; if it is there, the larger of the two uses holds.
fn add_path(paths: &mut BTreeMap<PathBuf, AllowedAccess>, path: &Path, allowed: AllowedAccess) {
    let before = paths.entry(path.to_path_buf()).or_insert(allowed);
    *before = (*before).max(allowed);
}

/// Adds a path. If it is a directory around an excluded one, adds all its other entries instead.
fn allow_around(
    path: &Path,
    allowed: AllowedAccess,
    kept_out: &[PathBuf],
    paths: &mut BTreeMap<PathBuf, AllowedAccess>,
) {
    let Ok(place) = path.canonicalize() else { return add_path(paths, path, allowed) };
    if kept_out.iter().any(|kept| place.starts_with(kept)) {
        return;
    }
    let is_read = matches!(allowed, AllowedAccess::Read | AllowedAccess::Run);
    if !is_read || !kept_out.iter().any(|kept| kept.starts_with(&place)) {
        return add_path(paths, path, allowed);
    }
    add_path(paths, &place, AllowedAccess::List);
    for entry in std::fs::read_dir(&place).into_iter().flatten().flatten().take(MAX_AROUND) {
        allow_around(&entry.path(), allowed, kept_out, paths);
    }
}

/// The number of threads of the current process beside this one.
#[cfg(target_os = "linux")]
pub(crate) fn other_threads() -> Result<usize, String> {
    let threads = std::fs::read_dir("/proc/self/task");
    let threads = threads.map_err(|error| format!("failed to count the threads: {error}"))?;
    Ok(threads.count().saturating_sub(1))
}

#[cfg(not(target_os = "linux"))]
fn other_threads() -> Result<usize, String> {
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_place_is_reached_while_it_is_the_one_that_was_there_when_the_wall_went_up() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for made in ["read", "written", "other"] {
            fs::create_dir(root.join(made)).unwrap();
        }
        let file = root.join("file");
        fs::write(&file, "one").unwrap();
        let mut wall = Wall::default();
        wall.allow_read(&root.join("read"));
        wall.allow_read(&file);
        wall.allow_read(&root.join("later"));
        wall.allow_write(&root.join("written"));
        let reach = wall.present_reach();
        let reached =
            |path: &str| (reach.can_read(&root.join(path)), reach.can_write(&root.join(path)));
        assert_eq!(reached("read/deep/not there"), (true, false));
        assert_eq!(reached("written/x"), (true, true));
        assert_eq!(reached("other"), (false, false));
        assert_eq!(reached("."), (false, false));
        // A path that did not exist then cannot be reached when it is made later.
        fs::create_dir(root.join("later")).unwrap();
        assert_eq!(reached("later"), (false, false));
        // Written again, it is the same file; a file that replaces it is another.
        fs::write(&file, "two").unwrap();
        assert_eq!(reached("file"), (true, false));
        fs::write(root.join("next"), "three").unwrap();
        fs::rename(root.join("next"), &file).unwrap();
        assert_eq!(reached("file"), (false, false));
    }

    #[test]
    fn what_is_kept_out_is_not_reached_through_the_directory_around_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for made in ["cache", "agents"] {
            fs::create_dir(home.join(made)).unwrap();
        }
        let mut wall = Wall::default();
        wall.allow_read(&home);
        wall.exclude_directory(&home.join("cache"));
        let reach = wall.present_reach();
        assert!(reach.can_read(&home.join("agents/scout.md")));
        assert!(!reach.can_read(&home.join("cache/x")) && !reach.can_read(&home.join("new")));
    }
}
