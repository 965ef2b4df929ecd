//! The daemon as an operator meets it: the examples of `docs/operations.md` and `docs/api.md`, every metric and every
//! problem in them, backup and restore while it runs, a start without policies, the sink, traces, and the service manager.
//!
//! UPDATE=1 writes the table of problems in `docs/api.md`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first thing that is not as it should be, and lays out files"
)]

#[path = "operations/backup.rs"]
mod backup;
#[path = "operations/daemon.rs"]
mod daemon;
#[path = "operations/docs.rs"]
mod docs;
#[path = "operations/starting.rs"]
mod starting;
#[path = "operations/starting_again.rs"]
mod starting_again;
#[path = "operations/traces.rs"]
mod traces;
