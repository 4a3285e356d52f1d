//! `[mcp.NAME]`: servers of the Model Context Protocol whose tools can be granted to agents.

use std::collections::BTreeSet;

use belljar_policy::{HostRule, RequestTarget, SecretName, ShownText};
use toml::de::DeTable;

use super::mcp_grants::{KEYS as GRANTS, McpGrants};
use super::mcp_oauth::McpOauthSetting;
use super::schema::SettingsLoader;
use crate::suggest;
use crate::toml_read::Item;

const KEYS: &[&str] = &["url", "secrets", "timeout_seconds", "revision", "oauth", CALLED];

/// The key of the name by which agent files call a server.
pub(super) const CALLED: &str = "called";

/// Bytes of that name.
const MAX_CALLED: usize = 160;

/// Revisions of the protocol that the setting can require.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The most servers of one home.
const MAX_SERVERS: usize = 64;

/// Bytes of a server's name, because the name is a prefix of tool names, which are limited to 64 bytes.
const MAX_NAME: usize = 24;

/// Bytes of an address.
const MAX_URL: usize = 2_000;

/// The range of one call's time, in seconds.
const TIMEOUTS: std::ops::RangeInclusive<u64> = 1..=600;

/// A server, as configured by the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpSetting {
    /// The URL of the server.
    pub url: String,
    /// The only host to which requests are sent: the host of `url`, for example `mcp.example.com`.
    pub host: HostRule,
    /// Secrets that are added to requests; each is bound to that host.
    pub secrets: BTreeSet<SecretName>,
    /// The longest time of one call, in addition to the limits of the calling agent. Absent = only those
    /// limits.
    pub timeout_seconds: Option<u64>,
    /// The revision of the protocol. Absent = the newest that the server supports.
    pub revision: Option<String>,
    /// How tokens for the server are obtained.
    pub oauth: McpOauthSetting,
    /// The requests that the server may make during a call.
    pub grants: McpGrants,
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// Reads `[mcp.NAME]` of the home file. Call it after the secrets were read.
    pub(super) fn read_mcp_servers(&mut self, table: &DeTable<'t>) {
        let servers = self.named_tables(table, "mcp");
        if servers.len() > MAX_SERVERS
            && let Some(item) = table.get("mcp")
        {
            let message =
                format!("{} MCP servers, and at most {MAX_SERVERS} are accepted", servers.len());
            self.reader.findings.error(self.reader.position_of(item.span()), "too-many", message);
            return;
        }
        for (name, item, table) in servers {
            if table.contains_key("command") {
                if self.names_server(name, item) {
                    self.server_program(name, table);
                    self.server_called(name, table);
                }
                continue;
            }
            self.reader.report_unknown_keys(table, "an MCP server", &[KEYS, &GRANTS].concat());
            if !self.names_server(name, item) {
                continue;
            }
            let Some((url, host)) = self.server_url(item, table) else { continue };
            let secrets = self.server_secrets(table, &host);
            let timeout_seconds = self.server_timeout(table);
            let revision = self.server_revision(table);
            let oauth = self.mcp_oauth(table);
            let grants = self.server_grants(table);
            let setting =
                McpSetting { url, host, secrets, timeout_seconds, revision, oauth, grants };
            self.settings.mcp.insert(name.to_owned(), setting);
            self.server_called(name, table);
        }
    }

    /// The name by which agent files call the server, for example `plugin_tools_docs`.
    fn server_called(&mut self, name: &str, table: &DeTable<'t>) {
        let Some(item) = table.get(CALLED) else { return };
        let Some(text) = self.reader.text_of(CALLED, item) else { return };
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let fits = !text.is_empty() && text.len() <= MAX_CALLED && text.chars().all(is_word);
        let lower = text.to_ascii_lowercase();
        if !fits || text.contains("__") || self.settings.mcp_called.contains_key(&lower) {
            let wants = "letters, digits, `-` and single `_`, as no other server is called";
            self.reader.report_unfit_value::<()>(CALLED, item, wants);
            return;
        }
        self.settings.mcp_called.insert(lower, name.to_owned());
    }

    fn names_server(&mut self, name: &str, item: &Item<'_>) -> bool {
        if is_server_name(name) {
            return true;
        }
        let message = format!("`{}` is no name of a server", ShownText::clip_line(name, 60));
        let hint = format!(
            "use a small letter, then small letters, digits or single `-`, at most \
             {MAX_NAME} in all: the names of its tools begin with it"
        );
        let at = self.reader.position_of(item.span());
        self.reader.findings.error_hint(at, "bad-name", message, hint);
        false
    }

    /// The longest time of one call.
    pub(super) fn server_timeout(&mut self, table: &DeTable<'t>) -> Option<u64> {
        self.read_ranged_number(table, "timeout_seconds", TIMEOUTS)
    }

    /// Reads the URL of a server, with the rule for the URL's host.
    fn server_url(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<(String, HostRule)> {
        let Some(value) = table.get("url") else {
            self.report_missing(
                item,
                "`url`",
                "write where it is: `url = \"https://mcp.example.com/mcp\"`, or the `command` that it is",
            );
            return None;
        };
        let text = self.reader.text_of("url", value)?;
        let host =
            parse_address(text).and_then(|target| target.to_string().parse::<HostRule>().ok());
        match host {
            Some(host) => Some((text.to_owned(), host)),
            None => {
                let wants = "an address such as `https://mcp.example.com/mcp`, without a user name \
                             or a fragment";
                self.reader.report_unfit_value("url", value, wants)
            }
        }
    }

    /// Reads the required revision of the protocol.
    fn server_revision(&mut self, table: &DeTable<'t>) -> Option<String> {
        let item = table.get("revision")?;
        let revision = self.reader.text_of("revision", item)?;
        match REVISIONS.contains(&revision) {
            true => Some(revision.to_owned()),
            false => {
                self.reader.report_unfit_value("revision", item, "`2025-11-25` or `2026-07-28`")
            }
        }
    }

    /// Reads the secrets of a server. Each must be defined and bound to the server's host.
    fn server_secrets(&mut self, table: &DeTable<'t>, host: &HostRule) -> BTreeSet<SecretName> {
        let Some(item) = table.get("secrets") else { return BTreeSet::new() };
        let names: BTreeSet<SecretName> =
            self.reader.read_names("secrets", item).unwrap_or_default();
        let at = self.reader.position_of(item.span());
        for name in &names {
            match self.settings.secrets.get(name) {
                None => {
                    let known = self.settings.secrets.keys().map(SecretName::as_str);
                    let hint = suggest::did_you_mean(name.as_str(), known)
                        .unwrap_or_else(|| format!("add a section `[secrets.{name}]`"));
                    let message = format!("secret `{name}` is not defined");
                    self.reader.findings.error_hint(at, "unknown-secret", message, hint);
                }
                Some(secret) if !secret.host.covers_rule(host) => {
                    let message = format!(
                        "secret `{name}` is bound to `{}`, and this server is `{host}`",
                        secret.host
                    );
                    let hint = format!("write `host = \"{host}\"` under `[secrets.{name}]`");
                    self.reader.findings.error_hint(at, "unbound-secret", message, hint);
                }
                Some(_) => {}
            }
        }
        names
    }
}

/// Parses the address of a server or an issuer, without a fragment.
pub(super) fn parse_address(text: &str) -> Option<RequestTarget> {
    let plain = text.len() <= MAX_URL
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && !text.contains('#');
    RequestTarget::parse(text).ok().filter(|_| plain)
}

/// Whether a name has only lower-case letters, digits and single `-`, so that `mcp__NAME__TOOL` can be split
/// unambiguously.
fn is_server_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && !name.contains("--")
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
