//! The names of fields of every supported program.

use super::words::{TABLES, flatten_text, is_crossed_out, split_words};
use super::{limit_words, stated};
use crate::dialect::{CANONICAL_ONLY, CANONICAL_SHARED};

/// Other programs' fields without effect here: for display, or for rights that belljar does not accept from a
/// file.
pub(super) const IGNORED: &[&str] = &[
    "color",
    "emoji",
    "vibe",
    "category",
    "capabilities",
    "mode",
    "version",
    "temperature",
    "author",
    "type",
    "dependencies",
    "complexity",
    "tags",
    "hidden",
    "argument-hint",
    "user-invocable",
    "disable-model-invocation",
    "effort",
    "top_p",
    "background",
    "memory",
    "isolation",
    "initialPrompt",
    "prompt",
    "license",
    "metadata",
];

/// Fields whose effect would be a right: reported, never honoured.
pub(super) const NOT_HONOURED: &[&str] =
    &["hooks", "mcpServers", "mcp-servers", "permissionMode", "skills", "handoffs"];

/// Fields that deny something to an agent, in the spelling of their reader. The repair of broken YAML must
/// not lose any of these.
pub(super) const NARROWING: &[&str] = &[
    "tools",
    "allowedTools",
    "disallowedTools",
    "permission",
    "permissions",
    "maxTurns",
    "steps",
    "maxSteps",
    "agents",
    "disable",
];

/// Fields that match in any spelling of the same words, for example `allowed-tools` and `allowedTools`.
/// Accepting a spelling can only narrow.
const SPELT_FREELY: &[&str] =
    &["tools", "allowedTools", "disallowedTools", "permission", "permissions"];

/// The field that a key refers to: the key itself, or the narrowing field that it spells differently.
pub(super) fn resolve_field(key: &str) -> &str {
    // Field names are short, so a long key is not one.
    if key.len() > MAX_SPELT || SPELT_FREELY.contains(&key) {
        return key;
    }
    let plain = flatten_text(key);
    let is_field = |field: &&&str| flatten_text(field) == plain && !is_crossed_out(key);
    let spelt = SPELT_FREELY.iter().find(is_field).copied();
    spelt.or_else(|| list_of_tools(key)).unwrap_or(key)
}

/// The longest key that is compared with other spellings, in bytes.
const MAX_SPELT: usize = 64;

/// The field that a key refers to in other words, for example `available_tools` or `toolsToSkip`.
fn list_of_tools(key: &str) -> Option<&'static str> {
    let tables = TABLES.as_ref()?;
    let words = split_words(key);
    let (tools, others): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| {
        matches!(word.as_str(), "tool" | "tools" | "toolset" | "toolsets" | "toolbox" | "toolkit")
    });
    let said: Vec<&String> = others
        .into_iter()
        .filter(|word| !tables.list_of_tools.contains(*word) && !tables.fill.contains(*word))
        .collect();
    let denies = said.iter().any(|word| tables.list_denies.contains(*word));
    let known =
        |word: &&String| tables.list_denies.contains(*word) || tables.list_allows.contains(*word);
    if tools.len() != 1 || !said.iter().all(known) {
        return None;
    }
    match said.is_empty() {
        true if words.len() > 1 || words.first()? != "tool" => Some("tools"),
        true => None,
        false if denies => Some("disallowedTools"),
        false => Some("allowedTools"),
    }
}

/// Whether a key narrows, in any spelling.
pub(super) fn is_narrowing_key(key: &str) -> bool {
    NARROWING.contains(&resolve_field(key)) || stated::is_stated(key) || limit_words::is_joined(key)
}

/// Whether a key is a field of any program's agent files.
pub(super) fn is_known(key: &str) -> bool {
    let tables = [CANONICAL_SHARED, CANONICAL_ONLY, NARROWING, IGNORED, NOT_HONOURED];
    is_narrowing_key(key) || tables.iter().any(|table| table.contains(&resolve_field(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_spellings_of_a_field_that_narrows_are_that_field() {
        assert_eq!(resolve_field("Tools"), "tools");
        assert_eq!(resolve_field("allowed-tools"), "allowedTools");
        assert_eq!(resolve_field("disallowed_tools"), "disallowedTools");
        assert_eq!(resolve_field("name"), "name");
        assert_eq!(resolve_field("Name"), "Name");
        for allows in ["available_tools", "includeTools", "tool-allowlist", "ONLY_TOOLS"] {
            assert_eq!(resolve_field(allows), "allowedTools", "{allows}");
        }
        for denies in
            ["exclude-tools", "skip_tools", "unavailableTools", "toolsToSkip", "skiptools"]
        {
            assert_eq!(resolve_field(denies), "disallowedTools", "{denies}");
        }
        assert_eq!(resolve_field("-tools"), "disallowedTools");
        for same in ["t\u{200b}ools", "t\u{43e}ols", "tool_names", "toolset"] {
            assert_eq!(resolve_field(same), "tools", "{same:?}");
        }
        for other in ["tool_choice", "tool", "tool_call_format", "read_only_tools"] {
            assert_eq!(resolve_field(other), other);
        }
        assert!(
            is_narrowing_key("read_only")
                && is_narrowing_key("max_tool_calls")
                && !is_narrowing_key("max_tokens")
        );
        assert!(is_narrowing_key("TOOLS") && !is_narrowing_key("tool"));
        assert!(is_known("description") && !is_known("user"));
    }
}
