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
