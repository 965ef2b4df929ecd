//! Canonical JSON and the SHA-256 over it.
//!
//! Owns the form that the evidence digests are taken over: compact, keys sorted by their UTF-8 bytes, strings
//! and numbers as serde_json prints them. This is *not* RFC 8785, which sorts by UTF-16 and prints numbers
//! as JavaScript does; proofs use that one, and the two must not be mixed.
//!
//! Members are written in sorted order by hand, because their names are known when this is compiled, and
//! tests compare every text with one that was sorted by a machine. Deliberately absent: reading, pretty
//! printing, sorting.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::proof::{Digest, to_hex, write_array, write_display, write_text};
pub(super) use crate::proof::{Members, object};

/// SHA-256 over the canonical text of one object.
pub(super) fn digest(write: impl FnOnce(&mut Members<'_>)) -> Sha256Digest {
    Sha256Digest::of(object(0, write).as_bytes())
}

/// A value whose objects are sorted already (INVARIANT (sorted attributes)).
pub(super) fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => write_display(text, value),
        Value::Number(number) => write_display(text, number),
        Value::String(value) => write_text(text, value),
        Value::Array(items) => write_array(text, items, write_value),
        Value::Object(members) => {
            text.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_text(text, key);
                text.push(':');
                write_value(text, value);
            }
            text.push('}');
        }
    }
}

/// A SHA-256 as these contracts write it: lower-case hex without a prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sha256Digest(Digest);

impl Sha256Digest {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Digest::of(bytes))
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(self.as_bytes()))
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Sha256Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::write_object;

    fn written(value: &Value) -> String {
        let mut text = String::new();
        write_value(&mut text, value);
        text
    }

    #[test]
    fn values_are_written_as_serde_json_prints_them() {
        for json in [
            r#"{"a":[1,-1,0.5,1.0,-0.0,1e300,18446744073709551615],"b":{}}"#,
            r#"["","\"\\\b\f\n\r\t\u0000\u001f/","\u007f é 漢 😀"]"#,
            r#"{"\"\n":[[],[null,true,false]]}"#,
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(written(&value), serde_json::to_string(&value).unwrap());
        }
    }

    #[test]
    fn every_ascii_character_is_escaped_as_serde_json_does() {
        for character in '\0'..='\u{80}' {
            let value = Value::from(format!("a{character}b"));
            assert_eq!(written(&value), serde_json::to_string(&value).unwrap(), "{character:?}");
        }
    }

    #[test]
    fn members_are_separated_and_nested() {
        let text = object(0, |members| {
            members.array("a", &[7], |text, n| write_object(text, |members| members.count("n", *n)));
            members.texts("b", &["x", "y"]);
            members.null("c");
            members.text_if("d", None);
            members.object("e", |_| {});
            members.flag("f", true);
        });
        assert_eq!(text, r#"{"a":[{"n":7}],"b":["x","y"],"c":null,"e":{},"f":true}"#);
    }

    /// The example of FIPS 180-2, appendix B.1.
    #[test]
    fn a_digest_is_sha_256_in_lower_case_hex() {
        let digest = Sha256Digest::of(b"abc").to_string();
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
