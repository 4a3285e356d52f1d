//! Reads OpenCode's `permission`: one permission for all tools, or a map from a tool to a permission or to a
//! map of patterns.
//!
//! Patterns are not enforced here: the strictest one applies to the whole tool, and an agent with
//! contradicting patterns is blocked. `task` with names of agents is enforced. Within the field the last
//! match wins, with two limits: a pattern does not lift an entry that names the tool, and of two names for
//! one tool the stricter counts. Other fields' restrictions stay. For example, `bash: deny` denies `shell`.
//! The same field may hold Claude Code's settings: `settings_form.rs`.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{Permission, Shown, ToolName};

use super::Unavailable;
use super::builtin_tools::SPAWN_AGENT;
use super::names::{Behind, Entry, tools_behind};
use super::says::Says;
use super::tool_list::{MAX_TOOLS, ToolListReader};
use crate::fields::{boolean, shown};
use crate::yaml::{Key, Node, Value};

/// The tool whose patterns are commands; those of other tools are paths, addresses and names.
const SHELL: &str = "shell";

/// The field's permission for one tool so far.
struct Word {
    most: Permission,
    /// The key of the entry that set it; `None` = a pattern.
    by: Option<String>,
}

/// The field's permissions: of named tools, and of all others.
#[derive(Default)]
struct Said {
    words: BTreeMap<ToolName, Word>,
    others: Option<Permission>,
}

impl ToolListReader<'_, '_, '_, '_> {
    pub(super) fn permission(&mut self, name: &'static str) {
        while let Some((key, node)) = self.fields.take(name) {
            self.field = (name.to_owned(), key.at.line);
            let said = match &node.value {
                Value::Null => continue,
                Value::Map(entries) if entries.len() > MAX_TOOLS => {
                    self.too_many(name, &key);
                    continue;
                }
                Value::Map(entries) => self.words(entries),
                _ => {
                    let most = self.word_or_deny(name, &key, &node);
                    self.all(most)
                }
            };
            self.apply(said);
        }
    }

    /// Combines the field's permissions with those of other fields.
    fn apply(&mut self, said: Said) {
        let Said { words, others } = said;
        let denied = |word: &Word| word.most == Permission::Deny;
        if !words.is_empty() && self.known.iter().all(|tool| words.get(tool).is_some_and(denied)) {
            self.list.tools = Some(BTreeSet::new());
        }
        let named = words.into_iter().map(|(tool, word)| (tool, word.most)).collect();
        self.list.lower(&self.field, &named, others);
    }

    fn all(&self, most: Permission) -> Said {
        if most == Permission::Allow {
            return Said::default();
        }
        let words = self.known.iter().map(|tool| (tool.clone(), Word { most, by: None }));
        Said { words: words.collect(), others: Some(most) }
    }

    fn words(&mut self, entries: &[(Key, Node)]) -> Said {
        let mut said = Said::default();
        for (key, node) in entries {
            if key.text == "*" {
                let most = match &node.value {
                    Value::Map(patterns) => self.strictest(key, patterns, None),
                    _ => self.word_or_deny(&key.text, key, node),
                };
                let all = self.all(most);
                said.others = all.others;
                match most {
                    Permission::Allow => said.words.retain(|_, word| word.by.is_some()),
                    Permission::Ask | Permission::Deny => said.words.extend(all.words),
                }
                continue;
            }
            if self.setting(key, node) {
                continue;
            }
            let entry = Entry { text: key.text.clone(), at: key.at };
            let is_word = word(node).is_some() || matches!(node.value, Value::Map(_));
            let found = tools_behind(&entry.text, self.known);
            // Such an entry blocks the agent: denying a name without a tool would have no effect,
            // and `read: only` restricts the tools that the key does not name.
            let nothing = found.tools.is_empty() && found.beside.is_empty();
            if !is_word && (nothing || Says::of(node) == Says::Less) {
                self.not_kept(key, node);
                continue;
            }
            let most = match &node.value {
                Value::Map(patterns) => {
                    let before = said.before(&found);
                    self.patterned(key, patterns, &found, before)
                }
                _ => self.word_or_deny(&key.text, key, node),
            };
            self.known_or_blocked(&entry, &found, most);
            self.keep_open(&entry, &found, most);
            said.add(key, found, most);
        }
        said
    }

    /// The permission that a map of patterns leaves for a tool. Delegation to agents by name is enforced; for
    /// other tools the strictest pattern applies to all uses.
    fn patterned(
        &mut self,
        key: &Key,
        patterns: &[(Key, Node)],
        found: &Behind,
        before: Permission,
    ) -> Permission {
        if found.tools.iter().any(|tool| tool.as_str() == SPAWN_AGENT)
            && let Some((most, agents)) = agents(patterns, before)
        {
            if let Some(agents) = agents {
                self.list.agents = Some(match self.list.agents.take() {
                    Some(named) => named.into_iter().filter(|it| agents.contains(it)).collect(),
                    None => agents,
                });
            }
            return most;
        }
        self.strictest(key, patterns, Some((found, before)))
    }

    /// The strictest pattern. If the patterns differ, the author's intention cannot be enforced, and the
    /// agent is blocked.
    fn strictest(
        &mut self,
        key: &Key,
        patterns: &[(Key, Node)],
        of: Option<(&Behind, Permission)>,
    ) -> Permission {
        let is_shell = of.is_some_and(|(found, _)| found.tools.iter().any(|t| t.as_str() == SHELL));
        // In other programs `mcp:` is a resource of a server, which does not exist here.
        let void = |text: &str| {
            let text = text.to_ascii_lowercase();
            !is_shell && (text.starts_with("mcp:") || text.starts_with("mcp__"))
        };
        let real: Vec<_> = patterns.iter().filter(|(key, _)| !void(&key.text)).collect();
        let before = of.map_or(Permission::Allow, |(_, before)| before);
        if real.is_empty() {
            return if patterns.is_empty() { Permission::Deny } else { before };
        }
        let mut words: BTreeSet<Permission> =
            real.iter().map(|(_, node)| word(node).unwrap_or(Permission::Deny)).collect();
        if !real.iter().any(|(key, _)| key.text.trim_matches(['*', '/']).is_empty()) {
            words.insert(before);
        }
        let most = words.first().copied().unwrap_or(Permission::Deny);
        if words.len() > 1 {
            self.not_exact(key, most, of.is_none_or(|(found, _)| !found.tools.is_empty()));
        }
        most
    }

    fn not_exact(&mut self, key: &Key, most: Permission, exists: bool) {
        let name = Shown::clipped(&key.text, 60).to_string();
        let what = match most {
            Permission::Deny => "not given at all",
            Permission::Ask | Permission::Allow => "always asked for",
        };
        let message = format!("the patterns of `{name}` are not enforced here, so it is {what}");
        self.fields.findings.warning(key.at, "patterns", message, None);
        if exists {
            let why = "its patterns are not something that belljar enforces".to_owned();
            self.list.unavailable.push(Unavailable { name, why });
        }
    }

    /// Parses a permission; an unparsable one denies.
    fn word_or_deny(&mut self, name: &str, key: &Key, node: &Node) -> Permission {
        word(node).unwrap_or_else(|| {
            let name = Shown::clipped(name, 60);
            let message =
                format!("`{name}` is {}, none of `allow`, `ask`, `deny`: denied", shown(node));
            self.fields.fault(key.at, "bad-field", message, None);
            Permission::Deny
        })
    }
}

impl Said {
    /// The permission so far for the tools that a name matches.
    fn before(&self, found: &Behind) -> Permission {
        let said = |tool| self.words.get(tool).map(|word| word.most).or(self.others);
        let words = found.tools.iter().map(|tool| said(tool).unwrap_or(Permission::Allow));
        words.min().unwrap_or(Permission::Allow)
    }

    fn add(&mut self, key: &Key, found: Behind, most: Permission) {
        for tool in found.beside.into_iter().filter(|_| most != Permission::Allow) {
            let by = Some(key.text.clone());
            let word = self.words.entry(tool).or_insert(Word { most, by });
            word.most = word.most.min(most);
        }
        for tool in found.tools {
            let by = (!key.text.contains('*')).then(|| key.text.clone());
            match self.words.get_mut(&tool) {
                Some(word) if word.by.is_some() && word.by != by => {
                    word.most = word.most.min(most);
                }
                _ => {
                    self.words.insert(tool, Word { most, by });
                }
            }
        }
    }
}

/// The result of patterns for names of agents: the permission to delegate, and the allowed agents if only
/// some are. `None` = the patterns cannot be enforced.
fn agents(
    patterns: &[(Key, Node)],
    before: Permission,
) -> Option<(Permission, Option<Vec<String>>)> {
    let mut all = if patterns.is_empty() { Permission::Deny } else { before };
    let mut listed: BTreeMap<&str, Permission> = BTreeMap::new();
    for (key, node) in patterns {
        let said = word(node).unwrap_or(Permission::Deny);
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
    let allowed = listed.values().all(|said| *said == Permission::Allow);
    let names = || listed.keys().map(|name| (*name).to_owned()).collect();
    (all == Permission::Deny && allowed).then(|| (Permission::Allow, Some(names())))
}

fn word(node: &Node) -> Option<Permission> {
    if let Some(on) = boolean(node) {
        return Some(if on { Permission::Allow } else { Permission::Deny });
    }
    match node.text()?.trim().to_ascii_lowercase().as_str() {
        "allow" => Some(Permission::Allow),
        "ask" => Some(Permission::Ask),
        "deny" => Some(Permission::Deny),
        _ => None,
    }
}
