//! The quota of an overlay, and the bytes that its files use.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limits of an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverlayQuota {
    /// Bytes of all its files, by length: a hole in a sparse file counts like data. Default: 2 GiB.
    pub bytes: u64,
    /// Files, directories, and names that are hidden or moved. Default: 100,000.
    pub files: u64,
}

impl Default for OverlayQuota {
    fn default() -> Self {
        Self { bytes: 2 << 30, files: 100_000 }
    }
}

/// The shared limit of several overlays, for example of one tenant. Clones share one pool. A closed overlay
/// counts until its removal is reported.
#[derive(Debug, Clone)]
pub struct OverlayPool(Arc<Pool>, Option<Arc<Path>>);

#[derive(Debug)]
struct Pool {
    quota: OverlayQuota,
    bytes: AtomicU64,
    files: AtomicU64,
}

/// The byte count of one overlay.
#[derive(Debug)]
pub(crate) struct Room {
    quota: OverlayQuota,
    used: AtomicU64,
    pool: Option<OverlayPool>,
    /// The file count that the pool has included.
    told: AtomicU64,
    /// Whether the overlay is closing: files closed from now on stay on disk and stay counted.
    closing: AtomicBool,
}

/// The quota is used up; holds the message.
#[derive(Debug)]
pub(crate) struct Full(pub(crate) String);

impl OverlayPool {
    /// A pool whose overlays already use `held` on disk.
    pub fn new(quota: OverlayQuota, held: OverlayQuota) -> Self {
        let (bytes, files) = (AtomicU64::new(held.bytes), AtomicU64::new(held.files));
        Self(Arc::new(Pool { quota, bytes, files }), None)
    }

    /// Names a directory of the host that may be inside lower directories, with the layers in it. An overlay
    /// whose layer is in the directory hides all of it. Default: no directory.
    #[must_use]
    pub fn hiding(self, directory: impl Into<PathBuf>) -> Self {
        Self(self.0, Some(directory.into().into()))
    }

    /// The limits of all overlays of the pool, summed.
    pub fn quota(&self) -> OverlayQuota {
        self.0.quota
    }

    /// The present use of all overlays of the pool, summed.
    pub fn held(&self) -> OverlayQuota {
        let bytes = self.0.bytes.load(Ordering::Relaxed);
        OverlayQuota { bytes, files: self.0.files.load(Ordering::Relaxed) }
    }

    /// Adds the use of files on disk that belong to no open overlay.
    pub fn added(&self, held: OverlayQuota) {
        self.0.bytes.fetch_add(held.bytes, Ordering::Relaxed);
        self.0.files.fetch_add(held.files, Ordering::Relaxed);
    }

    /// Subtracts the use of a removed overlay.
    pub fn removed(&self, held: OverlayQuota) {
        less(&self.0.bytes, held.bytes);
        less(&self.0.files, held.files);
    }

    fn take(&self, bytes: u64) -> Result<(), Full> {
        taken(&self.0.bytes, bytes, self.0.quota.bytes, "all overlays together hold")
    }
}

fn taken(used: &AtomicU64, bytes: u64, most: u64, who: &str) -> Result<(), Full> {
    let fits = |used: u64| used.checked_add(bytes).filter(|all| *all <= most);
    let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
    taken
        .map(drop)
        .map_err(|used| Full(format!("{bytes} more bytes: {who} {used} of at most {most} bytes")))
}

fn less(from: &AtomicU64, amount: u64) {
    let less = |now: u64| Some(now.saturating_sub(amount));
    let _ = from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

impl Room {
    pub(crate) fn new(quota: OverlayQuota, pool: Option<OverlayPool>) -> Arc<Self> {
        let (told, closing) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { quota, used: AtomicU64::new(0), pool, told, closing })
    }

    /// A separate room with `1/part` of the bytes, in the same pool.
    pub(super) fn part(&self, part: u64) -> Arc<Self> {
        let quota = OverlayQuota { bytes: self.quota.bytes / part, files: 0 };
        Self::new(quota, self.pool.clone())
    }

    /// The directory that is invisible through an overlay whose layer is in it.
    pub(super) fn hidden(&self) -> Option<&Path> {
        self.pool.as_ref().and_then(|pool| pool.1.as_deref())
    }

    /// Sets the file count at opening; the pool has counted these files.
    pub(crate) fn opens_with(&self, files: u64) {
        self.told.store(files, Ordering::Relaxed);
    }

    /// Checks that `more` files fit beside the overlay's present `files`.
    pub(crate) fn admit(&self, files: u64, more: u64) -> Result<(), Full> {
        let most = self.quota.files;
        if files.saturating_add(more) > most {
            return Err(Full(format!("the overlay holds {files} of at most {most} files")));
        }
        let Some(OverlayPool(pool, _)) = &self.pool else { return Ok(()) };
        self.tell(files);
        let (all, most) = (pool.files.load(Ordering::Relaxed), pool.quota.files);
        match all.saturating_add(more) > most {
            true => Err(Full(format!("all overlays together have {all} of at most {most} files"))),
            false => Ok(()),
        }
    }

    /// Updates the pool's file count.
    fn tell(&self, files: u64) {
        let Some(OverlayPool(pool, _)) = &self.pool else { return };
        let told = self.told.swap(files, Ordering::Relaxed);
        pool.files.fetch_add(files.saturating_sub(told), Ordering::Relaxed);
        less(&pool.files, told.saturating_sub(files));
    }

    /// Closes the overlay, whose files stay counted.
    pub(crate) fn close(&self, files: u64) {
        self.tell(files);
        self.closing.store(true, Ordering::Relaxed);
    }

    /// The quota and pool of this overlay, for opening another overlay of the same directory.
    pub(crate) fn bounds(&self) -> (OverlayQuota, Option<OverlayPool>) {
        (self.quota, self.pool.clone())
    }

    /// Checks that the pool has room for a second overlay of the same size.
    pub(crate) fn doubles(&self, files: u64) -> Result<(), Full> {
        let Some(pool) = &self.pool else { return Ok(()) };
        self.tell(files);
        let (all, most) = (pool.0.files.load(Ordering::Relaxed), pool.0.quota.files);
        if all.saturating_add(files) > most {
            return Err(Full(format!("all overlays together have {all} of at most {most} files")));
        }
        let bytes = self.used();
        pool.take(bytes)?;
        less(&pool.0.bytes, bytes);
        Ok(())
    }

    /// Adds the overlay to the counts of its pool, where it was not included before.
    pub(crate) fn joins(&self, files: u64) {
        let Some(OverlayPool(pool, _)) = &self.pool else { return };
        pool.bytes.fetch_add(self.used(), Ordering::Relaxed);
        self.told.store(0, Ordering::Relaxed);
        self.tell(files);
    }

    /// Removes the overlay from the counts of its pool.
    pub(crate) fn leaves(&self, files: u64) {
        self.tell(files);
        if let Some(pool) = &self.pool {
            pool.removed(OverlayQuota { bytes: self.used(), files });
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn take(&self, bytes: u64) -> Result<(), Full> {
        taken(&self.used, bytes, self.quota.bytes, "the overlay holds")?;
        let Some(pool) = &self.pool else { return Ok(()) };
        pool.take(bytes).inspect_err(|_| less(&self.used, bytes))
    }

    /// Counts existing content without checking the limits; the pool has counted it already.
    pub(super) fn holds(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn give(&self, bytes: u64) {
        if self.closing.load(Ordering::Relaxed) {
            return;
        }
        less(&self.used, bytes);
        if let Some(OverlayPool(pool, _)) = &self.pool {
            less(&pool.bytes, bytes);
        }
    }
}

/// A file whose content is in the layer, with its byte count. The bytes are released when the file has no
/// name and no open handle.
#[derive(Debug)]
pub(crate) struct Upper {
    /// The number of the file in the layer.
    pub(crate) id: u64,
    /// The identity that guests see: device and inode of the original file.
    pub(crate) identity: Option<(u64, u64)>,
    room: Arc<Room>,
    held: Mutex<u64>,
}

/// A lock on the length of a file.
#[derive(Debug)]
pub(crate) struct Growing<'a> {
    room: &'a Room,
    held: MutexGuard<'a, u64>,
}

impl Upper {
    /// An empty file.
    pub(crate) fn new(room: &Arc<Room>, id: u64, identity: Option<(u64, u64)>) -> Self {
        Self { id, identity, room: Arc::clone(room), held: Mutex::new(0) }
    }

    /// Counts existing content without checking the limits.
    pub(super) fn holds(&self, bytes: u64) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.room.holds(bytes);
        *held = held.saturating_add(bytes);
    }

    /// Locks the length of the file.
    pub(crate) fn grow(&self) -> Growing<'_> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        Growing { room: &self.room, held }
    }
}

impl Growing<'_> {
    /// The counted length in bytes.
    pub(crate) fn length(&self) -> u64 {
        *self.held
    }

    /// Reserves bytes up to `length`, if that is more than before.
    pub(crate) fn to(&mut self, length: u64) -> Result<(), Full> {
        let more = length.saturating_sub(*self.held);
        self.room.take(more)?;
        *self.held += more;
        Ok(())
    }

    /// Releases the reserved bytes beyond the final length.
    pub(crate) fn settle(mut self, length: u64) {
        let back = self.held.saturating_sub(length);
        self.room.give(back);
        *self.held -= back;
    }
}

impl Drop for Upper {
    fn drop(&mut self) {
        let held = *self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.room.give(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_as_files_grow_and_given_back_with_the_file() {
        let room = Room::new(OverlayQuota { bytes: 100, files: 1 }, None);
        let one = Upper::new(&room, 1, None);
        let two = Upper::new(&room, 2, None);
        one.grow().to(60).unwrap();
        assert!(two.grow().to(41).is_err());
        one.grow().to(30).unwrap();
        assert_eq!(room.used(), 60, "a shorter length is taken by settling alone");
        one.grow().settle(30);
        two.grow().to(70).unwrap();
        assert_eq!(room.used(), 100);
        drop(two);
        assert_eq!(room.used(), 30);
        assert!(one.grow().to(u64::MAX).is_err());
    }

    #[test]
    fn overlays_of_one_pool_share_what_it_admits_and_a_closed_one_still_counts() {
        let (wide, held) = (OverlayQuota::default(), OverlayQuota { bytes: 10, files: 1 });
        let pool = OverlayPool::new(OverlayQuota { bytes: 100, files: 5 }, held);
        let (a, b) = (Room::new(wide, Some(pool.clone())), Room::new(wide, Some(pool.clone())));
        let one = Upper::new(&a, 1, None);
        let two = Upper::new(&b, 1, None);
        one.grow().to(60).unwrap();
        let full = two.grow().to(31).unwrap_err();
        assert!(full.0.contains("all overlays together hold 70 of at most 100"), "{}", full.0);
        assert_eq!((b.used(), pool.held().bytes), (0, 70), "what was refused counts nowhere");
        a.admit(3, 1).unwrap();
        assert!(b.admit(1, 1).is_err() && b.admit(0, 1).is_ok());
        a.close(3);
        drop((one, a));
        assert_eq!(pool.held(), OverlayQuota { bytes: 70, files: 4 }, "it lies on disk still");
        pool.removed(OverlayQuota { bytes: 60, files: 3 });
        two.grow().to(90).unwrap();
        assert!(b.admit(4, 0).is_ok() && b.admit(4, 1).is_err());
    }
}
