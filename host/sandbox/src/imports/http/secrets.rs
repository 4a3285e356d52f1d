//! Secrets: values the host adds to requests, and that no guest sees. For example `authorization: Bearer
//! ...` for `https://api.test`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use belljar_policy::{DecisionSource, HostRule, HostScope, RequestTarget, SecretName, UrlScheme};
use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::forbidden::is_always_forbidden;
use super::scan::{SecretForms, SecretScanner};

/// The least bytes of a value: replies are searched for it, and a shorter one would be found by chance.
pub const MIN_VALUE: usize = 8;
/// The most bytes of a value, because servers accept headers of 8 KiB.
pub const MAX_VALUE: usize = 4096;

/// How many replies and texts of a run may be withheld before its tools can send no more requests. Each one
/// confirms a guess at the value, and guessing takes many. A server that now and then repeats its key stays
/// below the limit.
const MAX_ECHOES: u32 = 16;

/// A secret: a value, with the hosts, the header and the prefix it is bound to. `Debug` does not show the
/// value.
pub struct Secret {
    value: SecretString,
    /// The prefix and the value, as sent in the header.
    header_value: HeaderValue,
    header: HeaderName,
    /// The hosts to which the value is sent over TLS.
    https: HostScope,
    /// The hosts to which the value may be sent in clear text, because their rule begins with `http://`.
    http: HostScope,
    forms: SecretForms,
}

/// Why a secret is not valid. The texts never contain the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The value is too short to be told from other text.
    #[error(
        "the value has less than {MIN_VALUE} bytes; replies are searched for it, and a short one would be found by chance"
    )]
    TooShort,
    /// The value is too long for a header.
    #[error("the value has more than {MAX_VALUE} bytes, too long for a header")]
    TooLong,
    /// The prefix or the value has characters a header cannot have.
    #[error("the prefix or the value holds characters that no header can carry")]
    NotAHeaderValue,
    /// The header cannot carry a secret, for example `host`.
    #[error("`{0}` is not a header that can carry a secret; write one such as `Authorization`")]
    Header(String),
    /// The secret is bound to no host.
    #[error("the secret is bound to no host")]
    Unbound,
    /// A rule binds the secret to every host.
    #[error("`{0}` binds the secret to every host; name the host that needs it")]
    AnyHost(HostRule),
}

/// The secrets of a run, by name. The default has none.
#[derive(Debug, Clone, Default)]
pub struct SecretStore {
    secrets: BTreeMap<SecretName, Arc<Secret>>,
    /// The secrets for which the texts of every jar are searched, whatever the rights of the jar.
    watched: BTreeSet<SecretName>,
    echoes: Arc<AtomicU32>,
}

/// The secrets that requests of a tool may use, and the secrets that are withheld from its replies.
#[derive(Debug, Clone, Default)]
pub(crate) struct JarSecrets {
    secrets: Vec<(SecretName, Arc<Secret>)>,
    watch: SecretWatch,
}

/// The secrets that are withheld from all tools of a run, with the number of withheld texts, which clones
/// share. The default has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecretWatch {
    secrets: Vec<(SecretName, Arc<Secret>)>,
    echoes: Arc<AtomicU32>,
}

impl Secret {
    /// Makes a secret from its value, the hosts it is bound to, and its header. `prefix` goes before the
    /// value in the header, for example `Bearer `. The value is sent over TLS only, except to hosts whose
    /// rule begins with `http://`.
    pub fn new(
        value: &SecretString,
        hosts: Vec<HostRule>,
        header: &str,
        prefix: &str,
    ) -> Result<Self, SecretError> {
        let own = value.clone();
        let value = value.expose_secret();
        if value.len() < MIN_VALUE {
            return Err(SecretError::TooShort);
        }
        if value.len() > MAX_VALUE {
            return Err(SecretError::TooLong);
        }
        let shown =
            || SecretError::Header(belljar_policy::ShownText::clip_line(header, 64).to_string());
        let name: HeaderName = header.parse().map_err(|_| shown())?;
        // The host itself sets these two: the length of requests, and the encoding of replies.
        let taken = [http::header::CONTENT_LENGTH, http::header::ACCEPT_ENCODING];
        if is_always_forbidden(&name) || taken.contains(&name) {
            return Err(shown());
        }
        let mut header_value = HeaderValue::from_str(&format!("{prefix}{value}"))
            .map_err(|_| SecretError::NotAHeaderValue)?;
        header_value.set_sensitive(true);
        if hosts.is_empty() {
            return Err(SecretError::Unbound);
        }
        if let Some(any) = hosts.iter().find(|rule| binds_everything(rule)) {
            return Err(SecretError::AnyHost(any.clone()));
        }
        let clear = hosts.iter().filter(|rule| is_clear_text(rule)).cloned().collect();
        let forms = SecretForms::from_value(value.as_bytes());
        Ok(Self {
            value: own,
            header_value,
            header: name,
            https: HostScope::from_rules(DecisionSource::Grants, hosts),
            http: HostScope::from_rules(DecisionSource::Grants, clear),
            forms,
        })
    }

    fn is_for(&self, target: &RequestTarget) -> bool {
        let scope = match target.scheme() {
            UrlScheme::Https => &self.https,
            UrlScheme::Http => &self.http,
        };
        scope.check_target(target).is_ok()
    }

    pub(crate) fn header_name(&self) -> &HeaderName {
        &self.header
    }

    pub(crate) fn header_value(&self) -> HeaderValue {
        self.header_value.clone()
    }
}

fn is_clear_text(rule: &HostRule) -> bool {
    rule.to_string().to_ascii_lowercase().starts_with("http://")
}

fn binds_everything(rule: &HostRule) -> bool {
    let text = rule.to_string();
    let host = text.split_once("://").map_or(&*text, |(_, host)| host);
    let any_name = host.starts_with('*') && !host.starts_with("*.");
    let any_address = host.split_once('/').is_some_and(|(_, prefix)| {
        let digits = prefix.split(|c: char| !c.is_ascii_digit()).next().unwrap_or(prefix);
        digits.parse::<u8>() == Ok(0)
    });
    any_name || any_address
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("header", &self.header).finish_non_exhaustive()
    }
}

impl SecretStore {
    /// Adds a secret, or replaces the one with that name.
    pub fn insert(&mut self, name: SecretName, secret: Secret) {
        self.secrets.insert(name, Arc::new(secret));
    }

    /// The names of all secrets, in order.
    pub fn names(&self) -> impl Iterator<Item = &SecretName> {
        self.secrets.keys()
    }

    /// The value of a secret, for a request of the host itself in a protocol that passes secrets outside of
    /// headers. `None`: there is no such secret, or it is not bound to the target.
    pub fn value_for(&self, name: &SecretName, target: &RequestTarget) -> Option<SecretString> {
        let secret = self.secrets.get(name).filter(|secret| secret.is_for(target));
        secret.map(|secret| secret.value.clone())
    }

    /// Returns the secrets for a run, whose agents' secrets are `names`. Every reply to a tool, and every
    /// text of a tool, is then searched for `names`, in all jars made from the result. The count of withheld
    /// texts starts at zero.
    #[must_use]
    pub fn for_run(&self, names: &BTreeSet<SecretName>) -> Self {
        Self { secrets: self.secrets.clone(), watched: names.clone(), echoes: Arc::default() }
    }

    /// Returns the secrets for the same run, with `names` added to those searched for.
    pub(crate) fn with_watched(mut self, names: &BTreeSet<SecretName>) -> Self {
        self.watched.extend(names.iter().cloned());
        self
    }

    /// The secrets a tool may use; names without a secret are ignored. Its replies are searched for them
    /// too.
    pub(crate) fn allowed_secrets(&self, names: &BTreeSet<SecretName>) -> JarSecrets {
        let watch = self.clone().with_watched(names).secret_watch();
        JarSecrets { secrets: self.find_secrets(names), watch }
    }

    /// The secrets for which texts are searched.
    pub(crate) fn secret_watch(&self) -> SecretWatch {
        SecretWatch { secrets: self.find_secrets(&self.watched), echoes: Arc::clone(&self.echoes) }
    }

    fn find_secrets(&self, names: &BTreeSet<SecretName>) -> Vec<(SecretName, Arc<Secret>)> {
        let found = |name: &SecretName| Some((name.clone(), Arc::clone(self.secrets.get(name)?)));
        names.iter().filter_map(found).collect()
    }
}

impl SecretWatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Starts a search for all these secrets.
    pub(crate) fn to_scanner(&self) -> SecretScanner<'_> {
        SecretScanner::for_forms(self.secrets.iter().map(|(_, secret)| &secret.forms).collect())
    }

    /// Whether a text contains a secret, in any form the search knows.
    pub(crate) fn stands_in(&self, text: &[u8]) -> bool {
        let mut scanner = self.to_scanner();
        // In pieces, because the scanner copies each piece.
        text.chunks(PIECE).for_each(|piece| scanner.push_piece(piece));
        scanner.has_match()
    }

    /// Counts a withheld text, and returns a text for the operator that names the secrets.
    pub(crate) fn count_withheld(&self) -> String {
        // At its maximum the count stays, instead of beginning at zero again.
        let more = |count: u32| count.checked_add(1);
        let _ = self.echoes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let names: Vec<&str> = self.secrets.iter().map(|(name, _)| name.as_str()).collect();
        format!("the value of `{}`", names.join("` or `"))
    }

    /// Whether too many texts were withheld, so that no more requests are sent.
    pub(crate) fn is_used_up(&self) -> bool {
        self.echoes.load(Ordering::Relaxed) >= MAX_ECHOES
    }
}

/// How many bytes are searched in one step.
pub(crate) const PIECE: usize = 64 << 10;

impl JarSecrets {
    /// The names of the secrets that requests may use, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &SecretName> {
        self.secrets.iter().map(|(name, _)| name)
    }

    /// The secrets for which replies are searched.
    pub(crate) fn secret_watch(&self) -> &SecretWatch {
        &self.watch
    }

    /// The secrets that are bound to a target.
    pub(crate) fn bound_to(&self, target: &RequestTarget) -> Vec<(SecretName, Arc<Secret>)> {
        self.secrets.iter().filter(|(_, secret)| secret.is_for(target)).cloned().collect()
    }

    /// The headers in which the host sends secrets, so that no guest may set them.
    pub(crate) fn secret_headers(&self) -> Vec<HeaderName> {
        self.secrets.iter().map(|(_, secret)| secret.header.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(value: &str, host: &str, header: &str) -> Result<Secret, SecretError> {
        Secret::new(&value.into(), vec![host.parse().unwrap()], header, "Bearer ")
    }

    fn target(url: &str) -> RequestTarget {
        RequestTarget::parse(url).unwrap()
    }

    #[test]
    fn a_secret_is_for_its_hosts_only_and_for_clear_text_only_when_it_says_so() {
        let tls = secret("0123456789", "https://api.test", "authorization").unwrap();
        assert!(tls.is_for(&target("https://api.test/x")));
        for other in ["http://api.test", "https://api.test:8443", "https://x.api.test"] {
            assert!(!tls.is_for(&target(other)), "{other}");
        }
        let clear = secret("0123456789", "HTTP://127.0.0.1:8080", "authorization").unwrap();
        assert!(clear.is_for(&target("http://127.0.0.1:8080")));
        let both = secret("0123456789", "127.0.0.1", "authorization").unwrap();
        assert!(!both.is_for(&target("http://127.0.0.1")), "a rule without a scheme means TLS");
    }

    #[test]
    fn what_could_leak_or_not_be_scanned_is_refused_with_a_reason() {
        let ok = "https://api.test";
        assert_eq!(secret("1234567", ok, "x-key").unwrap_err(), SecretError::TooShort);
        let long = "x".repeat(MAX_VALUE + 1);
        assert_eq!(secret(&long, ok, "x-key").unwrap_err(), SecretError::TooLong);
        let broken = secret("12345678\r\nHost: x", ok, "x-key").unwrap_err();
        assert_eq!(broken, SecretError::NotAHeaderValue);
        for header in ["host", "Content-Length", "transfer-encoding", "a b", "proxy-x"] {
            assert!(matches!(secret("12345678", ok, header), Err(SecretError::Header(_))));
        }
        for host in ["https://*", "https://*:8443", "0.0.0.0/0", "[::/0]:443"] {
            let Ok(rule) = host.parse::<HostRule>() else { continue };
            let result = Secret::new(&"12345678".into(), vec![rule], "x-key", "");
            assert!(matches!(result, Err(SecretError::AnyHost(_))), "{host}");
        }
        let unbound = Secret::new(&"12345678".into(), Vec::new(), "x-key", "").unwrap_err();
        assert_eq!(unbound, SecretError::Unbound);
    }

    #[test]
    fn no_value_is_shown() {
        let mut store = SecretStore::default();
        let value = "very-secret-value";
        store.insert(
            SecretName::new("a").unwrap(),
            secret(value, "https://api.test", "x-key").unwrap(),
        );
        let names = store.names().cloned().collect();
        let shown = format!("{store:?} {store:#?} {:?}", store.allowed_secrets(&names));
        assert!(!shown.contains(value), "{shown}");
        assert!(shown.contains("x-key"));
    }

    #[test]
    fn a_tool_has_only_the_secrets_it_is_allowed() {
        let mut store = SecretStore::default();
        let name = |text: &str| SecretName::new(text).unwrap();
        for n in ["a", "b"] {
            let bound = secret("0123456789", "https://api.test", "x-key").unwrap();
            store.insert(name(n), bound);
        }
        let allowed = store.allowed_secrets(&BTreeSet::from([name("b"), name("missing")]));
        assert_eq!(allowed.names().collect::<Vec<_>>(), [&name("b")]);
        let value = store.value_for(&name("a"), &target("https://api.test/token")).unwrap();
        assert_eq!(value.expose_secret(), "0123456789");
        for other in ["http://api.test", "https://other.test"] {
            assert!(store.value_for(&name("a"), &target(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn a_run_looks_for_the_secrets_of_all_its_agents() {
        let mut store = SecretStore::default();
        let name = |text: &str| SecretName::new(text).unwrap();
        for (n, value) in [("a", "value-of-a"), ("b", "value-of-b"), ("c", "value-of-c")] {
            store.insert(name(n), secret(value, "https://api.test", "x-key").unwrap());
        }
        let none = store.allowed_secrets(&BTreeSet::new());
        assert!(none.secret_watch().is_empty(), "a run without secrets looks for none");
        let run = store.for_run(&BTreeSet::from([name("a")]));
        let tool = run.allowed_secrets(&BTreeSet::from([name("b")]));
        assert_eq!(tool.names().collect::<Vec<_>>(), [&name("b")]);
        for (text, found) in [("value-of-a", true), ("VALUE-OF-B", true), ("value-of-c", false)] {
            assert_eq!(tool.secret_watch().stands_in(text.as_bytes()), found, "{text}");
        }
        for _ in 0..MAX_ECHOES {
            assert!(!tool.secret_watch().is_used_up());
            run.secret_watch().count_withheld();
        }
        assert!(tool.secret_watch().is_used_up(), "all jars of a run count together");
        assert!(!store.for_run(&BTreeSet::new()).secret_watch().is_used_up());
    }
}
