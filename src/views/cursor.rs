//! Pages, and the place where the next one begins.
//!
//! Lists run from the newest to the oldest by a number that a row never changes, so what is applied between two
//! pages lies before the first one: nothing is skipped, nothing comes twice.

use std::fmt;
use std::str::FromStr;

/// Some rows, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// Where the next page begins; nothing on the last one.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    pub(super) fn empty() -> Self {
        Self { rows: Vec::new(), next: None }
    }
}

/// Where a page begins. Callers give back what they were given; the text means nothing to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The last row of the page before.
    after: u64,
}

/// A text that is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadCursor;

impl Cursor {
    pub(super) fn after(number: u64) -> Self {
        Self { after: number }
    }

    pub(super) fn number(self) -> u64 {
        self.after
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{:x}", self.after)
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let number = text.strip_prefix('c').and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let cursor = number.map(Self::after).ok_or(BadCursor)?;
        // One text for one place: no plus sign, no leading zero, no upper case.
        if cursor.to_string() == text { Ok(cursor) } else { Err(BadCursor) }
    }
}

impl fmt::Display for BadCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the cursor is not one that a page ended with")
    }
}

impl std::error::Error for BadCursor {}
