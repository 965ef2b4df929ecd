//! How fast a ledger is verified: `cargo bench --bench ledger_verify [-- EVENTS]`.
//!
//! Writes a ledger of 240,000 entries (handoffs of three entries, a body of 2.7 KB each, batches of 30,
//! segments of 64 MiB) and verifies it as segments and as an export, the best of three.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    dead_code,
    reason = "a measurement stops at the first surprise and prints what it found"
)]

use std::time::Instant;

use handoffd::ledger::verify::{verify_export, verify_segments};
use serde_json::json;

#[path = "../tests/ledger_verify/support.rs"]
mod support;

use support::{Ledger, canonical, wire};

fn main() {
    let entries = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(240_000);
    let body = "{\n  \"objective\": \"rebalance\",\n  \"constraints\": []\n}\n".repeat(50);
    let mut ledger = Ledger::default();
    let mut segment_bytes = usize::MAX;
    for n in 1..=entries {
        if segment_bytes > 64 << 20 && n % 30 == 1 {
            ledger.segments.push(Vec::new());
            segment_bytes = 0;
        }
        let handoff = (n - 1) / 3;
        if n % 3 == 1 {
            ledger.body(&format!("{handoff}{body}"));
            segment_bytes += 3600;
        }
        let payload = json!({
            "decision": "allowed", "codes": [],
            "policyDigest": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "taskSpecDigest": "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
        });
        let stream = format!("task:hf-{handoff:08}:attempt:1");
        ledger.event(&canonical(&wire(n, &stream, (n - 1) % 3 + 1, payload)));
        segment_bytes += 1300;
        if n % 30 == 0 || n == entries {
            ledger.commit();
        }
    }
    let checkpoint = [ledger.checkpoint()];
    let dir = tempfile::tempdir().unwrap();
    ledger.write(dir.path());
    let bytes: u64 = (0..ledger.segments.len()).map(|n| ledger.text(n).len() as u64).sum();
    let segments = ledger.segments.len();
    let export = ledger.export();
    drop(ledger);
    measure(&format!("{segments} segments"), bytes, || {
        verify_segments(dir.path(), &checkpoint, &mut |_| ()).unwrap().entries
    });
    measure("export", export.len() as u64, || verify_export(export.as_bytes(), &checkpoint).unwrap().entries);
}

fn measure(name: &str, bytes: u64, mut run: impl FnMut() -> u64) {
    let (mut best, mut entries) = (f64::MAX, 0);
    for _ in 0..3 {
        let start = Instant::now();
        entries = run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    let (megabytes, rate) = (bytes as f64 / 1e6, entries as f64 / best);
    println!(
        "{name}: {entries} entries, {megabytes:.0} MB in {best:.3} s: {:.0} MB/s, {rate:.0} entries/s",
        megabytes / best
    );
}
