//! For the host: bringing the lower directory and an overlay together, and writing to an overlay
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
use super::acts::Fault;
use super::bases::LARGEST;
use super::digests::digest;
use super::layer::copy;
use super::record::{Origin, Seen};
use super::rel::Rel;
use super::room::Upper;
use super::tree::{IndexTree, Known, SettledPaths, Taken, TakenFile};
use super::way::{dir_at, place_at};
use crate::Digest;

/// The changes made to the lower directory as an overlay has it. Places "below" are those in the
/// lower directory as it was before; paths are where the agent sees things.
#[derive(Debug, Clone, Default)]
pub struct Settled {
    /// Places below at which nothing is any more.
    pub gone: Vec<PathBuf>,
    /// From a place below to a path.
    pub moved: Vec<(PathBuf, PathBuf)>,
    /// Paths of directories that are there now.
    pub directories: Vec<PathBuf>,
    /// Paths of files whose content is there now.
    pub files: Vec<PathBuf>,
    /// Paths at which, and below which, what the agent changed is given up.
    pub dropped: Vec<PathBuf>,
}

/// The part of it that was taken back. The places below are what they were before once more.
#[derive(Debug, Default)]
pub struct Unsettled {
    /// Places below at which something is again.
    pub gone: Vec<Before>,
    /// As in [`Settled`].
    pub moved: Vec<(PathBuf, PathBuf)>,
    /// Paths of directories that are not there any more.
    pub directories: Vec<PathBuf>,
    /// Files whose content is not there any more.
    pub files: Vec<UnsettledFile>,
    /// Places below that are hidden again, where that was given up.
    pub dropped: Vec<Before>,
}

/// A thing below that a change began with.
#[derive(Debug)]
pub struct Before {
    /// Where.
    pub place: PathBuf,
    /// As [`super::Change`] told of it. `None` = as it is there now.
    pub original: Option<super::Original>,
    /// Whether it is still what the agent began with, as far as that was known without a digest.
    pub same: bool,
    /// Its text, where it is needed for merging and not there any more.
    pub base: Option<File>,
}

/// A file that is the overlay's again.
#[derive(Debug)]
pub struct UnsettledFile {
    /// Where the agent sees it.
    pub path: PathBuf,
    /// The file below that it is a version of.
    pub before: Option<Before>,
    /// Its permissions.
    pub mode: u32,
    /// Its content, from the beginning on. `None` = that of the file below.
    pub content: Option<File>,
    /// Whether the change was given up: the lower directory never had this content.
    pub dropped: bool,
}

impl Overlay {
    /// The number of the last [`Self::settle`] or [`Self::unsettle`]; 0 = there was none.
    pub fn settled(&self) -> u64 {
        self.shared.state().tree.settled()
    }

    /// Shows the lower directory where it has by now what the agent made. One change of the index:
    /// after a crash all of it was done or nothing.
    ///
    /// # Errors
    ///
    /// When the index cannot be written; then nothing was done.
    pub fn settle(&self, number: u64, settled: &Settled) -> io::Result<()> {
        let moved = settled.moved.iter().map(|(from, to)| Ok((rel(from)?, rel(to)?)));
        let done = SettledPaths {
            gone: rels(&settled.gone)?,
            moved: moved.collect::<io::Result<_>>()?,
            directories: rels(&settled.directories)?,
            files: rels(&settled.files)?,
            dropped: rels(&settled.dropped)?,
        };
        self.rewrite(|tree| tree.settle(number, &done))
    }

    /// The contrary of [`Self::settle`]. Where the agent has made something else meanwhile, that
    /// stays.
    ///
    /// # Errors
    ///
    /// When the lower directory cannot be read or the layer not be written; then nothing was done.
    pub fn unsettle(&self, number: u64, unsettled: &Unsettled) -> io::Result<()> {
        let mut taken = Taken::default();
        for (to, places) in
            [(&mut taken.gone, &unsettled.gone), (&mut taken.dropped, &unsettled.dropped)]
        {
            for before in places {
                to.extend(self.known(before)?);
            }
        }
        for (from, to) in &unsettled.moved {
            let from = rel(from)?;
            if let Some(seen) = self.seen(&from)? {
                taken.moved.push((from, rel(to)?, seen));
            }
        }
        taken.directories = rels(&unsettled.directories)?;
        let mut uppers = Vec::new();
        for file in &unsettled.files {
            let known = file.before.as_ref().map(|before| self.known(before)).transpose()?;
            let known = known.flatten();
            let digest = known.as_ref().and_then(|(_, known)| known.digest);
            let origin = known.map(|(rel, known)| Origin { rel, seen: known.seen });
            let id = self.shared.state().tree.next_file();
            if let Some(content) = &file.content {
                let to = self.shared.layer.create(id)?;
                let size = copy(content, &to, u64::MAX)?;
                let identity = origin.as_ref().map(|it| (it.seen.device, it.seen.inode));
                let upper = Upper::new(&self.shared.room, id, identity);
                upper.holds(size);
                uppers.push(Arc::new(upper));
            } else if origin.is_none() {
                continue;
            }
            let copied = file.content.is_some();
            let (path, mode) = (rel(&file.path)?, file.mode & super::record::MODE);
            let dropped = file.dropped;
            taken.files.push(TakenFile { path, id, copied, mode, origin, digest, dropped });
        }
        self.rewrite(|tree| {
            tree.unsettle(number, &taken);
            let ids = taken.files.iter().map(|file| file.id);
            ids.filter(|id| tree.file(*id).is_none()).collect()
        })?;
        let mut state = self.shared.state();
        for upper in uppers {
            if state.tree.file(upper.id).is_some() {
                state.uppers.insert(upper.id, upper);
            }
        }
        Ok(())
    }

    /// Forgets what the agent changed at these paths and below: the lower directory is seen there
    /// again. What was moved there is seen where it was.
    ///
    /// # Errors
    ///
    /// When the index cannot be written; then nothing was done.
    pub fn discard(&self, paths: &[PathBuf]) -> io::Result<()> {
        let paths = rels(paths)?;
        self.rewrite(|tree| tree.discard(&paths))
    }

    /// At these places below, the same contents stand as other files: what was taken away has been
    /// put back.
    ///
    /// # Errors
    ///
    /// When the lower directory cannot be read or the index not be written.
    pub fn see_again(&self, places: &[PathBuf]) -> io::Result<()> {
        let mut now = Vec::new();
        for place in rels(places)? {
            if let Some(seen) = self.seen(&place)? {
                now.push((place, seen));
            }
        }
        self.rewrite(|tree| {
            for (place, seen) in &now {
                tree.see_again(place, *seen);
            }
            Vec::new()
        })
    }

    /// The text of which this is the digest, as it was when the agent changed it first.
    ///
    /// # Errors
    ///
    /// When it was not kept.
    pub fn base(&self, digest: &Digest) -> io::Result<File> {
        Ok(self.shared.bases.open_file(*digest.as_bytes())?)
    }

    /// The names in a directory as the agent sees it, and whether each is a directory.
    ///
    /// # Errors
    ///
    /// When it is none, or has more than `most` names.
    pub fn list(&self, path: impl AsRef<Path>, most: u64) -> io::Result<Vec<(OsString, bool)>> {
        let view = self.view();
        let dir = dir_at(&view, self.lower(), &rel(path.as_ref())?)?;
        let names = view.list(&dir, most)?;
        if names.len() as u64 > most {
            return Err(io::Error::other("the directory has too many names"));
        }
        let told = |(name, kind)| (name, kind == FileType::Directory);
        Ok(names.into_iter().map(told).collect())
    }

    /// Writes a file as a guest would, in the place of what it holds.
    ///
    /// # Errors
    ///
    /// As for a guest; there are no protected names and no limits but the quota.
    pub fn write_file(&self, path: impl AsRef<Path>, mut content: impl Read) -> io::Result<()> {
        let mut view = self.view();
        let place = place_at(&view, self.lower(), &rel(path.as_ref())?)?;
        let opened = match view.look_up(&place) {
            Ok(found) => view.open_to_write(&place, &found, OFlags::WRONLY, 0),
            Err(Errno::NOENT) => view.make_file(&place, OFlags::WRONLY),
            Err(errno) => return Err(errno.into()),
        };
        let (upper, file) = opened.map_err(error)?;
        let mut growing = upper.grow();
        file.set_len(0)?;
        let (mut at, mut part) = (0, vec![0; 64 << 10]);
        let mut write = || -> io::Result<()> {
            loop {
                let read = content.read(&mut part)?;
                if read == 0 {
                    return Ok(());
                }
                growing.to(at + read as u64).map_err(|full| error(full.into()))?;
                file.write_all_at(part.get(..read).unwrap_or_default(), at)?;
                at += read as u64;
            }
        };
        let written = write();
        growing.settle(at);
        written
    }

    /// Makes a directory as a guest would.
    ///
    /// # Errors
    ///
    /// As [`Self::write_file`].
    pub fn make_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut view = self.view();
        let place = place_at(&view, self.lower(), &rel(path.as_ref())?)?;
        view.make_dir(&place).map_err(error)
    }

    /// Removes a file or an empty directory as a guest would.
    ///
    /// # Errors
    ///
    /// As [`Self::write_file`].
    pub fn remove(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut view = self.view();
        let place = place_at(&view, self.lower(), &rel(path.as_ref())?)?;
        let found = view.look_up(&place)?;
        view.remove(&place, &found).map_err(error)
    }

    /// Renames something as a guest would.
    ///
    /// # Errors
    ///
    /// As [`Self::write_file`].
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let mut view = self.view();
        let from = place_at(&view, self.lower(), &rel(from.as_ref())?)?;
        let to = place_at(&view, self.lower(), &rel(to.as_ref())?)?;
        let found = view.look_up(&from)?;
        view.rename([&from, &to], &found).map_err(error)
    }

    /// Makes another index of this one, in one step.
    fn rewrite(&self, change: impl FnOnce(&mut IndexTree) -> Vec<u64>) -> io::Result<()> {
        self.shared.digests.wait();
        let mut view = self.view();
        view.note_digests();
        let mut tree = view.state.tree.clone();
        let lost = change(&mut tree);
        view.state.index.replace(&tree.records())?;
        view.state.index.sync()?;
        view.state.tree = tree;
        for id in lost {
            view.state.uppers.remove(&id);
            self.shared.layer.remove(id);
        }
        self.shared.bases.retain(&view.state.tree.digests());
        Ok(())
    }

    /// The thing that a change began with: as it is there now, if that is the same, and else as it
    /// was, so that a change of somebody else is still known as one. A text is kept for merging.
    fn known(&self, before: &Before) -> io::Result<Option<(Rel, Known)>> {
        let place = rel(&before.place)?;
        let now = self.seen(&place)?;
        let Some(original) = &before.original else {
            let known = now.map(|seen| Known { seen, since: None, digest: None });
            return Ok(known.map(|known| (place, known)));
        };
        let wanted = original.digest.map(|digest| *digest.as_bytes());
        let same = match (&now, wanted) {
            (Some(seen), Some(wanted)) => {
                let (dir, name) = self.shared.lower.place(&place)?;
                let opened = dir.open(name).ok();
                let found = opened.and_then(|(file, _)| digest(seen, &file, &self.shared.bases));
                found == Some(wanted)
            }
            (Some(_), None) => before.same,
            (None, _) => false,
        };
        if let Some(seen) = now.filter(|_| same) {
            return Ok(Some((place, Known { seen, since: None, digest: wanted })));
        }
        if let (Some(base), Some(wanted)) = (&before.base, wanted) {
            let mut text = Vec::new();
            base.take(LARGEST + 1).read_to_end(&mut text)?;
            if text.len() as u64 <= LARGEST && sha256(&text) == wanted {
                self.shared.bases.keep(wanted, &text);
            }
        }
        let known = Known { seen: original.seen(), since: original.since(), digest: wanted };
        Ok(Some((place, known)))
    }

    /// The thing at a place of the lower directory.
    fn seen(&self, place: &Rel) -> io::Result<Option<Seen>> {
        match self.shared.lower.place(place) {
            Ok((dir, name)) => Ok(dir.look(name)?.as_ref().map(Seen::of)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).into()
}

fn rel(path: &Path) -> io::Result<Rel> {
    let rel = Rel::from_bytes(path.as_os_str().as_bytes());
    rel.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is no plain path below"))
}

fn rels(paths: &[PathBuf]) -> io::Result<Vec<Rel>> {
    paths.iter().map(|path| rel(path)).collect()
}

fn error(fault: Fault) -> io::Error {
    match fault {
        Fault::Errno(errno) => errno.into(),
        Fault::Full(facts) => io::Error::new(io::ErrorKind::QuotaExceeded, facts),
        Fault::Io(error) => error,
    }
}
