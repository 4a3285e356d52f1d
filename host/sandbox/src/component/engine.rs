//! The two engines of a process: one has a pool of stores, the other allocates each store on demand.
//!
//! Both are made from one [`belljar_engine::engine_config`], so machine code compiled once loads into
//! either: the allocator is not part of wasmtime's compatibility hash. An engine is made with the first
//! store, so that a command without stores, for example one that lists agents, does not wait.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::component::in_place::InPlace;
use crate::error::SandboxError;
use crate::jar::limits::MAX_INSTANCES;

/// The bytes of linear memory in one slot of the pool: a jar's default limit. A store with a larger limit
/// opens outside the pool.
pub(crate) const POOL_MEMORY: usize = 256 << 20;

/// The bytes of each memory that stay resident when a slot is reused: as much as a small tool uses, so that
/// the next store causes no page faults.
const KEEP_MEMORY: usize = 64 << 10;

/// The bytes of each table that stay resident when a slot is reused.
const KEEP_TABLE: usize = 16 << 10;

/// The bytes of each fiber stack that stay resident when a slot is reused, and are zeroed explicitly: about
/// what instantiating and a small call use.
const KEEP_STACK: usize = 16 << 10;

/// The tables per slot; each stock tool has 2. A component with more tables uses more slots, so that it
/// cannot use up the share of others.
pub(crate) const TABLES: u32 = 4;

/// The least slots of a pool; with fewer, a pool is not worth it.
const MIN_SLOTS: u32 = 16;

/// The most slots of a pool: at this size the counters of `PoolingAllocationConfig` stay within 32 bits, and
/// the address space of any machine is used up long before.
const MAX_SLOTS: u32 = 100_000;

/// A reservation of slots for a store; dropping it frees them.
pub(crate) type PoolPermit = OwnedSemaphorePermit;

/// Both engines of a process, each made when first needed.
#[derive(Debug)]
pub(crate) struct EnginePair {
    slots: u32,
    pool: OnceLock<Option<EnginePool>>,
    on_demand: OnceLock<Result<Engine, Arc<SandboxError>>>,
    warnings: Mutex<Vec<String>>,
}

/// The engine with a pool, and its free slots.
struct EnginePool {
    engine: Engine,
    free: Arc<Semaphore>,
}

impl EnginePair {
    /// Prepares the engines without making them.
    pub(crate) fn new(slots: u32) -> Self {
        Self {
            slots: slots.min(MAX_SLOTS),
            pool: OnceLock::new(),
            on_demand: OnceLock::new(),
            warnings: Mutex::default(),
        }
    }

    /// The engine with the pool; `None` if there is no pool.
    pub(crate) fn pooled_engine(&self) -> Option<&Engine> {
        self.engine_pool().map(|pool| &pool.engine)
    }

    /// The engine without a pool.
    pub(crate) fn on_demand(&self) -> Result<&Engine, Arc<SandboxError>> {
        let made = self.on_demand.get_or_init(|| {
            Engine::new(&host_config())
                .map_err(|error| Arc::new(SandboxError::Engine(format!("{error:#}"))))
        });
        made.as_ref().map_err(Arc::clone)
    }

    /// Either engine. Used to name compiled code, for which both have the same settings.
    pub(crate) fn any_engine(&self) -> Result<&Engine, Arc<SandboxError>> {
        match self.engine_pool() {
            Some(pool) => Ok(&pool.engine),
            None => self.on_demand(),
        }
    }

    /// Reserves `slots` of the pool for a store, without waiting. `None`: not free, so the store opens
    /// outside the pool.
    pub(crate) fn acquire_slots(&self, slots: u32) -> Option<PoolPermit> {
        let pool = self.engine_pool()?;
        Arc::clone(&pool.free).try_acquire_many_owned(slots).ok()
    }

    /// Records a warning for the operator, once for each text.
    pub(crate) fn add_warning(&self, text: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !warnings.contains(&text) {
            tracing::warn!(target: "belljar::sandbox", "{text}");
            warnings.push(text);
        }
    }

    /// All warnings so far.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn engine_pool(&self) -> Option<&EnginePool> {
        self.pool.get_or_init(|| self.make_pool()).as_ref()
    }

    /// Makes the pool. If the machine's address space is too small, halves the number of slots until it
    /// suffices.
    fn make_pool(&self) -> Option<EnginePool> {
        let mut slots = self.slots;
        let mut last = None;
        while slots >= MIN_SLOTS.min(self.slots) && slots > 0 {
            match Engine::new(&pooled_config(slots)) {
                Ok(engine) => {
                    if slots < self.slots {
                        self.add_warning(format!(
                            "the pool holds {slots} stores instead of {}: more do not fit this machine's address space",
                            self.slots
                        ));
                    }
                    return Some(EnginePool {
                        engine,
                        free: Arc::new(Semaphore::new(slots as usize)),
                    });
                }
                Err(error) => last = Some(error),
            }
            slots /= 2;
        }
        if let Some(error) = last {
            self.add_warning(format!("no pool of stores, opening each takes longer: {error:#}"));
        }
        None
    }
}

/// A hash of everything that compiled code depends on: the engine's settings, its version, the processor.
pub(crate) fn compatibility_hash(engine: &Engine) -> [u8; 32] {
    let mut hasher = Sha256Hasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize().into()
}

fn host_config() -> Config {
    let mut config = belljar_engine::engine_config();
    config.with_custom_code_memory(Some(Arc::new(InPlace)));
    config
}

fn pooled_config(slots: u32) -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_memories(slots)
        .total_stacks(slots)
        .total_tables(slots.saturating_mul(TABLES))
        .total_component_instances(slots)
        .total_core_instances(slots.saturating_mul(MAX_INSTANCES))
        .max_core_instances_per_component(MAX_INSTANCES)
        .max_memory_size(POOL_MEMORY)
        .linear_memory_keep_resident(KEEP_MEMORY)
        .table_keep_resident(KEEP_TABLE)
        .async_stack_keep_resident(KEEP_STACK)
        // Without this setting, keeping pages resident would touch all of them.
        .pagemap_scan(Enabled::Auto);
    let mut config = host_config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// SHA-256 as a `Hasher`. The standard hasher would not do, because it changes between compiler versions.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

impl std::fmt::Debug for EnginePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnginePool").field("free", &self.free.available_permits()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_engines_share_compiled_code() {
        let engines = EnginePair::new(20);
        let pool = engines.pooled_engine().unwrap();
        let other = engines.on_demand().unwrap();
        assert_eq!(compatibility_hash(pool), compatibility_hash(other));
        assert_eq!(engines.warnings(), Vec::<String>::new());
    }

    #[test]
    fn a_pool_that_does_not_fit_is_halved_with_a_warning() {
        let engines = EnginePair::new(MAX_SLOTS);
        assert!(engines.pooled_engine().is_some());
        let warnings = engines.warnings();
        assert!(warnings.iter().any(|text| text.contains("instead of 100000")), "{warnings:?}");
    }

    #[test]
    fn without_slots_there_is_no_pool_and_no_warning() {
        let engines = EnginePair::new(0);
        assert!(engines.pooled_engine().is_none());
        assert!(engines.any_engine().is_ok());
        assert!(engines.warnings().is_empty());
    }
}
