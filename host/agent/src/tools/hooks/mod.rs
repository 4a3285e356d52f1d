//! Hooks: commands and components of the operator that see tool calls before and after they
//! happen, and agents when they start and stop. Hooks deny or ask; no answer of a hook adds a right.
//!
//! ```text
//! apply (when) ──> judge (one hook) ──> command ──> output (what its answer means)
//!    └──> input (what it is told)  └──> a component in the sandbox
//! ```
//!
//! The hooks of one call run one after another in the order of `belljar.toml`, each with the
//! arguments left by earlier ones. So do the hooks of one step's calls: a slow hook never lets another call
//! overtake.

mod apply;
mod check;
mod command;
mod input;
mod judge;
mod output;
pub(crate) mod state;

use std::path::PathBuf;
use std::time::Duration;

use belljar_definition::{HookAction, HookEvent, HookMatcher, HookSetting, LibraryName, Settings};
use belljar_os_sandbox::Broker;
use belljar_policy::ShownText;
use belljar_sandbox::Wasm;
use tokio::sync::OnceCell;

pub use check::HookCheck;

use crate::limits::{MAX_HOOK_TEXT, truncate_str};
use crate::prompt::frame;

/// Characters of a command in events and warnings.
const MAX_HOOK_NAME: usize = 80;

/// The operator's hooks. The default has none.
#[derive(Debug, Default)]
pub struct Hooks(Vec<Hook>);

#[derive(Debug)]
pub(crate) struct Hook {
    event: HookEvent,
    matcher: HookMatcher,
    /// The command, or the path of the component, for example `./check.sh`; escaped and cut.
    name: String,
    action: HookRunner,
    timeout: Duration,
    /// The plugin that the hook came from.
    plugin: Option<LibraryName>,
}

#[derive(Debug)]
enum HookRunner {
    Command {
        text: String,
        /// The broker that starts the command; `None` = this process starts it.
        broker: Option<Broker>,
    },
    Component(HookComponent),
}

/// A hook that is a component; its file is read when first needed.
#[derive(Debug)]
struct HookComponent {
    path: PathBuf,
    digest: Option<String>,
    wasm: OnceCell<Wasm>,
}

/// What one hook has answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HookJudgement {
    verdict: EventVerdict,
    /// New arguments for the call, as a JSON object; `None` = unchanged.
    arguments: Option<String>,
    /// Why the agent has to end; `None` = it continues.
    halt: Option<String>,
    /// A text for the person.
    message: Option<String>,
    /// A text for the model, behind the call's result.
    context: Option<String>,
    /// What was wrong with the hook, for the person; has no effect on the call.
    fault: Option<String>,
}

/// What a hook decides about an event. Its texts are foreign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum EventVerdict {
    #[default]
    Pass,
    /// Answers a pending question to the person with yes; adds no right.
    Allow,
    Ask,
    Deny(String),
}

/// The reason of a hook for a refusal or an ending. The text is foreign.
#[derive(Debug, Clone)]
pub(crate) struct HookReason {
    text: String,
    /// The plugin that the hook came from.
    plugin: Option<LibraryName>,
}

impl Hooks {
    /// The hooks in the settings. Component files are read later.
    pub fn from_settings(settings: &Settings) -> Self {
        Self(settings.hooks.iter().map(Hook::from_setting).collect())
    }

    /// Lets the broker start the commands, if the host runs behind the OS sandbox.
    #[must_use]
    pub fn with_broker(mut self, broker: &Broker) -> Self {
        for hook in &mut self.0 {
            if let HookRunner::Command { broker: by, .. } = &mut hook.action {
                *by = Some(broker.clone());
            }
        }
        self
    }

    /// The hooks for the event whose pattern matches one of the names, in the order of `belljar.toml`.
    fn matching_hooks(&self, event: HookEvent, names: &[&str]) -> impl Iterator<Item = &Hook> {
        self.0.iter().filter(move |hook| hook.event == event && hook.matcher.matches_any(names))
    }

    fn has_matching(&self, event: HookEvent, names: &[&str]) -> bool {
        self.matching_hooks(event, names).next().is_some()
    }
}

impl Hook {
    /// A hook from its settings, with the name that is shown.
    fn from_setting(setting: &HookSetting) -> Self {
        let HookSetting { event, matcher, action, timeout, plugin } = setting.clone();
        let (name, action) = match action {
            HookAction::Command(text) => (text.clone(), HookRunner::Command { text, broker: None }),
            HookAction::Component { path, digest } => {
                let name = path.to_string_lossy().into_owned();
                (name, HookRunner::Component(HookComponent { path, digest, wasm: OnceCell::new() }))
            }
        };
        let name = ShownText::clip_line(name.trim(), MAX_HOOK_NAME).to_string();
        Self { event, matcher, name, action, timeout, plugin }
    }

    /// A text of the hook for a model, framed as the words of its plugin if it came from one.
    fn frame_note(&self, text: &str) -> String {
        match &self.plugin {
            Some(plugin) => frame::plugin_note(plugin.as_str(), text),
            None => frame::hook_note(text),
        }
    }

    /// A reason of the hook, with the plugin that it came from.
    fn attribute_reason(&self, text: &str) -> HookReason {
        HookReason { text: text.to_owned(), plugin: self.plugin.clone() }
    }

    /// Returns whether a hook without an answer prevents the event. After an event, or for a command at a
    /// subagent's start, there is nothing to prevent.
    fn fails_closed(&self) -> bool {
        match (self.event, &self.action) {
            (HookEvent::PreToolUse, _)
            | (HookEvent::SubagentStart | HookEvent::UserPromptSubmit, HookRunner::Component(_)) => {
                true
            }
            (
                HookEvent::SubagentStart | HookEvent::UserPromptSubmit,
                HookRunner::Command { .. },
            )
            | (
                HookEvent::PostToolUse
                | HookEvent::SessionStart
                | HookEvent::SubagentStop
                | HookEvent::Stop,
                _,
            ) => false,
        }
    }
}

impl HookReason {
    /// The reason for a model, framed as the words of its plugin if the hook came from one.
    pub(crate) fn to_model_text(&self) -> String {
        let text = truncate_str(&self.text, MAX_HOOK_TEXT);
        match &self.plugin {
            Some(plugin) => frame::plugin_note(plugin.as_str(), text),
            None => text.to_owned(),
        }
    }

    /// The reason in one line, after the name of its plugin if the hook came from one.
    fn to_line(&self) -> String {
        let text = ShownText::new(truncate_str(&self.text, MAX_HOOK_TEXT));
        match &self.plugin {
            Some(plugin) => format!("plugin `{}`: {text}", plugin.as_str()),
            None => text.to_string(),
        }
    }
}

impl HookJudgement {
    fn from_verdict(verdict: EventVerdict) -> Self {
        Self { verdict, ..Self::default() }
    }

    fn from_fault(why: String) -> Self {
        Self { fault: Some(why), ..Self::default() }
    }

    /// The judgement in one word, for events: for example `deny`.
    fn event_word(&self) -> &'static str {
        match (&self.verdict, &self.halt, &self.arguments) {
            (_, Some(_), _) => "halt",
            (EventVerdict::Deny(_), None, _) => "deny",
            (EventVerdict::Ask, None, _) => "ask",
            (EventVerdict::Pass | EventVerdict::Allow, None, Some(_)) => "narrow",
            (EventVerdict::Allow, None, None) => "allow",
            (EventVerdict::Pass, None, None) if self.fault.is_some() => "error",
            (EventVerdict::Pass, None, None) => "pass",
        }
    }
}
