//! The only room that has a clock, randomness and files.
//!
//! Everything here is small and does one thing, so that a test that fails each disk call once has few
//! places to do it in.

pub(crate) mod clock;
pub(crate) mod files;
pub(crate) mod random;
pub(crate) mod turns;
pub mod world;
