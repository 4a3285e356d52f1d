//! `belljar tools inspect`: shows what a component imports, exports and offers, without trusting it.

use belljar_policy::ShownText;
use belljar_sandbox::{
    ComponentInspection, ComponentKind, DescribeError, Digest, ImportNeed, LeftOutFunction,
    LoadError, ToolInfo, Wasm,
};
use serde_json::json;

use crate::commands::tools::words;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{self, TextTable, plain_cell, styled_cell};

/// The tools that a component offers, and its functions that are not offered.
struct OfferedTools {
    tools: Vec<ToolInfo>,
    left_out: Vec<LeftOutFunction>,
}

/// Shows one component. The only code of the component that runs is `describe`, in a temporary store without
/// any right.
pub(crate) fn run(
    name: &str,
    wasm: &Wasm,
    json: bool,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let inspection = belljar_sandbox::inspect_component(wasm.bytes()).map_err(|error| {
        let digest = Digest::hash_bytes(wasm.bytes());
        not_a_component(name, &digest, &error)
    })?;
    let offered = describe_component(&inspection, wasm, places, out)?;
    if json {
        out.print_json(&as_json(&inspection, &offered))?;
    } else {
        print_component(name, &inspection, &offered, out);
    }
    match offered {
        Ok(_) => Ok(CommandExit::Completed),
        Err(why) => {
            Err(Failure::new(format!("`{}` cannot be used as a tool: {why}", ShownText::new(name))))
        }
    }
}

fn not_a_component(name: &str, digest: &Digest, error: &LoadError) -> Failure {
    Failure::usage(format!("`{}` (sha256:{digest}): {error}", ShownText::new(name)))
}

/// The tools that the component offers, or the reason why it offers none.
fn describe_component(
    inspection: &ComponentInspection,
    wasm: &Wasm,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<Result<OfferedTools, String>, Failure> {
    match inspection.kind {
        Some(ComponentKind::Hook) => {
            let why = "it is a hook; name it as `component` under `[[hooks]]` in `belljar.toml`";
            return Ok(Err(why.to_owned()));
        }
        None => return Ok(Err("it exports nothing that can be called".to_owned())),
        Some(ComponentKind::Tool | ComponentKind::Command | ComponentKind::Functions) => {}
    }
    let sandbox = host::make_sandbox(places, out)?;
    let runtime = host::small_runtime()?;
    let described = runtime.block_on(sandbox.describe_tools(wasm));
    Ok(match described {
        Ok(infos) if inspection.kind == Some(ComponentKind::Functions) => {
            let left_out = runtime.block_on(sandbox.load_component(wasm));
            let left_out = left_out.map(|component| component.left_out().to_vec());
            Ok(OfferedTools { tools: infos.to_vec(), left_out: left_out.unwrap_or_default() })
        }
        Ok(infos) => Ok(OfferedTools { tools: infos.to_vec(), left_out: Vec::new() }),
        Err(DescribeError::Load(error)) => Err(error.to_string()),
        Err(error @ (DescribeError::Failed(_) | DescribeError::Invalid(_))) => {
            Err(error.to_string())
        }
    })
}

/// The component as a JSON object.
fn as_json(
    inspection: &ComponentInspection,
    offered: &Result<OfferedTools, String>,
) -> serde_json::Value {
    let imports: Vec<_> = inspection
        .imports
        .iter()
        .map(|import| json!({ "name": import.name, "needs": import.need.to_string() }))
        .collect();
    let mut object = json!({
        "digest": format!("sha256:{}", inspection.digest),
        "bytes": inspection.size,
        "kind": inspection.kind,
        "imports": imports,
        "exports": inspection.exports,
    });
    let (key, value) = match offered {
        Ok(offered) => ("tools", json!(offered.tools)),
        Err(why) => ("unusable", json!(why)),
    };
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
        if let Ok(OfferedTools { left_out, .. }) = offered
            && !left_out.is_empty()
        {
            let rows = left_out.iter();
            let rows = rows.map(|it| json!({ "function": it.function, "reason": it.reason }));
            object.insert("left_out".to_owned(), rows.collect());
        }
    }
    object
}

/// Prints the component: its digest, imports, exports and tools.
fn print_component(
    name: &str,
    inspection: &ComponentInspection,
    offered: &Result<OfferedTools, String>,
    out: &TerminalOutput,
) {
    out.print_line(out.paint(TextStyle::Bold, ShownText::new(name)));
    out.print_line(format_args!("digest  sha256:{}", inspection.digest));
    out.print_line(format_args!("size    {}", table::format_size(inspection.size)));
    if let Some(kind) = inspection.kind {
        out.print_line(format_args!("kind    {kind}"));
    }
    out.print_line("");
    let mut imports = TextTable::new(out, &["imports", "needs"]);
    for import in &inspection.imports {
        let style = match import.need {
            ImportNeed::Base | ImportNeed::Contract | ImportNeed::Config => TextStyle::Dim,
            ImportNeed::Files | ImportNeed::Network | ImportNeed::Peers => TextStyle::Yellow,
            ImportNeed::Denied | ImportNeed::Unknown => TextStyle::Red,
        };
        imports
            .push_row([plain_cell(ShownText::new(&import.name)), styled_cell(style, import.need)]);
    }
    imports.print_to(out);
    out.print_line("");
    let mut exports = TextTable::new(out, &["exports"]);
    for export in &inspection.exports {
        exports.push_row([plain_cell(ShownText::new(export))]);
    }
    exports.print_to(out);
    let Ok(offered) = offered else { return };
    for info in &offered.tools {
        out.print_line("");
        print_tool(info, out);
    }
    left_out(&offered.left_out, out);
}

/// Prints the functions that are not offered as tools, with the reasons.
pub(super) fn left_out(functions: &[LeftOutFunction], out: &TerminalOutput) {
    if functions.is_empty() {
        return;
    }
    out.print_line("");
    let mut table = TextTable::new(out, &["not offered", "because"]);
    for LeftOutFunction { function, reason } in functions {
        table.push_row([plain_cell(ShownText::new(function)), styled_cell(TextStyle::Dim, reason)]);
    }
    table.print_to(out);
}

/// Prints one tool: its name, hints, description and schema.
fn print_tool(info: &ToolInfo, out: &TerminalOutput) {
    let hints = words::format_hints(info);
    out.print_line(format_args!("tool {} ({hints})", out.paint(TextStyle::Bold, &info.name)));
    out.print_line(format_args!("  {}", ShownText::new(&info.description)));
    let schema = serde_json::to_string_pretty(&info.schema).unwrap_or_default();
    for line in ShownText::multiline(&schema).to_string().lines() {
        out.print_text(&format!("  {line}\n"));
    }
}
