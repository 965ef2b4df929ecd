//! Is this packet A2A, in a version that the adapter reads?
//!
//! Owns the two checks that come before any mode. Deliberately absent: trimming and normalising. The version
//! is emitted as it was sent.

use super::error::EvidenceError;
use super::packet::Packet;

const PROTOCOL: &str = "a2a";
const MAJOR: u64 = 0;
const MINOR_MIN: u64 = 2;

/// The packet's version, when protocol and version are ones that the adapter reads.
pub(super) fn supported_version(packet: &Packet<'_>) -> Result<String, EvidenceError> {
    if packet.protocol.as_deref() != Some(PROTOCOL) {
        return Err(EvidenceError::measurement("protocol must be 'a2a'"));
    }
    let Some(version) = packet.version.as_deref() else {
        return Err(EvidenceError::missing("version"));
    };
    if is_supported(version) {
        Ok(version.to_owned())
    } else {
        Err(EvidenceError::unsupported_version(version))
    }
}

/// Looks at the first two dot-separated parts only; what follows them is free.
fn is_supported(version: &str) -> bool {
    let mut parts = version.split('.').map(str::parse::<u64>);
    matches!((parts.next(), parts.next()), (Some(Ok(MAJOR)), Some(Ok(MINOR_MIN..))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_when_it_starts_with_zero_and_at_least_two() {
        for yes in ["0.2", "0.2.0", "0.3.1", "0.99.7", "0.2.x", "0.2.", "00.02", "0.18446744073709551615"] {
            assert!(is_supported(yes), "`{yes}`");
        }
        for no in ["", "0", "0.", ".2", "0.1", "1.0", "0,2", "v0.2", " 0.2", "0.2 ", "0.-2", "0.2-rc1"] {
            assert!(!is_supported(no), "`{no}`");
        }
        assert!(!is_supported("0.18446744073709551616"), "past 64 bits is not a number here");
    }
}
