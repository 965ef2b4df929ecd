//! Bounds on a packet that an operator may set.
//!
//! Owns the three limits and the measuring. All are off by default; what always holds is the JSON parser's
//! own recursion limit (127 nested containers pass, 128 do not).
//!
//! Depth and arrays are measured by a second walk over bytes that the parser has already accepted, and only
//! when one of the two limits is set. That keeps the reader free of counters and the usual packet free of
//! cost. It also means that everything sent is measured, including a value that a later duplicate key
//! replaces. Deliberately absent: limits on the request body, which the doors have.

use super::error::EvidenceError;

/// How large a packet may be. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the packet, whitespace included.
    pub packet_bytes_max: Option<usize>,
    /// Nested containers: a scalar has depth 0, `[]` and `{}` have 1.
    pub depth_max: Option<usize>,
    /// Elements of the longest array anywhere in the packet.
    pub array_items_max: Option<usize>,
}

impl Limits {
    pub(super) fn admit_size(&self, bytes: &[u8]) -> Result<(), EvidenceError> {
        within("packet bytes", bytes.len(), self.packet_bytes_max)
    }

    /// Only for bytes that have been read as JSON without error.
    pub(super) fn admit_shape(&self, json: &[u8]) -> Result<(), EvidenceError> {
        if self.depth_max.is_none() && self.array_items_max.is_none() {
            return Ok(());
        }
        let shape = Shape::of(json);
        within("packet depth", shape.depth, self.depth_max)?;
        within("array items", shape.array_items, self.array_items_max)
    }
}

fn within(what: &str, found: usize, max: Option<usize>) -> Result<(), EvidenceError> {
    match max {
        Some(max) if found > max => {
            Err(EvidenceError::measurement(format!("{what} over the limit: `{found}`, at most `{max}`")))
        }
        _ => Ok(()),
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Shape {
    depth: usize,
    array_items: usize,
}

/// One open container: an array with the elements begun so far, or an object.
enum Open {
    Array(usize),
    Object,
}

impl Shape {
    fn of(json: &[u8]) -> Self {
        let mut shape = Self::default();
        let mut open = Vec::new();
        let mut bytes = json.iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' | b':' => {}
                b',' => {
                    if let Some(Open::Array(items)) = open.last_mut() {
                        *items += 1;
                    }
                }
                b']' | b'}' => {
                    if let Some(Open::Array(items)) = open.pop() {
                        shape.array_items = shape.array_items.max(items);
                    }
                }
                first_of_a_value => {
                    // The commas count every element but the first.
                    if let Some(Open::Array(items @ 0)) = open.last_mut() {
                        *items = 1;
                    }
                    match first_of_a_value {
                        b'[' => open.push(Open::Array(0)),
                        b'{' => open.push(Open::Object),
                        b'"' => skip_string(&mut bytes),
                        _ => {}
                    }
                    shape.depth = shape.depth.max(open.len());
                }
            }
        }
        shape
    }
}

/// Moves past the closing quote of a string whose opening quote has been taken.
fn skip_string<'b>(bytes: &mut impl Iterator<Item = &'b u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, depth: usize, array_items: usize) {
        assert_eq!(Shape::of(json.as_bytes()), Shape { depth, array_items }, "{json}");
    }

    #[test]
    fn depth_counts_containers_and_items_count_the_longest_array() {
        check("1", 0, 0);
        check("[]", 1, 0);
        check("[ \n ]", 1, 0);
        check("{}", 1, 0);
        check("[1]", 1, 1);
        check("[1, 22, 333]", 1, 3);
        check("[[], [[]], {}]", 3, 3);
        check(r#"{"a": [1, {"b": [null, true]}], "c": {}}"#, 4, 2);
        check(r#"{"a": 1, "b": 2, "c": 3}"#, 1, 0);
        check("[-1.5e3]", 1, 1);
    }

    #[test]
    fn brackets_and_commas_inside_strings_are_text() {
        check(r#"["[,[,[", "\"],{", "\\"]"#, 1, 3);
        check(r#"{"[{,": "\\\"]"}"#, 1, 0);
    }
}
