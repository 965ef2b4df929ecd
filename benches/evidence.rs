//! How many packets a core converts.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use handoffd::evidence::{Limits, Mode, convert};

const TASK_REQUESTED: &[u8] = br#"{
  "protocol": "a2a",
  "version": "0.3.0",
  "event_type": "task.requested",
  "timestamp": "2026-03-01T08:30:00Z",
  "agent": {
    "id": "agent://crypto-sage",
    "role": "orchestrator"
  },
  "task": {
    "id": "handoff-000042",
    "status": "requested",
    "kind": "delegation"
  },
  "message": {
    "id": "message-7",
    "role": "assistant"
  },
  "attributes": {
    "priority": "urgent",
    "channel": "web"
  }
}
"#;

fn main() {
    divan::main();
}

/// Counts the freeing of the result too, as a server that converts one packet after the other pays for it.
fn run(bencher: Bencher<'_, '_>, mode: Mode, limits: Limits) {
    bencher.counter(ItemsCount::new(1_usize)).counter(BytesCount::of_slice(TASK_REQUESTED)).bench(|| {
        divan::black_box(&convert(divan::black_box(TASK_REQUESTED), mode, &limits));
    });
}

#[divan::bench(sample_size = 1_000)]
fn strict(bencher: Bencher<'_, '_>) {
    run(bencher, Mode::Strict, Limits::default());
}

#[divan::bench(sample_size = 1_000)]
fn lenient(bencher: Bencher<'_, '_>) {
    run(bencher, Mode::Lenient, Limits::default());
}

#[divan::bench(sample_size = 1_000)]
fn strict_with_every_limit(bencher: Bencher<'_, '_>) {
    let limits = Limits { packet_bytes_max: Some(65_536), depth_max: Some(16), array_items_max: Some(1_000) };
    run(bencher, Mode::Strict, limits);
}
