//! Where random tests begin: in their short form at the same place every time, in the long one where nobody has been yet.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// The long forms of the tests are run with LONG=1.
pub(crate) fn is_long() -> bool {
    std::env::var_os("LONG").is_some()
}

/// The seed that this variable of the environment sets, to run something again. Otherwise that of the short form, or a new
/// one, which whoever uses it prints.
pub(crate) fn seed(variable: &str, short: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} takes a number, not `{text}`")),
        // The keys of a new hasher come from the operating system.
        Err(_) if is_long() => u64::from(RandomState::new().build_hasher().finish() as u32) << 16,
        Err(_) => short,
    }
}
