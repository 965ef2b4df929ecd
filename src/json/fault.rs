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

/// A sender's text, cut and without control characters, fit for one line of a message or a log.
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
        // Bidirectional controls and separators can make a line read as another one.
        let hidden = c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if hidden {
            out.push_str(&format!("\\u{{{:x}}}", c as u32));
        } else {
            out.push(c);
        }
    }
    out
}
