//! The rules for network hosts, and the two checks that every request passes.
//!
//! A rule is `scheme://host[:port]`. The host is a name, `*.name` (all names below it, not the name itself),
//! `*` (any host), an address, or a network in CIDR form. Without a port, the rule allows the scheme's
//! default port; `:*` allows all. A rule with an address or network may omit the scheme, and then allows
//! both. For example, `https://*.example.org` allows `https://api.example.org/v1` and refuses
//! `https://example.org/`.
//!
//! Lists of different sources are not merged: a request has to match a rule in each. The intersection of
//! `10.0.0.0/8` and `*.corp.example`, for example, cannot be written as one list.
//!
//! The second check comes after the name is resolved. An address that is not public is refused, unless each
//! list of the operator has a rule that opens it: a rule with that address or its network, which also fits
//! scheme and port, or for loopback the name `localhost`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{AddressClass, DecisionSource, DenyCode, PolicyDenial, ShownText, classify_address};

mod covers;

/// The name, in lower case, of the header that marks a guest's request to the local machine. The network
/// gate adds it, and every belljar that listens refuses requests that have it.
pub const GUEST_MARK: &str = "belljar-guest";

/// The most bytes of a rule, because a DNS name has at most 253.
const MAX_RULE: usize = 300;

/// The two schemes of URLs that the gate supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UrlScheme {
    /// `http`: clear text.
    Http,
    /// `https`: over TLS.
    Https,
}

impl UrlScheme {
    /// The port of a URL that names none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// The scheme as a URL writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }
}

/// The hosts a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// Every host whose address is public.
    Any,
    /// One name, in lower case and ASCII, for example `api.example.com`.
    Name(String),
    /// All names below this one: for `example.com`, for example `api.example.com`.
    Below(String),
    /// The addresses of a network; a single address is a network of one.
    Net(IpNet),
}

/// The ports a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// The default port of the scheme.
    Default,
    /// All ports.
    Any,
    /// This port only.
    Exact(u16),
}

/// One rule of a list. Parsed from text, and written as it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostRule {
    scheme: Option<UrlScheme>,
    pattern: HostPattern,
    port: Port,
    text: String,
}

/// Why a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a host rule: {why}; write `https://example.org`, `https://*.example.org`, `https://*`, `http://10.0.0.0/8:8080`"
)]
pub struct HostRuleError {
    text: String,
    why: &'static str,
}

/// The target of a request: those parts of its URL the rules check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTarget {
    scheme: UrlScheme,
    host: TargetHost,
    port: u16,
}

/// The host of a request: a name not resolved yet, or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetHost {
    /// A name in lower case and ASCII, without a final dot.
    Name(String),
    /// An address, parsed as URLs demand: `0x7f.1` is 127.0.0.1.
    Ip(IpAddr),
}

/// Why a URL is refused whatever the rules are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text is not a valid URL.
    #[error("not a valid URL")]
    Malformed,
    /// The scheme is neither `http` nor `https`.
    #[error("the scheme is neither `http` nor `https`")]
    Scheme,
    /// The URL has a user name, as in `user:password@host`, which hides the real host from a reader.
    #[error("the URL holds a user name or password")]
    Userinfo,
    /// The URL has no host.
    #[error("the URL has no host")]
    Host,
}

/// The rules of one source of rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostList {
    /// Whose rules these are. Only rules of [`DecisionSource::Grants`] can open addresses that are not
    /// public.
    pub source: DecisionSource,
    /// The rules. Without a rule, the list allows nothing.
    pub rules: Vec<HostRule>,
}

/// Lists of rules; a request has to match a rule in each.
///
/// Invariant: there is at least one list, so that "no list" cannot mean "everything".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostScope {
    lists: Vec<Arc<HostList>>,
}

/// A permit for a request to a target all lists allow. Its name still has to be resolved, and each address
/// has to pass [`UrlPermit::check_address`].
#[derive(Debug, Clone)]
pub struct UrlPermit {
    target: RequestTarget,
    lists: Vec<Arc<HostList>>,
}

/// A permit to connect to one address, which connecting needs. Only [`UrlPermit::check_address`] makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressPermit(SocketAddr);

impl HostRule {
    /// Whether the rule allows the target, by scheme, port and host. A rule for names never allows an
    /// address, and a rule for networks never allows a name.
    fn matches_target(&self, target: &RequestTarget) -> bool {
        self.scheme.is_none_or(|scheme| scheme == target.scheme)
            && self.matches_port(target)
            && match (&self.pattern, &target.host) {
                (HostPattern::Any, TargetHost::Name(_) | TargetHost::Ip(_)) => true,
                (HostPattern::Name(name), TargetHost::Name(host)) => name == host,
                (HostPattern::Below(name), TargetHost::Name(host)) => is_below(host, name),
                (HostPattern::Net(net), TargetHost::Ip(ip)) => net.contains(ip),
                (HostPattern::Name(_) | HostPattern::Below(_), TargetHost::Ip(_))
                | (HostPattern::Net(_), TargetHost::Name(_)) => false,
            }
    }

    fn matches_port(&self, target: &RequestTarget) -> bool {
        match self.port {
            Port::Default => target.port == target.scheme.default_port(),
            Port::Any => true,
            Port::Exact(port) => target.port == port,
        }
    }

    /// Whether the rule opens an address that is not public, for a request to `target`.
    fn opens_address(&self, target: &RequestTarget, address: IpAddr) -> bool {
        let fits =
            self.scheme.is_none_or(|scheme| scheme == target.scheme) && self.matches_port(target);
        fits && match &self.pattern {
            HostPattern::Net(net) => net.contains(&address),
            HostPattern::Name(name) => {
                name == "localhost"
                    && target.host == TargetHost::Name(name.clone())
                    && classify_address(address) == AddressClass::Loopback
            }
            HostPattern::Any | HostPattern::Below(_) => false,
        }
    }
}

impl FromStr for HostRule {
    type Err = HostRuleError;

    fn from_str(text: &str) -> Result<Self, HostRuleError> {
        parse_rule(text).map_err(|why| HostRuleError {
            text: ShownText::clip_line(text, MAX_RULE).to_string(),
            why,
        })
    }
}

impl TryFrom<String> for HostRule {
    type Error = HostRuleError;
    fn try_from(text: String) -> Result<Self, HostRuleError> {
        text.parse()
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> Self {
        rule.text
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl RequestTarget {
    /// Parses a URL as the standard for URLs demands: the host in lower case and ASCII, numeric addresses in
    /// every notation, default ports filled in.
    pub fn parse(url: &str) -> Result<Self, TargetError> {
        let url = Url::parse(url).map_err(|_| TargetError::Malformed)?;
        Self::from_url(&url)
    }

    /// Checks a URL parsed already, as [`RequestTarget::parse`] does.
    pub fn from_url(url: &Url) -> Result<Self, TargetError> {
        let scheme = UrlScheme::parse(url.scheme()).ok_or(TargetError::Scheme)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::Userinfo);
        }
        let host = match url.host().ok_or(TargetError::Host)? {
            url::Host::Ipv4(ip) => TargetHost::Ip(ip.into()),
            url::Host::Ipv6(ip) => TargetHost::Ip(ip.into()),
            url::Host::Domain(name) => TargetHost::Name(clean_name(name).ok_or(TargetError::Host)?),
        };
        let port = url.port().unwrap_or(scheme.default_port());
        Ok(Self { scheme, host, port })
    }

    /// The scheme of the URL.
    pub fn scheme(&self) -> UrlScheme {
        self.scheme
    }

    /// The host of the URL.
    pub fn host(&self) -> &TargetHost {
        &self.host
    }

    /// The port of the URL, or its scheme's default port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for RequestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme.as_str())?;
        match &self.host {
            TargetHost::Name(name) => write!(f, "{}", ShownText::new(name))?,
            TargetHost::Ip(IpAddr::V4(ip)) => write!(f, "{ip}")?,
            TargetHost::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]")?,
        }
        if self.port == self.scheme.default_port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl HostScope {
    /// A scope that allows nothing: one empty list.
    pub fn none() -> Self {
        Self::from_rules(DecisionSource::Grants, Vec::new())
    }

    /// A scope with one list.
    pub fn from_rules(source: DecisionSource, rules: Vec<HostRule>) -> Self {
        Self { lists: vec![Arc::new(HostList { source, rules })] }
    }

    /// Adds a list in which a request has to match a rule too.
    #[must_use]
    pub fn with_rules(mut self, source: DecisionSource, rules: Vec<HostRule>) -> Self {
        self.push_list(Arc::new(HostList { source, rules }));
        self
    }

    /// Adds all lists of another scope.
    #[must_use]
    pub fn and_scope(mut self, other: &Self) -> Self {
        for list in &other.lists {
            self.push_list(Arc::clone(list));
        }
        self
    }

    /// All lists, to show them.
    pub fn lists(&self) -> impl Iterator<Item = &HostList> {
        self.lists.iter().map(AsRef::as_ref)
    }

    /// Whether every list has a rule that allows all that `rule` allows.
    pub fn covers_rule(&self, rule: &HostRule) -> bool {
        self.lists.iter().all(|list| list.rules.iter().any(|own| own.covers_rule(rule)))
    }

    /// The rules all lists allow, in order and without duplicates, to show them. A rule that another list
    /// allows in part only is left out.
    pub fn effective_rules(&self) -> Vec<&HostRule> {
        let mut rules: Vec<&HostRule> = Vec::new();
        for rule in self.lists.iter().flat_map(|list| &list.rules) {
            if self.covers_rule(rule) && !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        rules
    }

    /// Whether no request can pass, because a list is empty.
    pub fn is_none(&self) -> bool {
        self.lists.iter().any(|list| list.rules.is_empty())
    }

    /// Whether the scope has all lists of `other`, and so allows nothing that `other` refuses.
    pub fn is_within(&self, other: &Self) -> bool {
        self.is_none() || other.lists.iter().all(|list| self.lists.contains(list))
    }

    /// The first check: whether each list has a rule for the target's scheme, host and port.
    pub fn check_target(&self, target: &RequestTarget) -> Result<UrlPermit, PolicyDenial> {
        let refuses =
            |list: &&Arc<HostList>| !list.rules.iter().any(|rule| rule.matches_target(target));
        // If several lists refuse, the first in the order of `belljar explain` is named.
        if let Some(list) = self.lists.iter().filter(refuses).min_by_key(|list| list.source) {
            let facts = format!("`{target}` matches no host rule of {}", list.source);
            return Err(PolicyDenial::new(DenyCode::HostNotAllowed, list.source, facts));
        }
        Ok(UrlPermit { target: target.clone(), lists: self.lists.clone() })
    }

    fn push_list(&mut self, list: Arc<HostList>) {
        if !self.lists.contains(&list) {
            self.lists.push(list);
        }
    }
}

impl UrlPermit {
    /// The permitted target.
    pub fn target(&self) -> &RequestTarget {
        &self.target
    }

    /// The second check: whether a connection to the address is allowed. The address is the target's own, or
    /// one that its name resolved to.
    pub fn check_address(&self, ip: IpAddr) -> Result<AddressPermit, PolicyDenial> {
        if let TargetHost::Ip(own) = self.target.host
            && own != ip
        {
            let facts = format!("`{}` does not lead to `{ip}`", self.target);
            return Err(PolicyDenial::new(
                DenyCode::AddressNotAllowed,
                DecisionSource::Grants,
                facts,
            ));
        }
        let class = classify_address(ip);
        let operators = self.lists.iter().filter(|list| list.source == DecisionSource::Grants);
        let mut opened = class == AddressClass::Public;
        for list in operators {
            let opens = list.rules.iter().any(|rule| rule.opens_address(&self.target, ip));
            if class != AddressClass::Public && !opens {
                opened = false;
                break;
            }
            opened |= opens;
        }
        if opened {
            return Ok(AddressPermit(SocketAddr::new(ip, self.target.port)));
        }
        let facts = format!("`{}` leads to `{ip}`, which is {class}", self.target);
        Err(PolicyDenial::new(DenyCode::AddressNotAllowed, DecisionSource::Grants, facts))
    }
}

impl AddressPermit {
    /// The address and port to connect to.
    pub fn socket_address(self) -> SocketAddr {
        self.0
    }
}

/// Parses a rule such as `https://*.example.com:8443`. Only a rule for a network may omit the scheme.
fn parse_rule(text: &str) -> Result<HostRule, &'static str> {
    if text.len() > MAX_RULE {
        return Err("it is too long");
    }
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => {
            let scheme = UrlScheme::parse(&scheme.to_ascii_lowercase())
                .ok_or("the scheme must be `http` or `https`")?;
            (Some(scheme), rest)
        }
        None => (None, text),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = split_port(rest)?;
    let pattern = parse_pattern(host)?;
    if scheme.is_none() && !matches!(pattern, HostPattern::Net(_)) {
        return Err("the scheme is missing");
    }
    Ok(HostRule { scheme, pattern, port, text: text.to_owned() })
}

fn split_port(rest: &str) -> Result<(&str, Port), &'static str> {
    if let Some(after) = rest.strip_prefix('[') {
        let (host, tail) = after.split_once(']').ok_or("`[` is not closed")?;
        return match tail.strip_prefix(':') {
            Some(port) => Ok((host, parse_port(port)?)),
            None if tail.is_empty() => Ok((host, Port::Default)),
            None => Err("something unexpected follows `]`"),
        };
    }
    match rest.matches(':').count() {
        0 => Ok((rest, Port::Default)),
        1 => {
            let (host, port) = rest.split_once(':').ok_or("the port is missing")?;
            Ok((host, parse_port(port)?))
        }
        // An IPv6 address or network without brackets cannot have a port.
        _ => Ok((rest, Port::Default)),
    }
}

fn parse_port(text: &str) -> Result<Port, &'static str> {
    if text == "*" {
        return Ok(Port::Any);
    }
    match text.parse::<u16>() {
        Ok(port) if port > 0 && text.bytes().all(|b| b.is_ascii_digit()) => Ok(Port::Exact(port)),
        _ => Err("the port must be 1 to 65535, or `*`"),
    }
}

fn parse_pattern(host: &str) -> Result<HostPattern, &'static str> {
    if host == "*" {
        return Ok(HostPattern::Any);
    }
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(HostPattern::Net(ip.into()));
    }
    if let Some((base, _)) = host.split_once('/') {
        const BAD: &str = "it has a path, or is not a valid network";
        // Checked first, because `IpNet` reads `010.0.0.0` as 10.0.0.0, and other parsers read 8.0.0.0.
        base.parse::<IpAddr>().map_err(|_| BAD)?;
        let net = host.parse::<IpNet>().map_err(|_| BAD)?;
        return Ok(HostPattern::Net(net.trunc()));
    }
    match host.strip_prefix("*.") {
        Some(below) => Ok(HostPattern::Below(rule_name(below)?)),
        None => Ok(HostPattern::Name(rule_name(host)?)),
    }
}

/// Parses a name in a rule, with the parser that also parses the host of a URL.
fn rule_name(text: &str) -> Result<String, &'static str> {
    const BAD: &str = "the host is not a valid name";
    // Refused here, because a URL parser drops tabs and line breaks, which would make another name of the
    // rest.
    let stray = |c: char| c.is_control() || matches!(c, '*' | '@' | '?' | '#' | '\\' | '%' | ' ');
    if text.is_empty() || text.contains(stray) {
        return Err(BAD);
    }
    let url = Url::parse(&format!("http://{text}/")).map_err(|_| BAD)?;
    match url.host() {
        Some(url::Host::Domain(name)) => clean_name(name).ok_or(BAD),
        _ => Err(BAD),
    }
}

fn clean_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let valid = !name.is_empty() && name.split('.').all(|label| !label.is_empty());
    valid.then_some(name)
}

fn is_below(host: &str, name: &str) -> bool {
    host.strip_suffix(name)
        .and_then(|rest| rest.strip_suffix('.'))
        .is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests;
