//! The packet's timestamp, in UTC.
//!
//! Owns reading RFC 3339 and printing the same moment with the offset `Z`. What is missing or is not RFC 3339
//! becomes the contract's fixed default: a made-up time must be recognisable and the same every time.
//!
//! Written out here because the bytes are contract: a fraction is printed with 3, 6 or 9 digits, whichever
//! is the fewest that lose nothing, and a leap second stays second 60. Date libraries print the shortest
//! fraction or have no second 60. Deliberately absent: a clock.

use std::borrow::Cow;

const DEFAULT: &str = "2023-11-16T02:00:00Z";
const MINUTES_PER_DAY: i32 = 24 * 60;
const FRACTION_DIGITS: usize = 9;

pub(super) fn utc_or_default(timestamp: Option<&str>) -> Cow<'static, str> {
    match timestamp.and_then(Moment::read) {
        Some(moment) => Cow::Owned(moment.print()),
        None => Cow::Borrowed(DEFAULT),
    }
}

/// A moment in UTC.
struct Moment {
    year: i32,
    month: i32,
    day: i32,
    minute_of_day: i32,
    second: i32,
    nanosecond: u32,
}

impl Moment {
    fn read(text: &str) -> Option<Self> {
        let mut rest = Unread(text.as_bytes());
        let year = rest.number(4)?;
        rest.one_of(b"-")?;
        let month = rest.number(2)?;
        rest.one_of(b"-")?;
        let day = rest.number(2)?;
        rest.one_of(b"Tt ")?;
        let minute_of_day = rest.hours_and_minutes()?;
        rest.one_of(b":")?;
        let second = rest.number(2)?;
        let nanosecond = if rest.one_of(b".").is_some() { rest.fraction()? } else { 0 };
        let offset_minutes = rest.offset()?;
        let exists =
            (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day) && second <= 60;
        let moment = Self { year, month, day, minute_of_day, second, nanosecond };
        (exists && rest.0.is_empty()).then(|| moment.earlier_by(offset_minutes))
    }

    /// Less than a day earlier or later.
    fn earlier_by(mut self, minutes: i32) -> Self {
        self.minute_of_day -= minutes;
        if self.minute_of_day < 0 {
            self.minute_of_day += MINUTES_PER_DAY;
            self.day -= 1;
            if self.day == 0 {
                (self.year, self.month) =
                    if self.month == 1 { (self.year - 1, 12) } else { (self.year, self.month - 1) };
                self.day = days_in_month(self.year, self.month);
            }
        } else if self.minute_of_day >= MINUTES_PER_DAY {
            self.minute_of_day -= MINUTES_PER_DAY;
            self.day += 1;
            if self.day > days_in_month(self.year, self.month) {
                (self.year, self.month) =
                    if self.month == 12 { (self.year + 1, 1) } else { (self.year, self.month + 1) };
                self.day = 1;
            }
        }
        self
    }

    fn print(&self) -> String {
        let mut text = String::with_capacity("2023-11-16T02:00:00.123456789Z".len());
        // A year that the offset moved out of four digits carries its sign, as ISO 8601 wants it.
        match self.year {
            0..=9999 => {}
            ..0 => text.push('-'),
            _ => text.push('+'),
        }
        push_number(&mut text, self.year.unsigned_abs(), if self.year > 9999 { 5 } else { 4 });
        for (before, number) in [
            ('-', self.month),
            ('-', self.day),
            ('T', self.minute_of_day / 60),
            (':', self.minute_of_day % 60),
            (':', self.second),
        ] {
            text.push(before);
            push_number(&mut text, number.unsigned_abs(), 2);
        }
        let (fraction, digits) = match self.nanosecond {
            0 => (0, 0),
            n if n % 1_000_000 == 0 => (n / 1_000_000, 3),
            n if n % 1_000 == 0 => (n / 1_000, 6),
            n => (n, 9),
        };
        if digits > 0 {
            text.push('.');
            push_number(&mut text, fraction, digits);
        }
        text.push('Z');
        text
    }
}

/// Appends the last so many decimal digits.
fn push_number(text: &mut String, number: u32, digits: u32) {
    text.extend((0..digits).rev().filter_map(|place| char::from_digit(number / 10_u32.pow(place) % 10, 10)));
}

/// What has not been read yet. Each method takes its piece off the front, or answers `None`.
struct Unread<'t>(&'t [u8]);

impl Unread<'_> {
    fn number(&mut self, digits: usize) -> Option<i32> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        number.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i32::from(digit - b'0'))
        })
    }

    fn one_of(&mut self, wanted: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        wanted.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }

    /// A time of day, or an offset, which has the same range; in minutes.
    fn hours_and_minutes(&mut self) -> Option<i32> {
        let hours = self.number(2)?;
        self.one_of(b":")?;
        let minutes = self.number(2)?;
        (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
    }

    /// The digits after the point as nanoseconds. Those past the ninth are dropped.
    fn fraction(&mut self) -> Option<u32> {
        let length = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let padded = digits.iter().chain(std::iter::repeat(&b'0')).take(FRACTION_DIGITS);
        (length > 0).then(|| padded.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')))
    }

    /// How many minutes the zone is ahead of UTC.
    fn offset(&mut self) -> Option<i32> {
        if self.one_of(b"Zz").is_some() {
            return Some(0);
        }
        // The reference adapter takes the minus sign of typesetters as well.
        if let Some(rest) = self.0.strip_prefix("\u{2212}".as_bytes()) {
            self.0 = rest;
            return Some(-self.hours_and_minutes()?);
        }
        let sign = if self.one_of(b"+-")? == b'-' { -1 } else { 1 };
        Some(sign * self.hours_and_minutes()?)
    }
}

fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sent: &str, emitted: &str) {
        assert_eq!(utc_or_default(Some(sent)), emitted, "`{sent}`");
    }

    #[test]
    fn a_timestamp_is_emitted_in_utc() {
        check("2026-03-01T08:30:00Z", "2026-03-01T08:30:00Z");
        check("2026-03-01t08:30:00z", "2026-03-01T08:30:00Z");
        check("2026-03-01 08:30:00Z", "2026-03-01T08:30:00Z");
        check("2026-03-01T10:30:00+02:00", "2026-03-01T08:30:00Z");
        check("2026-03-01T08:30:00-00:00", "2026-03-01T08:30:00Z");
        check("2026-03-01T00:30:00+01:00", "2026-02-28T23:30:00Z");
        check("2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00Z");
        check("2026-01-01T00:00:00+23:59", "2025-12-31T00:01:00Z");
        check("2025-12-31T23:00:00-05:30", "2026-01-01T04:30:00Z");
        check("2016-12-31T23:59:60Z", "2016-12-31T23:59:60Z");
        check("2026-03-01T06:30:00\u{2212}02:00", "2026-03-01T08:30:00Z");
        check("0000-01-01T00:00:00+00:01", "-0001-12-31T23:59:00Z");
        check("9999-12-31T23:59:59-00:01", "+10000-01-01T00:00:59Z");
    }

    #[test]
    fn a_fraction_has_three_six_or_nine_digits() {
        check("2026-03-01T08:30:00.1Z", "2026-03-01T08:30:00.100Z");
        check("2026-03-01T08:30:00.120Z", "2026-03-01T08:30:00.120Z");
        check("2026-03-01T08:30:00.1234Z", "2026-03-01T08:30:00.123400Z");
        check("2026-03-01T08:30:00.1234567Z", "2026-03-01T08:30:00.123456700Z");
        check("2026-03-01T08:30:00.0000000019Z", "2026-03-01T08:30:00.000000001Z");
        check("2026-03-01T08:30:00.000Z", "2026-03-01T08:30:00Z");
    }

    #[test]
    fn what_is_not_rfc_3339_becomes_the_default() {
        assert_eq!(utc_or_default(None), DEFAULT);
        for other in [
            "",
            "yesterday",
            "2026-03-01",
            "2026-03-01T08:30:00",
            "2026-03-01T08:30Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-03-00T00:00:00Z",
            "2026-03-01T24:00:00Z",
            "2026-03-01T08:60:00Z",
            "2026-03-01T08:30:61Z",
            "2026-03-01T08:30:00.Z",
            "2026-03-01T08:30:00,5Z",
            "2026-03-01T08:30:00+2:00",
            "2026-03-01T08:30:00+0200",
            "2026-03-01T08:30:00+24:00",
            "2026-03-01T08:30:00+02:60",
            "2026-03-01T08:30:00ZZ",
            " 2026-03-01T08:30:00Z",
            "+2026-03-01T08:30:00Z",
            "1700000000",
            "2026-03-01T08:30:0０Z",
        ] {
            check(other, DEFAULT);
        }
    }
}
