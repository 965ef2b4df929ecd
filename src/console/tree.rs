//! A JSON document as lines to read, with what is wrong marked where it is.

use std::collections::BTreeMap;

use askama::filters::Safe;
use serde_json::Value as Json;

use super::facts::Cut;
use super::prose::Prose;
use super::shown::{Letters, Mark, Markup};
use crate::limits;

/// One line of a document.
#[derive(Debug)]
pub(super) struct Line {
    /// How far in it stands, as a class of the style sheet.
    pub(super) depth: usize,
    key: Option<Key>,
    value: Cut,
    /// What kind of value it is, as a class of the style sheet.
    pub(super) kind: &'static str,
    pub(super) pointer: String,
    /// What is wrong here.
    pub(super) marks: Vec<String>,
}

/// What a value stands under.
#[derive(Debug)]
enum Key {
    Name(String),
    Place(usize),
}

impl Line {
    /// The name as it is read: one that is no plain word stands in quotes, so that it cannot be taken for more.
    pub(super) fn key(&self) -> Option<Markup<Letters<'_>>> {
        let is_plain = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$'))
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-' | '.'))
        };
        match &self.key {
            Some(Key::Name(name)) => Some(Letters::of(name, !is_plain(name))),
            _ => None,
        }
    }

    /// Which one it is of a list.
    pub(super) fn place(&self) -> Option<usize> {
        match self.key {
            Some(Key::Place(place)) => Some(place),
            _ => None,
        }
    }

    /// Whether something is hidden in the name.
    pub(super) fn key_mark(&self) -> Markup<Mark> {
        match &self.key {
            Some(Key::Name(name)) => Mark::of(name),
            _ => Mark::of(""),
        }
    }

    pub(super) fn value(&self) -> Markup<&Cut> {
        Safe(&self.value)
    }
}

/// A document to read.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) lines: Vec<Line>,
    /// How many more lines there are than are shown.
    pub(super) left_out: usize,
    /// Where the whole is shown; empty if nowhere.
    pub(super) whole: String,
    lines_max: usize,
}

/// How much of a document a page shows, and where it shows all of it.
#[derive(Debug, Clone)]
pub(super) struct Extent {
    pub(super) lines_max: usize,
    pub(super) whole: String,
}

impl Default for Extent {
    fn default() -> Self {
        Self { lines_max: limits::CONSOLE_TREE_LINES_MAX, whole: String::new() }
    }
}

/// Members whose values are nobody's to read, whatever they are in: by their whole names, in small letters and digits.
/// Not by a part of them: what an approver must see, such as `inToken` of a swap, is no secret.
const MASKED: [&str; 22] = [
    "signature",
    "secret",
    "secretkey",
    "clientsecret",
    "token",
    "accesstoken",
    "refreshtoken",
    "authtoken",
    "bearertoken",
    "apitoken",
    "idtoken",
    "sessiontoken",
    "password",
    "passphrase",
    "apikey",
    "privatekey",
    "signingkey",
    "mnemonic",
    "seedphrase",
    "credentials",
    "cookie",
    "authorization",
];

impl Tree {
    pub(super) fn of(json: &Json) -> Self {
        Self::within(json, &[], Extent::default())
    }

    /// With marks: a pointer and what is wrong there. What is missing is marked at the member it is missing from.
    pub(super) fn within(json: &Json, marks: &[(String, String)], extent: Extent) -> Self {
        let mut by_pointer: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (pointer, what) in marks {
            by_pointer.entry(nearest(json, pointer)).or_default().push(what.clone());
        }
        let Extent { lines_max, whole } = extent;
        let mut tree = Self { lines: Vec::new(), left_out: 0, whole, lines_max };
        tree.add(json, None, String::new(), 0, &by_pointer);
        tree
    }

    /// What is wrong somewhere, with names and values set apart.
    pub(super) fn prose(&self, what: &str) -> Markup<Prose> {
        Prose::of(what)
    }

    fn add(
        &mut self,
        json: &Json,
        key: Option<Key>,
        pointer: String,
        depth: usize,
        marks: &BTreeMap<String, Vec<String>>,
    ) {
        let is_masked = match &key {
            Some(Key::Name(name)) => {
                let plain: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
                MASKED.contains(&plain.to_lowercase().as_str())
            }
            _ => false,
        };
        let (text, kind) = match json {
            _ if is_masked && !json.is_null() => ("masked".to_owned(), "masked"),
            Json::Object(members) if members.is_empty() => ("{}".to_owned(), "empty"),
            Json::Array(items) if items.is_empty() => ("[]".to_owned(), "empty"),
            Json::Object(_) | Json::Array(_) => (String::new(), "open"),
            Json::String(text) => (text.clone(), "text"),
            Json::Null => ("null".to_owned(), "word"),
            other => (other.to_string(), "word"),
        };
        if self.lines.len() < self.lines_max {
            self.lines.push(Line {
                depth: depth.min(12),
                key,
                value: if kind == "text" { Cut::quoted(text) } else { Cut::word(text) },
                kind,
                pointer: pointer.clone(),
                marks: marks.get(&pointer).cloned().unwrap_or_default(),
            });
        } else {
            self.left_out += 1;
        }
        if is_masked {
            return;
        }
        match json {
            Json::Object(members) => {
                for (name, value) in members {
                    let below = format!("{pointer}/{}", escaped(name));
                    self.add(value, Some(Key::Name(name.clone())), below, depth + 1, marks);
                }
            }
            Json::Array(items) => {
                for (number, value) in items.iter().enumerate() {
                    let below = format!("{pointer}/{number}");
                    self.add(value, Some(Key::Place(number)), below, depth + 1, marks);
                }
            }
            _ => {}
        }
    }
}

/// A name as a JSON pointer has it.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The pointer itself, or that of the nearest value around it that is there.
fn nearest(json: &Json, pointer: &str) -> String {
    let mut pointer = pointer;
    loop {
        if pointer.is_empty() || json.pointer(pointer).is_some() {
            return pointer.to_owned();
        }
        pointer = pointer.rsplit_once('/').map_or("", |(around, _)| around);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(tree: &Tree) -> Vec<String> {
        let line = |line: &Line| format!("{} {} {:?}", line.pointer, line.kind, line.marks);
        tree.lines.iter().map(line).collect()
    }

    #[test]
    fn what_is_wrong_is_marked_where_it_is_or_where_it_is_missing() {
        let json = json!({"a": {"b/c": 1}, "list": ["x"]});
        let marks = [("/a/b~1c", "one"), ("/a/none/deeper", "two"), ("/list/0", "three"), ("/gone", "four")];
        let marks = marks.map(|(pointer, what)| (pointer.to_owned(), what.to_owned()));
        assert_eq!(
            lines(&Tree::within(&json, &marks, Extent::default())),
            [
                r#" open ["four"]"#,
                r#"/a open ["two"]"#,
                r#"/a/b~1c word ["one"]"#,
                "/list open []",
                r#"/list/0 text ["three"]"#,
            ]
        );
    }

    #[test]
    fn a_string_is_told_from_a_word_and_a_name_from_more_than_a_name() {
        let json = json!({"n": [100, "100"], "t": "true", "0": true, "a: 1": "x\ny: 2", "to\u{200b}": ""});
        let tree = Tree::of(&json);
        let shown: Vec<String> = tree
            .lines
            .iter()
            .map(|line| {
                let key = line.key().map(|key| key.to_string()).unwrap_or_default();
                let place = line.place().map(|place| place.to_string()).unwrap_or_default();
                let mark = if line.key_mark().to_string().is_empty() { "" } else { " marked" };
                format!("{key}{place}{mark}: {}", line.value())
            })
            .collect();
        let odd = |text: &str| format!("<span class=\"odd\">{text}</span>");
        assert_eq!(
            shown,
            [
                ": ".to_owned(),
                "n: ".to_owned(),
                "0: 100".to_owned(),
                "1: \"100\"".to_owned(),
                "t: \"true\"".to_owned(),
                "\"0\": true".to_owned(),
                format!("\"a: 1\": \"x{}y: 2\"", odd("\\n")),
                format!("\"to{}\" marked: \"\"", odd("\\u{200b}")),
            ]
        );
    }

    #[test]
    fn what_proves_or_opens_something_is_never_shown() {
        let json = json!({
            "proof": {"signature": "c0ffee", "api_key": "c0ffee", "keyId": "shown 1"}, "token": {"a": "c0ffee"},
            "Access-Token": "c0ffee", "clientSecret": ["c0ffee"], "inToken": "shown 2", "authorizationRef": "shown 3",
        });
        let text = format!("{:?}", Tree::of(&json));
        assert!(!text.contains("c0ffee"), "{text}");
        for shown in ["shown 1", "shown 2", "shown 3"] {
            assert!(text.contains(shown), "{text}");
        }
    }

    #[test]
    fn a_document_without_end_is_cut_and_can_be_seen_whole() {
        let json = Json::Array(vec![Json::Null; limits::CONSOLE_TREE_LINES_MAX * 2]);
        let tree = Tree::of(&json);
        let shown = limits::CONSOLE_TREE_LINES_MAX;
        assert_eq!((tree.lines.len(), tree.left_out), (shown, shown + 1));
        let whole = Tree::within(&json, &[], Extent { lines_max: usize::MAX, whole: String::new() });
        assert_eq!((whole.lines.len(), whole.left_out), (2 * shown + 1, 0));
    }
}
