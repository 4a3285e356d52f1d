//! The guests: one constant for each file in `guests/` and `prebuilt/`, and for two stock tools, made by
//! `build.rs`.
//!
//! They are private to the crate, so a guest that no attack names is dead code, which this
//! crate denies.

use std::io::Read as _;

use belljar_sandbox::Wasm;
use flate2::read::DeflateDecoder;

/// A component and the name of its one tool.
#[derive(Debug, Clone, Copy)]
pub struct Guest {
    /// The tool's name, for example `probe`.
    pub name: &'static str,
    /// The component, deflated: most of those who have the program never run an attack.
    packed: &'static [u8],
}

impl Guest {
    /// The component. [`crate::Suite`] keeps one for each guest, with its digest.
    pub(crate) fn to_wasm(self) -> Wasm {
        Wasm::new(self.unpack_bytes()).with_name(self.name)
    }

    /// The component's bytes.
    pub(crate) fn unpack_bytes(&self) -> Vec<u8> {
        let mut whole = Vec::new();
        // The build has packed them. Were they cut, it is no component, and every attack with it says so.
        let _ = DeflateDecoder::new(self.packed).read_to_end(&mut whole);
        whole
    }
}

mod made {
    use super::Guest;

    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

pub(crate) use made::*;

/// The manifest of [`FILE_READ`], the tool that the neighbour calls.
pub(crate) const FILE_READ_MANIFEST: &str = include_str!("../../../tools/file_read/tool.toml");

/// The manifest of [`RUN_JAVASCRIPT`], which the attacks of scripts are written in.
pub(crate) const RUN_JAVASCRIPT_MANIFEST: &str =
    include_str!("../../../tools/run_javascript/tool.toml");
