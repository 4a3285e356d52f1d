//! The sandbox: the state that all jars of a process share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use belljar_os_sandbox::Broker;
use belljar_overlay::Digest;
use tokio_util::sync::CancellationToken;

use crate::component::artifact::StockCode;
use crate::component::cache::ComponentCache;
use crate::component::describe::ToolDescriber;
use crate::component::engine::EnginePair;
use crate::component::functions::LeftOutFunction;
use crate::component::load::{ComponentLoader, LoadedComponent};
use crate::config::SandboxConfig;
use crate::error::{DescribeError, JarError, LoadError, SandboxError};
use crate::imports::http::HttpOptions;
use crate::jar::hook::{self, HookError, HookVerdict};
use crate::jar::mounts::MountTable;
use crate::jar::{Jar, JarSpec};
use crate::{Compiler, ToolInfo, Wasm};

/// The engines, compiled components and their descriptions of a process. Make one per process and clone it:
/// all clones share their state.
///
/// Making a sandbox is cheap, because the engines are made with the first store.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(crate) shared: Arc<SandboxShared>,
    /// See [`Self::with_work_directories`].
    pub(crate) work_directories: Arc<[PathBuf]>,
    /// See [`Self::with_closed_directories`].
    pub(crate) closed_directories: Arc<[PathBuf]>,
    /// See [`Self::with_written_directories`].
    pub(crate) written_directories: Arc<[PathBuf]>,
}

/// The state all clones of a [`Sandbox`] share.
#[derive(Debug)]
pub(crate) struct SandboxShared {
    engines: Arc<EnginePair>,
    pub(crate) loader: Arc<ComponentLoader>,
    describer: ToolDescriber,
    pub(crate) mounts: MountTable,
    pub(crate) http: HttpOptions,
    /// The broker that starts programs for a process behind the OS sandbox.
    pub(crate) broker: Option<Broker>,
}

/// A loaded component: compiled, checked against the contract, and with only known imports. The component
/// stays loaded while a handle exists.
#[derive(Debug, Clone)]
pub struct Component(pub(crate) Arc<LoadedComponent>);

impl Sandbox {
    /// Opens the cache directory, or creates it.
    pub fn new(config: SandboxConfig) -> Result<Self, SandboxError> {
        let SandboxConfig { cache_dir, compiler, pool, http, describe, slow } = config;
        let starter = match &compiler {
            Compiler::Broker(broker) => Some(broker.clone()),
            Compiler::Child { .. } | Compiler::InProcess => None,
        };
        // Behind the OS sandbox the broker stores compiled components, so the current process opens no cache
        // directory.
        let (broker, cache_dir) = match (&compiler, cache_dir) {
            (Compiler::Broker(broker), Some(_)) => (Some(broker.clone()), None),
            (_, cache_dir) => (None, cache_dir),
        };
        let cache = cache_dir.as_deref().map(ComponentCache::open).transpose()?.map(Arc::new);
        let engines = Arc::new(EnginePair::new(pool.slots));
        let (kept, pools) = (cache.clone(), Arc::clone(&engines));
        let loader = Arc::new(ComponentLoader::new(compiler, slow, kept, broker.clone(), pools));
        let describer = ToolDescriber::new(describe, Arc::clone(&loader), cache, broker);
        let mounts = MountTable::default();
        let shared =
            Arc::new(SandboxShared { engines, loader, describer, mounts, http, broker: starter });
        Ok(Self {
            shared,
            work_directories: Arc::default(),
            closed_directories: Arc::default(),
            written_directories: Arc::default(),
        })
    }

    /// INV-151: returns the sandbox for jars that may write in these directories, although a directory above
    /// them has a protected name; for example a tenant's workspace, which belljar makes for agents. If a
    /// mount is in such a directory, protected names count from that directory's own name downwards. Paths
    /// are canonical. Default: none.
    #[must_use]
    pub fn with_work_directories(mut self, directories: Vec<PathBuf>) -> Self {
        self.work_directories = directories.into();
        self
    }

    /// INV-155: returns the sandbox for jars that must not write in these directories, nor replace a link to
    /// one, for example the directories of agent files, of the database and of tenants. The directories are
    /// identified when a jar opens, so a later renaming does not matter; each should exist by then. Work
    /// directories inside of them stay writable. Default: none.
    #[must_use]
    pub fn with_closed_directories(mut self, directories: Vec<PathBuf>) -> Self {
        self.closed_directories = directories.into();
        self
    }

    /// INV-178: returns the sandbox for jars whose mounts must not be reached through a link inside these
    /// directories, in which agents write. Agents cannot make links, but can move a directory that contains
    /// another person's link, and the path of a mount would then lead elsewhere. Paths are canonical.
    /// Default: none.
    #[must_use]
    pub fn with_written_directories(mut self, directories: Vec<PathBuf>) -> Self {
        self.written_directories = directories.into();
        self
    }

    /// Warnings for an operator about the pool of stores, for example that the machine has room for a smaller
    /// pool only.
    pub fn warnings(&self) -> Vec<String> {
        self.shared.engines.warnings()
    }

    /// Loads a component: from memory, from the cache on disk, or by compiling it. Concurrent loads of a
    /// component share one compilation; a load that needs no compilation does not wait for others. Needs a
    /// tokio runtime with I/O and time.
    pub async fn load_component(&self, wasm: &Wasm) -> Result<Component, LoadError> {
        self.shared.loader.load_tool(wasm).await.map(Component)
    }

    /// Converts a core module that is a command for WASI preview 1 to a component, in the compiling child
    /// process and with the engine's own adapter. The digest of the component differs from that of the
    /// module.
    ///
    /// # Errors
    ///
    /// The module is not such a command, or the process is behind the OS sandbox.
    pub async fn adapt_module(&self, module: &[u8]) -> Result<Vec<u8>, LoadError> {
        self.shared.loader.adapt_module(module).await
    }

    /// The checked descriptions of a component's tools. Runs the component's `describe` once per digest, in a
    /// temporary store without any grant. The answer is stored in memory and on disk, so a component with a
    /// stored answer is not even loaded.
    pub async fn describe_tools(&self, wasm: &Wasm) -> Result<Arc<[ToolInfo]>, DescribeError> {
        self.shared.describer.describe_tools(wasm).await
    }

    /// Stores the caller's description of the component with the given digest; [`Self::describe_tools`] then
    /// returns it without compiling. Only for the program's own components, whose descriptions are checked
    /// when the program is built; never for a stranger's component.
    pub fn know_description(&self, digest: Digest, tools: Vec<ToolInfo>) {
        self.shared.describer.store_answer(digest, tools.into());
    }

    /// Stores machine code for the component with the given digest. Loads then use the code instead of
    /// compiling, unless it was made for another processor or another version of the engine.
    ///
    /// # Safety
    ///
    /// The code runs with all rights of the current process. So it has to be the output of
    /// [`belljar_engine::compile_component`] or [`belljar_engine::compile_for`] for that component, and be
    /// shipped as part of the program itself.
    #[expect(unsafe_code, reason = "loading compiled code cannot be checked")]
    pub unsafe fn know_code(&self, digest: Digest, code: StockCode) {
        self.shared.loader.register_code(digest, code);
    }

    /// Passes an event, a JSON object as text, to a hook component for a verdict. The hook runs in a fresh
    /// store without any grant, with limits of its own: 1 G fuel, 32 MiB of memory, `time` of wall time. If
    /// this returns an error, the caller has to refuse the call the event is about.
    pub async fn judge_event(
        &self,
        wasm: &Wasm,
        event: &str,
        time: Duration,
        cancel: &CancellationToken,
    ) -> Result<HookVerdict, HookError> {
        hook::judge_event(&self.shared.loader, wasm, event, time, cancel).await
    }

    /// Makes a jar for a subagent and opens the directories of its mounts. Stores open with the first call.
    pub fn open_jar(&self, spec: JarSpec) -> Result<Jar, JarError> {
        Jar::new(self.clone(), spec)
    }
}

impl Component {
    /// SHA-256 of the component's bytes.
    pub fn digest(&self) -> Digest {
        self.0.wasm.digest()
    }

    /// The functions that are not offered as tools, each with the reason. Empty for a kind other than
    /// [`crate::ComponentKind::Functions`].
    pub fn left_out(&self) -> &[LeftOutFunction] {
        self.0.offered_functions().map_or(&[], |functions| functions.left_out())
    }
}
