//! Where a notification may go.
//!
//! A webhook is an address that a stranger makes us dial, from inside. So what counts is not how it is written but where
//! it leads: the addresses that its name has at that moment, each of which must be one of the public internet, or in a
//! network that the operator allows by name. The same question is asked when it is registered and each time it is dialled.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

use crate::settings::Network;
use crate::web::{AddressFault, WebAddress};

/// Who may be told.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Networks inside that the operator has opened.
    allowed: Vec<Network>,
}

/// Why an address may not be dialled. Where a name leads is not said, nor whether it leads anywhere: nobody learns from us
/// what there is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    Address(AddressFault),
    /// A port that other protocols live on.
    Port,
    /// It leads to where no notification goes, or nowhere.
    Place,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(fault) => write!(f, "`url` {fault}"),
            Self::Port => write!(f, "`url` names a port that no notification goes to"),
            Self::Place => write!(f, "`url` leads to no address that a notification goes to"),
        }
    }
}

impl std::error::Error for Unfit {}

impl Unfit {
    /// What the client can do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Address(_) => "send an https URL without credentials in it",
            Self::Port => "use port 443, or one from 1024 on that no other protocol is known for",
            Self::Place => {
                "send an https URL whose host has public addresses only; for a network inside, or http, the operator \
                 sets [a2a] push_allow"
            }
        }
    }
}

/// An address as far as it can be judged by its text.
#[derive(Debug, Clone)]
pub struct Target(WebAddress);

impl Target {
    pub fn parse(url: &str) -> Result<Self, Unfit> {
        let address = WebAddress::parse(url).map_err(Unfit::Address)?;
        let port = address.port();
        let usual = matches!(port, 80 | 443) || (port >= 1024 && !OTHER_PROTOCOLS.contains(&port));
        if usual { Ok(Self(address)) } else { Err(Unfit::Port) }
    }

    pub fn address(&self) -> &WebAddress {
        &self.0
    }
}

impl Guard {
    pub fn new(allowed: Vec<Network>) -> Self {
        Self { allowed }
    }

    /// May a notification for this target go to that address? Without TLS only into networks that are allowed: what is
    /// told is nobody else's to read.
    pub fn admits(&self, target: &Target, address: IpAddr) -> bool {
        let is_allowed = self.allowed.iter().any(|network| network.contains(address));
        is_allowed || (target.0.is_tls() && is_public(address))
    }
}

/// Ports above 1023 that browsers refuse too, for a request there can be taken for something else.
const OTHER_PROTOCOLS: [u16; 21] = [
    1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679,
    6697, 10080, 11211, 6379,
];

/// Is it an address of the public internet?
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// IPv4 blocks that are not: what IANA lists as special, what was never given out, and where clouds answer from inside.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 19] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within =
        |(block, prefix): &(Ipv4Addr, u32)| (address.to_bits() ^ block.to_bits()) >> (32 - prefix) == 0;
    !NOT_PUBLIC_V4.iter().any(within)
}

/// The one IPv6 block that addresses are given out of, and what in it is not public: protocol assignments with Teredo,
/// documentation, and 6to4, which leads to whatever IPv4 address is written in it.
const GIVEN_OUT_V6: (u128, u32) = (0x2000 << 112, 3);
const NOT_PUBLIC_V6: [(u128, u32); 5] = [
    (0x2001 << 112, 23),
    ((0x2001 << 112) | (0x0db8 << 96), 32),
    (0x2002 << 112, 16),
    ((0x2620 << 112) | (0x004f << 96) | (0x8000 << 80), 48),
    (0x3fff << 112, 20),
];
/// Where translators put the IPv4 addresses of the internet, for networks that have no IPv4.
const TRANSLATED_V6: (u128, u32) = ((0x0064 << 112) | (0xff9b << 96), 96);

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let within = |(block, prefix): &(u128, u32)| (bits ^ block) >> (128 - prefix) == 0;
    // The IPv4 address that is written in the last 32 bits.
    #[expect(clippy::cast_possible_truncation, reason = "the last 32 bits are what is meant")]
    let last = Ipv4Addr::from_bits(bits as u32);
    if address.to_ipv4_mapped().is_some() || within(&TRANSLATED_V6) {
        return is_public_v4(last);
    }
    // ISATAP: an IPv4 address behind a marked interface id, in any network.
    let leads_inside = (bits >> 32) & 0xfdff_ffff == 0x0000_5efe && !is_public_v4(last);
    within(&GIVEN_OUT_V6) && !NOT_PUBLIC_V6.iter().any(within) && !leads_inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        let check = |text: &str, expected: bool| {
            let address: IpAddr = text.parse().unwrap_or_else(|_| panic!("{text}"));
            assert_eq!(is_public(address), expected, "{text}");
        };
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00::1",
            "2001:200::1",
            "2003::1",
            "3ffe::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2606:4700::5efe:808:808",
        ] {
            check(public, true);
        }
        for inside in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.0.0",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.255",
            "192.31.196.1",
            "192.52.193.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "192.175.48.1",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.0",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::",
            "2620:4f:8000::1",
            "3fff::1",
            "3fff:fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
            "1fff::1",
            "2606:4700::5efe:7f00:1",
            "2606:4700::200:5efe:a00:1",
        ] {
            check(inside, false);
        }
    }

    #[test]
    fn what_the_operator_allows_is_allowed_and_nothing_else_without_tls() {
        let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()]);
        let check = |url: &str, address: &str, expected: bool| {
            let target = Target::parse(url).unwrap();
            assert_eq!(guard.admits(&target, address.parse().unwrap()), expected, "{url} at {address}");
        };
        check("http://hook.example", "127.0.0.1", true);
        check("https://hook.example", "127.0.0.1", true);
        check("http://hook.example", "::ffff:127.0.0.1", true);
        check("http://hook.example", "fd00::1", true);
        check("http://hook.example", "10.0.0.1", false);
        check("https://hook.example", "10.0.0.1", false);
        check("https://hook.example", "8.8.8.8", true);
        check("http://hook.example", "8.8.8.8", false);
        let nobody = Guard::default();
        assert!(!nobody.admits(&Target::parse("http://hook.example").unwrap(), "8.8.8.8".parse().unwrap()));
    }

    #[test]
    fn ports_of_other_protocols_are_refused() {
        for port in [80, 443, 1024, 3000, 8080, 8443, 65535] {
            assert!(Target::parse(&format!("https://hook.example:{port}/")).is_ok(), "{port}");
        }
        for port in [1, 22, 25, 53, 111, 389, 993, 1023, 2049, 5060, 6000, 6379, 6667, 10080, 11211] {
            let fault = Target::parse(&format!("https://hook.example:{port}/")).unwrap_err();
            assert_eq!(fault, Unfit::Port, "{port}");
        }
    }
}
