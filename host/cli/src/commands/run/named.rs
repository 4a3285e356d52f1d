//! Finds out whether the agent's own file, the settings or the person named a refused host. A host that only
//! a model or a tool named may be an attacker's, and a command that is ready for pasting would let the tool
//! reach it.

use belljar_definition::Settings;
use belljar_policy::{DecisionSource, HostRule, HostScope, RequestTarget};

/// Returns whether one of these rules names the host: itself, a domain above it, or a network that contains
/// it. A rule for every host does not count.
pub(crate) fn by_rules<'a>(
    rules: impl IntoIterator<Item = &'a HostRule>,
    target: &RequestTarget,
) -> bool {
    let names = |rule: &HostRule| {
        !is_any(rule)
            && HostScope::from_rules(DecisionSource::Grants, vec![rule.clone()])
                .check_target(target)
                .is_ok()
    };
    rules.into_iter().any(names)
}

/// Returns whether a rule is for every host.
fn is_any(rule: &HostRule) -> bool {
    let text = rule.to_string();
    let host = text.split_once("://").map_or(&*text, |(_, host)| host);
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    host == "*" || host.ends_with("/0")
}

/// Returns whether the settings name the host: in a grant or the defaults, for a secret, for an MCP server or
/// for a model.
pub(crate) fn by_settings(settings: &Settings, target: &RequestTarget) -> bool {
    let bound = settings.secrets.values().map(|secret| &secret.host);
    let servers = settings.mcp.values().map(|server| &server.host);
    let models = settings.models.values().filter_map(|model| model.base_url.as_deref());
    by_rules(settings.granted_hosts().chain(bound).chain(servers), target)
        || models.filter_map(|url| RequestTarget::parse(url).ok()).any(|model| model == *target)
}

/// Returns whether a person's words name the host: as a separate word, with the same scheme if one is
/// written, and with the same port; without a port, the scheme's default port.
///
/// `https://tides.test/today` and `tides.test` name `https://tides.test`; `tides.test:81`,
/// `not-tides.test` and `tides.test.example` do not.
pub(crate) fn by_words(words: &str, target: &RequestTarget) -> bool {
    let words = words.to_lowercase();
    let scheme = target.scheme().as_str();
    let whole = target.to_string();
    let Some(host) = whole.split_once("://").map(|(_, host)| host) else { return false };
    let bare = host.strip_suffix(&format!(":{}", target.port())).unwrap_or(host);
    let default = target.port() == target.scheme().default_port();
    words.match_indices(bare).any(|(at, _)| {
        let before = words.get(..at).unwrap_or_default();
        let after = words.get(at + bare.len()..).unwrap_or_default();
        let before_fits = match before.strip_suffix("://") {
            Some(before) => before.strip_suffix(scheme).is_some_and(|it| !ends_in_name(it)),
            None => !ends_in_name(before) && !before.ends_with('@'),
        };
        before_fits && port_fits(after, target.port(), default)
    })
}

fn ends_in_name(text: &str) -> bool {
    let last = text.chars().next_back();
    last.is_some_and(|last| last.is_alphanumeric() || matches!(last, '.' | '-' | '_'))
}

/// Returns whether a host's name ends where `after` begins, with `port` after it. The port may be absent if
/// `default` is true, that is, if `port` is the scheme's default.
fn port_fits(after: &str, port: u16, default: bool) -> bool {
    let mut rest = after.chars();
    match rest.next() {
        None => default,
        Some(':') => {
            let digits: String = rest.take_while(char::is_ascii_digit).collect();
            if digits.is_empty() { default } else { digits.parse() == Ok(port) }
        }
        // The dot ends a sentence, or continues a longer name such as `tides.test.example`.
        Some('.') => {
            default && !rest.next().is_some_and(|next| next.is_alphanumeric() || next == '-')
        }
        Some(next) => default && !next.is_alphanumeric() && !matches!(next, '-' | '_' | '@'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn target(text: &str) -> RequestTarget {
        RequestTarget::parse(text).unwrap()
    }

    #[test]
    fn a_persons_words_name_a_host_as_a_word_of_its_own() {
        let tides = target("https://tides.test/x");
        for words in [
            "https://tides.test/today",
            "look at tides.test, please",
            "Ask Tides.Test.",
            "(tides.test:443)",
            "HTTPS://TIDES.TEST",
            "tides.test: when is it high?",
        ] {
            assert!(by_words(words, &tides), "{words}");
        }
        for words in [
            "",
            "when is the tide?",
            "not-tides.test",
            "my.tides.test",
            "tides.test.example",
            "http://tides.test",
            "xhttps://tides.test",
            "tides.test:81",
            "https://tides.test@evil.test",
            "bob@tides.test",
        ] {
            assert!(!by_words(words, &tides), "{words}");
        }
        let local = target("http://127.0.0.1:8080");
        assert!(by_words("curl http://127.0.0.1:8080/x", &local));
        assert!(!by_words("curl http://127.0.0.1/x and 127.0.0.1:80", &local));
        assert!(by_words("see http://[::1]:9/", &target("http://[::1]:9")));
    }

    #[test]
    fn a_rule_for_every_host_names_none() {
        let names = |rules: &[&str], text: &str| {
            let rules: Vec<HostRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
            by_rules(&rules, &target(text))
        };
        assert!(names(&["https://*", "https://tides.test"], "https://tides.test"));
        assert!(names(&["https://*.test"], "https://tides.test"));
        assert!(names(&["http://10.0.0.0/8:80"], "http://10.1.2.3"));
        for rule in ["https://*", "https://*:*", "https://other.test", "0.0.0.0/0"] {
            assert!(!names(&[rule], "https://tides.test"), "{rule}");
        }
        assert!(!names(&["0.0.0.0/0"], "http://10.1.2.3"));
    }

    #[test]
    fn the_settings_name_the_hosts_of_grants_secrets_servers_and_models() {
        let text = "[grants.other]\nhosts = ['https://a.test']\n[defaults.internal]\n\
                    hosts = ['https://b.test']\n[secrets.k]\nhost = 'https://c.test'\n\
                    header = 'x-k'\nenv = 'K'\n[mcp.m]\nurl = 'https://d.test/mcp'\n\
                    [models.x]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:8080/v1'\n\
                    model = 'x'\n";
        let settings =
            Settings::parse(Some((Path::new("belljar.toml"), text)), None, None).unwrap();
        let named = ["https://a.test", "https://b.test", "https://c.test", "https://d.test"];
        for host in named.into_iter().chain(["http://127.0.0.1:8080"]) {
            assert!(by_settings(&settings, &target(host)), "{host}");
        }
        assert!(!by_settings(&settings, &target("https://evil.test")));
        assert!(!by_settings(&settings, &target("http://127.0.0.1:8081")));
    }
}
