//! How fast Agent Wire events are read, checked and reduced: `cargo bench --bench wire [-- EVENTS]`.
//!
//! A million events by default: tasks of eight events each, from creation to completion, a thousand of them open
//! at a time and their events interleaved. Only reading and reducing is timed, not the making of the texts.
//! Told beside it is the processor time, which does not grow when others keep the machine busy. Afterwards it says what
//! the process has grown by for each task that has ended; for that it has the system's allocator and not the program's,
//! which is faster but keeps so much in reserve that nothing can be seen to grow.

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
    let (mut reading, mut reducing, mut done, mut ended) = (Spent::default(), Spent::default(), 0, 0);
    let mut before = None;
    while done < events {
        let texts = window(&fixtures, done / STEPS.len());
        let start = Moment::now();
        let envelopes: Vec<Envelope<'_>> = texts.iter().map(|text| Envelope::parse(text).unwrap()).collect();
        reading.add(&start);
        let start = Moment::now();
        for envelope in &envelopes {
            ended += usize::from(matches!(reducer.apply(envelope).unwrap(), Applied::Closed(_)));
        }
        reducing.add(&start);
        done += envelopes.len();
        drop(envelopes);
        drop(texts);
        // What the first rounds take, every round takes again.
        if done == 4 * OPEN * STEPS.len() {
            before = resident_bytes().map(|bytes| (bytes, ended));
        }
    }
    let wall = (reading.wall + reducing.wall).as_secs_f64();
    println!("{done} events, {ended} tasks: {wall:.2} s, {:.2} us an event", wall * 1e6 / done as f64);
    for (what, spent) in [("reading and schemas", &reading), ("reducing", &reducing)] {
        let (wall, processor) = (spent.wall.as_secs_f64(), spent.processor.as_secs_f64());
        println!("  {what}: {wall:.2} s, processor {processor:.2} s");
    }
    assert_eq!((reducer.open_tasks().count(), reducer.closed_count()), (0, ended));
    if let (Some((before, then)), Some(now)) = (before, resident_bytes()) {
        let grown = now.saturating_sub(before) as f64 / (ended - then).max(1) as f64;
        println!("  {grown:.0} bytes of memory for each task that has ended");
    }
}

/// A moment, by the clock and by what the processor has done for us.
struct Moment(Instant, Duration);

impl Moment {
    fn now() -> Self {
        Self(Instant::now(), processor_time())
    }
}

#[derive(Default)]
struct Spent {
    wall: Duration,
    processor: Duration,
}

impl Spent {
    fn add(&mut self, since: &Moment) {
        self.wall += since.0.elapsed();
        self.processor += processor_time().saturating_sub(since.1);
    }
}

/// Of the thread that asks; nothing where the system does not say.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
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
