//! OpenCode's `permission`: one word for all, or a map from tool to a word or to a map of
//! patterns.
//!
//! Patterns are not enforced here, so the strictest word of them holds. Within the field the
//! last match wins, with two limits: a pattern lifts no word that names the tool, and of two
//! names for one tool the stricter counts. What another field took away stays away.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{Permission, Shown, ToolName};

use super::names::Entry;
use super::tool_list::{MAX_TOOLS, Reader};
use crate::fields::{boolean, shown};
use crate::yaml::{Key, Node, Value};

/// What the field says of one tool so far.
struct Word {
    most: Permission,
    /// The key that said it; `None` = a pattern.
    by: Option<String>,
}

impl Reader<'_, '_, '_, '_> {
    pub(super) fn permission(&mut self, name: &'static str) {
        while let Some((key, node)) = self.fields.take(name) {
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

    /// Joins what the field says to what the others said.
    fn apply(&mut self, said: BTreeMap<ToolName, Word>) {
        let denied = |word: &Word| word.most == Permission::Deny;
        if !said.is_empty() && self.known.iter().all(|tool| said.get(tool).is_some_and(denied)) {
            self.list.tools = Some(BTreeSet::new());
        }
        for (tool, Word { most, .. }) in said {
            let now = self.list.at_most.entry(tool).or_insert(most);
            *now = (*now).min(most);
        }
    }

    fn all(&self, most: Permission) -> BTreeMap<ToolName, Word> {
        match most {
            Permission::Allow => BTreeMap::new(),
            Permission::Ask | Permission::Deny => {
                self.known.iter().map(|tool| (tool.clone(), Word { most, by: None })).collect()
            }
        }
    }

    fn words(&mut self, entries: &[(Key, Node)]) -> BTreeMap<ToolName, Word> {
        let mut said: BTreeMap<ToolName, Word> = BTreeMap::new();
        for (key, node) in entries {
            let most = match &node.value {
                Value::Map(patterns) => self.strictest(key, patterns),
                _ => self.word_or_deny(&key.text, key, node),
            };
            if key.text == "*" {
                match most {
                    Permission::Allow => said.retain(|_, word| word.by.is_some()),
                    Permission::Ask | Permission::Deny => said.extend(self.all(most)),
                }
                continue;
            }
            let pattern = key.text.contains('*');
            let entry = Entry { text: key.text.clone(), at: key.at };
            let found = self.behind(&entry);
            for tool in found.beside.into_iter().filter(|_| most != Permission::Allow) {
                let by = Some(key.text.clone());
                let word = said.entry(tool).or_insert(Word { most, by });
                word.most = word.most.min(most);
            }
            for tool in found.tools {
                let by = (!pattern).then(|| key.text.clone());
                match said.get_mut(&tool) {
                    Some(word) if word.by.is_some() && word.by != by => {
                        word.most = word.most.min(most);
                    }
                    _ => {
                        said.insert(tool, Word { most, by });
                    }
                }
            }
        }
        said
    }

    fn strictest(&mut self, key: &Key, patterns: &[(Key, Node)]) -> Permission {
        let words = patterns.iter().map(|(_, node)| word(node).unwrap_or(Permission::Deny));
        let words: BTreeSet<Permission> = words.collect();
        let most = words.first().copied().unwrap_or(Permission::Deny);
        let whole = words.len() == 1
            && patterns.iter().any(|(key, _)| key.text.trim_matches(['*', '/']).is_empty());
        if most != Permission::Allow && !whole {
            let name = Shown::clipped(&key.text, 60);
            let what = match most {
                Permission::Deny => "not given at all",
                Permission::Ask | Permission::Allow => "always asked for",
            };
            let message =
                format!("the patterns of `{name}` are not enforced here, so it is {what}");
            self.fields.findings.warning(key.at, "patterns", message, None);
        }
        most
    }

    /// The word; one that cannot be read is a no.
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
