//! Reads the sections that only the home file may have, except the models: roles, secrets, tools.

use std::collections::BTreeMap;

use belljar_policy::{HostRule, SecretName, Shown};
use toml::de::{DeTable, DeValue};

use super::schema::Loader;
use super::{KeySetting, Profile, SecretSetting, ToolSetting};
use crate::agent::{MODEL_ROLES, Missing, Shapes};
use crate::suggest;
use crate::toml_read::Item;

const AGENTS_KEYS: &[&str] =
    &["lenient", "strict", "overlay", "overlay_bytes", "overlay_files", "profile"];
const ROLE_KEYS: &[&str] = &["model", "profile"];
const SECRET_KEYS: &[&str] = &["host", "header", "prefix", "env", "file"];
const TOOL_KEYS: &[&str] = &["config", "digest"];

impl<'t> Loader<'_, 't, '_> {
    /// Reads `[agents]`: how agent files are parsed, and which agents run.
    pub(super) fn agents(&mut self, table: &DeTable<'t>) {
        let Some(item) = table.get("agents") else { return };
        let Some(agents) = self.reader.table("agents", item) else { return };
        self.reader.only(agents, "`agents`", AGENTS_KEYS);
        if self.reader.boolean(agents, "lenient") == Some(true) {
            self.settings.shapes = Shapes::Lenient;
        }
        if self.reader.boolean(agents, "strict") == Some(true) {
            self.settings.missing_tools = Missing::Blocks;
        }
        match self.reader.text(agents, "overlay").as_deref() {
            None | Some("default") => {}
            Some("never") => self.settings.overlays.by_default = false,
            Some(_) => {
                if let Some(item) = agents.get("overlay") {
                    self.reader.unfit::<()>("overlay", item, "`default` or `never`");
                }
            }
        }
        self.settings.overlays.bytes = self.reader.number(agents, "overlay_bytes");
        self.settings.overlays.files = self.reader.number(agents, "overlay_files");
        self.settings.profile = self.profile(agents);
    }

    /// Reads `profile` of `[agents]` or of a role.
    fn profile(&mut self, table: &DeTable<'t>) -> Profile {
        let Some(item) = table.get("profile") else { return Profile::Whole };
        match item.get_ref().as_str() {
            Some("small") => Profile::Small,
            Some("whole") => Profile::Whole,
            Some(_) | None => {
                self.reader.unfit::<()>(
                    "profile",
                    item,
                    "`small` or `whole`, which is the default",
                );
                Profile::Whole
            }
        }
    }

    /// Reads the model of a role: a name, or a table with the name and a profile.
    fn role(&mut self, role: &str, item: &Item<'t>) -> Option<String> {
        let Some(table) = item.get_ref().as_table() else {
            return self.reader.text_of(role, item).map(str::to_owned);
        };
        self.reader.only(table, "a role", ROLE_KEYS);
        if table.get("model").is_none() {
            let hint = format!("write `{role} = {{ model = \"...\", profile = \"small\" }}`");
            self.missing(item, "`model`", &hint);
        }
        let model = self.reader.text(table, "model")?;
        if self.profile(table) == Profile::Small {
            self.settings.small_models.insert(model.clone());
        }
        Some(model)
    }

    pub(super) fn key(
        &mut self,
        item: &Item<'_>,
        table: &DeTable<'t>,
        env: &str,
        file: &str,
    ) -> KeySetting {
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
            let Some(item) = roles.get(*role) else { continue };
            let Some(model) = self.role(role, item) else { continue };
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

pub(super) fn is_header(text: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.len() <= 100 && text.bytes().all(token)
}

pub(super) fn is_digest(text: &str) -> bool {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.strip_prefix("sha256:").is_some_and(|rest| rest.len() == 64 && rest.bytes().all(hex))
}
