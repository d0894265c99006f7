//! Which IP addresses belong to the public Internet.
//!
//! The tables follow the IANA special-purpose address registries (RFC 6890 and its updates). Everything that is not
//! clearly public is refused.

use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of an address that is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NonPublicKind {
    /// This machine, or "this network": `127.0.0.0/8`, `::1`, `0.0.0.0`, `::`.
    Loopback,
    /// Private networks: RFC 1918, RFC 6598 (carrier-grade NAT), RFC 4193.
    Private,
    /// A single link; metadata services of cloud machines are here.
    LinkLocal,
    /// Documentation, benchmarking, protocol assignments, transition mechanisms, unassigned.
    Reserved,
    Multicast,
}

impl NonPublicKind {
    /// Returns the words for it in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Reserved => "a reserved address",
            Self::Multicast => "a multicast address",
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(a: u16, b: u16, c: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), bits)
}

const V4: [(Ipv4Net, NonPublicKind); 17] = [
    // Linux connects 0.0.0.0 to this machine.
    (v4(0, 0, 0, 0, 32), NonPublicKind::Loopback),
    (v4(0, 0, 0, 0, 8), NonPublicKind::Reserved),
    (v4(10, 0, 0, 0, 8), NonPublicKind::Private),
    (v4(100, 64, 0, 0, 10), NonPublicKind::Private),
    (v4(127, 0, 0, 0, 8), NonPublicKind::Loopback),
    (v4(169, 254, 0, 0, 16), NonPublicKind::LinkLocal),
    (v4(172, 16, 0, 0, 12), NonPublicKind::Private),
    (v4(192, 0, 0, 0, 24), NonPublicKind::Reserved),
    (v4(192, 0, 2, 0, 24), NonPublicKind::Reserved),
    (v4(192, 88, 99, 0, 24), NonPublicKind::Reserved),
    (v4(192, 168, 0, 0, 16), NonPublicKind::Private),
    (v4(198, 18, 0, 0, 15), NonPublicKind::Reserved),
    (v4(198, 51, 100, 0, 24), NonPublicKind::Reserved),
    (v4(203, 0, 113, 0, 24), NonPublicKind::Reserved),
    (v4(224, 0, 0, 0, 4), NonPublicKind::Multicast),
    (v4(255, 255, 255, 255, 32), NonPublicKind::Multicast),
    (v4(240, 0, 0, 0, 4), NonPublicKind::Reserved),
];

const V6: [(Ipv6Net, NonPublicKind); 7] = [
    (v6(0xfc00, 0, 0, 7), NonPublicKind::Private),
    (v6(0xfe80, 0, 0, 10), NonPublicKind::LinkLocal),
    (v6(0xff00, 0, 0, 8), NonPublicKind::Multicast),
    // Teredo, benchmarking, ORCHID and other protocol assignments.
    (v6(0x2001, 0, 0, 23), NonPublicKind::Reserved),
    (v6(0x2001, 0xdb8, 0, 32), NonPublicKind::Reserved),
    // 6to4: an embedded IPv4 address behind a relay that is out of service.
    (v6(0x2002, 0, 0, 16), NonPublicKind::Reserved),
    (v6(0x3fff, 0, 0, 20), NonPublicKind::Reserved),
];

/// The IPv6 range assigned as public unicast.
const GLOBAL_UNICAST: Ipv6Net = v6(0x2000, 0, 0, 3);
/// NAT64 (RFC 6052): networks without IPv4 reach every IPv4 host through it, so the embedded address decides.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);

/// Returns the kind of an address; `None` if it is public.
pub fn kind(address: IpAddr) -> Option<NonPublicKind> {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> Option<NonPublicKind> {
    V4.iter().find(|(net, _)| net.contains(&address)).map(|(_, kind)| *kind)
}

fn kind_v6(address: Ipv6Addr) -> Option<NonPublicKind> {
    if address.is_unspecified() || address.is_loopback() {
        return Some(NonPublicKind::Loopback);
    }
    if let Some(inner) = address.to_ipv4_mapped() {
        return kind_v4(inner);
    }
    if NAT64.contains(&address) {
        let [.., a, b, c, d] = address.octets();
        return kind_v4(Ipv4Addr::new(a, b, c, d));
    }
    let listed = V6.iter().find(|(net, _)| net.contains(&address)).map(|(_, kind)| *kind);
    // IPv4-compatible addresses (`::a.b.c.d`), local NAT64 and the discard prefix are outside.
    listed.or_else(|| (!GLOBAL_UNICAST.contains(&address)).then_some(NonPublicKind::Reserved))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_of_the_web_are_told_from_all_others() {
        use NonPublicKind::{LinkLocal, Loopback, Multicast, Private, Reserved};
        for (expected, addresses) in [
            (
                None,
                "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
                 169.253.255.255 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 198.17.255.255 \
                 198.20.0.0 223.255.255.255 2606:4700::1111 2001:200::1 2a00::1 ::ffff:1.1.1.1 \
                 64:ff9b::101:101",
            ),
            (
                Some(Loopback),
                "0.0.0.0 127.0.0.1 127.255.0.9 :: ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1",
            ),
            (
                Some(Private),
                "10.0.0.1 100.64.0.1 100.127.255.255 172.16.0.1 172.31.255.255 192.168.1.1 \
                 ::ffff:10.1.2.3 fc00::1 fd12:3456::1",
            ),
            (Some(LinkLocal), "169.254.169.254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe fe80::1"),
            (Some(Multicast), "224.0.0.1 239.255.255.255 255.255.255.255 ff02::1"),
            (
                Some(Reserved),
                "0.1.2.3 192.0.0.8 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.7 \
                 203.0.113.7 240.0.0.1 ::7f00:1 64:ff9b:1::101:101 100::1 2001::1 2001:2::1 2001:10::1 \
                 2001:db8::1 2002:7f00:1:: 2002:101:101:: 3fff::1 5f00::1 fec0::1",
            ),
        ] {
            for text in addresses.split(' ') {
                assert_eq!(kind(text.parse().unwrap()), expected, "{text}");
            }
        }
    }

    proptest! {
        /// The standard library never classifies more addresses as special than we do.
        #[test]
        fn agrees_with_the_standard_library(bits: u32) {
            let address = Ipv4Addr::from(bits);
            let special = address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_documentation()
                || address.is_multicast()
                || address.is_broadcast()
                || address.is_unspecified();
            prop_assert!(!special || kind_v4(address).is_some());
            prop_assert_eq!(kind_v4(address), kind_v6(address.to_ipv6_mapped()));
        }
    }
}
