//! `[mcp.NAME]`: the requests that a server may make during a call. An absent key allows none.

use toml::de::DeTable;

use super::schema::SettingsLoader;
use crate::suggest;

/// The keys for such requests.
pub(super) const KEYS: [&str; 4] = ["elicitation", "sampling", "sampling_tokens", "roots"];

/// The default tokens of one run: enough for some texts of a page each.
const TOKENS: u64 = 20_000;

/// The range of tokens of one run.
const TOKEN_RANGE: std::ops::RangeInclusive<u64> = 100..=10_000_000;

/// The requests that a server may make during a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpGrants {
    /// Whether forms, and addresses to open, are shown to the person. Default: no.
    pub elicitation: bool,
    /// The model, or role, that writes texts for the server, and the most tokens of such texts in one run,
    /// subagents included. Default: no model; 20,000.
    pub sampling: Option<(String, u64)>,
    /// Whether the server may list its granted directories. Default: no.
    pub roots: bool,
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// Reads the grants of a server. Call it after models and roles were read.
    pub(super) fn server_grants(&mut self, table: &DeTable<'t>) -> McpGrants {
        McpGrants {
            elicitation: self.reader.read_boolean(table, "elicitation").unwrap_or_default(),
            sampling: self.server_sampling(table),
            roots: self.reader.read_boolean(table, "roots").unwrap_or_default(),
        }
    }

    /// Reads `sampling` and `sampling_tokens`.
    fn server_sampling(&mut self, table: &DeTable<'t>) -> Option<(String, u64)> {
        let tokens = self.read_ranged_number(table, "sampling_tokens", TOKEN_RANGE);
        let Some(item) = table.get("sampling") else {
            if let Some(item) = table.get("sampling_tokens") {
                let hint = "write `sampling = \"MODEL\"` beside it, or leave it out";
                self.report_missing(item, "`sampling`", hint);
            }
            return None;
        };
        if item.get_ref().is_bool() {
            let hint = "name the model that writes and pays: `sampling = \"fast\"`";
            let at = self.reader.position_of(item.span());
            let message = "`sampling` is a boolean, not a text";
            self.reader.findings.error_hint(at, "bad-value", message, hint);
            return None;
        }
        let model = self.reader.text_of("sampling", item)?;
        let (models, roles) = (self.settings.models.keys(), self.settings.roles.keys());
        let known: Vec<&str> = models.chain(roles).map(String::as_str).collect();
        // A tenant without models uses the operator's.
        if !known.is_empty() && !known.contains(&model) {
            let hint = suggest::did_you_mean(model, known).unwrap_or_else(|| {
                "name a section `[models.NAME]` or a key of `[roles]`".to_owned()
            });
            let at = self.reader.position_of(item.span());
            let message = "`sampling` names no model of this file".to_owned();
            self.reader.findings.error_hint(at, "unknown-model", message, hint);
            return None;
        }
        Some((model.to_owned(), tokens.unwrap_or(TOKENS)))
    }
}
