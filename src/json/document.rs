//! The tree that the reader yields: a flat tape of nodes over the body's own text.
//!
//! Strings are slices of the body unless they had escapes; nothing is copied. An object's members lie
//! on the tape as key, value, key, value, each value followed by its own subtree.

use std::fmt;

/// One JSON document, read strictly and known to be sound.
pub struct Document<'t> {
    pub(super) text: &'t str,
    /// Strings that had escapes, decoded, one after the other.
    pub(super) decoded: String,
    pub(super) nodes: Vec<Node>,
}

#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// A string or number: where its text begins and ends. A container: `start` is its size.
    pub(super) start: u32,
    pub(super) end: u32,
    /// The node after this one and all that is inside it.
    pub(super) next: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    False,
    True,
    Number,
    Text,
    DecodedText,
    Array,
    Object,
}

const NOTHING: Node = Node { kind: Kind::Null, start: 0, end: 0, next: 0 };

/// A value in a [`Document`]; as cheap to copy as a reference.
#[derive(Clone, Copy)]
pub struct Value<'d> {
    doc: &'d Document<'d>,
    index: u32,
}

/// The same place in the same document; two equal values elsewhere are not the same.
impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.doc, other.doc) && self.index == other.index
    }
}

impl<'t> Document<'t> {
    /// The document's outermost value.
    pub fn root(&self) -> Value<'_> {
        Value { doc: self, index: 0 }
    }
}

impl<'d> Value<'d> {
    fn node(self) -> Node {
        // Every index on the tape was put there by the reader; the fall-back only satisfies totality.
        self.doc.nodes.get(self.index as usize).copied().unwrap_or(NOTHING)
    }

    fn at(self, index: u32) -> Self {
        Value { doc: self.doc, index }
    }

    pub fn is_null(self) -> bool {
        self.node().kind == Kind::Null
    }

    pub fn is_object(self) -> bool {
        self.node().kind == Kind::Object
    }

    pub fn is_array(self) -> bool {
        self.node().kind == Kind::Array
    }

    pub fn as_bool(self) -> Option<bool> {
        match self.node().kind {
            Kind::True => Some(true),
            Kind::False => Some(false),
            _ => None,
        }
    }

    pub fn as_str(self) -> Option<&'d str> {
        let node = self.node();
        let range = node.start as usize..node.end as usize;
        match node.kind {
            Kind::Text => self.doc.text.get(range),
            Kind::DecodedText => self.doc.decoded.get(range),
            _ => None,
        }
    }

    /// A number's text as it was sent.
    pub fn number_text(self) -> Option<&'d str> {
        let node = self.node();
        if node.kind == Kind::Number {
            self.doc.text.get(node.start as usize..node.end as usize)
        } else {
            None
        }
    }

    pub fn as_f64(self) -> Option<f64> {
        self.number_text()?.parse().ok()
    }

    /// The number if it is a whole one that a double holds exactly; `100.0` is 100.
    pub fn as_integer(self) -> Option<i64> {
        const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
        let text = self.number_text()?;
        if let Ok(integer) = text.parse::<i64>() {
            return Some(integer);
        }
        let double: f64 = text.parse().ok()?;
        // The cast is exact: the value is whole and within 2^53.
        (double.fract() == 0.0 && double.abs() <= EXACT_MAX).then_some(double as i64)
    }

    /// An object's members in the order they were sent; nothing for any other value.
    pub fn members(self) -> Members<'d> {
        let node = self.node();
        let left = if node.kind == Kind::Object { node.start } else { 0 };
        Members { value: self, left, next: self.index + 1 }
    }

    /// An array's items in order; nothing for any other value.
    pub fn items(self) -> Items<'d> {
        let node = self.node();
        let left = if node.kind == Kind::Array { node.start } else { 0 };
        Items { value: self, left, next: self.index + 1 }
    }

    /// The number of members or items of a container; 0 for any other value.
    pub fn size(self) -> usize {
        let node = self.node();
        if matches!(node.kind, Kind::Array | Kind::Object) { node.start as usize } else { 0 }
    }

    /// The member of that name.
    pub fn get(self, key: &str) -> Option<Value<'d>> {
        self.members().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// What tells this value from any other that is alive: its document's address, and its place there.
    pub(crate) fn place(self) -> (usize, u32) {
        (std::ptr::from_ref::<Document<'_>>(self.doc) as usize, self.index)
    }

    /// The same tree as a serde_json value. Whole numbers become integers.
    pub fn to_json(self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self.node().kind {
            Kind::Null => Json::Null,
            Kind::False => Json::Bool(false),
            Kind::True => Json::Bool(true),
            Kind::Number => match self.as_integer() {
                Some(integer) => Json::from(integer),
                None => self.as_f64().map_or(Json::Null, Json::from),
            },
            Kind::Text | Kind::DecodedText => Json::String(self.as_str().unwrap_or_default().to_owned()),
            Kind::Array => Json::Array(self.items().map(Value::to_json).collect()),
            Kind::Object => {
                Json::Object(self.members().map(|(key, value)| (key.to_owned(), value.to_json())).collect())
            }
        }
    }
}

/// Iterates over an object's members.
#[derive(Debug, Clone)]
pub struct Members<'d> {
    value: Value<'d>,
    left: u32,
    next: u32,
}

impl<'d> Iterator for Members<'d> {
    type Item = (&'d str, Value<'d>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let key = self.value.at(self.next);
        let value = self.value.at(self.next + 1);
        self.next = value.node().next;
        Some((key.as_str().unwrap_or_default(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

/// Iterates over an array's items.
#[derive(Debug, Clone)]
pub struct Items<'d> {
    value: Value<'d>,
    left: u32,
    next: u32,
}

impl<'d> Iterator for Items<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let value = self.value.at(self.next);
        self.next = value.node().next;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

// A TaskSpec may hold what nobody should find in a log: the tree shows its size, not its content.
impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} nodes)", self.nodes.len())
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value(#{} of {:?})", self.index, self.doc)
    }
}
