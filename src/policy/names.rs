//! An operator's list of names, in which a trailing `*` stands for any ending.

use serde::Deserialize;

/// A list of names; an empty one covers nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Names(Vec<Name>);

#[derive(Debug, PartialEq, Eq)]
enum Name {
    Exactly(String),
    StartingWith(String),
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl From<String> for Name {
    fn from(mut text: String) -> Self {
        if text.ends_with('*') {
            text.pop();
            Self::StartingWith(text)
        } else {
            Self::Exactly(text)
        }
    }
}

impl Name {
    fn covers(&self, text: &str) -> bool {
        match self {
            Self::Exactly(name) => name == text,
            Self::StartingWith(start) => text.starts_with(start.as_str()),
        }
    }
}

impl Names {
    /// Is this text on the list? Byte for byte: no case folding, no trimming.
    pub fn cover(&self, text: &str) -> bool {
        self.0.iter().any(|name| name.covers(text))
    }
}

/// One pattern by itself, for maps whose keys are patterns.
pub(super) fn pattern_covers(pattern: &str, text: &str) -> bool {
    Name::from(pattern.to_owned()).covers(text)
}
