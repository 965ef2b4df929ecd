//! Sentences in which a name or a value stands between backticks, as a page shows them.

use askama::Template;
use askama::filters::Safe;

use super::shown::Markup;
use crate::timestamp::Timestamp;

/// A text whose parts between backticks are code. A backtick without a partner is itself. A point in time is shown to the
/// millisecond and is not broken; its nanoseconds are there for who points at it.
#[derive(Debug, Template)]
#[template(
    source = r#"{% for part in self.parts() %}{% match part %}{% when Part::Text with (text) %}{{ text }}{% when Part::Code with (text) %}<code>{{ text }}</code>{% when Part::Time with { exact, short } %}<span class="at" title="{{ exact }}">{{ short }}</span>{% endmatch %}{% endfor %}"#,
    ext = "html"
)]
pub(super) struct Prose {
    text: String,
}

/// A part of a sentence.
enum Part<'t> {
    Text(&'t str),
    Code(&'t str),
    Time { exact: &'t str, short: String },
}

/// A word that is a point in time.
fn time(word: &str) -> Option<Part<'_>> {
    const CHARS_MIN: usize = "2026-02-18T19:38:00Z".len();
    let at = Some(word).filter(|word| word.len() >= CHARS_MIN).and_then(Timestamp::parse)?;
    let short =
        if word.len() > "2026-02-18T19:38:00.000Z".len() { at.to_milliseconds() } else { word.to_owned() };
    Some(Part::Time { exact: word, short })
}

/// Words, with the points in time among them.
fn timed<'t>(text: &'t str, parts: &mut Vec<Part<'t>>) {
    let mut rest = text;
    let mut shown = 0;
    while let Some(from) = rest.find(|c: char| c.is_ascii_digit()) {
        let (_, word) = rest.split_at(from);
        let end = word.find([' ', ',', ';', ')', '\n']).unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        let word = word.trim_end_matches(['.', ':']);
        let start = text.len() - rest.len() + from;
        if let (Some(time), Some(before)) = (time(word), text.get(shown..start)) {
            parts.extend([Part::Text(before), time]);
            shown = start + word.len();
        }
        rest = behind;
    }
    parts.push(Part::Text(text.get(shown..).unwrap_or_default()));
}

impl Prose {
    pub(super) fn of(text: impl Into<String>) -> Markup<Self> {
        Safe(Self { text: text.into() })
    }

    /// The same as a sentence of its own: answers of the API begin small. A name, an id or a path is left as it is.
    pub(super) fn sentence(text: impl Into<String>) -> Markup<Self> {
        let mut text = text.into();
        let word = text.split([' ', '\n', ',', ':', ';']).next().unwrap_or_default();
        let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'\'');
        if let (true, Some(first)) = (is_word, text.get_mut(..1)) {
            first.make_ascii_uppercase();
        }
        Safe(Self { text })
    }

    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        let mut rest = self.text.as_str();
        while let Some((before, behind)) = rest.split_once('`') {
            let Some((code, after)) = behind.split_once('`') else { break };
            timed(before, &mut parts);
            parts.push(time(code).unwrap_or(Part::Code(code)));
            rest = after;
        }
        timed(rest, &mut parts);
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_time_is_shown_to_the_millisecond_and_exact_on_hover() {
        let at = |exact: &str, short: &str| format!("<span class=\"at\" title=\"{exact}\">{short}</span>");
        let (nano, milli) = ("2026-02-18T19:38:00.123456789Z", "2026-02-18T19:38:00.123Z");
        for (text, shown) in [
            (format!("until {nano}"), format!("until {}", at(nano, milli))),
            (
                format!("7 of 9, {nano}; `{nano}`"),
                format!("7 of 9, {}; {}", at(nano, milli), at(nano, milli)),
            ),
            (
                "at 2026-02-18T19:38:00Z.".to_owned(),
                format!("at {}.", at("2026-02-18T19:38:00Z", "2026-02-18T19:38:00Z")),
            ),
            ("on 2026-02-18, at 19:38".to_owned(), "on 2026-02-18, at 19:38".to_owned()),
        ] {
            assert_eq!(Prose::of(text.as_str()).to_string(), shown, "{text}");
        }
    }

    #[test]
    fn a_sentence_begins_with_a_capital_and_a_name_does_not() {
        for (text, shown) in [
            ("the set waits", "The set waits"),
            ("gone, for good", "Gone, for good"),
            ("`rita` said yes already", "<code>rita</code> said yes already"),
            ("hs_20260218_x does not wait", "hs_20260218_x does not wait"),
            ("log-only is the phase", "log-only is the phase"),
            ("policies/routes.json: not JSON", "policies/routes.json: not JSON"),
            ("7 of 9", "7 of 9"),
            ("éclair", "éclair"),
            ("", ""),
        ] {
            assert_eq!(Prose::sentence(text).to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_stands_between_backticks_is_code_and_all_of_it_is_text() {
        for (text, shown) in [
            ("plain", "plain"),
            ("use `human` or `harness`", "use <code>human</code> or <code>harness</code>"),
            ("one ` alone", "one ` alone"),
            ("`a` and ` alone", "<code>a</code> and ` alone"),
            ("``", "<code></code>"),
            ("`<b>` & <i>", "<code>&#60;b&#62;</code> &#38; &#60;i&#62;"),
        ] {
            assert_eq!(Prose::of(text).to_string(), shown, "{text}");
        }
    }
}
