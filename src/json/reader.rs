//! Bytes to [`Document`], in one pass.

use super::document::{Document, Kind, Node};
use super::fault::{BodyFault, BodyFaultKind, Position, printable};
use super::{number, pointer};

/// How large and how deep a document may be.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub bytes_max: usize,
    pub levels_max: usize,
}

/// Reads one JSON document, strictly.
///
/// ```
/// use handoffd::{json, limits};
///
/// let document = json::read(br#"{"amount": 100.0, "to": "rita"}"#, limits::TASK_SPEC).unwrap();
/// assert_eq!(document.root().get("amount").and_then(|amount| amount.as_integer()), Some(100));
///
/// let twice = json::read(br#"{"to": "rita", "\u0074o": "omar"}"#, limits::TASK_SPEC).unwrap_err();
/// assert_eq!(twice.pointer, "/to");
/// ```
pub fn read(bytes: &[u8], bounds: Bounds) -> Result<Document<'_>, BodyFault> {
    let whole = |kind| BodyFault { kind, pointer: String::new(), position: None };
    // Node offsets are 32 bits wide, whatever the caller's bound says.
    let bytes_max = bounds.bytes_max.min(u32::MAX as usize);
    if bytes.len() > bytes_max {
        return Err(whole(BodyFaultKind::TooLarge { bytes: bytes.len(), bytes_max }));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| whole(BodyFaultKind::NotUtf8 { offset: error.valid_up_to() }))?;
    if text.starts_with('\u{feff}') {
        return Err(whole(BodyFaultKind::ByteOrderMark));
    }
    // A TaskSpec has about one node for every 14 bytes; one that has more grows the tape as it goes.
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        levels_left: bounds.levels_max,
        levels_max: bounds.levels_max,
        decoded: String::new(),
        nodes: Vec::with_capacity(text.len() / 12 + 8),
        keys: Vec::with_capacity(32),
    };
    reader.skip_whitespace();
    if reader.at == reader.bytes.len() {
        return Err(whole(BodyFaultKind::Empty));
    }
    reader.value()?;
    reader.skip_whitespace();
    if reader.at < reader.bytes.len() {
        return Err(reader.fault(BodyFaultKind::Trailing));
    }
    Ok(Document { text, decoded: reader.decoded, nodes: reader.nodes })
}

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    levels_left: usize,
    levels_max: usize,
    decoded: String,
    nodes: Vec<Node>,
    /// Key nodes of the objects that are open, innermost last.
    keys: Vec<u32>,
}

type Done = Result<(), BodyFault>;

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_whitespace(&mut self) {
        // Indented bodies are mostly spaces.
        while let Some(b"        ") = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            self.at += 8;
        }
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Done {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.container(Self::object),
            Some(b'[') => self.container(Self::array),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Kind::True),
            Some(b'f') => self.literal("false", Kind::False),
            Some(b'n') => self.literal("null", Kind::Null),
            _ => Err(self.expected("a JSON value")),
        }
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { kind, start: start as u32, end: end as u32, next });
    }

    fn literal(&mut self, word: &'static str, kind: Kind) -> Done {
        let end = self.at + word.len();
        if self.bytes.get(self.at..end) != Some(word.as_bytes()) {
            return Err(self.expected("a JSON value"));
        }
        self.push(kind, self.at, end);
        self.at = end;
        Ok(())
    }

    fn container(&mut self, inside: fn(&mut Self) -> Result<u32, BodyFault>) -> Done {
        let Some(levels_left) = self.levels_left.checked_sub(1) else {
            return Err(self.fault(BodyFaultKind::TooDeep { levels_max: self.levels_max }));
        };
        self.levels_left = levels_left;
        let kind = if self.peek() == Some(b'{') { Kind::Object } else { Kind::Array };
        let index = self.nodes.len();
        self.push(kind, 0, 0);
        self.at += 1;
        let size = inside(self)?;
        let next = self.nodes.len() as u32;
        if let Some(node) = self.nodes.get_mut(index) {
            node.start = size;
            node.next = next;
        }
        self.levels_left += 1;
        Ok(())
    }

    fn array(&mut self) -> Result<u32, BodyFault> {
        let mut size = 0;
        self.skip_whitespace();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(size);
        }
        loop {
            self.skip_whitespace();
            self.value().map_err(|fault| within(fault, &size.to_string()))?;
            size += 1;
            self.skip_whitespace();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(size);
                }
                _ => return Err(self.expected("`,` or `]`")),
            }
        }
    }

    fn object(&mut self) -> Result<u32, BodyFault> {
        let first_key = self.keys.len();
        self.skip_whitespace();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(0);
        }
        loop {
            self.skip_whitespace();
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key in double quotes"));
            }
            let key = self.nodes.len() as u32;
            self.keys.push(key);
            self.string()?;
            self.skip_whitespace();
            if self.peek() != Some(b':') {
                return Err(self.expected("`:`"));
            }
            self.at += 1;
            self.skip_whitespace();
            if let Err(fault) = self.value() {
                return Err(within(fault, self.text_of(key)));
            }
            self.skip_whitespace();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                _ => return Err(self.expected("`,` or `}`")),
            }
        }
        let size = (self.keys.len() - first_key) as u32;
        self.refuse_duplicates(first_key)?;
        self.keys.truncate(first_key);
        Ok(size)
    }

    /// Keys are compared as decoded, so an escape cannot hide the second one.
    fn refuse_duplicates(&mut self, first_key: usize) -> Done {
        const PAIRWISE_MAX: usize = 16;
        let keys = self.keys.get(first_key..).unwrap_or_default();
        let twice = if keys.len() <= PAIRWISE_MAX {
            // Most keys have a mark of their own, and need no comparison.
            let mut marks = 0;
            keys.iter().enumerate().find_map(|(n, later)| {
                let text = self.text_of(*later);
                let mark = mark_of(text);
                let is_marked = marks & mark != 0;
                marks |= mark;
                let is_twice = is_marked && keys.iter().take(n).any(|earlier| self.text_of(*earlier) == text);
                is_twice.then_some(*later)
            })
        } else {
            let mut sorted = keys.to_vec();
            sorted.sort_unstable_by(|a, b| self.text_of(*a).cmp(self.text_of(*b)).then(a.cmp(b)));
            sorted.windows(2).find_map(|pair| match pair {
                [a, b] if self.text_of(*a) == self.text_of(*b) => Some(*b),
                _ => None,
            })
        };
        let Some(key) = twice else { return Ok(()) };
        let name = self.text_of(key).to_owned();
        // Point at the second one: the start of an undecoded key is its place in the body.
        if let Some(Node { kind: Kind::Text, start, .. }) = self.nodes.get(key as usize) {
            self.at = *start as usize;
        }
        let pointer = pointer::join("", &name);
        Err(BodyFault { pointer, ..self.fault(BodyFaultKind::DuplicateKey { key: name }) })
    }

    fn text_of(&self, index: u32) -> &str {
        let Some(node) = self.nodes.get(index as usize) else { return "" };
        let range = node.start as usize..node.end as usize;
        let source = if node.kind == Kind::DecodedText { self.decoded.as_str() } else { self.text };
        source.get(range).unwrap_or_default()
    }

    fn number(&mut self) -> Done {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let whole = match self.peek() {
            Some(b'0') => {
                self.at += 1;
                1
            }
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.expected("a digit")),
        };
        let mut plain = true;
        if self.peek() == Some(b'.') {
            self.at += 1;
            plain = false;
            if self.digits() == 0 {
                return Err(self.expected("a digit after the decimal point"));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            plain = false;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.expected("a digit in the exponent"));
            }
        }
        if let Some(b'0'..=b'9') = self.peek() {
            return Err(self.expected("no digit after a leading zero"));
        }
        // A double holds every whole number of 15 digits.
        if !(plain && whole <= 15) {
            let text = self.text.get(start..self.at).unwrap_or_default();
            if let Some(kept) = number::what_is_kept_instead(text) {
                let text = printable(text);
                self.at = start;
                return Err(self.fault(BodyFaultKind::NumberNotKept { text, kept }));
            }
        }
        self.push(Kind::Number, start, self.at);
        Ok(())
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - start
    }

    fn string(&mut self) -> Done {
        self.at += 1;
        let start = self.at;
        self.skip_plain();
        match self.peek() {
            Some(b'"') => {
                self.push(Kind::Text, start, self.at);
                self.at += 1;
                Ok(())
            }
            Some(b'\\') => self.escaped_string(start),
            Some(_) => Err(self.fault(BodyFaultKind::ControlCharacter)),
            None => Err(self.expected("the end of a string")),
        }
    }

    fn skip_plain(&mut self) {
        self.at += plain_bytes(self.bytes.get(self.at..).unwrap_or_default());
    }

    fn escaped_string(&mut self, start: usize) -> Done {
        let decoded_start = self.decoded.len();
        let mut plain_start = start;
        loop {
            self.decoded.push_str(self.text.get(plain_start..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.push(Kind::DecodedText, decoded_start, self.decoded.len());
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.fault(BodyFaultKind::ControlCharacter)),
                None => return Err(self.expected("the end of a string")),
            }
            plain_start = self.at;
            self.skip_plain();
        }
    }

    fn escape(&mut self) -> Done {
        self.at += 1;
        let decoded = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let decoded = self.unicode_escape()?;
                self.decoded.push(decoded);
                return Ok(());
            }
            _ => return Err(self.expected("one of the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX")),
        };
        self.at += 1;
        self.decoded.push(decoded);
        Ok(())
    }

    fn unicode_escape(&mut self) -> Result<char, BodyFault> {
        let first = self.four_hex_digits()?;
        let code = match first {
            0xd800..=0xdbff => {
                if self.bytes.get(self.at..self.at + 2) != Some(b"\\u") {
                    return Err(self.fault(BodyFaultKind::LoneSurrogate));
                }
                self.at += 2;
                let second = self.four_hex_digits()?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(self.fault(BodyFaultKind::LoneSurrogate));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            other => other,
        };
        char::from_u32(code).ok_or_else(|| self.fault(BodyFaultKind::LoneSurrogate))
    }

    fn four_hex_digits(&mut self) -> Result<u32, BodyFault> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return Err(self.expected("four hex digits after \\u")) };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn expected(&self, expected: &'static str) -> BodyFault {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let found = match rest.chars().next() {
            Some(c) => format!("`{}`", printable(c.encode_utf8(&mut [0; 4]))),
            None => "the end of the body".to_owned(),
        };
        self.fault(BodyFaultKind::Syntax { expected, found })
    }

    fn fault(&self, kind: BodyFaultKind) -> BodyFault {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        BodyFault { kind, pointer: String::new(), position: Some(Position { line, column }) }
    }
}

/// One bit of 64, the same for the same text: from its length, and its first, middle and last bytes.
fn mark_of(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let at = |place: usize| bytes.get(place).map_or(0, |byte| u32::from(*byte));
    let mixed = at(0) | at(bytes.len() / 2) << 8 | at(bytes.len().wrapping_sub(1)) << 16;
    // Any odd number that spreads its bits will do; the highest six are the mark.
    let spread = (mixed ^ (bytes.len() as u32) << 24).wrapping_mul(0x9e37_79b1);
    1 << (spread >> 26)
}

/// A fault found inside a member or an item, seen from the container.
fn within(mut fault: BodyFault, segment: &str) -> BodyFault {
    let mut outer = pointer::join("", segment);
    outer.push_str(&fault.pointer);
    fault.pointer = outer;
    fault
}

/// How many bytes at the start of a string's text stand for themselves: up to the next quote, backslash or
/// control character. Looks at eight bytes at a time.
pub(crate) fn plain_bytes(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // Marks each zero byte of `word`; exact up to and including the first one, which is all we use.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let (chunks, rest) = text.as_chunks::<8>();
    for (n, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let quote = zeros(word ^ (ONES * u64::from(b'"')));
        let backslash = zeros(word ^ (ONES * u64::from(b'\\')));
        let stop = control | quote | backslash;
        if stop != 0 {
            return n * 8 + (stop.trailing_zeros() / 8) as usize;
        }
    }
    let tail = rest.iter().take_while(|byte| matches!(byte, 0x20..=0x21 | 0x23..=0x5b | 0x5d..)).count();
    chunks.len() * 8 + tail
}
