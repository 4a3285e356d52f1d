//! Removes rights from a grant in the text of the home `belljar.toml`, and leaves the rest of the text as it
//! is: comments, order, white space.
//!
//! A key is removed if the value that it would have is the value without the key, and a section is removed if
//! no key is left: the lines that `belljar grant` wrote disappear again. For example, revoking the only added
//! host removes the key `hosts`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use belljar_policy::{
    CallPermission, GuestPath, HostRule, LIMITS, LimitsRequest, MountAccess, SecretName, ToolName,
};
use toml_edit::{Array, DocumentMut, Item, RawString, Table, TableLike, Value};

use super::edit::{ADD_TOOLS, TOOLS, edit_failure};
use super::{GrantSpec, Grantee, MountSpec, Settings};
use crate::Visibility;
use crate::diagnostic::Diagnostic;

/// Rights to remove from a grant. The default value removes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantRemoval {
    /// Whether everything is removed, whatever the other fields name. The rules about subagents stay.
    pub all: bool,
    /// Tools to remove. With a permission, a tool is removed only if the grant has exactly that permission.
    pub tools: Vec<(ToolName, Option<CallPermission>)>,
    /// Mounts to remove.
    pub mounts: Vec<MountRemoval>,
    /// Hosts to remove, in the grant's spelling, for example `https://*.example.com`.
    pub hosts: Vec<HostRule>,
    /// Secrets to remove.
    pub secrets: Vec<SecretName>,
    /// Limits to remove, each a key of [`LIMITS`]. With a value, a limit is removed only if it has exactly
    /// that value.
    pub limits: Vec<(String, Option<u64>)>,
}

/// A mount to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountRemoval {
    /// The guest path of the mount.
    pub guest: GuestPath,
    /// If set, the mount is removed only if it has the host directory.
    pub host: Option<PathBuf>,
    /// If set, the mount is removed only if it has this access.
    pub access: Option<MountAccess>,
}

/// Why nothing was removed.
#[derive(Debug, Clone)]
pub enum NotRevoked {
    /// The text is invalid or cannot be edited.
    Invalid(Vec<Diagnostic>),
    /// The grant lacks these rights, each as a text for people. A removal is made as a whole or not at all.
    NotGranted(Vec<String>),
}

impl GrantRemoval {
    /// Whether the removal names nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The grant `stated` after the removal, and the parts of the removal that it lacks. `below` are the
    /// rights without the grant.
    fn remove_from(&self, stated: &GrantSpec, below: &GrantSpec) -> (GrantSpec, Vec<String>) {
        let mut missing = Vec::new();
        if self.all {
            let subagents = stated.subagents.clone();
            let (tools_as, auto_background) = (stated.tools_as, stated.auto_background);
            let left = GrantSpec { subagents, tools_as, auto_background, ..GrantSpec::default() };
            if left == *stated {
                missing.push("anything".to_owned());
            }
            return (left, missing);
        }
        let mut spec = stated.clone();
        for (tool, word) in &self.tools {
            if !take_tool(&mut spec, tool, *word) {
                missing.push(format!("tool `{tool}`{}", as_stated(*word)));
            }
        }
        for mount in &self.mounts {
            if !mount.remove_from(&mut spec, below) {
                let access = mount.access.map(|access| access.to_string());
                missing.push(format!("mount `{}`{}", mount.guest, as_stated(access)));
            }
        }
        for rule in &self.hosts {
            if !retain_entries(&mut spec.hosts, |own| own != rule) {
                missing
                    .push(format!("host `{}`", belljar_policy::ShownText::new(&rule.to_string())));
            }
        }
        for secret in &self.secrets {
            let held = spec.secrets.as_mut().is_some_and(|held| held.remove(secret));
            if !held {
                missing.push(format!("secret `{secret}`"));
            }
        }
        for (key, value) in &self.limits {
            if !take_limit(&mut spec.limits, key, *value) {
                missing.push(format!("limit `{key}`{}", as_stated(*value)));
            }
        }
        drop_what_holds_anyway(&mut spec, stated, below);
        (spec, missing)
    }
}

/// Removes `removal` from the grants of `ids` in `text`, the home `belljar.toml`. The new text is parsed and
/// compared: these agents keep exactly the other rights, and no other setting changes.
pub fn revoke_grants(
    path: &Path,
    text: &str,
    home_dir: Option<&Path>,
    ids: &[(Grantee, Visibility)],
    removal: &GrantRemoval,
) -> Result<String, NotRevoked> {
    let parse = |text| Settings::parse(Some((path, text)), None, home_dir);
    let unfit =
        || NotRevoked::Invalid(edit_failure(path, "`grants` is not a table that can be edited"));
    let before = parse(text).map_err(NotRevoked::Invalid)?;
    let mut doc: DocumentMut = text.parse().map_err(|_| unfit())?;
    let (mut wanted, mut missing) = (Vec::new(), Vec::new());
    for (id, visibility) in ids {
        let stated = before.own_grant(id).cloned().unwrap_or_default();
        let (left, not_there) =
            removal.remove_from(&stated, &before.without_grant(id, *visibility));
        missing.extend(not_there);
        if left != stated {
            edit_document(&mut doc, id, &stated, &left).ok_or_else(unfit)?;
            wanted.push((id, left));
        }
    }
    if !missing.is_empty() {
        return Err(NotRevoked::NotGranted(missing));
    }
    let edited = doc.to_string();
    let after = parse(&edited).map_err(NotRevoked::Invalid)?;
    let left = |id| after.own_grant(id).cloned().unwrap_or_default();
    let touched: BTreeSet<&Grantee> = ids.iter().map(|(id, _)| id).collect();
    if wanted.iter().all(|(id, spec)| left(id) == *spec) && after.same_but_for(&before, &touched) {
        Ok(edited)
    } else {
        let why = "the change would have touched other settings";
        Err(NotRevoked::Invalid(edit_failure(path, why)))
    }
}

impl Settings {
    /// The home file's own section for this grantee; `None` = the file has no such section.
    pub fn own_grant(&self, to: &Grantee) -> Option<&GrantSpec> {
        self.home.grants.get(to)
    }

    /// The rights that the agent would have at home without its own section.
    fn without_grant(&self, to: &Grantee, visibility: Visibility) -> GrantSpec {
        self.combined_grant(visibility, to, None)
    }
}

/// The words in parentheses behind a name in a message, for example ` (ask)`; empty if there are none.
fn as_stated(word: Option<impl std::fmt::Display>) -> String {
    word.map_or_else(String::new, |word| format!(" ({word})"))
}

/// Removes a tool from a grant, if it has the tool with this permission. Returns whether it had.
fn take_tool(spec: &mut GrantSpec, tool: &ToolName, word: Option<CallPermission>) -> bool {
    let lists = [Some(&mut spec.add_tools), spec.tools.as_mut()];
    for list in lists.into_iter().flatten() {
        let held = list.get(tool).copied();
        if held.is_some_and(|held| word.is_none_or(|word| word == held)) {
            list.remove(tool);
            return true;
        }
    }
    false
}

/// Keeps the entries of a list that `keep` accepts. Returns whether any was removed.
fn retain_entries<T>(list: &mut Option<Vec<T>>, keep: impl Fn(&T) -> bool) -> bool {
    let Some(list) = list else { return false };
    let before = list.len();
    list.retain(keep);
    list.len() < before
}

/// Removes a limit from a grant, if it has this value. Returns whether it had.
fn take_limit(limits: &mut LimitsRequest, key: &str, value: Option<u64>) -> bool {
    let held = limits.get(key);
    if held.is_none() || value.is_some() && value != held {
        return false;
    }
    let mut left = LimitsRequest::default();
    for row in LIMITS.iter().filter(|row| row.key != key) {
        if let Some(value) = limits.get(row.key) {
            left.set(row.key, value);
        }
    }
    *limits = left;
    true
}

impl MountRemoval {
    /// Removes a mount from a grant. If the default mount at the same guest path has narrower access, it
    /// applies again.
    fn remove_from(&self, spec: &mut GrantSpec, below: &GrantSpec) -> bool {
        let Some(mounts) = &mut spec.mounts else { return false };
        let is_it = |mount: &MountSpec| {
            mount.guest == self.guest
                && self.host.as_ref().is_none_or(|host| mount.host.as_ref() == Some(host))
                && self.access.is_none_or(|access| mount.access == access)
        };
        let Some(at) = mounts.iter().position(is_it) else { return false };
        let default = below.mounts.iter().flatten().find(|mount| mount.guest == self.guest);
        let held = mounts.get(at);
        match default.filter(|default| held.is_some_and(|held| held != *default)) {
            Some(default) => {
                if let Some(mount) = mounts.get_mut(at) {
                    *mount = default.clone();
                }
            }
            None => drop(mounts.remove(at)),
        }
        true
    }
}

/// Removes each changed key whose value is now the value without the key.
fn drop_what_holds_anyway(spec: &mut GrantSpec, stated: &GrantSpec, below: &GrantSpec) {
    if spec.tools != stated.tools && spec.tools == below.tools {
        spec.tools = None;
    }
    if spec.mounts != stated.mounts && spec.mounts == below.mounts {
        spec.mounts = None;
    }
    if spec.hosts != stated.hosts && spec.hosts == below.hosts {
        spec.hosts = None;
    }
    if spec.secrets != stated.secrets && spec.secrets == below.secrets {
        spec.secrets = None;
    }
}

/// Removes from the document what the grant `left` lacks of `stated`, and the section if nothing is left.
fn edit_document(
    doc: &mut DocumentMut,
    id: &Grantee,
    stated: &GrantSpec,
    left: &GrantSpec,
) -> Option<()> {
    let grants = doc.get_mut("grants")?.as_table_like_mut()?;
    let is_id = |key: &str| key.parse::<Grantee>().is_ok_and(|found| found == *id);
    let key = grants.iter().map(|(key, _)| key.to_owned()).find(|key| is_id(key))?;
    let item = grants.get_mut(&key)?;
    edit_section(item.as_table_like_mut()?, stated, left);
    let empty = item.as_table_like().is_some_and(TableLike::is_empty);
    if left.is_empty() && empty && !is_remarked(item) {
        grants.remove(&key);
    }
    Some(())
}

/// Whether a person wrote a comment on the section's heading.
fn is_remarked(item: &Item) -> bool {
    let decor = item.as_table().map(Table::decor);
    let texts = decor.into_iter().flat_map(|decor| [decor.prefix(), decor.suffix()]);
    texts.flatten().filter_map(RawString::as_str).any(|text| text.contains('#'))
}

/// Removes the tools, mounts, hosts, secrets and limits that `left` lacks from a section.
fn edit_section(section: &mut dyn TableLike, stated: &GrantSpec, left: &GrantSpec) {
    if left.tools != stated.tools {
        edit_tools(section, TOOLS, left.tools.as_ref().map(|tools| tools.keys().collect()));
    }
    if left.add_tools != stated.add_tools {
        let names = (!left.add_tools.is_empty()).then(|| left.add_tools.keys().collect());
        edit_tools(section, ADD_TOOLS, names);
    }
    if left.mounts != stated.mounts {
        edit_mounts(section, left.mounts.as_deref());
    }
    if left.hosts != stated.hosts {
        let kept = left.hosts.as_ref();
        let keep = |text: &str| {
            text.parse::<HostRule>().is_ok_and(|rule| kept.is_some_and(|kept| kept.contains(&rule)))
        };
        edit_list(section, "hosts", kept.is_some(), keep);
    }
    if left.secrets != stated.secrets {
        let kept = left.secrets.as_ref();
        let keep = |text: &str| kept.is_some_and(|kept| kept.contains(text));
        edit_list(section, "secrets", kept.is_some(), keep);
    }
    edit_limits(section, &stated.limits, &left.limits);
}

/// Keeps only these names; `None` = the key is removed.
fn edit_tools(section: &mut dyn TableLike, key: &str, names: Option<BTreeSet<&ToolName>>) {
    let keep = |text: &str| names.iter().flatten().any(|name| name.as_str() == text);
    let table = section.get_mut(key).filter(|item| item.is_table_like());
    match table.and_then(Item::as_table_like_mut) {
        Some(table) if names.is_some() => {
            let all: Vec<String> = table.iter().map(|(name, _)| name.to_owned()).collect();
            all.iter().filter(|name| !keep(name)).for_each(|name| drop(table.remove(name)));
            even_out(section.get_mut(key));
        }
        Some(_) | None => edit_list(section, key, names.is_some(), keep),
    }
}

/// Removes from a list the entries that `keep` rejects; with `stays = false`, removes the whole list.
fn edit_list(section: &mut dyn TableLike, key: &str, stays: bool, keep: impl Fn(&str) -> bool) {
    match section.get_mut(key).and_then(Item::as_array_mut).filter(|_| stays) {
        Some(array) => remove_entries(array, |value| !value.as_str().is_some_and(&keep)),
        None => drop(section.remove(key)),
    }
}

/// Removes from a section the mounts that `left` lacks; `None` removes the key.
fn edit_mounts(section: &mut dyn TableLike, left: Option<&[MountSpec]>) {
    let Some(left) = left else { return drop(section.remove("mounts")) };
    let found = |path: Option<&str>| {
        let path = path.map(|path| path.strip_suffix('/').unwrap_or(path));
        left.iter().find(|mount| path == Some(mount.guest.as_str()))
    };
    let Some(item) = section.get_mut("mounts") else { return };
    if let Some(tables) = item.as_array_of_tables_mut() {
        tables.retain(|table| found(table.get("path").and_then(Item::as_str)).is_some());
        for table in tables.iter_mut() {
            if let Some(mount) = found(table.get("path").and_then(Item::as_str)) {
                super::edit::write_mount(table, mount);
            }
        }
    } else if let Some(array) = item.as_array_mut() {
        let path = |value: &Value| {
            let table = value.as_inline_table()?;
            table.get("path").and_then(Value::as_str).map(str::to_owned)
        };
        remove_entries(array, |value| found(path(value).as_deref()).is_none());
        for value in array.iter_mut() {
            let mount = found(path(value).as_deref());
            if let (Some(table), Some(mount)) = (value.as_inline_table_mut(), mount) {
                super::edit::write_mount(table, mount);
            }
        }
    }
}

/// Removes from a section the limits that `left` lacks.
fn edit_limits(section: &mut dyn TableLike, stated: &LimitsRequest, left: &LimitsRequest) {
    let gone = |row: &&belljar_policy::LimitRow| {
        stated.get(row.key).is_some() && left.get(row.key).is_none()
    };
    let Some(table) = section.get_mut("limits").and_then(Item::as_table_like_mut) else { return };
    LIMITS.iter().filter(gone).for_each(|row| drop(table.remove(row.key)));
    if table.is_empty() {
        section.remove("limits");
    } else {
        even_out(section.get_mut("limits"));
    }
}

/// Restores the white space around the entries of a one-line table.
fn even_out(item: Option<&mut Item>) {
    if let Some(table) = item.and_then(Item::as_inline_table_mut) {
        super::edit::tidy_table(table);
    }
}

/// Removes entries of a list, each with the comments before the entry and on its line. A comment on the
/// previous entry's line stays.
fn remove_entries(array: &mut Array, goes: impl Fn(&Value) -> bool) {
    let mut at = 0;
    while let Some(value) = array.get(at) {
        if !goes(value) {
            at += 1;
            continue;
        }
        let gone = raw_text(value.decor().prefix());
        array.remove(at);
        let next = array.get(at).map_or_else(
            || raw_text(Some(array.trailing())),
            |value| raw_text(value.decor().prefix()),
        );
        let kept = match (gone.split_once('\n'), next.split_once('\n')) {
            (Some((before, _)), Some((_, after))) => format!("{before}\n{after}"),
            _ if at == 0 && !array.is_empty() => gone,
            _ => next,
        };
        match array.get_mut(at) {
            Some(value) => value.decor_mut().set_prefix(kept),
            None => array.set_trailing(kept),
        }
    }
}

fn raw_text(raw: Option<&RawString>) -> String {
    raw.and_then(RawString::as_str).unwrap_or_default().to_owned()
}
