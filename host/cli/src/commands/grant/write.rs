//! `belljar.toml` with a grant added: the digests of tools, the difference, and putting it in
//! place.

use std::path::Path;

use belljar_policy::ShownPath as _;
use belljar_policy::{Permission, Shown, ToolName};
use belljar_sandbox::Digest;
use similar::TextDiff;
use toml_edit::{DocumentMut, Item, Table, Value};

use crate::setup::embedded::STOCK_TOOLS;
use crate::setup::exit::Failure;
use crate::setup::home::{MAX_COMPONENT_BYTES, Places, read_bounded};
use crate::term::out::{Out, Style};

/// Pins the component of each tool of the operator's own, so that another component in its
/// place is noticed.
pub(super) fn pin<'a>(
    text: &str,
    tools: impl IntoIterator<Item = &'a (ToolName, Permission)>,
    places: &Places,
) -> Result<String, Failure> {
    let mut text = text.to_owned();
    for (tool, permission) in tools {
        let path = places.tools().join(tool.as_str()).join("tool.wasm");
        let stock = STOCK_TOOLS.iter().any(|stock| stock.name == tool.as_str());
        if stock || *permission == Permission::Deny || !path.is_file() {
            continue;
        }
        let wasm = read_bounded(&path, MAX_COMPONENT_BYTES)
            .map_err(|error| Failure::new(format!("failed to read `{}`: {error}", path.shown())))?;
        let digest = format!("sha256:{}", Digest::of(&wasm));
        // A text that does not parse is reported, with its place, by `apply_grant`.
        if let Some(pinned) = with_digest(&text, tool, &digest) {
            text = pinned;
        }
    }
    Ok(text)
}

fn with_digest(text: &str, tool: &ToolName, digest: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let tools = document.entry("tools").or_insert(Item::Table(implicit)).as_table_like_mut()?;
    if !tools.contains_key(tool.as_str()) {
        tools.insert(tool.as_str(), Item::Table(Table::new()));
    }
    let section = tools.get_mut(tool.as_str())?.as_table_like_mut()?;
    if section.get("digest").and_then(Item::as_str) != Some(digest) {
        section.insert("digest", Item::Value(Value::from(digest)));
    }
    Some(document.to_string())
}

/// Shows what changes.
pub(super) fn show(path: &Path, old: &str, new: &str, out: &Out) {
    let name = path.shown().to_string();
    let diff = TextDiff::from_lines(old, new);
    let diff = diff.unified_diff().context_radius(3).header(&name, &name).to_string();
    for line in diff.lines() {
        let style = match line.as_bytes().first() {
            _ if line.starts_with("+++") || line.starts_with("---") => Some(Style::Bold),
            Some(b'+') => Some(Style::Green),
            Some(b'-') => Some(Style::Red),
            Some(b'@') => Some(Style::Cyan),
            _ => None,
        };
        let line = Shown::multiline(line).to_string();
        match style {
            Some(style) => out.line(out.paint(style, line)),
            None => out.line(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_added_once_and_keeps_the_rest() {
        let tool = ToolName::new("word_count").unwrap();
        let text = "# mine\n[tools.word_count] # note\nconfig = { a = \"b\" }\n";
        let once = with_digest(text, &tool, "sha256:00").unwrap();
        assert!(once.contains("# mine") && once.contains("# note") && once.contains("a = \"b\""));
        assert!(once.contains("digest = \"sha256:00\""));
        assert_eq!(with_digest(&once, &tool, "sha256:00").unwrap(), once);
    }
}
