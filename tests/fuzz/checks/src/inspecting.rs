//! Components of strangers: their bytes, and what they say of themselves.
//!
//! Every input is read as the bytes of a component. One that is text is also read as an answer
//! of `describe`: tools apart by a line `===`, each a line with its name, a description, a
//! line `---`, and a schema.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::is_safe_to_show;
use crate::sandbox::described::{DescribeLimits, ToolClaim, check_claims};
use crate::sandbox::inspect::{self, ImportNeed, inspect_component};
use crate::sandbox::tool_info::{ToolHints, ToolInfo};

/// Checks the inspection of a component and the check of what it says of its tools.
pub fn component(data: &[u8]) {
    read(data);
    if let Ok(text) = std::str::from_utf8(data) {
        describe(text);
    }
}

fn read(data: &[u8]) {
    let found = match inspect_component(data) {
        Ok(found) => found,
        Err(error) => return assert!(is_safe_to_show(&error.to_string()), "{error:?}"),
    };
    assert_eq!(found.size, data.len() as u64);
    assert!(found.imports.len() <= 1_000 && found.exports.len() <= 1_000);
    let stands_there = |name: &str| name.is_empty() || contains(data, name.as_bytes());
    for import in &found.imports {
        assert!(stands_there(&import.name), "an import that the file does not name");
        let offered = ["wasi:", "belljar:tool/"].iter().any(|it| import.name.starts_with(it));
        assert!(offered || import.need == ImportNeed::Unknown, "{import:?} is not ours to offer");
    }
    for contract in [&found.tool_export, &found.hook_export].into_iter().flatten() {
        assert!(found.exports.contains(contract) && contract.starts_with("belljar:"));
    }
    match inspect::check_component(data) {
        Ok(loads) => {
            assert_eq!(loads, found, "two readings of the same bytes");
            assert!(found.imports.iter().all(|import| import.need != ImportNeed::Unknown));
            assert!(found.kind.is_some());
        }
        Err(error) => assert!(is_safe_to_show(&error.to_string()), "{error:?}"),
    }
}

fn contains(data: &[u8], part: &[u8]) -> bool {
    data.windows(part.len()).any(|window| window == part)
}

fn describe(text: &str) {
    let limits = DescribeLimits {
        tools: 8,
        description_bytes: 1_000,
        schema_bytes: 8_000,
        ..DescribeLimits::default()
    };
    let claims: Vec<ToolClaim> = text.split("\n===\n").map(claim).collect();
    let offered = claims.len();
    match check_claims(claims.clone(), &limits) {
        Ok(tools) => {
            assert!(offered <= limits.tools && tools.len() == offered);
            let names: BTreeSet<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(names.len(), tools.len(), "two tools of one name");
            for (tool, claim) in tools.iter().zip(&claims) {
                honest(tool, claim, &limits);
            }
        }
        Err(why) => assert!(is_safe_to_show(&why), "{why:?}"),
    }
}

fn claim(text: &str) -> ToolClaim {
    let (name, rest) = text.split_once('\n').unwrap_or((text, ""));
    let (description, schema) = rest.split_once("\n---\n").unwrap_or((rest, ""));
    let hints = ToolHints { read_only: name.len() % 2 == 0, ..ToolHints::default() };
    ToolClaim {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: schema.to_owned(),
        hints,
    }
}

/// An accepted description is what was said, bounded and visible.
fn honest(tool: &ToolInfo, claim: &ToolClaim, limits: &DescribeLimits) {
    let name = tool.name.as_str();
    assert_eq!(name, claim.name);
    assert!((1..=64).contains(&name.len()));
    assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
    assert_eq!(tool.hints, claim.hints);
    assert_eq!(tool.description, claim.description);
    assert!(!tool.description.trim().is_empty() && is_safe_to_show(&tool.description));
    assert!(tool.description.len() <= limits.description_bytes);
    assert!(claim.schema.len() <= limits.schema_bytes);
    assert_eq!(tool.schema.get("type").and_then(Value::as_str), Some("object"));
    visible(&tool.schema, 0);
    // The cache keeps it as JSON, and the model gets it so.
    let kept = serde_json::to_vec(tool).map(|kept| serde_json::from_slice::<ToolInfo>(&kept));
    assert!(matches!(kept, Ok(Ok(ref again)) if again == tool), "{kept:?}");
}

fn visible(value: &Value, depth: usize) {
    assert!(depth <= 64, "deeper than was checked");
    match value {
        Value::String(text) => assert!(is_safe_to_show(text), "{text:?}"),
        Value::Array(items) => items.iter().for_each(|item| visible(item, depth + 1)),
        Value::Object(fields) => {
            for (key, value) in fields {
                assert!(is_safe_to_show(key), "{key:?}");
                visible(value, depth + 1);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
