//! Errors before a call: making a sandbox, loading and describing a component, making a jar.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use belljar_policy::{ShownPath as _, ToolName};

/// Why a sandbox cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The cache directory is unusable.
    #[error("the cache directory `{}` cannot be used: {why}", path.to_shown())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// The cause, and advice.
        why: String,
    },
    /// A child of this program should compile components, but this program does not call
    /// [`crate::compiler_child`], so the child would run the whole program again.
    #[error("`belljar_sandbox::compiler_child` has to be called first thing in `main`")]
    NoCompilerChild,
    /// The path of the running program is unknown, so it cannot be started as the compiler.
    #[error("the running program cannot be found: {0}")]
    Program(io::Error),
    /// The engine refuses its own settings, or the machine lacks a feature.
    #[error("the WebAssembly engine cannot be made: {0}")]
    Engine(String),
}

/// Why a component does not load. Cloned, because several callers may wait for the same component.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LoadError {
    /// The file is not WebAssembly.
    #[error("not a WebAssembly file: it starts with other bytes than `\\0asm`")]
    NotWasm,
    /// The file of a component that belongs to the program itself is missing.
    #[error(
        "its component is missing: `{0}` belongs in `lib/belljar` beside the `bin` of the program, where only the program's owner can write; install the release whole"
    )]
    Missing(&'static str),
    /// The file is a core module, not a component.
    #[error(
        "a core module, not a component: build it for `wasm32-wasip2`; `belljar tools add` adapts a command of WASI preview 1"
    )]
    CoreModule,
    /// The file is larger than any real component.
    #[error("{size} bytes, and at most {limit} are accepted")]
    TooLarge {
        /// The size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The component is truncated or invalid.
    #[error("not a valid component: {0}")]
    Malformed(String),
    /// The component's exports differ from the tool contract.
    #[error("not a belljar tool: {0}")]
    WrongWorld(String),
    /// A hook was expected, but the component is something else.
    #[error("not a belljar hook: it does not export `belljar:hook/hooks@0.1.0`")]
    NoHook,
    /// The component imports an unknown interface, or an unknown version of a known one.
    #[error("imports `{0}`, which the host does not offer")]
    UnknownImport(String),
    /// Compiling failed, or exceeded its limit of time or memory.
    #[error("compiling failed: {0}")]
    Compile(String),
    /// The machine code of the component cannot be loaded.
    #[error("the compiled component cannot be loaded: {0}")]
    Artifact(String),
    /// A fault of the host, for example that no engine can be made.
    #[error("{0}")]
    Host(Arc<SandboxError>),
}

/// Why a component's tools cannot be listed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DescribeError {
    /// The component does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// `describe` trapped, used up a limit or timed out.
    #[error("`describe` failed: {0}")]
    Failed(String),
    /// The component's description of its tools breaks the contract.
    #[error("`describe` lies: {0}")]
    Invalid(String),
}

/// Why a jar cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum JarError {
    /// Two tools of the jar have the same name.
    #[error("two tools are named `{0}`")]
    DuplicateTool(ToolName),
    /// A mount's directory cannot be opened. Only for the operator, because it names a host path.
    #[error("mount `{guest}` (`{}`) cannot be opened: {source}", host.to_shown())]
    Mount {
        /// The guest path, for example `/workspace`.
        guest: String,
        /// The directory.
        host: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl LoadError {
    /// Whether loading the same bytes again must fail in the same way, for example because they are no
    /// WebAssembly.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::NotWasm
            | Self::CoreModule
            | Self::TooLarge { .. }
            | Self::Malformed(_)
            | Self::WrongWorld(_)
            | Self::NoHook
            | Self::UnknownImport(_) => true,
            Self::Missing(_) | Self::Compile(_) | Self::Artifact(_) | Self::Host(_) => false,
        }
    }
}
