//! Reviews of the changes in a session's overlays, and decisions about changes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use belljar_overlay::{
    Changes, ChangesError, LayersError, OverlayLayer, OverlayPool, OverlayQuota, OverlayReview,
    SessionLayers,
};
use belljar_policy::GuestPath;
use belljar_store::{Store, StoreError, StoredSession};
use belljar_work::StopSignal;

use crate::record::layers::{layers_root, place};
use crate::record::lock::{SessionLock, locks_directory};

/// The changes of a session, open for a decision. Until dropped, no other process can use the session.
#[derive(Debug)]
pub struct SessionReview {
    places: Vec<DirectoryReview>,
    layers: SessionLayers,
    /// The lock of the session; `None` = the caller has locked the session already.
    _lock: Option<SessionLock>,
}

/// The changes to one directory of a session.
#[derive(Debug)]
pub struct DirectoryReview {
    /// The path of the directory for agents.
    pub guest: GuestPath,
    /// The directory on this machine.
    pub directory: PathBuf,
    /// The decisions that can be made about the directory.
    pub review: OverlayReview,
}

/// The reason why the changes of a session cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// An agent works in the session, or another process has the session open.
    #[error("session `{0}` is at work, here or in another process")]
    Busy(String),
    /// The session's lock cannot be used.
    #[error("failed to lock session `{session}`: {source}")]
    Lock {
        /// The session.
        session: String,
        /// The cause of the failure.
        source: io::Error,
    },
    /// The overlay of a directory cannot be opened.
    #[error(transparent)]
    Layers(#[from] LayersError),
    /// The changes of a directory cannot be read or decided.
    #[error(transparent)]
    Changes(#[from] ChangesError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SessionReview {
    /// Opens the changes of a session that nothing else uses. Reads files, so the caller's thread must be one
    /// that may block. Raising `stop` ends the reading.
    ///
    /// # Errors
    ///
    /// When the session is in use, or an overlay cannot be opened.
    pub fn open(store: &Store, session: &str, stop: &StopSignal) -> Result<Self, ReviewError> {
        let none = OverlayQuota { bytes: 0, files: 0 };
        // No quota: a decision adds nothing to the overlay.
        let pool = OverlayPool::new(OverlayQuota { bytes: u64::MAX, files: u64::MAX }, none);
        let pool = pool.with_hidden(place(store));
        Self::open_in(
            store,
            session,
            SessionLayers::in_directory(layers_root(store).join(session), pool),
            stop,
        )
    }

    /// Like [`SessionReview::open`], with overlays that share a tenant's quota.
    pub(crate) fn open_in(
        store: &Store,
        session: &str,
        layers: SessionLayers,
        stop: &StopSignal,
    ) -> Result<Self, ReviewError> {
        Self::with_lock(layers, Some(lock_session(store, session)?), stop)
    }

    /// Opens the changes of a session for a caller that has the session to itself.
    ///
    /// # Errors
    ///
    /// When an overlay cannot be opened.
    pub fn for_layers(layers: SessionLayers, stop: &StopSignal) -> Result<Self, ReviewError> {
        Self::with_lock(layers, None, stop)
    }

    /// Opens each overlay of the session for decisions. `lock` is held as long as the review exists.
    fn with_lock(
        layers: SessionLayers,
        lock: Option<SessionLock>,
        stop: &StopSignal,
    ) -> Result<Self, ReviewError> {
        let mut places = Vec::new();
        for layer in layers.present_until(stop)? {
            let review = OverlayReview::open(&layer.overlay, &layer.journal)?.with_stop(stop);
            places.push(DirectoryReview { guest: layer.guest, directory: layer.lower, review });
        }
        Ok(Self { places, layers, _lock: lock })
    }

    /// The directories with possible changes, in the order of first use by agents.
    pub fn changed_directories(&self) -> &[DirectoryReview] {
        &self.places
    }

    /// All changes by directory, without counts of lines.
    ///
    /// # Errors
    ///
    /// When the changes cannot be read.
    pub fn list_changes(&self) -> Result<Vec<(&DirectoryReview, Changes)>, ReviewError> {
        let of = |place| -> Result<_, ReviewError> {
            let place: &DirectoryReview = place;
            Ok((place, place.review.list_changes()?))
        };
        self.places.iter().map(of).collect()
    }
}

impl Drop for SessionReview {
    fn drop(&mut self) {
        self.places.clear();
        self.layers.close();
    }
}

/// The changes of a session, for readers without the right to decide: nothing is written to the workspace,
/// the overlay or the journal of applies. An interrupted apply stays interrupted.
#[derive(Debug)]
pub struct SessionLook {
    places: Vec<OverlayLayer>,
    layers: SessionLayers,
    stop: StopSignal,
    _lock: Option<SessionLock>,
}

/// The changes to one directory of a session, as a reader without the right to decide sees them.
#[derive(Debug)]
pub struct DirectoryLook {
    /// The path of the directory for agents.
    pub guest: GuestPath,
    /// True if an apply was interrupted: a part of these changes may be in the directory already. The next
    /// decision finishes or undoes the apply.
    pub is_interrupted: bool,
    /// True if an earlier apply to the directory can be undone.
    pub has_applied: bool,
    /// The changes; lines are not counted.
    pub changes: Changes,
}

impl SessionLook {
    /// Locks the session, and opens its overlays for reading.
    pub(crate) fn open_in(
        store: &Store,
        session: &str,
        layers: SessionLayers,
        stop: &StopSignal,
    ) -> Result<Self, ReviewError> {
        let lock = lock_session(store, session)?;
        let places = layers.present_until(stop)?;
        Ok(Self { places, layers, stop: stop.clone(), _lock: Some(lock) })
    }

    /// Opens the overlays of a session that the caller has locked.
    pub(crate) fn for_layers(
        layers: SessionLayers,
        stop: &StopSignal,
    ) -> Result<Self, ReviewError> {
        Ok(Self { places: layers.present_until(stop)?, layers, stop: stop.clone(), _lock: None })
    }

    /// All changes by directory, in the order of first use by agents.
    ///
    /// # Errors
    ///
    /// When the changes cannot be read, or the signal is raised.
    pub fn list_changes(&self) -> Result<Vec<DirectoryLook>, ReviewError> {
        let of = |layer: &OverlayLayer| -> Result<_, ReviewError> {
            Ok(DirectoryLook {
                guest: layer.guest.clone(),
                is_interrupted: OverlayReview::is_interrupted(&layer.journal)?,
                has_applied: OverlayReview::has_applied(&layer.journal)?,
                changes: OverlayReview::list_read_only(&layer.overlay, &self.stop)?,
            })
        };
        self.places.iter().map(of).collect()
    }

    /// The signal that ends this look; raised when the caller no longer waits for the result.
    pub fn stop_signal(&self) -> &StopSignal {
        &self.stop
    }

    /// The number of changed files and links; directories do not count.
    ///
    /// # Errors
    ///
    /// As [`SessionLook::list_changes`].
    pub fn count_changes(&self) -> Result<usize, ReviewError> {
        let of = |layer: &OverlayLayer| OverlayReview::look_at_names(&layer.overlay, &self.stop);
        let mut sum = 0;
        for layer in &self.places {
            sum += of(layer)?.change_stat().files;
        }
        Ok(sum)
    }
}

impl Drop for SessionLook {
    fn drop(&mut self) {
        self.places.clear();
        self.layers.close();
    }
}

/// Locks a session for this process; an error if the session is in use.
fn lock_session(store: &Store, session: &str) -> Result<SessionLock, ReviewError> {
    match SessionLock::try_lock(&locks_directory(store), session) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(ReviewError::Busy(session.to_owned())),
        Err(source) => Err(ReviewError::Lock { session: session.to_owned(), source }),
    }
}

/// Returns whether a session has an overlay, without opening one.
pub fn has_layers(store: &Store, session: &str) -> bool {
    fs::read_dir(layers_root(store).join(session)).is_ok_and(|mut entries| entries.next().is_some())
}

/// The session whose overlay was changed last; with `workspace`, only sessions of that workspace count.
///
/// # Errors
///
/// When the store cannot be read.
pub async fn newest_with_layers(
    store: &Store,
    workspace: Option<&Path>,
) -> Result<Option<StoredSession>, StoreError> {
    let workspace = workspace.map(|path| path.to_string_lossy());
    let mut newest: Option<StoredSession> = None;
    for entry in fs::read_dir(layers_root(store)).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !has_layers(store, &name) {
            continue;
        }
        let session = match store.read_session(&name).await {
            Ok(session) => session,
            Err(StoreError::NotFound { .. }) => continue,
            Err(error) => return Err(error),
        };
        let here = workspace.as_ref().is_none_or(|workspace| session.workspace == *workspace);
        let newer = newest
            .as_ref()
            .is_none_or(|newest| (session.updated, &session.id) > (newest.updated, &newest.id));
        if here && newer {
            newest = Some(session);
        }
    }
    Ok(newest)
}
