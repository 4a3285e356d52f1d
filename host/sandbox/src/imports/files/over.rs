//! Operations on paths and open files in overlays.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::sync::Arc;

use belljar_policy::spelling::spell;
use belljar_policy::{DenyCode, Meter};
use rustix::fs::{FileType, Stat, Timestamps, futimens};
use rustix::io::Errno;
use std::os::unix::ffi::OsStringExt as _;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{DirectoryEntry, ErrorCode};
use wasmtime_wasi::p2::{FsResult, ReaddirIterator};

use super::alias::{DirContent, MAX_SEARCHED};
use super::closed::Closed;
use super::names::is_protected;
use super::open::Ask;
use super::paths::descriptor_type;
use super::tree::{Tree, is};
use super::walk::{HostDir as _, MAX_DEPTH, PathEnd, Steps as _};
use super::{Base, FilesCtx, FilesView, Listing, MAX_LISTED, Opened, Over, OverDir, error};
use crate::overlay::{DirAt, Fault, Found, Overlay, ReadFile, View};

impl Tree for View<'_> {
    fn first(&self, base: &Base) -> DirAt {
        match &base.opened.over {
            Some(Over::Dir(dir)) => self.dir(&dir.dir, dir.lower.then_some(&base.start.dir)),
            // A descriptor of a directory always refers to a directory.
            Some(Over::Reader(_) | Over::Upper(_)) | None => self.dir(&View::nowhere(), None),
        }
    }

    fn find(&self, place: &PathEnd<DirAt>) -> Result<Found, Errno> {
        View::find(self, place)
    }

    fn target(&self, place: &PathEnd<DirAt>) -> FsResult<CString> {
        // A slash after the name makes no difference.
        self.look_up(place).map_err(error)?;
        let name = place.name.as_deref().ok_or(ErrorCode::Invalid)?;
        let target = self.link(place.at(), name).map_err(error)?.ok_or(ErrorCode::Invalid)?;
        CString::new(target.into_vec()).map_err(|_| ErrorCode::Invalid.into())
    }

    fn open_dir(
        &self,
        place: &PathEnd<DirAt>,
        found: &Found,
    ) -> Result<(Arc<File>, Option<Over>), Errno> {
        let (dir, lower) = View::open_dir(self, place, found)?;
        let over = Over::Dir(Arc::new(OverDir { dir, lower: lower.is_some() }));
        Ok((lower.unwrap_or_else(|| Arc::clone(self.empty())), Some(over)))
    }

    fn open_file(
        &mut self,
        ctx: &FilesCtx,
        base: &Base,
        place: &PathEnd<DirAt>,
        found: Option<&Found>,
        ask: &Ask,
    ) -> FsResult<(File, Option<Over>)> {
        let fault = |fault| ctx.fault("open", fault);
        let (upper, file) = match found {
            None => self.make_file(place, ask.access()).map_err(fault)?,
            Some(found) if !ask.write => match self.open_to_read(place, found).map_err(error)? {
                ReadFile::Lower(reader, file) => {
                    return Ok((file, Some(Over::Reader(reader))));
                }
                ReadFile::Upper(upper, file) => (upper, file),
                ReadFile::Special => return Err(ctx.special(&base.opened, &place.real)),
            },
            Some(found) => {
                // Only the overlay's own names of the file count: lower names keep the old content.
                ctx.has_one_name("open", &base.opened.mount, &place.real, found)?;
                let keep =
                    if ask.truncate { 0 } else { self.to_copy(place, found).map_err(fault)? };
                ctx.reserve_write("open", keep)?;
                let opened = self.open_to_write(place, found, ask.access(), keep);
                if opened.is_err() {
                    ctx.record.refund(Meter::Write, keep);
                }
                opened.map_err(fault)?
            }
        };
        if ask.truncate {
            let growing = upper.grow();
            file.set_len(0)?;
            growing.settle(0);
        }
        Ok((file, Some(Over::Upper(upper))))
    }

    fn make_dir(&mut self, place: &PathEnd<DirAt>) -> Result<(), Fault> {
        View::make_dir(self, place)
    }

    fn remove_dir(&mut self, place: &PathEnd<DirAt>) -> Result<(), Fault> {
        let found = View::find(self, place)?;
        if !is(&found.stat, FileType::Directory) {
            return Err(Errno::NOTDIR.into());
        }
        self.remove(place, &found)
    }

    fn unlink(&mut self, place: &PathEnd<DirAt>, found: &Found) -> Result<(), Fault> {
        self.remove(place, found)
    }

    fn search(&self, place: &PathEnd<DirAt>, closed: &Closed) -> Result<DirContent, Errno> {
        let name = place.name.as_deref().ok_or(Errno::BUSY)?;
        let mut left = MAX_SEARCHED;
        search(self, &self.enter(place.at(), name)?, closed, 0, &mut left)
    }

    fn rename(
        &mut self,
        old: &PathEnd<DirAt>,
        new: &PathEnd<DirAt>,
        found: &Found,
    ) -> Result<(), Fault> {
        View::rename(self, [old, new], found)
    }

    fn link(
        &mut self,
        old: &PathEnd<DirAt>,
        new: &PathEnd<DirAt>,
        found: &Found,
    ) -> Result<(), Fault> {
        View::link(self, [old, new], found)
    }

    fn touch(
        &mut self,
        place: &PathEnd<DirAt>,
        found: &Found,
        times: &Timestamps,
    ) -> Result<(), Fault> {
        View::touch(self, place, found, times)
    }
}

/// Searches like `alias::content`, in both directories together.
fn search(
    view: &View<'_>,
    dir: &DirAt,
    closed: &Closed,
    depth: usize,
    left: &mut usize,
) -> Result<DirContent, Errno> {
    if depth > MAX_DEPTH {
        return Ok(DirContent::TooMuch);
    }
    let below = dir.host_dir();
    if let Some(below) = below
        && closed.is_open(below)?
    {
        return Ok(DirContent::Protected);
    }
    for (name, file_type) in view.list_all(dir, *left as u64)? {
        if is_protected(&name.to_string_lossy()) {
            return Ok(DirContent::Protected);
        }
        *left = match left.checked_sub(1) {
            Some(left) => left,
            None => return Ok(DirContent::TooMuch),
        };
        if below.is_some_and(|below| closed.is_at(below, &name)) {
            return Ok(DirContent::Protected);
        }
        if file_type == FileType::Directory {
            match search(view, &view.enter(dir, OsStr::new(&name))?, closed, depth + 1, left)? {
                DirContent::Plain => {}
                found => return Ok(found),
            }
        }
    }
    Ok(DirContent::Plain)
}

impl FilesView<'_> {
    /// The status of an open descriptor, if inside an overlay.
    pub(super) fn status_over(
        &self,
        fd: &Resource<Descriptor>,
        opened: &Opened,
    ) -> FsResult<Option<Stat>> {
        let (Some(overlay), Some(over)) = (&opened.mount.overlay, &opened.over) else {
            return Ok(None);
        };
        let (file, _) = self.either(fd)?;
        let view = overlay.view();
        let stat = match over {
            Over::Dir(dir) => view.dir_stat(&view.dir(&dir.dir, dir.lower.then_some(&file))),
            Over::Upper(upper) => view.upper_stat(upper, &file),
            Over::Reader(reader) => match reader.moved() {
                Some((upper, file)) => view.upper_stat(upper, file),
                None => view.reader_stat(reader, &file),
            },
        };
        Ok(Some(stat.map_err(error)?))
    }

    /// Whether two descriptors refer to the same file, if one is inside an overlay. False if a status is
    /// unavailable.
    pub(super) fn is_same_over(
        &self,
        a: &Resource<Descriptor>,
        b: &Resource<Descriptor>,
    ) -> Option<bool> {
        let over = |fd| self.opened(fd).is_ok_and(|opened| opened.over.is_some());
        if !over(a) && !over(b) {
            return None;
        }
        let identity = |fd| self.status(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        Some(identity(a).is_some_and(|of_a| identity(b) == Some(of_a)))
    }

    /// Sets times of a writable file or directory that is open in an overlay.
    pub(super) fn set_times_over(
        &self,
        overlay: &Overlay,
        over: &Over,
        file: &Arc<File>,
        opened: &Opened,
        times: impl FnOnce() -> FsResult<Timestamps>,
    ) -> FsResult<()> {
        let mut view = overlay.view();
        match over {
            Over::Dir(dir) => {
                let at = view.dir(&dir.dir, dir.lower.then_some(file));
                let set = view.touch_dir(&at, &times()?);
                set.map_err(|fault| self.ctx.fault("set-times", fault))
            }
            Over::Upper(upper) => {
                let stat = view.upper_stat(upper, file).map_err(error)?;
                let found = Found::on_disk(stat);
                self.ctx.has_one_name("set-times", &opened.mount, &opened.real, &found)?;
                futimens(&**file, &times()?).map_err(error)
            }
            // The file is open only for reading.
            Over::Reader(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// A listing of a changed directory. `None` = unchanged, so the host's own is used.
    pub(super) fn list_over(&mut self, base: &Base) -> FsResult<Option<Resource<ReaddirIterator>>> {
        let Some(overlay) = &base.opened.mount.overlay else { return Ok(None) };
        let free = MAX_LISTED.saturating_sub(self.ctx.listed);
        let view = overlay.view();
        let dir = view.first(base);
        if view.is_unchanged(&dir) {
            return Ok(None);
        }
        let names = view.list(&dir, free).map_err(error)?;
        drop(view);
        self.tire();
        let held = (names.len() as u64).max(1);
        if held > free {
            return Err(self.too_many(base));
        }
        self.listing_of(names, held).map(Some)
    }

    /// A listing of these names.
    pub(super) fn listing_of(
        &mut self,
        names: Vec<(std::ffi::OsString, FileType)>,
        held: u64,
    ) -> FsResult<Resource<ReaddirIterator>> {
        let entry = |(name, file_type): (std::ffi::OsString, FileType)| DirectoryEntry {
            type_: descriptor_type(file_type),
            name: spell(&name).into_owned(),
        };
        let entries: Vec<DirectoryEntry> = names.into_iter().map(entry).collect();
        // The table needs a resource whose number identifies the listing.
        let listing = self.table.push(MergedListing)?;
        let merged = Some(entries.into_iter());
        self.ctx.listings.insert(listing.rep(), Listing { held, merged });
        self.ctx.listed += held;
        Ok(Resource::new_own(listing.rep()))
    }

    pub(super) fn too_many(&self, base: &Base) -> wasmtime_wasi::p2::FsError {
        let facts = format!("`{}` has too many entries to list", base.opened.guest_path());
        self.ctx.refuse("read-directory", DenyCode::LimitReached, facts)
    }
}

/// The resource of a listing whose entries are in [`FilesCtx`].
pub(super) struct MergedListing;
