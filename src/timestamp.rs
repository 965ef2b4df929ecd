//! Points in time: nanoseconds of UTC, and RFC 3339 text for callers.
//!
//! The type has no `now`: time is an argument, and only `os::clock` knows what it is.

use std::fmt;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(OffsetDateTime);

impl Timestamp {
    /// Reads an RFC 3339 date-time of at most nanosecond precision, with an upper-case `T` and `Z`.
    pub fn parse(text: &str) -> Option<Self> {
        if !is_rfc3339(text.as_bytes()) {
            return None;
        }
        let parsed = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        let utc = parsed.checked_to_offset(time::UtcOffset::UTC)?;
        // An offset can push the year out of what RFC 3339 can write.
        (0..=9999).contains(&utc.year()).then_some(Self(utc))
    }

    pub(crate) fn from_utc(instant: OffsetDateTime) -> Self {
        Self(instant.to_offset(time::UtcOffset::UTC))
    }

    /// This point in time moved by whole seconds; the end of time if it lies beyond.
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(time::Duration::seconds(seconds)))
    }

    /// The next point in time that can be told apart.
    pub fn plus_nanosecond(self) -> Self {
        Self(self.0.saturating_add(time::Duration::NANOSECOND))
    }

    /// Milliseconds since 1970; 0 before that.
    pub fn unix_milliseconds(self) -> u64 {
        u64::try_from(self.0.unix_timestamp_nanos() / 1_000_000).unwrap_or(0)
    }

    /// Nanoseconds since 1970; nothing for a time that 64 bits cannot tell (before 1678, after 2261).
    pub fn unix_nanoseconds(self) -> Option<i64> {
        i64::try_from(self.0.unix_timestamp_nanos()).ok()
    }

    /// The point in time that many nanoseconds after 1970.
    pub fn from_unix_nanoseconds(nanoseconds: i64) -> Self {
        // 64 bits of nanoseconds stay within a few centuries of 1970; the fall-back only satisfies totality.
        let instant = OffsetDateTime::from_unix_timestamp_nanos(i128::from(nanoseconds));
        Self(instant.unwrap_or(OffsetDateTime::UNIX_EPOCH))
    }

    /// The form of the ledger: `Z`, nine fraction digits, so that texts sort as times do.
    pub fn to_nanoseconds(self) -> String {
        const FORMAT: &[time::format_description::BorrowedFormatItem<'_>] = time::macros::format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:9]Z"
        );
        self.0.format(FORMAT).unwrap_or_default()
    }

    /// Whole seconds from `earlier` to this, rounded up, so that a limit is not stretched by a fraction.
    pub fn seconds_since(self, earlier: Self) -> i64 {
        let between = self.0 - earlier.0;
        between.whole_seconds() + i64::from(between.subsec_nanoseconds() > 0)
    }

    /// The form that execution-plane receivers take: `Z`, three fraction digits.
    pub fn to_milliseconds(self) -> String {
        const FORMAT: &[time::format_description::BorrowedFormatItem<'_>] = time::macros::format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z"
        );
        self.0.format(FORMAT).unwrap_or_default()
    }
}

/// `YYYY-MM-DDThh:mm:ss[.1-9 digits](Z|+hh:mm|-hh:mm)`; whether the day exists is the parser's to say.
fn is_rfc3339(text: &[u8]) -> bool {
    let Some((start, rest)) = text.split_first_chunk::<19>() else { return false };
    let separators =
        matches!(start, [_, _, _, _, b'-', _, _, b'-', _, _, b'T', _, _, b':', _, _, b':', b'0'..=b'5', _]);
    let rest = match rest.split_first() {
        Some((b'.', fraction)) => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !(1..=9).contains(&digits) {
                return false;
            }
            fraction.get(digits..).unwrap_or_default()
        }
        _ => rest,
    };
    separators && matches!(rest, [b'Z'] | [b'+' | b'-', _, _, b':', _, _])
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.format(&Rfc3339).map_err(|_| fmt::Error)?)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'d> serde::Deserialize<'d> for Timestamp {
    fn deserialize<D: serde::Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an RFC 3339 date-time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3339_is_read_exactly() {
        for (text, utc) in [
            ("2026-02-18T19:31:00Z", Some("2026-02-18T19:31:00Z")),
            ("2026-02-18T21:31:00.5+02:00", Some("2026-02-18T19:31:00.5Z")),
            ("2024-02-29T00:00:00.123456789Z", Some("2024-02-29T00:00:00.123456789Z")),
            ("0000-01-01T00:00:00+23:59", None),
            ("2026-02-29T00:00:00Z", None),
            ("2026-02-18T19:31:60Z", None),
            ("2026-02-18T24:00:00Z", None),
            ("2026-02-18t19:31:00Z", None),
            ("2026-02-18T19:31:00z", None),
            ("2026-02-18 19:31:00Z", None),
            ("2026-02-18T19:31:00", None),
            ("2026-02-18T19:31:00.Z", None),
            ("2026-02-18T19:31:00.1234567890Z", None),
            ("2026-02-18T19:31:00+0200", None),
            ("2026-02-18T19:31:00+24:00", None),
            ("2026-02-18", None),
            ("", None),
        ] {
            assert_eq!(Timestamp::parse(text).map(|t| t.to_string()).as_deref(), utc, "{text}");
        }
    }

    #[test]
    fn a_fraction_counts_as_a_whole_second_against_a_limit() {
        let at = |text| Timestamp::parse(text).unwrap();
        assert_eq!(at("2026-01-01T00:10:00Z").seconds_since(at("2026-01-01T00:00:00Z")), 600);
        assert_eq!(at("2026-01-01T00:10:00.1Z").seconds_since(at("2026-01-01T00:00:00Z")), 601);
        assert_eq!(at("2026-01-01T00:00:00Z").to_milliseconds(), "2026-01-01T00:00:00.000Z");
    }
}
