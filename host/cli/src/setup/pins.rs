//! The pins in `belljar.toml`: the digest of the component that an installed tool must have.

use belljar_definition::Settings;
use toml_edit::{DocumentMut, Item, Table, Value};

/// The digest to which the settings pin the tool in the directory `name`, as `sha256:` and hexadecimal
/// digits.
pub(crate) fn pinned_digest<'s>(settings: &'s Settings, name: &str) -> Option<&'s str> {
    settings.tools.get(name)?.digest.as_deref()
}

/// The text of `belljar.toml` with the tool pinned to this digest. `None` = the text does not parse.
pub(crate) fn with_digest(text: &str, name: &str, digest: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let tools = document.entry("tools").or_insert(Item::Table(implicit)).as_table_like_mut()?;
    if !tools.contains_key(name) {
        tools.insert(name, Item::Table(Table::new()));
    }
    let section = tools.get_mut(name)?.as_table_like_mut()?;
    if section.get("digest").and_then(Item::as_str) != Some(digest) {
        section.insert("digest", Item::Value(Value::from(digest)));
    }
    Some(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_added_once_and_keeps_the_rest() {
        let text = "# mine\n[tools.word_count] # note\nconfig = { a = \"b\" }\n";
        let once = with_digest(text, "word_count", "sha256:00").unwrap();
        assert!(once.contains("# mine") && once.contains("# note") && once.contains("a = \"b\""));
        assert!(once.contains("digest = \"sha256:00\""));
        assert_eq!(with_digest(&once, "word_count", "sha256:00").unwrap(), once);
    }
}
