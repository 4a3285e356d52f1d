//! `[models.NAME]` in the home file.

use std::collections::BTreeMap;

use belljar_policy::ShownText;
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::schema::SettingsLoader;
use super::sections::is_header;
use super::{ModelKind, ModelSetting};
use crate::agent::list_of;
use crate::toml_read::Item;

const MODEL_KEYS: &[&str] = &[
    "kind",
    "base_url",
    "model",
    "key_env",
    "key_file",
    "max_output_tokens",
    "context_tokens",
    "images",
    "effort",
    "temperature",
    "allow_insecure",
    "headers",
    "max_tokens_field",
    "stream_options",
    "extra_body",
];
/// Fields in which people write a key although it does not belong in this file.
const INLINE_KEYS: &[&str] = &["key", "api_key", "token"];

const KEY_HINT: &str = "keys do not stand in this file: name an environment variable with \
                        `key_env`, or a file with `key_file`";

const EFFORTS: &[&str] = &["low", "medium", "high", "max"];

const MAX_TOKENS_FIELDS: &[&str] = &["max_tokens", "max_completion_tokens"];

/// Parts of a header's name that suggest a key as its value.
const SECRET_HEADERS: &[&str] = &["auth", "cookie", "key", "password", "secret", "token"];

/// The longest value of a header, in bytes.
const MAX_HEADER_VALUE: usize = 1_024;

/// The deepest nesting of `extra_body`; servers accept two or three levels.
const MAX_BODY_DEPTH: usize = 16;

/// Whether a text begins like the address of a web server.
fn is_web(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// Reads `[models.NAME]`.
    pub(super) fn read_models(&mut self, table: &DeTable<'t>) {
        for (name, item, table) in self.named_tables(table, "models") {
            self.no_inline_key(table);
            let mut known = MODEL_KEYS.to_vec();
            known.extend(INLINE_KEYS);
            self.check_keys(table, "a model", MODEL_KEYS, &known);
            let key = self.read_key(item, table, "key_env", "key_file");
            let Some(kind) = self.model_kind(item, table) else { continue };
            let model = self.reader.read_text(table, "model").filter(|model| !model.is_empty());
            let Some(model) = model else {
                self.report_missing(
                    item,
                    "`model`",
                    "write `model = \"...\"`, the provider's name of it",
                );
                continue;
            };
            let effort = self.one_of(table, "effort", EFFORTS);
            let max_tokens_field = self.one_of(table, "max_tokens_field", MAX_TOKENS_FIELDS);
            let temperature = self.reader.read_float(table, "temperature");
            if let (Some(value), Some(item)) = (temperature, table.get("temperature"))
                && !(0.0..=2.0).contains(&value)
            {
                self.reader.report_unfit_value::<()>("temperature", item, "from 0 to 2");
            }
            let base_url = self.reader.read_text(table, "base_url");
            if kind != ModelKind::Scripted && base_url.as_deref().is_some_and(|url| !is_web(url)) {
                // The value is not repeated, because it may contain a password.
                let at = table.get("base_url").map_or(0..0, toml::Spanned::span);
                let message = "`base_url` does not begin with `http://` or `https://`";
                let hint = "write the whole address, as `base_url = \"http://127.0.0.1:8080/v1\"`";
                self.reader.findings.error_hint(
                    self.reader.position_of(at),
                    "bad-value",
                    message,
                    hint,
                );
            }
            let setting = ModelSetting {
                kind,
                base_url,
                model,
                key,
                max_output_tokens: self.reader.read_number(table, "max_output_tokens"),
                context_tokens: self.reader.read_number(table, "context_tokens"),
                images: self.reader.read_boolean(table, "images"),
                effort,
                temperature,
                allow_insecure: self.reader.read_boolean(table, "allow_insecure").unwrap_or(false),
                headers: self.read_headers(table),
                max_tokens_field,
                stream_options: self.reader.read_boolean(table, "stream_options"),
                extra_body: self.extra_body(table),
            };
            self.settings.models.insert(name.to_owned(), setting);
        }
    }

    /// Reports a key written into the file itself.
    fn no_inline_key(&mut self, table: &DeTable<'t>) {
        for word in INLINE_KEYS {
            if let Some((key, _)) = table.get_key_value(*word) {
                let at = self.reader.position_of(key.span());
                let message = format!("`{word}` is not a key of a model");
                self.reader.findings.error_hint(at, "inline-key", message, KEY_HINT);
            }
        }
    }

    /// Reports unknown keys like `TomlReader::report_unknown_keys`, except for `said`, reported earlier.
    fn check_keys(&mut self, table: &DeTable<'t>, what: &str, known: &[&str], said: &[&str]) {
        let unknown = table.keys().any(|key| !said.contains(&key.get_ref().as_ref()));
        if unknown {
            self.reader.report_unknown_keys(table, what, known);
        }
    }

    /// Reads `kind`, the wire protocol.
    fn model_kind(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<ModelKind> {
        const HINT: &str = "write `kind = \"openai\"`, `\"anthropic\"` or `\"scripted\"`";
        let Some(text) = self.reader.read_text(table, "kind") else {
            if table.get("kind").is_none() {
                self.report_missing(item, "`kind`", HINT);
            }
            return None;
        };
        match text.as_str() {
            "openai" => Some(ModelKind::OpenAi),
            "anthropic" => Some(ModelKind::Anthropic),
            "scripted" => Some(ModelKind::Scripted),
            _ => {
                let at = table.get("kind").map_or(0..0, toml::Spanned::span);
                let message = format!("`kind` is `{}`", ShownText::clip_line(&text, 60));
                self.reader.findings.error_hint(
                    self.reader.position_of(at),
                    "bad-value",
                    message,
                    HINT,
                );
                None
            }
        }
    }

    /// Reads a value that must be one of these words.
    fn one_of(&mut self, table: &DeTable<'t>, name: &str, words: &[&str]) -> Option<String> {
        let item = table.get(name)?;
        let text = self.reader.text_of(name, item)?.to_owned();
        if words.contains(&text.as_str()) {
            return Some(text);
        }
        self.reader.report_unfit_value(name, item, &format!("one of {}", list_of(words)))
    }

    /// Reads headers without secrets. A name that suggests a key is refused, because this file is copied,
    /// shown and shared.
    fn read_headers(&mut self, table: &DeTable<'t>) -> BTreeMap<String, String> {
        let mut headers = BTreeMap::new();
        let Some(item) = table.get("headers") else { return headers };
        let Some(entries) = self.reader.read_table("headers", item) else { return headers };
        for (key, item) in entries {
            let name = key.get_ref().as_ref();
            let at = self.reader.position_of(key.span());
            let lower = name.to_ascii_lowercase();
            let shown = ShownText::clip_line(name, 60);
            if !is_header(name) {
                let message = format!("`{shown}` is not the name of a header");
                self.reader.findings.error(at, "bad-value", message);
            } else if SECRET_HEADERS.iter().any(|word| lower.contains(word)) {
                let message = format!("`{shown}` is a header that carries a key");
                self.reader.findings.error_hint(at, "inline-key", message, KEY_HINT);
            } else if let Some(value) = self.reader.text_of(name, item) {
                if value.len() > MAX_HEADER_VALUE || value.contains(char::is_control) {
                    let wants =
                        format!("at most {MAX_HEADER_VALUE} bytes without control characters");
                    self.reader.report_unfit_value::<()>(name, item, &wants);
                } else {
                    headers.insert(name.to_owned(), value.to_owned());
                }
            }
        }
        headers
    }

    /// Reads `extra_body` as JSON.
    fn extra_body(&mut self, table: &DeTable<'t>) -> Map<String, Value> {
        let mut body = Map::new();
        let Some(item) = table.get("extra_body") else { return body };
        let Some(entries) = self.reader.read_table("extra_body", item) else { return body };
        for (key, item) in entries {
            let name = key.get_ref().as_ref();
            if let Some(value) = self.read_json(name, item, MAX_BODY_DEPTH) {
                body.insert(name.to_owned(), value);
            }
        }
        body
    }

    /// Converts a TOML value to JSON; a value without a JSON form is reported.
    fn read_json(&mut self, name: &str, item: &Item<'t>, depth: usize) -> Option<Value> {
        let wants = "a text, number, boolean, list or table, nested no deeper than 16";
        let Some(depth) = depth.checked_sub(1) else {
            return self.reader.report_unfit_value(name, item, wants);
        };
        match item.get_ref() {
            DeValue::String(text) => Some(Value::from(text.as_ref())),
            DeValue::Boolean(value) => Some(Value::from(*value)),
            DeValue::Integer(integer) => {
                let text = integer.as_str().replace('_', "");
                match i64::from_str_radix(&text, integer.radix()) {
                    Ok(number) => Some(Value::from(number)),
                    Err(_) => self.reader.report_unfit_value(name, item, "a number of 64 bits"),
                }
            }
            DeValue::Float(float) => {
                let number = float.as_str().replace('_', "").parse::<f64>().ok();
                match number.and_then(serde_json::Number::from_f64) {
                    Some(number) => Some(Value::Number(number)),
                    None => self.reader.report_unfit_value(name, item, "a finite number"),
                }
            }
            DeValue::Array(items) => {
                let values = items.iter().map(|item| self.read_json(name, item, depth));
                values.collect::<Option<Vec<_>>>().map(Value::Array)
            }
            DeValue::Table(entries) => {
                let field = |(key, item): (_, &Item<'t>)| {
                    let key: &toml::Spanned<toml::de::DeString<'t>> = key;
                    let name = key.get_ref().as_ref();
                    self.read_json(name, item, depth).map(|value| (name.to_owned(), value))
                };
                entries.iter().map(field).collect::<Option<Map<_, _>>>().map(Value::Object)
            }
            DeValue::Datetime(_) => self.reader.report_wrong_kind(name, item, wants),
        }
    }
}
