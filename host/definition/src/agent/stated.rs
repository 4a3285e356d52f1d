//! Enforces limits that other programs' files state in their own fields, for example `read_only: true` or
//! `max_turns: 5`.
//!
//! Each such field only removes rights, so it is read in a file of any dialect. An unknown value is never
//! guessed: the field is returned to the caller, and the agent is blocked.

use std::collections::BTreeMap;

use belljar_policy::{AskedRights, CallPermission, LimitsRequest, ShownText, ToolName, WriteScope};

use super::builtin_tools::{BUILTIN_TOOLS, WORKTREE};
use super::limit_words::{self, MAX_NAME};
use super::narrowed::delegate_nothing;
use super::says::ValueMeaning;
use super::stated_fields::{FieldStatement, stated_names};
use super::tool_list::ToolList;
use super::words::{flatten_text, is_crossed_out};
use super::{NotKept, SubagentsAsk};
use crate::fields::{UnreadFields, parse_boolean};
use crate::yaml::{YamlKey, YamlNode, YamlValue};

/// Belljar's own tools that only read; a test compares the list with the tools' hints. The hints of other
/// tools are unverified, so they never make an agent read-only.
pub const READING_TOOLS: [&str; 7] = [
    "attach_file",
    "file_find",
    "file_list",
    "file_read",
    "file_search",
    "web_fetch",
    "web_search",
];

/// Tools that run a program which the model has written.
const RUNNING_TOOLS: [&str; 3] = ["shell", "run_python", "run_javascript"];

/// Tools that reach a host, for example `web_fetch`.
const WEB_TOOLS: [&str; 2] = ["web_fetch", "web_search"];

/// The largest number without a unit that counts as seconds, because a larger number may mean milliseconds.
const PLAIN_SECONDS: u64 = 999;

use FieldStatement::{
    Approval, Children, Concurrent, Delegates, Depth, Files, Millis, Minutes, Nested, Network,
    NoDelegates, NoNetwork, NoRuns, PermissionMode, ReadOnly, Runs, Sandbox, Seconds, Steps, Time,
    Tokens, Writes as Writing,
};

/// Whether a key is a field that this module enforces.
pub(super) fn is_stated(key: &str) -> bool {
    find_statement(key).is_some()
}

/// Which limit a field states, for example for `max_turns`; `None` = it is no such field.
fn find_statement(key: &str) -> Option<FieldStatement> {
    if key.len() > MAX_NAME || is_crossed_out(key) {
        return None;
    }
    let plain = flatten_text(key);
    stated_names().find(|(_, name)| *name == plain).map(|(states, _)| states)
}

/// The limiting field that a key misspells by one edit: a letter inserted, missing, replaced, or swapped with
/// its neighbour. Only names of at least eight letters and the few in `SHORT` are compared, because other
/// short names resemble ordinary words.
pub(super) fn find_misspelt_field(key: &str) -> Option<&'static str> {
    /// Short names that hardly resemble another word.
    const SHORT: [&str; 3] = ["offline", "network", "sandbox"];
    const LONG: usize = 8;
    if key.len() > MAX_NAME || is_stated(key) || limit_words::is_spelt_right(key) {
        return None;
    }
    let plain = flatten_text(key);
    let names = stated_names().map(|(_, name)| name);
    let mut names = names.filter(|name| name.len() >= LONG || SHORT.contains(name));
    names.find(|name| strsim::damerau_levenshtein(&plain, name) == 1)
}

/// Applies the limits that the fields of a file state.
pub(super) struct NarrowingReader<'a> {
    pub(super) tools: &'a mut ToolList,
    pub(super) asked: &'a mut AskedRights,
    pub(super) subagents: &'a mut Option<SubagentsAsk>,
    pub(super) not_kept: &'a mut Vec<NotKept>,
}

impl NarrowingReader<'_> {
    /// Removes the known fields from the file's fields and applies their limits.
    pub(super) fn read_fields(&mut self, fields: &mut UnreadFields<'_, '_>) {
        while let Some((key, node)) = fields.take_matching(is_stated) {
            if find_statement(&key.text) == Some(PermissionMode) && is_widening_mode(&node) {
                let name = ShownText::clip_line(&key.text, MAX_NAME);
                let message =
                    format!("`{name}` is not honoured: a file grants itself nothing here");
                fields.findings.warning(key.at, "not-honoured", message, None);
                continue;
            }
            self.read_field("", &key, &node);
        }
        if let Some(by) = self.tools.read_only.take() {
            self.read_only(&by);
        }
    }

    /// Applies a field. An unknown value is added to the limits that are not enforced, and blocks the
    /// agent.
    fn read_field(&mut self, above: &str, key: &YamlKey, node: &YamlNode) {
        let Some(states) = find_statement(&key.text).filter(|_| node.value != YamlValue::Null)
        else {
            return;
        };
        let by = (format!("{above}{}", key.text), key.at.line);
        if self.apply_statement(states, &by, node).is_none() {
            self.not_kept.push(NotKept::from_field(&by.0, key, node));
        }
        let delegation = matches!(states, Delegates | NoDelegates | Depth | Children | Concurrent);
        if delegation && self.subagents.as_ref().is_some_and(SubagentsAsk::is_nobody) {
            delegate_nothing(&by, self.tools);
        }
    }

    /// Applies what one field states; `None` = the value is unknown.
    fn apply_statement(
        &mut self,
        states: FieldStatement,
        by: &(String, u32),
        node: &YamlNode,
    ) -> Option<()> {
        match states {
            ReadOnly if parse_switch(node)? => self.read_only(by),
            PermissionMode if normalized_word(node)? == "plan" => self.read_only(by),
            PermissionMode => return None,
            Sandbox => return self.apply_sandbox(by, node),
            Approval => return self.apply_approval(by, node),
            Writing if !has_ability(node)? => self.read_only(by),
            Runs if !has_ability(node)? => self.deny_tools(by, &RUNNING_TOOLS),
            NoRuns if parse_switch(node)? => self.deny_tools(by, &RUNNING_TOOLS),
            Files => return self.apply_files(by, node),
            Network if !has_ability(node)? => self.deny_network(by),
            NoNetwork if parse_switch(node)? => self.deny_network(by),
            Delegates if !has_ability(node)? => self.subagents_mut().enabled = Some(false),
            NoDelegates if parse_switch(node)? => self.subagents_mut().enabled = Some(false),
            // The value permits, so the field removes nothing.
            ReadOnly | Writing | Runs | NoRuns | Network | NoNetwork | Delegates | NoDelegates => {}
            Depth | Children | Concurrent => {
                return self.limit_subagents(states, parse_number(node)?);
            }
            Nested => {
                let YamlValue::Map(entries) = &node.value else { return None };
                entries.iter().for_each(|(key, node)| self.read_nested_field(&by.0, key, node));
            }
            Steps | Millis | Seconds | Minutes | Time | Tokens => {
                self.asked.limits = self.asked.limits.and(&parse_limit(states, node)?);
            }
        }
        Some(())
    }

    /// Applies a limit on depth or number of subagents; `None` = belljar has no such limit.
    fn limit_subagents(&mut self, states: FieldStatement, n: u64) -> Option<()> {
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        let asked = self.subagents.get_or_insert_default();
        let most = match states {
            Depth => &mut asked.max_depth,
            _ if n == 0 => {
                asked.enabled = Some(false);
                return Some(());
            }
            Concurrent => &mut asked.max_concurrent,
            // No counter exists for the total of subagents.
            _ => return None,
        };
        *most = Some(most.unwrap_or(n).min(n));
        Some(())
    }

    /// Applies the fields in a nested map.
    fn read_nested_field(&mut self, above: &str, key: &YamlKey, node: &YamlNode) {
        let above = format!("{above}.");
        match is_stated(&key.text) {
            true => self.read_field(&above, key, node),
            false => self.not_kept.extend(limit_words::find_limits(&above, key, node)),
        }
    }

    fn subagents_mut(&mut self) -> &mut SubagentsAsk {
        self.subagents.get_or_insert_default()
    }

    /// Leaves only tools that read, and no writable mount, for the agent and its subagents.
    fn read_only(&mut self, by: &(String, u32)) {
        self.asked.writes = WriteScope::Nowhere;
        self.tools.lower_permissions(by, &reading_tools(), Some(CallPermission::Deny));
    }

    /// Denies these tools because of a field.
    fn deny_tools(&mut self, by: &(String, u32), tools: &[&str]) {
        let named = tools.iter().filter_map(|name| ToolName::new(name).ok());
        self.tools.lower_permissions(
            by,
            &named.map(|tool| (tool, CallPermission::Deny)).collect(),
            None,
        );
    }

    /// Removes all hosts, and the tools whose work is to reach a host.
    fn deny_network(&mut self, by: &(String, u32)) {
        self.asked.hosts = Some(Vec::new());
        self.deny_tools(by, &WEB_TOOLS);
    }

    /// Applies a field about access to files; `None` = the value is unknown.
    fn apply_files(&mut self, by: &(String, u32), node: &YamlNode) -> Option<()> {
        match normalized_word(node)?.as_str() {
            "ro" | "r" | "read" | "reading" | "readonly" | "viewonly" => self.read_only(by),
            "rw" | "readwrite" | "full" | "all" | "any" | "true" | "yes" | "on"
            | "unrestricted" => {}
            _ => return None,
        }
        Some(())
    }

    /// Applies `sandbox` or `sandbox_mode`; `None` = the value is unknown.
    fn apply_sandbox(&mut self, by: &(String, u32), node: &YamlNode) -> Option<()> {
        match normalized_word(node)?.as_str() {
            "readonly" => self.read_only(by),
            "workspacewrite" => self.asked.writes = self.asked.writes.min(WriteScope::Workspace),
            // Every agent runs in the sandbox, and no agent can leave it.
            "true" | "false" | "on" | "off" | "none" | "dangerfullaccess" => {}
            _ => return None,
        }
        Some(())
    }

    /// Applies a field about approvals, for example `approval_policy`; `None` = the value is unknown.
    fn apply_approval(&mut self, by: &(String, u32), node: &YamlNode) -> Option<()> {
        match normalized_word(node)?.as_str() {
            // These values ask for approval of extra rights, which no agent gets here.
            "never" | "onrequest" | "onfailure" | "auto" | "none" | "false" => {}
            "untrusted" | "unlesstrusted" => {
                self.tools.lower_permissions(by, &reading_tools(), Some(CallPermission::Ask));
            }
            "always" | "ask" | "manual" | "required" | "true" => {
                self.tools.lower_permissions(by, &BTreeMap::new(), Some(CallPermission::Ask));
            }
            _ => return None,
        }
        Some(())
    }
}

/// Whether a value of `permissionMode` asks for more rights or keeps the default. Such a value has no effect,
/// because a file cannot grant itself rights.
fn is_widening_mode(node: &YamlNode) -> bool {
    const MODES: [&str; 4] = ["default", "acceptedits", "auto", "bypasspermissions"];
    normalized_word(node).is_some_and(|word| MODES.contains(&word.as_str()))
}

/// Tools without effects outside the session. `spawn_agent` is among them, because a subagent never has more
/// rights than its parent. The worktree tool is left out, because it exists for making changes.
pub(super) fn reading_tools() -> BTreeMap<ToolName, CallPermission> {
    let own = BUILTIN_TOOLS.into_iter().filter(|name| *name != WORKTREE);
    let names = READING_TOOLS.into_iter().chain(own);
    names.filter_map(|name| Some((ToolName::new(name).ok()?, CallPermission::Allow))).collect()
}

/// A value as one lower-case word without joining characters.
fn normalized_word(node: &YamlNode) -> Option<String> {
    match &node.value {
        YamlValue::Bool(value) => Some(value.to_string()),
        _ => node
            .as_text()
            .filter(|text| text.len() <= MAX_NAME)
            .map(|text| flatten_text(text.trim())),
    }
}

/// Parses a value that means on or off; `None` = unknown.
fn parse_switch(node: &YamlNode) -> Option<bool> {
    parse_boolean(node).or_else(|| match normalized_word(node)?.as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" | "never" | "none" => Some(false),
        _ => None,
    })
}

/// Whether a value leaves some of an ability. An empty list leaves nothing. `None` = the value is unknown.
fn has_ability(node: &YamlNode) -> Option<bool> {
    match ValueMeaning::from_node(node) {
        ValueMeaning::Yes => Some(true),
        ValueMeaning::No | ValueMeaning::Empty => Some(false),
        ValueMeaning::Nothing
        | ValueMeaning::Less
        | ValueMeaning::List
        | ValueMeaning::Number
        | ValueMeaning::Other => None,
    }
}

fn parse_number(node: &YamlNode) -> Option<u64> {
    node.as_integer().and_then(|n| u64::try_from(n).ok())
}

/// Parses the value of a limit in steps, tokens or time; `None` = unknown.
fn parse_limit(states: FieldStatement, node: &YamlNode) -> Option<LimitsRequest> {
    let n = parse_number(node).filter(|n| *n > 0);
    let mut limits = LimitsRequest::default();
    match states {
        Steps => limits.steps = Some(n?),
        Tokens => limits.tokens = Some(n?),
        Millis => limits.timeout_seconds = Some(n?.div_ceil(1_000)),
        Seconds => limits.timeout_seconds = Some(n?),
        Minutes => limits.timeout_seconds = Some(n?.saturating_mul(60)),
        _ => limits.timeout_seconds = Some(parse_seconds(node, n)?),
    }
    Some(limits)
}

/// Parses a time into seconds: a number with a unit, or a number small enough to mean seconds.
fn parse_seconds(node: &YamlNode, plain: Option<u64>) -> Option<u64> {
    if let Some(n) = plain {
        return (n <= PLAIN_SECONDS).then_some(n);
    }
    let text = node.as_text()?.trim();
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let n = digits.parse::<u64>().ok().filter(|n| *n > 0)?;
    match flatten_text(unit.trim()).as_str() {
        "ms" | "millis" | "milliseconds" => Some(n.div_ceil(1_000)),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(n),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(n.saturating_mul(60)),
        "h" | "hour" | "hours" => Some(n.saturating_mul(3_600)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_known_in_every_spelling_and_stands_once_in_the_table() {
        for key in ["max_turns", "maxTurns", "MAX-TURNS", "read-only", "sandbox_mode"] {
            assert!(is_stated(key), "{key}");
        }
        for key in ["raedonly", "read_onli", "readoly", "of-line", "mxa_turns"] {
            assert!(find_misspelt_field(key).is_some(), "{key}");
        }
        for key in ["testing", "inline", "outline", "ban_write", "read_only", "x"] {
            assert_eq!(find_misspelt_field(key), None, "{key}");
        }
        assert!(!is_stated("-bash"));
        assert!(!is_stated("maximum") && !is_stated("max_tokens"));
        let once: std::collections::BTreeSet<_> = stated_names().map(|(_, name)| name).collect();
        assert_eq!(once.len(), stated_names().count());
        assert!(
            once.iter().all(|name| *name == flatten_text(name) && !name.is_empty())
                && once.len() > 280
        );
    }

    #[test]
    fn a_time_is_never_read_as_longer_than_it_is() {
        let time = |text: &str| {
            let root = crate::yaml::parse_document(&format!("t: {text}"), 1).unwrap();
            let YamlValue::Map(map) = root.value else { panic!("{text}") };
            parse_limit(Time, &map[0].1).and_then(|limits| limits.timeout_seconds)
        };
        assert_eq!(time("90"), Some(90));
        assert_eq!(time("5m"), Some(300));
        assert_eq!(time("1500 ms"), Some(2));
        assert_eq!(time("2 hours"), Some(7_200));
        for unknown in ["300000", "soon", "5 moons", "0s", "-1", "1.5h"] {
            assert_eq!(time(unknown), None, "{unknown}");
        }
    }
}
