//! Pre-initializes a component: runs its export `init` once at build time, and saves the memory after that
//! as the initial memory of every instance.
//!
//! For interpreters, whose standard library would else be set up in every store. Apart from the sandbox,
//! as it is done when a component is built, with what the project's own sources say.

mod lasting;

use belljar_engine::engine_config;
use futures::executor::block_on;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, ComponentNamedList, Instance, Lift, Linker, ResourceTable, WasmList,
};
use wasmtime::{Engine, Result, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wizer::{ComponentInstanceState, Wizer};

pub(crate) use lasting::make_lasting;

/// The export that is run.
const INIT: &str = "init";

/// The fuel for `init`: some seconds.
const FUEL: u64 = 100_000_000_000;

/// The host's data for `init`: a WASI without files, environment variables and arguments.
struct PreinitGuest {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for PreinitGuest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Runs the `init` of a component, and returns the component with the memory as it is then. The result still
/// exports `init`.
///
/// # Errors
///
/// When it is no component, has no export `init` without arguments, or that does not end well: it calls
/// something beyond WASI, say.
pub(crate) fn preinit_component(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut wizer = Wizer::new();
    wizer.init_func(INIT).keep_init_func(true);
    let (context, instrumented) = wizer.instrument_component(wasm)?;
    let engine = Engine::new(&engine_config())?;
    let component = Component::new(&engine, &instrumented)?;
    let mut linker = Linker::<PreinitGuest>::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    refuse_the_rest(&mut linker, &component, &engine)?;
    let guest = PreinitGuest { wasi: WasiCtxBuilder::new().build(), table: ResourceTable::new() };
    let mut store = Store::new(&engine, guest);
    store.set_fuel(FUEL)?;
    block_on(async {
        let instance = linker.instantiate_async(&mut store, &component).await?;
        let init = instance.get_typed_func::<(), ()>(&mut store, INIT)?;
        init.call_async(&mut store, ()).await?;
        let mut state = InstanceState { store, instance, failed: None };
        let snapshot = wizer.snapshot_component(&context, &mut state).await?;
        match state.failed {
            Some(error) => Err(error),
            None => Ok(snapshot),
        }
    })
}

/// Links every import that is not WASI as functions that trap. WASI's own interfaces are left to the linker,
/// which knows which versions fit.
fn refuse_the_rest(
    linker: &mut Linker<PreinitGuest>,
    component: &Component,
    engine: &Engine,
) -> Result<()> {
    for (name, import) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(interface) = import.ty else { continue };
        if name.starts_with("wasi:") {
            continue;
        }
        let mut instance = linker.instance(name)?;
        for (function, export) in interface.exports(engine) {
            if let ComponentItem::ComponentFunc(_) = export.ty {
                let refused = format!("`{INIT}` calls `{name}`, which is not there yet");
                instance.func_new(function, move |_, _, _, _| wasmtime::bail!("{refused}"))?;
            }
        }
    }
    Ok(())
}

/// An instance after `init`, whose state is read and saved.
struct InstanceState {
    store: Store<PreinitGuest>,
    instance: Instance,
    /// The first error while reading the state; the state is not used then.
    failed: Option<wasmtime::Error>,
}

impl InstanceState {
    /// Calls a getter function that the instrumented component exports. After a failure, stores the first
    /// error and returns `None`.
    async fn call_getter<R>(&mut self, instance: &str, func: &str) -> Option<R>
    where
        (R,): ComponentNamedList + Lift,
        R: 'static,
    {
        let read = async {
            let missing = || wasmtime::format_err!("`{instance}` of `{func}` is missing");
            let (_, place) =
                self.instance.get_export(&mut self.store, None, instance).ok_or_else(missing)?;
            let (_, export) = self
                .instance
                .get_export(&mut self.store, Some(&place), func)
                .ok_or_else(missing)?;
            let func = self.instance.get_typed_func::<(), (R,)>(&mut self.store, export)?;
            Ok(func.call_async(&mut self.store, ()).await?.0)
        };
        match read.await {
            Ok(value) => Some(value),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }
}

impl ComponentInstanceState for InstanceState {
    async fn call_func_ret_list_u8(
        &mut self,
        instance: &str,
        func: &str,
        contents: impl FnOnce(&[u8]) + Send,
    ) {
        if let Some(list) = self.call_getter::<WasmList<u8>>(instance, func).await {
            contents(list.as_le_slice(&self.store));
        }
    }

    async fn call_func_ret_s32(&mut self, instance: &str, func: &str) -> i32 {
        self.call_getter(instance, func).await.unwrap_or_default()
    }

    async fn call_func_ret_s64(&mut self, instance: &str, func: &str) -> i64 {
        self.call_getter(instance, func).await.unwrap_or_default()
    }

    async fn call_func_ret_f32(&mut self, instance: &str, func: &str) -> u32 {
        self.call_getter::<f32>(instance, func).await.unwrap_or_default().to_bits()
    }

    async fn call_func_ret_f64(&mut self, instance: &str, func: &str) -> u64 {
        self.call_getter::<f64>(instance, func).await.unwrap_or_default().to_bits()
    }
}
