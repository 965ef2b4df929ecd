//! How a text that somebody else wrote is shown: so that nothing in it is hidden.
//!
//! Two rings. [`Visible`] is what templates escape with, so that no page can forget it: markup becomes text, and a
//! character that can make a text read as another one becomes its number, as in messages (`json::is_hidden`).
//! [`Shown`] is what a page shows of a value: white space that a browser would swallow is there to see, too, and a
//! value that had something hidden in it says so in a word.

use std::fmt::{self, Write};

use askama::Template;
use askama::filters::{Escaper, Html, Safe};

use crate::json::{escaped, is_hidden};

/// What a template of its own has escaped already.
pub(super) type Markup<T> = Safe<T>;

/// The escaper of all pages. Breaks of lines and tabs are left to the layout.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, mut dest: W, string: &str) -> fmt::Result {
        let is_odd = |c: char| !matches!(c, '\n' | '\t') && is_hidden(c);
        let mut rest = string;
        while let Some(place) = rest.find(is_odd) {
            let (before, behind) = rest.split_at(place);
            Html.write_escaped_str(&mut dest, before)?;
            let mut chars = behind.chars();
            if let Some(odd) = chars.next() {
                dest.write_str(&escaped(odd))?;
            }
            rest = chars.as_str();
        }
        Html.write_escaped_str(dest, rest)
    }
}

/// A value as a page shows it, with a word beside it if something in it was hidden.
#[derive(Debug, Template)]
#[template(source = "{{ self.letters() }}{{ self.mark() }}", ext = "html")]
pub(super) struct Shown {
    text: String,
    is_quoted: bool,
}

impl Shown {
    pub(super) fn of(text: impl Into<String>) -> Markup<Self> {
        Safe(Self { text: text.into(), is_quoted: false })
    }

    fn letters(&self) -> Markup<Letters<'_>> {
        Letters::of(&self.text, self.is_quoted)
    }

    fn mark(&self) -> Markup<Mark> {
        Mark::of(&self.text)
    }
}

/// Letter by letter: what would not be seen is set apart and written out.
#[derive(Debug, Template)]
#[template(
    source = r#"{% if is_quoted %}"{% endif %}{% for part in self.parts() %}{% match part %}{% when Part::Plain with (text) %}{{ text }}{% when Part::Odd with (text) %}<span class="odd">{{ text }}</span>{% endmatch %}{% endfor %}{% if is_quoted %}"{% endif %}"#,
    ext = "html"
)]
pub(super) struct Letters<'t> {
    text: &'t str,
    /// As a string of a document: a quote in it is none that ends it.
    is_quoted: bool,
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Plain(String),
    Odd(String),
}

impl<'t> Letters<'t> {
    pub(super) fn of(text: &'t str, is_quoted: bool) -> Markup<Self> {
        Safe(Self { text, is_quoted })
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = self.text;
        while let Some(c) = rest.chars().next() {
            let spaces = rest.len() - rest.trim_start_matches(' ').len();
            let is_edge = rest.len() == self.text.len() || rest.len() == spaces;
            // One space is seen between letters and quotes; of several a browser shows one, and none at an edge.
            let is_swallowed = spaces > 1 || (spaces == 1 && is_edge && !self.is_quoted);
            let taken = if is_swallowed { spaces } else { c.len_utf8() };
            let odd = match c {
                ' ' if is_swallowed => Some(blanks(spaces)),
                '\n' => Some("\\n".to_owned()),
                '\r' => Some("\\r".to_owned()),
                '\t' => Some("\\t".to_owned()),
                c if is_hidden(c) => Some(escaped(c)),
                _ => None,
            };
            match odd {
                Some(odd) => {
                    if !plain.is_empty() {
                        parts.push(Part::Plain(std::mem::take(&mut plain)));
                    }
                    parts.push(Part::Odd(odd));
                }
                None => {
                    if self.is_quoted && matches!(c, '"' | '\\') {
                        plain.push('\\');
                    }
                    plain.push(c);
                }
            }
            rest = rest.get(taken..).unwrap_or_default();
        }
        if !plain.is_empty() {
            parts.push(Part::Plain(plain));
        }
        parts
    }
}

/// So many spaces, so that they can be counted.
fn blanks(count: usize) -> String {
    const DRAWN_MAX: usize = 8;
    if count <= DRAWN_MAX { "\u{2423}".repeat(count) } else { format!("\u{2423}×{count}") }
}

/// A word beside a text that had something hidden in it; nothing beside any other.
#[derive(Debug, Template)]
#[template(
    source = r#"{% if !numbers.is_empty() %} <span class="tag tag-warn hidden" title="Not seen without help, and written out here: {{ numbers }}">hidden characters</span>{% endif %}"#,
    ext = "html"
)]
pub(super) struct Mark {
    numbers: String,
}

impl Mark {
    pub(super) fn of(text: &str) -> Markup<Self> {
        const NAMED_MAX: usize = 8;
        let mut found: Vec<char> = Vec::new();
        for c in text.chars().filter(|c| !matches!(c, '\n' | '\r' | '\t') && is_hidden(*c)) {
            if !found.contains(&c) {
                found.push(c);
            }
            if found.len() > NAMED_MAX {
                break;
            }
        }
        let mut words: Vec<String> =
            found.iter().take(NAMED_MAX).map(|c| format!("U+{:04X}", u32::from(*c))).collect();
        if found.len() > NAMED_MAX {
            words.push("and others".to_owned());
        }
        Safe(Self { numbers: words.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(text: &str, is_quoted: bool) -> String {
        Letters::of(text, is_quoted).to_string()
    }

    fn odd(text: &str) -> String {
        format!("<span class=\"odd\">{text}</span>")
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        for (text, shown) in [
            ("USDC", "USDC".to_owned()),
            ("US\u{200b}DC", format!("US{}DC", odd(r"\u{200b}"))),
            ("\u{202e}CDSU\u{202c}", format!("{}CDSU{}", odd(r"\u{202e}"), odd(r"\u{202c}"))),
            ("a\0b", format!("a{}b", odd(r"\u{0}"))),
            ("US  DC\n(true)", format!("US{}DC{}(true)", odd("␣␣"), odd(r"\n"))),
            (" a b\t", format!("{}a b{}", odd("␣"), odd(r"\t"))),
            ("a ", format!("a{}", odd("␣"))),
            ("<b>\r", format!("&#60;b&#62;{}", odd(r"\r"))),
            ("", String::new()),
        ] {
            assert_eq!(letters(text, false), shown, "{text:?}");
        }
        assert_eq!(letters(&format!("a{}b", " ".repeat(200)), false), format!("a{}b", odd("␣×200")));
    }

    #[test]
    fn a_string_of_a_document_ends_where_its_quote_is() {
        for (text, shown) in [
            ("100", r#""100""#.to_owned()),
            (" a ", r#"" a ""#.to_owned()),
            (r#"a", to: "b\"#, r#""a\&#34;, to: \&#34;b\\""#.to_owned()),
            ("a\nto: b", format!("\"a{}to: b\"", odd(r"\n"))),
            ("", r#""""#.to_owned()),
        ] {
            assert_eq!(letters(text, true), shown, "{text:?}");
        }
    }

    #[test]
    fn a_value_says_in_a_word_that_something_was_hidden() {
        assert_eq!(Mark::of("plain text\nwith a second line and  spaces").to_string(), "");
        let marked = Shown::of("US\u{200b}D\u{200b}C\u{202e}").to_string();
        assert!(marked.ends_with(">hidden characters</span>"), "{marked}");
        assert!(
            marked.contains("title=\"Not seen without help, and written out here: U+200B, U+202E\""),
            "{marked}"
        );
    }

    #[test]
    fn no_template_can_forget_it() {
        #[derive(Template)]
        #[template(source = "<p title=\"{{ text }}\">{{ text }}</p>", ext = "html")]
        struct Page<'t> {
            text: &'t str,
        }
        let page = Page { text: "\"<\u{202e}a\0\u{200b}\n" }.to_string();
        let text = "&#34;&#60;\\u{202e}a\\u{0}\\u{200b}\n";
        assert_eq!(page, format!("<p title=\"{text}\">{text}</p>"));
    }
}
