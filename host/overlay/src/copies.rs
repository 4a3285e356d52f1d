//! Copies a layer, as the start of a subagent's overlay.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use belljar_work::StopSignal;
use rustix::fs::OFlags;

use super::Overlay;
use super::fork::{BASE, MINE};
use super::index::IndexFile;
use super::layer::{LayerDir, copy_bytes};
use super::room::QuotaFull;

impl Overlay {
    /// Copies the layer to `dir`, where the copy is both the base and the first content of a subagent's
    /// overlay. Stops between two files when the signal is raised. After an error, no part of the copy
    /// remains.
    pub(super) fn copy_to(&self, dir: &Path, stop: &StopSignal) -> io::Result<()> {
        let next = dir.with_extension("next");
        match std::fs::remove_dir_all(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let copied = self.copy_into(&next, stop);
        match copied {
            Ok(()) => std::fs::rename(next, dir),
            Err(error) => {
                // A partial copy would use space, and no code opens it.
                let _ = std::fs::remove_dir_all(&next);
                Err(error)
            }
        }
    }

    /// Writes the same content files and index twice: as the fork's base, and as its first content. The
    /// overlay stays locked meanwhile.
    fn copy_into(&self, next: &Path, stop: &StopSignal) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(next)?;
        let view = self.lock_view();
        let count = view.state.tree.entry_count();
        let full = |QuotaFull(facts)| io::Error::new(io::ErrorKind::QuotaExceeded, facts);
        self.shared.room.check_doubling(count).map_err(full)?;
        let records = view.state.tree.to_records();
        for part in [BASE, MINE] {
            let layer = LayerDir::open(&next.join(part))?;
            for id in view.state.uppers.keys() {
                stop.check_raised().map_err(io::Error::other)?;
                let from = self.shared.layer.open_file(*id, OFlags::RDONLY)?;
                let stat = rustix::fs::fstat(&from)?;
                let to = layer.create_content(*id)?;
                copy_bytes(&from, &to, u64::try_from(stat.st_size).unwrap_or(0))?;
                to.set_modified(from.metadata()?.modified()?)?;
            }
            IndexFile::create_index(&layer.dir_fd().try_clone_to_owned()?, &records)?;
        }
        Ok(())
    }
}
