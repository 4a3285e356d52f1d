//! Operations on paths and open files in mounts with an overlay.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::sync::Arc;

use belljar_overlay::walk::{DirStepper as _, HostDir as _, MAX_DEPTH, PathEnd};
use belljar_overlay::{ChangeFault, DirAt, FoundEntry, Overlay, OverlayView, ReadFile};
use belljar_policy::is_protected;
use belljar_policy::spelling::spell_name;
use belljar_policy::{DenyCode, Meter};
use rustix::fs::{FileType, Stat, Timestamps, futimens};
use rustix::io::Errno;
use std::os::unix::ffi::OsStringExt as _;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{DirectoryEntry, ErrorCode};
use wasmtime_wasi::p2::{FsResult, ReaddirIterator};

use super::alias::{DirContent, MAX_SEARCHED};
use super::closed::ClosedPaths;
use super::open::OpenRequest;
use super::paths::descriptor_type;
use super::tree::{FileTree, has_file_type};
use super::{
    BaseDir, FilesCtx, FilesView, MAX_LISTED, OpenDescriptor, OpenListing, OverDir, OverlayTarget,
    to_fs_error,
};

impl FileTree for OverlayView<'_> {
    fn base_dir(&self, base: &BaseDir) -> DirAt {
        match &base.opened.over {
            Some(OverlayTarget::Dir(dir)) => {
                self.resolve_dir(&dir.dir, dir.lower.then_some(&base.start.dir))
            }
            // Does not happen: a descriptor of a directory refers to a directory.
            Some(OverlayTarget::Reader(_) | OverlayTarget::Upper(_)) | None => {
                self.resolve_dir(&OverlayView::removed_ref(), None)
            }
        }
    }

    fn find_at(&self, place: &PathEnd<DirAt>) -> Result<FoundEntry, Errno> {
        OverlayView::find_entry(self, place)
    }

    fn link_target(&self, place: &PathEnd<DirAt>) -> FsResult<CString> {
        // Looked up first, because a path that ends in `/` must be a directory.
        self.look_up(place).map_err(to_fs_error)?;
        let name = place.name.as_deref().ok_or(ErrorCode::Invalid)?;
        let target = self
            .read_link(place.parent_dir(), name)
            .map_err(to_fs_error)?
            .ok_or(ErrorCode::Invalid)?;
        CString::new(target.into_vec()).map_err(|_| ErrorCode::Invalid.into())
    }

    fn open_dir(
        &self,
        place: &PathEnd<DirAt>,
        found: &FoundEntry,
    ) -> Result<(Arc<File>, Option<OverlayTarget>), Errno> {
        let (dir, lower) = OverlayView::open_dir(self, place, found)?;
        let over = OverlayTarget::Dir(Arc::new(OverDir { dir, lower: lower.is_some() }));
        Ok((lower.unwrap_or_else(|| Arc::clone(self.empty_dir())), Some(over)))
    }

    fn open_file(
        &mut self,
        ctx: &FilesCtx,
        base: &BaseDir,
        place: &PathEnd<DirAt>,
        found: Option<&FoundEntry>,
        ask: &OpenRequest,
    ) -> FsResult<(File, Option<OverlayTarget>)> {
        let fault = |fault| ctx.change_error("open", fault);
        let (upper, file) = match found {
            None => self.make_file(place, ask.access_flags()).map_err(fault)?,
            Some(found) if !ask.write => {
                match self.open_to_read(place, found).map_err(to_fs_error)? {
                    ReadFile::Lower(reader, file) => {
                        return Ok((file, Some(OverlayTarget::Reader(reader))));
                    }
                    ReadFile::Upper(upper, file) => (upper, file),
                    ReadFile::Special => return Err(ctx.refuse_special(&base.opened, &place.real)),
                }
            }
            Some(found) => {
                // Hard links count only among the overlay's own files, because a write does not change the
                // lower file.
                ctx.check_single_name("open", &base.opened.mount, &place.real, found)?;
                let keep =
                    if ask.truncate { 0 } else { self.to_copy(place, found).map_err(fault)? };
                ctx.reserve_write("open", keep)?;
                let opened = self.open_to_write(place, found, ask.access_flags(), keep);
                if opened.is_err() {
                    ctx.record.refund_bytes(Meter::Write, keep);
                }
                opened.map_err(fault)?
            }
        };
        if ask.truncate {
            let growing = upper.lock_length();
            file.set_len(0)?;
            growing.settle_length(0);
        }
        Ok((file, Some(OverlayTarget::Upper(upper))))
    }

    fn make_dir(&mut self, place: &PathEnd<DirAt>) -> Result<(), ChangeFault> {
        OverlayView::make_dir(self, place)
    }

    fn remove_dir(&mut self, place: &PathEnd<DirAt>) -> Result<(), ChangeFault> {
        let found = OverlayView::find_entry(self, place)?;
        if !has_file_type(&found.stat, FileType::Directory) {
            return Err(Errno::NOTDIR.into());
        }
        self.remove_entry(place, &found)
    }

    fn unlink_at(&mut self, place: &PathEnd<DirAt>, found: &FoundEntry) -> Result<(), ChangeFault> {
        self.remove_entry(place, found)
    }

    fn search_content(
        &self,
        place: &PathEnd<DirAt>,
        closed: &ClosedPaths,
    ) -> Result<DirContent, Errno> {
        let name = place.name.as_deref().ok_or(Errno::BUSY)?;
        let mut left = MAX_SEARCHED;
        search_merged(self, &self.enter_dir(place.parent_dir(), name)?, closed, 0, &mut left)
    }

    fn rename_at(
        &mut self,
        old: &PathEnd<DirAt>,
        new: &PathEnd<DirAt>,
        found: &FoundEntry,
    ) -> Result<(), ChangeFault> {
        OverlayView::rename_entry(self, [old, new], found)
    }

    fn link_at(
        &mut self,
        old: &PathEnd<DirAt>,
        new: &PathEnd<DirAt>,
        found: &FoundEntry,
    ) -> Result<(), ChangeFault> {
        OverlayView::link_entry(self, [old, new], found)
    }

    fn set_times_at(
        &mut self,
        place: &PathEnd<DirAt>,
        found: &FoundEntry,
        times: &Timestamps,
    ) -> Result<(), ChangeFault> {
        OverlayView::touch_entry(self, place, found, times)
    }
}

/// Searches a directory like `alias::search_directory`, with the overlay's changes applied.
fn search_merged(
    view: &OverlayView<'_>,
    dir: &DirAt,
    closed: &ClosedPaths,
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
            match search_merged(
                view,
                &view.enter_dir(dir, OsStr::new(&name))?,
                closed,
                depth + 1,
                left,
            )? {
                DirContent::Plain => {}
                found => return Ok(found),
            }
        }
    }
    Ok(DirContent::Plain)
}

impl FilesView<'_> {
    /// The status of an open descriptor; `None`: not in an overlay.
    pub(super) fn status_over(
        &self,
        fd: &Resource<Descriptor>,
        opened: &OpenDescriptor,
    ) -> FsResult<Option<Stat>> {
        let (Some(overlay), Some(over)) = (&opened.mount.overlay, &opened.over) else {
            return Ok(None);
        };
        let (file, _) = self.find_object(fd)?;
        let view = overlay.lock_view();
        let stat = match over {
            OverlayTarget::Dir(dir) => {
                view.dir_stat(&view.resolve_dir(&dir.dir, dir.lower.then_some(&file)))
            }
            OverlayTarget::Upper(upper) => view.upper_stat(upper, &file),
            OverlayTarget::Reader(reader) => match reader.moved_copy() {
                Some((upper, file)) => view.upper_stat(upper, file),
                None => view.reader_stat(reader, &file),
            },
        };
        Ok(Some(stat.map_err(to_fs_error)?))
    }

    /// Whether two descriptors refer to the same file. `None`: neither is in an overlay. False if the status
    /// of one is unavailable.
    pub(super) fn is_same_over(
        &self,
        a: &Resource<Descriptor>,
        b: &Resource<Descriptor>,
    ) -> Option<bool> {
        let over = |fd| self.find_descriptor(fd).is_ok_and(|opened| opened.over.is_some());
        if !over(a) && !over(b) {
            return None;
        }
        let identity = |fd| self.stat_descriptor(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        Some(identity(a).is_some_and(|of_a| identity(b) == Some(of_a)))
    }

    /// Sets the times of a file or directory open for writing in an overlay.
    pub(super) fn set_times_over(
        &self,
        overlay: &Overlay,
        over: &OverlayTarget,
        file: &Arc<File>,
        opened: &OpenDescriptor,
        times: impl FnOnce() -> FsResult<Timestamps>,
    ) -> FsResult<()> {
        let mut view = overlay.lock_view();
        match over {
            OverlayTarget::Dir(dir) => {
                let at = view.resolve_dir(&dir.dir, dir.lower.then_some(file));
                let set = view.touch_dir(&at, &times()?);
                set.map_err(|fault| self.ctx.change_error("set-times", fault))
            }
            OverlayTarget::Upper(upper) => {
                let stat = view.upper_stat(upper, file).map_err(to_fs_error)?;
                let found = FoundEntry::on_disk(stat);
                self.ctx.check_single_name("set-times", &opened.mount, &opened.real, &found)?;
                futimens(&**file, &times()?).map_err(to_fs_error)
            }
            // A file of the lower directory is open for reading only.
            OverlayTarget::Reader(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// The listing of a directory that the overlay changed. `None`: unchanged, so the host's own listing
    /// will do.
    pub(super) fn list_over(
        &mut self,
        base: &BaseDir,
    ) -> FsResult<Option<Resource<ReaddirIterator>>> {
        let Some(overlay) = &base.opened.mount.overlay else { return Ok(None) };
        let free = MAX_LISTED.saturating_sub(self.ctx.listed);
        let view = overlay.lock_view();
        let dir = view.base_dir(base);
        if view.is_unchanged(&dir) {
            return Ok(None);
        }
        let names = view.list_dir(&dir, free).map_err(to_fs_error)?;
        drop(view);
        self.yield_next();
        let held = (names.len() as u64).max(1);
        if held > free {
            return Err(self.too_many(base));
        }
        self.listing_of(names, held).map(Some)
    }

    /// Makes a listing of these names, which counts as `held` entries.
    pub(super) fn listing_of(
        &mut self,
        names: Vec<(std::ffi::OsString, FileType)>,
        held: u64,
    ) -> FsResult<Resource<ReaddirIterator>> {
        let entry = |(name, file_type): (std::ffi::OsString, FileType)| DirectoryEntry {
            type_: descriptor_type(file_type),
            name: spell_name(&name).into_owned(),
        };
        let entries: Vec<DirectoryEntry> = names.into_iter().map(entry).collect();
        // The guest refers to the listing by a number of the resource table.
        let listing = self.table.push(MergedListing)?;
        let merged = Some(entries.into_iter());
        self.ctx.listings.insert(listing.rep(), OpenListing { held, merged });
        self.ctx.listed += held;
        Ok(Resource::new_own(listing.rep()))
    }

    pub(super) fn too_many(&self, base: &BaseDir) -> wasmtime_wasi::p2::FsError {
        let facts = format!("`{}` has too many entries to list", base.opened.guest_path());
        self.ctx.refuse_operation("read-directory", DenyCode::LimitReached, facts)
    }
}

/// Stands in the resource table for a listing whose entries are in [`FilesCtx`].
pub(super) struct MergedListing;
