//! Whether a field that nobody understood speaks of a limit.
//!
//! An author who limits an agent in words of another program means the limit. A field whose name
//! or value speaks of one and that no table here knows blocks its agent, with the line shown.
//! Names and values are cut into words, so that `maximum` counts and `climax` does not; values
//! that switch such a field off count as nothing said.

use super::NotKept;
use crate::fields::boolean;
use crate::yaml::{Key, Node, Value};

/// The longest name of a field, in bytes. A longer key is nobody's field, and a longer value is
/// prose.
pub(super) const MAX_NAME: usize = 64;

/// How deep maps within maps are looked at; deeper ones speak of no field that a program has.
const MAX_DEPTH: usize = 6;

/// Words that take something away, unless the value switches them off.
const RESTRICT: &[&str] = &[
    "readonly",
    "deny",
    "denied",
    "denies",
    "denylist",
    "forbid",
    "forbids",
    "forbidden",
    "disallow",
    "disallowed",
    "disallows",
    "disabled",
    "restrict",
    "restricts",
    "restricted",
    "restriction",
    "restrictions",
    "sandbox",
    "sandboxed",
    "sandboxing",
    "approval",
    "approvals",
    "approve",
    "block",
    "blocked",
    "blocklist",
    "blacklist",
    "whitelist",
    "allowlist",
    "safelist",
    "exclude",
    "excluded",
    "excludes",
    "prohibit",
    "prohibited",
    "limit",
    "limits",
    "limited",
    "max",
    "maximum",
    "timeout",
    "deadline",
    "quota",
    "budget",
    "guardrail",
    "guardrails",
    "constraint",
    "constraints",
    "only",
    "except",
    "without",
    "remove",
    "removed",
    "omit",
    "ignore",
    "protected",
    "confirm",
    "confirmation",
    "hitl",
    "expires",
    "expiry",
    "quotas",
    "budgets",
    "concurrency",
    "iterations",
];

/// The same, of several words.
const RESTRICT_JOINED: &[&[&str]] =
    &[&["read", "only"], &["dry", "run"], &["safe", "mode"], &["human", "in", "the", "loop"]];

/// Words that give something, unless the value gives all of it.
const PERMIT: &[&str] = &[
    "allow",
    "allowed",
    "allows",
    "permit",
    "permits",
    "permitted",
    "permission",
    "permissions",
    "network",
    "internet",
    "access",
    "rights",
    "privileges",
];

/// Abilities that a value can take away which says no.
const ABILITY: &[&str] = &[
    "write",
    "writes",
    "edit",
    "edits",
    "modify",
    "delete",
    "bash",
    "shell",
    "terminal",
    "exec",
    "execute",
    "execution",
    "command",
    "commands",
    "delegate",
    "delegation",
    "spawn",
    "subagent",
    "subagents",
    "web",
    "fetch",
    "tool",
    "tools",
    "mcp",
    "filesystem",
    "files",
    "mutating",
    "mutation",
    "mutations",
    "effects",
];

/// Values that limit, whatever the field.
const LIMITING: &[&str] = &[
    "readonly",
    "readonlymode",
    "readonlyaccess",
    "deny",
    "denied",
    "denyall",
    "forbidden",
    "restricted",
    "sandbox",
    "sandboxed",
    "nonetwork",
    "nowrite",
    "nowrites",
    "noexec",
    "nodelegation",
    "leastprivilege",
    "planonly",
];

/// Lists of capabilities that are lists of rights: such a one allows what it names and no more.
/// Others say what an agent is good at.
const RIGHTS: &[&str] = &[
    "read",
    "write",
    "edit",
    "delete",
    "execute",
    "exec",
    "shell",
    "bash",
    "network",
    "web",
    "internet",
    "filesystem",
    "none",
];

/// Values of `mode` that limit.
const LIMITING_MODES: &[&str] = &["plan", "ask", "review", "safe"];

/// Fields that are read and found to limit nothing that an agent may do here, and why.
pub(super) const NO_LIMITS: &[(&str, &str)] = &[
    ("maxtokens", ANSWER),
    ("maxoutputtokens", ANSWER),
    ("maxcompletiontokens", ANSWER),
    ("maxresponsetokens", ANSWER),
    ("maxnewtokens", ANSWER),
    ("maxthinkingtokens", ANSWER),
    ("thinkingbudget", ANSWER),
    ("reasoningbudget", ANSWER),
    ("budgettokens", ANSWER),
    ("maxcontexttokens", ANSWER),
    ("maxcontext", ANSWER),
    ("contextlimit", ANSWER),
    ("maxretries", RETRIES),
    ("maxretry", RETRIES),
    ("retrylimit", RETRIES),
    ("disablemodelinvocation", STARTS),
    ("allowimplicitinvocation", STARTS),
    ("userinvocable", STARTS),
];

const ANSWER: &str = "how much the model reads and writes is the operator's, in its settings";
const RETRIES: &str = "trying again gives nothing";
const STARTS: &str = "it says who may start the agent, not what that may do";

/// Fields for people's eyes, or prose: words of limits in them limit nothing.
const DISPLAY: &[&str] = &[
    "argumenthint",
    "author",
    "capabilities",
    "category",
    "color",
    "complexity",
    "dependencies",
    "description",
    "displayname",
    "emoji",
    "examples",
    "id",
    "initialprompt",
    "keywords",
    "license",
    "model",
    "name",
    "prompt",
    "tags",
    "title",
    "url",
    "version",
    "vibe",
];

/// Hooks that can refuse a call. They are not run here, so what they refuse is not refused.
const REFUSING_HOOKS: &[&str] = &["pretooluse", "permissionrequest", "beforetool"];

/// A text in lower case, without what only joins words.
pub(super) fn flat(text: &str) -> String {
    let letters = text.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}

/// Whether a key that stands in broken YAML is such a field rather than prose: several words
/// joined as no sentence joins them, one of which takes something away.
pub(super) fn is_joined(key: &str) -> bool {
    let words = words(key);
    let plain = flat(key);
    key.len() <= MAX_NAME
        && words.len() > 1
        && !DISPLAY.contains(&plain.as_str())
        && !is_no_limit(key)
        && (restricts(&words) || any(&words, PERMIT))
}

/// Whether a key is one such word by itself. Prose has those too: what follows it tells.
pub(super) fn is_word(key: &str) -> bool {
    let words = words(key);
    let plain = flat(key);
    key.len() <= MAX_NAME
        && words.len() == 1
        && !DISPLAY.contains(&plain.as_str())
        && !is_no_limit(key)
        && restricts(&words)
}

/// Whether a field is known to limit nothing of what an agent may do.
pub(super) fn is_no_limit(key: &str) -> bool {
    let plain = flat(key);
    NO_LIMITS.iter().any(|(name, _)| *name == plain)
}

/// The lines of a field, and of those within it, that speak of a limit. `above` is what leads to
/// it, with its final dot.
pub(super) fn speaks(above: &str, key: &Key, node: &Node) -> Vec<NotKept> {
    let mut found = Vec::new();
    look(above, key, node, MAX_DEPTH, &mut found);
    found
}

fn look(above: &str, key: &Key, node: &Node, depth: usize, found: &mut Vec<NotKept>) {
    let plain = flat(&key.text);
    let harmless = is_no_limit(&key.text);
    let path = format!("{above}{}", key.text);
    if plain == "capabilities" && names_rights(node) {
        found.push(NotKept::of(&path, key, node));
        return;
    }
    if key.text.len() > MAX_NAME || harmless || DISPLAY.contains(&plain.as_str()) {
        return;
    }
    // Within another field, `enabled` is about that one.
    let is_off = above.is_empty() && plain == "enabled" && boolean(node) == Some(false);
    let within = !above.is_empty() && lists_tools(&plain, node);
    if is_off || within || limits(&key.text, &plain, node) {
        found.push(NotKept::of(&path, key, node));
        return;
    }
    let Some(depth) = depth.checked_sub(1) else { return };
    let above = format!("{path}.");
    let items = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    for item in items {
        let Value::Map(entries) = &item.value else { continue };
        for (key, node) in entries {
            look(&above, key, node, depth, found);
        }
    }
}

/// Whether a field by itself speaks of a limit.
fn limits(key: &str, plain: &str, node: &Node) -> bool {
    let words = words(key);
    let value = node.text().map(str::trim).filter(|text| text.len() <= MAX_NAME).map(flat);
    let value = value.as_deref();
    let empty = match &node.value {
        Value::Null => true,
        Value::List(items) => items.is_empty(),
        Value::Map(entries) => entries.is_empty(),
        Value::Text(text) => text.trim().is_empty(),
        Value::Bool(_) | Value::Int(_) | Value::Float => false,
    };
    if empty {
        // An empty list of what is allowed allows nothing.
        return matches!(node.value, Value::List(_)) && any(&words, PERMIT);
    }
    let no = boolean(node) == Some(false)
        || value.is_some_and(|v| matches!(v, "no" | "off" | "none" | "disabled" | "unlimited"));
    let yes = boolean(node) == Some(true)
        || value.is_some_and(|v| matches!(v, "yes" | "on" | "all" | "any" | "*" | "full"));
    let says_no = boolean(node) == Some(false)
        || value.is_some_and(|v| {
            let never = ["no", "off", "never", "none", "deny", "denied", "disabled", "forbidden"];
            never.contains(&v)
        });
    let asks = words.iter().any(|word| word.starts_with("requir"));
    let by_name = if restricts(&words) {
        !no
    } else {
        (any(&words, PERMIT) && !yes) || (any(&words, ABILITY) && says_no && !asks)
    };
    REFUSING_HOOKS.contains(&plain)
        || by_name
        || value.is_some_and(|value| LIMITING.contains(&value))
        || (plain == "mode" && value.is_some_and(|value| LIMITING_MODES.contains(&value)))
}

fn restricts(words: &[String]) -> bool {
    let negated = words.len() > 1 && words.first().is_some_and(|word| word == "no");
    // `nobash`, which nobody cut into words.
    let takes = |word: &String| word.strip_prefix("no").is_some_and(|rest| ABILITY.contains(&rest));
    let joined = |of: &&[&str]| words.windows(of.len()).any(|part| part == *of);
    negated || words.iter().any(takes) || RESTRICT_JOINED.iter().any(joined) || any(words, RESTRICT)
}

/// Whether a field within another says which tools there are: of an agent's own fields that one is
/// read, and what stands below another program's name is not.
fn lists_tools(plain: &str, node: &Node) -> bool {
    let all = node.text().is_some_and(|text| matches!(text.trim(), "" | "*" | "all"));
    plain == "tools" && !all && !matches!(node.value, Value::Null | Value::Bool(_))
}

/// Whether a list of capabilities is one of rights.
fn names_rights(node: &Node) -> bool {
    let right =
        |node: &Node| node.text().is_some_and(|text| RIGHTS.contains(&flat(text.trim()).as_str()));
    match &node.value {
        Value::List(items) => !items.is_empty() && items.iter().all(right),
        _ => right(node),
    }
}

fn any(words: &[String], of: &[&str]) -> bool {
    words.iter().any(|word| of.contains(&word.as_str()))
}

/// The words of a key: `maxToolCalls`, `max_tool_calls` and `max-tool-calls` have three.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for c in key.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower) {
            words.push(String::new());
        }
        lower = c.is_lowercase() || c.is_ascii_digit();
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(yaml: &str) -> Vec<String> {
        let root = crate::yaml::parse(yaml, 1).unwrap();
        let Value::Map(map) = root.value else { panic!("{yaml}") };
        map.iter().flat_map(|(key, node)| speaks("", key, node)).map(|it| it.text).collect()
    }

    #[test]
    fn names_are_cut_into_words() {
        assert_eq!(words("maxToolCalls"), ["max", "tool", "calls"]);
        assert_eq!(words("no-network"), ["no", "network"]);
        assert_eq!(words("READ_ONLY"), ["read", "only"]);
        assert_eq!(words("climax"), ["climax"]);
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
            "config: { tools: }",
        ] {
            assert_eq!(found(yaml), Vec::<String>::new(), "{yaml}");
        }
    }

    #[test]
    fn what_limits_nothing_has_its_reason_and_no_name_stands_in_two_tables() {
        for (name, why) in NO_LIMITS {
            assert!(!why.is_empty() && flat(name) == *name && !DISPLAY.contains(name), "{name}");
        }
    }
}
