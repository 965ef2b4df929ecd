//! The ledger's verifier through its public door, against ledgers that a writer of the tests' own made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod ledger_verify {
    mod findings;
    mod honest;
    mod mutations;
    mod page;
    mod python;
    mod support;
}
