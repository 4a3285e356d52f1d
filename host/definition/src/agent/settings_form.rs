//! Reads the `permissions` of Claude Code's settings, which people also write into agent files: lists of
//! allowed, asked and denied tools, and a mode. For example, `permissions: { deny: [Bash] }`.

use std::collections::BTreeMap;

use belljar_policy::{CallPermission, ShownText, ToolName};

use super::UnavailableTool;
use super::names::find_named_tools;
use super::stated::reading_tools;
use super::tool_list::ToolListReader;
use super::tools::WrittenToolName;
use crate::fields::quote_value;
use crate::yaml::{YamlKey, YamlNode, YamlValue};

impl ToolListReader<'_, '_, '_, '_> {
    /// Reads an entry of the map if it is such a setting; `false` = not a setting, so the key is a tool's
    /// name.
    pub(super) fn read_setting(&mut self, key: &YamlKey, node: &YamlNode) -> bool {
        match key.text.as_str() {
            "deny" => self.deny_all_of("permissions.deny", key, node),
            "ask" => self.ask_for_all_of(key, node),
            "allow" => self.ask_for_all_but(key, node),
            "defaultMode" => self.read_default_mode(key, node),
            "additionalDirectories" => {
                self.not_honoured("additionalDirectories", key);
            }
            // No agent can leave the sandbox here, so this setting has no effect.
            "disableBypassPermissionsMode" => {}
            _ => return false,
        }
        true
    }

    /// Requires approval for the tools named under a key.
    fn ask_for_all_of(&mut self, key: &YamlKey, node: &YamlNode) {
        let Some(entries) = self.read_removed_names(key, node, "permissions.ask") else { return };
        for entry in entries {
            self.cap_permission(&entry, CallPermission::Ask);
        }
    }

    /// Requires approval for every tool, except for those that the field allows without a scope and those
    /// that only read. Scopes are not enforced here, so a tool with a scope needs approval.
    fn ask_for_all_but(&mut self, key: &YamlKey, node: &YamlNode) {
        let Some(entries) = self.read_removed_names(key, node, "permissions.allow") else { return };
        let mut named: BTreeMap<ToolName, CallPermission> = reading_tools();
        for entry in
            entries.iter().filter(|entry| WrittenToolName::from_text(&entry.text).scope.is_none())
        {
            let found = find_named_tools(&entry.text, self.known);
            let tools = found.tools.into_iter().chain(found.beside);
            named.extend(tools.map(|tool| (tool, CallPermission::Allow)));
        }
        self.list.lower_permissions(&self.field, &named, Some(CallPermission::Ask));
    }

    /// Reads `defaultMode`.
    fn read_default_mode(&mut self, key: &YamlKey, node: &YamlNode) {
        match node.as_text().map(str::trim) {
            Some("plan") => self.list.read_only = Some(self.field.clone()),
            Some("default" | "acceptEdits" | "auto" | "bypassPermissions") => {
                self.not_honoured("defaultMode", key);
            }
            _ => self.not_kept(key, node),
        }
    }

    fn not_honoured(&mut self, name: &str, key: &YamlKey) {
        let message = format!("`{name}` is not honoured: a file grants itself nothing here");
        self.fields.findings.warning(key.at, "not-honoured", message, None);
    }

    /// Blocks the agent, because the author's intent for this entry is unknown.
    pub(super) fn not_kept(&mut self, key: &YamlKey, node: &YamlNode) {
        let name = format!("{}.{}", self.field.0, ShownText::clip_line(&key.text, 60));
        let what = match &node.value {
            YamlValue::Text(_) => quote_value(node).to_string(),
            _ => node.describe_kind().to_owned(),
        };
        let why = format!("it is {what}, which says nothing that is known here");
        let message = format!("`{name}` cannot be kept: {why}");
        self.fields.findings.warning(key.at, "not-kept", message, None);
        self.list.unclear.push(UnavailableTool { name, why });
    }
}
