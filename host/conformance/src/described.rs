//! Compares a component's descriptions of its tools with what a case expects.

use belljar_sandbox::ToolInfo;
use serde_json::Value;

use crate::cases::{Case, SchemaExpectation};

/// The start of a description by which a component says why its language cannot offer the tool.
pub(crate) const NOT_POSSIBLE: &str = "not possible: ";

/// Why the component does not offer a tool that the case needs; `None`: all are offered.
pub(crate) fn missing_reason(case: &Case, infos: &[ToolInfo]) -> Option<String> {
    case.needed_tools().find_map(|name| match find_tool(infos, name) {
        None => Some(format!("there is no `{name}`")),
        Some(info) => info.description.strip_prefix(NOT_POSSIBLE).map(str::to_owned),
    })
}

/// The faults in the descriptions that the case checks.
pub(crate) fn description_faults(case: &Case, infos: &[ToolInfo]) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(schema) = &case.schema
        && let Some(info) = find_tool(infos, &schema.tool)
    {
        schema_faults(schema, info, &mut faults);
    }
    for (name, wanted) in &case.hints {
        let Some(info) = find_tool(infos, name) else { continue };
        let has = [
            ("read-only", info.hints.read_only),
            ("idempotent", info.hints.idempotent),
            ("open-world", info.hints.open_world),
        ];
        for (hint, has) in has {
            if has != wanted.iter().any(|one| one == hint) {
                let word = if has { "has" } else { "lacks" };
                faults.push(format!("`{name}` {word} the hint `{hint}`"));
            }
        }
    }
    faults
}

/// Compares parts of a tool's schema, and its required fields, with the expectation.
fn schema_faults(schema: &SchemaExpectation, info: &ToolInfo, faults: &mut Vec<String>) {
    let tool = &schema.tool;
    for (pointer, wanted) in &schema.at {
        match info.schema.pointer(pointer) {
            Some(found) if found == wanted => {}
            Some(found) => {
                faults.push(format!("`{tool}`: `{pointer}` is {found} and not {wanted}"));
            }
            None => faults.push(format!("`{tool}`: its schema has no `{pointer}`")),
        }
    }
    let Some(wanted) = &schema.required else { return };
    let found = info.schema.get("required").and_then(Value::as_array);
    let mut found: Vec<&str> = found.into_iter().flatten().filter_map(Value::as_str).collect();
    let mut wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    if found != wanted {
        faults.push(format!("`{tool}`: required are {found:?} and not {wanted:?}"));
    }
}

fn find_tool<'a>(infos: &'a [ToolInfo], name: &str) -> Option<&'a ToolInfo> {
    infos.iter().find(|info| info.name.as_str() == name)
}
