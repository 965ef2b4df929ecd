//! Does a double give this number back?
//!
//! RFC 8785 prints every number as ECMAScript would, so a number survives only if the decimal that is
//! printed for its double is the decimal that was written: `100.0` does (it is 100), `9007199254740993`
//! and `0.10000000000000000001` do not.

/// `None` if `text` survives; otherwise what a reader of the canonical form would see.
pub(super) fn what_is_kept_instead(text: &str) -> Option<String> {
    let Ok(double) = text.parse::<f64>() else { return Some("nothing".into()) };
    if !double.is_finite() {
        return Some("infinity".into());
    }
    let mut buffer = ryu_js::Buffer::new();
    let kept = buffer.format_finite(double);
    (Decimal::of(text) != Decimal::of(kept)).then(|| kept.to_owned())
}

/// A decimal as its significant digits and the power of ten of the last one.
#[derive(PartialEq, Eq)]
struct Decimal {
    digits: Vec<u8>,
    exponent: i64,
    negative: bool,
}

impl Decimal {
    fn of(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            // An exponent beyond i64 is beyond any double too; the parse above said so already.
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().unwrap_or(i64::MIN / 2)),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let mut exponent = exponent - i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent += 1;
        }
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros);
        if digits.is_empty() {
            return Self { digits, exponent: 0, negative: false };
        }
        Self { digits, exponent, negative }
    }
}
