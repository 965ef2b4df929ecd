//! Canonical JSON and the SHA-256 over it.
//!
//! Owns the form that the evidence digests are taken over: compact, keys sorted by their UTF-8 bytes, strings
//! and numbers as serde_json prints them. This is *not* RFC 8785, which sorts by UTF-16 and prints numbers
//! as JavaScript does; proofs use that one, and the two must not be mixed.
//!
//! The writer keeps the order it is given. Members are written in sorted order by hand, because their names
//! are known when this is compiled, and tests compare every text with one that was sorted by a machine. It
//! writes into memory and cannot fail, which a serde serializer could not promise. Deliberately absent:
//! reading, pretty printing, sorting.

use std::fmt::{self, Write as _};

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::proof::{Digest, to_hex};

/// SHA-256 over the canonical text of one object.
pub(super) fn digest(write: impl FnOnce(&mut Members<'_>)) -> Sha256Digest {
    Sha256Digest::of(object(0, write).as_bytes())
}

/// The canonical text of one object, in a string that starts out with this capacity.
pub(super) fn object(capacity_bytes: usize, write: impl FnOnce(&mut Members<'_>)) -> String {
    let mut text = String::with_capacity(capacity_bytes);
    write_object(&mut text, write);
    text
}

fn write_object(text: &mut String, write: impl FnOnce(&mut Members<'_>)) {
    text.push('{');
    write(&mut Members { text, first: true });
    text.push('}');
}

/// The members of an object that is being written. The caller gives them in the order of their keys' bytes.
pub(super) struct Members<'t> {
    text: &'t mut String,
    first: bool,
}

impl Members<'_> {
    pub(super) fn text(&mut self, key: &'static str, value: &str) {
        write_text(self.key(key), value);
    }

    pub(super) fn text_if(&mut self, key: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    pub(super) fn texts(&mut self, key: &'static str, values: &[impl AsRef<str>]) {
        write_array(self.key(key), values, |text, value| write_text(text, value.as_ref()));
    }

    pub(super) fn flag(&mut self, key: &'static str, value: bool) {
        write_flag(self.key(key), value);
    }

    pub(super) fn count(&mut self, key: &'static str, value: usize) {
        write_display(self.key(key), value);
    }

    pub(super) fn null(&mut self, key: &'static str) {
        self.key(key).push_str("null");
    }

    pub(super) fn digest(&mut self, key: &'static str, value: Sha256Digest) {
        let text = self.key(key);
        text.push('"');
        text.push_str(&to_hex(value.as_bytes()));
        text.push('"');
    }

    pub(super) fn object(&mut self, key: &'static str, write: impl FnOnce(&mut Members<'_>)) {
        write_object(self.key(key), write);
    }

    /// An array of one object.
    pub(super) fn array_of_one(&mut self, key: &'static str, write: impl FnOnce(&mut Members<'_>)) {
        let text = self.key(key);
        text.push('[');
        write_object(text, write);
        text.push(']');
    }

    /// Text that is canonical already.
    pub(super) fn canonical(&mut self, key: &'static str, json: &str) {
        self.key(key).push_str(json);
    }

    /// A value whose objects are sorted already (INVARIANT (sorted attributes)).
    pub(super) fn sorted_value(&mut self, key: &'static str, value: &Value) {
        write_value(self.key(key), value);
    }

    /// Writes what comes before a value. Keys are names from this room's code and need no escapes.
    fn key(&mut self, key: &'static str) -> &mut String {
        self.text.push_str(if self.first { "\"" } else { ",\"" });
        self.first = false;
        self.text.push_str(key);
        self.text.push_str("\":");
        self.text
    }
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => write_flag(text, *value),
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

fn write_array<T>(text: &mut String, items: &[T], mut write: impl FnMut(&mut String, &T)) {
    text.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(text, item);
    }
    text.push(']');
}

fn write_flag(text: &mut String, value: bool) {
    text.push_str(if value { "true" } else { "false" });
}

fn write_display(text: &mut String, value: impl fmt::Display) {
    // A String takes everything, so there is no error to report.
    let _ = write!(text, "{value}");
}

fn write_text(text: &mut String, value: &str) {
    text.push('"');
    // Looks at every byte, also after the first that needs an escape: hardly any text has one, and a loop
    // without an exit becomes vector instructions.
    if value.bytes().fold(false, |found, byte| found | needs_escape(byte)) {
        value.chars().for_each(|character| write_escaped(text, character));
    } else {
        text.push_str(value);
    }
    text.push('"');
}

fn needs_escape(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | ..b' ')
}

fn write_escaped(text: &mut String, character: char) {
    match character {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        '\u{8}' => text.push_str("\\b"),
        '\u{c}' => text.push_str("\\f"),
        ..' ' => write_display(text, format_args!("\\u{:04x}", u32::from(character))),
        _ => text.push(character),
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
            members.array_of_one("a", |members| members.count("n", 7));
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
