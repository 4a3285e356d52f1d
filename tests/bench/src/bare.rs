//! The floor: wasmtime by itself, doing what a jar does with none of its checks.
//!
//! Same component, same engine settings where they cost time (pooling, fuel, async), linked
//! beforehand, a WASI context with one mount.

use std::path::{Path, PathBuf};

use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::measure::resident;

/// Fuel of a bare store: more than any bench uses.
const FUEL: u64 = u64::MAX / 2;

/// A pre-linked component.
pub(crate) struct Bare {
    engine: Engine,
    component: InstancePre<State>,
    mount: PathBuf,
}

pub(crate) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl Bare {
    /// `slots`: how many stores may be live.
    pub(crate) fn new(wasm: &[u8], mount: &Path, slots: u32) -> wasmtime::Result<Self> {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(slots).total_core_instances(32 * slots);
        pool.total_memories(slots).total_tables(4 * slots).total_stacks(slots);
        pool.max_memory_size(256 << 20);
        pool.linear_memory_keep_resident(64 << 10).table_keep_resident(16 << 10);
        pool.pagemap_scan(Enabled::Auto);
        let mut config = Config::new();
        config.consume_fuel(true).concurrency_support(false);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config)?;
        let component = Component::new(&engine, wasm)?;
        let mut linker = Linker::<State>::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        let component = linker.instantiate_pre(&component)?;
        Ok(Self { engine, component, mount: mount.to_path_buf() })
    }

    /// A store with its instance.
    pub(crate) async fn open(&self) -> wasmtime::Result<Store<State>> {
        let mut builder = WasiCtxBuilder::new();
        builder.allow_blocking_current_thread(true);
        builder.preopened_dir(&self.mount, "/workspace", FsPerms::ReadOnly)?;
        let state = State { wasi: builder.build(), table: ResourceTable::new() };
        let mut store = Store::new(&self.engine, state);
        store.set_fuel(FUEL)?;
        store.fuel_async_yield_interval(Some(100_000))?;
        self.component.instantiate_async(&mut store).await?;
        Ok(store)
    }

    /// Resident bytes of one live store, over `count` of them: what the guest touches and
    /// what wasmtime keeps.
    pub(crate) async fn resident_each(&self, count: usize) -> wasmtime::Result<u64> {
        drop(self.open().await?);
        let before = resident().unwrap_or_default();
        let mut stores = Vec::with_capacity(count);
        for _ in 0..count {
            stores.push(self.open().await?);
        }
        Ok(resident().unwrap_or_default().saturating_sub(before) / count.max(1) as u64)
    }
}
