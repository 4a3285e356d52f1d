//! `[mcp.NAME.oauth]`: how belljar obtains tokens for a server.

use belljar_policy::SecretName;
use toml::de::DeTable;

use super::mcp::parse_address;
use super::schema::SettingsLoader;

const KEYS: &[&str] =
    &["issuer", "client_id", "client_secret", "client_metadata_url", "grant", "scopes"];

/// Bytes of an address, of a client's name, and of a scope.
const MAX_TEXT: usize = 2_000;

/// The values of the key that selects a person or a service.
const PERSON: &str = "person";
const SERVICE: &str = "client-credentials";

/// How tokens for a server are obtained. Default: a person signs in, with a client that registers itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpOauthSetting {
    /// The only accepted issuer. Absent = the issuer that the server names.
    pub issuer: Option<String>,
    /// The client id at the issuer. Absent = the client registers itself.
    pub client_id: Option<String>,
    /// The secret that authenticates the client, bound to the issuer's host.
    pub client_secret: Option<SecretName>,
    /// The URL of a document about this client, used as the client id.
    pub client_metadata_url: Option<String>,
    /// Whether no person signs in, because the client's secret suffices.
    pub is_service: bool,
    /// The requested scopes. Empty = those that the server requires.
    pub scopes: Vec<String>,
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// Reads `[mcp.NAME.oauth]`.
    pub(super) fn mcp_oauth(&mut self, server: &DeTable<'t>) -> McpOauthSetting {
        let mut setting = McpOauthSetting::default();
        let Some(item) = server.get("oauth") else { return setting };
        let Some(table) = self.reader.read_table("oauth", item) else { return setting };
        self.reader.report_unknown_keys(table, "`oauth` of an MCP server", KEYS);
        setting.issuer = self.oauth_address(table, "issuer");
        setting.client_metadata_url = self.oauth_address(table, "client_metadata_url");
        setting.client_id = self.oauth_text(table, "client_id");
        if let Some(name) = self.reader.read_text(table, "client_secret")
            && let Some(item) = table.get("client_secret")
        {
            let known = SecretName::new(&name).ok();
            let known = known.filter(|name| self.settings.secrets.contains_key(name));
            if known.is_none() {
                self.reader.report_unfit_value::<()>(
                    "client_secret",
                    item,
                    "the name of a section `[secrets.NAME]`",
                );
            }
            setting.client_secret = known;
        }
        setting.scopes = self.oauth_scopes(table);
        if let Some(item) = table.get("grant") {
            match self.reader.text_of("grant", item) {
                Some(SERVICE) => setting.is_service = true,
                Some(PERSON) | None => {}
                Some(_) => {
                    let wants = format!("`{PERSON}` or `{SERVICE}`");
                    self.reader.report_unfit_value::<()>("grant", item, &wants);
                }
            }
            if setting.is_service
                && (setting.client_id.is_none() || setting.client_secret.is_none())
            {
                let message = format!("`{SERVICE}` needs `client_id` and `client_secret`");
                self.reader.findings.error(
                    self.reader.position_of(item.span()),
                    "missing",
                    message,
                );
            }
        }
        setting
    }

    /// The text under a key, within [`MAX_TEXT`] bytes.
    fn oauth_text(&mut self, table: &DeTable<'t>, name: &str) -> Option<String> {
        let text = self.reader.read_text(table, name)?;
        match (is_word(&text), table.get(name)) {
            (true, _) => Some(text),
            (false, Some(item)) => {
                self.reader.report_unfit_value(name, item, "a text of visible ASCII characters")
            }
            (false, None) => None,
        }
    }

    /// The URL under a key.
    fn oauth_address(&mut self, table: &DeTable<'t>, name: &str) -> Option<String> {
        let text = self.oauth_text(table, name)?;
        match (parse_address(&text).is_some(), table.get(name)) {
            (true, _) => Some(text),
            (false, Some(item)) => self.reader.report_unfit_value(
                name,
                item,
                "an address such as `https://auth.example.com`",
            ),
            (false, None) => None,
        }
    }

    fn oauth_scopes(&mut self, table: &DeTable<'t>) -> Vec<String> {
        self.texts_of(table, "scopes", "names of rights, without blanks", is_word)
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TEXT && text.bytes().all(|byte| byte.is_ascii_graphic())
}
