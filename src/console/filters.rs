//! The filters of a list: what somebody typed, what the API is asked for, and what is wrong with it.
//!
//! Whether a value is right is the API's to say, by the same table as over HTTP. What is wrong is told beside its
//! field, and the form comes back as it was filled in: a slip in one field costs nobody the others.

use super::form::{Fields, query};
use super::prose::Prose;
use super::shown::Markup;
use crate::http::fault_of;
use crate::timestamp::Timestamp;

/// What a decision can be.
pub(super) const DECISIONS: [&str; 4] = ["allowed", "needs_approval", "denied", "expired"];

/// A filter as it came.
#[derive(Debug)]
struct Filter {
    name: &'static str,
    /// As somebody typed it; empty if they did not.
    typed: String,
    /// As the API takes it.
    asked: String,
    /// What is wrong with it, in words.
    wrong: Option<String>,
}

/// The filters of one list, in the order of its form.
#[derive(Debug)]
pub(super) struct Filters(Vec<Filter>);

impl Filters {
    /// What the address says, as parameters of this operation.
    pub(super) fn read(operation: &'static str, names: &[&'static str], fields: &Fields) -> Self {
        let filter = |name: &&'static str| {
            let typed = fields.text(name).to_owned();
            let is_time = matches!(*name, "from" | "to");
            let asked = if is_time { time(&typed) } else { typed.clone() };
            let wrong = match asked.is_empty() {
                true => None,
                false => fault_of(operation, name, &asked).map(|problem| match is_time {
                    true => "not a time, such as 2026-02-18 or 2026-02-18 19:38".to_owned(),
                    false => problem.detail().to_owned(),
                }),
            };
            Filter { name, typed, asked, wrong }
        };
        Self(names.iter().map(filter).collect())
    }

    /// Marks what only a look-up could find out.
    pub(super) fn refuse(&mut self, name: &str, why: &str) {
        for filter in self.0.iter_mut().filter(|filter| filter.name == name) {
            filter.wrong = Some(why.to_owned());
        }
    }

    fn find(&self, name: &str) -> Option<&Filter> {
        self.0.iter().find(|filter| filter.name == name)
    }

    /// What was typed.
    pub(super) fn given(&self, name: &str) -> &str {
        self.find(name).map_or("", |filter| &filter.typed)
    }

    pub(super) fn is(&self, name: &str, word: &str) -> bool {
        self.given(name) == word
    }

    /// Is it none of the words that the form offers? It is shown all the same.
    pub(super) fn is_odd(&self, name: &str, words: &[&str]) -> bool {
        let given = self.given(name);
        !given.is_empty() && !words.contains(&given)
    }

    /// What is wrong with it; empty if nothing is.
    pub(super) fn wrong(&self, name: &str) -> &str {
        self.find(name).and_then(|filter| filter.wrong.as_deref()).unwrap_or_default()
    }

    /// The same, with names and values set apart.
    pub(super) fn wrong_prose(&self, name: &str) -> Markup<Prose> {
        Prose::of(self.wrong(name))
    }

    /// Is this the first that is wrong? There the cursor is put.
    pub(super) fn is_first_wrong(&self, name: &str) -> bool {
        self.0.iter().find(|filter| filter.wrong.is_some()).is_some_and(|filter| filter.name == name)
    }

    pub(super) fn are_right(&self) -> bool {
        self.0.iter().all(|filter| filter.wrong.is_none())
    }

    pub(super) fn is_any(&self) -> bool {
        self.0.iter().any(|filter| !filter.typed.is_empty())
    }

    /// Those that are given, as the API takes them.
    pub(super) fn query(&self) -> String {
        let given = self.0.iter().filter(|filter| !filter.asked.is_empty());
        query(given.map(|filter| (filter.name, filter.asked.as_str())))
    }

    /// Those that are right, as they were typed.
    pub(super) fn right(&self) -> String {
        let right = self.0.iter().filter(|filter| !filter.typed.is_empty() && filter.wrong.is_none());
        query(right.map(|filter| (filter.name, filter.typed.as_str())))
    }
}

/// A time as people write it: in UTC unless it says otherwise, and a day is its beginning. What cannot be understood
/// is left as it is.
fn time(typed: &str) -> String {
    let candidates =
        [typed.to_owned(), format!("{typed}Z"), format!("{typed}:00Z"), format!("{typed}T00:00:00Z")];
    let with_t = |text: String| text.replacen(' ', "T", 1).to_uppercase();
    let found = candidates.into_iter().map(with_t).find(|text| Timestamp::parse(text).is_some());
    found.unwrap_or_else(|| typed.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["decision", "agent", "code", "from", "to"];

    fn read(text: &str) -> Filters {
        Filters::read("listHandoffs", &NAMES, &Fields::read(text).unwrap())
    }

    #[test]
    fn a_time_is_taken_as_people_write_it() {
        for (typed, asked) in [
            ("2026-02-18", "2026-02-18T00:00:00Z"),
            ("2026-02-18 19:38", "2026-02-18T19:38:00Z"),
            ("2026-02-18T19:38", "2026-02-18T19:38:00Z"),
            ("2026-02-18 19:38:07", "2026-02-18T19:38:07Z"),
            ("2026-02-18t19:38:07z", "2026-02-18T19:38:07Z"),
            ("2026-02-18T19:38:07.5+02:00", "2026-02-18T19:38:07.5+02:00"),
            ("yesterday", "yesterday"),
            ("2026-02-30", "2026-02-30"),
            ("19:38", "19:38"),
            ("", ""),
        ] {
            assert_eq!(time(typed), asked);
        }
    }

    #[test]
    fn a_slip_in_one_field_is_told_there_and_costs_nobody_the_others() {
        let filters = read("decision=denied&agent=a%20b&from=2026-02-30&to=2026-03-01");
        assert!(!filters.are_right() && filters.is_any());
        assert!(filters.wrong("from").starts_with("not a time, "), "{filters:?}");
        assert_eq!((filters.wrong("to"), filters.wrong("agent"), filters.wrong("nothing")), ("", "", ""));
        assert!(filters.is_first_wrong("from") && !filters.is_first_wrong("to"));
        for (name, typed) in [("decision", "denied"), ("agent", "a b"), ("from", "2026-02-30"), ("code", "")]
        {
            assert_eq!(filters.given(name), typed);
        }
        assert_eq!(filters.right(), "decision=denied&agent=a%20b&to=2026-03-01");
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once_in_the_words_of_the_api() {
        let filters = read("decision=perhaps&to=never");
        assert_eq!(filters.wrong("decision"), "expected one of allowed, denied, expired, needs_approval");
        assert!(DECISIONS.iter().all(|word| filters.wrong("decision").contains(word)));
        assert!(!filters.wrong("to").is_empty() && filters.is_first_wrong("decision"));
        assert!(filters.is_odd("decision", &["allowed"]) && !filters.is_odd("code", &["allowed"]));
    }

    #[test]
    fn what_is_right_is_asked_for_as_the_api_takes_it() {
        let mut filters = read("agent=crypto-sage&from=2026-02-18&code=");
        assert!(filters.are_right());
        assert_eq!(filters.query(), "agent=crypto-sage&from=2026-02-18T00%3A00%3A00Z");
        assert_eq!(filters.right(), "agent=crypto-sage&from=2026-02-18");
        filters.refuse("agent", "there is none");
        assert!(!filters.are_right());
        assert!(read("").are_right() && !read("").is_any());
    }
}
