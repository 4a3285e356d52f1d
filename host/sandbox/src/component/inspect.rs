//! Lists the imports and exports of a component from its bytes alone, without an engine or guest code.

use std::fmt;

use belljar_policy::ShownText;
use wasmparser::{BinaryReaderError, ComponentExternalKind, Encoding, Parser, Payload};

use crate::LoadError;
use crate::component::interfaces::{import_need, is_hook_export, is_tool_export};
use crate::component::kind::{ComponentKind, ExportForm, kind_of};
use crate::component::wasm::Digest;

/// The largest component: 64 MiB, because a Python tool with its interpreter has 18 MB.
pub(crate) const MAX_COMPONENT: u64 = 64 << 20;

/// The most imports and exports of one component; all of WASI 0.2 has about 50.
const MAX_NAMES: usize = 1_000;

/// Bytes of a name in an error.
const MAX_SHOWN: usize = 128;

/// The parts of a component that decide how it can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentInspection {
    /// SHA-256 of the bytes.
    pub digest: Digest,
    /// Size in bytes.
    pub size: u64,
    /// The imports, in order. Foreign text: escape it before showing it to a person.
    pub imports: Vec<Import>,
    /// Names of the exports, in order, for example `wasi:cli/run@0.2.3`. Foreign text, too.
    pub exports: Vec<String>,
    /// The `belljar:tool/tools` export, in the component's spelling; `None` = not a belljar tool.
    pub tool_export: Option<String>,
    /// The `belljar:hook/hooks` export, in the component's spelling; `None` = not a belljar hook.
    pub hook_export: Option<String>,
    /// The kind of component; `None` = no usable export.
    pub kind: Option<ComponentKind>,
}

/// One import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The name in the component's spelling, for example `wasi:filesystem/types@0.2.3`.
    pub name: String,
    /// The condition for the import to work.
    pub need: ImportNeed,
}

/// The condition for an import to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportNeed {
    /// Nothing: always provided, without content.
    Base,
    /// Nothing: `log` and `progress` are always provided.
    Contract,
    /// A granted mount.
    Files,
    /// A granted host.
    Network,
    /// Nothing: answered from the tool's own settings.
    Config,
    /// Other tools of the agent.
    Peers,
    /// Known but never provided: every call is refused.
    Denied,
    /// Unknown to the host: such a component does not load.
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

/// Lists a component's imports and exports. The caller decides whether the host supports them; only invalid
/// bytes are an error.
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

/// Inspects like [`inspect_component`], and refuses a component that cannot load.
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

/// Parses the sections. Nested modules and components are skipped, because only the outer component's names
/// bind the host.
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
