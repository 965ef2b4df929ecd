//! Base64url without padding, as JSON Web Keys write bytes (RFC 7515, section 2).
//!
//! A text has one reading: spare bits that are not zero, padding and other alphabets are refused.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(crate) fn to_base64url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let six = (bits >> (18 - 6 * place)) & 63;
            // Six bits always name a letter; the fall-back only satisfies totality.
            text.push(ALPHABET.get(six as usize).copied().map_or('A', char::from));
        }
    }
    text
}

/// Reads exactly `N` bytes.
pub(crate) fn from_base64url<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut out = [0; N];
    let mut places = out.iter_mut();
    let (mut bits, mut held) = (0_u32, 0_u32);
    for letter in text.bytes() {
        let six = ALPHABET.iter().position(|known| *known == letter)?;
        bits = bits << 6 | u32::try_from(six).ok()?;
        held += 6;
        if held >= 8 {
            held -= 8;
            *places.next()? = u8::try_from(bits >> held & 255).ok()?;
            bits &= (1 << held) - 1;
        }
    }
    // What is left over is less than a letter, and says nothing.
    (places.next().is_none() && held < 6 && bits == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10, without the padding.
    #[test]
    fn bytes_are_written_as_the_rfc_writes_them() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(to_base64url(bytes.as_bytes()), text);
        }
        assert_eq!(to_base64url(&[0xfb, 0xff, 0xbf]), "-_-_");
        assert_eq!(from_base64url(text_of(b"fooba")), Some(*b"fooba"));
    }

    fn text_of(bytes: &[u8; 5]) -> &'static str {
        assert_eq!(to_base64url(bytes), "Zm9vYmE");
        "Zm9vYmE"
    }

    #[test]
    fn only_the_one_spelling_of_as_many_bytes_is_read() {
        let read = |text: &str| from_base64url::<2>(text);
        assert_eq!(read("Zm8"), Some(*b"fo"));
        for other in ["", "Zg", "Zm9v", "Zm8=", "Zm9", "Zm+", "Zm/", "Zm8A", "Zm 8", " Zm8"] {
            assert_eq!(read(other), None, "{other}");
        }
        let bytes: Vec<u8> = (0..32).map(|n| n * 8 + 7).collect();
        assert_eq!(
            from_base64url::<32>(&to_base64url(&bytes)).as_ref().map(<[u8; 32]>::as_slice),
            Some(&*bytes)
        );
    }
}
