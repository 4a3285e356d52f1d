//! The `tools` field in all its shapes, and its relatives.
//!
//! Every shape ends as one question to the policy: which tools, if not all that the grants
//! give, and which of them at most with a person's word. What cannot be read asks for nothing.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{Permission, Shown, ToolName};

use super::host_tools::SPAWN_AGENT;
use super::tools::{KnownTools, Meaning, Written};
use super::{Translated, Unavailable};
use crate::Dialect;
use crate::diagnostic::Place;
use crate::fields::{Fields, boolean, shown};
use crate::yaml::{Key, Node, Value};

/// The most names in one field. The longest list in public files has about 60.
const MAX_TOOLS: usize = 500;

/// What the file says about tools.
#[derive(Debug, Default)]
pub(super) struct ToolList {
    /// `None` = no narrowing.
    pub(super) tools: Option<BTreeSet<ToolName>>,
    /// Tools with less than the grants may give them.
    pub(super) at_most: BTreeMap<ToolName, Permission>,
    /// Agents named in `Agent(a, b)`.
    pub(super) agents: Option<Vec<String>>,
    pub(super) as_written: Option<Vec<String>>,
    pub(super) translated: Vec<Translated>,
    pub(super) unknown: Vec<String>,
    pub(super) unavailable: Vec<Unavailable>,
}

/// One name with its place.
struct Entry {
    text: String,
    at: Place,
}

struct Reader<'r, 'f, 'p, 'k> {
    fields: &'r mut Fields<'f, 'p>,
    dialect: Dialect,
    known: &'k KnownTools,
    list: ToolList,
}

impl ToolList {
    pub(super) fn read(fields: &mut Fields<'_, '_>, dialect: Dialect, known: &KnownTools) -> Self {
        let mut reader = Reader { fields, dialect, known, list: Self::default() };
        reader.allow("tools");
        reader.allow("allowedTools");
        reader.deny("disallowedTools");
        if dialect != Dialect::Canonical {
            reader.permission();
        }
        let mut list = reader.list;
        if let Some(tools) = &mut list.tools {
            tools.retain(|tool| list.at_most.get(tool) != Some(&Permission::Deny));
        }
        list
    }
}

impl Reader<'_, '_, '_, '_> {
    /// A field that lists what is allowed. A second such field narrows the first.
    fn allow(&mut self, name: &'static str) {
        let Some((key, node)) = self.fields.take(name) else { return };
        let tools = match &node.value {
            // Left unread, the last entries would not take away what they name.
            Value::Map(entries) if entries.len() > MAX_TOOLS => {
                self.too_many(name, &key);
                None
            }
            Value::Map(entries) => self.switches(entries),
            _ => self.names(name, &key, &node).map(|entries| self.allowed(entries)),
        };
        // `None` here means unreadable, which is nothing, never everything.
        let tools = tools.unwrap_or_else(|| Some(BTreeSet::new()));
        self.list.tools = match (self.list.tools.take(), tools) {
            (Some(a), Some(b)) => Some(a.intersection(&b).cloned().collect()),
            (a, b) => a.or(b),
        };
    }

    /// The names of a list, a comma-separated text, or one name.
    fn names(&mut self, name: &str, key: &Key, node: &Node) -> Option<Vec<Entry>> {
        let mut entries = Vec::new();
        match &node.value {
            Value::Null => {
                let message = format!("`{name}` is empty, which means no tools");
                let hint = "write `[]`, or remove the line to take all that the grants give";
                self.fields.findings.warning(key.at, "empty-tools", message, Some(hint.to_owned()));
            }
            Value::Text(text) => entries.extend(split_names(text, node.at)),
            Value::List(items) => {
                for item in items {
                    match item.text() {
                        Some(text) => entries.extend(split_names(text, item.at)),
                        None => {
                            let message = format!("`{name}` holds {}, not a name", item.kind());
                            self.fields.findings.error(item.at, "bad-field", message);
                        }
                    }
                }
            }
            Value::Bool(_) | Value::Int(_) | Value::Float | Value::Map(_) => {
                let message = format!("`{name}` is {}, not a list of names", shown(node));
                let hint = "write `[file_read, file_search]`, or `[]` for none";
                self.fields.findings.error_hint(key.at, "bad-field", message, hint);
                return None;
            }
        }
        if entries.len() > MAX_TOOLS {
            self.too_many(name, key);
            return None;
        }
        let written = entries.iter().map(|entry| entry.text.clone());
        self.list.as_written.get_or_insert_default().extend(written);
        Some(entries)
    }

    fn too_many(&mut self, name: &str, key: &Key) {
        let message = format!("`{name}` has more than {MAX_TOOLS} names");
        self.fields.findings.error(key.at, "bad-field", message);
    }

    fn allowed(&mut self, entries: Vec<Entry>) -> Option<BTreeSet<ToolName>> {
        let mut tools = BTreeSet::new();
        let mut all = false;
        for entry in entries {
            match self.resolve(&entry) {
                Meaning::All => all = true,
                Meaning::Tools(found, _) => tools.extend(found),
                Meaning::Unavailable(_) | Meaning::Unknown => {}
            }
        }
        (!all).then_some(tools)
    }

    /// A map from name to on or off. With something on, or something that may have been meant
    /// so, what is not named is off; with only offs, the rest is as granted.
    fn switches(&mut self, entries: &[(Key, Node)]) -> Option<Option<BTreeSet<ToolName>>> {
        let mut on = Vec::new();
        let mut off = Vec::new();
        let mut unreadable = false;
        for (key, node) in entries {
            let entry = Entry { text: key.text.clone(), at: key.at };
            let word = node.text().map(str::to_ascii_lowercase);
            match (boolean(node), word.as_deref()) {
                (Some(true), _) | (_, Some("allow")) => on.push(entry),
                (_, Some("ask")) => {
                    self.cap(&entry, Permission::Ask);
                    on.push(entry);
                }
                (Some(false), _) | (_, Some("deny")) => off.push(entry),
                _ => {
                    let name = Shown::clipped(&entry.text, 60);
                    let message = format!("`{name}` is {}, neither on nor off: off", shown(node));
                    self.fields.findings.warning(key.at, "bad-tool-switch", message, None);
                    unreadable = true;
                    off.push(entry);
                }
            }
        }
        let written = on.iter().map(|entry| entry.text.clone());
        self.list.as_written.get_or_insert_default().extend(written);
        let nothing = off.iter().any(|entry| entry.text == "*");
        let named = unreadable || !on.is_empty();
        let tools = self.allowed(on);
        for entry in &off {
            self.cap(entry, Permission::Deny);
        }
        Some(if named { tools } else { nothing.then(BTreeSet::new) })
    }

    fn deny(&mut self, name: &'static str) {
        let Some((key, node)) = self.fields.take(name) else { return };
        let written = self.list.as_written.take();
        let entries = self.names(name, &key, &node);
        self.list.as_written = written;
        for entry in entries.unwrap_or_default() {
            if Written::of(&entry.text).name == "*" {
                self.list.tools = Some(BTreeSet::new());
            }
            self.cap(&entry, Permission::Deny);
        }
    }

    /// OpenCode's `permission`: one word for all, or a map from tool to a word or to a map of
    /// patterns. Patterns are not enforced here, so the strictest word of them holds.
    ///
    /// Within the field the last match wins; what another field took away stays away.
    fn permission(&mut self) {
        let Some((key, node)) = self.fields.take("permission") else { return };
        let elsewhere = std::mem::take(&mut self.list.at_most);
        self.permissions(&key, &node);
        for (tool, most) in elsewhere {
            let now = self.list.at_most.entry(tool).or_insert(most);
            *now = (*now).min(most);
        }
    }

    fn permissions(&mut self, key: &Key, node: &Node) {
        match &node.value {
            Value::Map(entries) => {
                if entries.len() > MAX_TOOLS {
                    return self.too_many("permission", key);
                }
                for (key, node) in entries {
                    self.permission_of(key, node);
                }
            }
            Value::Null => {}
            _ => match word(node) {
                Some(Permission::Allow) => {}
                Some(most) => self.cap_all(most),
                None => self.unreadable_permission(key, node),
            },
        }
    }

    fn permission_of(&mut self, key: &Key, node: &Node) {
        let most = match &node.value {
            Value::Map(patterns) => {
                let words = patterns.iter().map(|(_, node)| word(node));
                let words = words.map(|word| word.unwrap_or(Permission::Deny));
                words.min().unwrap_or(Permission::Deny)
            }
            _ => match word(node) {
                Some(most) => most,
                None => return self.unreadable_permission(key, node),
            },
        };
        if key.text == "*" {
            if most != Permission::Allow {
                self.cap_all(most);
            }
            return;
        }
        let entry = Entry { text: key.text.clone(), at: key.at };
        // The last match wins: an earlier `*` no longer holds for this one.
        self.set_cap(&entry, most);
    }

    fn unreadable_permission(&mut self, key: &Key, node: &Node) {
        let name = Shown::clipped(&key.text, 60);
        let message = format!("`{name}` is {}, none of `allow`, `ask`, `deny`", shown(node));
        self.fields.findings.error(key.at, "bad-field", message);
    }

    fn cap_all(&mut self, most: Permission) {
        for tool in self.known.iter() {
            self.list.at_most.insert(tool.clone(), most);
        }
        if most == Permission::Deny {
            self.list.tools.get_or_insert_default();
        }
    }

    /// Lowers what a tool may have at most.
    fn cap(&mut self, entry: &Entry, most: Permission) {
        for tool in self.named(entry) {
            let now = self.list.at_most.entry(tool).or_insert(most);
            *now = (*now).min(most);
        }
    }

    fn set_cap(&mut self, entry: &Entry, most: Permission) {
        for tool in self.named(entry) {
            self.list.at_most.insert(tool, most);
        }
    }

    /// The tools behind a name that takes away: a scope does not matter, the whole goes.
    fn named(&self, entry: &Entry) -> Vec<ToolName> {
        let written = Written { name: Written::of(&entry.text).name, scope: None };
        let mut tools = match written.meaning(self.dialect, self.known) {
            Meaning::Tools(tools, _) => tools,
            Meaning::All | Meaning::Unavailable(_) | Meaning::Unknown => Vec::new(),
        };
        // OpenCode's `edit` stands for everything that changes files.
        if written.name == "edit" && self.dialect == Dialect::OpenCode {
            let others = ["file_write", "notebook_edit"];
            tools.extend(others.into_iter().filter_map(|name| ToolName::new(name).ok()));
        }
        tools
    }

    fn resolve(&mut self, entry: &Entry) -> Meaning {
        let written = Written::of(&entry.text);
        let meaning = written.meaning(self.dialect, self.known);
        let shown = Shown::clipped(&entry.text, 80).to_string();
        match &meaning {
            Meaning::All => {}
            Meaning::Tools(tools, limits) => {
                if let (Some(scope), [tool]) = (written.scope, tools.as_slice())
                    && tool.as_str() == SPAWN_AGENT
                    && scope != "*"
                {
                    let agents = scope.split(',').map(|name| name.trim().to_owned());
                    self.list.agents.get_or_insert_default().extend(agents);
                }
                if tools.iter().any(|tool| tool.as_str() != written.name) {
                    self.list.translated.push(Translated {
                        written: shown,
                        tools: tools.clone(),
                        limits: *limits,
                    });
                }
            }
            Meaning::Unavailable(why) => {
                let message = format!("tool `{shown}` is not available: {why}");
                self.fields.findings.warning(entry.at, "unavailable-tool", message, None);
                self.list.unavailable.push(Unavailable { name: shown, why: why.clone() });
            }
            Meaning::Unknown => self.unknown(entry, written.name, shown),
        }
        meaning
    }

    fn unknown(&mut self, entry: &Entry, name: &str, shown: String) {
        let message = format!("tool `{shown}` does not exist");
        let hint = self.known.suggest(name).map(|word| format!("did you mean `{word}`?"));
        if self.dialect == Dialect::Canonical {
            let hint = hint.unwrap_or_else(|| "`belljar tools list` shows all tools".to_owned());
            self.fields.findings.error_hint(entry.at, "unknown-tool", message, hint);
        } else {
            self.fields.findings.warning(entry.at, "unknown-tool", message, hint);
            self.list.unknown.push(shown);
        }
    }
}

fn word(node: &Node) -> Option<Permission> {
    match node.text()?.trim().to_ascii_lowercase().as_str() {
        "allow" => Some(Permission::Allow),
        "ask" => Some(Permission::Ask),
        "deny" => Some(Permission::Deny),
        _ => None,
    }
}

/// Cuts at commas that stand outside parentheses.
fn split_names(text: &str, at: Place) -> Vec<Entry> {
    let mut depth = 0_usize;
    let parts = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| Entry { text: part.to_owned(), at }).collect()
}
