//! The guests: one constant for each file in `guests/` and `prebuilt/`, and for two stock tools; `build.rs`
//! makes them.
//!
//! They are private to the crate, so a guest that no attack uses is dead code, which this crate denies.

use std::io::Read as _;

use belljar_sandbox::Wasm;
use flate2::read::DeflateDecoder;

/// A component with a single tool, which an attack uses.
#[derive(Debug, Clone, Copy)]
pub struct Guest {
    /// The tool's name, for example `probe`.
    pub name: &'static str,
    /// The component, compressed, because most users of the program never run an attack.
    packed: &'static [u8],
}

impl Guest {
    /// The component for loading. [`crate::Suite`] keeps one for each guest, with its digest.
    pub(crate) fn to_wasm(self) -> Wasm {
        Wasm::new(self.unpack_bytes()).with_name(self.name)
    }

    /// The component's bytes, decompressed.
    pub(crate) fn unpack_bytes(&self) -> Vec<u8> {
        let mut whole = Vec::new();
        // The build has compressed them, so this succeeds. Cut bytes would be no component, and every attack
        // that uses it would fail.
        let _ = DeflateDecoder::new(self.packed).read_to_end(&mut whole);
        whole
    }
}

mod made {
    use super::Guest;

    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

pub(crate) use made::*;

/// The manifest of the stock tool [`FILE_READ`], which the neighbour calls.
pub(crate) const FILE_READ_MANIFEST: &str = include_str!("../../../tools/file_read/tool.toml");

/// The manifest of the stock tool [`RUN_JAVASCRIPT`], which attacks by scripts use.
pub(crate) const RUN_JAVASCRIPT_MANIFEST: &str =
    include_str!("../../../tools/run_javascript/tool.toml");
