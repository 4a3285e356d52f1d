//! Everything that can go wrong before a call: making a sandbox, loading, describing, making a jar.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use belljar_policy::{ShownPath as _, ToolName};

/// Why a sandbox cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The cache directory cannot be used.
    #[error("the cache directory `{}` cannot be used: {why}", path.shown())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// The fault, and what to do.
        why: String,
    },
    /// Components were to be compiled by a child of this program, which would not become a compiler
    /// but run the program again.
    #[error("`belljar_sandbox::compiler_child` has to be called first thing in `main`")]
    NoCompilerChild,
    /// The running program cannot be found, to be started once more as the compiler.
    #[error("the running program cannot be found: {0}")]
    Program(io::Error),
    /// The engine refuses its own settings, or the machine lacks a feature.
    #[error("the WebAssembly engine cannot be made: {0}")]
    Engine(String),
}

/// Why a component does not load. Cloned to all who wait for the same component.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LoadError {
    /// No WebAssembly at all.
    #[error("not a WebAssembly file: it starts with other bytes than `\\0asm`")]
    NotWasm,
    /// A part of the program whose file is not there.
    #[error(
        "its component is missing: `{0}` belongs in `lib/belljar` beside the `bin` of the program, where only the program's owner can write; install the release whole"
    )]
    Missing(&'static str),
    /// A core module.
    #[error(
        "a core module, not a component: build it for `wasm32-wasip2`; `belljar tools add` adapts a command of WASI preview 1"
    )]
    CoreModule,
    /// Larger than any real tool.
    #[error("{size} bytes, and at most {limit} are accepted")]
    TooLarge {
        /// Its size.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// Truncated, or not valid.
    #[error("not a valid component: {0}")]
    Malformed(String),
    /// Exports something else than the contract says.
    #[error("not a belljar tool: {0}")]
    WrongWorld(String),
    /// Something else where a hook is needed.
    #[error("not a belljar hook: it does not export `belljar:hook/hooks@0.1.0`")]
    NoHook,
    /// Imports an interface, or a version of one, that the host does not know.
    #[error("imports `{0}`, which the host does not offer")]
    UnknownImport(String),
    /// Compiling failed, took too long or too much memory.
    #[error("compiling failed: {0}")]
    Compile(String),
    /// Loading the compiled form failed.
    #[error("the compiled component cannot be loaded: {0}")]
    Artifact(String),
    /// No engine, or another fault of the host.
    #[error("{0}")]
    Host(Arc<SandboxError>),
}

/// Why a component's tools cannot be listed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DescribeError {
    /// It does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// `describe` trapped, ran out or took too long.
    #[error("`describe` failed: {0}")]
    Failed(String),
    /// The answer breaks the contract.
    #[error("`describe` lies: {0}")]
    Invalid(String),
}

/// Why a jar cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum JarError {
    /// Two tools of the jar have one name.
    #[error("two tools are named `{0}`")]
    DuplicateTool(ToolName),
    /// A mount's directory cannot be opened. For the operator: names a host path.
    #[error("mount `{guest}` (`{}`) cannot be opened: {source}", host.shown())]
    Mount {
        /// The guest path, for example `/workspace`.
        guest: String,
        /// The directory.
        host: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl LoadError {
    /// Whether trying again must fail the same way: it lies in the component's own bytes.
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
