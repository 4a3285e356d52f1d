//! `[[hooks]]` of the home file: commands and components that run before and after tool calls, and when
//! agents start and stop.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use belljar_policy::{ShownText, ToolName};
use toml::de::DeTable;

use super::HookMatcher;
use super::schema::SettingsLoader;
use super::sections::is_digest;
use crate::LibraryName;
use crate::agent::list_of;
use crate::suggest;
use crate::toml_read::Item;

const HOOK_KEYS: &[&str] =
    &["event", "matcher", "command", "component", "digest", "plugin", "timeout_seconds"];

/// The most hooks of one file, because each runs before or after every call that it matches.
const MAX_HOOKS: usize = 100;

/// The default time of a command in seconds, below with the accepted range. Claude Code's first default was
/// 60; the later default, 600, is the most that makes sense before a single call.
const COMMAND_SECONDS: u64 = 60;
const COMMAND_RANGE: RangeInclusive<u64> = 1..=600;

/// The default time of a component in seconds, below with the accepted range. A component only computes, for
/// some milliseconds.
const COMPONENT_SECONDS: u64 = 2;
const COMPONENT_RANGE: RangeInclusive<u64> = 1..=30;

/// One hook.
#[derive(Debug, Clone, PartialEq)]
pub struct HookSetting {
    /// The event that starts the hook.
    pub event: HookEvent,
    /// The tools of the event; for `SubagentStart` and `SubagentStop`, the agents.
    pub matcher: HookMatcher,
    /// The action that runs.
    pub action: HookAction,
    /// The longest time of a run. Default: 60 seconds for a command, 2 for a component.
    pub timeout: Duration,
    /// The plugin that the hook came from, for example `market/tools`: its texts reach a model as the
    /// plugin's words. `None` = the operator's own.
    pub plugin: Option<LibraryName>,
}

/// The action of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAction {
    /// A command for `sh -c`, for example `./check.sh`, with the operator's own rights.
    Command(String),
    /// A component of the interface `belljar:hook`, without any right.
    Component {
        /// The path; a relative one was resolved against the directory of `belljar.toml`.
        path: PathBuf,
        /// The digest, `sha256:` and 64 hex digits; `None` = any content.
        digest: Option<String>,
    },
}

/// The event that starts a hook.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display, strum::IntoStaticStr,
)]
pub enum HookEvent {
    /// Before a permitted tool call.
    PreToolUse,
    /// After a successful tool call.
    PostToolUse,
    /// Before the first model call of a session's first turn.
    SessionStart,
    /// Before the first model call of each turn of a person.
    UserPromptSubmit,
    /// Before a subagent's first model call.
    SubagentStart,
    /// When a subagent is about to end.
    SubagentStop,
    /// When the agent at the root is about to end.
    Stop,
}

impl HookEvent {
    /// All events.
    pub const ALL: [Self; 7] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::SessionStart,
        Self::UserPromptSubmit,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::Stop,
    ];

    /// The name in settings files and in the hook's input.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the matcher names tools; otherwise agents.
    pub fn is_about_tools(self) -> bool {
        match self {
            Self::PreToolUse | Self::PostToolUse => true,
            Self::SessionStart
            | Self::UserPromptSubmit
            | Self::SubagentStart
            | Self::SubagentStop
            | Self::Stop => false,
        }
    }
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// Reads the list `[[hooks]]`.
    pub(super) fn read_hooks(&mut self, table: &DeTable<'t>) {
        let Some(item) = table.get("hooks") else { return };
        if item.get_ref().as_array().is_none() {
            let at = self.reader.position_of(item.span());
            let hint = "write `[[hooks]]`, once for each hook";
            self.reader.findings.error_hint(at, "bad-value", "`hooks` is not a list", hint);
            return;
        }
        let items = self.reader.read_list("hooks", item).unwrap_or_default();
        if items.len() > MAX_HOOKS {
            let message = format!("{} hooks, and at most {MAX_HOOKS} are accepted", items.len());
            self.reader.findings.error(self.reader.position_of(item.span()), "too-many", message);
            return;
        }
        for item in items {
            let Some(table) = self.reader.read_table("hooks", item) else { continue };
            self.reader.report_unknown_keys(table, "a hook", HOOK_KEYS);
            let (event, matcher) = (self.read_event(item, table), self.read_matcher(table));
            let action = self.read_action(item, table);
            let (Some(event), Some(matcher), Some(action)) = (event, matcher, action) else {
                continue;
            };
            let Some(timeout) = self.read_timeout(table, &action) else { continue };
            let Some(plugin) = self.read_plugin(table) else { continue };
            self.check_matcher(event, &matcher, table);
            self.settings.hooks.push(HookSetting { event, matcher, action, timeout, plugin });
        }
    }

    /// Reads the event of a hook.
    fn read_event(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<HookEvent> {
        let names = HookEvent::ALL.map(HookEvent::as_str);
        let Some(value) = table.get("event") else {
            self.report_missing(item, "`event`", &format!("the events are {}", list_of(&names)));
            return None;
        };
        let text = self.reader.text_of("event", value)?;
        let known = HookEvent::ALL.into_iter().find(|event| event.as_str() == text);
        if known.is_none() {
            let message = format!("`{}` is not an event here", ShownText::clip_line(text, 60));
            let hint = suggest::did_you_mean(text, names)
                .unwrap_or_else(|| format!("the events are {}", list_of(&names)));
            let at = self.reader.position_of(value.span());
            self.reader.findings.error_hint(at, "unknown-event", message, hint);
        }
        known
    }

    /// Reads the matcher of a hook; without the key, every name matches.
    fn read_matcher(&mut self, table: &DeTable<'t>) -> Option<HookMatcher> {
        let Some(item) = table.get("matcher") else { return Some(HookMatcher::match_all()) };
        let text = self.reader.text_of("matcher", item)?;
        match HookMatcher::parse(text) {
            Ok(matcher) => Some(matcher),
            Err(why) => {
                let at = self.reader.position_of(item.span());
                let hint = "write a name, names between `|`, or a regular expression";
                let message = format!("`matcher` is {why}");
                self.reader.findings.error_hint(at, "bad-matcher", message, hint);
                None
            }
        }
    }

    /// Reports a matcher that can never match, which is probably a typing error and would leave a guard
    /// without effect.
    fn check_matcher(&mut self, event: HookEvent, matcher: &HookMatcher, table: &DeTable<'t>) {
        let Some(item) = table.get("matcher") else { return };
        let at = self.reader.position_of(item.span());
        if matches!(event, HookEvent::Stop | HookEvent::UserPromptSubmit) && !matcher.is_all() {
            let hint = "remove `matcher`: there is one agent at the root";
            let message = format!("`{event}` has nothing to match");
            self.reader.findings.error_hint(at, "bad-matcher", message, hint);
        }
        if let Some(meant) = matcher.meant_as_search() {
            let shown = ShownText::new(matcher.as_str());
            let message = format!("matcher `{shown}` has to match the whole name");
            let hint = format!("write `{}`", ShownText::new(&meant));
            self.reader.findings.warning(at, "half-matcher", message, Some(hint));
        }
        if event.is_about_tools() {
            for tool in matcher.own_names().filter_map(|name| ToolName::new(name).ok()) {
                self.name_tool(&tool, item);
            }
        }
    }

    /// Reads `command` or `component`; a hook has exactly one.
    fn read_action(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<HookAction> {
        let at = self.reader.position_of(item.span());
        let digest = self.read_digest(table)?;
        match (table.get("command"), table.get("component")) {
            (Some(command), None) => {
                if let Some(item) = table.get("digest") {
                    let at = self.reader.position_of(item.span());
                    let hint = "remove it, or name a `component`";
                    let message = "a command has no `digest`";
                    self.reader.findings.error_hint(at, "bad-value", message, hint);
                }
                let text = self.reader.text_of("command", command)?;
                if text.trim().is_empty() || text.contains('\0') {
                    return self.reader.report_unfit_value(
                        "command",
                        command,
                        "a command for `sh -c`",
                    );
                }
                Some(HookAction::Command(text.to_owned()))
            }
            (None, Some(component)) => {
                let text = self.reader.text_of("component", component)?;
                if text.is_empty() {
                    return self.reader.report_unfit_value(
                        "component",
                        component,
                        "the path of a component",
                    );
                }
                let path = self.home_path(text);
                let path = self.path.parent().map_or(path.clone(), |dir| dir.join(&path));
                Some(HookAction::Component { path, digest })
            }
            (Some(_), Some(_)) => {
                let message = "both `command` and `component` are there";
                self.reader.findings.error_hint(at, "two-actions", message, "keep one");
                None
            }
            (None, None) => {
                let hint = "write `command = \"...\"`, or `component = \"guard.wasm\"`";
                self.report_missing(item, "`command` or `component`", hint);
                None
            }
        }
    }

    /// Reads the name of the plugin: `None` = invalid and reported, `Some(None)` = absent.
    fn read_plugin(&mut self, table: &DeTable<'t>) -> Option<Option<LibraryName>> {
        let Some(item) = table.get("plugin") else { return Some(None) };
        let text = self.reader.text_of("plugin", item)?;
        match LibraryName::from_exact(text) {
            Some(name) => Some(Some(name)),
            None => self.reader.report_unfit_value("plugin", item, "the name of a plugin"),
        }
    }

    /// Reads the digest: `None` = invalid and reported, `Some(None)` = absent.
    fn read_digest(&mut self, table: &DeTable<'t>) -> Option<Option<String>> {
        let Some(item) = table.get("digest") else { return Some(None) };
        let text = self.reader.text_of("digest", item)?;
        if is_digest(text) {
            return Some(Some(text.to_owned()));
        }
        self.reader.report_unfit_value("digest", item, "`sha256:` and 64 lower-case hex digits")
    }

    /// Reads the time limit, within the range for the kind of hook.
    fn read_timeout(&mut self, table: &DeTable<'t>, action: &HookAction) -> Option<Duration> {
        let (default, range) = match action {
            HookAction::Command(_) => (COMMAND_SECONDS, COMMAND_RANGE),
            HookAction::Component { .. } => (COMPONENT_SECONDS, COMPONENT_RANGE),
        };
        let Some(item) = table.get("timeout_seconds") else {
            return Some(Duration::from_secs(default));
        };
        let seconds = self.reader.read_number(table, "timeout_seconds")?;
        if range.contains(&seconds) {
            return Some(Duration::from_secs(seconds));
        }
        let wants = format!("from {} to {} seconds", range.start(), range.end());
        self.reader.report_unfit_value("timeout_seconds", item, &wants)
    }
}
