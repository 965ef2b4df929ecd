//! What the engine writes is what the views find: a real ledger, followed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::sync::Arc;

use handoffd::engine::{Candidate, EngineFault, EngineHandle, Ruling, Setup};
use handoffd::ledger::{Entries, Log as _, RealDisk, SegmentLog};
use handoffd::os::world::RealWorld;
use handoffd::policy::Workspace;
use handoffd::timestamp::Timestamp;
use handoffd::views::{EntryFilter, HandoffFilter, Reader, Status, Views};

const TOPIC: &str = "gw_views";
const CANONICAL: &str = include_str!("../docs/examples/taskspec-canonical.json");

/// Refused, corrected, sent again, used again, and once by somebody else.
#[test]
fn the_views_of_a_real_ledger_say_what_the_engine_decided() {
    let directory = tempfile::tempdir().unwrap();
    let (log, _) = SegmentLog::open(Arc::new(RealDisk), directory.path(), TOPIC, &[]).unwrap();
    let setup = Setup::new(Box::new(log), None, Box::new(RealWorld::default()));
    let none = std::iter::empty::<Result<handoffd::ledger::Entry, EngineFault>>();
    let engine = EngineHandle::start(setup, none).unwrap();
    let policies = Arc::new(Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap());
    let submit = |body: String, caller: &str| {
        let (policies, asker) = (policies.clone(), handoffd::engine::Asker::Agent(caller.into()));
        let ruling = Ruling { policies, keyring: Arc::default(), asker };
        let now = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
        engine.submit_and_wait(Candidate::judge(body.into(), ruling, now).unwrap()).unwrap()
    };
    let wrong = CANONICAL.replace("\"strategy\": \"capability\"", "\"strategy\": \"luck\"");
    let refused = submit(wrong, "decision-router");
    let allowed = submit(CANONICAL.to_owned(), "decision-router");
    let reused = submit(CANONICAL.replace("idem_swap_cycle_9001", "idem_other_0001"), "decision-router");
    let stranger = submit(CANONICAL.to_owned(), "somebody-else");
    engine.stop();

    let (log, _) = SegmentLog::open(Arc::new(RealDisk), directory.path(), TOPIC, &[]).unwrap();
    let head = log.head();
    let path = directory.path().join("views.db");
    let entries = Entries::read(directory.path(), 1, head.sequence).unwrap().map(Result::unwrap);
    let views = Views::rebuild(&path, TOPIC, entries).unwrap();
    assert_eq!(views.applied(), Some((head.sequence, head.running_hash.to_string())));

    let id = "hs_20260218_router_0001";
    let reader = Reader::open(&path).unwrap();
    let detail = reader.handoff(id).unwrap().unwrap();
    let decided: Vec<Option<u64>> = detail.attempts.iter().map(|(row, _)| row.decided_sequence).collect();
    let by_engine = [&refused, &allowed, &reused].map(|decided| Some(decided.ledger.sequence));
    assert_eq!(decided, by_engine);
    assert_eq!((detail.handoff.current.attempt, detail.handoff.current.status), (2, Status::Available));
    assert_eq!(detail.handoff.current.route_key.as_deref(), Some("crypto-sage.execution-plane.v1"));

    let claim = reader.claims().handoff(id).unwrap().unwrap();
    let accepted = claim.accepted.unwrap();
    assert_eq!(accepted.sequence, allowed.ledger.sequence);
    assert_eq!(accepted.running_hash, allowed.ledger.running_hash.to_string());
    assert_eq!(accepted.decided_at, allowed.decided_at);
    assert_eq!(accepted.policy_digest.as_deref(), Some(allowed.policy_digest.as_str()));
    assert_eq!(accepted.gates.len(), allowed.gates.len());
    assert_eq!((claim.attempts, claim.source_agent.as_deref()), (3, Some("decision-router")));
    let key = reader.claims().key("decision-router", "idem_swap_cycle_9001").unwrap().unwrap();
    assert_eq!(key.handoff_id, id);
    assert_eq!(reader.claims().key("decision-router", "idem_other_0001").unwrap(), None);

    let with_code = |code| {
        let filter = EntryFilter { code: Some(code), kind: Some("gate.decided"), ..EntryFilter::default() };
        let rows = reader.entries(&filter, None, 10).unwrap().rows;
        rows.iter().map(|row| (row.sequence, row.handoff_id.clone())).collect::<Vec<_>>()
    };
    assert_eq!(with_code("A2A_HANDOFF_REUSED"), [(reused.ledger.sequence, Some(id.to_owned()))]);
    assert_eq!(with_code("A2A_SOURCE_MISMATCH"), [(stranger.ledger.sequence, None)]);
    let filter = HandoffFilter { agent: Some("crypto-sage"), ..HandoffFilter::default() };
    assert_eq!(reader.handoffs(&filter, None, 10).unwrap().rows, [detail.handoff]);
}
