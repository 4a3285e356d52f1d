//! What the host does with an overlay: correct the index after the lower directory changed, and write files
//! without a guest.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::Overlay;
use super::acts::ChangeFault;
use super::bases::LARGEST;
use super::digests::digest_file;
use super::layer::copy_bytes;
use super::record::{ContentOrigin, LowerState};
use super::rel::RelPath;
use super::room::UpperFile;
use super::tree::{IndexTree, KnownOrigin, SettledPaths, TakenFile, UnsettledPaths};
use super::way::{dir_at, place_at};
use crate::Digest;

/// Changes that the host applied to the lower directory. Lower paths are the ones before all changes; other
/// paths are as the agent sees them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettledChanges {
    /// Lower paths that no longer exist.
    pub(crate) gone: Vec<PathBuf>,
    /// Moves, each from a lower path to the agent's path.
    pub(crate) moved: Vec<(PathBuf, PathBuf)>,
    /// Paths of directories that now exist in the lower directory.
    pub(crate) directories: Vec<PathBuf>,
    /// Paths of files whose content is now in the lower directory.
    pub(crate) files: Vec<PathBuf>,
    /// Paths whose changes are dropped, with everything below them.
    pub(crate) dropped: Vec<PathBuf>,
}

/// Applied changes that the host undid. Lower paths are again those before the changes.
#[derive(Debug, Default)]
pub(crate) struct UnsettledChanges {
    /// Lower paths that exist again.
    pub(crate) gone: Vec<ChangeOrigin>,
    /// Moves, as in [`SettledChanges`].
    pub(crate) moved: Vec<(PathBuf, PathBuf)>,
    /// Paths of directories that no longer exist in the lower directory.
    pub(crate) directories: Vec<PathBuf>,
    /// Files whose content is no longer in the lower directory.
    pub(crate) files: Vec<UnsettledFile>,
    /// Lower paths that are hidden again after a dropped change.
    pub(crate) dropped: Vec<ChangeOrigin>,
}

/// The lower object from which a change began.
#[derive(Debug)]
pub(crate) struct ChangeOrigin {
    /// The lower path.
    pub(crate) place: PathBuf,
    /// The state in [`super::Change`]. `None` = the present state.
    pub(crate) original: Option<super::OriginalState>,
    /// Whether the object is still the one that the agent began with, as far as is known without a digest.
    pub(crate) same: bool,
    /// The original text, if a merge needs it and the lower directory has changed.
    pub(crate) base: Option<File>,
}

/// A file whose content goes back to the overlay.
#[derive(Debug)]
pub(crate) struct UnsettledFile {
    /// The path that the agent sees.
    pub(crate) path: PathBuf,
    /// The lower file that this file is a version of.
    pub(crate) before: Option<ChangeOrigin>,
    /// The permissions.
    pub(crate) mode: u32,
    /// The whole content. `None` = the content of the lower file.
    pub(crate) content: Option<File>,
    /// Whether the change had been dropped, so that the lower directory never had this content.
    pub(crate) dropped: bool,
}

impl Overlay {
    /// The number of the last [`Self::settle_changes`] or [`Self::unsettle_changes`]; 0 = no such call yet.
    pub(crate) fn settled_number(&self) -> u64 {
        self.shared.lock_state().tree.settled_number()
    }

    /// Lets the lower directory show wherever it has the agent's changes now. The index changes atomically:
    /// after a crash, either all or nothing of the call has happened.
    ///
    /// # Errors
    ///
    /// The index cannot be written; the overlay is then unchanged.
    pub(crate) fn settle_changes(&self, number: u64, settled: &SettledChanges) -> io::Result<()> {
        let moved = settled.moved.iter().map(|(from, to)| Ok((rel_path(from)?, rel_path(to)?)));
        let done = SettledPaths {
            gone: rel_paths(&settled.gone)?,
            moved: moved.collect::<io::Result<_>>()?,
            directories: rel_paths(&settled.directories)?,
            files: rel_paths(&settled.files)?,
            dropped: rel_paths(&settled.dropped)?,
        };
        self.rewrite_index(|tree| tree.settle_paths(number, &done))
    }

    /// Reverses [`Self::settle_changes`]. Objects the agent made at the same paths since then stay.
    ///
    /// # Errors
    ///
    /// The lower directory cannot be read or the layer cannot be written; the overlay is then unchanged.
    pub(crate) fn unsettle_changes(
        &self,
        number: u64,
        unsettled: &UnsettledChanges,
    ) -> io::Result<()> {
        let mut taken = UnsettledPaths::default();
        for (to, places) in
            [(&mut taken.gone, &unsettled.gone), (&mut taken.dropped, &unsettled.dropped)]
        {
            for before in places {
                to.extend(self.find_origin(before)?);
            }
        }
        for (from, to) in &unsettled.moved {
            let from = rel_path(from)?;
            if let Some(seen) = self.snapshot_place(&from)? {
                taken.moved.push((from, rel_path(to)?, seen));
            }
        }
        taken.directories = rel_paths(&unsettled.directories)?;
        let mut uppers = Vec::new();
        for file in &unsettled.files {
            let known = file.before.as_ref().map(|before| self.find_origin(before)).transpose()?;
            let known = known.flatten();
            let digest = known.as_ref().and_then(|(_, known)| known.digest);
            let origin = known.map(|(rel, known)| ContentOrigin { rel, seen: known.seen });
            let id = self.shared.lock_state().tree.next_file();
            if let Some(content) = &file.content {
                let to = self.shared.layer.create_content(id)?;
                let size = copy_bytes(content, &to, u64::MAX)?;
                let identity = origin.as_ref().map(|it| (it.seen.device, it.seen.inode));
                let upper = UpperFile::new(&self.shared.room, id, identity);
                upper.count_existing(size);
                uppers.push(Arc::new(upper));
            } else if origin.is_none() {
                continue;
            }
            let copied = file.content.is_some();
            let (path, mode) = (rel_path(&file.path)?, file.mode & super::record::MODE);
            let dropped = file.dropped;
            taken.files.push(TakenFile { path, id, copied, mode, origin, digest, dropped });
        }
        self.rewrite_index(|tree| {
            tree.unsettle_paths(number, &taken);
            let ids = taken.files.iter().map(|file| file.id);
            ids.filter(|id| tree.find_file(*id).is_none()).collect()
        })?;
        let mut state = self.shared.lock_state();
        for upper in uppers {
            if state.tree.find_file(upper.id).is_some() {
                state.uppers.insert(upper.id, upper);
            }
        }
        Ok(())
    }

    /// Drops the agent's changes at the paths and below, so that the lower directory shows. Objects moved
    /// there go back to their original paths.
    ///
    /// # Errors
    ///
    /// The index cannot be written; the overlay is then unchanged.
    pub(crate) fn discard_paths(&self, paths: &[PathBuf]) -> io::Result<()> {
        let paths = rel_paths(paths)?;
        self.rewrite_index(|tree| tree.discard_paths(&paths))
    }

    /// Records that the host removed and restored files at these lower paths, so that they have new inodes
    /// but the same content.
    ///
    /// # Errors
    ///
    /// The lower directory cannot be read or the index cannot be written.
    pub(crate) fn see_again(&self, places: &[PathBuf]) -> io::Result<()> {
        let mut now = Vec::new();
        for place in rel_paths(places)? {
            if let Some(seen) = self.snapshot_place(&place)? {
                now.push((place, seen));
            }
        }
        self.rewrite_index(|tree| {
            for (place, seen) in &now {
                tree.see_again(place, *seen);
            }
            Vec::new()
        })
    }

    /// Opens the stored text with the given digest: a file's content before the agent's first change.
    ///
    /// # Errors
    ///
    /// No text with this digest is stored.
    pub(crate) fn open_base(&self, digest: &Digest) -> io::Result<File> {
        Ok(self.shared.bases.open_file(*digest.as_bytes())?)
    }

    /// The names in a directory, as the agent sees them, and whether each is a directory.
    ///
    /// # Errors
    ///
    /// The path is no directory, or the directory has more than `most` names.
    pub fn list_dir(&self, path: impl AsRef<Path>, most: u64) -> io::Result<Vec<(OsString, bool)>> {
        let view = self.lock_view();
        let dir = dir_at(&view, self.lower_dir(), &rel_path(path.as_ref())?)?;
        let names = view.list_dir(&dir, most)?;
        if names.len() as u64 > most {
            return Err(io::Error::other("the directory has too many names"));
        }
        let told = |(name, kind)| (name, kind == FileType::Directory);
        Ok(names.into_iter().map(told).collect())
    }

    /// Writes the whole content of a file, as a guest would.
    ///
    /// # Errors
    ///
    /// The errors of a guest's write. But protected names are allowed, and the only limit is the quota.
    pub fn write_file(&self, path: impl AsRef<Path>, mut content: impl Read) -> io::Result<()> {
        let mut view = self.lock_view();
        let place = place_at(&view, self.lower_dir(), &rel_path(path.as_ref())?)?;
        let opened = match view.look_up(&place) {
            Ok(found) => view.open_to_write(&place, &found, OFlags::WRONLY, 0),
            Err(Errno::NOENT) => view.make_file(&place, OFlags::WRONLY),
            Err(errno) => return Err(errno.into()),
        };
        let (upper, file) = opened.map_err(to_io_error)?;
        let mut growing = upper.lock_length();
        file.set_len(0)?;
        let (mut at, mut part) = (0, vec![0; 64 << 10]);
        let mut write = || -> io::Result<()> {
            loop {
                let read = content.read(&mut part)?;
                if read == 0 {
                    return Ok(());
                }
                growing
                    .reserve_length(at + read as u64)
                    .map_err(|full| to_io_error(full.into()))?;
                file.write_all_at(part.get(..read).unwrap_or_default(), at)?;
                at += read as u64;
            }
        };
        let written = write();
        growing.settle_length(at);
        written
    }

    /// Makes a directory, as a guest would.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::write_file`].
    pub fn make_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut view = self.lock_view();
        let place = place_at(&view, self.lower_dir(), &rel_path(path.as_ref())?)?;
        view.make_dir(&place).map_err(to_io_error)
    }

    /// Removes a file or an empty directory, as a guest would.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::write_file`].
    pub fn remove_path(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut view = self.lock_view();
        let place = place_at(&view, self.lower_dir(), &rel_path(path.as_ref())?)?;
        let found = view.look_up(&place)?;
        view.remove_entry(&place, &found).map_err(to_io_error)
    }

    /// Renames a file or directory, as a guest would.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::write_file`].
    pub fn rename_path(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let mut view = self.lock_view();
        let from = place_at(&view, self.lower_dir(), &rel_path(from.as_ref())?)?;
        let to = place_at(&view, self.lower_dir(), &rel_path(to.as_ref())?)?;
        let found = view.look_up(&from)?;
        view.rename_entry([&from, &to], &found).map_err(to_io_error)
    }

    /// Changes a copy of the index, and replaces the index on disk by the copy.
    fn rewrite_index(&self, change: impl FnOnce(&mut IndexTree) -> Vec<u64>) -> io::Result<()> {
        self.shared.digests.wait_idle();
        let mut view = self.lock_view();
        view.note_digests();
        let mut tree = view.state.tree.clone();
        let lost = change(&mut tree);
        view.state.index.replace_records(&tree.to_records())?;
        view.state.index.sync()?;
        view.state.tree = tree;
        for id in lost {
            view.state.uppers.remove(&id);
            self.shared.layer.remove_content(id);
        }
        self.shared.bases.retain_wanted(&view.state.tree.named_digests());
        Ok(())
    }

    /// The lower object from which a change began. If the present object is the same, its present state is
    /// used; if not, the former state, so that another program's change is still noticed. Also stores the
    /// text for merges.
    fn find_origin(&self, before: &ChangeOrigin) -> io::Result<Option<(RelPath, KnownOrigin)>> {
        let place = rel_path(&before.place)?;
        let now = self.snapshot_place(&place)?;
        let Some(original) = &before.original else {
            let known = now.map(|seen| KnownOrigin { seen, since: None, digest: None });
            return Ok(known.map(|known| (place, known)));
        };
        let wanted = original.digest.map(|digest| *digest.as_bytes());
        let same = match (&now, wanted) {
            (Some(seen), Some(wanted)) => {
                let (dir, name) = self.shared.lower.find_parent(&place)?;
                let opened = dir.open_entry(name).ok();
                let found =
                    opened.and_then(|(file, _)| digest_file(seen, &file, &self.shared.bases));
                found == Some(wanted)
            }
            (Some(_), None) => before.same,
            (None, _) => false,
        };
        if let Some(seen) = now.filter(|_| same) {
            return Ok(Some((place, KnownOrigin { seen, since: None, digest: wanted })));
        }
        if let (Some(base), Some(wanted)) = (&before.base, wanted) {
            let mut text = Vec::new();
            base.take(LARGEST + 1).read_to_end(&mut text)?;
            if text.len() as u64 <= LARGEST && sha256(&text) == wanted {
                self.shared.bases.store_base(wanted, &text);
            }
        }
        let known = KnownOrigin {
            seen: original.to_snapshot(),
            since: original.hidden_since(),
            digest: wanted,
        };
        Ok(Some((place, known)))
    }

    /// The present state of the object at a lower path.
    fn snapshot_place(&self, place: &RelPath) -> io::Result<Option<LowerState>> {
        match self.shared.lower.find_parent(place) {
            Ok((dir, name)) => Ok(dir.find_stat(name)?.as_ref().map(LowerState::from_stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).into()
}

fn rel_path(path: &Path) -> io::Result<RelPath> {
    let rel = RelPath::from_bytes(path.as_os_str().as_bytes());
    rel.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is no plain path below"))
}

fn rel_paths(paths: &[PathBuf]) -> io::Result<Vec<RelPath>> {
    paths.iter().map(|path| rel_path(path)).collect()
}

/// Converts a fault of an overlay change to an I/O error.
fn to_io_error(fault: ChangeFault) -> io::Error {
    match fault {
        ChangeFault::Errno(errno) => errno.into(),
        ChangeFault::Full(facts) => io::Error::new(io::ErrorKind::QuotaExceeded, facts),
        ChangeFault::Io(error) => error,
    }
}
