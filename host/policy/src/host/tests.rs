//! Tests of the URL check, as a table, and of the address check.

use super::*;

fn scope(rules: &[&str]) -> HostScope {
    HostScope::from_rules(
        DecisionSource::Grants,
        rules.iter().map(|rule| rule.parse().unwrap()).collect(),
    )
}

fn passes(rules: &[&str], url: &str) -> bool {
    RequestTarget::parse(url).is_ok_and(|target| scope(rules).check_target(&target).is_ok())
}

#[test]
fn a_request_passes_only_where_scheme_host_and_port_fit() {
    let allowed = [
        ("https://example.org", "https://example.org/a?b#c"),
        ("https://example.org", "https://EXAMPLE.org.:443/"),
        ("https://*.example.org", "https://a.b.example.org/"),
        ("https://*", "https://anything.test/"),
        ("http://example.org:8080", "http://example.org:8080/"),
        ("http://example.org:*", "http://example.org:9/"),
        ("10.0.0.0/8", "http://10.1.2.3/"),
        ("http://10.0.0.0/8:8080", "http://10.1.2.3:8080/"),
        ("http://127.0.0.1", "http://0x7f.1/"),
        ("http://[::1]:80", "http://[::1]/"),
        ("https://bücher.example", "https://xn--bcher-kva.example/"),
    ];
    for (rule, url) in allowed {
        assert!(passes(&[rule], url), "{rule} should allow {url}");
    }
    let refused = [
        ("https://example.org", "http://example.org/"),
        ("https://example.org", "https://example.org:8443/"),
        ("https://example.org", "https://example.org.evil.test/"),
        ("https://example.org", "https://evil.test/example.org"),
        ("https://example.org", "https://example.org@evil.test/"),
        ("https://example.org", "https://user@example.org/"),
        ("https://example.org", "https://sub.example.org/"),
        ("https://*.example.org", "https://example.org/"),
        ("https://*.example.org", "https://badexample.org/"),
        ("https://example.org", "https://exаmple.org/"),
        ("https://*", "http://anything.test/"),
        ("https://*", "https://anything.test:444/"),
        ("https://*", "ftp://anything.test/"),
        ("10.0.0.0/8", "http://10.1.2.3:8080/"),
        ("10.0.0.0/8", "http://11.0.0.1/"),
        ("http://example.org", "http://93.184.215.14/"),
    ];
    for (rule, url) in refused {
        assert!(!passes(&[rule], url), "{rule} should refuse {url}");
    }
    assert!(!passes(&[], "https://example.org/"), "an empty list is nothing");
}

#[test]
fn a_text_that_is_not_a_rule_is_refused_with_a_reason() {
    let bad = [
        "",
        "example.org",
        "*",
        "ftp://x.test",
        "https://",
        "https://a b",
        "https://*.*.x",
        "https://x:0",
        "https://x:99999",
        "https://x:+80",
        "https://u@x",
        "https://x/path",
        "https://*.",
        "https://a..b",
        "https://a\t.test",
        "https://a.test\r",
        "https://*x.test",
        "http://10.0.0.0/33",
        "010.0.0.0/8",
    ];
    for text in bad {
        let error = text.parse::<HostRule>().unwrap_err().to_string();
        assert!(error.contains("is not a host rule"), "{error}");
    }
}

#[test]
fn private_addresses_need_a_rule_of_the_operator() {
    let check = |rules: &[&str], url: &str, ip: &str| {
        let permit = scope(rules).check_target(&RequestTarget::parse(url).unwrap()).unwrap();
        permit.check_address(ip.parse().unwrap()).is_ok()
    };
    assert!(check(&["https://*"], "https://x.test/", "1.1.1.1"));
    assert!(!check(&["https://*"], "https://x.test/", "10.0.0.1"));
    assert!(!check(&["https://*"], "https://x.test/", "169.254.169.254"));
    assert!(!check(&["https://*"], "https://x.test/", "::ffff:10.0.0.1"));
    assert!(check(&["https://x.test", "10.0.0.0/8"], "https://x.test/", "10.0.0.1"));
    assert!(!check(&["https://x.test", "http://10.0.0.0/8"], "https://x.test/", "10.0.0.1"));
    assert!(!check(&["https://x.test:444", "10.0.0.0/8"], "https://x.test:444/", "10.0.0.1"));
    assert!(check(&["http://localhost:8080"], "http://localhost:8080/", "127.0.0.1"));
    assert!(!check(&["http://localhost:8080"], "http://localhost:8080/", "10.0.0.1"));
    assert!(
        !check(&["http://127.0.0.1"], "http://127.0.0.1/", "127.0.0.2"),
        "the address is the URL's own"
    );
}

#[test]
fn only_the_operators_list_opens_private_addresses_and_every_such_list_must() {
    let target = RequestTarget::parse("https://x.test/").unwrap();
    let net = || vec!["10.0.0.0/8".parse().unwrap(), "https://x.test".parse().unwrap()];
    let name = || vec!["https://x.test".parse().unwrap()];
    let ip = "10.0.0.1".parse().unwrap();
    let asked = HostScope::from_rules(DecisionSource::Grants, name())
        .with_rules(DecisionSource::Definition, net());
    assert!(
        asked.check_target(&target).unwrap().check_address(ip).is_err(),
        "a definition opens nothing"
    );
    let granted = HostScope::from_rules(DecisionSource::Grants, net())
        .with_rules(DecisionSource::Definition, name());
    assert!(granted.check_target(&target).unwrap().check_address(ip).is_ok());
    let child = granted.and_scope(&HostScope::from_rules(DecisionSource::Grants, name()));
    assert!(
        child.check_target(&target).unwrap().check_address(ip).is_err(),
        "both operators' lists must cover it"
    );
}

#[test]
fn a_scope_within_another_never_passes_more() {
    let wide = scope(&["https://*"]);
    let narrow = wide
        .clone()
        .with_rules(DecisionSource::Definition, vec!["https://a.test".parse().unwrap()]);
    assert!(narrow.is_within(&wide) && !wide.is_within(&narrow));
    assert!(HostScope::none().is_within(&narrow));
}
