//! A2A, the pure half: requests, messages, cards, and what a Wire stream looks like to clients of both versions; and
//! our own client, against a server that does what a test says.
//!
//! UPDATE=1 writes `tests/golden/a2a/`. A changed golden file is a changed contract with every client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first thing that is not as it should be, and its golden files need no sync"
)]

mod a2a {
    mod calls;
    mod card;
    mod client;
    mod lives;
    mod messages;
    mod requests;
    mod stage;
}
