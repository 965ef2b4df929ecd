//! What a certificate says of itself: how long it counts, and for which names.
//!
//! The TLS library proves certificates, and tells nobody when its own side's ends. So this walks the few members of the
//! DER text (RFC 5280) that an operator has to hear of. Nothing is decided by it: one that cannot be read says nothing.

use std::net::IpAddr;

use crate::timestamp::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
    dns: Vec<String>,
    addresses: Vec<IpAddr>,
}

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const DNS_NAME: u8 = 0x82;
const ADDRESS: u8 = 0x87;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 0x11];

impl Certificate {
    pub(crate) fn read(der: &[u8]) -> Option<Self> {
        let mut signed = Der(Der(der).expect(SEQUENCE)?);
        let mut body = Der(signed.expect(SEQUENCE)?);
        let (first, _) = body.next()?;
        if first == VERSION {
            body.expect(INTEGER)?;
        }
        let (_algorithm, _issuer) = (body.expect(SEQUENCE)?, body.expect(SEQUENCE)?);
        let mut validity = Der(body.expect(SEQUENCE)?);
        let (not_before, not_after) = (validity.time()?, validity.time()?);
        let (_subject, _key) = (body.expect(SEQUENCE)?, body.expect(SEQUENCE)?);
        let (mut dns, mut addresses) = (Vec::new(), Vec::new());
        let extensions = std::iter::from_fn(|| body.next()).find(|(tag, _)| *tag == EXTENSIONS);
        let mut extensions =
            Der(extensions.and_then(|(_, all)| Der(all).expect(SEQUENCE)).unwrap_or_default());
        while let Some(extension) = extensions.expect(SEQUENCE) {
            let mut extension = Der(extension);
            if extension.expect(OBJECT) != Some(&SUBJECT_ALT_NAME) {
                continue;
            }
            let value = std::iter::from_fn(|| extension.next()).find(|(tag, _)| *tag == OCTETS);
            let mut names = Der(value.and_then(|(_, names)| Der(names).expect(SEQUENCE)).unwrap_or_default());
            while let Some((tag, name)) = names.next() {
                match tag {
                    DNS_NAME => dns.extend(std::str::from_utf8(name).ok().map(str::to_owned)),
                    ADDRESS => addresses.extend(address(name)),
                    _ => {}
                }
            }
        }
        Some(Self { not_before, not_after, dns, addresses })
    }

    /// How whoever asks the gateway at this address may call it, so that the certificate is for that name; the address if
    /// it is for none.
    pub(crate) fn host(&self, ip: IpAddr) -> String {
        let plain = || if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
        if self.addresses.contains(&ip) {
            return plain();
        }
        let is_local = |name: &&String| name.as_str() == "localhost";
        let local = self.dns.iter().find(is_local).filter(|_| ip.is_loopback());
        // A name with a star is a form of names.
        let named = || self.dns.iter().find(|name| !name.contains('*') && !is_local(name));
        local.or_else(named).cloned().unwrap_or_else(plain)
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.ok().or_else(|| <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok())
}

/// The values that are left of a DER text.
struct Der<'d>(&'d [u8]);

impl<'d> Der<'d> {
    /// The next value and its tag.
    fn next(&mut self) -> Option<(u8, &'d [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            // So many bytes of length follow; four are more than a file has.
            0x81..=0x84 => {
                let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (length.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, value))
    }

    fn expect(&mut self, expected: u8) -> Option<&'d [u8]> {
        self.next().filter(|(tag, _)| *tag == expected).map(|(_, value)| value)
    }

    fn time(&mut self) -> Option<Timestamp> {
        let (tag, text) = self.next()?;
        let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
        let full = match tag {
            // Two digits of the year: RFC 5280, 4.1.2.5.1.
            UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
            UTC_TIME => format!("19{text}"),
            TIME => text.to_owned(),
            _ => return None,
        };
        let part = |from: usize, to: usize| full.get(from..to);
        Timestamp::parse(&format!(
            "{}-{}-{}T{}:{}:{}",
            part(0, 4)?,
            part(4, 6)?,
            part(6, 8)?,
            part(8, 10)?,
            part(10, 12)?,
            full.get(12..)?
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let mut bytes = vec![tag];
        if length < 0x80 {
            bytes.push(length as u8);
        } else {
            bytes.extend([0x82, (length >> 8) as u8, length as u8]);
        }
        bytes.extend(content);
        bytes
    }

    fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
        value(SEQUENCE, &parts.concat())
    }

    /// A certificate as far as it is looked at; the rest is empty.
    fn certificate(from: Vec<u8>, to: Vec<u8>, names: &[Vec<u8>]) -> Vec<u8> {
        let constraints =
            sequence(&[value(OBJECT, &[0x55, 0x1d, 0x13]), value(0x01, &[0xff]), value(OCTETS, &[0x30, 0])]);
        let alternatives = sequence(&[value(OBJECT, &SUBJECT_ALT_NAME), value(OCTETS, &sequence(names))]);
        let extensions = value(EXTENSIONS, &sequence(&[constraints, alternatives]));
        let (version, serial) = (value(VERSION, &value(INTEGER, &[2])), value(INTEGER, &[0; 200]));
        let (algorithm, name, key) = (sequence(&[]), sequence(&[]), sequence(&[]));
        let validity = sequence(&[from, to]);
        let body =
            sequence(&[version, serial, algorithm.clone(), name.clone(), validity, name, key, extensions]);
        sequence(&[body, algorithm, value(0x03, &[0])])
    }

    fn read(names: &[Vec<u8>]) -> Certificate {
        let (from, to) = (value(UTC_TIME, b"491231235959Z"), value(TIME, b"20500101000000Z"));
        Certificate::read(&certificate(from, to, names)).unwrap()
    }

    #[test]
    fn it_says_from_when_until_when_it_counts() {
        let found = read(&[]);
        assert_eq!(found.not_before.to_string(), "2049-12-31T23:59:59Z");
        assert_eq!(found.not_after.to_string(), "2050-01-01T00:00:00Z");
    }

    #[test]
    fn it_is_called_by_a_name_that_it_is_for() {
        let dns = |name: &str| value(DNS_NAME, name.as_bytes());
        let local = || value(ADDRESS, &[127, 0, 0, 1]);
        let check = |names: &[Vec<u8>], ip: &str, expected: &str| {
            assert_eq!(read(names).host(ip.parse().unwrap()), expected, "{names:?} {ip}");
        };
        check(&[dns("localhost"), local()], "127.0.0.1", "127.0.0.1");
        check(&[dns("gateway.example"), dns("localhost")], "127.0.0.1", "localhost");
        check(&[dns("localhost"), dns("*.example"), dns("gateway.example")], "192.0.2.1", "gateway.example");
        check(&[dns("*.example")], "192.0.2.1", "192.0.2.1");
        check(&[value(ADDRESS, &std::net::Ipv6Addr::LOCALHOST.octets())], "::1", "[::1]");
        check(&[], "::1", "[::1]");
    }

    #[test]
    fn what_is_cut_off_says_nothing() {
        let whole = certificate(value(UTC_TIME, b"260101000000Z"), value(UTC_TIME, b"270101000000Z"), &[]);
        assert!(Certificate::read(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(Certificate::read(&whole[..length]), None, "{length}");
        }
        assert_eq!(Certificate::read(&certificate(value(UTC_TIME, b"2601"), value(TIME, b""), &[])), None);
    }
}
