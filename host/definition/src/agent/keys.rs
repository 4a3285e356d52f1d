//! The names of fields, of every program whose files are read.

use crate::dialect::{CANONICAL_ONLY, CANONICAL_SHARED};

/// Fields that other programs read and that mean nothing here, for display or for rights
/// that belljar does not take from a file.
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

/// Fields whose meaning would be a right or an effect: said aloud, never honoured.
pub(super) const NOT_HONOURED: &[&str] =
    &["hooks", "mcpServers", "mcp-servers", "permissionMode", "skills", "handoffs"];

/// Fields by which an author takes something away from an agent, as each is spelt where it is
/// read. The list decides what a reader of broken YAML may not lose.
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

/// Spellings of the fields with several words that mean the same: `allowed-tools` is
/// `allowedTools`. To read one more of them can only take away.
const SPELT_FREELY: &[&str] =
    &["tools", "allowedTools", "disallowedTools", "permission", "permissions"];

/// The field that a key stands for: itself, but for other spellings of a field that narrows.
pub(super) fn meant(key: &str) -> &str {
    let flat = |text: &str| -> String {
        text.chars()
            .filter(|c| !matches!(c, '_' | '-' | ' '))
            .flat_map(char::to_lowercase)
            .collect()
    };
    // Names are short; a long key is nobody's field.
    if key.len() > 40 || SPELT_FREELY.contains(&key) {
        return key;
    }
    let plain = flat(key);
    SPELT_FREELY.iter().find(|field| flat(field) == plain).copied().unwrap_or(key)
}

/// Whether a key takes something away, in any spelling.
pub(super) fn narrows(key: &str) -> bool {
    NARROWING.contains(&meant(key))
}

/// Whether a key is a field of any program's agent files.
pub(super) fn is_known(key: &str) -> bool {
    let tables = [CANONICAL_SHARED, CANONICAL_ONLY, NARROWING, IGNORED, NOT_HONOURED];
    tables.iter().any(|table| table.contains(&meant(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_spellings_of_a_field_that_narrows_are_that_field() {
        assert_eq!(meant("Tools"), "tools");
        assert_eq!(meant("allowed-tools"), "allowedTools");
        assert_eq!(meant("disallowed_tools"), "disallowedTools");
        assert_eq!(meant("name"), "name");
        assert_eq!(meant("Name"), "Name");
        assert!(narrows("TOOLS") && !narrows("tool"));
        assert!(is_known("description") && !is_known("user"));
    }
}
