//! Sorts network addresses into kinds: public, private, local and others.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of an address. Addresses of every kind but [`AddressClass::Public`] are refused, unless the
/// operator lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// An address the whole internet can reach.
    Public,
    /// An address of the local machine, for example 127.0.0.1.
    Loopback,
    /// An address for private use, by RFC 1918, RFC 6598 (shared) or RFC 4193 (unique local).
    Private,
    /// A link-local address. The metadata services of clouds have such addresses.
    LinkLocal,
    /// An IPv6 address with an IPv4 address: mapped, compatible, NAT64, 6to4 or Teredo.
    EmbeddedIpv4,
    /// Any other special address: unspecified, broadcast, multicast, documentation, benchmarking, reserved.
    Reserved,
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Loopback => "this machine",
            Self::Private => "a private network",
            Self::LinkLocal => "link-local or a metadata service",
            Self::EmbeddedIpv4 => "an IPv4 address inside an IPv6 one",
            Self::Reserved => "reserved",
        })
    }
}

/// Finds the kind of an address, by IANA's registries of special addresses for IPv4 and IPv6. An address not
/// known to be public does not count as public.
pub fn classify_address(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => classify_v6(v6),
    }
}

fn classify_v4(a: Ipv4Addr) -> AddressClass {
    match a.octets() {
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [192, 168, ..] => AddressClass::Private,
        [172, b, ..] if (16..32).contains(&b) => AddressClass::Private,
        [100, b, ..] if (64..128).contains(&b) => AddressClass::Private,
        [169, 254, ..] => AddressClass::LinkLocal,
        // In this order: this network; assignments of the IETF; two AS112 networks around the relays of 6to4;
        // benchmarking; two of the three documentation networks.
        [0, ..]
        | [192, 0, 0 | 2, _]
        | [192, 31, 196, _]
        | [192, 52, 193, _]
        | [192, 88, 99, _]
        | [192, 175, 48, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => AddressClass::Reserved,
        // Azure's wire server, which looks public but answers inside Azure's machines only.
        [168, 63, 129, 16] => AddressClass::LinkLocal,
        // Multicast and reserved, broadcast included.
        [224..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn classify_v6(a: Ipv6Addr) -> AddressClass {
    let s = a.segments();
    if a.is_loopback() {
        return AddressClass::Loopback;
    }
    if a.is_unspecified() {
        return AddressClass::Reserved;
    }
    match s {
        // IPv4 addresses in IPv6: mapped and compatible, NAT64, 6to4, Teredo.
        [0, 0, 0, 0, ..] | [0x64, 0xff9b, ..] | [0x2002, ..] | [0x2001, 0, ..] => {
            AddressClass::EmbeddedIpv4
        }
        // ISATAP has the IPv4 address in the interface identifier.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => AddressClass::EmbeddedIpv4,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressClass::Private,
        // Assignments of the IETF, and two documentation networks.
        [0x2001, 1..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            AddressClass::Reserved
        }
        // 2000::/3 is global unicast; other ranges are not assigned.
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_global_unicast_is_public() {
        let cases = [
            ("1.1.1.1", AddressClass::Public),
            ("172.32.0.1", AddressClass::Public),
            ("100.128.0.1", AddressClass::Public),
            ("2606:4700::1111", AddressClass::Public),
            ("127.9.9.9", AddressClass::Loopback),
            ("::1", AddressClass::Loopback),
            ("10.0.0.1", AddressClass::Private),
            ("172.31.255.255", AddressClass::Private),
            ("192.168.1.1", AddressClass::Private),
            ("100.64.0.1", AddressClass::Private),
            ("fd00:ec2::254", AddressClass::Private),
            ("169.254.169.254", AddressClass::LinkLocal),
            ("168.63.129.16", AddressClass::LinkLocal),
            ("fe80::1", AddressClass::LinkLocal),
            ("::ffff:127.0.0.1", AddressClass::EmbeddedIpv4),
            ("::ffff:8.8.8.8", AddressClass::EmbeddedIpv4),
            ("::127.0.0.1", AddressClass::EmbeddedIpv4),
            ("64:ff9b::a00:1", AddressClass::EmbeddedIpv4),
            ("2002:7f00:1::", AddressClass::EmbeddedIpv4),
            ("2001:0:1::", AddressClass::EmbeddedIpv4),
            ("0.0.0.0", AddressClass::Reserved),
            ("255.255.255.255", AddressClass::Reserved),
            ("224.0.0.1", AddressClass::Reserved),
            ("198.18.0.1", AddressClass::Reserved),
            ("::", AddressClass::Reserved),
            ("ff02::1", AddressClass::Reserved),
            ("2001:db8::1", AddressClass::Reserved),
            ("4000::1", AddressClass::Reserved),
        ];
        for (text, class) in cases {
            assert_eq!(classify_address(text.parse().unwrap()), class, "{text}");
        }
    }
}
