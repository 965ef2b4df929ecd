//! The command line as users meet it: the built binary, real files, exit codes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod cli {
    mod checking;
    mod keys;
    mod ledger;
    mod support;
    mod tokens;
    mod workspace;
}
