//! Reads OpenCode's `permission`: one permission for all tools, or a map from a tool to a permission or to a
//! map of patterns.
//!
//! Patterns are not enforced here: the strictest one applies to the whole tool, and an agent with
//! contradicting patterns is blocked. `task` with names of agents is enforced. Within the field the last
//! match wins, with two limits: a pattern does not lift an entry that names the tool, and of two names for
//! one tool the stricter counts. Other fields' restrictions stay. For example, `bash: deny` denies `shell`.
//! The same field may hold Claude Code's settings: `settings_form.rs`.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{CallPermission, ShownText, ToolName};

use super::UnavailableTool;
use super::builtin_tools::SPAWN_AGENT;
use super::names::{NameEntry, NamedTools, find_named_tools};
use super::says::ValueMeaning;
use super::tool_list::{MAX_TOOLS, ToolListReader};
use crate::fields::{parse_boolean, quote_value};
use crate::yaml::{YamlKey, YamlNode, YamlValue};

/// The tool whose patterns are commands; those of other tools are paths, addresses and names.
const SHELL: &str = "shell";

/// The permission for a tool so far.
struct ToolPermission {
    most: CallPermission,
    /// The key of the entry that set it; `None` = a pattern.
    by: Option<String>,
}

/// The permissions of one field: for named tools, and for all others.
#[derive(Default)]
struct FieldPermissions {
    words: BTreeMap<ToolName, ToolPermission>,
    others: Option<CallPermission>,
}

impl ToolListReader<'_, '_, '_, '_> {
    /// Reads the field, in each spelling that the file has.
    pub(super) fn read_permission(&mut self, name: &'static str) {
        while let Some((key, node)) = self.fields.take_field(name) {
            self.field = (name.to_owned(), key.at.line);
            let said = match &node.value {
                YamlValue::Null => continue,
                YamlValue::Map(entries) if entries.len() > MAX_TOOLS => {
                    self.too_many(name, &key);
                    continue;
                }
                YamlValue::Map(entries) => self.read_tool_permissions(entries),
                _ => {
                    let most = self.word_or_deny(name, &key, &node);
                    self.permissions_for_all(most)
                }
            };
            self.merge_permissions(said);
        }
    }

    /// Combines the field's permissions with those of other fields.
    fn merge_permissions(&mut self, said: FieldPermissions) {
        let FieldPermissions { words, others } = said;
        let denied = |word: &ToolPermission| word.most == CallPermission::Deny;
        if !words.is_empty() && self.known.iter().all(|tool| words.get(tool).is_some_and(denied)) {
            self.list.tools = Some(BTreeSet::new());
        }
        let named = words.into_iter().map(|(tool, word)| (tool, word.most)).collect();
        self.list.lower_permissions(&self.field, &named, others);
    }

    /// The permissions of a field with one value for all tools.
    fn permissions_for_all(&self, most: CallPermission) -> FieldPermissions {
        if most == CallPermission::Allow {
            return FieldPermissions::default();
        }
        let words = self.known.iter().map(|tool| (tool.clone(), ToolPermission { most, by: None }));
        FieldPermissions { words: words.collect(), others: Some(most) }
    }

    /// Reads a map from tool names to permissions or patterns.
    fn read_tool_permissions(&mut self, entries: &[(YamlKey, YamlNode)]) -> FieldPermissions {
        let mut said = FieldPermissions::default();
        for (key, node) in entries {
            if key.text == "*" {
                let most = match &node.value {
                    YamlValue::Map(patterns) => self.strictest_pattern(key, patterns, None),
                    _ => self.word_or_deny(&key.text, key, node),
                };
                let all = self.permissions_for_all(most);
                said.others = all.others;
                match most {
                    CallPermission::Allow => said.words.retain(|_, word| word.by.is_some()),
                    CallPermission::Ask | CallPermission::Deny => said.words.extend(all.words),
                }
                continue;
            }
            if self.read_setting(key, node) {
                continue;
            }
            let entry = NameEntry { text: key.text.clone(), at: key.at };
            let is_word =
                parse_permission(node).is_some() || matches!(node.value, YamlValue::Map(_));
            let found = find_named_tools(&entry.text, self.known);
            // Such an entry blocks the agent: denying a name without a tool would have no effect,
            // and `read: only` restricts the tools that the key does not name.
            let nothing = found.tools.is_empty() && found.beside.is_empty();
            if !is_word && (nothing || ValueMeaning::from_node(node) == ValueMeaning::Less) {
                self.not_kept(key, node);
                continue;
            }
            let most = match &node.value {
                YamlValue::Map(patterns) => {
                    let before = said.current_permission(&found);
                    self.resolve_patterns(key, patterns, &found, before)
                }
                _ => self.word_or_deny(&key.text, key, node),
            };
            self.known_or_blocked(&entry, &found, most);
            self.keep_open(&entry, &found, most);
            said.add_tools(key, found, most);
        }
        said
    }

    /// The permission that a map of patterns leaves for a tool. Delegation to agents by name is enforced; for
    /// other tools the strictest pattern applies to all uses.
    fn resolve_patterns(
        &mut self,
        key: &YamlKey,
        patterns: &[(YamlKey, YamlNode)],
        found: &NamedTools,
        before: CallPermission,
    ) -> CallPermission {
        if found.tools.iter().any(|tool| tool.as_str() == SPAWN_AGENT)
            && let Some((most, agents)) = parse_agent_patterns(patterns, before)
        {
            if let Some(agents) = agents {
                self.list.agents = Some(match self.list.agents.take() {
                    Some(named) => named.into_iter().filter(|it| agents.contains(it)).collect(),
                    None => agents,
                });
            }
            return most;
        }
        self.strictest_pattern(key, patterns, Some((found, before)))
    }

    /// The strictest pattern. If the patterns differ, the author's intention cannot be enforced, and the
    /// agent is blocked.
    fn strictest_pattern(
        &mut self,
        key: &YamlKey,
        patterns: &[(YamlKey, YamlNode)],
        of: Option<(&NamedTools, CallPermission)>,
    ) -> CallPermission {
        let is_shell = of.is_some_and(|(found, _)| found.tools.iter().any(|t| t.as_str() == SHELL));
        // In other programs `mcp:` is a resource of a server, which does not exist here.
        let void = |text: &str| {
            let text = text.to_ascii_lowercase();
            !is_shell && (text.starts_with("mcp:") || text.starts_with("mcp__"))
        };
        let real: Vec<_> = patterns.iter().filter(|(key, _)| !void(&key.text)).collect();
        let before = of.map_or(CallPermission::Allow, |(_, before)| before);
        if real.is_empty() {
            return if patterns.is_empty() { CallPermission::Deny } else { before };
        }
        let mut words: BTreeSet<CallPermission> = real
            .iter()
            .map(|(_, node)| parse_permission(node).unwrap_or(CallPermission::Deny))
            .collect();
        if !real.iter().any(|(key, _)| key.text.trim_matches(['*', '/']).is_empty()) {
            words.insert(before);
        }
        let most = words.first().copied().unwrap_or(CallPermission::Deny);
        if words.len() > 1 {
            self.not_exact(key, most, of.is_none_or(|(found, _)| !found.tools.is_empty()));
        }
        most
    }

    /// Warns that patterns of a tool are not enforced, so the strictest applies to the whole tool.
    fn not_exact(&mut self, key: &YamlKey, most: CallPermission, exists: bool) {
        let name = ShownText::clip_line(&key.text, 60).to_string();
        let what = match most {
            CallPermission::Deny => "not given at all",
            CallPermission::Ask | CallPermission::Allow => "always asked for",
        };
        let message = format!("the patterns of `{name}` are not enforced here, so it is {what}");
        self.fields.findings.warning(key.at, "patterns", message, None);
        if exists {
            let why = "its patterns are not something that belljar enforces".to_owned();
            self.list.unavailable.push(UnavailableTool { name, why });
        }
    }

    /// Parses a permission; an unparsable one denies.
    fn word_or_deny(&mut self, name: &str, key: &YamlKey, node: &YamlNode) -> CallPermission {
        parse_permission(node).unwrap_or_else(|| {
            let name = ShownText::clip_line(name, 60);
            let message = format!(
                "`{name}` is {}, none of `allow`, `ask`, `deny`: denied",
                quote_value(node)
            );
            self.fields.report_fault(key.at, "bad-field", message, None);
            CallPermission::Deny
        })
    }
}

impl FieldPermissions {
    /// The permission so far for the tools meant by a name.
    fn current_permission(&self, found: &NamedTools) -> CallPermission {
        let said = |tool| self.words.get(tool).map(|word| word.most).or(self.others);
        let words = found.tools.iter().map(|tool| said(tool).unwrap_or(CallPermission::Allow));
        words.min().unwrap_or(CallPermission::Allow)
    }

    /// Sets the permission of the tools meant by a key.
    fn add_tools(&mut self, key: &YamlKey, found: NamedTools, most: CallPermission) {
        for tool in found.beside.into_iter().filter(|_| most != CallPermission::Allow) {
            let by = Some(key.text.clone());
            let word = self.words.entry(tool).or_insert(ToolPermission { most, by });
            word.most = word.most.min(most);
        }
        for tool in found.tools {
            let by = (!key.text.contains('*')).then(|| key.text.clone());
            match self.words.get_mut(&tool) {
                Some(word) if word.by.is_some() && word.by != by => {
                    word.most = word.most.min(most);
                }
                _ => {
                    self.words.insert(tool, ToolPermission { most, by });
                }
            }
        }
    }
}

/// The result of patterns for names of agents: the permission to delegate, and the allowed agents if only
/// some are. `None` = the patterns cannot be enforced.
fn parse_agent_patterns(
    patterns: &[(YamlKey, YamlNode)],
    before: CallPermission,
) -> Option<(CallPermission, Option<Vec<String>>)> {
    let mut all = if patterns.is_empty() { CallPermission::Deny } else { before };
    let mut listed: BTreeMap<&str, CallPermission> = BTreeMap::new();
    for (key, node) in patterns {
        let said = parse_permission(node).unwrap_or(CallPermission::Deny);
        match key.text.as_str() {
            "*" => {
                all = said;
                listed.clear();
            }
            text if text.contains(['*', '?']) => return None,
            text => {
                listed.insert(text, said);
            }
        }
    }
    listed.retain(|_, said| *said != all);
    if listed.is_empty() {
        return Some((all, None));
    }
    let allowed = listed.values().all(|said| *said == CallPermission::Allow);
    let names = || listed.keys().map(|name| (*name).to_owned()).collect();
    (all == CallPermission::Deny && allowed).then(|| (CallPermission::Allow, Some(names())))
}

/// Parses `allow`, `ask`, `deny`, or a boolean; `None` = unknown.
fn parse_permission(node: &YamlNode) -> Option<CallPermission> {
    if let Some(on) = parse_boolean(node) {
        return Some(if on { CallPermission::Allow } else { CallPermission::Deny });
    }
    match node.as_text()?.trim().to_ascii_lowercase().as_str() {
        "allow" => Some(CallPermission::Allow),
        "ask" => Some(CallPermission::Ask),
        "deny" => Some(CallPermission::Deny),
        _ => None,
    }
}
