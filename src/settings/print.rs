//! The settings in force, as `--print-config` shows them.

use serde_json::{Map, json};

use super::keys::{KEYS, Key};
use super::read::{Effective, Source};
use super::slot::Shown;

impl Effective {
    /// A `handoffd.toml` with where each value came from; secrets are masked.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for (key, shown, source) in self.shown() {
            if key.section() != section {
                let gap = if section.is_empty() { "" } else { "\n" };
                section = key.section();
                text.push_str(&format!("{gap}[{section}]\n"));
            }
            let note = if shown == Shown::NotSet { ", not set" } else { "" };
            text.push_str(&format!("{} = {} # {source}{note}\n", key.last(), shown.toml()));
        }
        text
    }

    /// `{key: {value, source}}`; what is not set is null, and secrets are masked.
    pub fn to_json(&self) -> serde_json::Value {
        let members = self.shown().map(|(key, shown, source)| {
            (key.name.to_owned(), json!({"value": shown, "source": source.to_string()}))
        });
        members.collect::<Map<_, _>>().into()
    }

    fn shown(&self) -> impl Iterator<Item = (&'static Key, Shown, Source)> {
        let mut settings = self.settings.clone();
        KEYS.iter().map(move |key| (key, (key.at)(&mut settings).show(), self.source(key)))
    }
}

impl Shown {
    /// As a TOML value.
    pub(super) fn toml(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(|item| quoted(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Self::NotSet => quoted(""),
        }
    }
}

/// A JSON string is a TOML string, but for one character that TOML wants escaped.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
