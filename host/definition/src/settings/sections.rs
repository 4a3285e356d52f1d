//! Reads the sections that only the home file may have, except the models: roles, secrets, tools.

use std::collections::BTreeMap;

use belljar_policy::{HostRule, SecretName, ShownText};
use toml::de::{DeTable, DeValue};

use super::schema::SettingsLoader;
use super::{KeySetting, SecretSetting, SubagentProfile, ToolSetting};
use crate::agent::{FrontmatterShapes, MODEL_ROLES, MissingToolPolicy};
use crate::suggest;
use crate::toml_read::Item;

const AGENTS_KEYS: &[&str] =
    &["lenient", "strict", "overlay", "overlay_bytes", "overlay_files", "profile"];
const ROLE_KEYS: &[&str] = &["model", "profile"];
const SECRET_KEYS: &[&str] = &["host", "header", "prefix", "env", "file"];
const TOOL_KEYS: &[&str] = &["config", "digest"];

impl<'t> SettingsLoader<'_, 't, '_> {
    /// Reads `[agents]`: how agent files are parsed, and which agents run.
    pub(super) fn read_agents(&mut self, table: &DeTable<'t>) {
        let Some(item) = table.get("agents") else { return };
        let Some(agents) = self.reader.read_table("agents", item) else { return };
        self.reader.report_unknown_keys(agents, "`agents`", AGENTS_KEYS);
        if self.reader.read_boolean(agents, "lenient") == Some(true) {
            self.settings.shapes = FrontmatterShapes::Lenient;
        }
        if self.reader.read_boolean(agents, "strict") == Some(true) {
            self.settings.missing_tools = MissingToolPolicy::Blocks;
        }
        match self.reader.read_text(agents, "overlay").as_deref() {
            None | Some("default") => {}
            Some("never") => self.settings.overlays.by_default = false,
            Some(_) => {
                if let Some(item) = agents.get("overlay") {
                    self.reader.report_unfit_value::<()>("overlay", item, "`default` or `never`");
                }
            }
        }
        self.settings.overlays.bytes = self.reader.read_number(agents, "overlay_bytes");
        self.settings.overlays.files = self.reader.read_number(agents, "overlay_files");
        self.settings.profile = self.read_profile(agents);
    }

    /// Reads `profile` of `[agents]` or of a role.
    fn read_profile(&mut self, table: &DeTable<'t>) -> SubagentProfile {
        let Some(item) = table.get("profile") else { return SubagentProfile::Whole };
        match item.get_ref().as_str() {
            Some("small") => SubagentProfile::Small,
            Some("whole") => SubagentProfile::Whole,
            Some(_) | None => {
                self.reader.report_unfit_value::<()>(
                    "profile",
                    item,
                    "`small` or `whole`, which is the default",
                );
                SubagentProfile::Whole
            }
        }
    }

    /// Reads the model of a role: a name, or a table with the name and a profile.
    fn read_role(&mut self, role: &str, item: &Item<'t>) -> Option<String> {
        let Some(table) = item.get_ref().as_table() else {
            return self.reader.text_of(role, item).map(str::to_owned);
        };
        self.reader.report_unknown_keys(table, "a role", ROLE_KEYS);
        if table.get("model").is_none() {
            let hint = format!("write `{role} = {{ model = \"...\", profile = \"small\" }}`");
            self.report_missing(item, "`model`", &hint);
        }
        let model = self.reader.read_text(table, "model")?;
        if self.read_profile(table) == SubagentProfile::Small {
            self.settings.small_models.insert(model.clone());
        }
        Some(model)
    }

    /// Reads where a key or a secret is stored: in the variable under `env`, or in the file under `file`.
    pub(super) fn read_key(
        &mut self,
        item: &Item<'_>,
        table: &DeTable<'t>,
        env: &str,
        file: &str,
    ) -> KeySetting {
        let from_env = self.reader.read_text(table, env);
        let from_file = self.reader.read_text(table, file);
        match (from_env, from_file) {
            (Some(_), Some(_)) => {
                let message = format!("both `{env}` and `{file}` are there");
                let at = self.reader.position_of(item.span());
                self.reader.findings.error_hint(at, "two-sources", message, "keep one");
                KeySetting::None
            }
            (Some(name), None) => KeySetting::Env(name),
            (None, Some(path)) => KeySetting::File(self.home_path(&path)),
            (None, None) => KeySetting::None,
        }
    }

    /// Reads `[roles]`: a model for each role.
    pub(super) fn read_roles(&mut self, table: &DeTable<'t>) {
        let Some(item) = table.get("roles") else { return };
        let Some(roles) = self.reader.read_table("roles", item) else { return };
        self.reader.report_unknown_keys(roles, "`roles`", MODEL_ROLES);
        for role in MODEL_ROLES {
            let Some(item) = roles.get(*role) else { continue };
            let Some(model) = self.read_role(role, item) else { continue };
            let names = table.get("models").and_then(|item| item.get_ref().as_table());
            let names: Vec<&str> = names
                .map(|names| names.keys().map(|key| key.get_ref().as_ref()).collect())
                .unwrap_or_default();
            if !names.contains(&model.as_str()) {
                let at = roles.get(*role).map_or(0..0, toml::Spanned::span);
                let shown = ShownText::clip_line(&model, 60);
                let message =
                    format!("role `{role}` names model `{shown}`, which is not configured");
                let hint = suggest::did_you_mean(&model, names)
                    .unwrap_or_else(|| format!("add a section `[models.{shown}]`"));
                self.reader.findings.error_hint(
                    self.reader.position_of(at),
                    "unknown-model",
                    message,
                    hint,
                );
            }
            self.settings.roles.insert((*role).to_owned(), model);
        }
    }

    /// Reads `[secrets.NAME]`.
    pub(super) fn read_secrets(&mut self, table: &DeTable<'t>) {
        for (name, item, table) in self.named_tables(table, "secrets") {
            self.reader.report_unknown_keys(table, "a secret", SECRET_KEYS);
            let name = match SecretName::new(name) {
                Ok(name) => name,
                Err(error) => {
                    let at = self.reader.position_of(item.span());
                    self.reader.findings.error(at, "bad-name", error.to_string());
                    continue;
                }
            };
            let value = self.read_key(item, table, "env", "file");
            if value == KeySetting::None && table.get("env").is_none() {
                self.report_missing(item, "`env` or `file`", "name where the value comes from");
            }
            let header = self.reader.read_text(table, "header");
            if table.get("header").is_none() {
                self.report_missing(item, "`header`", "name the header that carries it");
            }
            if let (Some(text), Some(item)) = (&header, table.get("header"))
                && !is_header(text)
            {
                self.reader.report_unfit_value::<()>("header", item, "the name of a header");
            }
            let prefix = self.reader.read_text(table, "prefix").unwrap_or_default();
            if let Some(item) = table.get("prefix").filter(|_| prefix.contains(char::is_control)) {
                self.reader.report_unfit_value::<()>("prefix", item, "free of control characters");
            }
            let host = self.secret_host(item, table);
            if let (Some(host), Some(header)) = (host, header) {
                let setting = SecretSetting { host, header, prefix, value };
                self.settings.secrets.insert(name, setting);
            }
        }
    }

    /// Reads the host to which a secret may be sent.
    fn secret_host(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<HostRule> {
        let Some(host) = table.get("host") else {
            self.report_missing(
                item,
                "`host`",
                "write the host it is for: `host = \"https://api.test\"`",
            );
            return None;
        };
        match self.reader.text_of("host", host)?.parse() {
            Ok(rule) => Some(rule),
            Err(error) => {
                let error: belljar_policy::HostRuleError = error;
                self.reader.findings.error(
                    self.reader.position_of(host.span()),
                    "bad-host",
                    error.to_string(),
                );
                None
            }
        }
    }

    /// Reads `[tools.NAME]`.
    pub(super) fn read_tools(&mut self, table: &DeTable<'t>) {
        for (name, item, table) in self.named_tables(table, "tools") {
            self.reader.report_unknown_keys(table, "a tool", TOOL_KEYS);
            let Some(tool) = self.tool_name(name, item) else { continue };
            let digest = self.reader.read_text(table, "digest");
            if let (Some(text), Some(item)) = (&digest, table.get("digest"))
                && !is_digest(text)
            {
                self.reader.report_unfit_value::<()>(
                    "digest",
                    item,
                    "`sha256:` and 64 lower-case hex digits",
                );
            }
            let mut config = BTreeMap::new();
            if let Some(item) = table.get("config")
                && let Some(entries) = self.reader.read_table("config", item)
            {
                for (key, item) in entries {
                    let name = key.get_ref().to_string();
                    let value = match item.get_ref() {
                        DeValue::String(text) => text.to_string(),
                        DeValue::Boolean(value) => value.to_string(),
                        DeValue::Integer(value) => value.to_string(),
                        DeValue::Float(value) => value.as_str().to_owned(),
                        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                            self.reader.report_wrong_kind::<()>(
                                &name,
                                item,
                                "a text, number or boolean",
                            );
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
