//! How a sandbox is set up.

use std::ffi::OsString;
use std::path::PathBuf;

use belljar_wall::Broker;

use crate::described::DescribeLimits;
use crate::http::HttpOptions;

/// What a [`crate::Sandbox`] is made of.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// Where compiled components and descriptions are kept between runs. Created with access
    /// for its owner only. `None` = kept in memory only.
    pub cache_dir: Option<PathBuf>,
    /// Who turns WebAssembly into machine code.
    pub compiler: Compiler,
    /// The pool of stores.
    pub pool: PoolConfig,
    /// The network gate.
    pub http: HttpOptions,
    /// What `describe` may use and return.
    pub describe: DescribeLimits,
}

/// Who turns WebAssembly into machine code. Compiling hostile input takes as much time and
/// memory as its author likes, so it belongs in a process that can be ended.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// A child process: `program args...`, which must call [`crate::compile_child`]. It gets
    /// the component on stdin and lowers its own priority and limits.
    Child {
        /// The program; usually the running one.
        program: PathBuf,
        /// Its arguments.
        args: Vec<OsString>,
    },
    /// The same child, started by the broker: for a process behind the second wall, where no
    /// program is started.
    Broker(Broker),
    /// This process, without bounds on time and memory: for components that the caller
    /// trusts, and for tests.
    InProcess,
}

/// The pooling allocator: address space set aside for stores, so that opening one is cheap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolConfig {
    /// Stores that can be open at once in the pool; more open outside it, slower. Halved until
    /// the machine's address space holds them, with a warning. 0 = no pool. Default: 1,000.
    pub slots: u32,
}

impl Default for SandboxConfig {
    /// No cache on disk, compiling in this process: fit for tests. A program that loads
    /// components of strangers sets [`Compiler::Child`].
    fn default() -> Self {
        Self {
            cache_dir: None,
            compiler: Compiler::InProcess,
            pool: PoolConfig::default(),
            http: HttpOptions::default(),
            describe: DescribeLimits::default(),
        }
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self { slots: 1_000 }
    }
}
