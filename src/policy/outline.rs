//! The sections of a Markdown document: what it says it is about, without its text.
//!
//! A plan may be a document. Whether it says what a plan must say can be told from its headings, and those are a few
//! hundred bytes where the document may be a mebibyte. Only `#` headings count, and none inside a fenced block.

use crate::limits;

/// A section of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub heading: String,
    /// Is there anything below the heading, or below one of its own subheadings?
    pub has_text: bool,
}

/// The sections of a document, in order; at most [`limits::OUTLINE_HEADINGS_MAX`].
pub fn outline(document: &[u8]) -> Vec<Section> {
    let document = String::from_utf8_lossy(document);
    let mut sections: Vec<Section> = Vec::new();
    // The sections that the line we are at stands in: each is an index and its level.
    let mut around: Vec<(usize, usize)> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in document.lines() {
        let text = line.trim();
        if let Some(open) = fence {
            if text.starts_with(open) {
                fence = None;
            }
        } else if let Some(open) = ["```", "~~~"].into_iter().find(|open| text.starts_with(open)) {
            fence = Some(open);
        } else if let Some((level, heading)) = heading(line) {
            around.retain(|(_, outer)| *outer < level);
            if sections.len() == limits::OUTLINE_HEADINGS_MAX {
                break;
            }
            around.push((sections.len(), level));
            let heading = heading.chars().take(limits::OUTLINE_HEADING_CHARS_MAX).collect();
            sections.push(Section { heading, has_text: false });
            continue;
        }
        if !text.is_empty() {
            for (at, _) in &around {
                if let Some(section) = sections.get_mut(*at) {
                    section.has_text = true;
                }
            }
        }
    }
    sections
}

/// The level and the words of a heading: up to three spaces, one to six `#`, a space.
fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > 3 {
        return None;
    }
    let words = text.trim_start_matches('#');
    let level = text.len() - words.len();
    let is_heading = (1..=6).contains(&level) && (words.is_empty() || words.starts_with([' ', '\t']));
    is_heading.then(|| (level, words.trim().trim_end_matches('#').trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_known_by_its_headings_and_whether_something_stands_below_them() {
        let check = |document: &str, expected: &str| {
            let found: Vec<String> = outline(document.as_bytes())
                .into_iter()
                .map(|Section { heading, has_text }| heading + if has_text { "+" } else { "-" })
                .collect();
            assert_eq!(found.join(" | "), expected, "{document}");
        };
        check("# One\ntext\n## Two ##\n\n# Three\n", "One+ | Two- | Three-");
        check("## Outer\n### Inner\ntext\n## Next", "Outer+ | Inner+ | Next-");
        check("```sh\n# a comment\n```\n# Real\n~~~\n# no\n~~~", "Real+");
        check("#hash\n    # code\n####### seven\n#\n", "-");
        check("Setext\n======\n", "");
        check("", "");
    }

    #[test]
    fn an_outline_is_bounded_whatever_the_document_is() {
        let long = format!("# {}\n", "x".repeat(10_000)).repeat(limits::OUTLINE_HEADINGS_MAX + 50);
        let found = outline(long.as_bytes());
        assert_eq!(found.len(), limits::OUTLINE_HEADINGS_MAX);
        assert!(
            found.iter().all(|section| section.heading.chars().count() == limits::OUTLINE_HEADING_CHARS_MAX)
        );
        assert_eq!(outline(&[0xff, b'#', b' ', b'x']), []);
    }
}
