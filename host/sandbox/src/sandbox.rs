//! The sandbox: what a process has one of.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::cache::Cache;
use crate::config::SandboxConfig;
use crate::describe::Describer;
use crate::engine::Engines;
use crate::error::{DescribeError, JarError, LoadError, SandboxError};
use crate::hook::{self, HookError, HookVerdict};
use crate::http::HttpOptions;
use crate::jar::{Jar, JarSpec};
use crate::load::{Loaded, Loader};
use crate::mounts::Mounts;
use crate::wasm::Digest;
use crate::{Compiler, ToolInfo, Wasm};

/// Engines, compiled components and their descriptions. One per process; cloning shares it.
///
/// Making one is cheap: engines come into being with the first store.
#[derive(Debug, Clone)]
pub struct Sandbox(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    engines: Arc<Engines>,
    pub(crate) loader: Arc<Loader>,
    describer: Describer,
    pub(crate) mounts: Mounts,
    pub(crate) http: HttpOptions,
}

/// A component that is loaded: compiled, checked against the contract, every import known.
/// It stays loaded as long as this is held.
#[derive(Debug, Clone)]
pub struct Component(pub(crate) Arc<Loaded>);

impl Sandbox {
    /// Opens the cache directory, or makes it.
    pub fn new(config: SandboxConfig) -> Result<Self, SandboxError> {
        let SandboxConfig { cache_dir, compiler, pool, http, describe, slow } = config;
        // Behind the OS sandbox the cache is the broker's.
        let (broker, cache_dir) = match (&compiler, cache_dir) {
            (Compiler::Broker(broker), Some(_)) => (Some(broker.clone()), None),
            (_, cache_dir) => (None, cache_dir),
        };
        let cache = cache_dir.as_deref().map(Cache::open).transpose()?.map(Arc::new);
        let engines = Arc::new(Engines::new(pool.slots));
        let (kept, pools) = (cache.clone(), Arc::clone(&engines));
        let loader = Arc::new(Loader::new(compiler, slow, kept, broker.clone(), pools));
        let describer = Describer::new(describe, Arc::clone(&loader), cache, broker);
        Ok(Self(Arc::new(Shared { engines, loader, describer, mounts: Mounts::default(), http })))
    }

    /// What an operator should know: no pool, a smaller pool, a component outside the pool.
    pub fn warnings(&self) -> Vec<String> {
        self.0.engines.warnings()
    }

    /// Loads a component: from memory, from the cache on disk, or by compiling it. Loads of
    /// the same component share one compilation; loads of others that are compiled already
    /// do not wait for it. Needs a tokio runtime with I/O and time.
    pub async fn load(&self, wasm: &Wasm) -> Result<Component, LoadError> {
        self.0.loader.load(wasm).await.map(Component)
    }

    /// The tools of a component, checked. Runs `describe` once per digest, in a throwaway
    /// store without any grant; the answer is kept in memory and on disk, so that a known
    /// component is not even loaded.
    pub async fn describe(&self, wasm: &Wasm) -> Result<Arc<[ToolInfo]>, DescribeError> {
        self.0.describer.describe(wasm).await
    }

    /// Takes the caller's word for what the component with this digest offers: [`Self::describe`]
    /// answers so without compiling it. For components that the program itself brings, whose
    /// descriptions were checked when it was built; a stranger's has to be asked.
    pub fn know_description(&self, digest: Digest, tools: Vec<ToolInfo>) {
        self.0.describer.know(digest, tools.into());
    }

    /// Takes the caller's word for the machine code of the component with this digest, as
    /// [`belljar_engine::pack`] gives it: it is loaded in place of compiling the component, unless
    /// it was made for another processor or another version of the engine.
    ///
    /// # Safety
    ///
    /// These bytes run with all rights of this process, so they are what
    /// [`belljar_engine::compile`] or [`belljar_engine::compile_for`] made of that component, as
    /// a part of the program itself.
    #[expect(unsafe_code, reason = "loading compiled code cannot be checked")]
    pub unsafe fn know_code(&self, digest: Digest, packed: &'static [u8]) {
        self.0.loader.bring(digest, packed);
    }

    /// Asks a hook component about one event, a JSON object as text. It runs in a fresh store
    /// without any grant and with bounds of its own: 1 G fuel, 32 MiB of memory, `time` of
    /// wall time. Whoever gets an error refuses what the event is about.
    pub async fn judge(
        &self,
        wasm: &Wasm,
        event: &str,
        time: Duration,
        cancel: &CancellationToken,
    ) -> Result<HookVerdict, HookError> {
        hook::judge(&self.0.loader, wasm, event, time, cancel).await
    }

    /// A jar for one subagent, with its directories held open. Opens no store yet.
    pub fn jar(&self, spec: JarSpec) -> Result<Jar, JarError> {
        Jar::new(self.clone(), spec)
    }
}

impl Component {
    /// SHA-256 of the component's bytes.
    pub fn digest(&self) -> Digest {
        self.0.wasm.digest()
    }
}
