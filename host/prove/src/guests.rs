//! The guests: one constant for each file in `guests/` and `prebuilt/`, made by `build.rs`.
//!
//! They are private to the crate, so a guest that no attack names is dead code, which this
//! crate denies.

use belljar_sandbox::Wasm;

/// A component and the name of its one tool.
#[derive(Debug, Clone, Copy)]
pub struct Guest {
    /// The tool's name.
    pub name: &'static str,
    /// The component.
    pub(crate) wasm: &'static [u8],
}

impl Guest {
    /// The component. [`crate::Suite`] keeps one for each guest, with its digest.
    pub(crate) fn wasm(&self) -> Wasm {
        Wasm::from_static(self.wasm).named(self.name)
    }
}

mod made {
    use super::Guest;

    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

pub(crate) use made::*;

/// The tool that the neighbour calls, and the manifest that it is installed with.
pub(crate) const FILE_READ: Guest =
    Guest { name: "file_read", wasm: include_bytes!("../../../tools/prebuilt/file_read.wasm") };

/// The manifest of [`FILE_READ`].
pub(crate) const FILE_READ_MANIFEST: &str = include_str!("../../../tools/file_read/tool.toml");

/// The stock tool that runs JavaScript, which the attacks of scripts are written in.
pub(crate) const RUN_JAVASCRIPT: Guest = Guest {
    name: "run_javascript",
    wasm: include_bytes!("../../../tools/prebuilt/run_javascript.wasm"),
};

/// Its manifest.
pub(crate) const RUN_JAVASCRIPT_MANIFEST: &str =
    include_str!("../../../tools/run_javascript/tool.toml");
