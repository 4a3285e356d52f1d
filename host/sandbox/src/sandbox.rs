//! The sandbox: the state that all jars of a process share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use belljar_os_sandbox::Broker;
use tokio_util::sync::CancellationToken;

use crate::component::artifact::StockCode;
use crate::component::cache::ComponentCache;
use crate::component::describe::ToolDescriber;
use crate::component::engine::EnginePair;
use crate::component::functions::LeftOutFunction;
use crate::component::load::{ComponentLoader, LoadedComponent};
use crate::component::wasm::Digest;
use crate::config::SandboxConfig;
use crate::error::{DescribeError, JarError, LoadError, SandboxError};
use crate::imports::http::HttpOptions;
use crate::jar::hook::{self, HookError, HookVerdict};
use crate::jar::mounts::MountTable;
use crate::jar::{Jar, JarSpec};
use crate::{Compiler, ToolInfo, Wasm};

/// Engines, compiled components and their descriptions. One for each process, shared by clones.
///
/// Making a sandbox is cheap: engines are made with the first store.
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

/// A loaded component: compiled, checked against the contract, with known imports. Stays loaded while a
/// handle exists.
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
        // Behind the OS sandbox, the broker owns the cache.
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

    /// INV-151: the same sandbox, for jars that may write in these directories although a protected name is
    /// above: directories that belljar makes for agents. Of a mount in such a directory, the directory's own
    /// name and the paths below are checked, not the path above. Paths are canonical. Default: none.
    #[must_use]
    pub fn with_work_directories(mut self, directories: Vec<PathBuf>) -> Self {
        self.work_directories = directories.into();
        self
    }

    /// INV-155: the same sandbox, for jars that may neither write in these directories, nor replace a link to
    /// one: the directories of the program's agents, store and tenants. The directories are identified when a
    /// jar opens, so a later change of names does not matter; each should exist by then. Work directories
    /// inside are not closed. Default: none.
    #[must_use]
    pub fn with_closed_directories(mut self, directories: Vec<PathBuf>) -> Self {
        self.closed_directories = directories.into();
        self
    }

    /// INV-178: the same sandbox, for jars whose mounts must not be reached through a link in these
    /// directories, which agents write. Agents cannot make links, but can move a directory with other
    /// people's links, and the path of a mount would then lead elsewhere. Paths are canonical. Default: none.
    #[must_use]
    pub fn with_written_directories(mut self, directories: Vec<PathBuf>) -> Self {
        self.written_directories = directories.into();
        self
    }

    /// Warnings for an operator: no pool, a smaller pool, a component outside the pool.
    pub fn warnings(&self) -> Vec<String> {
        self.shared.engines.warnings()
    }

    /// Loads a component: from memory, from the cache on disk, or by compiling. Loads of the same component
    /// share one compilation; loads of other compiled components do not wait. Needs a tokio runtime with I/O
    /// and time.
    pub async fn load_component(&self, wasm: &Wasm) -> Result<Component, LoadError> {
        self.shared.loader.load_tool(wasm).await.map(Component)
    }

    /// Converts a core module, a command for WASI preview 1, to a component, with the engine's own adapter,
    /// in the compiling child. The component's digest differs from the module's.
    ///
    /// # Errors
    ///
    /// The module is not such a command, or the process is behind the OS sandbox.
    pub async fn adapt_module(&self, module: &[u8]) -> Result<Vec<u8>, LoadError> {
        self.shared.loader.adapt_module(module).await
    }

    /// The tools of a component, checked. Runs `describe` once per digest, in a temporary store without any
    /// grant; the answer is stored in memory and on disk, so that a known component need not even be loaded.
    pub async fn describe_tools(&self, wasm: &Wasm) -> Result<Arc<[ToolInfo]>, DescribeError> {
        self.shared.describer.describe_tools(wasm).await
    }

    /// Stores the caller's description of the component with this digest: [`Self::describe_tools`] then returns it
    /// without compiling. Only for the program's own components, whose descriptions were checked at build
    /// time; never for a stranger's component.
    pub fn know_description(&self, digest: Digest, tools: Vec<ToolInfo>) {
        self.shared.describer.store_answer(digest, tools.into());
    }

    /// Stores the caller's machine code for the component with this digest: loaded instead of compiling,
    /// unless made for another processor or another version of the engine.
    ///
    /// # Safety
    ///
    /// The bytes run with all rights of this process, so they have to be the output of
    /// [`belljar_engine::compile_component`] or [`belljar_engine::compile_for`] for that component, as part of the
    /// program itself.
    #[expect(unsafe_code, reason = "loading compiled code cannot be checked")]
    pub unsafe fn know_code(&self, digest: Digest, code: StockCode) {
        self.shared.loader.register_code(digest, code);
    }

    /// Passes one event, a JSON object as text, to a hook component. The hook runs in a fresh store without
    /// any grant and with separate limits: 1 G fuel, 32 MiB of memory, `time` of wall time. After an error,
    /// the caller has to refuse the event's call.
    pub async fn judge_event(
        &self,
        wasm: &Wasm,
        event: &str,
        time: Duration,
        cancel: &CancellationToken,
    ) -> Result<HookVerdict, HookError> {
        hook::judge_event(&self.shared.loader, wasm, event, time, cancel).await
    }

    /// Makes a jar for one subagent, with its directories open. Stores open later.
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
