//! Durations, sizes, networks and secret texts: from the words of an operator and back.

use core::net::IpAddr;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use zeroize::Zeroizing;

/// A secret that is text: wiped when dropped, shown as `[secret]`.
///
/// Unlike `proof::Secret` it can be compared, for settings are compared with settings; nothing that a
/// caller sent is ever compared with one.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    pub(crate) fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself, for the one who must send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(super::urls::MASK)
    }
}

/// Longest unit first, in milliseconds.
const DURATION_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Longest unit first, in bytes.
const SIZE_UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Reads `250ms`, `10s`, `15m`, `2h` or `90d`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let (_, ms) = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*ms).map(Duration::from_millis)
}

/// The shortest form that [`duration`] reads back as the same.
pub(super) fn show_duration(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    show(ms, &DURATION_UNITS).unwrap_or_else(|| format!("{ms}ms"))
}

/// Reads `256KiB`, `16MiB`, `1GiB` or a plain number of bytes.
pub(super) fn size(text: &str) -> Option<u64> {
    match split(text)? {
        (number, "" | "B") => Some(number),
        (number, unit) => {
            let (_, bytes) = SIZE_UNITS.iter().find(|(name, _)| *name == unit)?;
            number.checked_mul(*bytes)
        }
    }
}

/// The shortest form that [`size`] reads back as the same.
pub(super) fn show_size(bytes: u64) -> String {
    show(bytes, &SIZE_UNITS).unwrap_or_else(|| bytes.to_string())
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, unit))
}

fn show(amount: u64, units: &[(&str, u64)]) -> Option<String> {
    let (unit, of) = units.iter().find(|(_, of)| amount > 0 && amount.is_multiple_of(*of))?;
    Some(format!("{}{unit}", amount / of))
}

/// A range of addresses, as in `10.0.0.0/8` or `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    /// Whether an address lies in it. An IPv4 address that is written as IPv6 is still that IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                network_bits(address.to_canonical(), self.prefix) == network_bits(self.address, self.prefix)
            }
            _ => false,
        }
    }
}

/// The first bits of an address, as a number; IPv4 has 32 of them and IPv6 128.
fn network_bits(address: IpAddr, prefix: u32) -> u128 {
    let (bits, width) = match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    bits.checked_shr(width - prefix.min(width)).unwrap_or(0)
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const SUCH_AS: &str = "is no network such as 10.0.0.0/8 or fd00::/8";
        let (address, prefix) = text.split_once('/').ok_or(SUCH_AS)?;
        let address: IpAddr = address.parse().map_err(|_| SUCH_AS)?;
        if address.to_canonical() != address {
            return Err("is an IPv4 network written as IPv6; write it as IPv4".to_owned());
        }
        let width = if address.is_ipv4() { 32 } else { 128 };
        let is_number = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|prefix| is_number && *prefix <= width).ok_or(SUCH_AS)?;
        let bits = network_bits(address, prefix);
        if bits.checked_shl(width - prefix).unwrap_or(0) != network_bits(address, width) {
            return Err(format!(
                "names an address inside the network; every bit after the first {prefix} is 0"
            ));
        }
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
