//! Lists the imports and exports of a component from its bytes alone: no engine, no guest code.

use std::fmt;

use belljar_overlay::Digest;
use belljar_policy::ShownText;
use wasmparser::{BinaryReaderError, ComponentExternalKind, Encoding, Parser, Payload};

use crate::LoadError;
use crate::component::interfaces::{import_need, is_hook_export, is_tool_export};
use crate::component::kind::{ComponentKind, ExportForm, kind_of};

/// The most bytes of a component: 64 MiB, because a Python tool with its interpreter has 18 MB.
pub(crate) const MAX_COMPONENT: u64 = 64 << 20;

/// The most imports, and the most exports, of a component: all of WASI 0.2 has about 50.
const MAX_NAMES: usize = 1_000;

/// The most bytes of a name that an error shows.
const MAX_SHOWN: usize = 128;

/// A component's imports and exports, and how it can be used because of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentInspection {
    /// SHA-256 of the bytes.
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
    /// The imports, in the component's order. Foreign text: escape before display.
    pub imports: Vec<Import>,
    /// The names of the exports, in the component's order, for example `wasi:cli/run@0.2.3`. Foreign text,
    /// too.
    pub exports: Vec<String>,
    /// The name of the `belljar:tool/tools` export, with its version; `None`: not a belljar tool.
    pub tool_export: Option<String>,
    /// The name of the `belljar:hook/hooks` export, with its version; `None`: not a belljar hook.
    pub hook_export: Option<String>,
    /// How the component is used; `None`: it exports nothing usable.
    pub kind: Option<ComponentKind>,
}

/// An import of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The name with its version, for example `wasi:filesystem/types@0.2.3`.
    pub name: String,
    /// What a tool needs so that the import works.
    pub need: ImportNeed,
}

/// What a tool needs so that one of its imports works, for example a granted host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportNeed {
    /// Nothing: the host always provides it, but without content, for example an empty environment.
    Base,
    /// Nothing: `log` and `progress` of the tool contract are always provided.
    Contract,
    /// A granted mount.
    Files,
    /// A granted network host.
    Network,
    /// Nothing: the host answers from the tool's own settings.
    Config,
    /// A right to call other tools of the agent.
    Peers,
    /// Nothing helps: the host knows the interface and refuses every call.
    Denied,
    /// Nothing helps: the host does not know the interface, and the component does not load.
    Unknown,
}

impl fmt::Display for ImportNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Base => "always there",
            Self::Contract => "always there (log, progress)",
            Self::Files => "a mount",
            Self::Network => "a host",
            Self::Config => "always there (the tool's settings)",
            Self::Peers => "other tools of the agent",
            Self::Denied => "never given; calls are refused",
            Self::Unknown => "unknown; the component does not load",
        })
    }
}

/// Lists a component's imports and exports. Fails only if the bytes are no component; whether the host
/// supports the imports is for the caller to decide.
pub fn inspect_component(wasm: &[u8]) -> Result<ComponentInspection, LoadError> {
    let size = wasm.len() as u64;
    if size > MAX_COMPONENT {
        return Err(LoadError::TooLarge { size, limit: MAX_COMPONENT });
    }
    if !wasm.starts_with(b"\0asm") {
        return Err(LoadError::NotWasm);
    }
    let mut found = ComponentInspection {
        digest: Digest::hash_bytes(wasm),
        size,
        imports: Vec::new(),
        exports: Vec::new(),
        tool_export: None,
        hook_export: None,
        kind: None,
    };
    read_sections(wasm, &mut found)?;
    Ok(found)
}

/// Inspects a component, and refuses one that cannot load: it has an unknown import, or exports nothing
/// usable.
pub(crate) fn check_component(wasm: &[u8]) -> Result<ComponentInspection, LoadError> {
    let found = inspect_component(wasm)?;
    if let Some(import) = found.imports.iter().find(|import| import.need == ImportNeed::Unknown) {
        return Err(LoadError::UnknownImport(clip_shown(&import.name)));
    }
    if found.kind.is_none() {
        let exports: Vec<_> = found.exports.iter().take(8).map(|name| clip_shown(name)).collect();
        let exports = if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") };
        return Err(LoadError::WrongWorld(format!(
            "it exports {exports}, and neither `belljar:tool/tools` nor functions that can be called"
        )));
    }
    Ok(found)
}

fn clip_shown(name: &str) -> String {
    ShownText::clip_line(name, MAX_SHOWN).to_string()
}

fn malformed_error(error: &BinaryReaderError) -> LoadError {
    LoadError::Malformed(ShownText::clip_line(&error.to_string(), 4 * MAX_SHOWN).to_string())
}

/// Reads the imports and exports from the sections of a component. Skips nested modules and components,
/// because the host deals with the outer component's names only.
fn read_sections(wasm: &[u8], found: &mut ComponentInspection) -> Result<(), LoadError> {
    let mut depth = 0_u32;
    let mut ended = false;
    let mut forms = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.map_err(|error| malformed_error(&error))? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                return Err(LoadError::CoreModule);
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) if depth == 0 => ended = true,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let name = import.map_err(|error| malformed_error(&error))?.name.name;
                    check_name_count(found.imports.len())?;
                    found.imports.push(Import { name: name.to_owned(), need: import_need(name) });
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    let export = export.map_err(|error| malformed_error(&error))?;
                    let name = export.name.name;
                    check_name_count(found.exports.len())?;
                    forms.push(match export.kind {
                        ComponentExternalKind::Instance => ExportForm::Interface,
                        ComponentExternalKind::Func => ExportForm::Function,
                        _ => ExportForm::Other,
                    });
                    if export.kind == ComponentExternalKind::Instance {
                        if is_tool_export(name) {
                            found.tool_export = Some(name.to_owned());
                        } else if is_hook_export(name) {
                            found.hook_export = Some(name.to_owned());
                        }
                    }
                    found.exports.push(name.to_owned());
                }
            }
            _ => {}
        }
    }
    found.kind = kind_of(found.exports.iter().map(String::as_str).zip(forms.iter().copied()));
    if ended { Ok(()) } else { Err(LoadError::Malformed("it ends too early".to_owned())) }
}

fn check_name_count(names: usize) -> Result<(), LoadError> {
    if names < MAX_NAMES {
        return Ok(());
    }
    Err(LoadError::Malformed(format!("it has over {MAX_NAMES} imports or exports")))
}
