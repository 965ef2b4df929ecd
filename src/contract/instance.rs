//! What a schema is run on: a document as it was read, or an object made of parts of one.
//!
//! The schema validator takes any representation of JSON. Handing it our own means that no request pays
//! for a second tree of owned maps, which costs more than the validation itself.

use std::borrow::Cow;

use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object, cmp};
use jsonschema::types::JsonType;
use serde_json::Value as Serde;

use crate::json::{Items, Members, Value};
use crate::proof::{write_canonical, write_display, write_object, write_text};

/// The representation, as the validator knows it.
#[derive(Debug)]
pub struct Tree;

/// A JSON value: part of a document, or made.
#[derive(Debug, Clone, Copy)]
pub enum Instance<'a> {
    Document(Value<'a>),
    Made(&'a Made<'a>),
    /// A property name that the validator wants to look at.
    Name(&'a str),
}

/// A JSON value that was made, not read; its leaves are the document's.
#[derive(Debug)]
pub enum Made<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Text(Cow<'a, str>),
    Read(Value<'a>),
    Object(Vec<(&'static str, Made<'a>)>),
}

impl<'a> From<&'a str> for Made<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> Made<'a> {
    pub(crate) fn instance(&'a self) -> Instance<'a> {
        match self {
            Self::Read(value) => Instance::Document(*value),
            other => Instance::Made(other),
        }
    }
}

impl Made<'_> {
    /// The RFC 8785 form.
    pub(crate) fn canonical(&self) -> String {
        let mut text = String::with_capacity(1024);
        self.write_canonical(&mut text);
        text
    }

    fn write_canonical(&self, text: &mut String) {
        match self {
            Self::Null => text.push_str("null"),
            Self::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
            Self::Integer(integer) => write_display(text, integer),
            Self::Text(made) => write_text(text, made),
            Self::Read(value) => write_canonical(text, *value),
            Self::Object(members) => {
                // The names are ours, in ASCII: bytes sort like UTF-16.
                let mut members: Vec<&(&'static str, Made<'_>)> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                write_object(text, |written| {
                    for (name, made) in members {
                        written.with(name, |text| made.write_canonical(text));
                    }
                });
            }
        }
    }
}

impl Instance<'_> {
    pub(crate) fn to_json(self) -> Serde {
        match self {
            Self::Document(value) => value.to_json(),
            Self::Name(text) => text.into(),
            Self::Made(made) => match made {
                Made::Null => Serde::Null,
                Made::Bool(flag) => (*flag).into(),
                Made::Integer(integer) => (*integer).into(),
                Made::Text(text) => text.as_ref().into(),
                Made::Read(value) => value.to_json(),
                Made::Object(members) => Serde::Object(
                    members
                        .iter()
                        .map(|(name, made)| ((*name).to_owned(), made.instance().to_json()))
                        .collect(),
                ),
            },
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Document(value) => value.as_str(),
            Self::Name(text) => Some(text),
            Self::Made(Made::Text(text)) => Some(text),
            Self::Made(_) => None,
        }
    }
}

impl Json for Tree {
    type Node<'a> = Instance<'a>;
    type PreparedKey = String;
    type StringBuffer = ();

    // A lookup here walks the members, so one pass over them is cheaper than a few lookups.
    const KEYS_PER_LOOKUP: usize = 8;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(Instance<'_>) -> T) -> T {
        f(Instance::Name(string))
    }
}

impl<'a> Node<'a, Tree> for Instance<'a> {
    type Object = Self;
    type Array = Value<'a>;
    type Number = Number;

    fn as_object(&self) -> Option<Self> {
        match self {
            Self::Document(value) => value.is_object().then_some(*self),
            Self::Made(Made::Object(_)) => Some(*self),
            Self::Made(_) | Self::Name(_) => None,
        }
    }

    fn as_array(&self) -> Option<Value<'a>> {
        match self {
            Self::Document(value) => value.is_array().then_some(*value),
            Self::Made(_) | Self::Name(_) => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match *self {
            Self::Document(value) => value.as_str().map(Cow::Borrowed),
            Self::Name(text) => Some(Cow::Borrowed(text)),
            Self::Made(Made::Text(text)) => Some(Cow::Borrowed(text)),
            Self::Made(_) => None,
        }
    }

    fn as_number(&self) -> Option<Number> {
        match self {
            Self::Document(value) => match value.as_integer() {
                Some(integer) => Some(Number::Whole(integer)),
                None => value.as_f64().map(Number::Double),
            },
            Self::Made(Made::Integer(integer)) => Some(Number::Whole(*integer)),
            Self::Made(_) | Self::Name(_) => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self {
            Self::Document(value) => value.as_bool(),
            Self::Made(Made::Bool(flag)) => Some(*flag),
            Self::Made(_) | Self::Name(_) => None,
        }
    }

    fn is_null(&self) -> bool {
        match self {
            Self::Document(value) => value.is_null(),
            Self::Made(made) => matches!(made, Made::Null),
            Self::Name(_) => false,
        }
    }

    fn is_number(&self) -> bool {
        self.json_type() == JsonType::Number
    }

    fn json_type(&self) -> JsonType {
        match self {
            Self::Document(value) if value.is_object() => JsonType::Object,
            Self::Document(value) if value.is_array() => JsonType::Array,
            Self::Document(value) if value.as_str().is_some() => JsonType::String,
            Self::Document(value) if value.is_null() => JsonType::Null,
            Self::Document(value) if value.as_bool().is_some() => JsonType::Boolean,
            Self::Document(_) => JsonType::Number,
            Self::Name(_) => JsonType::String,
            Self::Made(made) => match made {
                Made::Null => JsonType::Null,
                Made::Bool(_) => JsonType::Boolean,
                Made::Integer(_) => JsonType::Number,
                Made::Text(_) => JsonType::String,
                Made::Read(value) => Self::Document(*value).json_type(),
                Made::Object(_) => JsonType::Object,
            },
        }
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.text()?;
        Some(if text.is_ascii() { text.len() } else { text.chars().count() } as u64)
    }

    fn equals_value(&self, expected: &Serde) -> bool {
        match (self.text(), expected) {
            (Some(text), Serde::String(expected)) => text == expected,
            (Some(_), _) | (None, Serde::String(_)) => false,
            (None, expected) => cmp::equal(&self.to_json(), expected),
        }
    }

    fn to_value(&self) -> Cow<'a, Serde> {
        Cow::Owned(self.to_json())
    }

    fn identity(&self) -> Option<NodeIdentity> {
        match self {
            Self::Document(value) => {
                let (document, index) = value.place();
                Some(NodeIdentity::tagged(document, index))
            }
            Self::Made(made) => Some(NodeIdentity::new(std::ptr::from_ref::<Made<'_>>(made) as usize)),
            Self::Name(_) => None,
        }
    }
}

impl<'a> Object<'a, Tree> for Instance<'a> {
    type Node = Self;
    type MemberName = &'a str;
    type MembersIter = InstanceMembers<'a>;

    fn len(&self) -> usize {
        match self {
            Self::Document(value) => value.size(),
            Self::Made(Made::Object(members)) => members.len(),
            Self::Made(_) | Self::Name(_) => 0,
        }
    }

    fn get(&self, key: &String) -> Option<Self> {
        match self {
            Self::Document(value) => value.get(key).map(Self::Document),
            Self::Made(Made::Object(members)) => {
                members.iter().find(|(name, _)| name == key).map(|(_, made)| made.instance())
            }
            Self::Made(_) | Self::Name(_) => None,
        }
    }

    fn members(&self) -> InstanceMembers<'a> {
        match *self {
            Self::Document(value) => InstanceMembers::Document(value.members()),
            Self::Made(Made::Object(members)) => InstanceMembers::Made(members.iter()),
            Self::Made(_) | Self::Name(_) => InstanceMembers::Made([].iter()),
        }
    }
}

/// The members of an object, read or made.
#[derive(Debug)]
pub enum InstanceMembers<'a> {
    Document(Members<'a>),
    Made(std::slice::Iter<'a, (&'static str, Made<'a>)>),
}

impl<'a> Iterator for InstanceMembers<'a> {
    type Item = (&'a str, Instance<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Document(members) => members.next().map(|(name, value)| (name, Instance::Document(value))),
            Self::Made(members) => members.next().map(|(name, made)| (*name, made.instance())),
        }
    }
}

impl<'a> Array<'a, Tree> for Value<'a> {
    type Node = Instance<'a>;
    type ElementsIter = std::iter::Map<Items<'a>, fn(Value<'a>) -> Instance<'a>>;

    fn len(&self) -> usize {
        self.size()
    }

    fn elements(&self) -> Self::ElementsIter {
        self.items().map(Instance::Document)
    }
}

/// A number: whole if a double holds it exactly.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    Whole(i64),
    Double(f64),
}

impl JsonNumber for Number {
    fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Whole(integer) => u64::try_from(*integer).ok(),
            Self::Double(_) => None,
        }
    }

    fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Whole(integer) => Some(*integer),
            Self::Double(_) => None,
        }
    }

    fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Whole(integer) => Some(*integer as f64),
            Self::Double(double) => Some(*double),
        }
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Owned(self.to_number().to_string())
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        Cow::Owned(match self {
            Self::Whole(integer) => (*integer).into(),
            // A document has no infinite numbers; the fall-back only satisfies totality.
            Self::Double(double) => serde_json::Number::from_f64(*double).unwrap_or_else(|| 0.into()),
        })
    }
}
