//! Executes the program's own machine code where it is in memory: its pages belong to the program's file and
//! are shared by all processes, so no code is unpacked or copied before the first call.

use rustix::mm::{MprotectFlags, mprotect};
use wasmtime::CustomCodeMemory;

/// The page size to which code must be aligned: the smallest of the supported processors. The machine's own
/// size is not read, because that takes a file, which the OS sandbox refuses. If its pages are larger, the
/// system refuses code not aligned to them.
pub(crate) const SMALLEST_PAGE: usize = 4 << 10;

/// Tells wasmtime to make code executable where it is. wasmtime's own mappings are read-only by then.
pub(crate) struct InPlace;

impl CustomCodeMemory for InPlace {
    fn required_alignment(&self) -> usize {
        SMALLEST_PAGE
    }

    #[expect(unsafe_code, reason = "permissions of memory")]
    fn publish_executable(&self, start: *const u8, length: usize) -> wasmtime::Result<()> {
        let flags = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: wasmtime passes whole pages of newly loaded code nobody writes any more: its own mappings,
        // or read-only data of the program.
        unsafe { mprotect(start.cast_mut().cast(), length, flags)? };
        Ok(())
    }

    /// Does nothing: wasmtime unmaps its own pages next, and the program's pages may serve another engine.
    fn unpublish_executable(&self, _: *const u8, _: usize) -> wasmtime::Result<()> {
        Ok(())
    }
}
