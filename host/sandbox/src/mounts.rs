//! Open directories, shared between the stores and jars that mount the same one: ten
//! thousand jars over one workspace hold one descriptor.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use belljar_policy::{Access, GuestPath, Mount};

use crate::error::JarError;
use crate::files::OpenMount;

/// Entries before those without a user are swept out.
const SWEEP_AT: usize = 256;

/// Directories that are open now.
#[derive(Default)]
pub(crate) struct Mounts(Mutex<HashMap<Key, Weak<Held>>>);

type Key = (GuestPath, PathBuf, Access);

/// One open directory.
pub(crate) struct Held {
    pub(crate) mount: OpenMount,
    identity: (u64, u64),
}

impl Mounts {
    /// Opens each mount, or shares it with who has it open already. A path that means
    /// another directory than before is opened anew.
    pub(crate) fn open(&self, mounts: &[Mount]) -> Result<Vec<Arc<Held>>, JarError> {
        let open = |mount: &Mount| {
            self.open_one(mount).map_err(|source| JarError::Mount {
                guest: mount.guest.to_string(),
                host: mount.host.clone(),
                source,
            })
        };
        mounts.iter().map(open).collect()
    }

    fn open_one(&self, mount: &Mount) -> io::Result<Arc<Held>> {
        let key = (mount.guest.clone(), mount.host.clone(), mount.access);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = open.get(&key).and_then(Weak::upgrade) {
            let now = fs::metadata(&mount.host)?;
            if held.identity == (now.dev(), now.ino()) {
                return Ok(held);
            }
        }
        let opened = OpenMount::open(mount)?;
        let identity = opened.identity()?;
        let held = Arc::new(Held { mount: opened, identity });
        if open.len() >= SWEEP_AT {
            open.retain(|_, held| held.strong_count() > 0);
        }
        open.insert(key, Arc::downgrade(&held));
        Ok(held)
    }
}

impl std::fmt::Debug for Mounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mounts")
    }
}
