//! `[server.issuers.NAME]`: the issuers whose tokens `belljar serve` accepts beside its own keys, and the
//! rules about the holders of tokens.
//!
//! A token has only the rights that the operator has written here: a holder whom no `allow` matches is
//! refused, and no claim grants a right by itself. For example, an `allow` with `claim = "groups"`, `value =
//! "dev"`, `tenant = "acme"` and `scope = "member"` admits members of `dev` to the tenant `acme`.

use std::str::FromStr as _;

use belljar_policy::{RequestTarget, ShownText, TargetHost, UrlScheme};
use toml::de::DeTable;

use super::schema::SettingsLoader;
use crate::agent::list_of;
use crate::suggest;
use crate::toml_read::Item;

const KEYS: &[&str] = &["url", "audience", "algorithms", "allow"];
const ALLOW_KEYS: &[&str] = &["subject", "claim", "value", "tenant", "scope"];

/// Most issuers of a server.
const MAX_ISSUERS: usize = 16;

/// Most rules of one issuer. Few, because every token is compared with each rule.
const MAX_RULES: usize = 256;

/// Most audiences of one issuer.
const MAX_AUDIENCES: usize = 16;

/// Most bytes of an address, of a name or of a claim's value.
const MAX_TEXT: usize = 2_000;

/// Most bytes of a tenant's name, because the store makes no tenant with a longer one
/// (`Registry::create_tenant`).
const MAX_TENANT: usize = 40;

/// Most characters of an invalid value that a message repeats.
const MAX_SHOWN: usize = 60;

/// The error of a value that was reported already.
struct ReportedMistake;

/// An issuer whose tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerSetting {
    /// The name in the settings, for example `work` in `[server.issuers.work]`.
    pub name: String,
    /// The issuer's URL, exactly as in its tokens' `iss`.
    pub url: String,
    /// The accepted values of `aud`: a token must have at least one of them.
    pub audience: Vec<String>,
    /// The accepted signature algorithms.
    pub algorithms: Vec<SignatureKind>,
    /// The rules for holders. The first matching rule decides; without a match, the token is refused.
    pub allow: Vec<TokenRule>,
}

/// A rule that accepts some tokens of an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRule {
    /// The required subject; absent = every subject.
    pub subject: Option<String>,
    /// A claim, with the text that it must equal or contain; absent = no claim is required.
    pub claim: Option<(String, String)>,
    /// The tenant of the matching holders.
    pub tenant: String,
    /// The holder's scope in the tenant.
    pub scope: TokenScope,
}

/// The scope of a token's holder, with the same values as for keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenScope {
    /// Only reads.
    ReadOnly,
    /// Also starts turns.
    Member,
    /// Also changes the rights of others.
    Admin,
}

/// Algorithms with a private key that only the issuer has. A shared secret, for example in `HS256`, is
/// excluded, because every verifier of tokens could then make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum SignatureKind {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl TokenScope {
    /// All scopes, from the narrowest to the widest.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::Member, Self::Admin];

    /// The name in the settings, which keys use too.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }
}

impl SignatureKind {
    const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// The default algorithms, which most issuers use.
    pub const USUAL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// The name in the header of a token.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl std::str::FromStr for SignatureKind {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or(())
    }
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// The issuers of `[server]`, in the order of their names.
    pub(super) fn read_issuers(&mut self, server: &DeTable<'t>) -> Vec<IssuerSetting> {
        if let Some(item) = server.get("issuers").filter(|item| item.get_ref().is_array()) {
            let hint = "write `[server.issuers.NAME]`: each issuer has a name of its own";
            let message = "`issuers` is an array, not a table";
            let at = self.reader.position_of(item.span());
            self.reader.findings.error_hint(at, "bad-value", message, hint);
            return Vec::new();
        }
        let tables = self.named_tables(server, "issuers");
        if let (true, Some(item)) = (tables.len() > MAX_ISSUERS, server.get("issuers")) {
            self.too_many(item, "issuers", tables.len(), MAX_ISSUERS);
            return Vec::new();
        }
        let mut issuers: Vec<IssuerSetting> = Vec::new();
        for (name, item, table) in tables {
            self.reader.report_unknown_keys(table, "an issuer", KEYS);
            let Some(issuer) = self.read_issuer(name, item, table) else { continue };
            if issuers.iter().any(|other| other.url == issuer.url) {
                let message =
                    format!("`{}` is written twice", ShownText::clip_line(&issuer.url, 200));
                self.reader.findings.error(
                    self.reader.position_of(item.span()),
                    "bad-value",
                    message,
                );
                continue;
            }
            issuers.push(issuer);
        }
        issuers.sort_by(|one, other| one.name.cmp(&other.name));
        issuers
    }

    /// Reads one issuer; `None` = it is invalid and was reported.
    fn read_issuer(
        &mut self,
        name: &str,
        item: &Item<'_>,
        table: &DeTable<'t>,
    ) -> Option<IssuerSetting> {
        let url = self.issuer_url(item, table);
        let audience = self.read_audience(item, table);
        let algorithms = self.read_algorithms(table);
        let allow = self.read_token_rules(table);
        let (url, audience, algorithms) = (url?, audience?, algorithms?);
        Some(IssuerSetting { name: name.to_owned(), url, audience, algorithms, allow })
    }

    /// Reads the issuer's URL, which needs `https` unless the host is this machine.
    fn issuer_url(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<String> {
        let Some(value) = table.get("url") else {
            let hint = "write it as its tokens have it: `url = \"https://id.example.org\"`";
            self.report_missing(item, "`url`", hint);
            return None;
        };
        let text = self.reader.text_of("url", value)?;
        let target = RequestTarget::parse(text).ok();
        // An attacker who could replace the issuer's keys in transit could sign every token.
        let safe = target.is_some_and(|it| it.scheme() == UrlScheme::Https || is_here(&it));
        if safe && is_word(text) && !text.contains(['#', '?']) {
            return Some(text.to_owned());
        }
        let wants = "an address such as `https://id.example.org`, without a query or a fragment; \
                     `http` is for this machine alone";
        self.reader.report_unfit_value("url", value, wants)
    }

    /// Reads `audience`, a text or a list of texts.
    fn read_audience(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<Vec<String>> {
        let Some(value) = table.get("audience") else {
            let hint = "write what its tokens for this server have in `aud`: `audience = \
                        \"https://jar.example.org/mcp\"`";
            self.report_missing(item, "`audience`", hint);
            return None;
        };
        let audience = match value.get_ref().as_str() {
            Some(one) => vec![one.to_owned()],
            None => self.read_texts(value, "audience"),
        };
        let fit = (1..=MAX_AUDIENCES).contains(&audience.len());
        if fit && audience.iter().all(|one| is_word(one)) {
            return Some(audience);
        }
        self.reader.report_unfit_value(
            "audience",
            value,
            "a text without blanks, or a list of such",
        )
    }

    /// Reads `algorithms`; without the key, the usual ones.
    fn read_algorithms(&mut self, table: &DeTable<'t>) -> Option<Vec<SignatureKind>> {
        let Some(item) = table.get("algorithms") else {
            return Some(SignatureKind::USUAL.to_vec());
        };
        let entries = self.reader.read_list("algorithms", item)?;
        if entries.is_empty() {
            let known = SignatureKind::ALL.map(SignatureKind::as_str);
            return self.reader.report_unfit_value(
                "algorithms",
                item,
                &format!("some of {}", list_of(&known)),
            );
        }
        let kinds: Vec<_> = entries.iter().filter_map(|entry| self.read_algorithm(entry)).collect();
        (kinds.len() == entries.len()).then_some(kinds)
    }

    /// Reads one algorithm. Algorithms with a shared secret are refused.
    fn read_algorithm(&mut self, item: &Item<'_>) -> Option<SignatureKind> {
        let name = self.reader.text_of("algorithms", item)?.trim();
        if let Ok(kind) = SignatureKind::from_str(name) {
            return Some(kind);
        }
        let why = match name {
            "none" => "a token without a signature is anybody's, ",
            name if name.starts_with("HS") => {
                "whoever could check one with a shared secret could make it, "
            }
            _ => "",
        };
        let known = SignatureKind::ALL.map(SignatureKind::as_str);
        let name = ShownText::clip_line(name, MAX_SHOWN);
        let message = format!("`{name}` is not taken: {why}known are {}", list_of(&known));
        self.reader.findings.error(self.reader.position_of(item.span()), "bad-value", message);
        None
    }

    /// Reads the list `allow`.
    fn read_token_rules(&mut self, table: &DeTable<'t>) -> Vec<TokenRule> {
        let Some(item) = table.get("allow") else { return Vec::new() };
        let items = self.reader.read_list("allow", item).unwrap_or_default();
        if items.len() > MAX_RULES {
            self.too_many(item, "rules", items.len(), MAX_RULES);
            return Vec::new();
        }
        let mut rules = Vec::new();
        for item in items {
            let Some(table) = self.reader.read_table("allow", item) else { continue };
            self.reader.report_unknown_keys(table, "`allow` of an issuer", ALLOW_KEYS);
            rules.extend(self.read_token_rule(item, table).ok());
        }
        rules
    }

    /// Reads an entry of `allow`.
    fn read_token_rule(
        &mut self,
        item: &Item<'_>,
        table: &DeTable<'t>,
    ) -> Result<TokenRule, ReportedMistake> {
        let subject = self.read_rule_text(table, "subject")?;
        let claim = self.read_rule_text(table, "claim")?;
        let value = self.read_rule_text(table, "value")?;
        let claim = match (claim, value) {
            (Some((_, claim)), Some((_, value))) => Some((claim.to_owned(), value.to_owned())),
            (None, None) => None,
            (Some(_), None) => {
                return Err(self.reject_missing(item, "`value`", "write what the claim has to be"));
            }
            (None, Some(_)) => {
                return Err(self.reject_missing(item, "`claim`", "write whose value it is"));
            }
        };
        let subject = subject.map(|(_, subject)| subject.to_owned());
        if subject.is_none() && claim.is_none() {
            let hint = "write for whom it is: a `subject`, or a `claim` and its `value`";
            return Err(self.reject_missing(item, "`subject`", hint));
        }
        let tenant = self.rule_tenant(item, table)?;
        let scope = self.rule_scope(item, table)?;
        Ok(TokenRule { subject, claim, tenant, scope })
    }

    /// Reads the tenant of a rule.
    fn rule_tenant(
        &mut self,
        rule: &Item<'_>,
        table: &DeTable<'t>,
    ) -> Result<String, ReportedMistake> {
        let Some((item, tenant)) = self.read_rule_text(table, "tenant")? else {
            let hint = "write the tenant that whoever fits belongs to: `tenant = \"NAME\"`";
            return Err(self.reject_missing(rule, "`tenant`", hint));
        };
        if is_tenant_name(tenant) {
            return Ok(tenant.to_owned());
        }
        let message = format!(
            "`tenant` is `{}`, which is not 1 to {MAX_TENANT} of `a` to `z`, `0` to `9` and `-`, \
             with no `-` in front",
            ShownText::clip_line(tenant, MAX_SHOWN)
        );
        Err(self.report_bad_value(item, message, None))
    }

    /// Reads the scope of a rule.
    fn rule_scope(
        &mut self,
        rule: &Item<'_>,
        table: &DeTable<'t>,
    ) -> Result<TokenScope, ReportedMistake> {
        let Some((item, scope)) = self.read_rule_text(table, "scope")? else {
            let hint = "write the most that it may do: `read-only`, `member` or `admin`";
            return Err(self.reject_missing(rule, "`scope`", hint));
        };
        if let Some(known) = TokenScope::ALL.into_iter().find(|known| known.as_str() == scope) {
            return Ok(known);
        }
        let known = TokenScope::ALL.map(TokenScope::as_str);
        let message = format!(
            "`scope` is `{}`, which is none of {}",
            ShownText::clip_line(scope, MAX_SHOWN),
            list_of(&known)
        );
        Err(self.report_bad_value(item, message, suggest::did_you_mean(scope, known)))
    }

    /// The text under a key of a rule with its item; `None` = the key is absent.
    fn read_rule_text<'a>(
        &mut self,
        table: &'a DeTable<'t>,
        name: &str,
    ) -> Result<Option<(&'a Item<'t>, &'a str)>, ReportedMistake> {
        let Some(item) = table.get(name) else { return Ok(None) };
        let Some(text) = self.reader.text_of(name, item) else { return Err(ReportedMistake) };
        if text.is_empty() {
            return Err(self.report_bad_value(item, format!("`{name}` is blank"), None));
        }
        if text.len() > MAX_TEXT {
            let bytes = text.len();
            let message =
                format!("`{name}` has {bytes} bytes, and at most {MAX_TEXT} are accepted");
            return Err(self.report_bad_value(item, message, None));
        }
        Ok(Some((item, text)))
    }

    /// Reports an invalid value.
    fn report_bad_value(
        &mut self,
        item: &Item<'_>,
        message: String,
        hint: Option<String>,
    ) -> ReportedMistake {
        let at = self.reader.position_of(item.span());
        match hint {
            Some(hint) => self.reader.findings.error_hint(at, "bad-value", message, hint),
            None => self.reader.findings.error(at, "bad-value", message),
        }
        ReportedMistake
    }

    fn reject_missing(&mut self, item: &Item<'_>, what: &str, hint: &str) -> ReportedMistake {
        self.report_missing(item, what, hint);
        ReportedMistake
    }

    fn too_many(&mut self, item: &Item<'_>, what: &str, count: usize, most: usize) {
        let message = format!("{count} {what}, and at most {most} are accepted");
        self.reader.findings.error(self.reader.position_of(item.span()), "too-many", message);
    }
}

/// Whether a target is this machine, for example `localhost`.
fn is_here(target: &RequestTarget) -> bool {
    match target.host() {
        TargetHost::Ip(ip) => ip.is_loopback(),
        TargetHost::Name(name) => name == "localhost",
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TEXT && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether the text is a valid tenant name.
fn is_tenant_name(text: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= MAX_TENANT
        && !text.starts_with('-')
        && text.bytes().all(letters)
}
