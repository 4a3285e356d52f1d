//! Decides whether an unknown field mentions a limit.
//!
//! An author who limits an agent with another program's field means the limit. An unknown field whose name or
//! value mentions a limit therefore blocks its agent, and the report shows the line. For example, `max_edits:
//! 3` blocks. Names and values are split into words, so that `maximum` counts and `climax` does not
//! (`words.rs`); a field that is switched off does not count (`says.rs`).

use super::NotKept;
use super::names::is_tool_of_a_program;
use super::says::ValueMeaning;
use super::taking::{contains_any, has_taking_words};
use super::words::{TABLES, WordTables, flatten_text, split_words};
use crate::fields::parse_boolean;
use crate::yaml::{YamlKey, YamlNode, YamlValue};

/// The longest field name that is checked, in bytes. No known program has a longer one; longer keys are prose.
pub(super) const MAX_NAME: usize = 64;

/// The depth to which nested maps are searched, because no known program has fields below it.
const MAX_DEPTH: usize = 6;

/// Values that restrict an agent even under a key that is only for people, for example `persona`.
const READ_ONLY: &[&str] = &["readonly", "viewonly", "ro", "readonlymode", "readonlyaccess"];

/// Keys whose value is a label, and may be any words.
const LABELS: &[&str] = &[
    "name",
    "displayname",
    "title",
    "subtitle",
    "description",
    "tags",
    "keywords",
    "category",
    "categories",
    "topic",
    "topics",
    "id",
    "aliases",
    "subject",
    "note",
    "notes",
    "comment",
    "comments",
    "summary",
    "domain",
];

/// Words that deny. A value that begins with one is a limit, although the same value could mean "off".
const DENYING: &[&str] = &["deny", "denied", "block", "forbid", "disallow", "prohibit"];

/// Keys of MCP servers. An agent file's servers are not read: the operator has to configure a server.
const SERVERS: &[&str] = &["mcp", "mcpserver", "mcpservers"];

/// Whether a key in broken YAML is a restricting field rather than prose: several joined words, as no
/// sentence has them, for example `disallowed_tools`, at least one of which restricts.
pub(super) fn is_joined(key: &str) -> bool {
    let words = split_words(key);
    key.len() <= MAX_NAME && words.len() > 1 && !is_harmless(key) && mentions_rights(&words)
}

/// Whether a key is one restricting word. Prose begins with such words too, so the value has to decide.
pub(super) fn is_word(key: &str) -> bool {
    let words = split_words(key);
    let rights = |tables: &WordTables| {
        has_taking_words(&words, tables)
            || contains_any(&words, &tables.gives)
            || contains_any(&words, &tables.abilities)
    };
    key.len() <= MAX_NAME
        && words.len() == 1
        && !is_harmless(key)
        && TABLES.as_ref().is_none_or(rights)
}

/// Whether a line of prose may be meant as a restricting field, for example `write: none` or `turns: 5`.
pub(super) fn restricts_by(key: &str, value: &str) -> bool {
    if key.len() > MAX_NAME || is_harmless(key) {
        return false;
    }
    let Ok(root) = crate::yaml::parse_document(&format!("k: {value}"), 1) else { return false };
    let YamlValue::Map(entries) = root.value else { return false };
    let Some((_, node)) = entries.first() else { return false };
    let key = YamlKey { text: key.to_owned(), at: node.at };
    !find_limits("", &key, node).is_empty()
}

/// Whether a field is known not to limit an agent.
fn is_no_limit(key: &str) -> bool {
    TABLES.as_ref().is_some_and(|tables| tables.no_limits.contains_key(&flatten_text(key)))
}

/// Whether a key holds a text for people, for example `author`, or is known not to limit an agent.
pub(super) fn is_harmless(key: &str) -> bool {
    let display = |tables: &WordTables| tables.display.contains(&flatten_text(key));
    is_no_limit(key) || TABLES.as_ref().is_some_and(display)
}

/// Whether all words of a key are known, so that the key is not a misspelling of another.
pub(super) fn is_spelt_right(key: &str) -> bool {
    let words = split_words(key);
    let known = |tables: &WordTables| {
        words.len() > 1 && words.iter().all(|word| tables.is_rights_word(word))
    };
    TABLES.as_ref().is_some_and(known)
}

/// Whether the words of a key are about rights: a restriction, a grant, or an ability together with a place.
fn mentions_rights(words: &[String]) -> bool {
    let Some(tables) = TABLES.as_ref() else { return true };
    let place = contains_any(words, &tables.places) || contains_any(words, &tables.vague_places);
    has_taking_words(words, tables)
        || contains_any(words, &tables.gives)
        || (place && contains_any(words, &tables.abilities))
}

/// The lines of a field and of nested fields that mention a limit. `above`: the path, for example `a.b.`.
pub(super) fn find_limits(above: &str, key: &YamlKey, node: &YamlNode) -> Vec<NotKept> {
    let mut found = Vec::new();
    let Some(tables) = TABLES.as_ref() else {
        return vec![NotKept::from_field(&key.text, key, node)];
    };
    LimitSearch { tables, found: &mut found }.search_field(above, key, node, MAX_DEPTH, false);
    found
}

struct LimitSearch<'t, 'f> {
    tables: &'t WordTables,
    found: &'f mut Vec<NotKept>,
}

impl LimitSearch<'_, '_> {
    /// Searches a field and the fields nested in it for limits. `given`: the field is in a map below a key
    /// that grants, for example `tools`, where a negative value removes the entry.
    fn search_field(
        &mut self,
        above: &str,
        key: &YamlKey,
        node: &YamlNode,
        depth: usize,
        given: bool,
    ) {
        let plain = flatten_text(&key.text);
        let path = format!("{above}{}", key.text);
        if is_no_limit(&key.text) || key.text.len() > MAX_NAME {
            return;
        }
        if is_harmless(&key.text) {
            // `persona: read-only` is a restriction although `persona` is a label.
            let is_ro = |text: &str| READ_ONLY.contains(&flatten_text(text.trim()).as_str());
            if node.as_text().is_some_and(is_ro) && !LABELS.contains(&plain.as_str()) {
                self.found.push(NotKept::from_field(&path, key, node));
            }
            return;
        }
        if SERVERS.contains(&plain.as_str()) && matches!(node.value, YamlValue::Map(_)) {
            return;
        }
        let words = split_words(&key.text);
        // A nested `enabled` is about the field around it.
        let is_off = above.is_empty() && plain == "enabled" && parse_boolean(node) == Some(false);
        let within = !above.is_empty() && lists_tools(&plain, node);
        let says = ValueMeaning::from_node(node);
        let less = given
            && matches!(
                says,
                ValueMeaning::No | ValueMeaning::Less | ValueMeaning::Empty | ValueMeaning::List
            );
        let is_top = above.is_empty();
        let field = CandidateField {
            tables: self.tables,
            words: &words,
            plain: &plain,
            says,
            node,
            is_top,
        };
        if is_off || within || less || field.is_limit() {
            self.found.push(NotKept::from_field(&path, key, node));
            return;
        }
        let Some(depth) = depth.checked_sub(1) else { return };
        let given = contains_any(&words, &self.tables.gives)
            || contains_any(&words, &self.tables.abilities)
            || contains_any(&words, &self.tables.places)
            || field.names_what_there_is();
        let above = format!("{path}.");
        let items = match &node.value {
            YamlValue::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        for item in items {
            let YamlValue::Map(entries) = &item.value else { continue };
            for (key, node) in entries {
                self.search_field(&above, key, node, depth, given);
            }
        }
    }
}

/// One field, judged without the fields around it.
struct CandidateField<'a> {
    tables: &'a WordTables,
    words: &'a [String],
    plain: &'a str,
    says: ValueMeaning,
    node: &'a YamlNode,
    /// Whether the field is at the top level of the file.
    is_top: bool,
}

impl CandidateField<'_> {
    /// Whether the field mentions a limit.
    fn is_limit(&self) -> bool {
        let tables = self.tables;
        if self.says == ValueMeaning::Nothing {
            return false;
        }
        if tables.refusing_hooks.contains(self.plain) {
            return self.says != ValueMeaning::Empty;
        }
        if has_taking_words(self.words, tables) {
            return self.is_removal();
        }
        let is_map = matches!(self.node.value, YamlValue::Map(_));
        contains_any(self.words, &tables.gives) && self.says != ValueMeaning::Yes
            || contains_any(self.words, &tables.abilities)
                && !self.is_requirement()
                && self.less_able()
            || self.is_place_limit()
            || contains_any(self.words, &tables.bounds) && self.starts_with_number()
            || contains_any(self.words, &tables.judged) && !is_map && self.is_restrictive_value()
            || !is_map && (self.by_value() || self.is_top && self.unheard_of())
    }

    /// Whether no table has this key and the value may still be a limit: off or empty may remove any
    /// ability, and in a language without tables, a value that switches on may be a limit too.
    fn unheard_of(&self) -> bool {
        let tables = self.tables;
        if tables.switches.contains(self.plain) || self.is_requirement() {
            return false;
        }
        match self.says {
            ValueMeaning::No => true,
            ValueMeaning::Empty => matches!(self.node.value, YamlValue::List(_)),
            ValueMeaning::Yes => self.plain.chars().any(|c| c.is_alphabetic() && !c.is_ascii()),
            ValueMeaning::Nothing
            | ValueMeaning::Less
            | ValueMeaning::List
            | ValueMeaning::Number
            | ValueMeaning::Other => false,
        }
    }

    /// Whether the key requires something of whoever uses the agent, for example `requires_tools: false`.
    fn is_requirement(&self) -> bool {
        self.words.iter().any(|word| word.starts_with("requir"))
    }

    /// Whether a key with a removing word, for example `deny_write`, removes something with this value.
    fn is_removal(&self) -> bool {
        let text = self.node.as_text().map(flatten_text).unwrap_or_default();
        let endless = matches!(text.as_str(), "unlimited" | "infinite") || text.starts_with('-');
        match self.says {
            ValueMeaning::Nothing | ValueMeaning::Yes if endless => false,
            // A number of 0 is still a limit, and `firewall: deny-all` does not switch the firewall
            // off.
            ValueMeaning::No => {
                matches!(self.node.value, YamlValue::Int(_)) && self.words.len() > 1
                    || DENYING.iter().any(|word| text.starts_with(word))
            }
            ValueMeaning::Empty => {
                contains_any(self.words, &self.tables.leaves)
                    || contains_any(self.words, &self.tables.gives)
            }
            ValueMeaning::Nothing => false,
            ValueMeaning::Number => {
                !self.node.as_text().is_some_and(|text| text.trim().starts_with('-'))
            }
            ValueMeaning::Yes | ValueMeaning::Less | ValueMeaning::List | ValueMeaning::Other => {
                true
            }
        }
    }

    /// Whether the value leaves less than all of an ability.
    fn less_able(&self) -> bool {
        let tables = self.tables;
        match self.says {
            ValueMeaning::No | ValueMeaning::Empty | ValueMeaning::Less | ValueMeaning::List => {
                true
            }
            ValueMeaning::Nothing | ValueMeaning::Yes | ValueMeaning::Number => false,
            ValueMeaning::Other => self.node.as_text().is_some_and(|text| {
                let place = contains_any(self.words, &tables.places)
                    || contains_any(self.words, &tables.vague_places);
                place && self.words.len() > 1 || tables.weak.contains(&flatten_text(text))
            }),
        }
    }

    fn is_place_limit(&self) -> bool {
        let tables = self.tables;
        let is_place = contains_any(self.words, &tables.places);
        let is_vague = contains_any(self.words, &tables.vague_places);
        match self.says {
            ValueMeaning::No | ValueMeaning::Empty | ValueMeaning::Less => is_place || is_vague,
            ValueMeaning::List if is_place => true,
            ValueMeaning::List if is_vague => {
                let YamlValue::List(items) = &self.node.value else { return false };
                let looks = |item: &YamlNode| {
                    item.as_text().is_none_or(|text| text.contains(['.', '/', '*', '~', ':', '\\']))
                };
                items.iter().any(looks)
            }
            _ => false,
        }
    }

    /// Whether the value is a number, or a time that begins with a number.
    fn starts_with_number(&self) -> bool {
        let text = self.node.as_text().map(str::trim).unwrap_or_default();
        text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    }

    /// Whether the key lists which abilities exist, so an empty list leaves none.
    fn names_what_there_is(&self) -> bool {
        contains_any(self.words, &self.tables.judged_lists)
    }

    /// Whether a key about rights has a value that restricts, for example a list or a denying word.
    fn is_restrictive_value(&self) -> bool {
        let tables = self.tables;
        let is_describing =
            self.plain.starts_with("capabilit") || self.plain.starts_with("feature");
        let strict = |text: &str| match is_describing {
            true => self.is_denying_text(text),
            false => {
                self.is_denying_text(text) || ValueMeaning::from_text(text) == ValueMeaning::Less
            }
        };
        let right = |text: &str| {
            let words = split_words(text);
            let means = |word: &String| tables.weak.contains(word) || tables.rights.contains(word);
            !words.is_empty() && words.iter().all(means)
        };
        let is_mode = self.words.iter().any(|word| word == "mode" || word == "modes");
        // `mode: 0444`.
        let is_number =
            self.says == ValueMeaning::Number || matches!(self.node.value, YamlValue::Int(2..));
        if is_mode && is_number {
            return true;
        }
        match (&self.node.value, self.says) {
            (YamlValue::List(items), _) => {
                let texts: Vec<&str> = items.iter().filter_map(YamlNode::as_text).collect();
                // `[read, [edit, {fileRegex: x}]]`: the first item of the inner list names the
                // right that the rest limits.
                let lists = items.iter().any(|item| matches!(item.value, YamlValue::List(_)));
                let rights =
                    (lists || texts.len() == items.len()) && texts.iter().all(|text| right(text));
                let empty = items.is_empty() && !is_describing;
                (rights && !items.is_empty() || empty) && self.names_what_there_is()
                    || texts.iter().any(|text| strict(text))
            }
            (_, ValueMeaning::No) => self.names_what_there_is(),
            (_, ValueMeaning::Yes) => self.plain == "plan",
            _ => self.node.as_text().filter(|text| text.len() <= MAX_NAME).is_some_and(|text| {
                let mode = is_mode && tables.weak_modes.contains(&flatten_text(text.trim()));
                strict(text) || right(text) || mode
            }),
        }
    }

    /// Whether a text denies: it has a denying word, or a negation with an object, for example `no shell`.
    fn is_denying_text(&self, text: &str) -> bool {
        const NO: &[&str] = &[
            "no", "not", "never", "without", "cannot", "dont", "non", "cant", "deny", "denies",
            "forbid", "disallow", "disable", "prohibit", "block", "ban", "exclude",
        ];
        let tables = self.tables;
        let words = split_words(text);
        let not = words.iter().position(|word| NO.contains(&word.as_str()));
        let able = |word: &String| tables.abilities.contains(word) || tables.gives.contains(word);
        let joined =
            tables.takes_joined.iter().any(|of| words.windows(of.len()).any(|it| it == of));
        let negated = not.is_some_and(|at| words.iter().skip(at).any(able));
        text.len() <= MAX_NAME
            && (tables.limiting.contains(&flatten_text(text.trim()))
                || words.len() <= 4 && (joined || negated))
    }

    /// Whether the value is a limit although the key is neutral: it denies, or it lists only tools.
    fn by_value(&self) -> bool {
        // A single name may be an ordinary word, for example `kind: Agent`.
        let names = |texts: &[&str]| {
            let names: Vec<&str> =
                texts.iter().flat_map(|it| it.split(',')).map(str::trim).collect();
            let many = names.len() > 1 || names.iter().all(|name| is_no_word_besides(name));
            many && names.into_iter().all(is_tool_of_a_program)
        };
        match &self.node.value {
            YamlValue::List(items) => {
                let texts: Vec<&str> = items.iter().filter_map(YamlNode::as_text).collect();
                let all = !texts.is_empty() && texts.len() == items.len();
                texts.iter().any(|text| self.is_denying_text(text))
                    || all && (names(&texts) || self.lists_rights(&texts))
            }
            _ => self.node.as_text().is_some_and(|text| {
                self.is_denying_text(text) || names(&[text]) || self.lists_rights(&[text])
            }),
        }
    }

    /// Whether texts consist only of words for rights, of which at least one is for reading.
    fn lists_rights(&self, texts: &[&str]) -> bool {
        let tables = self.tables;
        let words: Vec<String> = texts.iter().flat_map(|text| split_words(text)).collect();
        let right = |word: &String| {
            [&tables.reads, &tables.rights, &tables.weak, &tables.abilities, &tables.fill]
                .iter()
                .any(|of| of.contains(word))
        };
        texts.iter().all(|text| text.len() <= MAX_NAME)
            && contains_any(&words, &tables.reads)
            && words.iter().all(right)
    }
}

/// Whether a tool's name is no ordinary word. `kind: Agent`, for example, does not name the tool `Agent`.
fn is_no_word_besides(text: &str) -> bool {
    const TOOLS: &[&str] = &[
        "Read",
        "Write",
        "Edit",
        "MultiEdit",
        "Glob",
        "Grep",
        "LS",
        "WebFetch",
        "WebSearch",
        "Bash",
        "NotebookEdit",
        "TodoWrite",
    ];
    TOOLS.contains(&text) || text.contains('_')
}

/// Whether a nested field lists the available tools. The same key at the top level is the agent's own field.
fn lists_tools(plain: &str, node: &YamlNode) -> bool {
    let all = node.as_text().is_some_and(|text| matches!(text.trim(), "" | "*" | "all"));
    plain == "tools" && !all && !matches!(node.value, YamlValue::Null | YamlValue::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(yaml: &str) -> Vec<String> {
        let root = crate::yaml::parse_document(yaml, 1).unwrap();
        let YamlValue::Map(map) = root.value else { panic!("{yaml}") };
        map.iter().flat_map(|(key, node)| find_limits("", key, node)).map(|it| it.text).collect()
    }

    #[test]
    fn what_speaks_of_a_limit_is_found_in_name_and_value() {
        for yaml in [
            "maxToolCalls: 3",
            "max_budget_usd: 1.5",
            "no-network: true",
            "sandbox_profile: strict",
            "forbidden_paths: [a]",
            "allowed_paths: [src]",
            "allowed_paths: []",
            "approval_required: true",
            "file_access: read",
            "write: false",
            "web_search: disabled",
            "profile: read-only",
            "mode: plan",
            "security: { level: restricted }",
            "metadata: { rules: [{ max_edits: 2 }] }",
            "hooks: { PreToolUse: [{ matcher: Bash }] }",
            "constraints: [never write]",
            "disabled: true",
            "enabled: false",
            "only: [Read]",
            "view_only: true",
            "remove_tools: [Bash]",
            "without: [Bash]",
            "except: Bash",
            "nobash: true",
            "nowrite: true",
            "shell: none",
            "capabilities: [read]",
            "capabilities: [read, Network]",
            "rights: read",
            "requires_confirmation: true",
            "human_in_the_loop: true",
            "dry_run: true",
            "safe_mode: on",
            "protected_paths: [.git]",
            "ignore_files: ['*.env']",
            "mutating: false",
            "side_effects: false",
            "concurrency: 1",
            "iterations: 3",
            "quotas: { steps: 5 }",
            "expires: 2030-01-01",
            "config: { tools: [] }",
            "leaf: true",
            "writable: false",
            "write_paths: []",
            "write_path: docs",
            "groups: [read]",
            "policies: [read-only]",
            "fs: ro",
            "scope: read",
            "online: false",
            "skip_mcp: [a]",
            "shell: { enabled: false }",
            "capabilities: { write: false }",
            "network: { mode: none }",
            "turns: 5",
            "role: viewer",
            "paths: [src]",
            "domains: [example.org]",
            "uses: [Read, Grep]",
            "behaviour: no shell",
            "st\u{430}ge: read-only",
            "unrestricted: false",
            "untrusted: true",
            "rules: [never write files]",
            "claude: { tools: [Read] }",
        ] {
            assert_eq!(found(yaml).len(), 1, "{yaml}");
        }
    }

    #[test]
    fn what_speaks_of_none_is_left_alone() {
        for yaml in [
            "color: red",
            "tags: [sandbox, read-only]",
            "category: security/sandbox",
            "max_tokens: 4096",
            "maxRetries: 3",
            "no-network: false",
            "sandbox_profile: none",
            "allow_edits: true",
            "max_depth:",
            "streaming: false",
            "requires_tools: false",
            "notes: no limits in the network",
            "mode: subagent",
            "blockchain: mainnet",
            "hooks: { PreToolUse: [] }",
            "hooks: { Stop: [{ command: x }] }",
            "allowed_paths:",
            "disable-model-invocation: true",
            "user-invocable: false",
            "isolation: worktree",
            "capabilities: [research, writing]",
            "capabilities: []",
            "enabled: true",
            "memory: { enabled: false }",
            "dry_run: false",
            "notes: nothing",
            "node: 20",
            "nobility: true",
            "config: { tools: '*' }",
            "online: true",
            "spawning: yes",
            "role: backend developer",
            "scope: project",
            "groups: [engineering]",
            "domains: [healthcare]",
            "capabilities: [access-control, sandbox testing, safe refactoring]",
            "file: a.md",
            "agent: agent",
            "memory: project",
            "max_cost: unlimited",
            "fs: rw",
            "shell: { enabled: true }",
            "expertise_level: expert",
            "path: agents/a.md",
            "config: { tools: }",
        ] {
            assert_eq!(found(yaml), Vec::<String>::new(), "{yaml}");
        }
    }
}
