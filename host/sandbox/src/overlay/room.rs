//! How much an overlay may hold, and what its files hold of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What an overlay holds at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverlayQuota {
    /// Bytes of all its files, by their lengths: a hole counts as what it stands for.
    /// Default: 2 GiB.
    pub bytes: u64,
    /// Files, directories and names that it hides or has moved. Default: 100,000.
    pub files: u64,
}

impl Default for OverlayQuota {
    fn default() -> Self {
        Self { bytes: 2 << 30, files: 100_000 }
    }
}

/// The bytes of one overlay.
#[derive(Debug)]
pub(crate) struct Room {
    quota: OverlayQuota,
    used: AtomicU64,
}

/// What may be held is held already.
#[derive(Debug)]
pub(crate) struct Full(pub(crate) String);

impl Room {
    pub(crate) fn new(quota: OverlayQuota) -> Arc<Self> {
        Arc::new(Self { quota, used: AtomicU64::new(0) })
    }

    pub(crate) fn quota(&self) -> OverlayQuota {
        self.quota
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> Result<(), Full> {
        let fits = |used: u64| used.checked_add(bytes).filter(|all| *all <= self.quota.bytes);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(drop).map_err(|used| {
            let most = self.quota.bytes;
            Full(format!("{bytes} more bytes: the overlay holds {used} of at most {most} bytes"))
        })
    }

    fn give(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// A file whose content lies in the layer, and the bytes that it holds. They are given back when
/// its last name is gone and nobody has it open.
#[derive(Debug)]
pub(crate) struct Upper {
    /// Its number in the layer.
    pub(crate) id: u64,
    /// What it is for guests: device and inode of the file that it began as.
    pub(crate) identity: Option<(u64, u64)>,
    room: Arc<Room>,
    held: Mutex<u64>,
}

/// A file that nobody else changes the length of meanwhile.
#[derive(Debug)]
pub(crate) struct Growing<'a> {
    room: &'a Room,
    held: MutexGuard<'a, u64>,
}

impl Upper {
    /// A file that holds nothing yet.
    pub(crate) fn new(room: &Arc<Room>, id: u64, identity: Option<(u64, u64)>) -> Self {
        Self { id, identity, room: Arc::clone(room), held: Mutex::new(0) }
    }

    /// Takes what is there already, whether there is room for it or not.
    pub(super) fn holds(&self, bytes: u64) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.room.used.fetch_add(bytes, Ordering::Relaxed);
        *held = held.saturating_add(bytes);
    }

    /// Holds its length still.
    pub(crate) fn grow(&self) -> Growing<'_> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        Growing { room: &self.room, held }
    }
}

impl Growing<'_> {
    /// How long the file is.
    pub(crate) fn length(&self) -> u64 {
        *self.held
    }

    /// Takes room for a length, if it is more than before.
    pub(crate) fn to(&mut self, length: u64) -> Result<(), Full> {
        let more = length.saturating_sub(*self.held);
        self.room.take(more)?;
        *self.held += more;
        Ok(())
    }

    /// Gives back what the file does not hold in the end.
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
        let room = Room::new(OverlayQuota { bytes: 100, files: 1 });
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
}
