//! SHA-256 digests as the contracts write them: `sha256:` and 64 lower-case hex digits.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of a stream, read to its end, and how many bytes it had.
    pub(crate) fn of_stream(mut stream: impl std::io::Read) -> std::io::Result<(Self, u64)> {
        let (mut hash, mut part, mut bytes) = (Sha256::new(), vec![0; 64 * 1024], 0);
        loop {
            let read = stream.read(&mut part)?;
            let Some(filled) = part.get(..read).filter(|filled| !filled.is_empty()) else {
                return Ok((Self(hash.finalize().into()), bytes));
            };
            hash.update(filled);
            bytes += read as u64;
        }
    }

    /// A digest that was made elsewhere.
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads `sha256:` and 64 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        from_hex(text.strip_prefix("sha256:")?).map(Self)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Is this how the digest is written? Case and prefix count.
    pub fn is_written(&self, text: &str) -> bool {
        text.strip_prefix("sha256:").is_some_and(|hex| hex.as_bytes() == hex_digits(&self.0).as_flattened())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written at once: a text that it becomes is made in one piece.
        let mut text = *b"sha256:0000000000000000000000000000000000000000000000000000000000000000";
        for (at, digit) in text.iter_mut().skip(7).zip(hex_digits(&self.0).as_flattened()) {
            *at = *digit;
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'d> serde::Deserialize<'d> for Digest {
    fn deserialize<D: serde::Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not `sha256:` and 64 hex digits"))
    }
}

/// The two digits of each byte.
pub(crate) fn hex_digits<const N: usize>(bytes: &[u8; N]) -> [[u8; 2]; N] {
    bytes.map(hex_pair)
}

fn hex_pair(byte: u8) -> [u8; 2] {
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    [digit(byte >> 4), digit(byte & 15)]
}

/// Lower-case hex.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    write_hex(&mut text, bytes);
    text
}

/// The same, at the end of a text.
pub(crate) fn write_hex(text: &mut String, bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<32>();
    for part in whole {
        text.push_str(std::str::from_utf8(hex_digits(part).as_flattened()).unwrap_or_default());
    }
    text.extend(rest.iter().flat_map(|byte| hex_pair(*byte)).map(char::from));
}

/// Reads lower-case hex of exactly `N` bytes; upper case is not the same text and is refused.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let value = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut out = [0; N];
    if text.len() != N * 2 {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(out)
}
