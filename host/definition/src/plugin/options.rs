//! `userConfig` and `settings`: what a plugin asks a person for.

use serde_json::{Map, Value};

use super::fields::{MAX_ITEMS, ManifestFields};

/// A setting that a plugin asks a person for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigOption {
    /// The key, for `${user_config.KEY}`.
    pub key: String,
    /// The type: `string`, `number`, `boolean`, `directory` or `file`.
    pub kind: String,
    /// The title or description, for a person; may be empty.
    pub title: String,
    /// Whether the value is a secret.
    pub sensitive: bool,
    /// Whether the plugin does not work without it.
    pub required: bool,
}

/// The types that Claude Code knows.
const KINDS: &[&str] = &["string", "number", "boolean", "directory", "file"];

/// Reads `userConfig` of Claude Code, and `settings` of Gemini, a list.
pub(super) fn read_options(fields: &mut ManifestFields<'_, '_>) -> Vec<ConfigOption> {
    let mut options = Vec::new();
    if let Some(map) = fields.take_object("userConfig") {
        for (key, value) in map.into_iter().take(MAX_ITEMS) {
            let Value::Object(stated) = &value else {
                fields.report_type("userConfig", &value, "an object for each key");
                continue;
            };
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if key.is_empty() || key.len() > 64 || !key.chars().all(is_word) {
                let message = "`userConfig` has a key that is no identifier".to_owned();
                fields.error("userConfig", "bad-option", message);
                continue;
            }
            let option = read_option(key, stated, "description");
            if !KINDS.contains(&option.kind.as_str()) {
                let message = format!("`userConfig`: the type of `{}` is unknown", option.key);
                fields.error("userConfig", "bad-option", message);
                continue;
            }
            options.push(option);
        }
    }
    // Gemini's list has the same name as a file of Claude Code's.
    if matches!(fields.peek("settings"), Some(Value::Array(items)) if items.iter().all(Value::is_object))
    {
        let Some(Value::Array(items)) = fields.take("settings") else { return options };
        for item in items.into_iter().take(MAX_ITEMS) {
            let Value::Object(stated) = &item else { continue };
            let Some(key) = stated.get("envVar").and_then(Value::as_str) else { continue };
            options.push(read_option(key.to_owned(), stated, "name"));
        }
    }
    options
}

fn read_option(key: String, stated: &Map<String, Value>, otherwise: &str) -> ConfigOption {
    let text = |key: &str| stated.get(key).and_then(Value::as_str).map(str::to_owned);
    let flag = |key: &str| stated.get(key).and_then(Value::as_bool).unwrap_or_default();
    ConfigOption {
        key,
        kind: text("type").unwrap_or_else(|| "string".to_owned()),
        title: text("title").or_else(|| text(otherwise)).unwrap_or_default(),
        sensitive: flag("sensitive"),
        required: flag("required"),
    }
}
