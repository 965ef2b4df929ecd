//! What it costs to rebuild the views, to keep them up, and to ask them. Run: cargo bench --bench views
//!
//! A million entries: 333,333 decisions, a fifth of them refused, under ids of the usual length. Told: seconds,
//! the size of the file, and the most memory the process has held. `ENTRIES` in the environment changes the number.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot be set up has nothing to measure; what it measured goes to the terminal"
)]

use std::time::Instant;

use handoffd::ledger::{Entry, RunningHash};
use handoffd::timestamp::Timestamp;
use handoffd::views::{EntryFilter, HandoffFilter, Reader, Status, Views};
use handoffd::wire::{Event, Kind, Lineage, Sender, StreamId, WireId};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TOPIC: &str = "gw_bench";

/// Decisions as the engine writes them, in a chain.
fn entries(count: u64) -> impl Iterator<Item = Entry> {
    let mut hash = RunningHash::genesis(TOPIC);
    let mut now = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
    (0..count).map(move |n| {
        let sequence = n + 1;
        let wire = wire(n / 3, n % 3, now);
        now = now.plus_nanosecond();
        let consensus_timestamp = now.to_nanoseconds();
        hash = hash.then(sequence, &consensus_timestamp, &wire);
        Entry { sequence, consensus_timestamp, running_hash: hash, wire }
    })
}

/// A number that follows no order, as ids of several senders do.
fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn wire(decision: u64, part: u64, now: Timestamp) -> String {
    let refused = scatter(decision).is_multiple_of(5);
    let handoff_id = format!("hs_20260218_{:016x}", scatter(decision));
    let correlation_id = format!("corr_{:016x}", scatter(decision / 3));
    let kind = match (part, refused) {
        (0, _) => Kind::TaskCreated,
        (1, _) => Kind::GateDecided,
        (_, true) => Kind::TaskRejected,
        (_, false) => Kind::TaskAvailable,
    };
    let event = Event {
        wire_id: WireId::new(now.unix_milliseconds(), [part as u8; 10]),
        kind,
        sender: Sender::System,
        ts: now,
        stream: StreamId::Handoff { handoff_id: &handoff_id, attempt: 1 },
        stream_seq: part + 1,
        correlation_id: &correlation_id,
        lineage: Lineage::default(),
        traceparent: None,
    };
    let digest = format!("sha256:{:064x}", scatter(decision));
    let codes = ["POLICY_AGENT_DENIED", "POLICY_ENVELOPE_EXPIRED", "A2A_ROUTE_UNKNOWN"];
    let codes = &codes[..if refused { 1 + (decision % 3) as usize } else { 0 }];
    let text = event.to_text(|payload| match part {
        0 => {
            payload.count("attempt", 1);
            payload.text("content_digest", &digest);
            payload.text_or_null("delegation", None);
            payload.text("handoff_id", &handoff_id);
            payload.text("idempotency_key", &format!("idem_{:016x}", scatter(decision + 7)));
            payload.text("intent_hash", &digest);
            let message_id = format!("{}", 100_000_000_000_000_000 + decision);
            payload.text_or_null("message_id", decision.is_multiple_of(10).then_some(&*message_id));
            payload.text("mode", "simulated");
            payload.text("operation", ["swap.prepare", "report.read", "order.cancel"][decision as usize % 3]);
            payload.text_or_null("parent_handoff_id", None);
            payload.text("route_key", &format!("crypto-sage.execution-plane-{}.v1", decision % 20));
            payload.text("source_agent", &format!("decision-router-{}", decision % 25));
            payload.text("target_agent", &format!("crypto-sage-{}", decision % 30));
            payload.text("task_spec_digest", &digest);
        }
        1 => {
            payload.texts("codes", codes);
            payload.text("decision", if refused { "denied" } else { "allowed" });
            let outcome = if refused { "D1:fail" } else { "D1:not_applicable" };
            payload.texts("gates", &["G0:pass", "safety:pass", outcome, "D2:not_applicable"]);
            payload.text("policyDigest", &format!("sha256:{:064x}", 7));
            payload.text("taskSpecDigest", &digest);
        }
        _ if refused => payload.texts("codes", codes),
        _ => {}
    });
    text.unwrap()
}

/// A line of `/proc/self/status`, where there is one.
fn memory(name: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim_matches([':', '\t', ' ']).to_owned())
}

fn main() {
    let count: u64 = std::env::var("ENTRIES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("views.db");

    let begin = Instant::now();
    let bytes: usize = entries(count).map(|entry| entry.wire.len()).sum();
    let making = begin.elapsed();
    println!("making {count} entries ({} MiB of text) alone: {making:.1?}", bytes >> 20);

    let begin = Instant::now();
    let mut views = Views::rebuild(&path, TOPIC, entries(count)).unwrap();
    let took = begin.elapsed();
    let own = took.saturating_sub(making);
    println!(
        "rebuild: {took:.1?}, {own:.1?} of it its own: {:.0} entries/s; file {} MiB; memory {} (peak {})",
        count as f64 / own.as_secs_f64(),
        std::fs::metadata(&path).unwrap().len() >> 20,
        memory("VmRSS"),
        memory("VmHWM"),
    );

    let begin = Instant::now();
    let again = Views::open(&path, TOPIC).unwrap();
    println!("open: {:.1?}, at {:?}", begin.elapsed(), again.applied().map(|(sequence, _)| sequence));
    let begin = Instant::now();
    let mut names = 0;
    again.claims().names(&mut |_| names += 1).unwrap();
    println!("names, and whether they are those that were applied: {:.1?}, {names} of them", begin.elapsed());
    drop(again);

    // As the daemon does it: behind the replies, batch by batch, with every index in place.
    let mut more = entries(count + 300_000).skip(count as usize).peekable();
    more.peek();
    for (batch, times) in [(30, 100), (300, 100), (3_000, 50), (30_000, 3)] {
        let begin = Instant::now();
        for _ in 0..times {
            views.apply(more.by_ref().take(batch)).unwrap();
        }
        let took = begin.elapsed();
        let rate = (batch * times) as f64 / took.as_secs_f64();
        println!("apply {batch} more, {times} times: {:.1?} each, {rate:.0} entries/s", took / times as u32);
    }
    println!("memory {} (peak {})", memory("VmRSS"), memory("VmHWM"));

    let begin = Instant::now();
    let reader = Reader::open(&path).unwrap();
    println!("reader: {:.1?}", begin.elapsed());
    let filters = [
        ("all", HandoffFilter::default()),
        ("agent", HandoffFilter { agent: Some("crypto-sage-3"), ..HandoffFilter::default() }),
        ("status", HandoffFilter { status: Some(Status::Rejected), ..HandoffFilter::default() }),
        ("code", HandoffFilter { code: Some("A2A_ROUTE_UNKNOWN"), ..HandoffFilter::default() }),
        (
            "time",
            HandoffFilter { to: Timestamp::parse("2026-02-18T19:38:00.0005Z"), ..HandoffFilter::default() },
        ),
    ];
    for (name, filter) in filters {
        let begin = Instant::now();
        let page = reader.handoffs(&filter, None, 100).unwrap();
        println!("handoffs by {name}, {} rows: {:.1?}", page.rows.len(), begin.elapsed());
    }
    let middle = Some(format!("c{:x}", count / 2).parse().unwrap());
    let filters = [
        ("type", EntryFilter { kind: Some("task.rejected"), ..EntryFilter::default() }),
        ("agent", EntryFilter { agent: Some("crypto-sage-3"), ..EntryFilter::default() }),
        ("route", EntryFilter { route: Some("crypto-sage.execution-plane-3.v1"), ..EntryFilter::default() }),
    ];
    for (name, filter) in filters {
        for (place, cursor) in [("the newest", None), ("from the middle", middle)] {
            let begin = Instant::now();
            let page = reader.entries(&filter, cursor, 100).unwrap();
            println!("entries by {name}, {place}, {} rows: {:.1?}", page.rows.len(), begin.elapsed());
        }
    }

    let begin = Instant::now();
    let asked = 10_000;
    for n in 0..asked {
        let number = scatter(n * 31 % (count / 3));
        reader.claims().handoff(&format!("hs_20260218_{number:016x}")).unwrap().unwrap();
    }
    println!("claim by handoffId: {:.1?} each", begin.elapsed() / asked as u32);
}
