//! The versions of the tool contract the host supports. Interfaces that are in both versions have equal
//! types, so one set of bindings serves both.

use wasmtime::AsContextMut;
use wasmtime::component::{Component, ComponentExportIndex, Instance, TypedFunc};

use crate::component::bindings::exports::belljar::tool::tools::{
    Call, Definition, Output, ToolError,
};
use crate::component::interfaces::is_tool_export;
use crate::jar::state::Guest;

/// The versions of the contract in which `log` and `progress` are provided.
pub(crate) const VERSIONS: [&str; 2] = ["0.1.0", "0.2.0"];

/// The version of the contract that has `types` and `peers`.
pub(crate) const WITH_PEERS: &str = "0.2.0";

/// Where the contract's functions are among the exports of a component.
pub(crate) struct ToolIndices {
    describe: ComponentExportIndex,
    invoke: ComponentExportIndex,
}

type Describe = TypedFunc<(), (Vec<Definition>,)>;
type Invoke = TypedFunc<(Call,), (Result<Output, ToolError>,)>;

/// The contract's functions in one instance of a component.
pub(crate) struct ToolFunctions {
    describe: Describe,
    invoke: Invoke,
}

impl ToolIndices {
    /// Finds the contract's functions; `None`: the component lacks one.
    pub(crate) fn from_component(component: &Component) -> Option<Self> {
        let ty = component.component_type();
        let mut exports = ty.exports(component.engine());
        let name = exports.find(|(name, _)| is_tool_export(name))?.0.to_owned();
        let tools = component.get_export_index(None, &*name)?;
        let find = |function: &str| component.get_export_index(Some(&tools), function);
        Some(Self { describe: find("describe")?, invoke: find("invoke")? })
    }

    /// Loads the functions of an instance, and checks their types.
    pub(crate) fn load_functions(
        &self,
        mut store: impl AsContextMut<Data = Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<ToolFunctions> {
        Ok(ToolFunctions {
            describe: instance.get_typed_func(&mut store, self.describe)?,
            invoke: instance.get_typed_func(&mut store, self.invoke)?,
        })
    }
}

impl ToolFunctions {
    pub(crate) async fn call_describe(
        &self,
        store: impl AsContextMut<Data = Guest>,
    ) -> wasmtime::Result<Vec<Definition>> {
        Ok(self.describe.call_async(store, ()).await?.0)
    }

    pub(crate) async fn call_invoke(
        &self,
        store: impl AsContextMut<Data = Guest>,
        call: Call,
    ) -> wasmtime::Result<Result<Output, ToolError>> {
        Ok(self.invoke.call_async(store, (call,)).await?.0)
    }
}
