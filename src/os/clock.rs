//! What time it is.

use crate::timestamp::Timestamp;

#[expect(clippy::disallowed_methods, reason = "the one place that asks")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from_utc(time::OffsetDateTime::now_utc())
}

/// What is wrong with a time that no entry can have, in the same words for a whole year. The kernel keeps its clock within
/// what 64 bits of nanoseconds can tell, as the tables for searches do; a library that moves a process's clock need not.
pub(crate) fn fault(now: Timestamp) -> Option<String> {
    let text = now.to_string();
    let year = text.get(..4).unwrap_or_default();
    now.unix_nanoseconds().is_none().then(|| format!("the clock says that it is the year {year}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_no_entry_can_have_is_a_fault_of_the_clock() {
        for (text, year) in [
            ("1677-09-21T00:12:43.145224192Z", None),
            ("1677-09-21T00:12:43.145224191Z", Some("1677")),
            ("1970-01-01T00:00:00Z", None),
            ("2026-02-18T19:38:00Z", None),
            ("2262-04-11T23:47:16.854775807Z", None),
            ("2262-04-11T23:47:16.854775808Z", Some("2262")),
            ("9999-12-31T23:59:59Z", Some("9999")),
        ] {
            let expected = year.map(|year| format!("the clock says that it is the year {year}"));
            assert_eq!(fault(Timestamp::parse(text).unwrap()), expected, "{text}");
        }
        assert_eq!(fault(now()), None);
    }
}
