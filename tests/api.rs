//! The daemon as callers meet it: the built binary, on a workspace of its own, over real HTTP.
//!
//! Every answer that a test gets is compared with what `/openapi.json` says of it (`api/contract.rs`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod api {
    mod contract;
    mod conversation;
    mod delegated;
    mod harness;
    mod left;
    #[path = "../push/receiver.rs"]
    mod receiver;
    #[path = "../agent_wire/reduced.rs"]
    mod reduced;
    mod route;
    mod wire;

    mod a2a;
    mod a2a_errors;
    mod a2a_streams;
    mod approvals;
    mod batches;
    mod bodies;
    mod callers;
    mod checklist;
    mod console;
    mod console_acts;
    mod console_sessions;
    mod console_shown;
    mod console_ways;
    mod console_words;
    mod events;
    mod every_kind;
    mod gone;
    mod health;
    mod hostile;
    mod http2;
    mod humans;
    mod incidents;
    mod lost;
    mod mentions;
    mod models;
    mod one_agent;
    mod people_cli;
    mod promotion;
    mod pushing;
    mod rules;
    mod secrets;
    mod shutdown;
    mod signing;
    mod statuses;
    mod streams;
    mod tls;
    mod traces;
    mod volatile;
    mod waiting_policies;
}
