//! Mounts: the directories a guest sees, opened, each with its permitted access.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_overlay::Overlay;
use belljar_overlay::walk::{HostDir, PathEnd};
use belljar_policy::{GuestPath, Mount, MountAccess, is_protected};
use rustix::fs::{Mode, OFlags};
use wasmtime_wasi::filesystem::{Dir, FsPerms, OpenMode};

use super::alias::{self, ProtectedLinkRole};
use super::closed::ClosedPaths;

/// A mount with its open directory. Clones share the directory, so a new store needs no system call for it.
#[derive(Clone)]
pub(crate) struct OpenMount {
    pub(super) info: Arc<MountInfo>,
}

pub(super) struct MountInfo {
    pub(super) guest: GuestPath,
    pub(super) access: MountAccess,
    /// The guest's first descriptor of the mount.
    pub(super) root: Dir,
    /// Whether nothing in the mount may be written, because its directory has a protected name, is below
    /// one, or is in a closed directory.
    pub(super) protected: bool,
    /// The paths closed to all guests, wherever they are in the mount.
    pub(super) closed: ClosedPaths,
    /// The host's path of the directory, without links.
    real: PathBuf,
    /// The overlay to which writes go; `None`: they change the directory.
    pub(super) overlay: Option<Overlay>,
}

impl OpenMount {
    /// Opens the directory of a mount. `work_directories`: see [`crate::Sandbox::with_work_directories`]; in
    /// a mount inside one of them nothing is closed.
    pub(crate) fn open(
        mount: &Mount,
        work_directories: &[PathBuf],
        closed: &ClosedPaths,
    ) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = Arc::new(File::from(rustix::fs::open(&mount.host, flags, Mode::empty())?));
        Self::from_directory(mount, dir, None, work_directories, closed)
    }

    /// Opens a mount like [`Self::open`], with an overlay of its directory. Writes go to the overlay, even if
    /// the mount's access is wider than [`MountAccess::Overlay`].
    pub(crate) fn open_over(
        mount: &Mount,
        overlay: &Overlay,
        work_directories: &[PathBuf],
        closed: &ClosedPaths,
    ) -> std::io::Result<Self> {
        let (named, lower) = (std::fs::metadata(&mount.host)?, overlay.lower_dir().metadata()?);
        if (named.dev(), named.ino()) != (lower.dev(), lower.ino()) {
            let why = "the overlay is one of another directory";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why));
        }
        let dir = Arc::clone(overlay.lower_dir());
        let mount = Mount { access: mount.access.min(MountAccess::Overlay), ..mount.clone() };
        Self::from_directory(&mount, dir, Some(overlay.clone()), work_directories, closed)
    }

    /// Makes a mount of an open directory. Decides whether the directory is protected, and opens the
    /// directory with the least rights for the access.
    fn from_directory(
        mount: &Mount,
        dir: Arc<File>,
        overlay: Option<Overlay>,
        work_directories: &[PathBuf],
        closed: &ClosedPaths,
    ) -> std::io::Result<Self> {
        if mount.access == MountAccess::Overlay && overlay.is_none() {
            let why = "the mount is written to an overlay, and the jar was given none";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why));
        }
        let real = real_path(&dir, &mount.host)?;
        let works = work_directories.iter().any(|directory| real.starts_with(directory));
        let closed = if works { ClosedPaths::default() } else { closed.clone() };
        let protected =
            lies_in_protected(&real, work_directories) || closed.contains_dir(dir.as_fd());
        let (perms, mode) = access_modes(mount.access, protected);
        let mut root = Dir::new(dir.try_clone()?, perms, mode, true);
        root.dir = dir;
        let (guest, access) = (mount.guest.clone(), mount.access);
        let info = MountInfo { guest, access, root, protected, closed, real, overlay };
        Ok(Self { info: Arc::new(info) })
    }

    /// Returns the mount, with `access` at most.
    pub(crate) fn at_most(&self, access: MountAccess) -> Self {
        let here = &self.info;
        if here.access <= access {
            return self.clone();
        }
        let mut root = here.root.clone();
        (root.perms, root.open_mode) = access_modes(access, here.protected);
        let MountInfo { guest, protected, closed, real, overlay, .. } = &**here;
        let (guest, closed, real) = (guest.clone(), closed.clone(), real.clone());
        let (protected, overlay) = (*protected, overlay.clone());
        let info = MountInfo { guest, access, root, protected, closed, real, overlay };
        Self { info: Arc::new(info) }
    }

    /// The path where the guest sees the mount.
    pub(crate) fn guest_path(&self) -> &GuestPath {
        &self.info.guest
    }

    /// The host's path of the directory, without links.
    pub(crate) fn host_path(&self) -> &Path {
        &self.info.real
    }

    /// The device and inode of the directory, which identify it whatever its path is.
    pub(crate) fn dir_identity(&self) -> std::io::Result<(u64, u64)> {
        let found = self.info.root.dir.metadata()?;
        Ok((found.dev(), found.ino()))
    }
}

/// An access as wasmtime-wasi's permissions and mode.
fn access_modes(access: MountAccess, protected: bool) -> (FsPerms, OpenMode) {
    match (access, protected) {
        (MountAccess::ReadWrite, false) => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
        // Writes go to the overlay, so wasmtime-wasi itself only reads.
        (MountAccess::Overlay, false) => (FsPerms::ReadOnly, OpenMode::READ | OpenMode::WRITE),
        (MountAccess::Read, _) | (MountAccess::Overlay | MountAccess::ReadWrite, true) => {
            (FsPerms::ReadOnly, OpenMode::READ)
        }
    }
}

/// The path of an open directory, without links. On Linux it is the directory's present path, even if `host`
/// leads elsewhere by now. On other systems, and without `/proc`, `host` is resolved again.
fn real_path(dir: &File, host: &Path) -> std::io::Result<PathBuf> {
    let held = format!("/proc/self/fd/{}", dir.as_raw_fd());
    if cfg!(target_os = "linux")
        && let Ok(path) = std::fs::read_link(held)
    {
        return Ok(path);
    }
    std::fs::canonicalize(host)
}

/// Whether a name in the path is protected. INV-151: for a path in a work directory, only that directory's
/// own name and the names below it count.
fn lies_in_protected(host: &Path, work_directories: &[PathBuf]) -> bool {
    let above = work_directories.iter().find(|directory| host.starts_with(directory));
    let above = above.and_then(|directory| directory.parent());
    let counts = above.and_then(|above| host.strip_prefix(above).ok()).unwrap_or(host);
    counts.components().any(|part| is_protected(&part.as_os_str().to_string_lossy()))
}

impl MountInfo {
    pub(super) fn protected_link_role<D: HostDir>(&self, place: &PathEnd<D>) -> ProtectedLinkRole {
        alias::meant_by_protected_links(&self.real, self.root.dir.as_fd(), place)
    }

    /// The guest's path of the object at `real`, which is relative to the mount and without links.
    pub(super) fn guest_path(&self, real: &str) -> String {
        if real.is_empty() { self.guest.to_string() } else { format!("{}/{real}", self.guest) }
    }
}
