//! Binds the imports of a component: to the real host for the base interfaces and the granted ones, to
//! refusals for the others.
//!
//! A refusal has the import's name as the component spells it, and the types the component expects. If a
//! function can return an error, the refusal is that error; if not, the call traps. For example, without a
//! granted host `wasi:http/outgoing-handler` returns `HTTP-request-denied`.

use belljar_policy::{DenyCode, ShownText};
use wasmtime::component::types::{ComponentFunc, ComponentInstance, ComponentItem, Type};
use wasmtime::component::{Component, InstancePre, Linker, LinkerInstance, ResourceType, Val};
use wasmtime::{Engine, StoreContextMut};

use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::p2::bindings::{CommandIndices, cli, random, sockets};
use wasmtime_wasi::p2::{self, DynInputStream, DynOutputStream, DynPollable};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView};
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;

use crate::ImportNeed;
use crate::component::bindings::config::wasi::config::store as config;
use crate::component::bindings::exports::belljar::tool::tools::{
    Call, Definition, Output, ToolError,
};
use crate::component::bindings::hook::HookIndices;
use crate::component::bindings::hook::exports::belljar::hook::hooks::Verdict;
use crate::component::contract::ToolIndices;
use crate::component::functions::FunctionSet;
use crate::component::interfaces::{find_interface, is_hook_export, is_tool_export};
use crate::component::kind::{ComponentKind, ExportForm, kind_of};
use crate::error::LoadError;
use crate::imports::files;
use crate::imports::http::{self, HasHttp as _};
use crate::imports::peers;
use crate::jar::state::{Guest, WholeGuest};
use crate::receipt::Denial;

/// The interfaces a store gets beside the base ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct GrantedImports {
    /// The network, because at least one host is granted.
    pub(crate) network: bool,
    /// Calls of other tools, because at least one is granted.
    pub(crate) peers: bool,
}

impl GrantedImports {
    /// The number of possible sets.
    pub(crate) const SETS: usize = 4;

    /// The empty set.
    pub(crate) const NOTHING: Self = Self { network: false, peers: false };

    /// A number below [`Self::SETS`] for the set, as an index.
    pub(crate) fn set_number(self) -> usize {
        usize::from(self.network) + 2 * usize::from(self.peers)
    }
}

/// A component whose imports are bound and whose exports are found, ready to be instantiated.
pub(crate) struct BoundComponent {
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) exports: ComponentExports,
}

/// The exports with which a component is used. A component with both contracts counts as a tool.
pub(crate) enum ComponentExports {
    Tool(ToolIndices),
    Hook(HookIndices),
    Command(CommandIndices),
    Functions(Box<FunctionSet>),
}

impl ComponentExports {
    pub(crate) fn component_kind(&self) -> ComponentKind {
        match self {
            Self::Tool(_) => ComponentKind::Tool,
            Self::Hook(_) => ComponentKind::Hook,
            Self::Command(_) => ComponentKind::Command,
            Self::Functions(_) => ComponentKind::Functions,
        }
    }
}

/// Binds the imports of a component. Done once for each component, engine and set of granted interfaces.
pub(crate) fn link_imports(
    engine: &Engine,
    component: &Component,
    granted: GrantedImports,
) -> Result<BoundComponent, LoadError> {
    let host = |error: wasmtime::Error| LoadError::Artifact(format!("{error:#}"));
    let mut linker = Linker::new(engine);
    add_base(&mut linker).map_err(host)?;
    let ty = component.component_type();
    let imports: Vec<_> = ty.imports(engine).map(|(name, item)| (name, item.ty)).collect();
    if imports.iter().any(|(name, _)| name.starts_with("wasi:http/")) {
        http::add_to_linker(&mut linker).map_err(host)?;
    }
    linker.allow_shadowing(true);
    for (name, item) in &imports {
        match import_refusal(name, granted) {
            None => {}
            Some(ImportRefusal::Unknown) => return Err(unknown_import_error(name)),
            Some(ImportRefusal::Deny) if name.starts_with("belljar:tool/peers@") => {
                peers::deny_peers(&mut linker, name).map_err(host)?;
            }
            Some(ImportRefusal::Deny) => {
                let ComponentItem::ComponentInstance(instance) = item else {
                    return Err(unknown_import_error(name));
                };
                deny_interface(engine, &mut linker, name, instance)?;
            }
        }
    }
    let pre = linker.instantiate_pre(component).map_err(|error| {
        // The error's text names the import and what does not match.
        LoadError::UnknownImport(ShownText::clip_line(&format!("{error:#}"), 500).to_string())
    })?;
    let wrong = |error: wasmtime::Error| LoadError::WrongWorld(format!("{error:#}"));
    let exports = match check_exports(engine, component)? {
        ComponentWorld::Tool => {
            let missing = || LoadError::WrongWorld("it lacks a function".to_owned());
            ComponentExports::Tool(ToolIndices::from_component(component).ok_or_else(missing)?)
        }
        ComponentWorld::Hook => ComponentExports::Hook(HookIndices::new(&pre).map_err(wrong)?),
        ComponentWorld::Command => {
            ComponentExports::Command(CommandIndices::new(&pre).map_err(wrong)?)
        }
        ComponentWorld::Functions => {
            ComponentExports::Functions(Box::new(FunctionSet::from_component(engine, component)?))
        }
    };
    Ok(BoundComponent { pre, exports })
}

enum ImportRefusal {
    Unknown,
    Deny,
}

fn import_refusal(import: &str, granted: GrantedImports) -> Option<ImportRefusal> {
    let Some(known) = find_interface(import) else { return Some(ImportRefusal::Unknown) };
    match known.need {
        ImportNeed::Base | ImportNeed::Contract | ImportNeed::Files | ImportNeed::Config => None,
        // The types alone do nothing: a request can be built but not sent.
        ImportNeed::Network if granted.network || known.name == "wasi:http/types" => None,
        ImportNeed::Peers if granted.peers => None,
        ImportNeed::Network | ImportNeed::Peers | ImportNeed::Denied => Some(ImportRefusal::Deny),
        ImportNeed::Unknown => Some(ImportRefusal::Unknown),
    }
}

fn unknown_import_error(import: &str) -> LoadError {
    LoadError::UnknownImport(ShownText::clip_line(import, 128).to_string())
}

/// Links the interfaces every store gets. They have no content: no environment, no arguments, and standard
/// streams into bounded buffers.
fn add_base(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    // Links io, clocks, random, stdin, stdout and stderr.
    p2::add_to_linker_proxy_interfaces_async(linker)?;
    cli::environment::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_input::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_output::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stdin::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stdout::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stderr::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    random::insecure_seed::add_to_linker::<Guest, WasiRandom>(linker, Guest::random)?;
    sockets::instance_network::add_to_linker::<Guest, WasiSockets>(linker, Guest::sockets)?;
    let options = sockets::network::LinkOptions::default();
    sockets::network::add_to_linker::<Guest, WasiSockets>(linker, &options, Guest::sockets)?;
    files::add_to_linker(linker)?;
    peers::add_to_linker(linker)?;
    config::add_to_linker::<Guest, WholeGuest>(linker, |guest| guest)?;
    // belljar's own `exit`, because only one of its two functions passes a status.
    cli::exit::add_to_linker::<Guest, WholeGuest>(linker, |guest| guest)?;
    // These replace wasmtime-wasi's functions, which make random bytes one by one and unmetered.
    linker.allow_shadowing(true);
    random::random::add_to_linker::<Guest, WholeGuest>(linker, |guest| guest)?;
    random::insecure::add_to_linker::<Guest, WholeGuest>(linker, |guest| guest)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Links every function of an interface as a refusal.
fn deny_interface(
    engine: &Engine,
    linker: &mut Linker<Guest>,
    import: &str,
    ty: &ComponentInstance,
) -> Result<(), LoadError> {
    let host = |error: wasmtime::Error| LoadError::Artifact(format!("{error:#}"));
    let mut instance = linker.instance(import).map_err(host)?;
    for (name, item) in ty.exports(engine) {
        match item.ty {
            ComponentItem::ComponentFunc(_) => {
                let what = format!("{import}#{name}");
                deny_function(&mut instance, name, what).map_err(host)?;
            }
            ComponentItem::Resource(_) => {
                let ty = resource_type(import, name);
                instance.resource(name, ty, |_, _| Ok(())).map_err(host)?;
            }
            ComponentItem::Type(_) => {}
            ComponentItem::CoreFunc(_)
            | ComponentItem::Module(_)
            | ComponentItem::Component(_)
            | ComponentItem::ComponentInstance(_) => return Err(unknown_import_error(import)),
        }
    }
    Ok(())
}

/// Links one function as a refusal: the call is recorded, its handles are dropped, and the guest gets the
/// function's own error, or traps.
fn deny_function(
    instance: &mut LinkerInstance<'_, Guest>,
    name: &str,
    what: String,
) -> wasmtime::Result<()> {
    instance.func_new_async(name, move |mut store, ty, params, results| {
        let denial = Denial::new(
            DenyCode::InterfaceNotGranted,
            what.clone(),
            format!("`{what}` is not granted to this tool"),
        );
        Box::new(async move {
            let mut denial = denial;
            let dropped = drop_handles(&mut store, params, &mut denial).await;
            let record = &store.data_mut().record;
            record.host_call();
            record.add_denial(denial);
            dropped?;
            match (refusal_value(&ty), results) {
                (Some(error), [result]) => {
                    *result = error;
                    Ok(())
                }
                _ => Err(wasmtime::Error::new(NotGranted)),
            }
        })
    })
}

/// Drops the handles passed to a refused function, because a handle that is still borrowed when the call
/// ends is a trap. If one is a request, its target goes into the denial.
async fn drop_handles(
    store: &mut StoreContextMut<'_, Guest>,
    params: &[Val],
    denial: &mut Denial,
) -> wasmtime::Result<()> {
    let request = ResourceType::host::<HostOutgoingRequest>();
    for param in params {
        let Val::Resource(handle) = param else { continue };
        if handle.owned() && handle.ty() == request {
            let request = handle.try_into_resource(&mut *store)?;
            let target = http::take_refused(&mut store.data_mut().http_view(), request)?;
            if let Some(target) = target {
                denial.what = "request".to_owned();
                denial.facts =
                    format!("no host is granted to this tool, and it asked for `{target}`");
                denial.target = Some(target.to_string());
            }
        } else {
            handle.resource_drop_async(&mut *store).await?;
        }
    }
    Ok(())
}

/// The trap for a refused function without error to return.
#[derive(Debug, thiserror::Error)]
#[error("interface not granted")]
pub(crate) struct NotGranted;

/// The names of error cases that mean a refusal, the best first.
const REFUSED: &[&str] =
    &["access-denied", "HTTP-request-denied", "not-permitted", "access", "not-supported"];

/// The error a refused function returns; `None`: the function has no fitting error.
fn refusal_value(ty: &ComponentFunc) -> Option<Val> {
    let Type::Result(result) = ty.results().next()? else { return None };
    let payload = match result.err() {
        None => return Some(Val::Result(Err(None))),
        Some(Type::Enum(ty)) => {
            let case = REFUSED.iter().find(|case| ty.names().any(|name| name == **case))?;
            Val::Enum((*case).to_owned())
        }
        Some(Type::Variant(ty)) => {
            let fits = |case: &&&str| ty.cases().any(|c| c.name == **case && c.ty.is_none());
            let case = REFUSED.iter().find(fits)?;
            Val::Variant((*case).to_owned(), None)
        }
        Some(_) => return None,
    };
    Some(Val::Result(Err(Some(Box::new(payload)))))
}

/// The type of a resource that an interface has in common with a linked one, for example `pollable`; or else
/// a type without use.
fn resource_type(import: &str, name: &str) -> ResourceType {
    use wasmtime_wasi_http::p2::types;
    match name {
        "error" => ResourceType::host::<wasmtime::Error>(),
        "pollable" => ResourceType::host::<DynPollable>(),
        "input-stream" => ResourceType::host::<DynInputStream>(),
        "output-stream" => ResourceType::host::<DynOutputStream>(),
        "network" => ResourceType::host::<p2::Network>(),
        "outgoing-request" if import.starts_with("wasi:http/") => {
            ResourceType::host::<types::HostOutgoingRequest>()
        }
        "request-options" if import.starts_with("wasi:http/") => {
            ResourceType::host::<wasmtime_wasi_http::RequestOptions>()
        }
        "future-incoming-response" if import.starts_with("wasi:http/") => {
            ResourceType::host::<types::HostFutureIncomingResponse>()
        }
        _ => ResourceType::host::<()>(),
    }
}

/// The contract of a component; if it has none, how it is used.
enum ComponentWorld {
    Tool,
    Hook,
    Command,
    Functions,
}

/// How a component is used without contract of belljar's.
fn foreign_world(engine: &Engine, component: &Component) -> Result<ComponentWorld, LoadError> {
    let ty = component.component_type();
    let form = |item: &ComponentItem| match item {
        ComponentItem::ComponentInstance(_) => ExportForm::Interface,
        ComponentItem::ComponentFunc(_) => ExportForm::Function,
        _ => ExportForm::Other,
    };
    let exports: Vec<_> = ty.exports(engine).map(|(name, item)| (name, form(&item.ty))).collect();
    match kind_of(exports.into_iter()) {
        Some(ComponentKind::Command) => Ok(ComponentWorld::Command),
        Some(ComponentKind::Functions) => Ok(ComponentWorld::Functions),
        Some(ComponentKind::Tool | ComponentKind::Hook) | None => {
            let why = "it exports nothing that can be called, nor `belljar:tool/tools@0.1.0`";
            Err(LoadError::WrongWorld(why.to_owned()))
        }
    }
}

/// Finds the contract the exports belong to, and checks that they have its types.
fn check_exports(engine: &Engine, component: &Component) -> Result<ComponentWorld, LoadError> {
    let wrong = |text: String| LoadError::WrongWorld(text);
    let ty = component.component_type();
    let find = |is: fn(&str) -> bool| ty.exports(engine).find(|(name, _)| is(name));
    let ((name, export), world) = match (find(is_tool_export), find(is_hook_export)) {
        (Some(tool), _) => (tool, ComponentWorld::Tool),
        (None, Some(hook)) => (hook, ComponentWorld::Hook),
        (None, None) => return foreign_world(engine, component),
    };
    let ComponentItem::ComponentInstance(interface) = export.ty else {
        return Err(wrong(format!("its export `{name}` is not an interface")));
    };
    let function = |function: &str| match interface.get_export(engine, function).map(|f| f.ty) {
        Some(ComponentItem::ComponentFunc(ty)) => Ok(ty),
        Some(_) | None => Err(wrong(format!("`{name}` has no function `{function}`"))),
    };
    let another = |function: &str, error: wasmtime::Error| {
        wrong(format!("`{function}` has another type: {error:#}"))
    };
    let instance = ty.instance_type();
    match world {
        ComponentWorld::Tool => {
            function("describe")?
                .typecheck::<(), (Vec<Definition>,)>(&instance)
                .map_err(|error| another("describe", error))?;
            function("invoke")?
                .typecheck::<(Call,), (Result<Output, ToolError>,)>(&instance)
                .map_err(|error| another("invoke", error))?;
        }
        ComponentWorld::Hook => function("check")?
            .typecheck::<(String,), (Result<Verdict, String>,)>(&instance)
            .map_err(|error| another("check", error))?,
        // Their types are checked where the exports are looked up.
        ComponentWorld::Command | ComponentWorld::Functions => {}
    }
    Ok(world)
}
