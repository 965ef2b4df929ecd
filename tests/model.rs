//! The engine against a model: a slow program that decides the same handoffs in the plainest way, written from
//! the rules and sharing nothing with the gateway but points in time.
//!
//! A history is drawn from a seed: policies and keys that change, TaskSpecs good and bad, a clock that steps forward and
//! back, freezes, grants, approvals, promotions, rollbacks, reports, restarts. After every step the answer and all that is in
//! force must be the same on both sides. A seed that fails is printed; `MODEL_SEED=<it>` runs that history alone.
//! 40 histories of 80 steps, always the same; 2,000 that nobody has seen with LONG=1 in the environment.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first thing that is not as it should be"
)]

#[path = "model/chance.rs"]
mod chance;
#[path = "model/gates.rs"]
mod gates;
#[path = "model/history.rs"]
mod history;
#[path = "model/model.rs"]
mod model;
#[path = "model/routes.rs"]
mod routes;
#[path = "model/seed.rs"]
mod seed;
#[path = "model/shape.rs"]
mod shape;
#[path = "model/town.rs"]
mod town;
