//! What the look-ups of claims rest on, as one number. SQLite keeps no checksums: one flipped bit or one lost row, and
//! something would be decided twice.
//!
//! Each row that a look-up reads is a term of a sum, which the row `applied` keeps. Whoever changes a row takes its term away
//! and puts the new one in, in the same transaction; a start computes the sum anew from the rows (`names.rs`). As a sum, it
//! depends neither on the order of the rows nor on how entries were batched.
//!
//! It is there against chance: 64 bits miss one damage in 10^19, and whoever can write the file can write the number, too.

use rusqlite::types::ValueRef;

/// Of all terms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum(u64);

/// Of one row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Term(u64);

/// Whose row it is: the same values in another table are another term.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of {
    Word = 1,
    Correlation,
    Handoff,
    Attempt,
    Message,
    Asked,
    /// In an index: a name, and the row that it leads to.
    Name,
}

impl Sum {
    /// SQLite's numbers have a sign.
    pub(super) fn from_column(number: i64) -> Self {
        Self(number.cast_unsigned())
    }

    pub(super) fn to_column(self) -> i64 {
        self.0.cast_signed()
    }

    pub(super) fn put(&mut self, term: Term) {
        self.0 = self.0.wrapping_add(term.0);
    }

    pub(super) fn take(&mut self, term: Term) {
        self.0 = self.0.wrapping_sub(term.0);
    }

    pub(super) fn add(&mut self, change: Self) {
        self.0 = self.0.wrapping_add(change.0);
    }

    /// Rows that came to `before` come to `now`.
    pub(super) fn replace(&mut self, before: Self, now: Self) {
        self.0 = self.0.wrapping_sub(before.0).wrapping_add(now.0);
    }
}

/// An odd number whose bits follow no order.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Term {
    pub(super) fn new(of: Of) -> Self {
        Self(FACTOR.wrapping_mul(of as u64))
    }

    pub(super) fn of<'v>(of: Of, values: impl IntoIterator<Item = ValueRef<'v>>) -> Self {
        values.into_iter().fold(Self::new(of), Self::with)
    }

    /// Takes the next value in. What it begins with tells of which kind and how long it is, so that no other values have
    /// the same words.
    pub(super) fn with(self, value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => self.word(0),
            ValueRef::Integer(number) => self.word(1).word(number.cast_unsigned()),
            ValueRef::Real(number) => self.word(2).word(number.to_bits()),
            ValueRef::Text(bytes) => self.word(3).bytes(bytes),
            ValueRef::Blob(bytes) => self.word(4).bytes(bytes),
        }
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        let term = self.word(bytes.len() as u64);
        let term = words.iter().fold(term, |term, word| term.word(u64::from_le_bytes(*word)));
        let last = rest.iter().rev().fold(0, |last, byte| (last << 8) | u64::from(*byte));
        if rest.is_empty() { term } else { term.word(last) }
    }

    /// Both halves of a product: each bit of the word changes about half of the bits of the next one.
    fn word(self, word: u64) -> Self {
        let product = u128::from(self.0 ^ word) * u128::from(FACTOR);
        Self((product as u64).rotate_left(29) ^ (product >> 64) as u64)
    }
}

pub(super) fn number(number: Option<i64>) -> ValueRef<'static> {
    number.map_or(ValueRef::Null, ValueRef::Integer)
}

pub(super) fn text(text: Option<&str>) -> ValueRef<'_> {
    text.map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn term(values: &[ValueRef<'_>]) -> u64 {
        Term::of(Of::Handoff, values.iter().copied()).0
    }

    #[test]
    fn every_bit_and_every_place_counts() {
        let name = b"hs_20260218_router_0001".to_vec();
        let mut terms = HashSet::new();
        let mut is_new = |term| assert!(terms.insert(term));
        is_new(term(&[ValueRef::Text(&name), ValueRef::Integer(7)]));
        for bit in 0..name.len() * 8 {
            let mut other = name.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            is_new(term(&[ValueRef::Text(&other), ValueRef::Integer(7)]));
        }
        for bit in 0..64 {
            is_new(term(&[ValueRef::Text(&name), ValueRef::Integer(7 ^ (1 << bit))]));
        }
        is_new(term(&[ValueRef::Integer(7), ValueRef::Text(&name)]));
        is_new(term(&[ValueRef::Blob(&name), ValueRef::Integer(7)]));
        is_new(term(&[ValueRef::Text(&name), ValueRef::Null]));
        is_new(term(&[ValueRef::Text(&[]), ValueRef::Null]));
        is_new(term(&[ValueRef::Null, ValueRef::Null]));
        is_new(term(&[ValueRef::Text(&name[..8]), ValueRef::Text(&name[8..])]));
        is_new(term(&[ValueRef::Text(&name[..9]), ValueRef::Text(&name[9..])]));
        is_new(Term::of(Of::Name, [ValueRef::Text(&name), ValueRef::Integer(7)]).0);
    }

    #[test]
    fn a_sum_is_of_what_is_there_in_any_order() {
        let [one, two] = [1, 2].map(|n| Term::of(Of::Word, [ValueRef::Integer(n)]));
        let (mut sum, mut other) = (Sum::default(), Sum::default());
        sum.put(one);
        sum.put(two);
        other.put(two);
        assert_ne!(sum, other);
        other.put(one);
        assert_eq!(sum, other);
        assert_eq!(Sum::from_column(sum.to_column()), sum);
        sum.take(one);
        sum.take(two);
        assert_eq!(sum, Sum::default());
        other.add(sum);
        assert_eq!(Sum::from_column(other.to_column()), other);
    }
}
