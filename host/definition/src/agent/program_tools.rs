//! Finds belljar's tools for restricted tools of other programs, by name.
//!
//! The table is data: `tables/tool_names.toml`. The table never grants a tool. For example, denying Codex's
//! `apply_patch` denies `file_edit`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::words::flatten_text;

/// The table by tool name, without characters that only join words, for example `applypatch`.
static NAMES: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    // Without the table every name is unknown, and an unknown name blocks.
    let table = toml::from_str::<ProgramToolTable>(include_str!("../../tables/tool_names.toml"));
    table.map(ProgramToolTable::index_by_name).unwrap_or_default()
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramToolTable {
    /// The tools for the name of a function, for example `write`.
    does: BTreeMap<String, Vec<String>>,
    program: Vec<ProgramTools>,
}

#[derive(Deserialize)]
struct ProgramTools {
    #[serde(rename = "name")]
    _name: String,
    /// The program's tool names, by function.
    #[serde(flatten)]
    tools: BTreeMap<String, Vec<String>>,
}

impl ProgramToolTable {
    /// The table by tool name, with belljar's tools for each name.
    fn index_by_name(self) -> BTreeMap<String, BTreeSet<String>> {
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (does, written) in self.program.iter().flat_map(|program| &program.tools) {
            let tools = self.does.get(does).into_iter().flatten();
            for name in written {
                names.entry(flatten_text(name)).or_default().extend(tools.clone().cloned());
            }
        }
        names
    }
}

/// The tools of belljar that do what another program's tool does, for example `file_edit` for Codex's
/// `apply_patch`. The name may be a pattern with `*`, which `fits` compares with names; `None` = no name of
/// the table fits.
pub(super) fn find_equivalent_tools(
    name: &str,
    fits: impl Fn(&str, &str) -> bool,
) -> Option<BTreeSet<&'static str>> {
    let plain = flatten_text(name);
    let plain = strip_date(&plain);
    if plain.contains('*') {
        let mut found = NAMES.iter().filter(|(name, _)| fits(plain, name)).peekable();
        found.peek()?;
        return Some(found.flat_map(|(_, tools)| tools).map(String::as_str).collect());
    }
    // In `functions.shell` and `builtin/grep`, the last part is the tool.
    let last = plain.rsplit(['/', '.', ':']).next().unwrap_or(plain);
    let tools = NAMES.get(plain).or_else(|| NAMES.get(last))?;
    Some(tools.iter().map(String::as_str).collect())
}

/// The name without a date at its end, for example `texteditor` of `texteditor20250124`.
fn strip_date(name: &str) -> &str {
    let Some(start) = name.len().checked_sub(8) else { return name };
    match name.split_at_checked(start) {
        Some((rest, date))
            if date.starts_with("20") && date.bytes().all(|b| b.is_ascii_digit()) =>
        {
            rest
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_table_denies_tools_that_there_are() {
        let table: ProgramToolTable =
            toml::from_str(include_str!("../../tables/tool_names.toml")).unwrap();
        let own = [
            "attach_file",
            "file_edit",
            "file_find",
            "file_list",
            "file_read",
            "file_search",
            "file_write",
            "notebook_edit",
            "run_javascript",
            "run_python",
            "shell",
            "web_fetch",
            "web_search",
        ];
        let known: BTreeSet<_> = own.into_iter().chain(crate::BUILTIN_TOOLS).collect();
        for tool in table.does.values().flatten() {
            assert!(known.contains(tool.as_str()), "{tool}");
        }
        for program in &table.program {
            for does in program.tools.keys() {
                assert!(table.does.contains_key(does), "{}: {does}", program._name);
            }
        }
        assert!(NAMES.len() > 300);
    }

    #[test]
    fn a_name_is_known_in_every_spelling_and_version() {
        let denied = |name: &str| {
            find_equivalent_tools(name, |_, _| false)
                .map(|tools| tools.into_iter().collect::<Vec<_>>())
        };
        for name in ["apply_patch", "ApplyPatch", "apply-patch", "functions.apply_patch"] {
            assert!(denied(name).unwrap().contains(&"file_edit"), "{name}");
        }
        assert!(denied("bash_20250124").unwrap().contains(&"shell"));
        assert_eq!(denied("finish").unwrap(), Vec::<&str>::new());
        assert_eq!(denied("Wrte"), None);
    }
}
