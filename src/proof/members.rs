//! Writes JSON objects member by member, in canonical form.
//!
//! For objects whose member names are known when this is compiled: the caller gives them in sorted order, so
//! nothing is sorted, nothing can fail, and there is no tree to build. Strings are escaped as RFC 8785 and
//! serde_json both do it. Deliberately absent: numbers with a fraction, on which the two differ.

use std::fmt::{Display, Write as _};

use super::digest::{Digest, write_hex};
use crate::json::plain_bytes;

/// The canonical text of one object, in a string that starts out with this capacity.
pub(crate) fn object(capacity_bytes: usize, write: impl FnOnce(&mut Members<'_>)) -> String {
    let mut text = String::with_capacity(capacity_bytes);
    write_object(&mut text, write);
    text
}

pub(crate) fn write_object(text: &mut String, write: impl FnOnce(&mut Members<'_>)) {
    text.push('{');
    write(&mut Members { text, first: true });
    text.push('}');
}

/// The members of an object that is being written. The caller gives them in the order of their names.
#[derive(Debug)]
pub(crate) struct Members<'t> {
    text: &'t mut String,
    first: bool,
}

impl Members<'_> {
    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        write_text(self.name(name), value);
    }

    pub(crate) fn text_if(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    pub(crate) fn text_or_null(&mut self, name: &'static str, value: Option<&str>) {
        match value {
            Some(value) => self.text(name, value),
            None => self.null(name),
        }
    }

    pub(crate) fn texts(&mut self, name: &'static str, values: &[impl AsRef<str>]) {
        write_array(self.name(name), values, |text, value| write_text(text, value.as_ref()));
    }

    pub(crate) fn flag(&mut self, name: &'static str, value: bool) {
        self.name(name).push_str(if value { "true" } else { "false" });
    }

    pub(crate) fn count(&mut self, name: &'static str, value: u64) {
        write_display(self.name(name), value);
    }

    pub(crate) fn null(&mut self, name: &'static str) {
        self.name(name).push_str("null");
    }

    /// A digest as it is written everywhere.
    pub(crate) fn digest(&mut self, name: &'static str, digest: Digest) {
        let text = self.name(name);
        text.push_str("\"sha256:");
        write_hex(text, digest.as_bytes());
        text.push('"');
    }

    /// Bytes as lower-case hex.
    pub(crate) fn hex(&mut self, name: &'static str, bytes: &[u8]) {
        let text = self.name(name);
        text.push('"');
        write_hex(text, bytes);
        text.push('"');
    }

    pub(crate) fn object(&mut self, name: &'static str, write: impl FnOnce(&mut Members<'_>)) {
        write_object(self.name(name), write);
    }

    /// An array, each item written by `write`.
    pub(crate) fn array<T>(&mut self, name: &'static str, items: &[T], write: impl FnMut(&mut String, &T)) {
        write_array(self.name(name), items, write);
    }

    /// Whatever `write` writes, which must be canonical.
    pub(crate) fn with(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        write(self.name(name));
    }

    /// Writes what comes before a value. Names come from our own code and need no escapes.
    fn name(&mut self, name: &'static str) -> &mut String {
        self.text.push_str(if self.first { "\"" } else { ",\"" });
        self.first = false;
        self.text.push_str(name);
        self.text.push_str("\":");
        self.text
    }
}

pub(crate) fn write_array<T>(text: &mut String, items: &[T], mut write: impl FnMut(&mut String, &T)) {
    text.push('[');
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        write(text, item);
    }
    text.push(']');
}

pub(crate) fn write_display(text: &mut String, value: impl Display) {
    // A String takes everything, so there is no error to report.
    let _ = write!(text, "{value}");
}

/// A string with its quotes.
pub(crate) fn write_text(text: &mut String, value: &str) {
    // JSON inside a string has an escape for every tenth byte. Most strings are short, and fit where they are.
    if value.len() > 256 {
        text.reserve(value.len() + value.len() / 8 + 2);
    }
    text.push('"');
    let (mut rest, mut escaped_bytes) = (value, 0);
    loop {
        // The bytes that stand for themselves end before an ASCII character, or at the end.
        let unseen = rest.as_bytes().get(escaped_bytes..).unwrap_or_default();
        let (plain, special) =
            rest.split_at_checked(escaped_bytes + plain_bytes(unseen)).unwrap_or((rest, ""));
        text.push_str(plain);
        let mut after = special.chars();
        let escape = match after.next() {
            None => break,
            // Stands behind its backslash as it is, and so goes with what follows.
            Some('"' | '\\') => {
                text.push('\\');
                (rest, escaped_bytes) = (special, 1);
                continue;
            }
            Some('\u{8}') => "\\b",
            Some('\t') => "\\t",
            Some('\n') => "\\n",
            Some('\u{c}') => "\\f",
            Some('\r') => "\\r",
            Some(other) => {
                write_display(text, format_args!("\\u{:04x}", u32::from(other)));
                ""
            }
        };
        text.push_str(escape);
        (rest, escaped_bytes) = (after.as_str(), 0);
    }
    text.push('"');
}
