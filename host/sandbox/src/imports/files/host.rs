//! Implements the traits of `wasi:filesystem`. Each function counts the call, checks it, and then acts.

use std::sync::Arc;

use belljar_policy::DenyCode;
use rustix::fs::{Stat, fstat, futimens};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir, FsPerms, OpenMode};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, ReaddirIterator};

use super::over::MergedListing;
use super::paths::{EntryCount, all_entries, count_entries, descriptor_stat, to_timestamps};
use super::streams::{
    FileReader, FileWriter, StreamHandle, read_billed, resize_billed, write_billed,
};
use super::{
    FilesView, MAX_LISTED, MAX_STREAMS, MountAccess, OpenListing, OverlayTarget, to_fs_error,
};

use belljar_overlay::FoundEntry;
use types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, Filesize,
    MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};

/// A listing with more entries than this is read on a blocking thread, because each entry takes a system
/// call.
const SHORT_LISTING: u64 = 512;

/// The most bytes of a `write` call, because the call runs on the guest's thread: 1 MiB takes well under a
/// millisecond. The guest learns how many bytes were written.
const MAX_WRITE: usize = 1 << 20;

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        self.ctx.record.host_call();
        self.preopen_mounts()
    }
}

impl types::Host for FilesView<'_> {
    fn convert_error_code(&mut self, err: FsError) -> wasmtime::Result<ErrorCode> {
        self.wasi_view().convert_error_code(err)
    }

    fn filesystem_error_code(
        &mut self,
        err: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        self.wasi_view().filesystem_error_code(err)
    }
}

impl types::HostDescriptor for FilesView<'_> {
    /// Ignores advice about caching, which the interface allows, because it could drop or fill caches that
    /// others use.
    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        _offset: Filesize,
        _len: Filesize,
        _advice: Advice,
    ) -> FsResult<()> {
        self.pace_call().await;
        self.find_file(&fd).map(drop)
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.pace_call().await;
        self.flush_to_disk(&fd, std::fs::File::sync_data).await
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.pace_call().await;
        self.find_descriptor(&fd)?;
        self.wasi_view().get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.pace_call().await;
        self.find_descriptor(&fd)?;
        self.wasi_view().get_type(fd).await
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        self.pace_call().await;
        let (content, opened) = self.find_file(&fd)?;
        self.ctx.may_write_open("set-size", &opened)?;
        i64::try_from(size).map_err(|_| ErrorCode::FileTooLarge)?;
        resize_billed(&content, &self.ctx.record, size)?;
        self.ctx.record_written(&opened.mount, &opened.real);
        Ok(())
    }

    /// Sets the times of an open file or directory, in the overlay or on disk. On disk, a file with several
    /// names is refused.
    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        access: NewTimestamp,
        change: NewTimestamp,
    ) -> FsResult<()> {
        self.pace_call().await;
        let (file, opened) = self.find_object(&fd)?;
        self.ctx.may_write_open("set-times", &opened)?;
        self.is_for_writing("set-times", &fd, &opened)?;
        let times = || to_timestamps(access, change);
        if let (Some(overlay), Some(over)) = (&opened.mount.overlay, &opened.over) {
            self.set_times_over(overlay, over, &file, &opened, times)?;
        } else {
            let found = FoundEntry::on_disk(fstat(&*file).map_err(to_fs_error)?);
            self.ctx.check_single_name("set-times", &opened.mount, &opened.real, &found)?;
            futimens(&*file, &times()?).map_err(to_fs_error)?;
        }
        self.ctx.record_written(&opened.mount, &opened.real);
        Ok(())
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        len: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.pace_call().await;
        let (content, opened) = self.find_file(&fd)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let path = opened.guest_path();
        let bytes = read_billed(content.current_file(), &self.ctx.record, &path, len, offset)?;
        Ok((bytes.to_vec(), bytes.is_empty()))
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        buf: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        self.pace_call().await;
        let (content, opened) = self.find_file(&fd)?;
        self.ctx.may_write_open("write", &opened)?;
        let path = opened.guest_path();
        let buf = buf.get(..MAX_WRITE).unwrap_or(&buf);
        let written = write_billed(&content, &self.ctx.record, &path, buf, Some(offset))?;
        Ok(written as Filesize)
    }

    async fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<ReaddirIterator>> {
        self.pace_call().await;
        let base = self.find_directory(&fd)?;
        if let Some(listing) = self.list_over(&base)? {
            return Ok(listing);
        }
        let free = MAX_LISTED.saturating_sub(self.ctx.listed);
        let EntryCount { count, odd } = count_entries(&*base.start.dir, free)?;
        self.yield_next();
        if count > free {
            return Err(self.too_many(&base));
        }
        if odd {
            // INV-501: a name that is not text gets a spelling, which only belljar's own listings have.
            let names = all_entries(&*base.start.dir, free)?;
            let held = (names.len() as u64).max(1);
            return self.listing_of(names, held);
        }
        let listing = if count <= SHORT_LISTING {
            self.wasi_view().read_directory(fd).await?
        } else {
            self.read_long_directory(&base.start.dir).await?
        };
        // An empty listing counts as one entry, so that the number of listings is bounded too.
        let held = count.max(1);
        self.ctx.listings.insert(listing.rep(), OpenListing { held, merged: None });
        self.ctx.listed += held;
        Ok(listing)
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.pace_call().await;
        self.flush_to_disk(&fd, std::fs::File::sync_all).await
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.pace_call().await;
        self.make_dir(&fd, &path)
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        self.pace_call().await;
        Ok(descriptor_stat(&self.stat_descriptor(&fd)?))
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        self.pace_call().await;
        Ok(descriptor_stat(&self.stat_path(&fd, path_flags, &path)?))
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        access: NewTimestamp,
        change: NewTimestamp,
    ) -> FsResult<()> {
        self.pace_call().await;
        self.touch_at(&fd, path_flags, &path, &to_timestamps(access, change)?)
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path_flags: PathFlags,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.pace_call().await;
        if old_path_flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(ErrorCode::Invalid.into());
        }
        self.hard_link(&fd, &old_path, &new_fd, &new_path)
    }

    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        self.pace_call().await;
        self.open_path(&fd, path_flags, &path, open_flags, flags)
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.ctx.open.remove(&fd.rep());
        self.table.delete(fd)?;
        Ok(())
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        self.pace_call().await;
        self.read_link(&fd, &path)
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.pace_call().await;
        self.remove_dir(&fd, &path)
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.pace_call().await;
        self.rename_path(&fd, &old_path, &new_fd, &new_path)
    }

    async fn symlink_at(
        &mut self,
        fd: Resource<Descriptor>,
        _old_path: String,
        new_path: String,
    ) -> FsResult<()> {
        self.pace_call().await;
        self.refuse_symlink(&fd, &new_path)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.pace_call().await;
        self.unlink_file(&fd, &path)
    }

    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        if let Descriptor::Dir(_) = self.table.get(&fd)? {
            return Err(ErrorCode::IsDirectory.into());
        }
        let handle = self.stream_handle(&fd, "read-via-stream")?;
        let reader: DynInputStream = Box::new(FileReader::new(handle, offset));
        Ok(self.table.push(reader)?)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.open_writer(&fd, Some(offset))
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.open_writer(&fd, None)
    }

    async fn is_same_object(
        &mut self,
        a: Resource<Descriptor>,
        b: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        self.pace_call().await;
        if let Some(same) = self.is_same_over(&a, &b) {
            return Ok(same);
        }
        self.wasi_view().is_same_object(a, b).await
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        self.pace_call().await;
        Ok(self.ctx.metadata_hash(&self.stat_descriptor(&fd)?))
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        self.pace_call().await;
        let stat = self.stat_path(&fd, path_flags, &path)?;
        Ok(self.ctx.metadata_hash(&stat))
    }
}

impl types::HostDirectoryEntryStream for FilesView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<ReaddirIterator>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.pace_call().await;
        let open = self.ctx.listings.get_mut(&stream.rep());
        if let Some(merged) = open.and_then(|listing| listing.merged.as_mut()) {
            return Ok(merged.next());
        }
        loop {
            let borrowed = Resource::new_borrow(stream.rep());
            match self.wasi_view().read_directory_entry(borrowed).await {
                // An entry that is not text was added after the names were checked; it is left out.
                Err(error)
                    if matches!(error.downcast_ref(), Some(ErrorCode::IllegalByteSequence)) => {}
                other => return other,
            }
        }
    }

    fn drop(&mut self, stream: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        let open = self.ctx.listings.remove(&stream.rep());
        let held = open.as_ref().map_or(0, |listing| listing.held);
        self.ctx.listed = self.ctx.listed.saturating_sub(held);
        if open.is_some_and(|listing| listing.merged.is_some()) {
            self.table.delete(Resource::<MergedListing>::new_own(stream.rep()))?;
        } else {
            self.table.delete(stream)?;
        }
        Ok(())
    }
}

impl FilesView<'_> {
    /// The status of an open file or directory, as the overlay shows it if there is one.
    pub(super) fn stat_descriptor(&self, fd: &Resource<Descriptor>) -> FsResult<Stat> {
        let (file, opened) = self.find_object(fd)?;
        match self.status_over(fd, &opened)? {
            Some(stat) => Ok(stat),
            None => fstat(&*file).map_err(to_fs_error),
        }
    }

    /// Opens a stream over a file, counted against the limit of streams.
    fn stream_handle(&mut self, fd: &Resource<Descriptor>, what: &str) -> FsResult<StreamHandle> {
        self.ctx.record.host_call();
        let (content, opened) = self.find_file(fd)?;
        let Some(stream) = self.ctx.streams.acquire_slot() else {
            let facts = format!("{MAX_STREAMS} streams are open already");
            return Err(self.ctx.refuse_operation(what, DenyCode::LimitReached, facts));
        };
        Ok(StreamHandle {
            content,
            record: Arc::clone(&self.ctx.record),
            path: opened.guest_path(),
            _file: opened.slot,
            _stream: stream,
        })
    }

    fn open_writer(
        &mut self,
        fd: &Resource<Descriptor>,
        at: Option<Filesize>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let handle = self.stream_handle(fd, "write-via-stream")?;
        self.ctx.may_write_open("write-via-stream", &self.find_descriptor(fd)?)?;
        let writer: DynOutputStream = Box::new(FileWriter::new(handle, at));
        Ok(self.table.push(writer)?)
    }

    /// Waits on a blocking thread until the disk has the data. A descriptor without written data needs no
    /// wait.
    async fn flush_to_disk(
        &mut self,
        fd: &Resource<Descriptor>,
        sync: fn(&std::fs::File) -> std::io::Result<()>,
    ) -> FsResult<()> {
        let (file, opened) = self.find_object(fd)?;
        match (opened.mount.access, &opened.over) {
            (MountAccess::Read, _)
            | (
                MountAccess::Overlay,
                Some(OverlayTarget::Dir(_) | OverlayTarget::Reader(_)) | None,
            ) => Ok(()),
            (MountAccess::Overlay, Some(OverlayTarget::Upper(_))) | (MountAccess::ReadWrite, _) => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "one at a time of a store, whose call waits for it"
                )]
                let done = tokio::task::spawn_blocking(move || sync(&file)).await;
                Ok(done.map_err(|_| ErrorCode::Io)??)
            }
        }
    }

    /// Lists a directory on a blocking thread, which needs a descriptor of its own.
    async fn read_long_directory(
        &mut self,
        dir: &std::fs::File,
    ) -> FsResult<Resource<ReaddirIterator>> {
        let dir = Dir::new(dir.try_clone()?, FsPerms::ReadOnly, OpenMode::READ, false);
        let fd = self.table.push(Descriptor::Dir(dir))?;
        let borrowed = Resource::new_borrow(fd.rep());
        let listing = types::HostDescriptor::read_directory(&mut self.wasi_view(), borrowed).await;
        self.table.delete(fd)?;
        listing
    }
}
