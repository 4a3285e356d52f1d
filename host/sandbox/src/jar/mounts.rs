//! The open directories of mounts, shared by stores and jars with equal mounts: for example ten thousand
//! jars over one workspace use one descriptor.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use belljar_overlay::Overlay;
use belljar_policy::{GuestPath, Mount, MountAccess};

use crate::error::JarError;
use crate::imports::files::{ClosedPaths, OpenMount};
use crate::jar::way;

/// How many entries the table has before closed mounts are removed from it.
const SWEEP_AT: usize = 256;

/// How long the identities of closed directories are cached: finding them takes longer than opening a jar,
/// and people rarely move such directories.
const CLOSED_HOLDS: Duration = Duration::from_secs(1);

/// The table of open mounts in a process.
#[derive(Default)]
pub(crate) struct MountTable {
    open: Mutex<HashMap<Key, Weak<HeldMount>>>,
    closed: Mutex<Option<ClosedState>>,
}

/// The identities of closed directories, as found at a time.
struct ClosedState {
    /// When the directories were looked up.
    at: Instant,
    paths: Arc<[PathBuf]>,
    closed: ClosedPaths,
}

/// The key under which a mount is shared. It includes the work directories and closed directories, because
/// they may narrow the mount, and the written directories, because the check of the path depends on them
/// (INV-178).
type Key = (GuestPath, PathBuf, MountAccess, Arc<[PathBuf]>, ClosedPaths, Arc<[PathBuf]>);

/// The open directory of a mount.
pub(crate) struct HeldMount {
    pub(crate) mount: OpenMount,
    /// The device and inode of the directory, to notice that the path leads to another one.
    identity: (u64, u64),
}

impl MountTable {
    /// Opens the directory of each mount, or shares an open one. If the path of a shared mount now leads to
    /// another directory, that directory is opened.
    pub(crate) fn open_all(
        &self,
        mounts: &[Mount],
        overlays: &BTreeMap<GuestPath, Overlay>,
        work_directories: &Arc<[PathBuf]>,
        closed_directories: &Arc<[PathBuf]>,
        written_directories: &Arc<[PathBuf]>,
    ) -> Result<Vec<Arc<HeldMount>>, JarError> {
        let closed = self.closed_paths(closed_directories);
        let open = |mount: &Mount| {
            let opened = match overlays.get(&mount.guest) {
                // An overlay has its own open directory, which is used.
                Some(overlay) => OpenMount::open_over(mount, overlay, work_directories, &closed)
                    .and_then(|opened| HeldMount::from_mount(opened, mount, written_directories)),
                None => self.open_one(mount, work_directories, &closed, written_directories),
            };
            opened.map_err(|source| JarError::Mount {
                guest: mount.guest.to_string(),
                host: mount.host.clone(),
                source,
            })
        };
        mounts.iter().map(open).collect()
    }

    /// The identities of the closed directories, at most [`CLOSED_HOLDS`] old.
    fn closed_paths(&self, paths: &Arc<[PathBuf]>) -> ClosedPaths {
        let mut looked = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        match &*looked {
            Some(looked) if looked.at.elapsed() < CLOSED_HOLDS && looked.paths == *paths => {
                looked.closed.clone()
            }
            Some(_) | None => {
                let closed = ClosedPaths::from_paths(paths);
                let (at, paths) = (Instant::now(), Arc::clone(paths));
                *looked = Some(ClosedState { at, paths, closed: closed.clone() });
                closed
            }
        }
    }

    /// Opens one mount without an overlay, or returns the shared one if its path still leads to it.
    fn open_one(
        &self,
        mount: &Mount,
        work: &Arc<[PathBuf]>,
        closed: &ClosedPaths,
        written: &Arc<[PathBuf]>,
    ) -> io::Result<Arc<HeldMount>> {
        let Mount { guest, host, access } = mount.clone();
        let key = (guest, host, access, Arc::clone(work), closed.clone(), Arc::clone(written));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = open.get(&key).and_then(Weak::upgrade) {
            let now = fs::metadata(&mount.host)?;
            if held.identity == (now.dev(), now.ino()) {
                return Ok(held);
            }
        }
        let held = HeldMount::from_mount(OpenMount::open(mount, work, closed)?, mount, written)?;
        if open.len() >= SWEEP_AT {
            open.retain(|_, held| held.strong_count() > 0);
        }
        open.insert(key, Arc::downgrade(&held));
        Ok(held)
    }
}

impl HeldMount {
    fn from_mount(mount: OpenMount, named: &Mount, written: &[PathBuf]) -> io::Result<Arc<Self>> {
        let mount = way::check_mount(&named.host, mount, written)?;
        let identity = mount.dir_identity()?;
        Ok(Arc::new(Self { mount, identity }))
    }
}

impl std::fmt::Debug for MountTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mounts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A mount opened without written directories was not checked for links in them.
    #[test]
    fn a_mount_is_shared_only_with_who_has_the_same_written_directories() {
        let temporary = tempfile::tempdir().unwrap();
        let top = temporary.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("work")).unwrap();
        fs::create_dir_all(top.join("secret")).unwrap();
        symlink(top.join("secret"), top.join("work/out")).unwrap();
        let guest = GuestPath::new("/out").unwrap();
        let mount = |host: &str| {
            let host = top.join(host);
            [Mount { guest: guest.clone(), host, access: MountAccess::Read }]
        };
        let (nothing, written): (Arc<[PathBuf]>, Arc<[PathBuf]>) =
            (Arc::default(), [top.join("work")].into());
        let mounts = MountTable::default();
        let open = |host: &str, written: &Arc<[PathBuf]>| {
            mounts.open_all(&mount(host), &BTreeMap::new(), &nothing, &nothing, written)
        };
        let first = open("work/out", &nothing).unwrap();
        let Err(JarError::Mount { source, .. }) = open("work/out", &written) else {
            panic!("it was taken over, unchecked");
        };
        assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
        // Jars with equal written directories share a mount.
        assert!(Arc::ptr_eq(&first[0], &open("work/out", &nothing).unwrap()[0]));
        let fine = open("secret", &written).unwrap();
        assert!(Arc::ptr_eq(&fine[0], &open("secret", &written).unwrap()[0]));
    }
}
