//! Overlays: a directory appears to be changed, but the changes are stored elsewhere.
//!
//! An [`Overlay`] has a lower directory, which it only reads, and a layer: a private directory with all
//! changes, which are files of content named by number, and an index that says which names refer to which
//! content. A name a guest chooses never becomes a name in the layer, so guests can neither reach nor forge
//! the layer's files. For example, when a guest writes `a.txt`, the content becomes the file `7` of the
//! layer, and the index gets a record `a.txt = 7`.
//!
//! - [`tree`] is the index in memory, [`record`] are its records, [`index`] is the file on disk;
//! - [`lower_dir`] and [`layer`] are the two directories;
//! - [`lock_view`] looks up names in both, [`acts`] changes them, [`changes`] lists the changes for the
//!   host;
//! - [`bases`] stores original texts for merges, [`host`] is for the code that applies changes;
//! - [`veil`] finds out whether the layer is inside the lower directory, and in which directory there;
//! - [`fork`] is an overlay that begins as a copy of another and is merged back;
//! - [`room`] is the quota, [`state`] what all clones of an overlay share.
//!
//! A content is written before the record that refers to it, and removed after the record that removes its
//! last name. A change is acknowledged when its record is written. If a process is killed in between,
//! contents without a name remain; they are removed when the overlay is opened next.
//!
//! Permissions in the lower directory that forbid writing do not count, because a write changes the layer
//! only. A lower file with several hard links can be written too: it is copied first, and its other names
//! keep the old content.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use belljar_policy::ShownPath as _;
use belljar_work::StopSignal;

use super::bases::BaseTexts;
use super::digests::DigestQueue;
use super::index::IndexFile;
use super::layer::LayerDir;
use super::lower::LowerRoot;
use super::room::{OverlayPool, OverlayQuota, OverlayRoom, UpperFile};
use super::state::{OverlayShared, OverlayState};
use super::tree::IndexTree;
use super::veil::{self, DirRelation};
use super::view::OverlayView;

/// A directory that is only read, with a layer that stores all changes.
///
/// Clones share their state: all jars with clones of an overlay see the same files. A layer can be open once
/// only; another attempt is refused, in the current process and in others.
#[derive(Clone)]
pub struct Overlay {
    pub(crate) shared: Arc<OverlayShared>,
}

/// Why an overlay cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the overlay of `{}` in `{}` cannot be opened: {source}", lower.to_shown(), layer.to_shown())]
pub struct OverlayError {
    /// The lower directory.
    pub lower: PathBuf,
    /// The directory of the layer.
    pub layer: PathBuf,
    /// The cause.
    pub source: io::Error,
}

impl Overlay {
    /// Opens the overlay of the directory `lower`, with its changes in `layer`. The layer is made if it does
    /// not exist, but not its parent directories. Only the host may write there, because other programs'
    /// writes into it are not checked.
    ///
    /// INV-179: a layer inside `lower` has to be in a directory with a protected name, for example
    /// `.belljar`, or in that of [`OverlayPool::with_hidden`]. The overlay then hides that directory.
    ///
    /// # Errors
    ///
    /// A directory cannot be used, the layer is elsewhere inside `lower`, `lower` is inside the layer, the
    /// layer is open already, or its index is damaged.
    pub fn open(
        lower: impl AsRef<Path>,
        layer: impl AsRef<Path>,
        quota: OverlayQuota,
    ) -> Result<Self, OverlayError> {
        Self::open_with(lower.as_ref(), layer.as_ref(), (quota, None), &StopSignal::never_raised())
    }

    /// Opens an overlay like [`Overlay::open`], with the shared quota of a pool, which must have counted the
    /// layer's present content.
    ///
    /// # Errors
    ///
    /// The errors of [`Overlay::open`].
    pub fn open_in(
        lower: impl AsRef<Path>,
        layer: impl AsRef<Path>,
        pool: &OverlayPool,
    ) -> Result<Self, OverlayError> {
        Self::open_in_until(lower, layer, pool, &StopSignal::never_raised())
    }

    /// Like [`Overlay::open_in`], but stops between two records of the index when `stop` is raised. The
    /// layer is not changed then.
    ///
    /// # Errors
    ///
    /// The errors of [`Overlay::open`]; also, `stop` was raised.
    pub fn open_in_until(
        lower: impl AsRef<Path>,
        layer: impl AsRef<Path>,
        pool: &OverlayPool,
        stop: &StopSignal,
    ) -> Result<Self, OverlayError> {
        let bounds = (pool.quota(), Some(pool.clone()));
        Self::open_with(lower.as_ref(), layer.as_ref(), bounds, stop)
    }

    /// As [`Overlay::open`], with a shared quota and a stop signal.
    pub(crate) fn open_with(
        lower: &Path,
        layer: &Path,
        (quota, pool): (OverlayQuota, Option<OverlayPool>),
        stop: &StopSignal,
    ) -> Result<Self, OverlayError> {
        let opened = OverlayShared::open(lower, layer, OverlayRoom::new(quota, pool), stop);
        let shared = opened.map_err(|source| {
            let (lower, layer) = (lower.to_owned(), layer.to_owned());
            OverlayError { lower, layer, source }
        })?;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// How much of its quota the layer uses: bytes and files.
    pub fn used_quota(&self) -> OverlayQuota {
        let files = self.shared.lock_state().tree.entry_count();
        OverlayQuota { bytes: self.shared.room.used_bytes(), files }
    }

    /// The bytes of the texts stored for merges: at most a quarter of the quota, in addition to it.
    pub fn base_bytes(&self) -> u64 {
        self.shared.bases.used_bytes()
    }

    /// Waits for digests and texts made in the background, and stores them. Call this before the directory
    /// may change, because a file changed before its text was stored cannot be merged.
    pub fn finish_digests(&self) {
        self.shared.digests.wait_idle();
        self.lock_view().note_digests();
    }

    /// The open lower directory.
    pub fn lower_dir(&self) -> &Arc<File> {
        self.shared.lower.root_handle()
    }

    /// The path where the lower directory was opened.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Locks the overlay for one operation; other operations wait.
    pub fn lock_view(&self) -> OverlayView<'_> {
        OverlayView::new(&self.shared)
    }
}

impl std::fmt::Debug for Overlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overlay").field("lower", &self.shared.path).finish_non_exhaustive()
    }
}

impl OverlayShared {
    /// Opens the lower directory and the layer, and rebuilds the index tree from the records.
    fn open(
        path: &Path,
        layer: &Path,
        room: Arc<OverlayRoom>,
        stop: &StopSignal,
    ) -> io::Result<Self> {
        let mut lower = LowerRoot::open(path)?;
        let outside = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
        // Checked before anything is made there.
        let named = std::path::absolute(layer)?;
        let place = File::open(&named).or_else(|_| match named.parent() {
            Some(above) => File::open(above),
            None => Err(io::ErrorKind::NotFound.into()),
        })?;
        let hidden = room.hidden_dir().and_then(|path| std::fs::metadata(path).ok());
        let hidden = hidden.map(|stat| (stat.dev(), stat.ino()));
        let between = veil::find_relation(lower.root_handle(), &place, hidden)?;
        match between {
            DirRelation::Outside => {}
            DirRelation::Below(Some(veiled)) => lower.hide_directory(veiled),
            DirRelation::Below(None) => {
                let why = "the layer lies in the directory that it would change, and in no directory \
                           there with a protected name or of the host's own";
                return Err(outside(why));
            }
        }
        let layer = LayerDir::open(layer)?;
        let opened = File::from(layer.dir_fd().try_clone_to_owned()?);
        if veil::find_relation(lower.root_handle(), &opened, hidden)? != between {
            return Err(outside("the layer was moved meanwhile"));
        }
        if veil::lies_in(lower.root_handle().as_fd(), layer.dir_fd())? {
            return Err(outside("the directory lies in its own layer"));
        }
        let (index, records) = IndexFile::open(layer.dir_fd().try_clone_to_owned()?, stop)?;
        let mut tree = IndexTree::new();
        for record in &records {
            stop.check_raised().map_err(io::Error::other)?;
            tree.apply_record(record).map_err(|_| misfit_error())?;
        }
        let bases = Arc::new(BaseTexts::open(layer.dir_fd(), &room)?);
        bases.retain_wanted(&tree.named_digests());
        let mut uppers = HashMap::new();
        if let Err(error) = adopt_contents((&layer, &room), &mut tree, &mut uppers, stop) {
            // If opening fails, the layer stays on disk and in its pool.
            room.close_overlay(0);
            return Err(error);
        }
        room.opens_with(tree.entry_count());
        let state = OverlayState { tree, index, uppers, readers: HashMap::new(), live_readers: 0 };
        Ok(Self {
            lower,
            path: path.to_owned(),
            layer,
            room,
            state: Mutex::new(state),
            digests: DigestQueue::new(Arc::clone(&bases)),
            bases,
        })
    }
}

impl Drop for OverlayShared {
    fn drop(&mut self) {
        // The thread that makes digests works in the layer, which may be opened anew at once.
        self.digests.wait_idle();
        let files = self.lock_state().tree.entry_count();
        self.room.close_overlay(files);
    }
}

fn misfit_error() -> io::Error {
    let why = "the index of the overlay contradicts itself";
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// At opening: opens each content file the index names, and removes each content file it does not name.
fn adopt_contents(
    (layer, room): (&LayerDir, &Arc<OverlayRoom>),
    tree: &mut IndexTree,
    uppers: &mut HashMap<u64, Arc<UpperFile>>,
    stop: &StopSignal,
) -> io::Result<()> {
    for id in layer.content_ids()? {
        stop.check_raised().map_err(io::Error::other)?;
        match tree.find_file(id).filter(|file| file.record.copied) {
            Some(file) => {
                let origin = file.record.origin.as_ref();
                let identity = origin.map(|origin| (origin.seen.device, origin.seen.inode));
                let upper = UpperFile::new(room, id, identity);
                upper.count_existing(u64::try_from(layer.stat_content(id)?.st_size).unwrap_or(0));
                uppers.insert(id, Arc::new(upper));
            }
            None => layer.remove_content(id),
        }
        tree.reserve_ids(id);
    }
    let lost = tree.iter_files().find(|(id, file)| file.record.copied && !uppers.contains_key(id));
    match lost {
        Some((id, _)) => {
            let why = format!("the content of file {id:x} is missing in the layer");
            Err(io::Error::new(io::ErrorKind::InvalidData, why))
        }
        None => Ok(()),
    }
}
