//! Why a body could not be read at all.

use std::fmt;

/// A body that is not one strict JSON document. Its code is always `A2A_BODY_INVALID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyFault {
    /// What is wrong.
    pub kind: BodyFaultKind,
    /// JSON pointer of the innermost value that had been entered.
    pub pointer: String,
    /// Where in the body, 1-based; absent when the whole body is meant.
    pub position: Option<Position>,
}

/// A place in a text, for people: both count from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// The ways in which a body cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyFaultKind {
    Empty,
    TooLarge { bytes: usize, bytes_max: usize },
    NotUtf8 { offset: usize },
    ByteOrderMark,
    TooDeep { levels_max: usize },
    DuplicateKey { key: String },
    NumberNotKept { text: String, kept: String },
    Syntax { expected: &'static str, found: String },
    LoneSurrogate,
    ControlCharacter,
    Trailing,
}

impl BodyFault {
    /// What the sender can do next.
    pub fn hint(&self) -> &'static str {
        match self.kind {
            BodyFaultKind::Empty => "send one JSON object",
            BodyFaultKind::TooLarge { .. } => {
                "send references in intent.input instead of the material itself"
            }
            BodyFaultKind::NotUtf8 { .. } => "encode the body as UTF-8",
            BodyFaultKind::ByteOrderMark => "send UTF-8 without a byte order mark",
            BodyFaultKind::TooDeep { .. } => "flatten the document",
            BodyFaultKind::DuplicateKey { .. } => {
                "keep one member of that name; parsers disagree on which one would count"
            }
            BodyFaultKind::NumberNotKept { .. } => {
                "send it as a string; a JSON number is a double and would lose digits"
            }
            BodyFaultKind::LoneSurrogate => "escape characters beyond U+FFFF as a surrogate pair",
            BodyFaultKind::ControlCharacter => "escape control characters in strings as \\u00XX",
            BodyFaultKind::Syntax { .. } | BodyFaultKind::Trailing => {
                "send strict JSON (RFC 8259): no comments, trailing commas or single quotes"
            }
        }
    }
}

impl fmt::Display for BodyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            BodyFaultKind::Empty => write!(f, "it is empty")?,
            BodyFaultKind::TooLarge { bytes, bytes_max } => {
                write!(f, "it has {bytes} bytes; at most {bytes_max} are read")?;
            }
            BodyFaultKind::NotUtf8 { offset } => write!(f, "it is not UTF-8 from byte {offset} on")?,
            BodyFaultKind::ByteOrderMark => write!(f, "it begins with a byte order mark")?,
            BodyFaultKind::TooDeep { levels_max } => {
                write!(f, "it nests deeper than {levels_max} levels")?;
            }
            BodyFaultKind::DuplicateKey { key } => {
                write!(f, "the key `{}` stands twice in one object", printable(key))?;
            }
            BodyFaultKind::NumberNotKept { text, kept } => {
                write!(f, "the number `{text}` would be kept as `{kept}`")?;
            }
            BodyFaultKind::Syntax { expected, found } => {
                write!(f, "expected {expected}, found {found}")?;
            }
            BodyFaultKind::LoneSurrogate => write!(f, "a string has half a surrogate pair")?,
            BodyFaultKind::ControlCharacter => write!(f, "a string has a raw control character")?,
            BodyFaultKind::Trailing => write!(f, "something follows the JSON document")?,
        }
        if let Some(Position { line, column }) = self.position {
            write!(f, " (line {line}, column {column})")?;
        }
        Ok(())
    }
}

impl std::error::Error for BodyFault {}

/// A sender's text, cut and with nothing hidden in it, fit for one line of a message or a log.
pub(crate) fn printable(text: &str) -> String {
    printable_up_to(120, text)
}

/// The same, for a text that is a message itself.
pub(crate) fn printable_up_to(chars_max: usize, text: &str) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        if n == chars_max {
            out.push('…');
            break;
        }
        if is_hidden(c) { out.push_str(&escaped(c)) } else { out.push(c) }
    }
    out
}

/// A message of several lines in one, for a log: the first line says what it is about, and each of the others is one thing
/// that is wrong. Of many, so many are told and the rest is counted.
pub(crate) fn in_one_line(text: &str, line_chars_max: usize, faults_max: usize) -> String {
    let line = |line: &str| printable_up_to(line_chars_max, line);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut out = lines.next().map(line).unwrap_or_default();
    let faults: Vec<&str> = lines.collect();
    let told = faults.iter().take(faults_max);
    for (n, fault) in told.enumerate() {
        out.push_str(if n == 0 { ": " } else { "; " });
        out.push_str(&line(fault));
    }
    let more = faults.len().saturating_sub(faults_max);
    if more > 0 {
        out.push_str(&format!("; and {more} more"));
    }
    out
}

/// Can it make a text read as another one? So do characters that turn the direction of what follows, that break a line,
/// that are drawn as nothing at all (Unicode's default ignorable code points, with the fillers of Hangul and of Braille),
/// and spaces that are not U+0020.
pub(crate) fn is_hidden(c: char) -> bool {
    let is_other_space = c.is_whitespace() && c != ' ';
    c.is_control()
        || is_other_space
        || matches!(
            u32::from(c),
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
                | 0x202a..=0x202e | 0x2060..=0x206f | 0x2800 | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0
                | 0xfff0..=0xfffb | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff
        )
}

/// A character by its number, as it stands in a message.
pub(crate) fn escaped(c: char) -> String {
    format!("\\u{{{:x}}}", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_hidden_in_a_message() {
        for (text, shown) in [
            ("US\u{200b}DC", r"US\u{200b}DC"),
            ("\u{202e}CDSU\u{202c}", r"\u{202e}CDSU\u{202c}"),
            ("a\u{2066}b\u{2069}\u{61c}", r"a\u{2066}b\u{2069}\u{61c}"),
            ("so\u{ad}ft\u{200d}\u{2060}\u{2064}\u{feff}", r"so\u{ad}ft\u{200d}\u{2060}\u{2064}\u{feff}"),
            ("one\ntwo\u{2028}\u{2029}\tthree\0", r"one\u{a}two\u{2028}\u{2029}\u{9}three\u{0}"),
            ("a\u{a0}b\u{3000}c\u{2800}d\u{3164}", r"a\u{a0}b\u{3000}c\u{2800}d\u{3164}"),
            ("tag\u{e0041}\u{fe0f}", r"tag\u{e0041}\u{fe0f}"),
            ("plain  text: Zürich, 東京, שלום, 🦀", "plain  text: Zürich, 東京, שלום, 🦀"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert_eq!(printable_up_to(3, "abcd"), "abc…");
    }
}
