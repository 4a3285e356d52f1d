//! The network gate: host rules, URLs and addresses.
//!
//! One thing a line: `+RULE` stands in the operator's list, `-RULE` in a definition's,
//! `@ADDRESS` is what a name resolves to, and everything else is a URL.
//!
//! The gate's answer is checked against a reading of the rule's own text, and against a list of
//! special addresses, both written here with nothing but the standard library.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use belljar_policy::{DecisionSource, HostRule, HostScope, RequestTarget, TargetHost, UrlPermit};

use crate::is_safe_to_show;

/// Lines of one input: enough to mix, few enough to be quick.
const MAX_LINES: usize = 40;

/// A rule as its text reads, without the host's parser.
struct Written<'a> {
    scheme: Option<String>,
    host: &'a str,
    port: Option<&'a str>,
}

/// Checks host rules, the URL gate and the address check against each other.
pub fn gate(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (mut granted, mut asked, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    let mut addresses = vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 1, 2, 3])];
    for line in text.lines().take(MAX_LINES) {
        match line.split_at_checked(1) {
            Some(("+", rule)) => granted.extend(read_rule(rule)),
            Some(("-", rule)) => asked.extend(read_rule(rule)),
            Some(("@", address)) => addresses.extend(address.parse::<IpAddr>().ok()),
            _ => targets.extend(read_target(line)),
        }
    }
    covering(&granted, &asked, &targets);
    let operator = HostScope::from_rules(DecisionSource::Grants, granted.clone());
    let both = operator.clone().with_rules(DecisionSource::Definition, asked.clone());
    assert!(both.is_within(&operator));
    assert!(HostScope::none().lists().count() == 1 && HostScope::none().is_none());
    for target in &targets {
        addresses.extend(match target.host() {
            TargetHost::Ip(ip) => Some(*ip),
            TargetHost::Name(_) => None,
        });
        assert!(HostScope::none().check_target(target).is_err(), "an empty list is nothing");
        if let Ok(permit) = operator.check_target(target) {
            assert!(granted.iter().any(|rule| fits(rule, target)), "{target} by {granted:?}");
            connecting(&permit, &granted, &addresses);
        }
        if let Ok(permit) = both.check_target(target) {
            assert!(operator.check_target(target).is_ok(), "a definition opens nothing");
            assert!(asked.iter().any(|rule| fits(rule, target)), "{target} by {asked:?}");
            connecting(&permit, &granted, &addresses);
        }
    }
}

fn read_rule(text: &str) -> Option<HostRule> {
    match text.parse::<HostRule>() {
        Ok(rule) => {
            assert_eq!(rule.to_string(), text, "a rule is shown as it was written");
            assert!(rule.covers_rule(&rule));
            Some(rule)
        }
        Err(error) => {
            assert!(is_safe_to_show(&error.to_string()), "{error:?}");
            None
        }
    }
}

fn read_target(url: &str) -> Option<RequestTarget> {
    let target = RequestTarget::parse(url).ok()?;
    // What is checked is what is shown, written into `Host`, and read again from there.
    let shown = target.to_string();
    assert!(is_safe_to_show(&shown), "{shown:?}");
    assert_eq!(RequestTarget::parse(&shown).as_ref(), Ok(&target), "{url:?} is shown as {shown:?}");
    if let TargetHost::Name(name) = target.host() {
        assert!(!name.is_empty() && name.is_ascii(), "{name:?}");
        assert_eq!(name.to_ascii_lowercase(), *name);
        assert!(name.parse::<IpAddr>().is_err(), "{name:?} is an address");
        assert!(!name.contains(['/', '?', '#', '@', ':', '\\', '%', '[', ']', ' ']), "{name:?}");
    }
    Some(target)
}

/// A rule that covers another allows all that the other allows.
fn covering(granted: &[HostRule], asked: &[HostRule], targets: &[RequestTarget]) {
    let passes = |rule: &HostRule, target: &RequestTarget| {
        HostScope::from_rules(DecisionSource::Grants, vec![rule.clone()])
            .check_target(target)
            .is_ok()
    };
    for wide in granted {
        for narrow in asked.iter().filter(|narrow| wide.covers_rule(narrow)) {
            for target in targets {
                let holds = !passes(narrow, target) || passes(wide, target);
                assert!(holds, "`{wide}` covers `{narrow}`, and not {target}");
            }
        }
    }
}

/// Whether the rule's text means the target, as far as it can be read here: a host that is not
/// ASCII, and an address in another notation, are left to the host's parser.
fn fits(rule: &HostRule, target: &RequestTarget) -> bool {
    let text = rule.to_string();
    let rule = written(&text);
    let scheme = target.scheme().as_str();
    let port = match rule.port {
        Some("*") => true,
        Some(port) => port.parse() == Ok(target.port()),
        None => target.port() == if scheme == "https" { 443 } else { 80 },
    };
    rule.scheme.is_none_or(|own| own == scheme) && port && host_fits(rule.host, target.host())
}

fn host_fits(rule: &str, host: &TargetHost) -> bool {
    if rule == "*" || !rule.is_ascii() {
        return true;
    }
    let plain = |name: &str| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    match host {
        TargetHost::Name(host) => match rule.strip_prefix("*.") {
            Some(below) => host
                .strip_suffix(&plain(below))
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            None => plain(rule) == *host,
        },
        TargetHost::Ip(ip) => network_holds(rule, *ip),
    }
}

fn written(text: &str) -> Written<'_> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
        None => (None, text),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None if rest.matches(':').count() == 1 => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
        None => (rest, None),
    };
    Written { scheme, host, port }
}

/// Whether `ADDRESS` or `ADDRESS/BITS` holds the address.
fn network_holds(network: &str, ip: IpAddr) -> bool {
    let (base, bits) = match network.split_once('/') {
        Some((base, bits)) => (base, bits.parse().ok()),
        None => (network, Some(128)),
    };
    match (base.parse(), ip, bits) {
        (Ok(IpAddr::V4(base)), IpAddr::V4(ip), Some(bits)) => {
            let shift = 32_u32.saturating_sub(bits);
            u64::from(base.to_bits()) >> shift == u64::from(ip.to_bits()) >> shift
        }
        (Ok(IpAddr::V6(base)), IpAddr::V6(ip), Some(bits)) => {
            let shift = 128_u32.saturating_sub(bits);
            base.to_bits().checked_shr(shift) == ip.to_bits().checked_shr(shift)
        }
        _ => false,
    }
}

/// A connection goes to the address and port that were checked, and to a special address only
/// where a rule of the operator names it.
fn connecting(permit: &UrlPermit, granted: &[HostRule], addresses: &[IpAddr]) {
    let target = permit.target();
    for ip in addresses {
        let Ok(allowed) = permit.check_address(*ip) else { continue };
        assert_eq!(
            (allowed.socket_address().ip(), allowed.socket_address().port()),
            (*ip, target.port())
        );
        if let TargetHost::Ip(own) = target.host() {
            assert_eq!(own, ip, "the address is the URL's own");
        }
        let names = |rule: &HostRule| {
            let text = rule.to_string();
            let host = written(&text).host;
            let local = host.trim_end_matches('.').eq_ignore_ascii_case("localhost");
            network_holds(host, *ip) || (local && ip.is_loopback())
        };
        let opened = is_special(*ip) && !granted.iter().any(names);
        assert!(!opened, "{target} leads to {ip}, by {granted:?}");
    }
}

/// Whether an address leads anywhere but the public internet.
fn is_special(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_special_v4(ip),
        IpAddr::V6(ip) => is_special_v6(ip),
    }
}

fn is_special_v4(ip: Ipv4Addr) -> bool {
    let held_by = |networks: &[&str]| networks.iter().any(|net| network_holds(net, ip.into()));
    ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_broadcast()
        || ip.is_documentation()
        || ip.is_unspecified()
        || held_by(&[
            "0.0.0.0/8",
            "100.64.0.0/10",
            "192.0.0.0/24",
            "198.18.0.0/15",
            "240.0.0.0/4",
            "168.63.129.16",
        ])
}

fn is_special_v6(ip: Ipv6Addr) -> bool {
    let held_by = |networks: &[&str]| networks.iter().any(|net| network_holds(net, ip.into()));
    // Mapped and compatible forms of every IPv4 address, `::` and `::1` among them.
    ip.to_ipv4().is_some()
        || ip.is_multicast()
        || ip.is_unique_local()
        || ip.is_unicast_link_local()
        || held_by(&["fec0::/10", "2001:db8::/32", "2002::/16", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "100::/64", "3fff::/20", "5f00::/16"])
        // ISATAP.
        || matches!(ip.segments(), [_, _, _, _, 0 | 0x200, 0x5efe, _, _])
}
