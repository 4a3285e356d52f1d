//! The quota of an overlay, and the counts of the bytes and files an overlay uses.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes and files of an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverlayQuota {
    /// The sum of the lengths of all files: a hole in a sparse file counts like data. Default: 2 GiB.
    pub bytes: u64,
    /// The number of files, directories, and hidden or moved names. Default: 100,000.
    pub files: u64,
}

impl Default for OverlayQuota {
    fn default() -> Self {
        Self { bytes: 2 << 30, files: 100_000 }
    }
}

/// The shared quota of several overlays, for example of one tenant. Clones share the counts. A closed overlay
/// counts until [`OverlayPool::subtract_held`] reports its removal.
#[derive(Debug, Clone)]
pub struct OverlayPool(Arc<PoolState>, Option<Arc<Path>>);

#[derive(Debug)]
struct PoolState {
    quota: OverlayQuota,
    bytes: AtomicU64,
    files: AtomicU64,
}

/// The quota and byte count of an overlay.
#[derive(Debug)]
pub(crate) struct OverlayRoom {
    quota: OverlayQuota,
    used: AtomicU64,
    pool: Option<OverlayPool>,
    /// The overlay's file count, as last added to the count of the pool.
    told: AtomicU64,
    /// Whether the overlay is closing. From then on, no bytes are released: the files stay on disk and stay
    /// counted.
    closing: AtomicBool,
}

/// The error of a used-up quota, with a message.
#[derive(Debug)]
pub struct QuotaFull(pub String);

impl OverlayPool {
    /// A pool whose overlays already use `held` bytes and files on disk.
    pub fn new(quota: OverlayQuota, held: OverlayQuota) -> Self {
        let (bytes, files) = (AtomicU64::new(held.bytes), AtomicU64::new(held.files));
        Self(Arc::new(PoolState { quota, bytes, files }), None)
    }

    /// Names a directory of the host, the parent of the layers, that may be inside lower directories. An
    /// overlay whose layer is in the named directory hides the whole directory from guests. Default: no
    /// directory.
    #[must_use]
    pub fn with_hidden(self, directory: impl Into<PathBuf>) -> Self {
        Self(self.0, Some(directory.into().into()))
    }

    /// The quota for the sum of all overlays of the pool.
    pub fn quota(&self) -> OverlayQuota {
        self.0.quota
    }

    /// The bytes and files all overlays of the pool use now.
    pub fn held_quota(&self) -> OverlayQuota {
        let bytes = self.0.bytes.load(Ordering::Relaxed);
        OverlayQuota { bytes, files: self.0.files.load(Ordering::Relaxed) }
    }

    /// Adds the use of files on disk that do not belong to an open overlay.
    pub fn add_held(&self, held: OverlayQuota) {
        self.0.bytes.fetch_add(held.bytes, Ordering::Relaxed);
        self.0.files.fetch_add(held.files, Ordering::Relaxed);
    }

    /// Subtracts the use of a removed overlay.
    pub fn subtract_held(&self, held: OverlayQuota) {
        subtract_saturating(&self.0.bytes, held.bytes);
        subtract_saturating(&self.0.files, held.files);
    }

    fn reserve_bytes(&self, bytes: u64) -> Result<(), QuotaFull> {
        reserve_within(&self.0.bytes, bytes, self.0.quota.bytes, "all overlays together hold")
    }
}

/// Reserves bytes of a quota; fails if the quota would be exceeded. `who` names the quota in the error.
fn reserve_within(used: &AtomicU64, bytes: u64, most: u64, who: &str) -> Result<(), QuotaFull> {
    let fits = |used: u64| used.checked_add(bytes).filter(|all| *all <= most);
    let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
    taken.map(drop).map_err(|used| {
        QuotaFull(format!("{bytes} more bytes: {who} {used} of at most {most} bytes"))
    })
}

fn subtract_saturating(from: &AtomicU64, amount: u64) {
    let less = |now: u64| Some(now.saturating_sub(amount));
    let _ = from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

impl OverlayRoom {
    pub(crate) fn new(quota: OverlayQuota, pool: Option<OverlayPool>) -> Arc<Self> {
        let (told, closing) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { quota, used: AtomicU64::new(0), pool, told, closing })
    }

    /// A second count in the same pool, with `1/part` of this overlay's byte quota and no files.
    pub(super) fn with_part(&self, part: u64) -> Arc<Self> {
        let quota = OverlayQuota { bytes: self.quota.bytes / part, files: 0 };
        Self::new(quota, self.pool.clone())
    }

    /// The directory to hide in an overlay whose layer is inside the directory: see
    /// [`OverlayPool::with_hidden`].
    pub(super) fn hidden_dir(&self) -> Option<&Path> {
        self.pool.as_ref().and_then(|pool| pool.1.as_deref())
    }

    /// Sets the file count when the overlay is opened. The pool has already counted these files.
    pub(crate) fn opens_with(&self, files: u64) {
        self.told.store(files, Ordering::Relaxed);
    }

    /// Checks that `more` files fit, if the overlay has `files` files now.
    pub(crate) fn admit_files(&self, files: u64, more: u64) -> Result<(), QuotaFull> {
        let most = self.quota.files;
        if files.saturating_add(more) > most {
            return Err(QuotaFull(format!("the overlay holds {files} of at most {most} files")));
        }
        let Some(OverlayPool(pool, _)) = &self.pool else { return Ok(()) };
        self.report_files(files);
        let (all, most) = (pool.files.load(Ordering::Relaxed), pool.quota.files);
        match all.saturating_add(more) > most {
            true => {
                Err(QuotaFull(format!("all overlays together have {all} of at most {most} files")))
            }
            false => Ok(()),
        }
    }

    /// Updates the file count of the pool.
    fn report_files(&self, files: u64) {
        let Some(OverlayPool(pool, _)) = &self.pool else { return };
        let told = self.told.swap(files, Ordering::Relaxed);
        pool.files.fetch_add(files.saturating_sub(told), Ordering::Relaxed);
        subtract_saturating(&pool.files, told.saturating_sub(files));
    }

    /// Marks the overlay as closing. The files stay counted in the pool.
    pub(crate) fn close_overlay(&self, files: u64) {
        self.report_files(files);
        self.closing.store(true, Ordering::Relaxed);
    }

    /// The quota and pool, for opening another overlay of the same directory.
    pub(crate) fn quota_and_pool(&self) -> (OverlayQuota, Option<OverlayPool>) {
        (self.quota, self.pool.clone())
    }

    /// Checks that the pool has room for a copy of this overlay.
    pub(crate) fn check_doubling(&self, files: u64) -> Result<(), QuotaFull> {
        let Some(pool) = &self.pool else { return Ok(()) };
        self.report_files(files);
        let (all, most) = (pool.0.files.load(Ordering::Relaxed), pool.0.quota.files);
        if all.saturating_add(files) > most {
            return Err(QuotaFull(format!(
                "all overlays together have {all} of at most {most} files"
            )));
        }
        let bytes = self.used_bytes();
        pool.reserve_bytes(bytes)?;
        subtract_saturating(&pool.0.bytes, bytes);
        Ok(())
    }

    /// Adds the overlay's use to the counts of the pool, which did not include the overlay before.
    pub(crate) fn join_pool(&self, files: u64) {
        let Some(OverlayPool(pool, _)) = &self.pool else { return };
        pool.bytes.fetch_add(self.used_bytes(), Ordering::Relaxed);
        self.told.store(0, Ordering::Relaxed);
        self.report_files(files);
    }

    /// Subtracts the overlay's use from the counts of the pool.
    pub(crate) fn leave_pool(&self, files: u64) {
        self.report_files(files);
        if let Some(pool) = &self.pool {
            pool.subtract_held(OverlayQuota { bytes: self.used_bytes(), files });
        }
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn reserve_bytes(&self, bytes: u64) -> Result<(), QuotaFull> {
        reserve_within(&self.used, bytes, self.quota.bytes, "the overlay holds")?;
        let Some(pool) = &self.pool else { return Ok(()) };
        pool.reserve_bytes(bytes).inspect_err(|_| subtract_saturating(&self.used, bytes))
    }

    /// Counts existing content without checking the quota; the pool has counted the content already.
    pub(super) fn count_existing(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts the bytes of a removed or shortened file from the counts of the overlay and its pool. Does
    /// nothing once the overlay is closing: the files of a closed overlay stay on disk.
    pub(super) fn release_bytes(&self, bytes: u64) {
        if self.closing.load(Ordering::Relaxed) {
            return;
        }
        subtract_saturating(&self.used, bytes);
        if let Some(OverlayPool(pool, _)) = &self.pool {
            subtract_saturating(&pool.bytes, bytes);
        }
    }
}

/// A file whose content is in the layer, with its counted length. Dropped when the file has no name and no
/// open handle; the bytes are then released.
#[derive(Debug)]
pub struct UpperFile {
    /// The number of the file in the layer.
    pub(crate) id: u64,
    /// The device and inode of the original lower file, which guests see as the identity of the file.
    pub(crate) identity: Option<(u64, u64)>,
    room: Arc<OverlayRoom>,
    /// The counted length in bytes.
    held: Mutex<u64>,
}

/// A lock on the counted length of a file.
#[derive(Debug)]
pub struct GrowthGuard<'a> {
    room: &'a OverlayRoom,
    /// The locked length in bytes.
    held: MutexGuard<'a, u64>,
}

impl UpperFile {
    /// An empty file.
    pub(crate) fn new(room: &Arc<OverlayRoom>, id: u64, identity: Option<(u64, u64)>) -> Self {
        Self { id, identity, room: Arc::clone(room), held: Mutex::new(0) }
    }

    /// Counts existing content without checking the quota.
    pub(super) fn count_existing(&self, bytes: u64) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.room.count_existing(bytes);
        *held = held.saturating_add(bytes);
    }

    /// Locks the length of the file.
    pub fn lock_length(&self) -> GrowthGuard<'_> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        GrowthGuard { room: &self.room, held }
    }
}

impl GrowthGuard<'_> {
    /// The counted length in bytes.
    pub fn length(&self) -> u64 {
        *self.held
    }

    /// Reserves bytes up to `length`, if that is more than before.
    pub fn reserve_length(&mut self, length: u64) -> Result<(), QuotaFull> {
        let more = length.saturating_sub(*self.held);
        self.room.reserve_bytes(more)?;
        *self.held += more;
        Ok(())
    }

    /// Releases the reserved bytes beyond the final length.
    pub fn settle_length(mut self, length: u64) {
        let back = self.held.saturating_sub(length);
        self.room.release_bytes(back);
        *self.held -= back;
    }
}

impl Drop for UpperFile {
    fn drop(&mut self) {
        let held = *self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.room.release_bytes(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_as_files_grow_and_given_back_with_the_file() {
        let room = OverlayRoom::new(OverlayQuota { bytes: 100, files: 1 }, None);
        let one = UpperFile::new(&room, 1, None);
        let two = UpperFile::new(&room, 2, None);
        one.lock_length().reserve_length(60).unwrap();
        assert!(two.lock_length().reserve_length(41).is_err());
        one.lock_length().reserve_length(30).unwrap();
        assert_eq!(room.used_bytes(), 60, "a shorter length is taken by settling alone");
        one.lock_length().settle_length(30);
        two.lock_length().reserve_length(70).unwrap();
        assert_eq!(room.used_bytes(), 100);
        drop(two);
        assert_eq!(room.used_bytes(), 30);
        assert!(one.lock_length().reserve_length(u64::MAX).is_err());
    }

    #[test]
    fn overlays_of_one_pool_share_what_it_admits_and_a_closed_one_still_counts() {
        let (wide, held) = (OverlayQuota::default(), OverlayQuota { bytes: 10, files: 1 });
        let pool = OverlayPool::new(OverlayQuota { bytes: 100, files: 5 }, held);
        let (a, b) = (
            OverlayRoom::new(wide, Some(pool.clone())),
            OverlayRoom::new(wide, Some(pool.clone())),
        );
        let one = UpperFile::new(&a, 1, None);
        let two = UpperFile::new(&b, 1, None);
        one.lock_length().reserve_length(60).unwrap();
        let full = two.lock_length().reserve_length(31).unwrap_err();
        assert!(full.0.contains("all overlays together hold 70 of at most 100"), "{}", full.0);
        assert_eq!(
            (b.used_bytes(), pool.held_quota().bytes),
            (0, 70),
            "what was refused counts nowhere"
        );
        a.admit_files(3, 1).unwrap();
        assert!(b.admit_files(1, 1).is_err() && b.admit_files(0, 1).is_ok());
        a.close_overlay(3);
        drop((one, a));
        assert_eq!(
            pool.held_quota(),
            OverlayQuota { bytes: 70, files: 4 },
            "it lies on disk still"
        );
        pool.subtract_held(OverlayQuota { bytes: 60, files: 3 });
        two.lock_length().reserve_length(90).unwrap();
        assert!(b.admit_files(4, 0).is_ok() && b.admit_files(4, 1).is_err());
    }
}
