//! Push notifications against real receivers: where they go and where never, in which order, how often, and as what.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod push {
    mod book;
    mod deliveries;
    mod documentation;
    mod hostile;
    mod receiver;
    mod stage;
}
