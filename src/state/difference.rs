//! Where an edited state file leaves what the ledger gives.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::json::printable;

/// The first thing in which a published text is not the ledger's. All of it is fit for one line of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// At this JSON pointer; nothing is expected where a member was added, and nothing found where one is missing.
    At { pointer: String, expected: Option<String>, found: Option<String> },
    /// The values are the same, their spelling is not.
    Form,
}

impl Difference {
    /// Of two texts that are not equal.
    pub(super) fn between(expected: &str, found: &str) -> Self {
        let Ok(expected) = serde_json::from_str::<Value>(expected) else { return Self::Form };
        match serde_json::from_str::<Value>(found) {
            Ok(found) => first(Some(&expected), Some(&found), &mut String::new()).unwrap_or(Self::Form),
            // Such as a number beyond what a number can be: the entry it names is all that could be read.
            Err(error) => Self::At {
                pointer: String::new(),
                expected: shown(Some(&expected)),
                found: Some(printable(&error.to_string())),
            },
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::At { pointer, expected, found } = self else { return write!(f, "written in another form") };
        let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        let place = if pointer.is_empty() { "the document" } else { pointer };
        write!(f, "at {place}: expected {}, found {}", said(expected), said(found))
    }
}

/// Members in the order of their names, whatever order the edit left them in. serde_json bounds the depth.
fn first(expected: Option<&Value>, found: Option<&Value>, pointer: &mut String) -> Option<Difference> {
    if expected == found {
        return None;
    }
    let mut inside = |name: &str, expected: Option<&Value>, found: Option<&Value>| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        let difference = first(expected, found, pointer);
        pointer.truncate(length);
        difference
    };
    let deeper = match (expected, found) {
        (Some(Value::Object(expected)), Some(Value::Object(found))) => {
            let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            names.into_iter().find_map(|name| inside(name, expected.get(name), found.get(name)))
        }
        (Some(Value::Array(expected)), Some(Value::Array(found))) => (0..expected.len().max(found.len()))
            .find_map(|n| inside(&n.to_string(), expected.get(n), found.get(n))),
        _ => None,
    };
    deeper.or_else(|| {
        Some(Difference::At { pointer: printable(pointer), expected: shown(expected), found: shown(found) })
    })
}

fn shown(value: Option<&Value>) -> Option<String> {
    value.map(|value| printable(&value.to_string()))
}
