//! A JSON document as lines to read, with what is wrong marked where it is.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::facts::Cut;
use super::prose::Prose;
use crate::limits;

/// One line of a document.
#[derive(Debug)]
pub(super) struct Line {
    /// How far in it stands, as a class of the style sheet.
    pub(super) depth: usize,
    pub(super) key: Option<String>,
    pub(super) value: Cut,
    /// What kind of value it is, as a class of the style sheet.
    pub(super) kind: &'static str,
    pub(super) pointer: String,
    /// What is wrong here.
    pub(super) marks: Vec<String>,
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
    pub(super) fn prose(&self, what: &str) -> Prose {
        Prose::of(what)
    }

    fn add(
        &mut self,
        json: &Json,
        key: Option<&str>,
        pointer: String,
        depth: usize,
        marks: &BTreeMap<String, Vec<String>>,
    ) {
        let is_masked = key.is_some_and(|key| {
            let plain: String = key.chars().filter(|c| c.is_alphanumeric()).collect();
            MASKED.contains(&plain.to_lowercase().as_str())
        });
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
                key: key.map(str::to_owned),
                value: Cut::of(text),
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
                    self.add(value, Some(name), below, depth + 1, marks);
                }
            }
            Json::Array(items) => {
                for (number, value) in items.iter().enumerate() {
                    let below = format!("{pointer}/{number}");
                    self.add(value, Some(&number.to_string()), below, depth + 1, marks);
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
