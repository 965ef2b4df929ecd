//! An answer of the API, as templates read it: by the names that `/openapi.json` gives.
//!
//! Everything comes out as text or as a small template of its own, so that the page that shows it escapes it. A value is
//! read with `text` and shown with `shown` (`shown.rs`).

use askama::Template;
use askama::filters::Safe;
use serde_json::Value as Json;

use super::form::encoded;
use super::prose::Prose;
use super::shown::{Letters, Mark, Markup, Shown};
use crate::limits;
use crate::timestamp::Timestamp;

/// A value of an answer, and the time at which the page is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'j> {
    json: &'j Json,
    now: Timestamp,
}

impl<'j> Facts<'j> {
    pub(super) fn of(json: &'j Json, now: Timestamp) -> Self {
        Self { json, now }
    }

    /// The value at a path of names, such as `lastLoad/outcome`; null where there is none.
    pub(super) fn at(&self, path: &str) -> Facts<'j> {
        let found =
            path.split('/').filter(|name| !name.is_empty()).try_fold(self.json, |json, name| json.get(name));
        Facts { json: found.unwrap_or(&Json::Null), now: self.now }
    }

    pub(super) fn has(&self, path: &str) -> bool {
        match self.at(path).json {
            Json::Null => false,
            Json::Array(items) => !items.is_empty(),
            Json::String(text) => !text.is_empty(),
            _ => true,
        }
    }

    pub(super) fn is(&self, path: &str, word: &str) -> bool {
        self.text(path) == word
    }

    pub(super) fn truth(&self, path: &str) -> bool {
        self.at(path).json.as_bool().unwrap_or(false)
    }

    pub(super) fn text(&self, path: &str) -> String {
        match self.at(path).json {
            Json::Null => String::new(),
            Json::String(text) => text.clone(),
            Json::Array(items) => {
                let words: Vec<String> =
                    items.iter().map(|item| Facts::of(item, self.now).text("")).collect();
                words.join(", ")
            }
            other => other.to_string(),
        }
    }

    /// The text, or this where there is none.
    pub(super) fn or(&self, path: &str, none: &str) -> String {
        if self.has(path) { self.text(path) } else { none.to_owned() }
    }

    /// The text as a page shows it.
    pub(super) fn shown(&self, path: &str) -> Markup<Shown> {
        Shown::of(self.text(path))
    }

    /// The same, or this where there is none.
    pub(super) fn shown_or(&self, path: &str, none: &str) -> Markup<Shown> {
        Shown::of(self.or(path, none))
    }

    pub(super) fn number(&self, path: &str) -> u64 {
        self.at(path).json.as_u64().unwrap_or(0)
    }

    /// A number as people read it: `1,234,567`.
    pub(super) fn count(&self, path: &str) -> String {
        grouped(self.number(path))
    }

    /// A sentence with names and values between backticks.
    pub(super) fn prose(&self, path: &str) -> Markup<Prose> {
        Prose::of(self.text(path))
    }

    /// The same, beginning with a capital.
    pub(super) fn said(&self, path: &str) -> Markup<Prose> {
        Prose::sentence(self.text(path))
    }

    pub(super) fn each(&self, path: &str) -> Vec<Facts<'j>> {
        let items = self.at(path).json.as_array();
        items.into_iter().flatten().map(|json| Facts { json, now: self.now }).collect()
    }

    /// As a part of an address.
    pub(super) fn link(&self, path: &str) -> String {
        encoded(&self.text(path))
    }

    /// A point in time: how long ago, and exactly.
    pub(super) fn when(&self, path: &str) -> Markup<When> {
        When::of(&self.text(path), self.now)
    }

    /// A word with its colour.
    pub(super) fn tag(&self, path: &str) -> Markup<Tag> {
        Tag::of(&self.text(path))
    }

    /// A text that may be long.
    pub(super) fn cut(&self, path: &str) -> Markup<Cut> {
        Cut::of(self.text(path))
    }

    /// The same, or this where there is none.
    pub(super) fn cut_or(&self, path: &str, none: &str) -> Markup<Cut> {
        Cut::of(self.or(path, none))
    }

    /// A digest, of which the beginning will do.
    pub(super) fn short(&self, path: &str) -> Markup<Short> {
        Safe(Short { text: self.text(path) })
    }

    pub(super) fn json(&self) -> &'j Json {
        self.json
    }
}

/// A point in time.
#[derive(Debug, Template)]
#[template(
    source = r#"{% if exact.is_empty() %}<span class="none">never</span>{% else %}<time datetime="{{ exact }}" title="{{ exact }}">{{ relative }}</time>{% endif %}"#,
    ext = "html"
)]
pub(super) struct When {
    exact: String,
    relative: String,
}

impl When {
    pub(super) fn of(text: &str, now: Timestamp) -> Markup<Self> {
        let relative = Timestamp::parse(text).map_or_else(|| text.to_owned(), |at| relative(at, now));
        Safe(Self { exact: text.to_owned(), relative })
    }
}

/// Digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// In words that are never wrong by more than they say.
fn relative(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.seconds_since(at);
    let (amount, ahead) = (seconds.unsigned_abs(), seconds < 0);
    let words = match amount {
        0..=4 => return "just now".to_owned(),
        5..=89 => format!("{amount} s"),
        90..=5_399 => format!("{} min", (amount + 30) / 60),
        5_400..=129_599 => format!("{} h", (amount + 1_800) / 3_600),
        _ => format!("{} days", (amount + 43_200) / 86_400),
    };
    if ahead { format!("in {words}") } else { format!("{words} ago") }
}

/// A word of state with a colour of its own. The colour never says more than the word.
#[derive(Debug, Template)]
#[template(source = r#"<span class="tag tag-{{ tone }}">{{ word }}</span>"#, ext = "html")]
pub(super) struct Tag {
    word: String,
    tone: &'static str,
}

impl Tag {
    pub(super) fn of(word: &str) -> Markup<Self> {
        let tone = match word {
            "allowed" | "passed" | "pass" | "ready" | "completed" | "live" | "in_force" | "loaded"
            | "done" | "verified" | "approved" => "good",
            "denied" | "rejected" | "failed" | "fail" | "failing" | "blocked" | "revoked" | "frozen"
            | "broken" => "bad",
            "expired" | "degraded" | "cancelled" | "rolled_back" | "spent" | "pending" | "skipped" => "warn",
            "needs_approval" | "waiting" | "next" | "canary" => "wait",
            "available" | "claimed" | "working" | "simulated" | "gated-read" | "gated-live" => "work",
            _ => "plain",
        };
        Safe(Self { word: word.replace('_', " "), tone })
    }
}

/// A text of which the beginning is shown, and the whole on request. That something is hidden in it is said beside
/// it, wherever in it that is.
#[derive(Debug, Template)]
#[template(
    source = r#"{% if let Some(beginning) = self.beginning() %}<details class="cut"><summary>{{ beginning }}<span class="more">… show all {{ chars }} characters</span></summary><span class="whole">{{ self.whole() }}</span></details>{% else %}{{ self.whole() }}{% endif %}{{ self.mark() }}"#,
    ext = "html"
)]
pub(super) struct Cut {
    text: String,
    chars: usize,
    is_quoted: bool,
}

impl Cut {
    pub(super) fn of(text: String) -> Markup<Self> {
        Safe(Self { chars: text.chars().count(), text, is_quoted: false })
    }

    /// As a string of a document.
    pub(super) fn quoted(text: String) -> Self {
        Self { chars: text.chars().count(), text, is_quoted: true }
    }

    /// A word of a document, which is no string.
    pub(super) fn word(text: String) -> Self {
        Self { chars: text.chars().count(), text, is_quoted: false }
    }

    /// Nothing if the whole is short.
    fn beginning(&self) -> Option<Markup<Letters<'_>>> {
        if self.chars <= limits::CONSOLE_VALUE_CHARS {
            return None;
        }
        let (end, _) = self.text.char_indices().nth(limits::CONSOLE_VALUE_CHARS / 2)?;
        self.text.get(..end).map(|beginning| Letters::of(beginning, self.is_quoted))
    }

    fn whole(&self) -> Markup<Letters<'_>> {
        Letters::of(&self.text, self.is_quoted)
    }

    fn mark(&self) -> Markup<Mark> {
        Mark::of(&self.text)
    }
}

/// A digest, in short and whole.
#[derive(Debug, Template)]
#[template(source = r#"<code class="digest" title="{{ text }}">{{ self.beginning() }}</code>"#, ext = "html")]
pub(super) struct Short {
    text: String,
}

impl Short {
    fn beginning(&self) -> String {
        let digits = self.text.strip_prefix("sha256:").unwrap_or(&self.text);
        if digits.chars().count() > 14 {
            digits.chars().take(12).chain(['…']).collect()
        } else {
            digits.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_nanoseconds(1_700_000_000_000_000_000).plus_seconds(seconds)
    }

    #[test]
    fn times_are_told_relative_to_the_page() {
        for (ago, words) in [
            (0, "just now"),
            (5, "5 s ago"),
            (89, "89 s ago"),
            (90, "2 min ago"),
            (5_399, "90 min ago"),
            (5_400, "2 h ago"),
            (129_600, "2 days ago"),
            (-30, "in 30 s"),
            (-900, "in 15 min"),
        ] {
            assert_eq!(relative(at(-ago), at(0)), words, "{ago}");
        }
    }

    #[test]
    fn whatever_a_value_is_it_is_text_in_the_page() {
        let nasty = "<script>alert(1)</script>\"'&";
        let json = json!({"a": nasty, "list": [nasty], "n": 7, "none": null});
        let facts = Facts::of(&json, at(0));
        for shown in [
            Tag::of(nasty).to_string(),
            When::of(nasty, at(0)).to_string(),
            Cut::of(nasty.repeat(40)).to_string(),
            Short { text: nasty.to_owned() }.to_string(),
            facts.cut("a").to_string(),
            facts.shown("a").to_string(),
        ] {
            assert!(!shown.contains("<script"), "{shown}");
            assert!(!shown.contains("\"'"), "{shown}");
        }
        assert_eq!((facts.text("list").as_str(), facts.text("n").as_str()), (nasty, "7"));
        assert_eq!(
            (facts.has("none"), facts.has("a/b"), facts.or("none", "-").as_str()),
            (false, false, "-")
        );
        assert_eq!(facts.link("a"), "%3Cscript%3Ealert%281%29%3C%2Fscript%3E%22%27%26");
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_long_text_is_cut_and_is_there_whole() {
        let long = "x".repeat(500);
        let shown = Cut::of(long.clone()).to_string();
        assert!(shown.contains("<details") && shown.contains(&long) && shown.contains("show all 500"));
        assert!(!Cut::of("short".to_owned()).to_string().contains("<details"));
        // What is hidden is told where it is folded away, too.
        let folded = Cut::of(format!("{long}\u{200b}")).to_string();
        assert!(folded.split_once("</details>").unwrap().1.contains("hidden characters"), "{folded}");
    }
}
