//! `belljar tools inspect`: a component's imports and tools, without trusting it.

use belljar_policy::Shown;
use belljar_sandbox::{
    ComponentKind, DescribeError, Digest, Inspection, LeftOutFunction, LoadError, Need, ToolInfo,
    Wasm,
};
use serde_json::json;

use crate::commands::tools::words;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::host;
use crate::term::out::{Out, Style};
use crate::term::table::{self, Table, plain, styled};

/// The offered tools of a component, and the ones left out.
struct Offered {
    tools: Vec<ToolInfo>,
    left_out: Vec<LeftOutFunction>,
}

/// Shows one component. Only `describe` runs guest code, in a throwaway store without any
/// right.
pub(crate) fn run(
    name: &str,
    wasm: &Wasm,
    json: bool,
    places: &Places,
    out: &Out,
) -> Result<Exit, Failure> {
    let inspection = belljar_sandbox::inspect(wasm.bytes()).map_err(|error| {
        let digest = Digest::of(wasm.bytes());
        not_a_component(name, &digest, &error)
    })?;
    let offered = describe(&inspection, wasm, places, out)?;
    if json {
        out.json(&as_json(&inspection, &offered))?;
    } else {
        print(name, &inspection, &offered, out);
    }
    match offered {
        Ok(_) => Ok(Exit::Completed),
        Err(why) => {
            Err(Failure::new(format!("`{}` cannot be used as a tool: {why}", Shown::new(name))))
        }
    }
}

fn not_a_component(name: &str, digest: &Digest, error: &LoadError) -> Failure {
    Failure::usage(format!("`{}` (sha256:{digest}): {error}", Shown::new(name)))
}

/// The offered tools of the component, or the reason for their absence.
fn describe(
    inspection: &Inspection,
    wasm: &Wasm,
    places: &Places,
    out: &Out,
) -> Result<Result<Offered, String>, Failure> {
    match inspection.kind {
        Some(ComponentKind::Hook) => {
            let why = "it is a hook; name it as `component` under `[[hooks]]` in `belljar.toml`";
            return Ok(Err(why.to_owned()));
        }
        None => return Ok(Err("it exports nothing that can be called".to_owned())),
        Some(ComponentKind::Tool | ComponentKind::Command | ComponentKind::Functions) => {}
    }
    let sandbox = host::sandbox(places, out)?;
    let runtime = host::small_runtime()?;
    let described = runtime.block_on(sandbox.describe(wasm));
    Ok(match described {
        Ok(infos) if inspection.kind == Some(ComponentKind::Functions) => {
            let left_out = runtime.block_on(sandbox.load(wasm));
            let left_out = left_out.map(|component| component.left_out().to_vec());
            Ok(Offered { tools: infos.to_vec(), left_out: left_out.unwrap_or_default() })
        }
        Ok(infos) => Ok(Offered { tools: infos.to_vec(), left_out: Vec::new() }),
        Err(DescribeError::Load(error)) => Err(error.to_string()),
        Err(error @ (DescribeError::Failed(_) | DescribeError::Invalid(_))) => {
            Err(error.to_string())
        }
    })
}

fn as_json(inspection: &Inspection, offered: &Result<Offered, String>) -> serde_json::Value {
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
        if let Ok(Offered { left_out, .. }) = offered
            && !left_out.is_empty()
        {
            let rows = left_out.iter();
            let rows = rows.map(|it| json!({ "function": it.function, "reason": it.reason }));
            object.insert("left_out".to_owned(), rows.collect());
        }
    }
    object
}

fn print(name: &str, inspection: &Inspection, offered: &Result<Offered, String>, out: &Out) {
    out.line(out.paint(Style::Bold, Shown::new(name)));
    out.line(format_args!("digest  sha256:{}", inspection.digest));
    out.line(format_args!("size    {}", table::size(inspection.size)));
    if let Some(kind) = inspection.kind {
        out.line(format_args!("kind    {kind}"));
    }
    out.line("");
    let mut imports = Table::new(out, &["imports", "needs"]);
    for import in &inspection.imports {
        let style = match import.need {
            Need::Base | Need::Contract | Need::Config => Style::Dim,
            Need::Files | Need::Network | Need::Peers => Style::Yellow,
            Need::Denied | Need::Unknown => Style::Red,
        };
        imports.row([plain(Shown::new(&import.name)), styled(style, import.need)]);
    }
    imports.print(out);
    out.line("");
    let mut exports = Table::new(out, &["exports"]);
    for export in &inspection.exports {
        exports.row([plain(Shown::new(export))]);
    }
    exports.print(out);
    let Ok(offered) = offered else { return };
    for info in &offered.tools {
        out.line("");
        print_tool(info, out);
    }
    left_out(&offered.left_out, out);
}

/// The functions that are not offered as tools.
pub(super) fn left_out(functions: &[LeftOutFunction], out: &Out) {
    if functions.is_empty() {
        return;
    }
    out.line("");
    let mut table = Table::new(out, &["not offered", "because"]);
    for LeftOutFunction { function, reason } in functions {
        table.row([plain(Shown::new(function)), styled(Style::Dim, reason)]);
    }
    table.print(out);
}

fn print_tool(info: &ToolInfo, out: &Out) {
    let hints = words::hints(info);
    out.line(format_args!("tool {} ({hints})", out.paint(Style::Bold, &info.name)));
    out.line(format_args!("  {}", Shown::new(&info.description)));
    let schema = serde_json::to_string_pretty(&info.schema).unwrap_or_default();
    for line in Shown::multiline(&schema).to_string().lines() {
        out.text(&format!("  {line}\n"));
    }
}
