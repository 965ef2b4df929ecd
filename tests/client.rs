//! The command line against a running gateway: the built binary, real files, real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

#[path = "client/a2a.rs"]
mod a2a;
#[path = "client/certificates.rs"]
mod certificates;
#[path = "client/demo.rs"]
mod demo;
#[path = "client/doctor.rs"]
mod doctor;
#[path = "client/documentation.rs"]
mod documentation;
#[path = "client/greeting.rs"]
mod greeting;
#[path = "client/keys_and_tokens.rs"]
mod keys_and_tokens;
#[path = "client/submit.rs"]
mod submit;
#[path = "client/support.rs"]
mod support;
