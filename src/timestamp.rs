//! Points in time: nanoseconds of UTC, and RFC 3339 text for callers.
//!
//! The type has no `now`: time is an argument, and only `os::clock` knows what it is.

use std::fmt;

use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime, PrimitiveDateTime, Time};

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(OffsetDateTime);

impl Timestamp {
    /// Reads an RFC 3339 date-time of at most nanosecond precision, with an upper-case `T` and `Z`.
    pub fn parse(text: &str) -> Option<Self> {
        if !is_rfc3339(text.as_bytes()) {
            return None;
        }
        if let Some(utc) = read_utc(text.as_bytes()) {
            return Some(Self(utc));
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
        self.text(9).as_str().to_owned()
    }

    /// Whole seconds from `earlier` to this, rounded up, so that a limit is not stretched by a fraction.
    pub fn seconds_since(self, earlier: Self) -> i64 {
        let between = self.0 - earlier.0;
        between.whole_seconds() + i64::from(between.subsec_nanoseconds() > 0)
    }

    /// The form that execution-plane receivers take: `Z`, three fraction digits.
    pub fn to_milliseconds(self) -> String {
        self.text(3).as_str().to_owned()
    }

    /// Written with so many digits of the fraction, cut and not rounded; without a point if there are none.
    ///
    /// Ours, because a decision writes a time a dozen times, and takes longer over it with a general formatter than
    /// over its digests.
    fn text(self, fraction_digits: usize) -> Text {
        fn digits<const N: usize>(mut number: u32) -> [u8; N] {
            let mut digits = [b'0'; N];
            for digit in digits.iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
            digits
        }
        let (year, month, day) = self.0.to_calendar_date();
        let (hour, minute, second, nanosecond) = self.0.to_hms_nano();
        // Years before 0 cannot be read, and are not reached by subtracting what our limits allow.
        let [y, e, a, r] = digits(year.unsigned_abs());
        let [[month, o], [day, d], [hour, h], [minute, m], [second, s]] =
            [month.into(), day, hour, minute, second].map(|number| digits(u32::from(number)));
        let [f, r1, r2, r3, r4, r5, r6, r7, r8] = digits(nanosecond);
        let mut bytes = [
            y, e, a, r, b'-', month, o, b'-', day, d, b'T', hour, h, b':', minute, m, b':', second, s, b'.',
            f, r1, r2, r3, r4, r5, r6, r7, r8, b'Z',
        ];
        let end = if fraction_digits == 0 { 19 } else { 20 + fraction_digits.min(9) };
        if let Some(last) = bytes.get_mut(end) {
            *last = b'Z';
        }
        Text { bytes, length: end + 1 }
    }
}

/// A time as it is written.
struct Text {
    bytes: [u8; 30],
    length: usize,
}

impl Text {
    fn as_str(&self) -> &str {
        self.bytes.get(..self.length).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
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

/// Reads what ends in `Z`, which nearly every time does; nothing if it does not, or is no time.
fn read_utc(text: &[u8]) -> Option<OffsetDateTime> {
    fn number(digits: &[u8]) -> Option<u32> {
        digits.iter().try_fold(0, |number, digit| match digit {
            b'0'..=b'9' => Some(number * 10 + u32::from(digit - b'0')),
            _ => None,
        })
    }
    let two = |digits: &[u8]| number(digits).and_then(|number| u8::try_from(number).ok());
    let (start, rest) = text.strip_suffix(b"Z")?.split_first_chunk::<19>()?;
    let [y @ .., _, m1, m2, _, d1, d2, _, h1, h2, _, i1, i2, _, s1, s2] = start;
    let y: &[u8; 4] = y;
    let month = time::Month::try_from(two(&[*m1, *m2])?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(number(y)?).ok()?, month, two(&[*d1, *d2])?).ok()?;
    let fraction = rest.get(1..).unwrap_or_default();
    let nanosecond = number(fraction)? * 10_u32.pow(9 - u32::try_from(fraction.len().min(9)).ok()?);
    let time =
        Time::from_hms_nano(two(&[*h1, *h2])?, two(&[*i1, *i2])?, two(&[*s1, *s2])?, nanosecond).ok()?;
    Some(PrimitiveDateTime::new(date, time).assume_utc())
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As many digits as it takes, and not one more.
        let (mut digits, mut fraction) = (9, self.0.nanosecond());
        while digits > 0 && fraction % 10 == 0 {
            (digits, fraction) = (digits - 1, fraction / 10);
        }
        f.write_str(self.text(digits).as_str())
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

    /// The general formatter says the same, and is slower.
    #[test]
    fn a_time_is_written_as_rfc_3339_has_it() {
        let mut times: Vec<Timestamp> = ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"]
            .map(|text| Timestamp::parse(text).unwrap())
            .to_vec();
        // Steps that have no common measure with days, seconds or powers of ten.
        let step = 7_919_000_000_000_003;
        times.extend((-1_000..1_000).map(|n: i64| Timestamp::from_unix_nanoseconds(n * step)));
        times.extend(
            (0..10).map(|n| Timestamp::from_unix_nanoseconds(1_771_443_480_000_000_000 + 10_i64.pow(n))),
        );
        for time in times {
            let nine = time::macros::format_description!(
                "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:9]Z"
            );
            let three = time::macros::format_description!(
                "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z"
            );
            assert_eq!(time.to_string(), time.0.format(&Rfc3339).unwrap());
            assert_eq!(time.to_nanoseconds(), time.0.format(nine).unwrap());
            assert_eq!(time.to_milliseconds(), time.0.format(three).unwrap());
            for text in [time.to_string(), time.to_nanoseconds(), time.to_string().replace('Z', "+00:00")] {
                assert_eq!(Timestamp::parse(&text), Some(time), "{text}");
            }
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
