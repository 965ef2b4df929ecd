//! What a verdict costs, and where the time goes. Run: cargo bench --bench judge
//!
//! The delegated TaskSpec is the corrected example of the standard's section 3.5: HMAC, policy, mention,
//! and the mapped envelope validated against its input schema.

use divan::{Bencher, black_box};
use handoffd::contract::{Sealed, TaskSpec, shape_findings};
use handoffd::gates::{Caller, Claims, Ground, judge};
use handoffd::json::{Document, read};
use handoffd::limits;
use handoffd::policy::{PolicySet, Workspace};
use handoffd::proof::{Key, Keyring, Purpose, Secret, canonical};
use handoffd::timestamp::Timestamp;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const DIRECT: &str = include_str!("../docs/examples/taskspec-canonical.json");
const DELEGATED: &str = include_str!("../docs/examples/taskspec-delegated-human-proxy.json");

struct Floor {
    policies: PolicySet,
    keyring: Keyring,
    now: Timestamp,
}

impl Floor {
    #[expect(clippy::unwrap_used, reason = "a bench that cannot be set up has nothing to measure")]
    fn new() -> Self {
        let policies = Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap();
        let mut keyring = Keyring::default();
        let secret = Secret::from_file_bytes(include_bytes!("../docs/examples/demo.key").to_vec());
        let key = Key::hmac("demo-user-main-1", "user:main", Purpose::Envelope, secret).unwrap();
        keyring.add(key).unwrap();
        // The route signs what it sends.
        let secret = Secret::from_file_bytes(include_bytes!("../docs/examples/demo.key").to_vec());
        let key = Key::hmac("crypto-sage-dispatch-1", "crypto-sage", Purpose::Dispatch, secret).unwrap();
        keyring.add(key).unwrap();
        let now = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
        let floor = Self { policies, keyring, now };
        for body in [DIRECT, DELEGATED] {
            assert!(judge(&document(body), &floor.ground()).verdict.reasons().is_empty());
        }
        floor
    }

    fn ground(&self) -> Ground<'_> {
        Ground {
            policies: &self.policies,
            keyring: &self.keyring,
            caller: Caller::Agent("decision-router"),
            now: self.now,
        }
    }
}

#[expect(clippy::unwrap_used, reason = "the examples are sound")]
fn document(body: &str) -> Document<'_> {
    read(body.as_bytes(), limits::TASK_SPEC).unwrap()
}

fn main() {
    divan::main();
}

/// Body bytes to verdict: what every request pays.
#[divan::bench(sample_size = 500, args = ["direct", "delegated"])]
fn whole_verdict(bencher: Bencher<'_, '_>, which: &str) {
    let floor = Floor::new();
    let body = if which == "direct" { DIRECT } else { DELEGATED };
    bencher.bench_local(|| {
        let document = document(black_box(body));
        let judgement = judge(&document, &floor.ground());
        black_box(judgement.verdict.decision())
    });
}

/// The same, and what a submission adds: its claims, with both digests.
#[divan::bench(sample_size = 500)]
fn whole_verdict_and_claims(bencher: Bencher<'_, '_>) {
    let floor = Floor::new();
    bencher.bench_local(|| {
        let document = document(black_box(DELEGATED));
        let judgement = judge(&document, &floor.ground());
        black_box((Sealed::of(&document), Claims::of(&judgement.spec, &judgement.verdict)))
    });
}

#[divan::bench(sample_size = 500)]
fn part_1_strict_reading(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| black_box(document(black_box(DELEGATED))));
}

#[divan::bench(sample_size = 500)]
fn part_2_typed_reading(bencher: Bencher<'_, '_>) {
    let document = document(DELEGATED);
    bencher.bench_local(|| black_box(TaskSpec::read(black_box(&document)).1));
}

#[divan::bench(sample_size = 500)]
fn part_3_reading_and_all_gates(bencher: Bencher<'_, '_>) {
    let floor = Floor::new();
    let document = document(DELEGATED);
    bencher.bench_local(|| black_box(judge(black_box(&document), &floor.ground()).verdict.decision()));
}

#[divan::bench(sample_size = 500)]
fn part_4_canonical_form(bencher: Bencher<'_, '_>) {
    let document = document(DELEGATED);
    bencher.bench_local(|| black_box(canonical(black_box(&document).root())));
}

#[divan::bench(sample_size = 500)]
fn part_5_digests(bencher: Bencher<'_, '_>) {
    let document = document(DELEGATED);
    bencher.bench_local(|| black_box(Sealed::of(black_box(&document))));
}

/// What others would do: a serde_json tree and the schema on it.
#[divan::bench(sample_size = 500)]
fn beside_serde_json_value(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| black_box(serde_json::from_str::<serde_json::Value>(black_box(DELEGATED))));
}

/// The words for a refusal: only paid by a TaskSpec whose shape is wrong.
#[divan::bench(sample_size = 500)]
fn beside_schema_report(bencher: Bencher<'_, '_>) {
    let document = document(DELEGATED);
    bencher.bench_local(|| black_box(shape_findings(black_box(&document)).len()));
}
