//! Machine code that is a part of the program runs where it lies: its pages are the program's own
//! file, shared by all processes, and nothing is unpacked or copied before the first call.

use rustix::mm::{MprotectFlags, mprotect};
use wasmtime::CustomCodeMemory;

/// The smallest page of a supported processor: what does not begin at a multiple of it begins on no
/// page. How large one is here is not asked, as that takes a file behind the OS sandbox; where it is
/// larger, the system refuses code that does not begin on one.
pub(crate) const SMALLEST_PAGE: usize = 4 << 10;

/// Makes code executable, wherever it lies. What wasmtime itself has mapped is read-only by then.
pub(crate) struct InPlace;

impl CustomCodeMemory for InPlace {
    fn required_alignment(&self) -> usize {
        SMALLEST_PAGE
    }

    #[expect(unsafe_code, reason = "permissions of memory")]
    fn publish_executable(&self, start: *const u8, length: usize) -> wasmtime::Result<()> {
        let flags = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: wasmtime names whole pages of code that it has just loaded and that nothing
        // writes from now on: pages that it mapped itself, or of the program's read-only data.
        unsafe { mprotect(start.cast_mut().cast(), length, flags)? };
        Ok(())
    }

    /// Nothing: wasmtime unmaps its own pages next, and those of the program may serve another
    /// engine.
    fn unpublish_executable(&self, _: *const u8, _: usize) -> wasmtime::Result<()> {
        Ok(())
    }
}
