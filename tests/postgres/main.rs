//! The ledger in a real PostgreSQL: appending under contention, connections that break, servers that must be refused,
//! following, sharing, moving a ledger there and back, webhooks that are told once, and replicas that are served on it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod agreeing;
mod appending;
mod asking;
mod cluster;
mod copying;
mod enduring;
mod engines;
mod following;
mod losing;
mod opening;
mod proxy;
mod putting;
mod racing;
mod rebuilding;
#[path = "../push/receiver.rs"]
mod receiver;
mod replicas;
mod scripted;
mod settling;
mod sharing;
mod signing;
mod specs;
#[path = "../push/stage.rs"]
#[expect(dead_code, reason = "the courier's own tests use more of it")]
mod stage;
mod telling;
mod webhooks;
#[path = "../api/wire.rs"]
#[expect(dead_code, reason = "the daemon's own tests use more of it")]
mod wire;

use handoffd::ledger::postgres::{Database, PostgresLog};
use handoffd::ledger::{AppendFault, Batch, BatchBuilder, Entry, Head, Log as _};
use handoffd::proof::Digest;
use handoffd::timestamp::Timestamp;

const TOPIC: &str = "gw_postgres";

fn at(second: u64) -> Timestamp {
    Timestamp::parse(&format!("2026-02-18T19:38:{:02}Z", second % 60)).unwrap()
}

/// A Wire event that every verifier takes, told apart by `name` (letters and digits).
fn wire(name: &str, sequence: u64) -> String {
    format!(
        "{{\"payload\":{{\"codes\":[\"A2A_TEST\"],\"decision\":\"denied\"}},\"sender\":\"system\",\"stream\":\
         {{\"context_id\":\"é\",\"correlation_id\":\"é\",\"stream_id\":\"task:hs_{name}{sequence}:attempt:1\",\
         \"stream_seq\":1}},\"ts\":\"2026-02-18T19:38:00Z\",\"type\":\"gate.decided\",\"wire\":\"1.1\",\
         \"wire_id\":\"wire_{name}{sequence:08}\"}}"
    )
}

fn body(name: &str, sequence: u64) -> String {
    format!("{{\"name\": \"{name}\",\n \"n\": {sequence}, \"é\": \"\\u0000\"}}")
}

/// A batch of `events` entries on top of a head, with a body before each.
fn batch_on(topic_id: &str, head: Head, last: Option<Timestamp>, name: &str, events: u64) -> Batch {
    let mut builder = BatchBuilder::new(topic_id, head, last);
    for sequence in head.sequence + 1..=head.sequence + events {
        let body = body(name, sequence);
        builder.body(Digest::of(body.as_bytes()), &body);
        builder.event(wire(name, sequence), at(7));
    }
    builder.seal().unwrap()
}

fn batch(log: &PostgresLog, name: &str, events: u64) -> Batch {
    batch_on(log.topic_id(), log.head(), log.last_timestamp(), name, events)
}

fn append(log: &mut PostgresLog, name: &str, events: u64) -> Result<Head, AppendFault> {
    let batch = batch(log, name, events);
    log.append(log.head(), &batch).map(|()| log.head())
}

fn entries(database: &Database) -> Vec<Entry> {
    database.entries(1, u64::MAX >> 1).map(Result::unwrap).collect()
}

fn head_of(entry: &Entry) -> Head {
    Head { sequence: entry.sequence, running_hash: entry.running_hash }
}

/// The long forms of the tests are run with LONG=1, and a part of them with LONG=1/20.
fn short_or_long(short: usize, long: usize) -> usize {
    let Ok(value) = std::env::var("LONG") else { return short };
    let part =
        value.strip_prefix('1').map(|rest| rest.strip_prefix('/').map_or(Some(1), |part| part.parse().ok()));
    match part.flatten() {
        Some(part) => (long / part).max(short),
        None => short,
    }
}
