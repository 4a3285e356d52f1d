//! `[context]`: what the lists of agents, skills and tools may cost in a request.

use toml::de::DeTable;

use super::schema::SettingsLoader;

const KEYS: &[&str] = &["library_tokens", "pinned"];

/// Default tokens of all lists: some twenty lines and the tools that find the rest.
const DEFAULT_TOKENS: u64 = 1_500;

/// The most tokens that can be set: more than any model reads.
const MAX_TOKENS: u64 = 10_000_000;

/// The most pinned names: more lines than any budget has room for.
const MAX_PINNED: usize = 1_000;

/// What the lists of agents, skills and tools of servers may cost in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSetting {
    /// Tokens for these lists, and for what finds the rest. What does not fit is found by words.
    pub library_tokens: u64,
    /// Names of agents, skills and tools that are listed before others.
    pub pinned: Vec<String>,
}

impl Default for ContextSetting {
    fn default() -> Self {
        Self { library_tokens: DEFAULT_TOKENS, pinned: Vec::new() }
    }
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// Reads `[context]`.
    pub(super) fn read_context(&mut self, table: &DeTable<'t>) {
        let Some(item) = table.get("context") else { return };
        let Some(context) = self.reader.read_table("context", item) else { return };
        self.reader.report_unknown_keys(context, "`context`", KEYS);
        if let Some(tokens) = self.reader.read_number(context, "library_tokens") {
            self.settings.context.library_tokens = tokens.min(MAX_TOKENS);
        }
        if let Some(item) = context.get("pinned") {
            let pinned = self.reader.read_parsed_list::<String>("pinned", item);
            let mut pinned = pinned.unwrap_or_default();
            pinned.truncate(MAX_PINNED);
            self.settings.context.pinned = pinned;
        }
    }
}
