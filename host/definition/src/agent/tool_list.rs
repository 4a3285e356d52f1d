//! Reads the `tools` field in all its shapes, and the fields related to `tools`.
//!
//! Every shape ends as one question to the policy: which tools (all granted tools, or a list), and which
//! tools only with a person's approval. For example, `tools: [Read, "!Bash"]` keeps `Read` and denies `Bash`.
//! An unreadable value asks for no tools.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{Permission, Shown, ToolName};

use super::builtin_tools::SPAWN_AGENT;
use super::listed::{Listed, listed};
use super::names::{
    Behind, Entry, program_tool, split_marks, split_names, split_words, tools_behind,
};
use super::says::Says;
use super::tools::{KnownTools, Meaning, Written};
use super::{Decider, Translated, Unavailable, own, taking};
use crate::Dialect;
use crate::diagnostic::Position;
use crate::fields::{Fields, boolean, shown};
use crate::yaml::{Key, Node, Value};

/// The most names in one field: 500, because the longest list in public files has about 60.
pub(super) const MAX_TOOLS: usize = 500;

/// The most tools matched by all names of one file, a tool counted once per name: enough for ten patterns
/// that match the whole of the largest catalogue. A file with more matches only serves to cost time.
const MAX_MEANT: usize = 100_000;

/// The file's statements about tools.
#[derive(Debug, Default)]
pub(super) struct ToolList {
    /// The tools that remain; `None` = all granted tools.
    pub(super) tools: Option<BTreeSet<ToolName>>,
    /// Tools with an upper bound on the permission.
    pub(super) at_most: BTreeMap<ToolName, Permission>,
    /// The upper bound for tools that `at_most` does not name.
    pub(super) others: Option<Permission>,
    /// Which field lowered which tools.
    pub(super) deciders: Vec<Decider>,
    /// Names that lower a permission and may match tools that are installed later.
    pub(super) open: Vec<(String, Permission)>,
    /// Agents named in `Agent(a, b)`.
    pub(super) agents: Option<Vec<String>>,
    pub(super) as_written: Option<Vec<String>>,
    pub(super) translated: Vec<Translated>,
    pub(super) unknown: Vec<String>,
    pub(super) unavailable: Vec<Unavailable>,
    /// Entries that deny tools and cannot be read.
    pub(super) unclear: Vec<Unavailable>,
    /// The field that forbids every change, for example `read_only`, and the line of the field.
    pub(super) read_only: Option<(String, u32)>,
}

pub(super) struct ToolListReader<'r, 'f, 'p, 'k> {
    pub(super) fields: &'r mut Fields<'f, 'p>,
    pub(super) dialect: Dialect,
    pub(super) known: &'k KnownTools,
    pub(super) list: ToolList,
    /// The name and line of the field that is being read.
    pub(super) field: (String, u32),
    /// The count of tools matched so far, bounded by [`MAX_MEANT`].
    meant: usize,
    /// Whether the list that is being read contains another list.
    odd_items: bool,
}

/// The tools that a list of allowed names has granted so far.
#[derive(Default)]
struct Given {
    tools: BTreeSet<ToolName>,
    all: bool,
    /// Whether every later name denies a tool.
    lasts: bool,
    /// Whether an entry denied tools ambiguously, so that a later name may be allowed or denied.
    left_out: bool,
    /// Tools with a scope, for example `Bash(git *)`.
    scoped: Vec<Entry>,
    /// Names that were read as allowed.
    named: Vec<Entry>,
}

impl ToolList {
    pub(super) fn read(fields: &mut Fields<'_, '_>, dialect: Dialect, known: &KnownTools) -> Self {
        let field = (String::new(), 0);
        let list = Self::default();
        let (meant, odd_items) = (0, false);
        let mut reader = ToolListReader { fields, dialect, known, list, field, meant, odd_items };
        reader.allow("tools");
        reader.allow("allowedTools");
        reader.deny("disallowedTools");
        reader.permission("permission");
        reader.permission("permissions");
        let mut list = reader.list;
        list.settle();
        list
    }

    /// Removes the denied tools from the list.
    pub(super) fn settle(&mut self) {
        let (at_most, others) = (&self.at_most, self.others);
        if let Some(tools) = &mut self.tools {
            tools.retain(|tool| at_most.get(tool).copied().or(others) != Some(Permission::Deny));
        }
    }

    /// Lowers the bound of each named tool, and with `others` that of all other tools. A bound never rises.
    pub(super) fn lower(
        &mut self,
        (field, line): &(String, u32),
        named: &BTreeMap<ToolName, Permission>,
        others: Option<Permission>,
    ) {
        lower(&mut self.at_most, &mut self.others, named, others);
        match self.deciders.iter_mut().find(|it| it.field == *field && it.line == *line) {
            Some(same) => lower(&mut same.named, &mut same.others, named, others),
            None => self.deciders.push(Decider {
                field: field.clone(),
                line: *line,
                named: named.clone(),
                others,
            }),
        }
    }

    /// Denies all tools, because a field that narrows them cannot be read. The agent is blocked, because its
    /// author's intent is unknown.
    pub(super) fn lose(&mut self, field: &str) {
        let why = format!("`{field}` cannot be read, so it gets no tools");
        self.lose_by(field, why);
    }

    /// Denies all tools because of a word that cannot be parsed.
    pub(super) fn lose_by(&mut self, word: &str, why: String) {
        self.tools = Some(BTreeSet::new());
        self.unclear.push(Unavailable { name: word.to_owned(), why });
        self.as_written.get_or_insert_default().push(word.to_owned());
    }
}

impl ToolListReader<'_, '_, '_, '_> {
    /// Reads a field that lists allowed tools. A second such field narrows the first.
    fn allow(&mut self, name: &'static str) {
        // Several spellings of one field may occur in one file.
        while let Some((key, node)) = self.fields.take(name) {
            self.field = (name.to_owned(), key.at.line);
            let tools = match &node.value {
                // The limit refuses the whole map: unread entries at its end might deny tools.
                Value::Map(entries) if entries.len() > MAX_TOOLS => {
                    self.too_many(name, &key);
                    None
                }
                Value::Map(entries) if entries.is_empty() => {
                    let message = format!("`{name}` is empty, which means no tools");
                    self.fields.findings.warning(key.at, "empty-tools", message, None);
                    Some(Some(BTreeSet::new()))
                }
                Value::Map(entries) => Some(self.switches(entries)),
                // `enable_tools: true` is valid, but `tools` must be a list.
                Value::Bool(on) if name != "tools" => Some((!on).then(BTreeSet::new)),
                _ => self.names(name, &key, &node).map(|entries| self.allowed(entries)),
            };
            let Some(tools) = tools else {
                // An unreadable field allows no tools, never all.
                self.list.lose(name);
                continue;
            };
            self.list.tools = match (self.list.tools.take(), tools) {
                (Some(a), Some(b)) => Some(a.intersection(&b).cloned().collect()),
                (a, b) => a.or(b),
            };
        }
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
            Value::Text(text) => {
                entries.extend(split_names(text, node.at));
                if entries.is_empty() {
                    let message = format!("`{name}` names nothing, which means no tools");
                    self.fields.findings.warning(key.at, "empty-tools", message, None);
                }
            }
            Value::List(items) => {
                for item in items {
                    match item.text() {
                        Some(text) => entries.extend(split_names(text, item.at)),
                        None => self.not_a_name(name, item, &mut entries)?,
                    }
                }
            }
            Value::Bool(_) | Value::Int(_) | Value::Float | Value::Map(_) => {
                let message = format!("`{name}` is {}, not a list of names", shown(node));
                let hint = "write `[file_read, file_search]`, or `[]` for none".to_owned();
                self.fields.fault(key.at, "bad-field", message, Some(hint));
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

    /// Handles an item that is not text, for example the map in an unquoted `Bash(git diff: *)`. In a list of
    /// allowed tools, such an item grants nothing and denies each key that is not plainly switched on; a list
    /// of forbidden tools becomes unreadable.
    fn not_a_name(&mut self, name: &str, item: &Node, entries: &mut Vec<Entry>) -> Option<()> {
        let message = format!("`{name}` holds {}, not a name", item.kind());
        self.fields.fault(item.at, "bad-field", message, None);
        // Every other list forbids tools.
        if !matches!(name, "tools" | "allowedTools") {
            return None;
        }
        self.odd_items |= matches!(item.value, Value::List(_));
        let switches = match &item.value {
            Value::Map(switches) => switches.as_slice(),
            _ => &[],
        };
        for (key, node) in switches {
            let (text, at) = (key.text.clone(), key.at);
            // `except: Bash`.
            if taking::takes_by_itself(&text) {
                return None;
            }
            match Says::of(node) {
                // `Write: always` may be a scope or a switch.
                Says::Yes | Says::Nothing => {}
                Says::No => entries.push(Entry { text: format!("!{text}"), at }),
                _ if tools_behind(&text, self.known).is_known => {
                    self.take_away(&Entry { text, at });
                }
                _ => entries.push(Entry { text: format!("{text} ({})", item.kind()), at }),
            }
        }
        let shown = switches.first().map_or("", |(key, _)| key.text.as_str());
        let name = format!("{}…", Shown::clipped(shown, 60));
        let why = format!("it is {}, not a name", item.kind());
        self.list.as_written.get_or_insert_default().push(name.clone());
        self.list.unavailable.push(Unavailable { name, why });
        Some(())
    }

    pub(super) fn too_many(&mut self, name: &str, key: &Key) {
        let message = format!("`{name}` has more than {MAX_TOOLS} names");
        self.fields.findings.error(key.at, "bad-field", message);
    }

    fn allowed(&mut self, entries: Vec<Entry>) -> Option<BTreeSet<ToolName>> {
        let mut given = Given::default();
        let alone = entries.len() == 1;
        for entry in entries {
            let read = listed(&entry.text, |name| tools_behind(name, self.known).is_known);
            match read {
                Listed::All => given.all = true,
                Listed::Nothing if alone => {}
                // `no, Bash`.
                Listed::Nothing => self.not_understood(&entry),
                Listed::Name(_) if given.lasts => self.take_away(&entry),
                Listed::Name(_) if given.left_out => self.not_understood(&entry),
                Listed::Name(text) => {
                    let entry = Entry { text, at: entry.at };
                    self.give(&entry, &mut given);
                    given.named.push(entry);
                }
                Listed::Without { all, given: named, names, lasts } => {
                    given.all |= all;
                    given.lasts |= lasts;
                    // In `no Bash, Write` the second name is ambiguous; `!Bash` is plain.
                    given.left_out |=
                        entry.text.contains(' ') && !lasts && !entry.text.contains(':');
                    let named = named.into_iter().map(|text| Entry { text, at: entry.at });
                    named.for_each(|entry| self.give(&entry, &mut given));
                    let names = names.into_iter().map(|text| Entry { text, at: entry.at });
                    names.for_each(|entry| self.take_away(&entry));
                }
                Listed::Unclear => self.not_understood(&entry),
            }
        }
        if given.all {
            // A scoped tool is less than the whole tool, which a word for all tools would grant.
            given.scoped.iter().for_each(|entry| self.take_away(entry));
            self.besides_all(&given.named);
            // `[all, [except, Bash]]`.
            if std::mem::take(&mut self.odd_items) {
                let field = self.field.0.clone();
                self.list.lose(&field);
            }
        }
        (!given.all).then_some(given.tools)
    }

    /// Checks the names beside a word for all tools, which grant nothing more. An unknown name that contains
    /// a tool's name or is not a plain name (`Bash ✖`, `bash_off`) was meant to deny something, so the agent
    /// is blocked.
    fn besides_all(&mut self, named: &[Entry]) {
        for entry in named.iter().filter(|it| !tools_behind(&it.text, self.known).is_known) {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-./*:@".contains(c);
            let is_name = entry.text.chars().all(plain);
            if !is_name || taking::speaks_in_name(&entry.text) {
                self.not_understood(entry);
            }
        }
    }

    fn give(&mut self, entry: &Entry, given: &mut Given) {
        match self.resolve(entry) {
            Meaning::All => given.all = true,
            Meaning::Tools(found, _) => given.tools.extend(found),
            Meaning::Unavailable(_) if entry.text.contains('(') => given.scoped.push(entry.clone()),
            Meaning::Unavailable(_) | Meaning::Unknown => {}
        }
    }

    /// Reads a map from names to on or off. With at least one entry on, or possibly on, every unnamed tool is
    /// off; with only entries that are off, all other tools stay as granted.
    fn switches(&mut self, entries: &[(Key, Node)]) -> Option<BTreeSet<ToolName>> {
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
        for entry in off.iter().filter(|entry| entry.text != "*") {
            // An unnamed tool is already off here, so an unknown name costs nothing.
            if named && tools.is_some() && !tools_behind(&entry.text, self.known).is_known {
                continue;
            }
            self.take_away(entry);
        }
        if named { tools } else { nothing.then(BTreeSet::new) }
    }

    fn deny(&mut self, name: &'static str) {
        while let Some((key, node)) = self.fields.take(name) {
            self.field = (name.to_owned(), key.at.line);
            self.deny_all_of(name, &key, &node);
        }
    }

    /// Denies the tools that a list names.
    pub(super) fn deny_all_of(&mut self, name: &str, key: &Key, node: &Node) {
        match Says::of(node) {
            // For example `disallowedTools: none` or `no_tools: false`.
            Says::No => return,
            Says::Yes => {
                return self.take_away(&Entry { text: "*".to_owned(), at: key.at });
            }
            _ => {}
        }
        let mut entries = Vec::new();
        for entry in self.taking(key, node, name).unwrap_or_default() {
            entries.extend(self.words_of(entry));
            // A text without commas can be thousands of words.
            if entries.len() > MAX_TOOLS {
                self.too_many(name, key);
                return self.list.lose(name);
            }
        }
        entries.iter().for_each(|entry| self.take_away(entry));
    }

    /// The names in a list that denies tools. An unreadable list denies all tools.
    pub(super) fn taking(&mut self, key: &Key, node: &Node, name: &str) -> Option<Vec<Entry>> {
        let written = self.list.as_written.take();
        let entries = match &node.value {
            // An empty list of denials denies nothing.
            Value::Null => Some(Vec::new()),
            _ => self.names(name, key, node),
        };
        self.list.as_written = written;
        if entries.is_none() {
            self.list.lose(name);
        }
        entries
    }

    /// Splits an entry that is several names with blanks between them, and turns a word for all tools into
    /// `*`. Any other entry with several words blocks the agent, because the tools to deny are unknown.
    fn words_of(&mut self, entry: Entry) -> Vec<Entry> {
        const ALL: [&str; 4] = ["all", "any", "every", "everything"];
        let at = entry.at;
        if ALL.iter().any(|word| entry.text.eq_ignore_ascii_case(word)) {
            return vec![Entry { text: "*".to_owned(), at }];
        }
        let sides = split_marks(&entry.text, at);
        let is_known = |part: &Entry| tools_behind(&part.text, self.known).is_known;
        // `Bash/Write` is two names, but `edit/editFiles` is one.
        let of_program = || program_tool(&entry.text);
        if (2..=MAX_TOOLS).contains(&sides.len()) && sides.iter().all(is_known) && !of_program() {
            return sides;
        }
        let parts = split_words(&entry.text, at);
        // `Bash (git *)` is a name with its scope.
        let is_scope = |part: &Entry| part.text.starts_with('(');
        if parts.len() > 1 && !parts.iter().any(is_scope) {
            let few = parts.len() <= MAX_TOOLS;
            if few && parts.iter().all(|part| tools_behind(&part.text, self.known).is_known) {
                return parts;
            }
            let name = Shown::clipped(&entry.text, 60).to_string();
            let why = "it names several things, and not all are tools".to_owned();
            if !tools_behind(&entry.text, self.known).is_known {
                self.list.lose_by(&name, why);
                return Vec::new();
            }
        }
        vec![entry]
    }

    /// Denies the whole tool of an entry, whatever the scope: `Bash(rm *)` denies `Bash`.
    fn take_away(&mut self, entry: &Entry) {
        self.tell_whole(entry);
        if Written::of(&entry.text).name == "*" {
            self.list.tools = Some(BTreeSet::new());
        }
        self.cap(entry, Permission::Deny);
    }

    /// Reports that a part of a tool cannot be denied alone: `Bash(rm *)` denies the whole shell, because the
    /// words of a command do not determine its effects.
    fn tell_whole(&mut self, entry: &Entry) {
        let written = Written::of(&entry.text);
        if written.scope.is_none_or(|scope| matches!(scope.trim(), "" | "*")) {
            return;
        }
        let found = tools_behind(&entry.text, self.known);
        // A name that only other programs' tables have matches only tools in `beside`.
        let taken = if found.tools.is_empty() { &found.beside } else { &found.tools };
        let tools: Vec<String> = taken.iter().map(|tool| format!("`{tool}`")).collect();
        if !tools.is_empty() {
            let name = Shown::clipped(&entry.text, 60).to_string();
            let message = format!(
                "`{name}` takes all of {} away: a part of a tool cannot be denied alone",
                tools.join(", ")
            );
            self.fields.findings.note(entry.at, "whole-tool", message);
        }
    }

    /// Lowers the upper bound of a tool's permission.
    pub(super) fn cap(&mut self, entry: &Entry, most: Permission) {
        // The list is lost and the agent blocked, so later entries change nothing.
        if self.meant > MAX_MEANT {
            return;
        }
        let found = tools_behind(&entry.text, self.known);
        self.meant = self.meant.saturating_add(found.tools.len());
        if self.meant > MAX_MEANT {
            let field = self.field.0.clone();
            self.list.lose(&field);
        }
        self.known_or_blocked(entry, &found, most);
        self.keep_open(entry, &found, most);
        let tools = found.tools.into_iter().chain(found.beside);
        let named: BTreeMap<_, _> = tools.map(|tool| (tool, most)).collect();
        // A word for all tools includes those installed later.
        let others = (entry.text == "*").then_some(most);
        if !named.is_empty() || others.is_some() {
            self.list.lower(&self.field, &named, others);
        }
    }

    /// Stores a name that may match more tools after later installations.
    pub(super) fn keep_open(&mut self, entry: &Entry, found: &Behind, most: Permission) {
        let all = entry.text == "*";
        if !all && (entry.text.contains('*') || !found.is_known) && most != Permission::Allow {
            self.list.open.push((entry.text.clone(), most));
        }
    }

    /// The tool that was likely meant. The search compares the name with every tool, so a finding that is
    /// only counted gets no suggestion.
    fn suggestion(&self, name: &str) -> Option<String> {
        let near = (!self.fields.findings.is_full()).then(|| self.known.suggest(name)).flatten();
        near.map(|word| format!("did you mean `{word}`?"))
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
        let message = own::does_not_exist(&shown);
        let hint = self.suggestion(name);
        if self.dialect == Dialect::Canonical {
            let hint = hint.unwrap_or_else(|| own::LIST.to_owned());
            self.fields.findings.error_hint(entry.at, own::UNKNOWN, message, hint);
        } else {
            self.fields.findings.warning(entry.at, own::UNKNOWN, message, hint);
            self.list.unknown.push(shown);
        }
    }
}

fn lower(
    at_most: &mut BTreeMap<ToolName, Permission>,
    rest: &mut Option<Permission>,
    named: &BTreeMap<ToolName, Permission>,
    others: Option<Permission>,
) {
    let both = |a: Option<Permission>, b: Option<Permission>| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    // A tool that only `at_most` names keeps its permission, unless the new field has a rule for
    // all unnamed tools.
    let before = at_most.keys().filter(|_| others.is_some());
    let names: BTreeSet<ToolName> = before.chain(named.keys()).cloned().collect();
    for name in names {
        let before = at_most.get(&name).copied().or(*rest);
        let said = named.get(&name).copied().or(others);
        if let Some(most) = both(before, said) {
            at_most.insert(name, most);
        }
    }
    *rest = both(*rest, others);
}

/// Reports a narrowing field that could not be parsed, and the field's line.
pub(super) fn say_lost(field: &str, at: Position, fields: &mut Fields<'_, '_>) {
    let message = format!("`{field}` cannot be read here, so the agent gets no tools");
    let hint = "correct the YAML above; every field begins its line".to_owned();
    fields.findings.warning(at, "lost-field", message, Some(hint));
}
