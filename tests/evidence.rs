//! The evidence room through its public door.
//!
//! What one file can show by itself is tested beside it; here is what takes a whole conversion: agreement
//! with the reference adapter, the negative matrices of both contracts, the digests, the limits, and
//! properties over packets that nobody wrote.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, and says what it left out"
)]

mod evidence {
    mod agreement;
    mod digests;
    mod discovery_matrix;
    mod documentation;
    mod handoff_matrix;
    mod limits;
    mod packets;
    mod properties;
    mod support;
}
