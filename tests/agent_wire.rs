//! Agent Wire v1.1: schemas, contracts, fixtures, the reducer, and the command that runs them.
//!
//! Driven by the files in `tests/fixtures/agent-wire/`, `tests/conformance/agent-wire/` and
//! `tests/reducers/agent-wire/`: a new fixture or case needs no new code.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod agent_wire {
    mod command;
    mod conformance;
    mod documentation;
    mod gateway;
    mod mutations;
    mod properties;
    mod reduced;
    mod suite;
    mod support;
}
