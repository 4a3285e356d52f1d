//! Claims that must hold for every input, whoever wrote it: one function for each fuzz target.
//!
//! The targets in `tests/fuzz/fuzz_targets` call these with what the fuzzer makes up; the
//! test `replay` calls them with every file of `tests/fuzz/corpus` and
//! `tests/fuzz/regressions`, so that `cargo test` keeps what the fuzzer once found. A broken
//! promise is a panic: that is what both look for.

mod definition;
mod gate;
mod inspecting;
mod sandbox;
mod settings;

// The files of the sandbox name each other from the root of their crate.
use sandbox::error::LoadError;
use sandbox::inspect::ImportNeed;
use sandbox::json;
mod component {
    pub(crate) use crate::sandbox::{interfaces, kind, tool_info};
}

pub use definition::definition;
pub use gate::gate;
pub use inspecting::component;
pub use settings::settings;

/// A check of arbitrary bytes. Panics where a promise is broken.
pub type Check = fn(&[u8]);

/// Every target by the name of its binary and its folder in the corpus.
pub const TARGETS: &[(&str, Check)] =
    &[("component", component), ("definition", definition), ("gate", gate), ("settings", settings)];

/// Whether a person may see the text as it is: no control character but line feed and tab, and
/// none of the characters that hide or reorder. Written apart from `ShownText`, to check it.
pub(crate) fn is_safe_to_show(text: &str) -> bool {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    !text.contains(hidden)
}
