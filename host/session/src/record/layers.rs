//! The overlays of sessions on disk: beside the store, a directory for each tenant, with a directory for each
//! session. An overlay is deleted with its session.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use belljar_definition::OverlaySetting;
use belljar_overlay::{OverlayPool, OverlayQuota, SessionLayers, held_in};
use belljar_store::{Store, StoreError, TENANT};
use belljar_work::{StopSignal, WorkKind};

use crate::record::lock::{SessionLock, locks_directory};

/// The directory of one tenant's overlays, and the quota that they share.
#[derive(Debug, Clone)]
pub(crate) struct TenantLayers {
    root: PathBuf,
    pool: OverlayPool,
}

impl TenantLayers {
    /// Finds the tenant's overlays, and counts their size by reading their directories.
    pub(crate) fn find_layers(store: &Store, setting: &OverlaySetting) -> Self {
        let root = layers_root(store);
        let pool =
            OverlayPool::new(overlay_quota(setting), held_quota(&root)).with_hidden(place(store));
        Self { root, pool }
    }

    /// The overlays of a session.
    pub(crate) fn for_session(&self, session: &str) -> SessionLayers {
        SessionLayers::in_directory(self.root.join(session), self.pool.clone())
    }

    /// Returns the size of removed overlays to the tenant's quota.
    pub(crate) fn subtract_removed(&self, held: OverlayQuota) {
        self.pool.subtract_held(held);
    }
}

/// The number of the command line's sessions with overlays, and the overlays' total size. `store` = the path
/// of the store's file. Reads directories.
pub fn held_beside(store: &Path) -> (usize, OverlayQuota) {
    let root = store.with_extension("overlays").join(TENANT);
    (session_directories(&root).len(), held_quota(&root))
}

/// The total size of all overlays in a tenant's directory.
fn held_quota(root: &Path) -> OverlayQuota {
    let mut all = OverlayQuota { bytes: 0, files: 0 };
    for (_, dir) in session_directories(root) {
        let held = held_in(&dir);
        all.bytes = all.bytes.saturating_add(held.bytes);
        all.files = all.files.saturating_add(held.files);
    }
    all
}

/// The total size that the overlays of one tenant may have.
pub fn overlay_quota(setting: &OverlaySetting) -> OverlayQuota {
    let standard = OverlayQuota::default();
    OverlayQuota {
        bytes: setting.bytes.unwrap_or(standard.bytes),
        files: setting.files.unwrap_or(standard.files),
    }
}

/// The kind of host work that deletes the overlays of a session.
const REMOVE_LAYERS: WorkKind =
    WorkKind { name: "removing the overlays of a session", time: Duration::from_secs(600) };

/// Removes the overlays of sessions that are no longer in the store, and returns their size. Runs on a
/// separate thread, because an overlay may have 100,000 files.
pub async fn remove_stale_layers(store: &Store) -> Result<OverlayQuota, StoreError> {
    let mut removed = OverlayQuota { bytes: 0, files: 0 };
    let owner = format!("{}/overlays", store.tenant_id().unwrap_or(store.tenant()));
    for (session, dir) in session_directories(&layers_root(store)) {
        match store.read_session(&session).await {
            Err(StoreError::NotFound { .. }) => {}
            Ok(_) => continue,
            Err(error) => return Err(error),
        }
        // Another process has the lock: it stores the session just now, or the next cleanup removes the
        // overlay.
        let Ok(Some(_lock)) = SessionLock::try_lock(&locks_directory(store), &session) else {
            continue;
        };
        let remove = move |_: &StopSignal| {
            let held = held_in(&dir);
            fs::remove_dir_all(&dir).ok().map(|()| held)
        };
        // What fails here is removed by the next cleanup.
        let held = belljar_work::run_job(&REMOVE_LAYERS, &owner, remove).await.ok().flatten();
        if let Some(held) = held {
            removed.bytes = removed.bytes.saturating_add(held.bytes);
            removed.files = removed.files.saturating_add(held.files);
        }
    }
    Ok(removed)
}

/// The directory of the store, which is hidden from agents in every overlay.
pub(crate) fn place(store: &Store) -> PathBuf {
    store.path().parent().unwrap_or(Path::new("")).to_owned()
}

/// The directory of a tenant's overlays. It exists if any session has an overlay.
pub fn layers_root(store: &Store) -> PathBuf {
    let all = store.path().with_extension("overlays");
    // The directory is named by the tenant's id, because another tenant may get the same name later.
    match store.tenant_id() {
        Some(id) if store.tenant() != TENANT => all.join(id),
        Some(_) | None => all.join(store.tenant()),
    }
}

/// The directories of sessions below a tenant's directory, each with the session's id.
fn session_directories(root: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect()
}
