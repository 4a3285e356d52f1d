//! The openings of a wall, and raising a wall.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::certificates;

/// The permitted use of a path and everything below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AllowedAccess {
    /// Empty directories below the path may be removed.
    Empty,
    /// Directories may be listed.
    List,
    /// Look and read.
    Read,
    /// Also start programs below the path.
    Run,
    /// Also create, change, move and remove files and directories. Never special files, devices, or links
    /// with a target.
    Write,
    /// A device: read, write and control.
    Device,
}

/// The files and rights that a process keeps behind the wall. The default lets nothing through: no file, no
/// network, no new program.
#[derive(Debug, Clone, Default)]
pub struct Wall {
    paths: BTreeMap<PathBuf, AllowedAccess>,
    kept_out: Vec<PathBuf>,
    network: bool,
}

/// The most entries of a directory around an excluded one; further entries are not let through.
const MAX_AROUND: usize = 10_000;

/// The parts of a wall that are in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WallStatus {
    /// The version of the landlock interface that restricts files; `None` = files are unrestricted.
    pub landlock: Option<u32>,
    /// Whether system calls are restricted.
    pub seccomp: bool,
    /// The missing parts of the wall, with a reason for each. Empty = the wall is complete.
    pub missing: Vec<String>,
}

/// The files that a process behind its wall can reach, as of the moment the wall was raised. Can be
/// serialized for another process, except for paths that are not UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallReach {
    read: Vec<ReachedFile>,
    written: Vec<ReachedFile>,
}

/// One file or directory. A later file at the same path has another identity and is not let through.
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

/// The identity of a file: device and inode number.
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
    /// Whether a file, or a directory with everything below, may be read. A missing path is judged by its
    /// nearest existing ancestor.
    pub fn can_read(&self, path: &Path) -> bool {
        lies_in(path, &self.read) || self.can_write(path)
    }

    /// Whether a path may be written, by the rules of [`WallReach::can_read`].
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

/// Files that the libraries of every program read: late-loaded shared libraries (name services), locales,
/// time zones, and settings of name resolution. No file of a person is among them. Certificates are let
/// through separately ([`Wall::allow_certificates`]).
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
    // The number of processors that this process may use.
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/cpuinfo",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    // wasmtime reads here which pages of a slot were written.
    "/proc/self/pagemap",
    // The C library reads here the bounds of the first thread's stack.
    "/proc/self/maps",
];

/// Devices that are opened by name.
const DEVICES: &[&str] = &["/dev/null", "/dev/tty"];

/// Variables that name the path of certificates.
const CERTIFICATES: &[&str] = &["SSL_CERT_FILE", "SSL_CERT_DIR"];

impl Wall {
    /// The same wall with all files that the libraries of a networked program need, and with the network: TCP
    /// and UDP to any address, because the network gate restricts both.
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

    /// INV-430: lets the machine's certificates through, without the private keys beside them.
    pub(crate) fn allow_certificates(&mut self) {
        for place in certificates::PLACES {
            self.read_without_keys(Path::new(place));
        }
    }

    /// INV-430: excludes the private keys among certificates from directories that are let through as a
    /// whole.
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

    /// Lets a file, or a directory with everything below, be read. A path that is missing when the wall is
    /// raised stays unreadable even if it is created later; a link lets through its target of that moment.
    pub fn allow_read(&mut self, path: &Path) {
        self.allow_path(path, AllowedAccess::Read);
    }

    /// Lets a path be read, as [`Wall::allow_read`] does, and written.
    pub fn allow_write(&mut self, path: &Path) {
        self.allow_path(path, AllowedAccess::Write);
    }

    /// Lets empty directories below `path` be removed: for temporary directories, whose parent all users
    /// share.
    pub fn allow_remove_empty(&mut self, path: &Path) {
        self.allow_path(path, AllowedAccess::Empty);
    }

    /// Excludes a directory from reading and writing whatever else is let through. Of a readable directory
    /// around the excluded one, the other entries that exist when the wall is raised are let through one by
    /// one. The names inside an excluded directory can still be listed then, because the right to list is
    /// inherited. A *writable* directory around an excluded one lets it through: see [`Wall::writes_around`].
    pub fn exclude_directory(&mut self, path: &Path) {
        self.kept_out.push(path.to_path_buf());
    }

    /// Whether this path is a writable directory or inside one, with links followed.
    pub fn writes_around(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        let written = self.paths.iter().filter(|(_, allowed)| **allowed == AllowedAccess::Write);
        written.filter_map(|(written, _)| written.canonicalize().ok()).any(|w| path.starts_with(w))
    }

    /// The files that a process behind this wall can ever reach, as of now.
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

    /// The paths without the excluded ones.
    pub(crate) fn let_through(&self) -> BTreeMap<PathBuf, AllowedAccess> {
        let found = |path: &PathBuf| path.canonicalize().ok();
        let kept_out: Vec<PathBuf> = self.kept_out.iter().filter_map(found).collect();
        let mut paths = BTreeMap::new();
        for (path, allowed) in &self.paths {
            allow_around(path, *allowed, &kept_out, &mut paths);
        }
        paths
    }

    /// Raises the wall around this process, permanently. A part that the kernel does not support is left out
    /// and listed in the result.
    ///
    /// The process must have only one thread, because other threads would stay outside; otherwise nothing is
    /// done.
    pub fn raise_wall(&self) -> WallStatus {
        match other_threads() {
            Ok(0) => self.raise_for_thread(),
            Ok(count) => WallStatus::not_raised(format!("{count} threads would stay outside")),
            Err(why) => WallStatus::not_raised(why),
        }
    }

    /// Raises the wall like [`Wall::raise_wall`], but for this thread and threads made later: for tests, whose
    /// harness has threads of its own.
    #[doc(hidden)]
    pub fn raise_for_thread(&self) -> WallStatus {
        let mut raised = WallStatus::default();
        #[cfg(target_os = "linux")]
        {
            match crate::files::confine_files(&self.let_through(), self.network) {
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

    /// Keeps the larger of the old and the new permission.
    pub(crate) fn allow_path(&mut self, path: &Path, allowed: AllowedAccess) {
        add_path(&mut self.paths, path, allowed);
    }
}

impl WallStatus {
    /// A wall that was not raised, with the reason.
    pub fn not_raised(why: impl Into<String>) -> Self {
        Self { missing: vec![why.into()], ..Self::default() }
    }

    /// Whether every part is in force.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty()
    }
}

/// Keeps the larger of the old and the new permission.
fn add_path(paths: &mut BTreeMap<PathBuf, AllowedAccess>, path: &Path, allowed: AllowedAccess) {
    let before = paths.entry(path.to_path_buf()).or_insert(allowed);
    *before = (*before).max(allowed);
}

/// Lets a path through, or, for a directory around an excluded one, all its other entries.
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

/// The number of other threads.
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
        // What was not there then is not reached when it is made.
        fs::create_dir(root.join("later")).unwrap();
        assert_eq!(reached("later"), (false, false));
        // Written anew it is the same file; another in its place is another.
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
