//! RFC 8785: the one form of a JSON value that is hashed and signed.
//!
//! Members are sorted by UTF-16 code units whatever order they came in and whatever feature some
//! dependency switched on; numbers are printed as ECMAScript prints them. Ours, because the crates that
//! pass the RFC's vectors take 46 microseconds for a TaskSpec where the whole verdict may take 15; one
//! of them is the oracle in the tests.

use std::cmp::Ordering;

use super::members::{write_array, write_text};
use crate::json::Value;

/// The canonical bytes of a value in a document.
pub fn canonical(value: Value<'_>) -> Vec<u8> {
    canonical_where(value, |_, _| true)
}

/// The canonical text of a value in a document, at the end of a text.
pub(crate) fn write_canonical(out: &mut String, value: Value<'_>) {
    let mut writer = Writer {
        out: std::mem::take(out),
        members: Vec::with_capacity(32),
        keep: |_: Value<'_>, _: &str| true,
    };
    writer.value(value);
    *out = writer.out;
}

/// The canonical bytes of a value without the members that `keep`, given their object and name, says no
/// to.
pub(crate) fn canonical_where(value: Value<'_>, keep: impl Fn(Value<'_>, &str) -> bool) -> Vec<u8> {
    let mut writer = Writer { out: String::with_capacity(1024), members: Vec::with_capacity(32), keep };
    writer.value(value);
    writer.out.into_bytes()
}

/// The canonical bytes of a serde_json value.
pub fn canonical_json(value: &serde_json::Value) -> Vec<u8> {
    let mut out = String::with_capacity(256);
    write_json_value(&mut out, value);
    out.into_bytes()
}

struct Writer<'d, Keep> {
    out: String,
    /// The members of the objects that are open, innermost last: one allocation for them all.
    members: Vec<(&'d str, Value<'d>)>,
    keep: Keep,
}

impl<'d, Keep: Fn(Value<'_>, &str) -> bool> Writer<'d, Keep> {
    fn value(&mut self, value: Value<'d>) {
        if let Some(text) = value.as_str() {
            write_text(&mut self.out, text);
        } else if value.is_object() {
            self.object(value);
        } else if value.is_array() {
            self.out.push('[');
            for (n, item) in value.items().enumerate() {
                if n > 0 {
                    self.out.push(',');
                }
                self.value(item);
            }
            self.out.push(']');
        } else if let Some(number) = value.number_text() {
            write_number_text(&mut self.out, number);
        } else {
            self.out.push_str(match value.as_bool() {
                Some(true) => "true",
                Some(false) => "false",
                None => "null",
            });
        }
    }

    fn object(&mut self, object: Value<'d>) {
        let first = self.members.len();
        let keep = &self.keep;
        self.members.extend(object.members().filter(|(name, _)| keep(object, name)));
        let last = self.members.len();
        if let Some(own) = self.members.get_mut(first..) {
            own.sort_unstable_by(|a, b| by_utf16(a.0, b.0));
        }
        self.out.push('{');
        for at in first..last {
            let Some((name, member)) = self.members.get(at).copied() else { break };
            if at > first {
                self.out.push(',');
            }
            write_text(&mut self.out, name);
            self.out.push(':');
            self.value(member);
        }
        self.out.push('}');
        self.members.truncate(first);
    }
}

fn write_json_value(out: &mut String, value: &serde_json::Value) {
    use serde_json::Value as Json;
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(number) => write_number_text(out, &number.to_string()),
        Json::String(text) => write_text(out, text),
        Json::Array(items) => write_array(out, items, write_json_value),
        Json::Object(members) => {
            let mut members: Vec<(&String, &Json)> = members.iter().collect();
            members.sort_unstable_by(|a, b| by_utf16(a.0, b.0));
            out.push('{');
            for (n, (name, member)) in members.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write_text(out, name);
                out.push(':');
                write_json_value(out, member);
            }
            out.push('}');
        }
    }
}

/// UTF-8 bytes sort like UTF-16 code units, except that U+E000..U+FFFF come after what is beyond them.
fn by_utf16(a: &str, b: &str) -> Ordering {
    if a.is_ascii() || b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

fn write_number_text(out: &mut String, text: &str) {
    // Whole numbers of up to 15 digits print as they stand; `-0` prints as `0`.
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.len() <= 15 && digits != "0" && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        out.push_str(text);
        return;
    }
    let double: f64 = text.parse().unwrap_or(0.0);
    out.push_str(ryu_js::Buffer::new().format(double));
}
