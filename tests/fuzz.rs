//! Mutation fuzzing of everything that reads what others send, on a stable compiler.
//!
//! `cargo fuzz` is guided by coverage and needs a nightly compiler, which nobody who only wants to run the tests has. So
//! here is a small mutator of our own over seeds: `tests/fuzz/corpus/<target>/`, and the examples and fixtures that the
//! repository has anyway. It changes bytes, and more often members and values, so that most inputs are JSON and reach what reads
//! the document. The short form makes the same mutations in every run; with LONG=1 each run makes others, by a seed that is
//! printed and that FUZZ_SEED sets. What is asserted is more than that nothing panics:
//! each target says what must hold for any bytes at all.
//!
//! An input that breaks something is written to the temporary directory, and its name printed; kept as
//! `tests/fuzz/regressions/<target>/<name>` it is tried first from then on. A second or so for all targets; with LONG=1
//! a minute for each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first thing that is not as it should be"
)]

#[path = "fuzz/mutate.rs"]
mod mutate;
#[path = "model/seed.rs"]
mod seed;
#[path = "ledger_verify/support.rs"]
#[expect(dead_code, reason = "what is not needed here is needed by tests/ledger_verify.rs")]
mod support;
#[path = "fuzz/targets.rs"]
mod targets;
#[path = "fuzz/tree.rs"]
mod tree;
