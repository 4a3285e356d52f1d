//! Loads components from memory, from the cache on disk, or by compiling.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use belljar_os_sandbox::{Broker, DerivedFile};
use belljar_overlay::Digest;
use belljar_work::{OPERATOR, WorkError, WorkKind};
use tokio::sync::OnceCell;
use wasmtime::component::Component;

use crate::Compiler;
use crate::component::artifact::{CompiledArtifact, StockCode};
use crate::component::cache::{CacheKind, ComponentCache};
use crate::component::compile::{adapt_module, compile_component};
use crate::component::engine::{EnginePair, POOL_MEMORY, PoolPermit, TABLES, compatibility_hash};
use crate::component::functions::FunctionSet;
use crate::component::inspect::check_component;
use crate::component::kind::ComponentKind;
use crate::component::turns::CompilerSlots;
use crate::component::wasm::Wasm;
use crate::config::SlowCompile;
use crate::error::LoadError;
use crate::imports::link::{BoundComponent, ComponentExports, GrantedImports, link_imports};

/// How many components no jar uses stay in memory.
const MAX_IDLE: usize = 256;

/// Loads components: each once, however many callers ask for it.
#[derive(Debug)]
pub(crate) struct ComponentLoader {
    compiler: Compiler,
    slow: SlowCompile,
    cache: Option<Arc<ComponentCache>>,
    /// The broker, which stores machine code in place of the cache.
    broker: Option<Broker>,
    engines: Arc<EnginePair>,
    turns: CompilerSlots,
    entries: Mutex<HashMap<Digest, Arc<Entry>>>,
    /// The machine code that comes with the program, by the digest of its component.
    brought: Mutex<HashMap<Digest, StockCode>>,
}

type Entry = OnceCell<Result<Arc<LoadedComponent>, LoadError>>;

/// A component, loaded into one engine or into both.
pub(crate) struct LoadedComponent {
    pub(crate) wasm: Wasm,
    /// The component in the pool's engine; `None`: there is no pool, or its slots are too small.
    pooled: Option<LinkedComponent>,
    /// The slots of the pool that a store of the component uses.
    slots: u32,
    http: bool,
    /// The kind of component.
    pub(crate) kind: ComponentKind,
    /// The component in the engine without a pool, loaded when first needed.
    on_demand: OnceCell<Result<LinkedComponent, LoadError>>,
}

/// A component in one engine. Its imports are bound once for each set of granted interfaces.
struct LinkedComponent {
    component: Component,
    bound: [OnceLock<Result<BoundComponent, LoadError>>; GrantedImports::SETS],
}

/// What a store is opened with: the component with its imports bound, and the reservation in the pool.
pub(crate) struct StoreOpening<'a> {
    pub(crate) bound: &'a BoundComponent,
    pub(crate) permit: Option<PoolPermit>,
}

impl ComponentLoader {
    /// Makes a loader without loading a component.
    pub(crate) fn new(
        compiler: Compiler,
        slow: SlowCompile,
        cache: Option<Arc<ComponentCache>>,
        broker: Option<Broker>,
        engines: Arc<EnginePair>,
    ) -> Self {
        let (turns, entries, brought) = (CompilerSlots::new(), Mutex::default(), Mutex::default());
        Self { compiler, slow, cache, broker, engines, turns, entries, brought }
    }

    /// Stores machine code that comes with the program, for the component with the given digest.
    pub(crate) fn register_code(&self, digest: Digest, code: StockCode) {
        self.brought.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, code);
    }

    /// Loads a component from machine code the caller has.
    pub(crate) async fn preload_code(
        &self,
        artifact: CompiledArtifact,
        wasm: &Wasm,
    ) -> Result<(), LoadError> {
        let (loaded, _) = self.place_first(artifact, wasm).await?;
        let entry = self.entry_or_insert(wasm.digest());
        entry.get_or_init(|| std::future::ready(Ok(loaded))).await;
        Ok(())
    }

    /// Loads a tool, with [`Self::load_any`]; a hook is refused.
    pub(crate) async fn load_tool(&self, wasm: &Wasm) -> Result<Arc<LoadedComponent>, LoadError> {
        let loaded = self.load_any(wasm).await?;
        if loaded.kind == ComponentKind::Hook {
            return Err(LoadError::WrongWorld("it is a hook".to_owned()));
        }
        Ok(loaded)
    }

    /// Loads a hook, with [`Self::load_any`]; any other component is refused.
    pub(crate) async fn load_hook(&self, wasm: &Wasm) -> Result<Arc<LoadedComponent>, LoadError> {
        let loaded = self.load_any(wasm).await?;
        if loaded.kind != ComponentKind::Hook {
            return Err(LoadError::NoHook);
        }
        Ok(loaded)
    }

    /// Loads a component once for all callers. If the caller that compiles is dropped, the compiler ends, and
    /// the next waiting caller starts it again.
    async fn load_any(&self, wasm: &Wasm) -> Result<Arc<LoadedComponent>, LoadError> {
        let digest = wasm.digest();
        let entry = self.entry_or_insert(digest);
        let loaded = entry.get_or_init(|| self.load_once(wasm)).await.clone();
        if let Err(error) = &loaded
            && !error.is_lasting()
        {
            // Callers that wait now share the failure; the next one tries again.
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            if entries.get(&digest).is_some_and(|now| Arc::ptr_eq(now, &entry)) {
                entries.remove(&digest);
            }
        }
        loaded
    }

    /// Prepares the opening of a store with these granted interfaces and up to `memory` bytes of memory: in
    /// the pool if a slot is free and large enough.
    pub(crate) async fn prepare_opening<'a>(
        &self,
        loaded: &'a LoadedComponent,
        granted: GrantedImports,
        memory: u64,
    ) -> Result<StoreOpening<'a>, LoadError> {
        if let Some(pooled) = &loaded.pooled
            && memory <= POOL_MEMORY as u64
        {
            if let Some(permit) = self.engines.acquire_slots(loaded.slots) {
                return Ok(StoreOpening {
                    bound: pooled.bind_imports(granted)?,
                    permit: Some(permit),
                });
            }
            self.engines
                .add_warning("the pool of stores is full: more of them open slower".to_owned());
        }
        self.on_demand(loaded, granted).await
    }

    /// Prepares the opening of a store outside of the pool.
    pub(crate) async fn on_demand<'a>(
        &self,
        loaded: &'a LoadedComponent,
        granted: GrantedImports,
    ) -> Result<StoreOpening<'a>, LoadError> {
        let load = || async {
            let artifact = match self.find_stock_code(loaded.wasm.digest()).await? {
                Some(artifact) => artifact,
                None => match self.find_cached_code(&loaded.wasm).await? {
                    (_, Some(artifact)) => artifact,
                    (_, None) => self.compile_checked(&loaded.wasm).await?,
                },
            };
            let engine = self.engines.on_demand().map_err(LoadError::Host)?;
            artifact.load_into(engine).map(LinkedComponent::new).map_err(unloadable_error)
        };
        let linked = loaded.on_demand.get_or_init(load).await;
        Ok(StoreOpening {
            bound: linked.as_ref().map_err(Clone::clone)?.bind_imports(granted)?,
            permit: None,
        })
    }

    fn entry_or_insert(&self, digest: Digest) -> Arc<Entry> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(&digest) {
            return Arc::clone(entry);
        }
        if entries.len() >= MAX_IDLE {
            entries.retain(|_, entry| !is_idle(entry));
        }
        Arc::clone(entries.entry(digest).or_default())
    }

    async fn load_once(&self, wasm: &Wasm) -> Result<Arc<LoadedComponent>, LoadError> {
        if let Some(artifact) = self.find_stock_code(wasm.digest()).await? {
            match self.place_first(artifact, wasm).await {
                Ok((loaded, _)) => return Ok(loaded),
                Err(LoadError::Artifact(why)) => {
                    // The code may have been compiled for a processor with more features.
                    tracing::debug!(target: "belljar::sandbox", "the code that comes with the program does not load: {why}");
                    let mut brought = self.brought.lock().unwrap_or_else(PoisonError::into_inner);
                    brought.remove(&wasm.digest());
                }
                Err(error) => return Err(error),
            }
        }
        let (name, cached) = self.find_cached_code(wasm).await?;
        if let Some(artifact) = cached {
            match self.place_first(artifact, wasm).await {
                Ok((loaded, _)) => return Ok(loaded),
                Err(LoadError::Artifact(why)) => {
                    tracing::warn!(target: "belljar::sandbox", "compiled again, as the cached code does not load: {why}");
                }
                Err(error) => return Err(error),
            }
        }
        let artifact = self.compile_checked(wasm).await?;
        let (loaded, artifact) = self.place_first(artifact, wasm).await?;
        if let Some(cache) = self.cache.clone() {
            let write = move || cache.store_entry(CacheKind::Artifact, &name, artifact.as_bytes());
            belljar_work::run_job(&LOAD, OPERATOR, move |_| write()).await.map_err(crash_error)?;
        }
        Ok(loaded)
    }

    /// The machine code that comes with the program for the component, if any.
    async fn find_stock_code(&self, digest: Digest) -> Result<Option<CompiledArtifact>, LoadError> {
        let code =
            self.brought.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).copied();
        let Some(code) = code else { return Ok(None) };
        belljar_work::run_job(&LOAD, OPERATOR, move |_| CompiledArtifact::from_stock(code))
            .await
            .map_err(crash_error)
    }

    /// The cache's name for the component's machine code, and the code if the cache has it. With a broker the
    /// name is empty, because only the broker knows it.
    async fn find_cached_code(
        &self,
        wasm: &Wasm,
    ) -> Result<(String, Option<CompiledArtifact>), LoadError> {
        if let Some(broker) = &self.broker {
            let found = broker.find_derived(DerivedFile::Code, &wasm.digest().to_string()).await;
            let found = found.unwrap_or_else(|error| {
                tracing::warn!(target: "belljar::sandbox", "the cache is not used: {error}");
                None
            });
            return Ok((String::new(), found.map(CompiledArtifact::from_trusted)));
        }
        let engines = Arc::clone(&self.engines);
        let cache = self.cache.clone();
        let digest = wasm.digest();
        let look = move || {
            let name = code_name(digest, &engines)?;
            let found = cache.and_then(|cache| cache.find_entry(CacheKind::Artifact, &name));
            Ok((name, found.map(CompiledArtifact::from_trusted)))
        };
        belljar_work::run_job(&LOAD, OPERATOR, move |_| look()).await.map_err(crash_error)?
    }

    /// Awaits `work`, and reports it if it takes over a second.
    pub(crate) async fn report_slow<T>(&self, wasm: &Wasm, work: impl Future<Output = T>) -> T {
        self.slow.report_slow(wasm, work).await
    }

    async fn compile_checked(&self, wasm: &Wasm) -> Result<CompiledArtifact, LoadError> {
        if let Some(file) = wasm.missing_file() {
            return Err(LoadError::Missing(file));
        }
        check_component(wasm.bytes())?;
        let work = || self.slow.report_slow(wasm, compile_component(&self.compiler, wasm));
        match self.compiler {
            Compiler::InProcess => self.turns.run_uninterrupted(work()).await,
            Compiler::Child { .. } | Compiler::Broker(_) => self.turns.run_restartable(work).await,
        }
    }

    /// Converts a core module that is a command to a component.
    pub(crate) async fn adapt_module(&self, module: &[u8]) -> Result<Vec<u8>, LoadError> {
        self.turns.run_uninterrupted(adapt_module(&self.compiler, module)).await
    }

    /// Makes a loaded component from new machine code, in a job on another thread. Also returns the
    /// artifact, which can be cached.
    async fn place_first(
        &self,
        artifact: CompiledArtifact,
        wasm: &Wasm,
    ) -> Result<(Arc<LoadedComponent>, CompiledArtifact), LoadError> {
        let (engines, wasm) = (Arc::clone(&self.engines), wasm.clone());
        let place = move || place_first(&engines, &artifact, wasm).map(|it| (it, artifact));
        let (loaded, artifact) = belljar_work::run_job(&LOAD, OPERATOR, move |_| place())
            .await
            .map_err(crash_error)??;
        Ok((Arc::new(loaded), artifact))
    }
}

/// Loading counts as work of the operator, because components are installed tools or the program's own.
const LOAD: WorkKind = WorkKind { name: "loading a component", time: Duration::from_secs(300) };

fn crash_error(_: WorkError) -> LoadError {
    LoadError::Artifact("the loader crashed".to_owned())
}

/// Loads code into the pool's engine, or else into the other engine, and checks the component's exports.
fn place_first(
    engines: &EnginePair,
    artifact: &CompiledArtifact,
    wasm: Wasm,
) -> Result<LoadedComponent, LoadError> {
    let pooled =
        engines.pooled_engine().map(|engine| artifact.load_into(engine).map(LinkedComponent::new));
    let on_demand = match &pooled {
        Some(Ok(_)) => OnceCell::new(),
        Some(Err(_)) | None => {
            let engine = engines.on_demand().map_err(LoadError::Host)?;
            let linked =
                artifact.load_into(engine).map(LinkedComponent::new).map_err(unloadable_error)?;
            linked.bind_imports(GrantedImports::NOTHING)?;
            OnceCell::new_with(Some(Ok(linked)))
        }
    };
    let pooled = pooled.and_then(|pooled| {
        let outside = |error: &wasmtime::Error| {
            let digest = wasm.digest();
            engines.add_warning(format!("component {digest} opens outside the pool: {error:#}"));
        };
        pooled.inspect_err(outside).ok()
    });
    let mut slots = 1;
    if let Some(linked) = &pooled {
        linked.bind_imports(GrantedImports::NOTHING)?;
        if let Some(needs) = linked.component.resources_required() {
            slots = needs.num_memories.max(needs.num_tables.div_ceil(TABLES)).max(1);
        }
    }
    let any = pooled.as_ref().or_else(|| on_demand.get().and_then(|linked| linked.as_ref().ok()));
    let http = any.is_some_and(LinkedComponent::imports_http);
    let bound = any.map(|linked| linked.bind_imports(GrantedImports::NOTHING)).transpose()?;
    let kind = bound.map_or(ComponentKind::Tool, |bound| bound.exports.component_kind());
    Ok(LoadedComponent { wasm, pooled, slots, http, kind, on_demand })
}

impl LinkedComponent {
    fn new(component: Component) -> Self {
        Self { component, bound: Default::default() }
    }

    fn imports_http(&self) -> bool {
        let ty = self.component.component_type();
        let mut imports = ty.imports(self.component.engine());
        imports.any(|(name, _)| name.starts_with("wasi:http/"))
    }

    fn bind_imports(&self, granted: GrantedImports) -> Result<&BoundComponent, LoadError> {
        let missing = || LoadError::Artifact("there is no such set of grants".to_owned());
        let cell = self.bound.get(granted.set_number()).ok_or_else(missing)?;
        let bound =
            cell.get_or_init(|| link_imports(self.component.engine(), &self.component, granted));
        bound.as_ref().map_err(Clone::clone)
    }
}

impl LoadedComponent {
    /// Whether the component imports `wasi:http`.
    pub(crate) fn imports_http(&self) -> bool {
        self.http
    }

    /// The exported functions, both those offered as tools and the others; `None`: the component is of
    /// another kind.
    pub(crate) fn offered_functions(&self) -> Option<&FunctionSet> {
        let on_demand = || self.on_demand.get().and_then(|linked| linked.as_ref().ok());
        let linked = self.pooled.as_ref().or_else(on_demand)?;
        match &linked.bind_imports(GrantedImports::NOTHING).ok()?.exports {
            ComponentExports::Functions(functions) => Some(functions),
            ComponentExports::Tool(_)
            | ComponentExports::Hook(_)
            | ComponentExports::Command(_) => None,
        }
    }

    /// The component with its imports bound, in the engine where an open store is.
    pub(crate) fn find_bound(
        &self,
        pooled: bool,
        granted: GrantedImports,
    ) -> Result<&BoundComponent, LoadError> {
        let linked = if pooled {
            self.pooled.as_ref()
        } else {
            self.on_demand.get().and_then(|linked| linked.as_ref().ok())
        };
        match linked {
            Some(linked) => linked.bind_imports(granted),
            None => Err(LoadError::Artifact("the component is gone".to_owned())),
        }
    }
}

impl std::fmt::Debug for LoadedComponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Loaded").field(&self.wasm.digest()).finish()
    }
}

/// Whether an entry is done, loaded or failed, and no jar uses its component.
fn is_idle(entry: &Arc<Entry>) -> bool {
    let unused = |loaded: &Result<Arc<LoadedComponent>, _>| match loaded {
        Ok(loaded) => Arc::strong_count(loaded) == 1,
        Err(_) => true,
    };
    Arc::strong_count(entry) == 1 && entry.get().is_some_and(unused)
}

fn unloadable_error(error: wasmtime::Error) -> LoadError {
    LoadError::Artifact(format!("{error:#}"))
}

/// The cache's name for a component's machine code: the component's digest and the engine's hash.
pub(crate) fn code_name(digest: Digest, engines: &EnginePair) -> Result<String, LoadError> {
    let engine = engines.any_engine().map_err(LoadError::Host)?;
    Ok(format!("{digest}-{}", shorten_hash(&compatibility_hash(engine))))
}

/// The first 8 bytes of the engine's hash in hexadecimal: enough to tell engines apart in a file name.
fn shorten_hash(hash: &[u8; 32]) -> String {
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
