//! The keys of `belljar.toml`, and the parsing of each section.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use belljar_policy::{
    CallPermission, GuestPath, MountAccess, SecretName, ShownText, ToolName, WORKSPACE,
};
use toml::de::DeTable;

use super::defaults::OVERLAY_TOOLS;
use super::named::NamingPlace;
use super::{GrantLayer, GrantSpec, Grantee, MountSpec, NamedTool, Settings};
use crate::agent::builtin_tools::BUILTIN_TOOLS;
use crate::agent::{list_of, parse_access};
use crate::diagnostic::{Diagnostic, FilePosition, Severity};
use crate::suggest;
use crate::toml_read::{Item, TomlReader};
use crate::{Slug, ToolsAs, Visibility};

/// The sections of the home file.
const HOME_KEYS: &[&str] = &[
    "project_override",
    "require_os_sandbox",
    "keep_runs",
    "compact_at",
    "agents",
    "context",
    "models",
    "roles",
    "secrets",
    "tools",
    "mcp",
    "hooks",
    "subagents",
    "server",
    "defaults",
    "grants",
];

/// The sections of a workspace's file.
const WORKSPACE_KEYS: &[&str] = &["subagents", "defaults", "grants"];

const GRANT_KEYS: &[&str] =
    &["tools", "mounts", "hosts", "secrets", "limits", "subagents", "tools_as"];
/// The keys of a grant in the home file, the only file that can add tools.
const HOME_GRANT_KEYS: &[&str] =
    &["tools", "add_tools", "mounts", "hosts", "secrets", "limits", "subagents", "tools_as"];
const MOUNT_KEYS: &[&str] = &["path", "host", "access"];

/// Which settings file is read: the operator's at home, or a workspace's.
#[derive(Clone, Copy)]
enum SettingsFile<'a> {
    Home { home_dir: Option<&'a Path> },
    Workspace,
}

/// Reads one settings file into [`Settings`].
pub(super) struct SettingsLoader<'s, 't, 'p> {
    pub(super) settings: &'s mut Settings,
    pub(super) reader: TomlReader<'t, 'p>,
    pub(super) path: &'p Path,
    file: SettingsFile<'s>,
}

/// Reads the home file into `settings`; returns the errors.
pub(super) fn read_home(
    settings: &mut Settings,
    path: &Path,
    text: &str,
    home_dir: Option<&Path>,
) -> Vec<Diagnostic> {
    let (mut reader, root) = match TomlReader::open(path, text) {
        Ok(open) => open,
        Err(problems) => return problems,
    };
    let table = root.get_ref();
    reader.report_unknown_keys(table, "`belljar.toml`", HOME_KEYS);
    let mut loader =
        SettingsLoader { settings, reader, path, file: SettingsFile::Home { home_dir } };
    if let Some(value) = loader.reader.read_boolean(table, "project_override") {
        loader.settings.project_override = value;
    }
    loader.settings.require_os_sandbox = loader.reader.read_boolean(table, "require_os_sandbox");
    loader.settings.keep_runs = loader.reader.read_number(table, "keep_runs");
    loader.settings.compact_at = loader.reader.read_number(table, "compact_at");
    if loader.settings.compact_at.is_some_and(|percent| percent > 100)
        && let Some(item) = table.get("compact_at")
    {
        loader.reader.report_unfit_value::<()>(
            "compact_at",
            item,
            "a share in percent, 0 to 100; 0 = never",
        );
    }
    loader.read_agents(table);
    loader.read_context(table);
    loader.read_models(table);
    loader.read_roles(table);
    loader.read_secrets(table);
    loader.read_tools(table);
    loader.read_mcp_servers(table);
    loader.read_hooks(table);
    loader.read_server(table);
    if let Some(policy) = loader.subagent_policy(table) {
        loader.settings.subagents = policy;
    }
    let layer = loader.read_layer(table);
    loader.check_secrets(&layer);
    loader.settings.home = layer;
    loader.into_errors()
}

/// Reads a workspace's file into `settings`, where it can only narrow; returns the errors.
pub(super) fn read_workspace(settings: &mut Settings, path: &Path, text: &str) -> Vec<Diagnostic> {
    let (mut reader, root) = match TomlReader::open(path, text) {
        Ok(open) => open,
        Err(problems) => return problems,
    };
    let table = root.get_ref();
    for key in table.keys() {
        let name = key.get_ref().as_ref();
        let at = reader.position_of(key.span());
        if HOME_KEYS.contains(&name) && !WORKSPACE_KEYS.contains(&name) {
            let message = format!("`{name}` has no place in a workspace's `belljar.toml`");
            let hint = "a workspace can only narrow: move it to `belljar.toml` at home";
            reader.findings.error_hint(at, "not-here", message, hint);
        } else if !WORKSPACE_KEYS.contains(&name) {
            if reader.findings.is_full() {
                reader.findings.drop_one(Severity::Error);
                continue;
            }
            let shown = ShownText::clip_line(name, 60);
            let message = format!("`{shown}` is not a key of a workspace's `belljar.toml`");
            let hint = suggest::did_you_mean(name, WORKSPACE_KEYS.iter().copied())
                .unwrap_or_else(|| format!("the keys are {}", list_of(WORKSPACE_KEYS)));
            reader.findings.error_hint(at, "unknown-key", message, hint);
        }
    }
    let mut loader = SettingsLoader { settings, reader, path, file: SettingsFile::Workspace };
    let policy = loader.subagent_policy(table);
    loader.settings.subagents = loader.settings.subagents.clone().narrowed_by(policy.as_ref());
    let layer = loader.read_layer(table);
    loader.settings.workspace = layer;
    loader.into_errors()
}

/// Whether a section grants a writable directory and names no tool.
fn takes_overlay_tools(spec: &GrantSpec) -> bool {
    let writes = |mount: &MountSpec| mount.access == MountAccess::ReadWrite;
    spec.tools.is_none() && spec.add_tools.is_empty() && spec.mounts.iter().flatten().any(writes)
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// The errors. The warnings are moved to the settings.
    fn into_errors(self) -> Vec<Diagnostic> {
        let (errors, warnings) = self
            .reader
            .findings
            .into_diagnostics()
            .into_iter()
            .partition::<Vec<_>, _>(|found| found.severity == Severity::Error);
        self.settings.warnings.extend(warnings);
        errors
    }

    /// Whether the file is the operator's own.
    pub(super) fn is_home(&self) -> bool {
        matches!(self.file, SettingsFile::Home { .. })
    }

    /// The named tables of a section, for example `NAME` in `[models.NAME]`.
    pub(super) fn named_tables<'a>(
        &mut self,
        table: &'a DeTable<'t>,
        section: &str,
    ) -> Vec<(&'a str, &'a Item<'t>, &'a DeTable<'t>)> {
        let Some(item) = table.get(section) else { return Vec::new() };
        let Some(entries) = self.reader.read_table(section, item) else { return Vec::new() };
        let mut tables = Vec::new();
        for (key, item) in entries {
            let name = key.get_ref().as_ref();
            if let Some(table) = self.reader.read_table(name, item) {
                tables.push((name, item, table));
            }
        }
        tables
    }

    pub(super) fn report_missing(&mut self, item: &Item<'_>, what: &str, hint: &str) {
        let at = self.reader.position_of(item.span());
        self.reader.findings.error_hint(at, "missing-key", format!("{what} is missing"), hint);
    }

    /// Reads `[defaults.*]` and `[grants.*]` of a file.
    fn read_layer(&mut self, table: &DeTable<'t>) -> GrantLayer {
        let mut layer = GrantLayer::default();
        for (name, item, table) in self.named_tables(table, "defaults") {
            let mut spec = self.read_grant(table, GRANT_KEYS);
            match Visibility::ALL.into_iter().find(|known| known.as_str() == name) {
                Some(visibility) => {
                    self.keep_builtin_tools(visibility, &mut spec);
                    layer.defaults.insert(visibility, spec);
                }
                None => {
                    let message =
                        format!("`{}` is not a visibility", ShownText::clip_line(name, 60));
                    let hint = "write `[defaults.user-facing]` or `[defaults.internal]`";
                    let at = self.reader.position_of(item.span());
                    self.reader.findings.error_hint(at, "unknown-key", message, hint);
                }
            }
        }
        let by = match self.file {
            SettingsFile::Home { .. } => NamingPlace::HomeGrant,
            SettingsFile::Workspace => NamingPlace::WorkspaceGrant,
        };
        let keys = match self.file {
            SettingsFile::Home { .. } => HOME_GRANT_KEYS,
            SettingsFile::Workspace => GRANT_KEYS,
        };
        let mut writing = Vec::new();
        for (name, item, table) in self.named_tables(table, "grants") {
            let spec = self.read_grant(table, keys);
            if let Some(mounts) = table.get("mounts").filter(|_| takes_overlay_tools(&spec)) {
                writing.push((name, self.reader.position_of(mounts.span())));
            }
            if let (SettingsFile::Workspace, Some(slug)) =
                (self.file, name.strip_prefix("workspace/"))
                && let Ok(slug) = Slug::try_from(slug.to_owned())
            {
                self.name_agent(name, NamingPlace::WorkspaceGrant, item);
                layer.own.insert(slug, spec);
                continue;
            }
            let at = self.reader.position_of(item.span());
            match name.parse::<Grantee>() {
                Ok(id) => {
                    self.name_agent(name, by, item);
                    if layer.grants.insert(id.clone(), spec).is_some() {
                        let message = format!("`{id}` has two sections");
                        let hint = "a bare name means `home/`; keep one of them";
                        self.reader.findings.error_hint(at, "duplicate-grant", message, hint);
                    }
                }
                Err(error) => self.reader.findings.error(at, "bad-identity", error.to_string()),
            }
        }
        if matches!(self.file, SettingsFile::Home { .. }) && self.settings.overlays.by_default {
            self.tell_of_taken_tools(&layer, writing);
        }
        layer
    }

    /// Warns if a section grants a writable directory and so loses tools that it does not name: agents have
    /// these tools by default only with overlays.
    fn tell_of_taken_tools(&mut self, layer: &GrantLayer, writing: Vec<(&str, FilePosition)>) {
        if layer.defaults.values().any(|row| row.tools.is_some()) {
            return;
        }
        let names_tools = |to: &Grantee| {
            let whole = to.whole_library().and_then(|whole| layer.grants.get(&whole));
            whole.is_some_and(|whole| whole.tools.is_some() || !whole.add_tools.is_empty())
        };
        for (name, at) in writing {
            if name.parse::<Grantee>().is_ok_and(|to| names_tools(&to)) {
                continue;
            }
            let name = ShownText::clip_line(name, 60);
            let tools = OVERLAY_TOOLS.join("`, `");
            let message = format!(
                "`mounts` in `[grants.{name}]` makes a directory itself writable, which takes away the \
                 tools that are there for overlays: `{tools}`"
            );
            let hint = "name those that it should have, as in `add_tools = [\"file_write\"]`";
            self.reader.findings.warning(at, "tools-taken", message, Some(hint.to_owned()));
        }
    }

    /// Adds belljar's own tools to a list of tools in the home file. Such a list replaces the default tools,
    /// and these are easily forgotten, because no agent file names them. Nothing is added if the list is
    /// empty or names one of them, for example to deny it. A workspace's list only narrows, so it is left as
    /// it is.
    fn keep_builtin_tools(&self, visibility: Visibility, spec: &mut GrantSpec) {
        let is_home = self.is_home();
        let Some(tools) = spec.tools.as_mut().filter(|tools| is_home && !tools.is_empty()) else {
            return;
        };
        if !BUILTIN_TOOLS.iter().any(|name| tools.contains_key(*name)) {
            for name in super::defaults::builtin_tools(visibility) {
                tools.entry(name).or_insert(CallPermission::Allow);
            }
        }
    }

    /// Reads a section of grants; `keys` are the accepted keys.
    fn read_grant(&mut self, table: &DeTable<'t>, keys: &[&str]) -> GrantSpec {
        self.reader.report_unknown_keys(table, "a grant", keys);
        let mut spec = GrantSpec::default();
        if let Some(item) = table.get("add_tools").filter(|_| keys.contains(&"add_tools")) {
            spec.add_tools = self.grant_tools(item);
            if table.contains_key("tools") {
                let at = self.reader.position_of(item.span());
                let message = "`add_tools` stands beside `tools`, which replaces the defaults";
                let hint = "write all of them in `tools`, or leave `tools` out";
                self.reader.findings.error_hint(at, "two-lists", message, hint);
            }
        }
        if let Some(item) = table.get("tools") {
            spec.tools = Some(self.grant_tools(item));
        }
        if let Some(item) = table.get("mounts") {
            spec.mounts = Some(self.read_mounts(item));
        }
        if let Some(item) = table.get("hosts") {
            spec.hosts = Some(self.reader.read_parsed_list("hosts", item).unwrap_or_default());
        }
        if let Some(item) = table.get("secrets") {
            spec.secrets = Some(self.reader.read_names("secrets", item).unwrap_or_default());
        }
        if let Some(item) = table.get("limits") {
            spec.limits = self.reader.read_limits("limits", item);
        }
        if let Some(item) = table.get("subagents") {
            self.read_subagents(item, &mut spec);
        }
        if let Some(item) = table.get("tools_as")
            && let Some(text) = self.reader.text_of("tools_as", item)
        {
            spec.tools_as = ToolsAs::parse(text);
            if spec.tools_as.is_none() {
                self.reader.report_unfit_value::<()>(
                    "tools_as",
                    item,
                    "one of `calls`, `code`, `both`",
                );
            }
        }
        spec
    }

    /// Reads tools: a list allows each tool; a table sets each to `allow`, `ask` or `deny`.
    fn grant_tools(&mut self, item: &Item<'t>) -> BTreeMap<ToolName, CallPermission> {
        let mut tools = BTreeMap::new();
        if let Some(table) = item.get_ref().as_table() {
            for (key, item) in table {
                let name = key.get_ref().as_ref();
                let Some(tool) = self.tool_name(name, item) else { continue };
                let word = match item.get_ref().as_str() {
                    Some("allow") => CallPermission::Allow,
                    Some("ask") => CallPermission::Ask,
                    Some("deny") => CallPermission::Deny,
                    Some(_) | None => {
                        self.reader.report_unfit_value::<()>(
                            name,
                            item,
                            "one of `allow`, `ask`, `deny`",
                        );
                        continue;
                    }
                };
                self.name_tool(&tool, item);
                tools.insert(tool, word);
            }
            return tools;
        }
        for item in self.reader.read_list("tools", item).unwrap_or_default() {
            let Some(text) = self.reader.text_of("tools", item) else { continue };
            let Some(tool) = self.tool_name(text, item) else { continue };
            self.name_tool(&tool, item);
            tools.insert(tool, CallPermission::Allow);
        }
        tools
    }

    /// Parses a tool's name, or reports that it is invalid.
    pub(super) fn tool_name(&mut self, name: &str, item: &Item<'_>) -> Option<ToolName> {
        match ToolName::new(name) {
            Ok(tool) => Some(tool),
            Err(error) => {
                let at = self.reader.position_of(item.span());
                self.reader.findings.error(at, "bad-name", error.to_string());
                None
            }
        }
    }

    pub(super) fn name_tool(&mut self, tool: &ToolName, item: &Item<'_>) {
        let at = self.reader.position_of(item.span());
        let path = self.path.to_path_buf();
        self.settings.named_tools.push(NamedTool { tool: tool.clone(), path, at });
    }

    /// Reads the list `mounts`.
    fn read_mounts(&mut self, item: &Item<'t>) -> Vec<MountSpec> {
        let mut mounts: Vec<MountSpec> = Vec::new();
        for item in self.reader.read_list("mounts", item).unwrap_or_default() {
            if !item.get_ref().is_table() {
                let at = self.reader.position_of(item.span());
                let hint = "write `{ path = \"/workspace\", access = \"read\" }`";
                self.reader.findings.error_hint(at, "bad-value", "a mount is a table", hint);
                continue;
            }
            let Some(table) = self.reader.read_table("mounts", item) else { continue };
            self.reader.report_unknown_keys(table, "a mount", MOUNT_KEYS);
            let Some(mount) = self.read_mount(item, table) else { continue };
            if mounts.iter().any(|other| other.guest == mount.guest) {
                let message = format!("`{}` is mounted twice", mount.guest);
                let at = self.reader.position_of(item.span());
                self.reader.findings.error_hint(at, "duplicate-mount", message, "keep one of them");
                continue;
            }
            if let Some(outer) = mounts.iter().find(|other| is_undone_by(&mount, other)) {
                self.report_nested_mount(item, &mount, &outer.guest);
            }
            if let Some(inner) = mounts.iter().find(|other| is_undone_by(other, &mount)) {
                self.report_nested_mount(item, inner, &mount.guest);
            }
            mounts.push(mount);
        }
        mounts
    }

    /// Reports a mount inside another mount that grants more.
    fn report_nested_mount(&mut self, item: &Item<'_>, inner: &MountSpec, outer: &GuestPath) {
        let message = format!("`{}` gives less than `{outer}`, in which it lies", inner.guest);
        let hint = format!(
            "what `{outer}` gives holds below it too: give `{outer}` `read`, and what may be \
             written a mount of its own"
        );
        let at = self.reader.position_of(item.span());
        self.reader.findings.error_hint(at, "nested-mount", message, hint);
    }

    /// Reads an entry of `mounts`.
    fn read_mount(&mut self, item: &Item<'t>, table: &DeTable<'t>) -> Option<MountSpec> {
        let Some(path) = table.get("path") else {
            self.report_missing(
                item,
                "`path`",
                "write where the guest sees it: `path = \"/workspace\"`",
            );
            return None;
        };
        let guest = match GuestPath::new(self.reader.text_of("path", path)?) {
            Ok(guest) => guest,
            Err(error) => {
                let at = self.reader.position_of(path.span());
                self.reader.findings.error(at, "bad-path", error.to_string());
                return None;
            }
        };
        let Some(access) = table.get("access") else {
            self.report_missing(
                item,
                "`access`",
                "write `access = \"read\"`, `\"overlay\"` or `\"read-write\"`",
            );
            return None;
        };
        let Some(access) = parse_access(self.reader.text_of("access", access)?) else {
            return self.reader.report_unfit_value(
                "access",
                access,
                "`read`, `overlay` or `read-write`",
            );
        };
        let host = match (self.file, table.get("host")) {
            (SettingsFile::Workspace, None) => None,
            (SettingsFile::Workspace, Some(host)) => {
                let message = "`host` has no place in a workspace's `belljar.toml`";
                let hint = "remove it: the home file says which directory is mounted";
                let at = self.reader.position_of(host.span());
                self.reader.findings.error_hint(at, "host-path", message, hint);
                return None;
            }
            (SettingsFile::Home { .. }, Some(host)) => {
                let text = self.reader.text_of("host", host)?;
                Some(self.host_path(&guest, host, text)?)
            }
            (SettingsFile::Home { .. }, None) if guest.as_str() == WORKSPACE => None,
            (SettingsFile::Home { .. }, None) => {
                let hint = "write the directory: `host = \"/srv/data\"`; only `/workspace` has one \
                            by itself";
                self.report_missing(item, "`host`", hint);
                return None;
            }
        };
        Some(MountSpec { guest, host, access })
    }

    /// Parses a directory of the host: absolute, below `~`, or, for the workspace's mount, below the
    /// workspace.
    fn host_path(&mut self, guest: &GuestPath, item: &Item<'_>, text: &str) -> Option<PathBuf> {
        let path = self.home_path(text);
        let inside =
            path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let below = guest.as_str() == WORKSPACE && inside && !text.starts_with('~');
        if path.is_absolute() || below {
            return Some(path);
        }
        let message =
            format!("`host` is `{}`, not an absolute path", ShownText::clip_line(text, 200));
        let hint = "write an absolute path, `~/...`, or for `/workspace` a directory in it";
        let at = self.reader.position_of(item.span());
        self.reader.findings.error_hint(at, "host-path", message, hint);
        None
    }

    /// The path with `~` replaced, if the home directory is known.
    pub(super) fn home_path(&self, text: &str) -> PathBuf {
        let SettingsFile::Home { home_dir: Some(home) } = self.file else {
            return PathBuf::from(text);
        };
        match text.strip_prefix('~') {
            Some("") => home.to_path_buf(),
            Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            Some(_) | None => PathBuf::from(text),
        }
    }

    /// Warns about a secret that is granted but defined nowhere, probably a typing error.
    fn check_secrets(&mut self, layer: &GrantLayer) {
        let specs = layer.defaults.values().chain(layer.grants.values());
        for name in specs.flat_map(|spec| spec.secrets.iter().flatten()) {
            if !self.settings.secrets.contains_key(name) {
                let message = format!("secret `{name}` is granted and not defined");
                let known = self.settings.secrets.keys().map(SecretName::as_str);
                let hint = suggest::did_you_mean(name.as_str(), known)
                    .unwrap_or_else(|| format!("add a section `[secrets.{name}]`"));
                let at = crate::diagnostic::FilePosition::default();
                self.reader.findings.warning(at, "unknown-secret", message, Some(hint));
            }
        }
    }
}

/// Whether a mount inside another is useless: the outer mount grants the access that the inner one was meant
/// to refuse, because a mount grants everything below its directory.
fn is_undone_by(inner: &MountSpec, outer: &MountSpec) -> bool {
    inner.guest != outer.guest
        && outer.guest.covers_path(inner.guest.as_str())
        && inner.access < outer.access
}
