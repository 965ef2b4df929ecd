//! How fast Agent Wire events are read, checked and reduced: `cargo bench --bench wire [-- EVENTS]`.
//!
//! A million events by default: tasks of eight events each, from creation to completion, a thousand of them open
//! at a time and their events interleaved. Only reading and reducing is timed, not the making of the texts.
//! Afterwards it says what the process has grown by for each task that has ended.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement stops at the first surprise and prints what it found"
)]

use std::fs;
use std::time::{Duration, Instant};

use handoffd::wire::{Applied, Contracts, Envelope, Reducer};
use serde_json::{Value as Json, json};

const STEPS: [&str; 8] = [
    "task-created",
    "gate-decided",
    "task-available",
    "task-claimed",
    "task-started",
    "artifact-ready",
    "message-sent",
    "task-complete",
];
const OPEN: usize = 1_000;

fn main() {
    let events: usize =
        std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(1_000_000);
    let fixtures = STEPS.map(|step| {
        let path = format!("{}/tests/fixtures/agent-wire/v1.1/{step}.valid.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str::<Json>(&fs::read_to_string(path).unwrap()).unwrap()
    });
    let mut reducer = Reducer::new(Contracts::embedded());
    let (mut reading, mut reducing, mut done, mut ended) = (Duration::ZERO, Duration::ZERO, 0, 0);
    let mut before = None;
    while done < events {
        let texts = window(&fixtures, done / STEPS.len());
        let start = Instant::now();
        let envelopes: Vec<Envelope<'_>> = texts.iter().map(|text| Envelope::parse(text).unwrap()).collect();
        reading += start.elapsed();
        let start = Instant::now();
        for envelope in &envelopes {
            ended += usize::from(matches!(reducer.apply(envelope).unwrap(), Applied::Closed(_)));
        }
        reducing += start.elapsed();
        done += envelopes.len();
        drop(envelopes);
        drop(texts);
        // What the first rounds take, every round takes again.
        if done == 4 * OPEN * STEPS.len() {
            before = resident_bytes().map(|bytes| (bytes, ended));
        }
    }
    let all = reading + reducing;
    println!("{done} events, {ended} tasks: {:.2} s", all.as_secs_f64());
    println!(
        "  reading and schemas {:.2} s, reducing {:.2} s",
        reading.as_secs_f64(),
        reducing.as_secs_f64()
    );
    println!("  {:.2} us an event", all.as_secs_f64() * 1e6 / done as f64);
    assert_eq!((reducer.open_tasks().count(), reducer.closed_count()), (0, ended));
    if let (Some((before, then)), Some(now)) = (before, resident_bytes()) {
        let grown = now.saturating_sub(before) as f64 / (ended - then).max(1) as f64;
        println!("  {grown:.0} bytes of memory for each task that has ended");
    }
}

/// The events of a thousand tasks, side by side.
fn window(fixtures: &[Json; 8], first: usize) -> Vec<String> {
    let mut texts = Vec::with_capacity(OPEN * STEPS.len());
    for (step, fixture) in fixtures.iter().enumerate() {
        for task in first..first + OPEN {
            let mut event = fixture.clone();
            let handoff_id = format!("hs_bench_{task:012}");
            event["wire_id"] = json!(format!("wire_{task:018}{step:08}"));
            event["stream"]["stream_id"] = json!(format!("task:{handoff_id}:attempt:1"));
            event["stream"]["stream_seq"] = json!(step + 1);
            if step == 0 {
                event["payload"]["handoff_id"] = json!(handoff_id);
            }
            texts.push(event.to_string());
        }
    }
    texts
}

/// What the process holds in memory; nothing where the system does not say.
fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
