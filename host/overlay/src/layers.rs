//! The overlays of one session: a layer for each overlaid directory.
//!
//! ```text
//! DIR/0/mount   where agents see the directory and its inode, a line; then its path
//! DIR/0/held    what the layer holds, as long as nobody has it open
//! DIR/0/layer   what was changed
//! DIR/0/journal what was applied of it, and how it was before
//! DIR/forks/CHILD/0  the same layer as a subagent has it that works in its own, until it concludes
//! ```
//!
//! Worktrees are among the forks too. Worktrees of a dead process are found by the process that resumes the
//! turn; the next turn removes them.
//!
//! A directory has one layer in a session: all agents see the same files. Changes stay from turn to turn; an
//! unchanged layer is removed.

mod held;
mod told;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{Digest, Overlay, OverlayError, OverlayFork, OverlayPool, OverlayQuota};
use belljar_policy::{GuestPath, Mount, MountAccess, Rights, ShownPath as _};
use belljar_work::{StopSignal, WorkKind};

pub use self::held::held_in;
use self::held::{copies_hold, copy_holds, count_bytes};
pub use self::told::CopyEnding;
use self::told::CopyResult;

const MOUNT: &str = "mount";
const HELD: &str = "held";
const LAYER: &str = "layer";
const JOURNAL: &str = "journal";
const FORKS: &str = "forks";

const CLOSE_OVERLAYS: WorkKind =
    WorkKind { name: "closing the overlays of a session", time: Duration::from_secs(600) };

/// Layers of one session: more directories than any grant names.
const MAX_LAYERS: usize = 256;

/// The overlays of one session, shared by clones.
#[derive(Clone)]
pub struct SessionLayers(Arc<LayersState>);

struct LayersState {
    dir: PathBuf,
    pool: OverlayPool,
    open: Mutex<BTreeMap<PathBuf, OverlayLayer>>,
    /// The original layers, if these layers are a subagent's copies.
    parent: Option<SessionLayers>,
    forks: Mutex<BTreeMap<PathBuf, (GuestPath, OverlayFork)>>,
    /// The reason why a copy was not made before the subagent began; no retry follows.
    failed: Mutex<Option<String>>,
}

/// A directory with the changes to it.
#[derive(Debug, Clone)]
pub struct OverlayLayer {
    /// The place of the directory for agents, for example `/workspace`.
    pub guest: GuestPath,
    /// The directory.
    pub lower: PathBuf,
    /// The changes of the directory.
    pub overlay: Overlay,
    /// The journal of applies, beside the layer and removed with it.
    pub journal: PathBuf,
    /// Bytes of the journal at opening, counted by the pool.
    journaled: u64,
    /// The layer's number in the session.
    number: usize,
}

/// The reason why there is no overlay.
#[derive(Debug, thiserror::Error)]
pub enum LayersError {
    /// A file or directory of belljar's own.
    #[error("failed to {what} `{}`: {source}", path.to_shown())]
    Io {
        /// The failed step.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause of the failure.
        source: io::Error,
    },
    /// The overlay fails.
    #[error(transparent)]
    Overlay(#[from] OverlayError),
    /// The path now belongs to another directory.
    #[error("`{}` is another directory than the one that was changed", .0.to_shown())]
    Moved(PathBuf),
    /// The session has an overlay of too many directories.
    #[error("a session has at most {MAX_LAYERS} overlays")]
    TooMany,
    /// The overlay was not copied before the subagent began.
    #[error("the overlay was not copied for the subagent: {0}")]
    NotCopied(String),
}

impl SessionLayers {
    /// The layers in a directory, which is made with the first layer. The directory must be private to the
    /// host, used by no other process meanwhile, and already counted in `pool`.
    pub fn in_directory(dir: PathBuf, pool: OverlayPool) -> Self {
        Self::with_parent(dir, pool, None)
    }

    fn with_parent(dir: PathBuf, pool: OverlayPool, parent: Option<Self>) -> Self {
        let (open, forks, failed) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(LayersState { dir, pool, open, parent, forks, failed }))
    }

    /// Separate layers for a subagent. Each layer is copied from this one at the subagent's first request.
    /// After a restart, the same address finds the copies again.
    pub fn fork_layers(&self, address: &str) -> Self {
        let name: String =
            Digest::hash_bytes(address.as_bytes()).to_string().chars().take(32).collect();
        let dir = self.0.dir.join(FORKS).join(name);
        Self::with_parent(dir, self.0.pool.clone(), Some(self.clone()))
    }

    /// Returns whether these layers are a copy, for a subagent or a worktree.
    pub fn is_copy(&self) -> bool {
        self.0.parent.is_some()
    }

    /// Notes that copying failed, so that no further attempt is made. Copying is slow, and a later request
    /// would copy on an async worker.
    pub fn not_copied(&self, why: &str) {
        *self.0.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
    }

    /// Opens or makes the copy of the parent's overlay for one mount.
    fn fork_overlay(
        &self,
        parent: &Self,
        mount: &Mount,
        stop: &StopSignal,
    ) -> Result<Overlay, LayersError> {
        let mut forks = self.lock_forks();
        if let Some((_, fork)) = forks.get(&mount.host) {
            return Ok(fork.overlay().clone());
        }
        if let Some(why) = &*self.0.failed.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(LayersError::NotCopied(why.clone()));
        }
        let of = parent.overlay_until(mount, stop)?;
        let fork = of.fork_until(self.0.dir.join(parent.layer_number(mount).to_string()), stop)?;
        let overlay = fork.overlay().clone();
        forks.insert(mount.host.clone(), (mount.guest.clone(), fork));
        Ok(overlay)
    }

    /// The number of an open layer.
    fn layer_number(&self, mount: &Mount) -> usize {
        match &self.0.parent {
            Some(parent) => parent.layer_number(mount),
            None => {
                let open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.get(&mount.host).map_or(0, |layer| layer.number)
            }
        }
    }

    /// Ends copied layers: their changes are merged into the originals, or dropped. All overlays of the
    /// copies must be closed. A layer that cannot be merged stays, with its unmerged changes.
    pub fn end(&self, merge: bool, name: &str) -> Vec<CopyEnding> {
        let Some(parent) = &self.0.parent else { return Vec::new() };
        let mut told = Vec::new();
        for (host, (guest, fork)) in std::mem::take(&mut *self.lock_forks()) {
            let mount = Mount { guest: guest.clone(), host, access: MountAccess::Overlay };
            let ended = if merge {
                match parent.overlay(&mount) {
                    Ok(of) => fork
                        .merge_into(&of, name)
                        .map(|merged| CopyResult::Merged(Box::new(merged))),
                    Err(error) => Err(io::Error::other(error)),
                }
            } else {
                let changed =
                    fork.changed_paths(1).map_or(true, |(changed, _)| !changed.is_empty());
                fork.discard().map(|()| CopyResult::Dropped { changed })
            };
            let ended = ended.unwrap_or_else(|error| {
                tracing::warn!(target: "belljar::agent", "the overlay of a copy at {guest}: {error}");
                CopyResult::Failed
            });
            told.push(CopyEnding { guest, ended });
        }
        if told.iter().any(CopyEnding::is_failed) {
            return told;
        }
        self.discard_layers();
        told
    }

    /// Removes copied layers, with all their changes.
    pub fn discard_layers(&self) {
        if self.0.parent.is_none() {
            return;
        }
        for (_, fork) in std::mem::take(&mut *self.lock_forks()).into_values() {
            let _ = fork.discard();
        }
        self.remove_copies(&self.0.dir, &copy_holds(&self.0.dir));
        // Removed only if empty.
        let _ = self.0.dir.parent().map(fs::remove_dir);
    }

    /// Removes the copies that subagents and worktrees of an abandoned turn left. No copy may be open.
    pub fn forget_copies(&self) {
        let dir = self.0.dir.join(FORKS);
        self.remove_copies(&dir, &copies_hold(&self.0.dir));
    }

    fn remove_copies(&self, dir: &Path, held: &OverlayQuota) {
        if fs::remove_dir_all(dir).is_ok() {
            self.0.pool.subtract_held(*held);
        }
    }

    /// Returns whether a copied layer is on disk.
    pub fn is_made(&self) -> bool {
        let entries = fs::read_dir(&self.0.dir).into_iter().flatten().flatten();
        // A copy that is half made or half removed has another name.
        let is_number = |name: &OsStr| name.to_str().is_some_and(|it| it.parse::<usize>().is_ok());
        entries.into_iter().any(|entry| is_number(&entry.file_name()))
    }

    /// The paths at which open copied layers differ from the originals, as agents see them: at most `most`
    /// paths, and the number of further paths.
    pub fn changed_paths(&self, most: usize) -> Result<(Vec<PathBuf>, u64), String> {
        let (mut all, mut further) = (Vec::new(), 0);
        for (guest, fork) in self.lock_forks().values() {
            let left = most.saturating_sub(all.len());
            let (changed, more) = fork.changed_paths(left).map_err(|error| error.to_string())?;
            all.extend(changed.iter().map(|path| Path::new(guest.as_str()).join(path)));
            further += more;
        }
        Ok((all, further))
    }

    fn lock_forks(&self) -> MutexGuard<'_, BTreeMap<PathBuf, (GuestPath, OverlayFork)>> {
        self.0.forks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the overlay of each overlay mount in these rights is open.
    pub fn are_open(&self, rights: &Rights) -> bool {
        let mut mounts =
            rights.mounts().iter().filter(|mount| mount.access == MountAccess::Overlay);
        let open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        mounts.all(|mount| open.contains_key(&mount.host))
    }

    /// The overlay of a mount's directory: opened already, on disk, or new.
    ///
    /// # Errors
    ///
    /// When the layer cannot be made or opened.
    pub fn overlay(&self, mount: &Mount) -> Result<Overlay, LayersError> {
        self.overlay_until(mount, &StopSignal::never_raised())
    }

    /// Opens the overlay of a mount, and makes the layer if missing. Ends early once `stop` is raised.
    fn overlay_until(&self, mount: &Mount, stop: &StopSignal) -> Result<Overlay, LayersError> {
        if let Some(parent) = &self.0.parent {
            return self.fork_overlay(parent, mount, stop);
        }
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(layer) = open.get(&mount.host) {
            return Ok(layer.overlay.clone());
        }
        let known = list_stored_layers(&self.0.dir)?;
        let layer = match known.into_iter().find(|known| known.lower == mount.host) {
            Some(known) => self.open_layer(known, stop)?,
            None => self.open_layer(
                self.create_layer(&self::list_stored_layers(&self.0.dir)?, mount)?,
                stop,
            )?,
        };
        let overlay = layer.overlay.clone();
        open.insert(mount.host.clone(), layer);
        Ok(overlay)
    }

    /// Returns all layers of the session, in the order of making.
    ///
    /// # Errors
    ///
    /// When a layer cannot be opened.
    pub fn present(&self) -> Result<Vec<OverlayLayer>, LayersError> {
        self.present_until(&StopSignal::never_raised())
    }

    /// As [`SessionLayers::present`], but a raised signal stops the opening of layers.
    ///
    /// # Errors
    ///
    /// As [`SessionLayers::present`], and when the signal was raised.
    pub fn present_until(&self, stop: &StopSignal) -> Result<Vec<OverlayLayer>, LayersError> {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        for known in list_stored_layers(&self.0.dir)? {
            if let Entry::Vacant(place) = open.entry(known.lower.clone()) {
                let layer = self.open_layer(known, stop)?;
                place.insert(layer);
            }
        }
        let mut layers: Vec<OverlayLayer> = open.values().cloned().collect();
        layers.sort_by_key(|layer| layer.number);
        Ok(layers)
    }

    /// Returns whether any open layer has changes.
    pub fn has_changes(&self) -> bool {
        let open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.values().any(|layer| layer.overlay.used_quota().files > 0)
    }

    /// Closes all layers, so that other processes may open them. Empty layers are removed. An overlay that is
    /// still in use stays open.
    pub fn close(&self) {
        self.0.close_layers();
    }

    /// Runs [`SessionLayers::close`] on a thread, because closing reads each changed file to its end for a digest:
    /// up to 64 files of 256 MiB an overlay. A close that has begun is completed, even when the caller stops
    /// waiting.
    pub async fn close_for(self, owner: &str) {
        if belljar_work::run_job(&CLOSE_OVERLAYS, owner, move |_| self.close()).await.is_err() {
            tracing::warn!(target: "belljar::agent", "closing overlays took too long, or was not begun");
        }
    }

    /// As [`SessionLayers::forget_copies`], on a thread, because the copies may have 100,000 files.
    pub async fn forget_copies_for(&self, owner: &str) {
        if !self.0.dir.join(FORKS).exists() {
            return;
        }
        let copies = self.clone();
        let _ =
            belljar_work::run_job(&CLOSE_OVERLAYS, owner, move |_| copies.forget_copies()).await;
    }

    /// Opens the overlay of each overlay mount in these rights.
    pub fn open_overlays(
        &self,
        rights: &Rights,
    ) -> Result<BTreeMap<GuestPath, Overlay>, LayersError> {
        self.open_overlays_until(rights, &StopSignal::never_raised())
    }

    /// As [`SessionLayers::open_overlays`], but a raised signal stops the copying with an error.
    pub fn open_overlays_until(
        &self,
        rights: &Rights,
        stop: &StopSignal,
    ) -> Result<BTreeMap<GuestPath, Overlay>, LayersError> {
        let mounts = rights.mounts().iter().filter(|mount| mount.access == MountAccess::Overlay);
        let overlay = |mount: &Mount| self.overlay_until(mount, stop);
        mounts.map(|mount| Ok((mount.guest.clone(), overlay(mount)?))).collect()
    }

    /// Makes a new layer for a mount.
    fn create_layer(
        &self,
        known: &[StoredLayer],
        mount: &Mount,
    ) -> Result<StoredLayer, LayersError> {
        let number = known.iter().map(|known| known.number + 1).max().unwrap_or(0);
        if number >= MAX_LAYERS {
            return Err(LayersError::TooMany);
        }
        let inode = fs::metadata(&mount.host).map_err(map_io_error("look at", &mount.host))?.ino();
        let dir = self.0.dir.join(number.to_string());
        create_private(&dir).map_err(map_io_error("make", &dir))?;
        let mut text = format!("{}\t{inode}\n", mount.guest).into_bytes();
        text.extend(mount.host.as_os_str().as_bytes());
        let path = dir.join(MOUNT);
        write_atomically(&path, &text).map_err(map_io_error("write", &path))?;
        Ok(StoredLayer { number, guest: mount.guest.clone(), inode, lower: mount.host.clone() })
    }

    /// Opens a stored layer.
    fn open_layer(
        &self,
        known: StoredLayer,
        stop: &StopSignal,
    ) -> Result<OverlayLayer, LayersError> {
        let StoredLayer { number, guest, inode, lower } = known;
        let dir = self.0.dir.join(number.to_string());
        let overlay = Overlay::open_in_until(&lower, dir.join(LAYER), &self.0.pool, stop)?;
        // The open handle is asked, because only this handle is read and applied to.
        let opened = overlay.lower_dir().metadata().map_err(map_io_error("look at", &lower))?;
        if opened.ino() != inode {
            return Err(LayersError::Moved(lower));
        }
        // From now on the layer may grow, so its stored size is removed.
        let _ = fs::remove_file(dir.join(HELD));
        let journal = dir.join(JOURNAL);
        let journaled = count_bytes(&journal);
        Ok(OverlayLayer { guest, lower, overlay, journal, journaled, number })
    }
}

impl LayersState {
    /// Closes all open layers, stores their sizes and removes unchanged layers.
    fn close_layers(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for layer in std::mem::take(&mut *open).into_values() {
            let dir = self.dir.join(layer.number.to_string());
            layer.overlay.finish_digests();
            self.pool.add_held(OverlayQuota { bytes: count_bytes(&layer.journal), files: 0 });
            self.pool.subtract_held(OverlayQuota { bytes: layer.journaled, files: 0 });
            let held = layer.overlay.used_quota();
            if held.files == 0 && held.bytes == 0 && !layer.journal.exists() {
                // The remaining overlay has no changes and no applied ones.
                let _ = fs::remove_dir_all(&dir);
            } else {
                // Without it the layer is opened to be counted.
                let bytes = held.bytes.saturating_add(layer.overlay.base_bytes());
                let _ =
                    write_atomically(&dir.join(HELD), format!("{bytes} {}", held.files).as_bytes());
            }
        }
        // Removed only if empty.
        let _ = fs::remove_dir(&self.dir);
    }
}

impl Drop for LayersState {
    fn drop(&mut self) {
        self.close_layers();
    }
}

impl std::fmt::Debug for SessionLayers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionLayers").field("dir", &self.0.dir).finish_non_exhaustive()
    }
}

/// A layer on disk.
#[derive(Debug, PartialEq, Eq)]
struct StoredLayer {
    number: usize,
    guest: GuestPath,
    /// The inode of the directory: a new directory at the same path is another one.
    inode: u64,
    lower: PathBuf,
}

/// The layers on disk, by number. A layer without a mount was never opened.
fn list_stored_layers(dir: &Path) -> Result<Vec<StoredLayer>, LayersError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(map_io_error("read", dir)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(map_io_error("read", dir))?;
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let path = entry.path().join(MOUNT);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(map_io_error("read", &path)(error)),
        };
        if let Some((guest, inode, lower)) = parse_mount(&text) {
            found.push(StoredLayer { number, guest, inode, lower });
        }
    }
    found.sort_by_key(|known| known.number);
    Ok(found)
}

/// Parses the file `mount` of a layer: guest path, inode, host path.
fn parse_mount(text: &[u8]) -> Option<(GuestPath, u64, PathBuf)> {
    let at = text.iter().position(|byte| *byte == b'\n')?;
    let (first, lower) = text.split_at(at);
    let (guest, inode) = std::str::from_utf8(first).ok()?.split_once('\t')?;
    let lower = PathBuf::from(OsStr::from_bytes(lower.get(1..)?));
    Some((GuestPath::new(guest).ok()?, inode.parse().ok()?, lower))
}

fn map_io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LayersError {
    let path = path.to_owned();
    move |source| LayersError::Io { what, path, source }
}

fn create_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Writes a file atomically: a reader sees the whole new content or the whole old content.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let next = path.with_extension("next");
    fs::File::create(&next)?.write_all(bytes)?;
    fs::rename(next, path)
}

#[cfg(test)]
mod tests;
