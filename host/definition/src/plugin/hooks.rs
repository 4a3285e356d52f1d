//! The hooks of a plugin, as its author wrote them. Nothing here runs one.

use std::fmt;

use belljar_policy::ShownText;
use serde_json::{Map, Value};

use crate::HookEvent;
use crate::diagnostic::{FileFindings, FilePosition};

/// The most hooks of one plugin. The largest public one has some 30.
const MAX_HOOKS: usize = 200;

/// The most characters of a command. Public ones have at most some 2,000.
const MAX_COMMAND: usize = 8_000;

/// One hook of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginHook {
    /// The event as written.
    pub event: String,
    /// The matcher as written; empty = everything.
    pub matcher: String,
    /// The action.
    pub action: PluginHookAction,
    /// The longest time in seconds, as written.
    pub timeout: Option<u64>,
    /// The fields that have no meaning here, for example `async`.
    pub ignored: Vec<String>,
}

/// The action of a plugin's hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginHookAction {
    /// A command for a shell.
    Command(String),
    /// Another kind, for example `prompt`, with its text.
    Other {
        /// The kind as written.
        kind: String,
        /// The text or address; may be empty.
        text: String,
    },
}

impl PluginHook {
    /// The event of belljar's with this name.
    pub fn known_event(&self) -> Option<HookEvent> {
        HookEvent::ALL.into_iter().find(|event| event.as_str() == self.event)
    }

    /// The command, if it is one.
    pub fn command(&self) -> Option<&str> {
        match &self.action {
            PluginHookAction::Command(command) => Some(command),
            PluginHookAction::Other { .. } => None,
        }
    }
}

impl fmt::Display for PluginHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", ShownText::clip_line(&self.event, 40))?;
        if !self.matcher.is_empty() && self.matcher != "*" {
            write!(f, " of {}", ShownText::clip_line(&self.matcher, 80))?;
        }
        match &self.action {
            PluginHookAction::Command(command) => {
                write!(f, ": runs `{}`", ShownText::clip_line(command, 200))
            }
            PluginHookAction::Other { kind, text } => {
                let (kind, text) =
                    (ShownText::clip_line(kind, 40), ShownText::clip_line(text, 120));
                write!(f, ": {kind} `{text}`")
            }
        }
    }
}

/// Reads the hooks of a document: `{"hooks": {EVENT: [...]}}`, or the inner object alone. A malformed hook is
/// reported, and its siblings stay.
pub(super) fn read_hooks(
    mut map: Map<String, Value>,
    found: &mut Vec<PluginHook>,
    findings: &mut FileFindings<'_>,
) {
    let at = FilePosition::default();
    let events = match map.remove("hooks") {
        Some(Value::Object(events)) => events,
        // The list of Cursor and of some plugins, each item with its event.
        Some(Value::Array(items)) => {
            for item in items {
                let event =
                    item.get("event").and_then(Value::as_str).unwrap_or_default().to_owned();
                read_group(&event, &item, found, findings);
            }
            return;
        }
        Some(_) => return findings.warning(at, "bad-hooks", "`hooks` is no object", None),
        None => {
            for described in ["description", "version", "$schema"] {
                map.remove(described);
            }
            map
        }
    };
    for (event, groups) in events {
        match groups {
            Value::Array(groups) => {
                for group in &groups {
                    read_group(&event, group, found, findings);
                }
            }
            group @ Value::Object(_) => read_group(&event, &group, found, findings),
            _ => {
                let shown = ShownText::clip_line(&event, 40);
                let message = format!("event `{shown}` has no list of hooks");
                findings.warning(at, "bad-hook", message, None);
            }
        }
    }
}

/// A group has a matcher and hooks; some authors leave the group out.
fn read_group(
    event: &str,
    group: &Value,
    found: &mut Vec<PluginHook>,
    findings: &mut FileFindings<'_>,
) {
    let at = FilePosition::default();
    let shown = ShownText::clip_line(event, 40).to_string();
    let bad = |why: &str, findings: &mut FileFindings<'_>| {
        findings.warning(at, "bad-hook", format!("a hook of `{shown}` {why}"), None);
    };
    let Some(group) = group.as_object() else { return bad("is no object", findings) };
    let matcher = match group.get("matcher") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(matcher)) => matcher.clone(),
        // `{"tool_name": "Bash"}`, as some plugins write.
        Some(Value::Object(map)) => {
            let names = map.values().filter_map(Value::as_str);
            names.collect::<Vec<_>>().join("|")
        }
        Some(_) => return bad("has a matcher that is no text", findings),
    };
    let hooks: Vec<&Value> = match group.get("hooks") {
        Some(Value::Array(hooks)) => hooks.iter().collect(),
        Some(_) => return bad("has no list of hooks", findings),
        None => return read_hook(event, &matcher, group, found, findings),
    };
    for hook in hooks {
        match hook.as_object() {
            Some(hook) => read_hook(event, &matcher, hook, found, findings),
            None => bad("is no object", findings),
        }
    }
}

fn read_hook(
    event: &str,
    matcher: &str,
    hook: &Map<String, Value>,
    found: &mut Vec<PluginHook>,
    findings: &mut FileFindings<'_>,
) {
    let at = FilePosition::default();
    let shown = ShownText::clip_line(event, 40).to_string();
    if found.len() >= MAX_HOOKS {
        return findings.warning(at, "too-many", format!("more than {MAX_HOOKS} hooks"), None);
    }
    let text = |key: &str| hook.get(key).and_then(Value::as_str).map(str::to_owned);
    let command = text("command").or_else(|| text("bash"));
    let kind = text("type").unwrap_or_else(|| "command".to_owned());
    let action = match (kind.as_str(), command) {
        ("command", Some(command)) if command.len() <= MAX_COMMAND => {
            PluginHookAction::Command(with_arguments(command, hook))
        }
        ("command", _) => {
            let message = format!("a hook of `{shown}` has no command, or too long a one");
            return findings.warning(at, "bad-hook", message, None);
        }
        (_, _) => {
            let text = text("prompt").or_else(|| text("url")).unwrap_or_default();
            PluginHookAction::Other { kind, text: text.chars().take(MAX_COMMAND).collect() }
        }
    };
    let timeout = hook.get("timeout").or_else(|| hook.get("timeoutSec")).and_then(Value::as_f64);
    // Some authors write milliseconds.
    let seconds =
        timeout.filter(|it| *it > 0.0).map(|it| if it > 3_600.0 { it / 1_000.0 } else { it });
    let known = [
        "type",
        "command",
        "bash",
        "args",
        "timeout",
        "timeoutSec",
        "matcher",
        "event",
        "prompt",
        "url",
    ];
    let ignored = hook.keys().filter(|key| !known.contains(&key.as_str()));
    found.push(PluginHook {
        event: event.to_owned(),
        matcher: matcher.to_owned(),
        action,
        timeout: seconds.map(|it| it.ceil() as u64),
        ignored: ignored.map(|key| ShownText::clip_line(key, 40).to_string()).collect(),
    });
}

/// The command with its arguments, each quoted for a shell.
fn with_arguments(command: String, hook: &Map<String, Value>) -> String {
    let arguments = hook.get("args").and_then(Value::as_array).into_iter().flatten();
    arguments.filter_map(Value::as_str).fold(command, |command, argument| {
        format!("{command} '{}'", argument.replace('\'', r"'\''"))
    })
}
