//! `[server.issuers.NAME]`: whose tokens `belljar serve` takes beside its own keys, and for whom.
//!
//! A token is worth what the operator has written here: nobody whom no `allow` names is let in, and no
//! claim says of itself what it may do.

use std::str::FromStr as _;

use belljar_policy::{Scheme, Shown, Target, TargetHost};
use toml::de::DeTable;

use super::schema::Loader;
use crate::toml_read::Item;

const KEYS: &[&str] = &["url", "audience", "algorithms", "allow"];
const ALLOW_KEYS: &[&str] = &["subject", "claim", "value", "tenant", "scope"];

/// Issuers of one server.
const MAX_ISSUERS: usize = 16;

/// Rules of one issuer: each is looked at for each of its tokens.
const MAX_RULES: usize = 256;

/// Audiences of one issuer.
const MAX_AUDIENCES: usize = 16;

/// Bytes of an address, a name or a value of a claim.
const MAX_TEXT: usize = 2_000;

/// An issuer whose tokens are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerSetting {
    /// Its name in the settings.
    pub name: String,
    /// Its address, as its tokens have it in `iss`, letter by letter.
    pub url: String,
    /// The names of this server in `aud`, of which a token has to have one.
    pub audience: Vec<String>,
    /// The algorithms that its signatures may have.
    pub algorithms: Vec<SignatureKind>,
    /// Who is let in. The first rule that fits decides; nobody is let in without one.
    pub allow: Vec<TokenRule>,
}

/// A rule that lets holders of tokens in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRule {
    /// The only subject that it is for; absent = any that has the claim.
    pub subject: Option<String>,
    /// A claim, and the text that it has to be or to hold; absent = whatever the token claims.
    pub claim: Option<(String, String)>,
    /// The tenant that whoever fits belongs to.
    pub tenant: String,
    /// The most that it may do there, as a key has it.
    pub scope: TokenScope,
}

/// The most that a holder of a token may do, in the words of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenScope {
    /// Reads.
    ReadOnly,
    /// Starts turns.
    Member,
    /// Changes what others may do.
    Admin,
}

/// Algorithms that are made with a private key of the issuer's alone. One with a shared secret (`HS256`)
/// is not among them, since whoever checks it could make it.
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
    /// All of them, the least first.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::Member, Self::Admin];

    /// The word of it, as keys have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }
}

impl SignatureKind {
    /// Those that are taken where nothing is said: the ones that issuers use.
    pub const USUAL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// The name of it in the header of a token.
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
        let all = [
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
        all.into_iter().find(|kind| kind.as_str() == name).ok_or(())
    }
}

impl<'t> Loader<'_, 't, '_> {
    /// The issuers of `[server]`, in the order of their names.
    pub(super) fn issuers(&mut self, server: &DeTable<'t>) -> Vec<IssuerSetting> {
        let tables = self.each(server, "issuers");
        if let (true, Some(item)) = (tables.len() > MAX_ISSUERS, server.get("issuers")) {
            self.too_many(item, "issuers", tables.len(), MAX_ISSUERS);
            return Vec::new();
        }
        let mut issuers: Vec<IssuerSetting> = Vec::new();
        for (name, item, table) in tables {
            self.reader.only(table, "an issuer", KEYS);
            let Some(issuer) = self.issuer(name, item, table) else { continue };
            if issuers.iter().any(|other| other.url == issuer.url) {
                let message = format!("`{}` is written twice", Shown::clipped(&issuer.url, 200));
                self.reader.findings.error(self.reader.at(item.span()), "bad-value", message);
                continue;
            }
            issuers.push(issuer);
        }
        issuers.sort_by(|one, other| one.name.cmp(&other.name));
        issuers
    }

    fn issuer(
        &mut self,
        name: &str,
        item: &Item<'_>,
        table: &DeTable<'t>,
    ) -> Option<IssuerSetting> {
        let url = self.issuer_url(item, table);
        let audience = self.audience(item, table);
        let algorithms = self.algorithms(table);
        let allow = self.allow(table);
        let (url, audience, algorithms) = (url?, audience?, algorithms?);
        Some(IssuerSetting { name: name.to_owned(), url, audience, algorithms, allow })
    }

    fn issuer_url(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<String> {
        let Some(value) = table.get("url") else {
            let hint = "write it as its tokens have it: `url = \"https://id.example.org\"`";
            self.missing(item, "`url`", hint);
            return None;
        };
        let text = self.reader.text_of("url", value)?;
        let target = Target::parse(text).ok();
        // Whoever changes the keys on their way could sign for anybody.
        let safe = target.is_some_and(|it| it.scheme() == Scheme::Https || is_here(&it));
        if safe && is_word(text) && !text.contains(['#', '?']) {
            return Some(text.to_owned());
        }
        let wants = "an address such as `https://id.example.org`, without a query or a fragment; \
                     `http` is for this machine alone";
        self.reader.unfit("url", value, wants)
    }

    fn audience(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<Vec<String>> {
        let Some(value) = table.get("audience") else {
            let hint = "write what its tokens for this server have in `aud`: `audience = \
                        \"https://jar.example.org/mcp\"`";
            self.missing(item, "`audience`", hint);
            return None;
        };
        let audience = match value.get_ref().as_str() {
            Some(one) => vec![one.to_owned()],
            None => self.texts(value, "audience"),
        };
        let fit = (1..=MAX_AUDIENCES).contains(&audience.len());
        if fit && audience.iter().all(|one| is_word(one)) {
            return Some(audience);
        }
        self.reader.unfit("audience", value, "a text without blanks, or a list of such")
    }

    fn algorithms(&mut self, table: &DeTable<'t>) -> Option<Vec<SignatureKind>> {
        let Some(item) = table.get("algorithms") else {
            return Some(SignatureKind::USUAL.to_vec());
        };
        let names = self.texts(item, "algorithms");
        let known: Vec<_> =
            names.iter().filter_map(|name| SignatureKind::from_str(name).ok()).collect();
        if known.is_empty() || known.len() != names.len() {
            let wants = "of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA; \
                         whoever could check one with a shared secret could make it";
            return self.reader.unfit("algorithms", item, wants);
        }
        Some(known)
    }

    fn allow(&mut self, table: &DeTable<'t>) -> Vec<TokenRule> {
        let Some(item) = table.get("allow") else { return Vec::new() };
        let items = self.reader.list("allow", item).unwrap_or_default();
        if items.len() > MAX_RULES {
            self.too_many(item, "rules", items.len(), MAX_RULES);
            return Vec::new();
        }
        let mut rules = Vec::new();
        for item in items {
            let Some(table) = self.reader.table("allow", item) else { continue };
            self.reader.only(table, "`allow` of an issuer", ALLOW_KEYS);
            rules.extend(self.rule(item, table));
        }
        rules
    }

    fn rule(&mut self, item: &Item<'_>, table: &DeTable<'t>) -> Option<TokenRule> {
        let subject = self.reader.text(table, "subject");
        let claim = self.reader.text(table, "claim");
        let value = self.reader.text(table, "value");
        let claim = match (claim, value) {
            (Some(claim), Some(value)) => Some((claim, value)),
            (None, None) => None,
            (Some(_), None) => {
                return self.lacks(item, "`value`", "write what the claim has to be");
            }
            (None, Some(_)) => return self.lacks(item, "`claim`", "write whose value it is"),
        };
        let unfit = |text: &String| text.is_empty() || text.len() > MAX_TEXT;
        let blank = claim.as_ref().is_some_and(|(claim, value)| unfit(claim) || unfit(value));
        if blank || subject.as_ref().is_some_and(unfit) {
            return self.lacks(item, "a text", "no subject, claim or value is blank");
        }
        if subject.is_none() && claim.is_none() {
            let hint = "write for whom it is: a `subject`, or a `claim` and its `value`";
            return self.lacks(item, "`subject`", hint);
        }
        let Some(tenant) = self.reader.text(table, "tenant").filter(|tenant| is_word(tenant))
        else {
            let hint = "write the tenant that whoever fits belongs to: `tenant = \"NAME\"`";
            return self.lacks(item, "`tenant`", hint);
        };
        let scope = self.reader.text(table, "scope").unwrap_or_default();
        let Some(scope) = TokenScope::ALL.into_iter().find(|known| known.as_str() == scope) else {
            let hint = "write the most that it may do: `read-only`, `member` or `admin`";
            return self.lacks(item, "`scope`", hint);
        };
        Some(TokenRule { subject, claim, tenant, scope })
    }

    fn lacks<T>(&mut self, item: &Item<'_>, what: &str, hint: &str) -> Option<T> {
        self.missing(item, what, hint);
        None
    }

    fn too_many(&mut self, item: &Item<'_>, what: &str, count: usize, most: usize) {
        let message = format!("{count} {what}, and at most {most} are accepted");
        self.reader.findings.error(self.reader.at(item.span()), "too-many", message);
    }
}

fn is_here(target: &Target) -> bool {
    match target.host() {
        TargetHost::Ip(ip) => ip.is_loopback(),
        TargetHost::Name(name) => name == "localhost",
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TEXT && text.bytes().all(|byte| byte.is_ascii_graphic())
}
