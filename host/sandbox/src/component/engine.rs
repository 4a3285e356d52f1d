//! The two engines: one with a pool of stores, one that allocates on demand.
//!
//! Both are made from one [`belljar_engine::engine_config`], so machine code compiled once loads into either: the
//! allocator is not part of wasmtime's compatibility hash. Engines are made with the first store, because a
//! command that only lists agents should not wait for them.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::component::in_place::InPlace;
use crate::error::SandboxError;
use crate::jar::limits::MAX_INSTANCES;

/// Linear memory of one pool slot, equal to a jar's default limit; a store with a larger limit opens outside
/// the pool.
pub(crate) const POOL_MEMORY: usize = 256 << 20;

/// Bytes of each memory that stay resident when a slot is reused: enough for a small tool's pages, so that
/// its next store causes no page faults.
const KEEP_MEMORY: usize = 64 << 10;

/// Bytes of each table that stay resident.
const KEEP_TABLE: usize = 16 << 10;

/// Bytes of each fiber stack that stay resident and are zeroed explicitly: about what instantiating and a
/// small call use.
const KEEP_STACK: usize = 16 << 10;

/// Tables of each slot; every stock guest has 2. A component with more uses more slots, so that it cannot use
/// up the share of others.
pub(crate) const TABLES: u32 = 4;

/// The smallest pool, because fewer slots are not worth one.
const MIN_SLOTS: u32 = 16;

/// The largest pool. Up to here, `PoolingAllocationConfig` counters (core instances) stay within 32 bits, and
/// the address space of any machine is used up long before.
const MAX_SLOTS: u32 = 100_000;

/// A reservation of pool slots for one store, released when dropped.
pub(crate) type PoolPermit = OwnedSemaphorePermit;

/// Both engines, each made when first needed.
#[derive(Debug)]
pub(crate) struct EnginePair {
    slots: u32,
    pool: OnceLock<Option<EnginePool>>,
    on_demand: OnceLock<Result<Engine, Arc<SandboxError>>>,
    warnings: Mutex<Vec<String>>,
}

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

    /// The engine with the pool, if a pool exists.
    pub(crate) fn pooled_engine(&self) -> Option<&Engine> {
        self.engine_pool().map(|pool| &pool.engine)
    }

    /// The engine without a pool, which always exists.
    pub(crate) fn on_demand(&self) -> Result<&Engine, Arc<SandboxError>> {
        let made = self.on_demand.get_or_init(|| {
            Engine::new(&host_config())
                .map_err(|error| Arc::new(SandboxError::Engine(format!("{error:#}"))))
        });
        made.as_ref().map_err(Arc::clone)
    }

    /// Either engine, for naming compiled code, because both have the same compatible settings.
    pub(crate) fn any_engine(&self) -> Result<&Engine, Arc<SandboxError>> {
        match self.engine_pool() {
            Some(pool) => Ok(&pool.engine),
            None => self.on_demand(),
        }
    }

    /// Reserves room for a component with `slots` memories, without waiting; `None` = no room, so the store
    /// opens outside of the pool.
    pub(crate) fn acquire_slots(&self, slots: u32) -> Option<PoolPermit> {
        let pool = self.engine_pool()?;
        Arc::clone(&pool.free).try_acquire_many_owned(slots).ok()
    }

    /// Records a warning for the operator, once.
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

    /// Makes the pool, with fewer slots until the address space suffices.
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

/// The hash of everything that the engine's compiled code depends on: settings, processor, version.
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
        // Without this call, keeping pages resident means touching all of them.
        .pagemap_scan(Enabled::Auto);
    let mut config = host_config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Adapts SHA-256 to `Hasher`, because the standard hasher changes between compiler versions.
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
