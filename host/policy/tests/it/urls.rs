//! URLs built from parts, in many spellings: a rule allows exactly what the rule names, and nothing that
//! only looks similar.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use belljar_policy::{
    AddressClass, DecisionSource, HostRule, HostScope, RequestTarget, TargetError, TargetHost,
    classify_address,
};
use proptest::prelude::*;
use proptest::sample::select;

const NAMES: &[&str] =
    &["a.test", "b.a.test", "c.b.a.test", "xa.test", "a.test.evil.test", "test", "localhost"];
const PORTS: &[u16] = &[1, 80, 443, 8080, 65_535];

fn rule() -> impl Strategy<Value = (bool, String, Option<u16>)> {
    let name = (select(NAMES), any::<bool>())
        .prop_map(|(name, below)| if below { format!("*.{name}") } else { name.to_owned() });
    (
        any::<bool>(),
        prop_oneof![9 => name, 1 => Just("*".to_owned())],
        prop::option::of(select(PORTS)),
    )
}

fn scheme(tls: bool) -> &'static str {
    if tls { "https" } else { "http" }
}

fn with_port(port: Option<u16>) -> String {
    port.map(|port| format!(":{port}")).unwrap_or_default()
}

/// A host name in another spelling: in capitals, percent-encoded, in full-width letters, or with a final
/// dot.
fn spelt(name: &str, how: u8) -> String {
    match how {
        0 => name.to_owned(),
        1 => name.to_uppercase(),
        2 => format!("{name}."),
        3 => name.replace('a', "%61"),
        4 => name.replace('t', "\u{ff54}"),
        _ => name.replace('.', "\u{3002}"),
    }
}

fn scope(rules: &[HostRule]) -> HostScope {
    HostScope::from_rules(DecisionSource::Grants, rules.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn a_url_passes_where_scheme_host_and_port_are_the_rules(
        (rule_tls, host, rule_port) in rule(),
        tls in any::<bool>(),
        name in select(NAMES),
        port in prop::option::of(select(PORTS)),
        how in 0..6_u8,
        tail in "[a-z/?#@:.]{0,12}",
    ) {
        let rule = format!("{}://{host}{}", scheme(rule_tls), with_port(rule_port));
        let rule: HostRule = rule.parse().unwrap();
        let url = format!("{}://{}{}/{tail}", scheme(tls), spelt(name, how), with_port(port));
        let target = RequestTarget::parse(&url).unwrap();
        prop_assert_eq!(target.host(), &TargetHost::Name(name.to_owned()), "{}", url);
        let default = |tls| if tls { 443 } else { 80 };
        let host_fits = match host.strip_prefix("*.") {
            _ if host == "*" => true,
            Some(below) => name.ends_with(&format!(".{below}")),
            None => host == name,
        };
        let same_port = port.unwrap_or(default(tls)) == rule_port.unwrap_or(default(rule_tls));
        let expected = rule_tls == tls && host_fits && same_port;
        prop_assert_eq!(scope(&[rule]).check_target(&target).is_ok(), expected, "{}", url);
    }

    #[test]
    fn a_user_name_in_front_never_passes(
        user in "[a-z.]{1,8}",
        password in prop::option::of("[a-z]{0,8}"),
        name in select(NAMES),
    ) {
        let password = password.map(|word| format!(":{word}")).unwrap_or_default();
        let url = format!("https://{user}{password}@{name}/");
        prop_assert_eq!(RequestTarget::parse(&url), Err(TargetError::Userinfo), "{}", url);
    }

    #[test]
    fn a_target_is_read_again_from_what_is_shown(url in "(https?://)?\\PC{0,40}") {
        let Ok(target) = RequestTarget::parse(&url) else { return Ok(()) };
        prop_assert_eq!(RequestTarget::parse(&target.to_string()), Ok(target), "{}", url);
    }

    /// Every notation of an IPv4 address in a URL means the same address. The address is checked by the rules
    /// for networks, not by the rules for names.
    #[test]
    fn an_address_is_the_same_in_every_notation(bits in any::<u32>()) {
        let ip = Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = ip.octets();
        let rest = u32::from_be_bytes([0, b, c, d]);
        let spellings =
            [ip.to_string(), bits.to_string(), format!("{bits:#x}"), format!("0{bits:o}"), format!("{a}.{rest}"), format!("0x{a:x}.{b}.{c}.{d}")];
        let any_name: HostRule = "http://*.test".parse().unwrap();
        let own: HostRule = format!("{ip}/32").parse().unwrap();
        for text in spellings {
            let target = RequestTarget::parse(&format!("http://{text}/")).unwrap();
            prop_assert_eq!(target.host(), &TargetHost::Ip(ip.into()), "{}", text);
            prop_assert!(scope(std::slice::from_ref(&any_name)).check_target(&target).is_err());
            let permit = scope(std::slice::from_ref(&own)).check_target(&target).unwrap();
            prop_assert!(permit.check_address(ip.into()).is_ok(), "the operator listed it");
            let other = IpAddr::from(Ipv4Addr::from_bits(!bits));
            prop_assert!(permit.check_address(other).is_err(), "and no other");
        }
    }

    /// An IPv4 address inside an IPv6 address is never public, even if the IPv4 address alone is public.
    #[test]
    fn no_wrapping_makes_an_address_public(bits in any::<u32>(), low in any::<u64>()) {
        let ip = Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = ip.octets();
        let (high, tail) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let [_, _, _, _, e, f, g, h] = Ipv6Addr::from_bits(u128::from(low)).segments();
        let wrapped = [
            ip.to_ipv6_mapped(),
            ip.to_ipv6_compatible(),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, tail),
            Ipv6Addr::new(0x64, 0xff9b, 1, e, f, g, high, tail),
            Ipv6Addr::new(0x2002, high, tail, e, f, g, h, 1),
            Ipv6Addr::new(0x2001, 0, e, f, g, h, !high, !tail),
            Ipv6Addr::new(0x2a00, e, f, g, 0, 0x5efe, high, tail),
        ];
        for ip in wrapped {
            prop_assert_ne!(classify_address(ip.into()), AddressClass::Public, "{}", ip);
        }
    }

    /// A further list never allows more.
    #[test]
    fn another_list_only_takes_away(
        first in prop::collection::vec(rule(), 0..4),
        second in prop::collection::vec(rule(), 0..4),
        tls in any::<bool>(),
        name in select(NAMES),
    ) {
        let read = |rules: &[(bool, String, Option<u16>)]| -> Vec<HostRule> {
            let text = |(tls, host, port): &(bool, String, Option<u16>)| {
                format!("{}://{host}{}", scheme(*tls), with_port(*port)).parse().unwrap()
            };
            rules.iter().map(text).collect()
        };
        let one = scope(&read(&first));
        let both = one.clone().with_rules(DecisionSource::Definition, read(&second));
        let target = RequestTarget::parse(&format!("{}://{name}/", scheme(tls))).unwrap();
        prop_assert!(both.is_within(&one));
        let passes = |scope: &HostScope| scope.check_target(&target).is_ok();
        prop_assert_eq!(passes(&both), passes(&one) && passes(&scope(&read(&second))));
    }
}
