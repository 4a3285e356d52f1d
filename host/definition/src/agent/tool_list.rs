//! Reads the `tools` field in all its shapes, and the fields related to `tools`.
//!
//! Every shape ends as one question to the policy: which tools (all granted tools, or a list), and which
//! tools only with a person's approval. For example, `tools: [Read, "!Bash"]` keeps `Read` and denies `Bash`.
//! An unreadable value asks for no tools.

mod merging;

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{CallPermission, ShownText, ToolName};

use super::builtin_tools::SPAWN_AGENT;
use super::listed::{ListEntryMeaning, parse_entry};
use super::names::{
    NameEntry, NamedTools, find_named_tools, program_tool, split_marks, split_names, split_words,
};
use super::says::ValueMeaning;
use super::tools::{KnownTools, ToolNameMeaning, WrittenToolName};
use super::{NarrowingField, ToolTranslation, UnavailableTool, own, taking};
use crate::Dialect;
use crate::diagnostic::FilePosition;
use crate::fields::{UnreadFields, parse_boolean, quote_value};
use crate::yaml::{YamlKey, YamlNode, YamlValue};
use merging::merge_lowest;

/// The most names in one field: 500, because the longest list in public files has about 60.
pub(super) const MAX_TOOLS: usize = 500;

/// The most tools that all names of a file may match together, a tool counted once for each name: ten
/// patterns may match the whole of the largest catalogue. A file with more matches only costs time.
const MAX_MEANT: usize = 100_000;

/// What a file says about tools, from all its fields.
#[derive(Debug, Default)]
pub(super) struct ToolList {
    /// The tools that remain; `None` = all granted tools.
    pub(super) tools: Option<BTreeSet<ToolName>>,
    /// Tools with an upper bound on the permission.
    pub(super) at_most: BTreeMap<ToolName, CallPermission>,
    /// The upper bound for tools that `at_most` does not name.
    pub(super) others: Option<CallPermission>,
    /// The fields that lowered permissions, each with the tools that it lowered.
    pub(super) deciders: Vec<NarrowingField>,
    /// Names that lower a permission and may also match tools that are installed later.
    pub(super) open: Vec<(String, CallPermission)>,
    /// Agents named in `Agent(a, b)`.
    pub(super) agents: Option<Vec<String>>,
    pub(super) as_written: Option<Vec<String>>,
    pub(super) translated: Vec<ToolTranslation>,
    pub(super) unknown: Vec<String>,
    pub(super) unavailable: Vec<UnavailableTool>,
    /// Entries that deny tools in a way that cannot be parsed.
    pub(super) unclear: Vec<UnavailableTool>,
    /// The field that forbids every change, for example `read_only`, and its line.
    pub(super) read_only: Option<(String, u32)>,
}

pub(super) struct ToolListReader<'r, 'f, 'p, 'k> {
    pub(super) fields: &'r mut UnreadFields<'f, 'p>,
    pub(super) dialect: Dialect,
    pub(super) known: &'k KnownTools,
    pub(super) list: ToolList,
    /// The name and line of the field that is being read.
    pub(super) field: (String, u32),
    /// How many tools were matched so far, bounded by [`MAX_MEANT`].
    meant: usize,
    /// Whether the list that is being read contains another list.
    odd_items: bool,
}

/// The tools that a list of allowed names has granted so far.
#[derive(Default)]
struct GivenTools {
    tools: BTreeSet<ToolName>,
    all: bool,
    /// Whether every later name denies a tool.
    lasts: bool,
    /// Whether an entry denied tools ambiguously, so the names after it may be allowed or denied.
    left_out: bool,
    /// Tools with a scope, for example `Bash(git *)`.
    scoped: Vec<NameEntry>,
    /// Names that were read as allowed.
    named: Vec<NameEntry>,
}

impl ToolList {
    /// Reads all fields about tools: the lists of allowed names first, then the denials.
    pub(super) fn from_fields(
        fields: &mut UnreadFields<'_, '_>,
        dialect: Dialect,
        known: &KnownTools,
    ) -> Self {
        let field = (String::new(), 0);
        let list = Self::default();
        let (meant, odd_items) = (0, false);
        let mut reader = ToolListReader { fields, dialect, known, list, field, meant, odd_items };
        reader.read_allowed("tools");
        reader.read_allowed("allowedTools");
        reader.read_denied("disallowedTools");
        reader.read_permission("permission");
        reader.read_permission("permissions");
        let mut list = reader.list;
        list.remove_denied();
        list
    }

    /// Removes the denied tools from the list.
    pub(super) fn remove_denied(&mut self) {
        let (at_most, others) = (&self.at_most, self.others);
        if let Some(tools) = &mut self.tools {
            tools
                .retain(|tool| at_most.get(tool).copied().or(others) != Some(CallPermission::Deny));
        }
    }

    /// Lowers the highest permission of each named tool, and with `others` of all other tools. Never raises.
    pub(super) fn lower_permissions(
        &mut self,
        (field, line): &(String, u32),
        named: &BTreeMap<ToolName, CallPermission>,
        others: Option<CallPermission>,
    ) {
        merge_lowest(&mut self.at_most, &mut self.others, named, others);
        match self.deciders.iter_mut().find(|it| it.field == *field && it.line == *line) {
            Some(same) => merge_lowest(&mut same.named, &mut same.others, named, others),
            None => self.deciders.push(NarrowingField {
                field: field.clone(),
                line: *line,
                named: named.clone(),
                others,
            }),
        }
    }

    /// Denies all tools, and so blocks the agent: a field that narrows tools cannot be parsed.
    pub(super) fn drop_all_tools(&mut self, field: &str) {
        let why = format!("`{field}` cannot be read, so it gets no tools");
        self.lose_by(field, why);
    }

    /// Denies all tools because of one word that cannot be parsed.
    pub(super) fn lose_by(&mut self, word: &str, why: String) {
        self.tools = Some(BTreeSet::new());
        self.unclear.push(UnavailableTool { name: word.to_owned(), why });
        self.as_written.get_or_insert_default().push(word.to_owned());
    }
}

impl ToolListReader<'_, '_, '_, '_> {
    /// Reads a field that lists allowed tools. A second such field narrows the first.
    fn read_allowed(&mut self, name: &'static str) {
        // Several spellings of one field may occur in one file.
        while let Some((key, node)) = self.fields.take_field(name) {
            self.field = (name.to_owned(), key.at.line);
            let tools = match &node.value {
                // The limit refuses the whole map: unread entries at its end might deny tools.
                YamlValue::Map(entries) if entries.len() > MAX_TOOLS => {
                    self.too_many(name, &key);
                    None
                }
                YamlValue::Map(entries) if entries.is_empty() => {
                    let message = format!("`{name}` is empty, which means no tools");
                    self.fields.findings.warning(key.at, "empty-tools", message, None);
                    Some(Some(BTreeSet::new()))
                }
                YamlValue::Map(entries) => Some(self.read_switches(entries)),
                // `enable_tools: true` is valid, but `tools` must be a list.
                YamlValue::Bool(on) if name != "tools" => Some((!on).then(BTreeSet::new)),
                _ => {
                    self.read_names(name, &key, &node).map(|entries| self.resolve_allowed(entries))
                }
            };
            let Some(tools) = tools else {
                // An unreadable field allows no tools, never all.
                self.list.drop_all_tools(name);
                continue;
            };
            self.list.tools = match (self.list.tools.take(), tools) {
                (Some(a), Some(b)) => Some(a.intersection(&b).cloned().collect()),
                (a, b) => a.or(b),
            };
        }
    }

    /// The names in a list, in a comma-separated text, or one name.
    fn read_names(&mut self, name: &str, key: &YamlKey, node: &YamlNode) -> Option<Vec<NameEntry>> {
        let mut entries = Vec::new();
        match &node.value {
            YamlValue::Null => {
                let message = format!("`{name}` is empty, which means no tools");
                let hint = "write `[]`, or remove the line to take all that the grants give";
                self.fields.findings.warning(key.at, "empty-tools", message, Some(hint.to_owned()));
            }
            YamlValue::Text(text) => {
                entries.extend(split_names(text, node.at));
                if entries.is_empty() {
                    let message = format!("`{name}` names nothing, which means no tools");
                    self.fields.findings.warning(key.at, "empty-tools", message, None);
                }
            }
            YamlValue::List(items) => {
                for item in items {
                    match item.as_text() {
                        Some(text) => entries.extend(split_names(text, item.at)),
                        None => self.not_a_name(name, item, &mut entries)?,
                    }
                }
            }
            YamlValue::Bool(_) | YamlValue::Int(_) | YamlValue::Float | YamlValue::Map(_) => {
                let message = format!("`{name}` is {}, not a list of names", quote_value(node));
                let hint = "write `[file_read, file_search]`, or `[]` for none".to_owned();
                self.fields.report_fault(key.at, "bad-field", message, Some(hint));
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
    fn not_a_name(
        &mut self,
        name: &str,
        item: &YamlNode,
        entries: &mut Vec<NameEntry>,
    ) -> Option<()> {
        let message = format!("`{name}` holds {}, not a name", item.describe_kind());
        self.fields.report_fault(item.at, "bad-field", message, None);
        // Every other list forbids tools.
        if !matches!(name, "tools" | "allowedTools") {
            return None;
        }
        self.odd_items |= matches!(item.value, YamlValue::List(_));
        let switches = match &item.value {
            YamlValue::Map(switches) => switches.as_slice(),
            _ => &[],
        };
        for (key, node) in switches {
            let (text, at) = (key.text.clone(), key.at);
            // `except: Bash`.
            if taking::takes_by_itself(&text) {
                return None;
            }
            match ValueMeaning::from_node(node) {
                // `Write: always` may be a scope or a switch.
                ValueMeaning::Yes | ValueMeaning::Nothing => {}
                ValueMeaning::No => entries.push(NameEntry { text: format!("!{text}"), at }),
                _ if find_named_tools(&text, self.known).is_known => {
                    self.take_away(&NameEntry { text, at });
                }
                _ => entries
                    .push(NameEntry { text: format!("{text} ({})", item.describe_kind()), at }),
            }
        }
        let shown = switches.first().map_or("", |(key, _)| key.text.as_str());
        let name = format!("{}…", ShownText::clip_line(shown, 60));
        let why = format!("it is {}, not a name", item.describe_kind());
        self.list.as_written.get_or_insert_default().push(name.clone());
        self.list.unavailable.push(UnavailableTool { name, why });
        Some(())
    }

    pub(super) fn too_many(&mut self, name: &str, key: &YamlKey) {
        let message = format!("`{name}` has more than {MAX_TOOLS} names");
        self.fields.findings.error(key.at, "bad-field", message);
    }

    /// The tools of a list of allowed names; `None` = all granted tools.
    fn resolve_allowed(&mut self, entries: Vec<NameEntry>) -> Option<BTreeSet<ToolName>> {
        let mut given = GivenTools::default();
        let alone = entries.len() == 1;
        for entry in entries {
            let read = parse_entry(&entry.text, |name| find_named_tools(name, self.known).is_known);
            match read {
                ListEntryMeaning::All => given.all = true,
                ListEntryMeaning::Nothing if alone => {}
                // `no, Bash`.
                ListEntryMeaning::Nothing => self.not_understood(&entry),
                ListEntryMeaning::Name(_) if given.lasts => self.take_away(&entry),
                ListEntryMeaning::Name(_) if given.left_out => self.not_understood(&entry),
                ListEntryMeaning::Name(text) => {
                    let entry = NameEntry { text, at: entry.at };
                    self.add_given_entry(&entry, &mut given);
                    given.named.push(entry);
                }
                ListEntryMeaning::Without { all, given: named, names, lasts } => {
                    given.all |= all;
                    given.lasts |= lasts;
                    // In `no Bash, Write` the second name is ambiguous; `!Bash` is plain.
                    given.left_out |=
                        entry.text.contains(' ') && !lasts && !entry.text.contains(':');
                    let named = named.into_iter().map(|text| NameEntry { text, at: entry.at });
                    named.for_each(|entry| self.add_given_entry(&entry, &mut given));
                    let names = names.into_iter().map(|text| NameEntry { text, at: entry.at });
                    names.for_each(|entry| self.take_away(&entry));
                }
                ListEntryMeaning::Unclear => self.not_understood(&entry),
            }
        }
        if given.all {
            // A scoped tool is less than the whole tool, which a word for all tools would grant.
            given.scoped.iter().for_each(|entry| self.take_away(entry));
            self.besides_all(&given.named);
            // `[all, [except, Bash]]`.
            if std::mem::take(&mut self.odd_items) {
                let field = self.field.0.clone();
                self.list.drop_all_tools(&field);
            }
        }
        (!given.all).then_some(given.tools)
    }

    /// Checks the names beside a word for all tools, which grant nothing more. An unknown name that contains
    /// a tool's name or is not a plain name (`Bash ✖`, `bash_off`) was meant to deny something, so the agent
    /// is blocked.
    fn besides_all(&mut self, named: &[NameEntry]) {
        for entry in named.iter().filter(|it| !find_named_tools(&it.text, self.known).is_known) {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-./*:@".contains(c);
            let is_name = entry.text.chars().all(plain);
            if !is_name || taking::speaks_in_name(&entry.text) {
                self.not_understood(entry);
            }
        }
    }

    fn add_given_entry(&mut self, entry: &NameEntry, given: &mut GivenTools) {
        match self.resolve_name(entry) {
            ToolNameMeaning::All => given.all = true,
            ToolNameMeaning::Tools(found, _) => given.tools.extend(found),
            ToolNameMeaning::Unavailable(_) if entry.text.contains('(') => {
                given.scoped.push(entry.clone())
            }
            ToolNameMeaning::Unavailable(_) | ToolNameMeaning::Unknown => {}
        }
    }

    /// Reads a map from names to on or off. If an entry is or may be on, unnamed tools are off.
    fn read_switches(&mut self, entries: &[(YamlKey, YamlNode)]) -> Option<BTreeSet<ToolName>> {
        let mut on = Vec::new();
        let mut off = Vec::new();
        let mut unreadable = false;
        for (key, node) in entries {
            let entry = NameEntry { text: key.text.clone(), at: key.at };
            let word = node.as_text().map(str::to_ascii_lowercase);
            match (parse_boolean(node), word.as_deref()) {
                (Some(true), _) | (_, Some("allow")) => on.push(entry),
                (_, Some("ask")) => {
                    self.cap_permission(&entry, CallPermission::Ask);
                    on.push(entry);
                }
                (Some(false), _) | (_, Some("deny")) => off.push(entry),
                _ => {
                    let name = ShownText::clip_line(&entry.text, 60);
                    let message =
                        format!("`{name}` is {}, neither on nor off: off", quote_value(node));
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
        let tools = self.resolve_allowed(on);
        for entry in off.iter().filter(|entry| entry.text != "*") {
            // An unnamed tool is already off here, so an unknown name costs nothing.
            if named && tools.is_some() && !find_named_tools(&entry.text, self.known).is_known {
                continue;
            }
            self.take_away(entry);
        }
        if named { tools } else { nothing.then(BTreeSet::new) }
    }

    fn read_denied(&mut self, name: &'static str) {
        while let Some((key, node)) = self.fields.take_field(name) {
            self.field = (name.to_owned(), key.at.line);
            self.deny_all_of(name, &key, &node);
        }
    }

    /// Denies the tools that a list names.
    pub(super) fn deny_all_of(&mut self, name: &str, key: &YamlKey, node: &YamlNode) {
        match ValueMeaning::from_node(node) {
            // For example `disallowedTools: none` or `no_tools: false`.
            ValueMeaning::No => return,
            ValueMeaning::Yes => {
                return self.take_away(&NameEntry { text: "*".to_owned(), at: key.at });
            }
            _ => {}
        }
        let mut entries = Vec::new();
        for entry in self.read_removed_names(key, node, name).unwrap_or_default() {
            entries.extend(self.words_of(entry));
            // A text without commas can be thousands of words.
            if entries.len() > MAX_TOOLS {
                self.too_many(name, key);
                return self.list.drop_all_tools(name);
            }
        }
        entries.iter().for_each(|entry| self.take_away(entry));
    }

    /// The names in a list that denies tools. An unreadable list denies all tools.
    pub(super) fn read_removed_names(
        &mut self,
        key: &YamlKey,
        node: &YamlNode,
        name: &str,
    ) -> Option<Vec<NameEntry>> {
        let written = self.list.as_written.take();
        let entries = match &node.value {
            // An empty list of denials denies nothing.
            YamlValue::Null => Some(Vec::new()),
            _ => self.read_names(name, key, node),
        };
        self.list.as_written = written;
        if entries.is_none() {
            self.list.drop_all_tools(name);
        }
        entries
    }

    /// Splits an entry that has several names with blanks between them, and turns a word for all tools into
    /// `*`. Any other entry of several words blocks the agent, because it is unclear what it denies.
    fn words_of(&mut self, entry: NameEntry) -> Vec<NameEntry> {
        const ALL: [&str; 4] = ["all", "any", "every", "everything"];
        let at = entry.at;
        if ALL.iter().any(|word| entry.text.eq_ignore_ascii_case(word)) {
            return vec![NameEntry { text: "*".to_owned(), at }];
        }
        let sides = split_marks(&entry.text, at);
        let is_known = |part: &NameEntry| find_named_tools(&part.text, self.known).is_known;
        // `Bash/Write` is two names, but `edit/editFiles` is one.
        let of_program = || program_tool(&entry.text);
        if (2..=MAX_TOOLS).contains(&sides.len()) && sides.iter().all(is_known) && !of_program() {
            return sides;
        }
        let parts = split_words(&entry.text, at);
        // `Bash (git *)` is a name with its scope.
        let is_scope = |part: &NameEntry| part.text.starts_with('(');
        if parts.len() > 1 && !parts.iter().any(is_scope) {
            let few = parts.len() <= MAX_TOOLS;
            if few && parts.iter().all(|part| find_named_tools(&part.text, self.known).is_known) {
                return parts;
            }
            let name = ShownText::clip_line(&entry.text, 60).to_string();
            let why = "it names several things, and not all are tools".to_owned();
            if !find_named_tools(&entry.text, self.known).is_known {
                self.list.lose_by(&name, why);
                return Vec::new();
            }
        }
        vec![entry]
    }

    /// Denies the whole tool of an entry, whatever the scope: `Bash(rm *)` denies `Bash`.
    fn take_away(&mut self, entry: &NameEntry) {
        self.tell_whole(entry);
        if WrittenToolName::from_text(&entry.text).name == "*" {
            self.list.tools = Some(BTreeSet::new());
        }
        self.cap_permission(entry, CallPermission::Deny);
    }

    /// Reports that a part of a tool cannot be denied alone: `Bash(rm *)` denies the whole shell, because the
    /// words of a command do not determine its effects.
    fn tell_whole(&mut self, entry: &NameEntry) {
        let written = WrittenToolName::from_text(&entry.text);
        if written.scope.is_none_or(|scope| matches!(scope.trim(), "" | "*")) {
            return;
        }
        let found = find_named_tools(&entry.text, self.known);
        // A name that only other programs' tables have matches only tools in `beside`.
        let taken = if found.tools.is_empty() { &found.beside } else { &found.tools };
        let tools: Vec<String> = taken.iter().map(|tool| format!("`{tool}`")).collect();
        if !tools.is_empty() {
            let name = ShownText::clip_line(&entry.text, 60).to_string();
            let message = format!(
                "`{name}` takes all of {} away: a part of a tool cannot be denied alone",
                tools.join(", ")
            );
            self.fields.findings.note(entry.at, "whole-tool", message);
        }
    }

    /// Lowers the upper bound of a tool's permission.
    pub(super) fn cap_permission(&mut self, entry: &NameEntry, most: CallPermission) {
        // The list is lost and the agent blocked, so later entries change nothing.
        if self.meant > MAX_MEANT {
            return;
        }
        let found = find_named_tools(&entry.text, self.known);
        self.meant = self.meant.saturating_add(found.tools.len());
        if self.meant > MAX_MEANT {
            let field = self.field.0.clone();
            self.list.drop_all_tools(&field);
        }
        self.known_or_blocked(entry, &found, most);
        self.keep_open(entry, &found, most);
        let tools = found.tools.into_iter().chain(found.beside);
        let named: BTreeMap<_, _> = tools.map(|tool| (tool, most)).collect();
        // A word for all tools includes those installed later.
        let others = (entry.text == "*").then_some(most);
        if !named.is_empty() || others.is_some() {
            self.list.lower_permissions(&self.field, &named, others);
        }
    }

    /// Stores a name that may match more tools after later installations.
    pub(super) fn keep_open(
        &mut self,
        entry: &NameEntry,
        found: &NamedTools,
        most: CallPermission,
    ) {
        let all = entry.text == "*";
        if !all && (entry.text.contains('*') || !found.is_known) && most != CallPermission::Allow {
            self.list.open.push((entry.text.clone(), most));
        }
    }

    /// The tool that was probably meant; `None` once findings are only counted.
    fn suggest_tool(&self, name: &str) -> Option<String> {
        let near =
            (!self.fields.findings.is_full()).then(|| self.known.suggest_name(name)).flatten();
        near.map(|word| format!("did you mean `{word}`?"))
    }

    /// The meaning of a name in a list of allowed tools. Reports unknown and unavailable names.
    fn resolve_name(&mut self, entry: &NameEntry) -> ToolNameMeaning {
        let written = WrittenToolName::from_text(&entry.text);
        let meaning = written.resolve_meaning(self.dialect, self.known);
        let shown = ShownText::clip_line(&entry.text, 80).to_string();
        match &meaning {
            ToolNameMeaning::All => {}
            ToolNameMeaning::Tools(tools, limits) => {
                if let (Some(scope), [tool]) = (written.scope, tools.as_slice())
                    && tool.as_str() == SPAWN_AGENT
                    && scope != "*"
                {
                    let agents = scope.split(',').map(|name| name.trim().to_owned());
                    self.list.agents.get_or_insert_default().extend(agents);
                }
                if tools.iter().any(|tool| tool.as_str() != written.name) {
                    self.list.translated.push(ToolTranslation {
                        written: shown,
                        tools: tools.clone(),
                        limits: *limits,
                    });
                }
            }
            ToolNameMeaning::Unavailable(why) => {
                let message = format!("tool `{shown}` is not available: {why}");
                self.fields.findings.warning(entry.at, "unavailable-tool", message, None);
                self.list.unavailable.push(UnavailableTool { name: shown, why: why.clone() });
            }
            ToolNameMeaning::Unknown => self.report_unknown_tool(entry, written.name, shown),
        }
        meaning
    }

    fn report_unknown_tool(&mut self, entry: &NameEntry, name: &str, shown: String) {
        let message = own::does_not_exist(&shown);
        let hint = self.suggest_tool(name);
        if self.dialect == Dialect::Canonical {
            let hint = hint.unwrap_or_else(|| own::LIST.to_owned());
            self.fields.findings.error_hint(entry.at, own::UNKNOWN, message, hint);
        } else {
            self.fields.findings.warning(entry.at, own::UNKNOWN, message, hint);
            self.list.unknown.push(shown);
        }
    }
}

/// Reports a narrowing field that could not be parsed, and the field's line.
pub(super) fn say_lost(field: &str, at: FilePosition, fields: &mut UnreadFields<'_, '_>) {
    let message = format!("`{field}` cannot be read here, so the agent gets no tools");
    let hint = "correct the YAML above; every field begins its line".to_owned();
    fields.findings.warning(at, "lost-field", message, Some(hint));
}
