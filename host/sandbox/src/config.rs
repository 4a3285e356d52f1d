//! The configuration of a sandbox.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use belljar_os_sandbox::Broker;

use crate::component::compile;
use crate::component::described::DescribeLimits;
use crate::component::wasm::Wasm;
use crate::error::SandboxError;
use crate::imports::http::HttpOptions;

/// How long a compilation runs before it is reported: a second, because a person then starts to wonder.
const SLOW: Duration = Duration::from_secs(1);

/// The settings from which a [`crate::Sandbox`] is made.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// The directory for compiled components and descriptions, created with access for its owner only.
    /// `None`: stored in memory only.
    pub cache_dir: Option<PathBuf>,
    /// The compiler of components to machine code.
    pub compiler: Compiler,
    /// The pool of stores.
    pub pool: PoolConfig,
    /// The network gate.
    pub http: HttpOptions,
    /// The bounds of `describe` and of its answer.
    pub describe: DescribeLimits,
    /// Is called for each compilation of over a second. Default: a line in the log, at `info`.
    pub slow: SlowCompile,
}

/// A callback for each compilation of over a second; its argument is the component. The callback must not
/// block, because the compilation waits for it.
#[derive(Clone, Default)]
pub struct SlowCompile(Option<Arc<Tell>>);

type Tell = dyn Fn(&Wasm) + Send + Sync;

impl SlowCompile {
    /// Calls this function for each slow compilation.
    pub fn with_callback(tell: impl Fn(&Wasm) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    /// Awaits the compilation `work`, and reports it once if it takes over a second.
    pub(crate) async fn report_slow<T>(&self, wasm: &Wasm, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        match tokio::time::timeout(SLOW, &mut work).await {
            Ok(done) => done,
            Err(_) => {
                match &self.0 {
                    Some(tell) => tell(wasm),
                    None => tracing::info!(
                        target: "belljar::sandbox",
                        component = %wasm.digest(),
                        "compiling takes over a second"
                    ),
                }
                work.await
            }
        }
    }
}

impl std::fmt::Debug for SlowCompile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SlowCompile").field(&self.0.is_some()).finish()
    }
}

/// Where WebAssembly is compiled to machine code. A hostile component can make compiling use any amount of
/// time and memory, so compile in a process that can be killed.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// A child process `program args...`, whose `main` must call [`crate::compile_child`]. The child reads
    /// the component from stdin, and lowers its own priority and limits.
    Child {
        /// The child's program, usually the running program itself.
        program: PathBuf,
        /// The arguments of the program.
        args: Vec<OsString>,
    },
    /// The broker, which starts the same child process and stores its output. For a process behind the OS
    /// sandbox, which cannot start programs and has no cache directory; a set [`SandboxConfig::cache_dir`]
    /// then only tells the broker to store the output.
    Broker(Broker),
    /// This process, without bounds on time and memory. For trusted components and for tests.
    InProcess,
}

/// The pooling allocator of wasmtime: it reserves address space at the start, so that opening a store is
/// cheap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolConfig {
    /// How many stores fit in the pool at a time; further stores open outside of it, more slowly. If the
    /// machine's address space does not suffice, the number is halved until it does, with a warning. 0: no
    /// pool. Default: 1,000.
    pub slots: u32,
}

impl SandboxConfig {
    /// Settings that compile components in a child process with bounds on time and memory, as the command
    /// line does. The child is this program, started again, so its `main` has to begin with
    /// [`crate::compiler_child`]. The other settings are the defaults; set `cache_dir` to make later starts
    /// quick.
    ///
    /// # Errors
    ///
    /// `compiler_child` was not called, or the program's own file cannot be found.
    pub fn compiling_in_child() -> Result<Self, SandboxError> {
        Ok(Self { compiler: compile::this_program()?, ..Self::default() })
    }
}

impl Default for SandboxConfig {
    /// The default: no cache on disk, compiling in this process without bounds, for tests. For strangers'
    /// components use [`SandboxConfig::compiling_in_child`].
    fn default() -> Self {
        Self {
            cache_dir: None,
            compiler: Compiler::InProcess,
            pool: PoolConfig::default(),
            http: HttpOptions::default(),
            describe: DescribeLimits::default(),
            slow: SlowCompile::default(),
        }
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self { slots: 1_000 }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_compilation_that_goes_on_for_a_second_is_told_and_once() {
        let (told, heard) = oneshot::channel();
        let told = Mutex::new(Some(told));
        let slow = SlowCompile::with_callback(move |_| {
            let told = told.lock().unwrap().take().expect("told twice");
            told.send(()).unwrap();
        });
        let wasm = Wasm::new(Vec::new());
        assert_eq!(slow.report_slow(&wasm, async { 1 }).await, 1);
        let begun = tokio::time::Instant::now();
        // The compilation ends only when its slowness was reported.
        slow.report_slow(&wasm, heard).await.unwrap();
        assert_eq!(begun.elapsed(), SLOW);
    }
}
