//! The sections that only the home file may hold: models, roles, secrets, tools.

use std::collections::BTreeMap;

use belljar_policy::{HostRule, SecretName, Shown};
use toml::de::{DeTable, DeValue};

use super::schema::Loader;
use super::{KeySetting, ModelKind, ModelSetting, SecretSetting, ToolSetting};
use crate::agent::MODEL_ROLES;
use crate::suggest;
use crate::toml_read::Item;

const MODEL_KEYS: &[&str] = &[
    "kind",
    "base_url",
    "model",
    "key_env",
    "key_file",
    "max_output_tokens",
    "effort",
    "temperature",
    "allow_insecure",
];
const SECRET_KEYS: &[&str] = &["host", "header", "prefix", "env", "file"];
const TOOL_KEYS: &[&str] = &["config", "digest"];
const EFFORTS: &[&str] = &["low", "medium", "high", "max"];

impl<'t> Loader<'_, 't, '_> {
    pub(super) fn models(&mut self, table: &DeTable<'t>) {
        for (name, item, table) in self.each(table, "models") {
            for word in ["key", "api_key", "token"] {
                if let Some((key, _)) = table.get_key_value(word) {
                    let at = self.reader.at(key.span());
                    let message = format!("`{word}` is not a key of a model");
                    let hint = "keys do not stand in this file: name an environment variable with \
                                `key_env`, or a file with `key_file`";
                    self.reader.findings.error_hint(at, "inline-key", message, hint);
                }
            }
            let mut known = MODEL_KEYS.to_vec();
            known.extend(["key", "api_key", "token"]);
            self.only(table, "a model", MODEL_KEYS, &known);
            let key = self.key(item, table, "key_env", "key_file");
            let Some(kind) = self.model_kind(item, table) else { continue };
            let model = self.reader.text(table, "model").filter(|model| !model.is_empty());
            let Some(model) = model else {
                self.missing(item, "`model`", "write `model = \"...\"`, the provider's name of it");
                continue;
            };
            let effort = self.reader.text(table, "effort");
            if let (Some(effort), Some(item)) = (&effort, table.get("effort"))
                && !EFFORTS.contains(&effort.as_str())
            {
                self.reader.unfit::<()>("effort", item, "one of `low`, `medium`, `high`, `max`");
            }
            let temperature = self.reader.float(table, "temperature");
            if let (Some(value), Some(item)) = (temperature, table.get("temperature"))
                && !(0.0..=2.0).contains(&value)
            {
                self.reader.unfit::<()>("temperature", item, "from 0 to 2");
            }
            let setting = ModelSetting {
                kind,
                base_url: self.reader.text(table, "base_url"),
                model,
                key,
                max_output_tokens: self.reader.number(table, "max_output_tokens"),
                effort,
                temperature,
                allow_insecure: self.reader.boolean(table, "allow_insecure").unwrap_or(false),
            };
            self.settings.models.insert(name.to_owned(), setting);
        }
    }

    /// As [`Reader::only`]; `said` are keys that were reported already.
    fn only(&mut self, table: &DeTable<'t>, what: &str, known: &[&str], said: &[&str]) {
        let unknown = table.keys().any(|key| !said.contains(&key.get_ref().as_ref()));
        if unknown {
            self.reader.only(table, what, known);
        }
    }

    fn model_kind(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<ModelKind> {
        const HINT: &str = "write `kind = \"openai\"`, `\"anthropic\"` or `\"scripted\"`";
        let Some(text) = self.reader.text(table, "kind") else {
            if table.get("kind").is_none() {
                self.missing(item, "`kind`", HINT);
            }
            return None;
        };
        match text.as_str() {
            "openai" => Some(ModelKind::OpenAi),
            "anthropic" => Some(ModelKind::Anthropic),
            "scripted" => Some(ModelKind::Scripted),
            _ => {
                let at = table.get("kind").map_or(0..0, toml::Spanned::span);
                let message = format!("`kind` is `{}`", Shown::clipped(&text, 60));
                self.reader.findings.error_hint(self.reader.at(at), "bad-value", message, HINT);
                None
            }
        }
    }

    fn key(&mut self, item: &Item<'_>, table: &DeTable<'t>, env: &str, file: &str) -> KeySetting {
        let from_env = self.reader.text(table, env);
        let from_file = self.reader.text(table, file);
        match (from_env, from_file) {
            (Some(_), Some(_)) => {
                let message = format!("both `{env}` and `{file}` are there");
                let at = self.reader.at(item.span());
                self.reader.findings.error_hint(at, "two-sources", message, "keep one");
                KeySetting::None
            }
            (Some(name), None) => KeySetting::Env(name),
            (None, Some(path)) => KeySetting::File(self.home_path(&path)),
            (None, None) => KeySetting::None,
        }
    }

    pub(super) fn roles(&mut self, table: &DeTable<'t>) {
        let Some(item) = table.get("roles") else { return };
        let Some(roles) = self.reader.table("roles", item) else { return };
        self.reader.only(roles, "`roles`", MODEL_ROLES);
        for role in MODEL_ROLES {
            let Some(model) = self.reader.text(roles, role) else { continue };
            let names = table.get("models").and_then(|item| item.get_ref().as_table());
            let names: Vec<&str> = names
                .map(|names| names.keys().map(|key| key.get_ref().as_ref()).collect())
                .unwrap_or_default();
            if !names.contains(&model.as_str()) {
                let at = roles.get(*role).map_or(0..0, toml::Spanned::span);
                let shown = Shown::clipped(&model, 60);
                let message =
                    format!("role `{role}` names model `{shown}`, which is not configured");
                let hint = suggest::did_you_mean(&model, names)
                    .unwrap_or_else(|| format!("add a section `[models.{shown}]`"));
                self.reader.findings.error_hint(self.reader.at(at), "unknown-model", message, hint);
            }
            self.settings.roles.insert((*role).to_owned(), model);
        }
    }

    pub(super) fn secrets(&mut self, table: &DeTable<'t>) {
        for (name, item, table) in self.each(table, "secrets") {
            self.reader.only(table, "a secret", SECRET_KEYS);
            let name = match SecretName::new(name) {
                Ok(name) => name,
                Err(error) => {
                    let at = self.reader.at(item.span());
                    self.reader.findings.error(at, "bad-name", error.to_string());
                    continue;
                }
            };
            let value = self.key(item, table, "env", "file");
            if value == KeySetting::None && table.get("env").is_none() {
                self.missing(item, "`env` or `file`", "name where the value comes from");
            }
            let header = self.reader.text(table, "header");
            if table.get("header").is_none() {
                self.missing(item, "`header`", "name the header that carries it");
            }
            if let (Some(text), Some(item)) = (&header, table.get("header"))
                && !is_header(text)
            {
                self.reader.unfit::<()>("header", item, "the name of a header");
            }
            let prefix = self.reader.text(table, "prefix").unwrap_or_default();
            if let Some(item) = table.get("prefix").filter(|_| prefix.contains(char::is_control)) {
                self.reader.unfit::<()>("prefix", item, "free of control characters");
            }
            let host = self.secret_host(item, table);
            if let (Some(host), Some(header)) = (host, header) {
                let setting = SecretSetting { host, header, prefix, value };
                self.settings.secrets.insert(name, setting);
            }
        }
    }

    fn secret_host(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<HostRule> {
        let Some(host) = table.get("host") else {
            self.missing(item, "`host`", "write the host it is for: `host = \"https://api.test\"`");
            return None;
        };
        match self.reader.text_of("host", host)?.parse() {
            Ok(rule) => Some(rule),
            Err(error) => {
                let error: belljar_policy::HostRuleError = error;
                self.reader.findings.error(
                    self.reader.at(host.span()),
                    "bad-host",
                    error.to_string(),
                );
                None
            }
        }
    }

    pub(super) fn tools(&mut self, table: &DeTable<'t>) {
        for (name, item, table) in self.each(table, "tools") {
            self.reader.only(table, "a tool", TOOL_KEYS);
            let Some(tool) = self.tool_name(name, item) else { continue };
            let digest = self.reader.text(table, "digest");
            if let (Some(text), Some(item)) = (&digest, table.get("digest"))
                && !is_digest(text)
            {
                self.reader.unfit::<()>("digest", item, "`sha256:` and 64 lower-case hex digits");
            }
            let mut config = BTreeMap::new();
            if let Some(item) = table.get("config")
                && let Some(entries) = self.reader.table("config", item)
            {
                for (key, item) in entries {
                    let name = key.get_ref().to_string();
                    let value = match item.get_ref() {
                        DeValue::String(text) => text.to_string(),
                        DeValue::Boolean(value) => value.to_string(),
                        DeValue::Integer(value) => value.to_string(),
                        DeValue::Float(value) => value.as_str().to_owned(),
                        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                            self.reader.wrong::<()>(&name, item, "a text, number or boolean");
                            continue;
                        }
                    };
                    config.insert(name, value);
                }
            }
            self.settings.tools.insert(tool, ToolSetting { config, digest });
        }
    }
}

fn is_header(text: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.len() <= 100 && text.bytes().all(token)
}

pub(super) fn is_digest(text: &str) -> bool {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.strip_prefix("sha256:").is_some_and(|rest| rest.len() == 64 && rest.bytes().all(hex))
}
