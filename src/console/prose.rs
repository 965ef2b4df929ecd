//! Sentences in which a name or a value stands between backticks, as a page shows them.

use askama::Template;
use askama::filters::HtmlSafe;

/// A text whose parts between backticks are code. A backtick without a partner is itself.
#[derive(Debug, Template)]
#[template(
    source = "{% for (is_code, part) in self.parts() %}{% if is_code %}<code>{{ part }}</code>{% else %}{{ part }}{% endif %}{% endfor %}",
    ext = "html"
)]
pub(super) struct Prose {
    text: String,
}

impl HtmlSafe for Prose {}

impl Prose {
    pub(super) fn of(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The same as a sentence of its own: answers of the API begin small. A name, an id or a path is left as it is.
    pub(super) fn sentence(text: impl Into<String>) -> Self {
        let mut text = text.into();
        let word = text.split([' ', '\n', ',', ':', ';']).next().unwrap_or_default();
        let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'\'');
        if let (true, Some(first)) = (is_word, text.get_mut(..1)) {
            first.make_ascii_uppercase();
        }
        Self { text }
    }

    fn parts(&self) -> Vec<(bool, &str)> {
        let mut parts = Vec::new();
        let mut rest = self.text.as_str();
        while let Some((before, behind)) = rest.split_once('`') {
            let Some((code, after)) = behind.split_once('`') else { break };
            parts.extend([(false, before), (true, code)]);
            rest = after;
        }
        parts.push((false, rest));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
