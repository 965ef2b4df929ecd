//! RFC 8785: the one form of a JSON value that is hashed and signed.
//!
//! Members are sorted by UTF-16 code units whatever order they came in and whatever feature some
//! dependency switched on; numbers are printed as ECMAScript prints them. Ours, because the crates that
//! pass the RFC's vectors take 46 microseconds for a TaskSpec where the whole verdict may take 15; one
//! of them is the oracle in the tests.

use std::cmp::Ordering;

use crate::json::{Value, plain_bytes};

/// The canonical bytes of a value in a document.
pub fn canonical(value: Value<'_>) -> Vec<u8> {
    canonical_where(value, |_, _| true)
}

/// The canonical bytes of a value without the members that `keep`, given their object and name, says no
/// to.
pub(crate) fn canonical_where(value: Value<'_>, keep: impl Fn(Value<'_>, &str) -> bool) -> Vec<u8> {
    let mut writer = Writer { out: Vec::with_capacity(1024), members: Vec::with_capacity(32), keep };
    writer.value(value);
    writer.out
}

/// The canonical bytes of a serde_json value.
pub fn canonical_json(value: &serde_json::Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write_json_value(&mut out, value);
    out
}

struct Writer<'d, Keep> {
    out: Vec<u8>,
    /// The members of the objects that are open, innermost last: one allocation for them all.
    members: Vec<(&'d str, Value<'d>)>,
    keep: Keep,
}

impl<'d, Keep: Fn(Value<'_>, &str) -> bool> Writer<'d, Keep> {
    fn value(&mut self, value: Value<'d>) {
        if let Some(text) = value.as_str() {
            write_string(&mut self.out, text);
        } else if value.is_object() {
            self.object(value);
        } else if value.is_array() {
            self.out.push(b'[');
            for (n, item) in value.items().enumerate() {
                if n > 0 {
                    self.out.push(b',');
                }
                self.value(item);
            }
            self.out.push(b']');
        } else if let Some(number) = value.number_text() {
            write_number_text(&mut self.out, number);
        } else {
            self.out.extend_from_slice(match value.as_bool() {
                Some(true) => b"true",
                Some(false) => b"false",
                None => b"null",
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
        self.out.push(b'{');
        for at in first..last {
            let Some((name, member)) = self.members.get(at).copied() else { break };
            if at > first {
                self.out.push(b',');
            }
            write_string(&mut self.out, name);
            self.out.push(b':');
            self.value(member);
        }
        self.out.push(b'}');
        self.members.truncate(first);
    }
}

fn write_json_value(out: &mut Vec<u8>, value: &serde_json::Value) {
    use serde_json::Value as Json;
    match value {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Number(number) => write_number_text(out, &number.to_string()),
        Json::String(text) => write_string(out, text),
        Json::Array(items) => write_sequence(out, b"[]", items, write_json_value),
        Json::Object(members) => {
            let mut members: Vec<(&String, &Json)> = members.iter().collect();
            members.sort_unstable_by(|a, b| by_utf16(a.0, b.0));
            write_sequence(out, b"{}", &members, |out, (key, member)| {
                write_string(out, key);
                out.push(b':');
                write_json_value(out, member);
            });
        }
    }
}

fn write_sequence<T>(out: &mut Vec<u8>, brackets: &[u8; 2], items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    let [open, close] = *brackets;
    out.push(open);
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(close);
}

/// UTF-8 bytes sort like UTF-16 code units, except that U+E000..U+FFFF come after what is beyond them.
fn by_utf16(a: &str, b: &str) -> Ordering {
    if a.is_ascii() || b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

fn write_number_text(out: &mut Vec<u8>, text: &str) {
    // Whole numbers of up to 15 digits print as they stand; `-0` prints as `0`.
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.len() <= 15 && digits != "0" && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let double: f64 = text.parse().unwrap_or(0.0);
    out.extend_from_slice(ryu_js::Buffer::new().format(double).as_bytes());
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at_checked(plain_bytes(rest)).unwrap_or((rest, &[]));
        out.extend_from_slice(plain);
        let Some((byte, after)) = special.split_first() else { break };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x09 => out.extend_from_slice(b"\\t"),
            0x0a => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            0x0d => out.extend_from_slice(b"\\r"),
            other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
        }
        rest = after;
    }
    out.push(b'"');
}
