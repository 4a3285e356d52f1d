//! The keys of `belljar.toml` and how each is read.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use belljar_policy::{GuestPath, HostRule, Permission, SecretName, Shown, ToolName, WORKSPACE};
use toml::de::{DeTable, DeValue};

use super::{
    GrantSpec, KeySetting, Layer, ModelKind, ModelSetting, MountSpec, NamedTool, SecretSetting,
    Settings, ToolSetting,
};
use crate::agent::{MODEL_ROLES, list_of, parse_access};
use crate::diagnostic::{Diagnostic, Severity};
use crate::suggest;
use crate::toml_read::{Item, Reader};
use crate::{AgentId, Slug, Visibility};

/// The sections of the home file.
const HOME_KEYS: &[&str] =
    &["project_override", "models", "roles", "secrets", "tools", "defaults", "grants"];

/// The sections of a workspace's file.
const WORKSPACE_KEYS: &[&str] = &["defaults", "grants"];

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
const GRANT_KEYS: &[&str] = &["tools", "mounts", "hosts", "secrets", "limits"];
const MOUNT_KEYS: &[&str] = &["path", "host", "access"];
const EFFORTS: &[&str] = &["low", "medium", "high", "max"];

/// Which file is read.
#[derive(Clone, Copy)]
enum File<'a> {
    Home { home_dir: Option<&'a Path> },
    Workspace,
}

/// A file being read into `Settings`.
struct Loader<'s, 't, 'p> {
    settings: &'s mut Settings,
    reader: Reader<'t, 'p>,
    path: &'p Path,
    file: File<'s>,
}

pub(super) fn read_home(
    settings: &mut Settings,
    path: &Path,
    text: &str,
    home_dir: Option<&Path>,
) -> Vec<Diagnostic> {
    let (mut reader, root) = match Reader::open(path, text) {
        Ok(open) => open,
        Err(problems) => return problems,
    };
    let table = root.get_ref();
    reader.only(table, "`belljar.toml`", HOME_KEYS);
    let mut loader = Loader { settings, reader, path, file: File::Home { home_dir } };
    if let Some(value) = loader.reader.boolean(table, "project_override") {
        loader.settings.project_override = value;
    }
    loader.models(table);
    loader.roles(table);
    loader.secrets(table);
    loader.tools(table);
    let layer = loader.layer(table);
    loader.check_secrets(&layer);
    loader.settings.home = layer;
    loader.finish()
}

pub(super) fn read_workspace(settings: &mut Settings, path: &Path, text: &str) -> Vec<Diagnostic> {
    let (mut reader, root) = match Reader::open(path, text) {
        Ok(open) => open,
        Err(problems) => return problems,
    };
    let table = root.get_ref();
    for key in table.keys() {
        let name = key.get_ref().as_ref();
        let at = reader.at(key.span());
        if HOME_KEYS.contains(&name) && !WORKSPACE_KEYS.contains(&name) {
            let message = format!("`{name}` has no place in a workspace's `belljar.toml`");
            let hint = "a workspace can only narrow: move it to `belljar.toml` at home";
            reader.findings.error_hint(at, "not-here", message, hint);
        } else if !WORKSPACE_KEYS.contains(&name) {
            let shown = Shown::clipped(name, 60);
            let message = format!("`{shown}` is not a key of a workspace's `belljar.toml`");
            let hint = suggest::did_you_mean(name, WORKSPACE_KEYS.iter().copied())
                .unwrap_or_else(|| format!("the keys are {}", list_of(WORKSPACE_KEYS)));
            reader.findings.error_hint(at, "unknown-key", message, hint);
        }
    }
    let mut loader = Loader { settings, reader, path, file: File::Workspace };
    let layer = loader.layer(table);
    loader.settings.workspace = layer;
    loader.finish()
}

impl<'t> Loader<'_, 't, '_> {
    /// The errors; warnings go to the settings.
    fn finish(self) -> Vec<Diagnostic> {
        let (errors, warnings) = self
            .reader
            .findings
            .finish()
            .into_iter()
            .partition::<Vec<_>, _>(|found| found.severity == Severity::Error);
        self.settings.warnings.extend(warnings);
        errors
    }

    /// The named tables of a section.
    fn each<'a>(
        &mut self,
        table: &'a DeTable<'t>,
        section: &str,
    ) -> Vec<(&'a str, &'a Item<'t>, &'a DeTable<'t>)> {
        let Some(item) = table.get(section) else { return Vec::new() };
        let Some(entries) = self.reader.table(section, item) else { return Vec::new() };
        let mut tables = Vec::new();
        for (key, item) in entries {
            let name = key.get_ref().as_ref();
            if let Some(table) = self.reader.table(name, item) {
                tables.push((name, item, table));
            }
        }
        tables
    }

    fn missing(&mut self, item: &Item<'_>, what: &str, hint: &str) {
        let at = self.reader.at(item.span());
        self.reader.findings.error_hint(at, "missing-key", format!("{what} is missing"), hint);
    }

    fn models(&mut self, table: &DeTable<'t>) {
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

    fn roles(&mut self, table: &DeTable<'t>) {
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

    fn secrets(&mut self, table: &DeTable<'t>) {
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

    fn tools(&mut self, table: &DeTable<'t>) {
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

    fn layer(&mut self, table: &DeTable<'t>) -> Layer {
        let mut layer = Layer::default();
        for (name, item, table) in self.each(table, "defaults") {
            let spec = self.grant(table);
            match Visibility::ALL.into_iter().find(|known| known.as_str() == name) {
                Some(visibility) => {
                    layer.defaults.insert(visibility, spec);
                }
                None => {
                    let message = format!("`{}` is not a visibility", Shown::clipped(name, 60));
                    let hint = "write `[defaults.user-facing]` or `[defaults.internal]`";
                    let at = self.reader.at(item.span());
                    self.reader.findings.error_hint(at, "unknown-key", message, hint);
                }
            }
        }
        for (name, item, table) in self.each(table, "grants") {
            let spec = self.grant(table);
            if let (File::Workspace, Some(slug)) = (self.file, name.strip_prefix("workspace/"))
                && let Ok(slug) = Slug::try_from(slug.to_owned())
            {
                layer.own.insert(slug, spec);
                continue;
            }
            let at = self.reader.at(item.span());
            match name.parse::<AgentId>() {
                Ok(id) => {
                    if layer.grants.insert(id.clone(), spec).is_some() {
                        let message = format!("`{id}` has two sections");
                        let hint = "a bare name means `home/`; keep one of them";
                        self.reader.findings.error_hint(at, "duplicate-grant", message, hint);
                    }
                }
                Err(error) => self.reader.findings.error(at, "bad-identity", error.to_string()),
            }
        }
        layer
    }

    fn grant(&mut self, table: &DeTable<'t>) -> GrantSpec {
        self.reader.only(table, "a grant", GRANT_KEYS);
        let mut spec = GrantSpec::default();
        if let Some(item) = table.get("tools") {
            spec.tools = Some(self.grant_tools(item));
        }
        if let Some(item) = table.get("mounts") {
            spec.mounts = Some(self.mounts(item));
        }
        if let Some(item) = table.get("hosts") {
            spec.hosts = Some(self.reader.parsed("hosts", item).unwrap_or_default());
        }
        if let Some(item) = table.get("secrets") {
            spec.secrets = Some(self.reader.names("secrets", item).unwrap_or_default());
        }
        if let Some(item) = table.get("limits") {
            spec.limits = self.reader.limits("limits", item);
        }
        spec
    }

    /// A list allows each; a table says `allow`, `ask` or `deny` of each.
    fn grant_tools(&mut self, item: &Item<'t>) -> BTreeMap<ToolName, Permission> {
        let mut tools = BTreeMap::new();
        if let Some(table) = item.get_ref().as_table() {
            for (key, item) in table {
                let name = key.get_ref().as_ref();
                let Some(tool) = self.tool_name(name, item) else { continue };
                let word = match item.get_ref().as_str() {
                    Some("allow") => Permission::Allow,
                    Some("ask") => Permission::Ask,
                    Some("deny") => Permission::Deny,
                    Some(_) | None => {
                        self.reader.unfit::<()>(name, item, "one of `allow`, `ask`, `deny`");
                        continue;
                    }
                };
                self.name_tool(&tool, item);
                tools.insert(tool, word);
            }
            return tools;
        }
        for item in self.reader.list("tools", item).unwrap_or_default() {
            let Some(text) = self.reader.text_of("tools", item) else { continue };
            let Some(tool) = self.tool_name(text, item) else { continue };
            self.name_tool(&tool, item);
            tools.insert(tool, Permission::Allow);
        }
        tools
    }

    fn tool_name(&mut self, name: &str, item: &Item<'_>) -> Option<ToolName> {
        match ToolName::new(name) {
            Ok(tool) => Some(tool),
            Err(error) => {
                let at = self.reader.at(item.span());
                self.reader.findings.error(at, "bad-name", error.to_string());
                None
            }
        }
    }

    fn name_tool(&mut self, tool: &ToolName, item: &Item<'_>) {
        let at = self.reader.at(item.span());
        let path = self.path.to_path_buf();
        self.settings.named_tools.push(NamedTool { tool: tool.clone(), path, at });
    }

    fn mounts(&mut self, item: &Item<'t>) -> Vec<MountSpec> {
        let mut mounts: Vec<MountSpec> = Vec::new();
        for item in self.reader.list("mounts", item).unwrap_or_default() {
            let Some(table) = self.reader.table("mounts", item) else { continue };
            self.reader.only(table, "a mount", MOUNT_KEYS);
            let Some(mount) = self.mount(item, table) else { continue };
            if mounts.iter().any(|other| other.guest == mount.guest) {
                let message = format!("`{}` is mounted twice", mount.guest);
                let at = self.reader.at(item.span());
                self.reader.findings.error_hint(at, "duplicate-mount", message, "keep one of them");
                continue;
            }
            if let Some(outer) = mounts.iter().find(|other| is_undone_by(&mount, other)) {
                self.nested(item, &mount, &outer.guest);
            }
            if let Some(inner) = mounts.iter().find(|other| is_undone_by(other, &mount)) {
                self.nested(item, inner, &mount.guest);
            }
            mounts.push(mount);
        }
        mounts
    }

    fn nested(&mut self, item: &Item<'_>, inner: &MountSpec, outer: &GuestPath) {
        let message = format!("`{}` gives less than `{outer}`, in which it lies", inner.guest);
        let hint = format!(
            "what `{outer}` gives holds below it too: give `{outer}` `read`, and what may be \
             written a mount of its own"
        );
        let at = self.reader.at(item.span());
        self.reader.findings.error_hint(at, "nested-mount", message, hint);
    }

    fn mount(&mut self, item: &Item<'t>, table: &DeTable<'t>) -> Option<MountSpec> {
        let Some(path) = table.get("path") else {
            self.missing(item, "`path`", "write where the guest sees it: `path = \"/workspace\"`");
            return None;
        };
        let guest = match GuestPath::new(self.reader.text_of("path", path)?) {
            Ok(guest) => guest,
            Err(error) => {
                let at = self.reader.at(path.span());
                self.reader.findings.error(at, "bad-path", error.to_string());
                return None;
            }
        };
        let Some(access) = table.get("access") else {
            self.missing(item, "`access`", "write `access = \"read\"` or `\"read-write\"`");
            return None;
        };
        let Some(access) = parse_access(self.reader.text_of("access", access)?) else {
            return self.reader.unfit("access", access, "`read` or `read-write`");
        };
        let host = match (self.file, table.get("host")) {
            (File::Workspace, None) => None,
            (File::Workspace, Some(host)) => {
                let message = "`host` has no place in a workspace's `belljar.toml`";
                let hint = "remove it: the home file says which directory is mounted";
                let at = self.reader.at(host.span());
                self.reader.findings.error_hint(at, "host-path", message, hint);
                return None;
            }
            (File::Home { .. }, Some(host)) => {
                let text = self.reader.text_of("host", host)?;
                Some(self.host_path(&guest, host, text)?)
            }
            (File::Home { .. }, None) if guest.as_str() == WORKSPACE => None,
            (File::Home { .. }, None) => {
                let hint = "write the directory: `host = \"/srv/data\"`; only `/workspace` has one \
                            by itself";
                self.missing(item, "`host`", hint);
                return None;
            }
        };
        Some(MountSpec { guest, host, access })
    }

    /// A directory of the host: absolute, below `~`, or, for the workspace's mount, below the
    /// workspace.
    fn host_path(&mut self, guest: &GuestPath, item: &Item<'_>, text: &str) -> Option<PathBuf> {
        let path = self.home_path(text);
        let inside =
            path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let below = guest.as_str() == WORKSPACE && inside && !text.starts_with('~');
        if path.is_absolute() || below {
            return Some(path);
        }
        let message = format!("`host` is `{}`, not an absolute path", Shown::clipped(text, 200));
        let hint = "write an absolute path, `~/...`, or for `/workspace` a directory in it";
        let at = self.reader.at(item.span());
        self.reader.findings.error_hint(at, "host-path", message, hint);
        None
    }

    /// The path with `~` replaced where the home directory is known.
    fn home_path(&self, text: &str) -> PathBuf {
        let File::Home { home_dir: Some(home) } = self.file else { return PathBuf::from(text) };
        match text.strip_prefix('~') {
            Some("") => home.to_path_buf(),
            Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            Some(_) | None => PathBuf::from(text),
        }
    }

    /// A secret that is granted and not defined does nothing: most likely a slip of the pen.
    fn check_secrets(&mut self, layer: &Layer) {
        let specs = layer.defaults.values().chain(layer.grants.values());
        for name in specs.flat_map(|spec| spec.secrets.iter().flatten()) {
            if !self.settings.secrets.contains_key(name) {
                let message = format!("secret `{name}` is granted and not defined");
                let known = self.settings.secrets.keys().map(SecretName::as_str);
                let hint = suggest::did_you_mean(name.as_str(), known)
                    .unwrap_or_else(|| format!("add a section `[secrets.{name}]`"));
                let at = crate::diagnostic::Place::default();
                self.reader.findings.warning(at, "unknown-secret", message, Some(hint));
            }
        }
    }
}

/// Whether the outer mount gives what the inner one was written to withhold. A mount is a
/// directory that a guest holds, with everything below it: a smaller one inside takes nothing
/// away.
fn is_undone_by(inner: &MountSpec, outer: &MountSpec) -> bool {
    inner.guest != outer.guest
        && outer.guest.covers(inner.guest.as_str())
        && inner.access < outer.access
}

fn is_header(text: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.len() <= 100 && text.bytes().all(token)
}

fn is_digest(text: &str) -> bool {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.strip_prefix("sha256:").is_some_and(|rest| rest.len() == 64 && rest.bytes().all(hex))
}
