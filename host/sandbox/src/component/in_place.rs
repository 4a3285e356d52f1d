//! Runs the program's own machine code in place: its pages are the program's file, shared by all processes,
//! and no code is unpacked or copied before the first call.

use rustix::mm::{MprotectFlags, mprotect};
use wasmtime::CustomCodeMemory;

/// The smallest page of a supported processor, which bounds the alignment. The actual size is not read,
/// because reading it requires a file behind the OS sandbox; with larger pages, the system refuses unaligned
/// code.
pub(crate) const SMALLEST_PAGE: usize = 4 << 10;

/// Makes code executable in place. wasmtime's own mappings are read-only by then.
pub(crate) struct InPlace;

impl CustomCodeMemory for InPlace {
    fn required_alignment(&self) -> usize {
        SMALLEST_PAGE
    }

    #[expect(unsafe_code, reason = "permissions of memory")]
    fn publish_executable(&self, start: *const u8, length: usize) -> wasmtime::Result<()> {
        let flags = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: wasmtime names whole pages of newly loaded code without later writes: its own mappings, or
        // the program's read-only data.
        unsafe { mprotect(start.cast_mut().cast(), length, flags)? };
        Ok(())
    }

    /// Has no effect: wasmtime unmaps its own pages next, and the program's pages may serve another engine.
    fn unpublish_executable(&self, _: *const u8, _: usize) -> wasmtime::Result<()> {
        Ok(())
    }
}
