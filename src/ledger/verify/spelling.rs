//! The one way in which a text is written: no spaces, and strings escaped as RFC 8785 escapes them.
//!
//! Nothing is built and compared: a [`Follower`] walks along the text that is there and is told what
//! should come next, so the place where it stops is the first difference.

use std::io::Write as _;

/// The text goes on differently from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Differs;

pub(super) struct Follower<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Follower<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// How far the text was as expected, in bytes.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn literal(&mut self, expected: &[u8]) -> Result<(), Differs> {
        let rest = self.rest();
        if rest.starts_with(expected) {
            self.at += expected.len();
            return Ok(());
        }
        self.at += rest.iter().zip(expected).take_while(|(a, b)| a == b).count();
        Err(Differs)
    }

    /// A string that serde could hand out without decoding it: nothing in it needs an escape.
    pub(super) fn plain_string(&mut self, value: &str) -> Result<(), Differs> {
        self.literal(b"\"")?;
        self.literal(value.as_bytes())?;
        self.literal(b"\"")
    }

    /// The string with which the text ends, but for `closing`; serde must have read it as `value` there.
    ///
    /// Of all ways to write a string RFC 8785's is the only one that is so short, unless there is a control
    /// character in it (`\u001f`, `\u001F`). So for most strings counting is enough, at a tenth of the cost.
    pub(super) fn last_string(&mut self, value: &str, closing: &[u8]) -> Result<(), Differs> {
        let (escapes, control) = escapes(value.as_bytes());
        let length = 2 + value.len() + escapes + closing.len();
        let rest = self.rest();
        if !control && rest.len() == length && rest.starts_with(b"\"") && rest.ends_with(closing) {
            self.at = self.text.len();
            return Ok(());
        }
        self.string(value)?;
        self.literal(closing)?;
        self.end()
    }

    pub(super) fn string(&mut self, value: &str) -> Result<(), Differs> {
        self.literal(b"\"")?;
        let mut rest = value.as_bytes();
        loop {
            let (plain, special) = rest.split_at_checked(plain_bytes(rest)).unwrap_or((rest, &[]));
            self.literal(plain)?;
            let Some((byte, after)) = special.split_first() else { break };
            match short_escape(*byte) {
                Some(letter) => self.literal(&[b'\\', letter])?,
                None => {
                    self.literal(&[b'\\', b'u', b'0', b'0', hex_digit(byte >> 4), hex_digit(byte & 15)])?
                }
            }
            rest = after;
        }
        self.literal(b"\"")
    }

    pub(super) fn number(&mut self, value: impl std::fmt::Display) -> Result<(), Differs> {
        let mut digits = [0; 24];
        let mut room = digits.as_mut_slice();
        write!(room, "{value}").map_err(|_| Differs)?;
        let left = room.len();
        self.literal(digits.get(..digits.len() - left).unwrap_or_default())
    }

    /// `count` bytes of whatever stands there.
    pub(super) fn take(&mut self, count: usize) -> Result<&'t [u8], Differs> {
        let taken = self.rest().get(..count).ok_or(Differs)?;
        self.at += count;
        Ok(taken)
    }

    pub(super) fn end(&self) -> Result<(), Differs> {
        if self.rest().is_empty() { Ok(()) } else { Err(Differs) }
    }
}

/// How many quotes and backslashes there are, and whether there is a control character.
fn escapes(bytes: &[u8]) -> (usize, bool) {
    let (mut count, mut control) = (0, false);
    // In bytes, and without a branch, so that the compiler makes it many at a time.
    for chunk in bytes.chunks(usize::from(u8::MAX)) {
        let (escapes, controls) = chunk.iter().fold((0_u8, 0_u8), |(escapes, controls), byte| {
            let escape = u8::from(*byte == b'"') | u8::from(*byte == b'\\');
            (escapes.wrapping_add(escape), controls | u8::from(*byte < 0x20))
        });
        count += usize::from(escapes);
        control |= controls != 0;
    }
    (count, control)
}

/// How many bytes from the start stand in a JSON string as they are.
pub(super) fn plain_bytes(bytes: &[u8]) -> usize {
    // Eight at a time: the high bit of a byte in `special` is set where the byte is not plain. A borrow may
    // set further ones, but only above one that is rightly set, and the lowest is the one that counts.
    const ONES: u64 = u64::MAX / 255;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word;
    let mut plain = 0;
    while let Some(chunk) = bytes.get(plain..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = zero_bytes(word ^ (ONES * u64::from(b'"')));
        let backslash = zero_bytes(word ^ (ONES * u64::from(b'\\')));
        let special = (control | quote | backslash) & (ONES * 0x80);
        if special != 0 {
            return plain + special.trailing_zeros() as usize / 8;
        }
        plain += 8;
    }
    let rest = bytes.get(plain..).unwrap_or_default();
    let special = rest.iter().position(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\'));
    plain + special.unwrap_or(rest.len())
}

/// The letter after the backslash, for the seven characters that have one.
fn short_escape(byte: u8) -> Option<u8> {
    match byte {
        b'"' | b'\\' => Some(byte),
        0x08 => Some(b'b'),
        0x09 => Some(b't'),
        0x0a => Some(b'n'),
        0x0c => Some(b'f'),
        0x0d => Some(b'r'),
        _ => None,
    }
}

/// What the escape at the start of `bytes` stands for, and its length.
///
/// `Ok(None)` when it is cut off; an escape that could have been written otherwise differs.
pub(super) fn unescaped(bytes: &[u8]) -> Result<Option<(u8, usize)>, Differs> {
    match bytes {
        [b'\\', letter @ (b'"' | b'\\'), ..] => Ok(Some((*letter, 2))),
        [b'\\', b'b', ..] => Ok(Some((0x08, 2))),
        [b'\\', b't', ..] => Ok(Some((0x09, 2))),
        [b'\\', b'n', ..] => Ok(Some((0x0a, 2))),
        [b'\\', b'f', ..] => Ok(Some((0x0c, 2))),
        [b'\\', b'r', ..] => Ok(Some((0x0d, 2))),
        [b'\\', b'u', b'0', b'0', high @ (b'0' | b'1'), low @ (b'0'..=b'9' | b'a'..=b'f'), ..] => {
            let low = if low.is_ascii_digit() { low - b'0' } else { low - b'a' + 10 };
            let byte = (high - b'0') << 4 | low;
            if short_escape(byte).is_none() { Ok(Some((byte, 6))) } else { Err(Differs) }
        }
        [b'\\'] => Ok(None),
        [b'\\', b'u', cut @ ..] if cut.len() < 4 => Ok(None),
        _ => Err(Differs),
    }
}

fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}

/// Lower-case hex of a SHA-256 digest.
pub(super) fn hex(digest: &[u8; 32]) -> [u8; 64] {
    let mut out = [0; 64];
    for (pair, byte) in out.chunks_exact_mut(2).zip(digest) {
        pair.copy_from_slice(&[hex_digit(byte >> 4), hex_digit(byte & 15)]);
    }
    out
}

/// The same, to show or to keep.
pub(super) fn hex_text(digest: &[u8; 32]) -> String {
    hex(digest).into_iter().map(char::from).collect()
}

/// Reads lower-case hex of exactly `N` bytes.
pub(super) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
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
