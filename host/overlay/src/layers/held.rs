//! The size of closed layers.

use std::fs;
use std::path::Path;

use crate::{OverlayFork, OverlayQuota};

use super::{FORKS, HELD, JOURNAL, LAYER, list_stored_layers};

/// The size of a session's layers in this directory, including copies for undo and copies of subagents.
/// Nothing is opened: a layer without a stored size, for example an open one, is measured by its files.
pub fn held_in(dir: &Path) -> OverlayQuota {
    let mut all = copies_hold(dir);
    for known in list_stored_layers(dir).unwrap_or_default() {
        let dir = dir.join(known.number.to_string());
        let held = read_held(&dir.join(HELD)).unwrap_or_else(|| measure_layer(&dir.join(LAYER)));
        all.bytes =
            all.bytes.saturating_add(held.bytes).saturating_add(count_bytes(&dir.join(JOURNAL)));
        all.files = all.files.saturating_add(held.files);
    }
    all
}

/// The amount that the copies of the layers in a directory hold.
pub(super) fn copies_hold(dir: &Path) -> OverlayQuota {
    sum_quotas(
        fs::read_dir(dir.join(FORKS))
            .into_iter()
            .flatten()
            .flatten()
            .map(|it| copy_holds(&it.path())),
    )
}

/// The size of one copy, including the copies made of this copy.
pub(super) fn copy_holds(dir: &Path) -> OverlayQuota {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let own = entries.map(|entry| measure_layer(&OverlayFork::layer_in(&entry.path())));
    sum_quotas(own.chain([copies_hold(dir)]))
}

/// The sum of several quotas.
fn sum_quotas(all: impl Iterator<Item = OverlayQuota>) -> OverlayQuota {
    all.fold(OverlayQuota { bytes: 0, files: 0 }, |sum, held| OverlayQuota {
        bytes: sum.bytes.saturating_add(held.bytes),
        files: sum.files.saturating_add(held.files),
    })
}

/// Bytes of all files below a directory of the host's own.
pub(super) fn count_bytes(dir: &Path) -> u64 {
    let (mut bytes, mut left) = (0_u64, vec![dir.to_owned()]);
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => left.push(entry.path()),
                Ok(found) => bytes = bytes.saturating_add(found.len()),
                Err(_) => {}
            }
        }
    }
    bytes
}

fn read_held(path: &Path) -> Option<OverlayQuota> {
    let text = fs::read_to_string(path).ok()?;
    let (bytes, files) = text.split_once(' ')?;
    Some(OverlayQuota { bytes: bytes.parse().ok()?, files: files.parse().ok()? })
}

/// Measures a layer by the sizes of the files.
fn measure_layer(layer: &Path) -> OverlayQuota {
    let mut held = OverlayQuota { bytes: 0, files: 0 };
    for (name, files) in [("files", 1), ("bases", 0)] {
        for entry in fs::read_dir(layer.join(name)).into_iter().flatten().flatten() {
            let length = entry.metadata().map_or(0, |found| found.len());
            held.bytes = held.bytes.saturating_add(length);
            held.files += files;
        }
    }
    held
}
