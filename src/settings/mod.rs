//! What an operator can set: `handoffd.toml`, then `HANDOFFD_*`, then flags; the last one that speaks wins.
//!
//! [`KEYS`] is the one table: reading, `serve --print-config` and `docs/settings.md` come from it.
//! [`Settings::default`] is the one place for defaults. Core, but for `load`, the hand that reads the file
//! and the environment. Every problem is found in one reading, also in a value that a stronger one
//! overrules: it would speak up on the day that the stronger one goes away.
//!
//! Deliberately absent: what a setting does. A path is kept as written, relative to the workspace; whether
//! the ledger that is named can be served is for `serve` to say.

mod keys;
mod load;
mod model;
mod print;
mod read;
mod slot;
mod units;
mod urls;

pub use keys::{KEYS, Key, settings_markdown};
pub use model::*;
pub use read::{Effective, Flag, Given, Problem, Source, read};
pub use units::{Network, SecretText};

/// The file in the workspace.
pub const FILE: &str = "handoffd.toml";

#[cfg(test)]
mod tests;
