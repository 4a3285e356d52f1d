//! The rules about subagents: `subagents` in a grant, and `[subagents]` for all agents.

use belljar_policy::ToolName;
use toml::de::DeTable;

use super::GrantSpec;
use super::auto_background;
use super::named::NamingPlace;
use super::schema::SettingsLoader;
use crate::agent::SubagentsAsk;
use crate::toml_read::Item;

const GRANT_KEYS: &[&str] =
    &["enabled", "max_concurrent", "allowed_agents", "allowed_tools", auto_background::KEY];
const GLOBAL_KEYS: &[&str] = &["max_depth", "blocked_agents", "blocked_tools"];

/// The default depth of subagents: 1, so that a subagent has no subagents.
const DEFAULT_DEPTH: u32 = 1;

/// The largest depth that can be allowed, because each level multiplies the agents that one task can start.
const MAX_DEPTH: u32 = 8;

/// The most concurrent subagents of one parent that can be allowed.
const MAX_CONCURRENT: u64 = 1_000;

/// The rules for all subagents: `[subagents]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubagentPolicy {
    /// The levels of subagents below the agent that a person started. Default: 1, so that a subagent has no
    /// subagents; 0 = no agent delegates.
    pub max_depth: u32,
    /// Agents that can never be subagents, by name or id, for example `scout`.
    pub blocked_agents: Vec<String>,
    /// Tools that no subagent has, whatever the grants.
    pub blocked_tools: Vec<ToolName>,
}

impl Default for SubagentPolicy {
    fn default() -> Self {
        let (blocked_agents, blocked_tools) = (Vec::new(), Vec::new());
        Self { max_depth: DEFAULT_DEPTH, blocked_agents, blocked_tools }
    }
}

impl SubagentPolicy {
    /// The narrower of both policies.
    #[must_use]
    pub(super) fn narrowed_by(mut self, other: Option<&Self>) -> Self {
        if let Some(other) = other {
            self.max_depth = self.max_depth.min(other.max_depth);
            self.blocked_agents.extend(other.blocked_agents.iter().cloned());
            self.blocked_tools.extend(other.blocked_tools.iter().cloned());
        }
        self
    }
}

impl SubagentsAsk {
    /// A copy in which every key stated by `over` is replaced: a grant over the defaults.
    #[must_use]
    pub(super) fn overridden_by(&self, over: &Self) -> Self {
        Self {
            enabled: over.enabled.or(self.enabled),
            max_depth: over.max_depth.or(self.max_depth),
            max_concurrent: over.max_concurrent.or(self.max_concurrent),
            allowed_agents: over.allowed_agents.clone().or_else(|| self.allowed_agents.clone()),
            allowed_tools: over.allowed_tools.clone().or_else(|| self.allowed_tools.clone()),
        }
    }
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// Reads `subagents` of a grant.
    pub(super) fn read_subagents(&mut self, item: &Item<'t>, spec: &mut GrantSpec) {
        let Some(table) = self.reader.read_table("subagents", item) else { return };
        self.reader.report_unknown_keys(table, "`subagents`", GRANT_KEYS);
        spec.auto_background = self.auto_background(table);
        spec.subagents = SubagentsAsk {
            enabled: self.reader.read_boolean(table, "enabled"),
            // The operator sets the depth in `[subagents]` alone, for all agents.
            max_depth: None,
            max_concurrent: self.read_bounded_number(table, "max_concurrent", 1, MAX_CONCURRENT),
            allowed_agents: table
                .get("allowed_agents")
                .map(|item| self.agents_in(item, "allowed_agents", NamingPlace::Allowed)),
            allowed_tools: table
                .get("allowed_tools")
                .map(|item| self.tool_names(item, "allowed_tools")),
        };
    }

    /// Reads `[subagents]`.
    pub(super) fn subagent_policy(&mut self, table: &DeTable<'t>) -> Option<SubagentPolicy> {
        let item = table.get("subagents")?;
        let table = self.reader.read_table("subagents", item)?;
        self.reader.report_unknown_keys(table, "`subagents`", GLOBAL_KEYS);
        let mut policy = SubagentPolicy::default();
        if let Some(depth) = self.read_bounded_number(table, "max_depth", 0, u64::from(MAX_DEPTH)) {
            policy.max_depth = depth;
        }
        if let Some(item) = table.get("blocked_agents") {
            policy.blocked_agents = self.agents_in(item, "blocked_agents", NamingPlace::Blocked);
        }
        if let Some(item) = table.get("blocked_tools") {
            policy.blocked_tools = self.tool_names(item, "blocked_tools");
        }
        Some(policy)
    }

    /// The number under a key, if from `low` to `high`; otherwise a report.
    pub(super) fn read_bounded_number(
        &mut self,
        table: &DeTable<'t>,
        key: &str,
        low: u64,
        high: u64,
    ) -> Option<u32> {
        let value = self.reader.read_number(table, key)?;
        if (low..=high).contains(&value) {
            return u32::try_from(value).ok();
        }
        let item = table.get(key)?;
        self.reader.report_unfit_value(key, item, &format!("a whole number from {low} to {high}"))
    }

    fn agents_in(&mut self, item: &Item<'t>, key: &str, by: NamingPlace) -> Vec<String> {
        self.texts_with(item, key, |it, text, item| it.name_agent(text, by, item))
    }

    pub(super) fn read_texts(&mut self, item: &Item<'t>, key: &str) -> Vec<String> {
        self.texts_with(item, key, |_, _, _| {})
    }

    /// The texts of a list; `see` is called with each.
    fn texts_with(
        &mut self,
        item: &Item<'t>,
        key: &str,
        mut see: impl FnMut(&mut Self, &str, &Item<'t>),
    ) -> Vec<String> {
        let mut texts = Vec::new();
        for item in self.reader.read_list(key, item).unwrap_or_default() {
            let Some(text) = self.reader.text_of(key, item) else { continue };
            if text.trim().is_empty() {
                let message = format!("`{key}` has a blank entry");
                let at = self.reader.position_of(item.span());
                self.reader.findings.error(at, "bad-value", message);
            } else {
                see(self, text.trim(), item);
                texts.push(text.trim().to_owned());
            }
        }
        texts
    }

    /// The tool names in a list.
    fn tool_names(&mut self, item: &Item<'t>, key: &str) -> Vec<ToolName> {
        let mut tools = Vec::new();
        for item in self.reader.read_list(key, item).unwrap_or_default() {
            let Some(text) = self.reader.text_of(key, item) else { continue };
            if let Some(tool) = self.tool_name(text, item) {
                self.name_tool(&tool, item);
                tools.push(tool);
            }
        }
        tools
    }
}
