//! Agent Plugins 1.0.0: a closed manifest. An unknown key is reported and ignored; anything else that is
//! wrong rejects the plugin.

use serde_json::{Map, Value};

use super::fields::{ManifestFields, name_type};
use super::format::{AGENT_PLUGINS_SCHEMA, PluginFormat};
use super::manifest::{MAX_NAME, PluginManifest};

/// Reads the manifest.
pub(super) fn read_manifest(mut fields: ManifestFields<'_, '_>) -> Option<PluginManifest> {
    let schema = fields.take_text("$schema");
    if schema.as_deref() != Some(AGENT_PLUGINS_SCHEMA) {
        let message = format!("`$schema` is not `{AGENT_PLUGINS_SCHEMA}`");
        fields.error("$schema", "bad-schema", message);
    }
    let name = fields.take_text("name").unwrap_or_default();
    if !is_name(&name) {
        let message = "`name` is not 1 to 64 of `a-z`, `0-9`, `.` and `-`, with a letter or digit at \
                       its end, without `--` or `..`";
        fields.error("name", "bad-name", message.to_owned());
        return None;
    }
    let mut manifest = PluginManifest::named(&name, PluginFormat::AgentPlugins, fields.findings)?;
    manifest.version = fields.take_text("version");
    manifest.description = fields.take_text("description").unwrap_or_default();
    manifest.license = fields.take_text("license");
    manifest.keywords = fields.take_texts("keywords");
    for key in ["homepage", "repository"] {
        fields.take_text(key);
    }
    if let Some(author) = fields.take_object("author") {
        manifest.author = read_author(&author, &mut fields);
    }
    if let Some(extensions) = fields.take_object("extensions") {
        report_extensions(&extensions, &mut fields);
    }
    manifest.unknown_keys = fields.unread_keys();
    for key in manifest.unknown_keys.clone() {
        let message = format!("`{key}` is no key of Agent Plugins 1.0.0, and is ignored");
        fields.warning(&key, "unknown-key", message);
    }
    Some(manifest.with_default_places(&PluginFormat::AgentPlugins))
}

fn is_name(name: &str) -> bool {
    let is_kept = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-');
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=MAX_NAME).contains(&name.len())
        && name.chars().all(is_kept)
        && name.ends_with(is_end)
        && !name.contains("--")
        && !name.contains("..")
}

/// The author's name. A key besides `name`, `email` and `url`, or one that is no text, is an error.
fn read_author(author: &Map<String, Value>, fields: &mut ManifestFields<'_, '_>) -> Option<String> {
    for (key, value) in author {
        if !matches!(key.as_str(), "name" | "email" | "url") {
            let message = "`author` has a key besides `name`, `email` and `url`".to_owned();
            fields.error("author", "unknown-key", message);
        } else if !value.is_string() {
            let message = format!("`author.{key}` is {}, not a text", name_type(value));
            fields.error("author", "bad-type", message);
        }
    }
    author.get("name").and_then(Value::as_str).map(str::to_owned)
}

fn report_extensions(extensions: &Map<String, Value>, fields: &mut ManifestFields<'_, '_>) {
    for value in extensions.values().filter(|value| !value.is_object()) {
        let message = format!("`extensions` has {}, which is ignored", name_type(value));
        fields.warning("extensions", "bad-extension", message);
    }
}
