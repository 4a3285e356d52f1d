//! Adds rights to a grant in the text of the home `belljar.toml`, and leaves the rest of the text as it is:
//! comments, order, white space.
//!
//! A key of a grant replaces the default value. If the agent's grant lacks the key, the new line therefore
//! repeats the present value before the new entries, so no right is lost. Of the default tools it
//! repeats only those that the agent's own file asks for, because the agent gets no others. If that file
//! names no tools, `add_tools` is written with the new tools alone. For example, adding `api.test` to an
//! agent with the default hosts writes `hosts` with the default hosts and `api.test`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use belljar_policy::{
    CallPermission, HostRule, LIMITS, LimitsRequest, MountAccess, NarrowingNote, SecretName,
    ToolName, WORKSPACE, WantedRight,
};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{GrantSpec, Grantee, MountSpec, Settings, defaults};
use crate::diagnostic::{Diagnostic, FileFindings, FilePosition};
use crate::{AgentId, Visibility};

/// Stands in a suggested line for a directory that only the operator knows.
pub const HOST_PLACEHOLDER: &str = "/path/to/directory";

/// The key whose tools replace the default tools.
pub(super) const TOOLS: &str = "tools";

/// The key whose tools are added to the default tools.
pub(super) const ADD_TOOLS: &str = "add_tools";

/// Rights to add to a grant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantChange {
    /// Tools, each with its new permission.
    pub tools: Vec<(ToolName, CallPermission)>,
    /// Mounts. A mount whose guest path and directory exist already keeps the wider access.
    pub mounts: Vec<MountSpec>,
    /// Hosts, each added to the granted ones.
    pub hosts: Vec<HostRule>,
    /// Secrets, each added to the granted ones.
    pub secrets: Vec<SecretName>,
    /// Limits: each stated limit is set, whether higher or lower than before.
    pub limits: LimitsRequest,
    /// The tools that the agent's own file asks for: of the default tools, only these are repeated beside the
    /// new ones. `None` = unknown, or the file asks for every granted tool; the new tools are then written to
    /// `add_tools`.
    pub asked_tools: Option<BTreeSet<ToolName>>,
    /// Whether the agent does not exist yet: only the new mounts, hosts and secrets are written, without the
    /// defaults.
    pub alone: bool,
}

impl GrantChange {
    /// The change that would grant every requested right that the grants withhold.
    pub fn for_missing(notes: &[NarrowingNote]) -> Self {
        let mut change = Self::default();
        for note in notes {
            match &note.wanted {
                WantedRight::Tool(name) => change.tools.push((name.clone(), CallPermission::Allow)),
                WantedRight::Mount(ask) => {
                    let own = ask.guest.as_str() != WORKSPACE;
                    change.mounts.push(MountSpec {
                        guest: ask.guest.clone(),
                        host: own.then(|| PathBuf::from(HOST_PLACEHOLDER)),
                        access: ask.access,
                    });
                }
                WantedRight::Host(rule) => change.hosts.push(rule.clone()),
            }
        }
        change
    }

    /// Returns whether the change grants nothing.
    pub fn is_empty(&self) -> bool {
        let Self { tools, mounts, hosts, secrets, limits, asked_tools: _, alone: _ } = self;
        tools.is_empty()
            && mounts.is_empty()
            && hosts.is_empty()
            && secrets.is_empty()
            && *limits == LimitsRequest::default()
    }

    /// The present rights of an agent, to which the change is added, with every key stated. Rights that the
    /// new lines must not repeat are left out, for example the overlay tools beside a writable mount.
    fn base_grant(&self, settings: &Settings, id: &Grantee, visibility: Visibility) -> GrantSpec {
        let mut base = settings.home_grant(id, visibility);
        if self.mounts.iter().any(|mount| mount.access == MountAccess::ReadWrite)
            && !settings.states_tools(id)
            && settings.home.defaults.get(&visibility).is_none_or(|row| row.tools.is_none())
        {
            // An agent with a writable mount does not get the tools for overlays by default.
            let stated = settings.home.grants.get(id).map(|stated| stated.add_tools.clone());
            defaults::without_overlay_tools(&mut base, visibility);
            base.tools.get_or_insert_default().extend(stated.unwrap_or_default());
        }
        if !self.tools.is_empty()
            && self.added_tools(settings, id).is_none()
            && !settings.states_tools(id)
            && let (Some(asked), Some(tools)) = (&self.asked_tools, &mut base.tools)
        {
            tools.retain(|tool, _| asked.contains(tool));
        }
        if self.alone {
            let stated = settings.home.grants.get(id).cloned().unwrap_or_default();
            if !self.mounts.is_empty() {
                base.mounts = Some(stated.mounts.unwrap_or_default());
            }
            if !self.hosts.is_empty() {
                base.hosts = Some(stated.hosts.unwrap_or_default());
            }
            if !self.secrets.is_empty() {
                base.secrets = Some(stated.secrets.unwrap_or_default());
            }
        }
        base
    }

    /// All tools for the key `add_tools` after the change; `None` = the new tools go into the key `tools`.
    fn added_tools(
        &self,
        settings: &Settings,
        id: &Grantee,
    ) -> Option<BTreeMap<ToolName, CallPermission>> {
        let stated = settings.home.grants.get(id).map(|stated| stated.add_tools.clone());
        let mut added = stated.unwrap_or_default();
        if settings.states_tools(id) || added.is_empty() && self.asked_tools.is_some() {
            return None;
        }
        added.extend(self.tools.iter().cloned());
        Some(added)
    }

    /// The grant after this change. `base` is the grant before, with every key stated.
    fn apply_to(&self, base: &GrantSpec) -> GrantSpec {
        let mut spec = base.clone();
        spec.tools.get_or_insert_default().extend(self.tools.iter().cloned());
        let mounts = spec.mounts.get_or_insert_default();
        for new in &self.mounts {
            match mounts.iter_mut().find(|mount| mount.guest == new.guest) {
                Some(mount) if mount.host == new.host => {
                    mount.access = mount.access.max(new.access);
                }
                Some(mount) => *mount = new.clone(),
                None => mounts.push(new.clone()),
            }
        }
        let hosts = spec.hosts.get_or_insert_default();
        for rule in &self.hosts {
            if !hosts.contains(rule) {
                hosts.push(rule.clone());
            }
        }
        spec.secrets.get_or_insert_default().extend(self.secrets.iter().cloned());
        for row in LIMITS {
            if let Some(value) = self.limits.get(row.key) {
                spec.limits.set(row.key, value);
            }
        }
        spec
    }
}

/// Adds `change` to the grant of `id` in `text`, the home `belljar.toml` (empty if the file is missing). The
/// new text is parsed and compared: it grants the requested rights and changes no other setting. If `text` is
/// invalid, its errors are returned.
pub fn apply_grant(
    path: &Path,
    text: &str,
    home_dir: Option<&Path>,
    id: impl Into<Grantee>,
    visibility: Visibility,
    change: &GrantChange,
) -> Result<String, Vec<Diagnostic>> {
    apply_grants(path, text, home_dir, &[(id.into(), visibility, change.clone())])
}

/// As [`apply_grant`] for several agents, each named once: all changes are made, or none.
pub fn apply_grants(
    path: &Path,
    text: &str,
    home_dir: Option<&Path>,
    changes: &[(Grantee, Visibility, GrantChange)],
) -> Result<String, Vec<Diagnostic>> {
    let before = Settings::parse(Some((path, text)), None, home_dir)?;
    let unfit = || edit_failure(path, "`grants` is not a table that can be added to");
    let mut doc: DocumentMut = text.parse().map_err(|_| unfit())?;
    let mut wanted = BTreeMap::new();
    for (id, visibility, change) in changes {
        let base = change.base_grant(&before, id, *visibility);
        let with = change.apply_to(&base);
        if change.is_empty() || with == base {
            continue;
        }
        let added = change.added_tools(&before, id);
        edit_document(&mut doc, id, change, added, &base, &with).ok_or_else(unfit)?;
        wanted.insert(id, (*visibility, with));
    }
    if wanted.is_empty() {
        return Ok(text.to_owned());
    }
    let edited = doc.to_string();
    let after = Settings::parse(Some((path, &edited)), None, home_dir)?;
    let is_wanted = |(id, (visibility, with)): (&&Grantee, &(Visibility, GrantSpec))| {
        after.home_grant(id, *visibility) == *with
    };
    let ids: BTreeSet<&Grantee> = wanted.keys().copied().collect();
    if wanted.iter().all(is_wanted) && after.same_but_for(&before, &ids) {
        Ok(edited)
    } else {
        Err(edit_failure(path, "the change would have touched other settings"))
    }
}

/// The lines that would grant `change` beside these settings, as a section. If the file has the section
/// already, they replace its lines with the same keys.
pub fn grant_lines(
    settings: &Settings,
    id: &AgentId,
    visibility: Visibility,
    change: &GrantChange,
) -> String {
    let id = &Grantee::from(id);
    let base = change.base_grant(settings, id, visibility);
    let wanted = change.apply_to(&base);
    let mut doc = DocumentMut::new();
    let added = change.added_tools(settings, id);
    match edit_document(&mut doc, id, change, added, &base, &wanted) {
        Some(()) => doc.to_string().trim().to_owned(),
        None => String::new(),
    }
}

impl Settings {
    /// Whether the agent's home grant has the key `tools`, which replaces the default tools.
    fn states_tools(&self, id: &Grantee) -> bool {
        self.home.grants.get(id).is_some_and(|stated| stated.tools.is_some())
    }

    /// Whether both settings mean the same, wherever the files state it.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.same_but_for(other, &BTreeSet::new())
    }

    /// Whether the settings differ only in the home grants of `ids`.
    pub(super) fn same_but_for(&self, other: &Self, ids: &BTreeSet<&Grantee>) -> bool {
        let rest = |settings: &Self| {
            let mut rest = settings.clone();
            rest.home.grants.retain(|id, _| !ids.contains(id));
            rest.named_tools.clear();
            rest.named_agents.clear();
            rest.warnings.clear();
            rest
        };
        rest(self) == rest(other)
    }
}

/// A finding that the text cannot be edited, with the reason.
pub(super) fn edit_failure(path: &Path, why: &str) -> Vec<Diagnostic> {
    let mut findings = FileFindings::new(path);
    let hint = "edit the file by hand; `belljar explain --json` shows the lines";
    findings.error_hint(FilePosition::default(), "grant-edit", why, hint);
    findings.into_diagnostics()
}

/// Writes the changed keys of a grant into the document; `None` = a part of the document has another form
/// than the parser accepts.
fn edit_document(
    doc: &mut DocumentMut,
    id: &Grantee,
    change: &GrantChange,
    added: Option<BTreeMap<ToolName, CallPermission>>,
    base: &GrantSpec,
    wanted: &GrantSpec,
) -> Option<()> {
    let section = grant_section(doc, id)?;
    if base.tools != wanted.tools {
        match added {
            Some(added) => edit_tools(section, ADD_TOOLS, change, &added),
            None => edit_tools(section, TOOLS, change, &wanted.tools.clone().unwrap_or_default()),
        }
    }
    if base.mounts != wanted.mounts {
        edit_mounts(section, wanted.mounts.as_deref().unwrap_or_default());
    }
    if base.hosts != wanted.hosts {
        let hosts = wanted.hosts.iter().flatten().map(HostRule::to_string);
        edit_list(section, "hosts", hosts.collect());
    }
    if base.secrets != wanted.secrets {
        let secrets = wanted.secrets.iter().flatten().map(SecretName::to_string);
        edit_list(section, "secrets", secrets.collect());
    }
    edit_limits(section, &change.limits);
    Some(())
}

/// The table of the grant, inserted if missing.
fn grant_section<'d>(doc: &'d mut DocumentMut, id: &Grantee) -> Option<&'d mut dyn TableLike> {
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let grants = doc.entry("grants").or_insert(Item::Table(implicit));
    let inline = grants.is_inline_table();
    let grants = grants.as_table_like_mut()?;
    let is_id = |key: &str| key.parse::<Grantee>().is_ok_and(|found| found == *id);
    let existing = grants.iter().map(|(key, _)| key.to_owned()).find(|key| is_id(key));
    let key = existing.unwrap_or_else(|| id.grant_key());
    if !grants.contains_key(&key) {
        let table = if inline {
            Item::Value(Value::InlineTable(InlineTable::new()))
        } else {
            Item::Table(Table::new())
        };
        grants.insert(&key, table);
    }
    grants.get_mut(&key)?.as_table_like_mut()
}

/// Writes the tools of a grant under `key`, in the form that the file uses: a list, or a table with
/// permissions.
fn edit_tools(
    section: &mut dyn TableLike,
    key: &str,
    change: &GrantChange,
    all: &BTreeMap<ToolName, CallPermission>,
) {
    let only_allow = all.values().all(|permission| *permission == CallPermission::Allow);
    match section.get_mut(key) {
        Some(item) if item.is_array() && only_allow => {
            let names = all.keys().map(ToString::to_string);
            edit_list(section, key, names.collect());
        }
        Some(item) if item.is_table_like() => {
            let Some(table) = item.as_table_like_mut() else { return };
            for (name, permission) in &change.tools {
                set_key(table, name.as_str(), Value::from(permission.to_string()));
            }
            if let Some(table) = item.as_inline_table_mut() {
                tidy_table(table);
            }
        }
        Some(_) | None if only_allow => {
            let names: Array = all.keys().map(ToString::to_string).collect();
            set_key(section, key, Value::Array(names));
        }
        Some(_) | None => {
            let mut table = InlineTable::new();
            for (name, permission) in all {
                table.insert(name.as_str(), Value::from(permission.to_string()));
            }
            set_key(section, key, Value::InlineTable(table));
        }
    }
}

/// Adds the missing entries to a list of texts; existing entries keep their spelling.
fn edit_list(section: &mut dyn TableLike, key: &str, wanted: Vec<String>) {
    let Some(array) = section.get_mut(key).and_then(Item::as_array_mut) else {
        return set_key(section, key, Value::Array(wanted.into_iter().collect()));
    };
    let have: BTreeSet<String> =
        array.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect();
    for text in wanted.into_iter().filter(|text| !have.contains(text)) {
        append_value(array, Value::from(text));
    }
}

/// Appends a value to a list in the list's style: on a new line if the list has lines, and after the comment
/// of the entry before.
fn append_value(array: &mut Array, mut value: Value) {
    let text = |raw: Option<&toml_edit::RawString>| {
        raw.and_then(toml_edit::RawString::as_str).unwrap_or_default().to_owned()
    };
    let first = text(array.get(0).and_then(|value| value.decor().prefix()));
    let Some((_, indent)) = first.rsplit_once('\n') else {
        return array.push(value);
    };
    let trailing = text(Some(array.trailing()));
    let (comments, end) = trailing.rsplit_once('\n').unwrap_or(("", ""));
    value.decor_mut().set_prefix(format!("{comments}\n{indent}"));
    array.set_trailing(format!("\n{end}"));
    array.set_trailing_comma(true);
    array.push_formatted(value);
}

/// Writes the mounts of a grant, as a list of tables on one line or as `[[mounts]]`.
fn edit_mounts(section: &mut dyn TableLike, wanted: &[MountSpec]) {
    if let Some(tables) = section.get_mut("mounts").and_then(Item::as_array_of_tables_mut) {
        return edit_mount_tables(tables, wanted);
    }
    let Some(array) = section.get_mut("mounts").and_then(Item::as_array_mut) else {
        let array: Array =
            wanted.iter().map(|mount| Value::InlineTable(inline_mount(mount))).collect();
        return set_key(section, "mounts", Value::Array(array));
    };
    for mount in wanted {
        let found = array.iter_mut().find(|value| {
            let path = value.as_inline_table().and_then(|table| table.get("path"));
            is_path(path.and_then(Value::as_str), mount)
        });
        match found.and_then(Value::as_inline_table_mut) {
            Some(table) => {
                write_mount(table, mount);
                tidy_table(table);
            }
            None => append_value(array, Value::InlineTable(inline_mount(mount))),
        }
    }
}

/// Writes the mounts of a grant that uses `[[mounts]]`.
fn edit_mount_tables(tables: &mut ArrayOfTables, wanted: &[MountSpec]) {
    for mount in wanted {
        let found = tables
            .iter_mut()
            .find(|table| is_path(table.get("path").and_then(Item::as_str), mount));
        match found {
            Some(table) => write_mount(table, mount),
            None => {
                let mut table = Table::new();
                write_mount(&mut table, mount);
                tables.push(table);
            }
        }
    }
}

/// Whether a written guest path is the mount's, apart from a final `/`.
fn is_path(written: Option<&str>, mount: &MountSpec) -> bool {
    written.is_some_and(|path| path.strip_suffix('/').unwrap_or(path) == mount.guest.as_str())
}

fn inline_mount(mount: &MountSpec) -> InlineTable {
    let mut table = InlineTable::new();
    write_mount(&mut table, mount);
    table
}

/// Writes the keys of a mount that have changed, so for example `~/data` keeps its spelling.
pub(super) fn write_mount(table: &mut dyn TableLike, mount: &MountSpec) {
    if table.get("path").is_none() {
        set_key(table, "path", Value::from(mount.guest.as_str()));
    }
    match &mount.host {
        Some(host) => {
            let written = table.get("host").and_then(Item::as_str);
            let same = written.is_some_and(|text| {
                text.strip_prefix('~')
                    .map_or(Path::new(text) == host, |rest| host.to_string_lossy().ends_with(rest))
            });
            if !same {
                set_key(table, "host", Value::from(host.to_string_lossy().into_owned()));
            }
        }
        None => {
            table.remove("host");
        }
    }
    let access = mount.access.to_string();
    if table.get("access").and_then(Item::as_str) != Some(access.as_str()) {
        set_key(table, "access", Value::from(access));
    }
}

/// Writes each limit that is stated.
fn edit_limits(section: &mut dyn TableLike, limits: &LimitsRequest) {
    for row in LIMITS {
        let Some(value) = limits.get(row.key) else { continue };
        if section.get("limits").is_none() {
            set_key(section, "limits", Value::InlineTable(InlineTable::new()));
        }
        let Some(table) = section.get_mut("limits").and_then(Item::as_table_like_mut) else {
            return;
        };
        // TOML has signed numbers; no useful limit exceeds them.
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        set_key(table, row.key, Value::from(value));
        if let Some(table) = section.get_mut("limits").and_then(Item::as_inline_table_mut) {
            tidy_table(table);
        }
    }
}

/// Sets a key and keeps the text around the old value, for example a comment at the end of the line.
fn set_key(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key) {
        Some(Item::Value(old)) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        Some(other) => *other = Item::Value(value),
        None => {
            table.insert(key, Item::Value(value));
        }
    }
}

/// Evens out the white space of a table on one line after an insertion.
pub(super) fn tidy_table(table: &mut InlineTable) {
    if !table.to_string().contains('\n') {
        table.fmt();
    }
}
