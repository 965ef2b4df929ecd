//! Each line of the check, with a ledger that breaks it and nothing else.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::Line;
use super::tally::Tally;
use crate::ledger::{Entry, MemoryLog, RunningHash, Source};
use crate::policy::{PolicySet, References};

const ROUTE: &str = "desk.v1";

/// An event: its stream without the prefix, its type, its sender and its payload.
type Told = (&'static str, &'static str, &'static str, Json);

fn created(id: &'static str, change: Json) -> Told {
    let mut payload = json!({"handoff_id": id, "route_key": ROUTE, "mode": "simulated", "delegation": null,
        "message_id": null, "task_spec_digest": format!("sha256:{}", "0".repeat(64))});
    for (name, value) in change.as_object().unwrap() {
        payload[name] = value.clone();
    }
    (id, "task.created", "system", payload)
}

fn decided(id: &'static str, decision: &str, gates: &str) -> Told {
    let gates: Vec<String> = gates.split(' ').map(|gate| format!("{gate}:pass")).collect();
    (id, "gate.decided", "system", json!({"decision": decision, "codes": [], "gates": gates}))
}

fn passed(gate: &str) -> Told {
    (ROUTE, "promotion.decided", "human:rita", json!({"gate": gate, "outcome": "passed"}))
}

fn went_live() -> Told {
    (ROUTE, "promotion.advanced", "human:rita", json!({"from": "simulated", "to": "live", "gate": "G4"}))
}

/// The six lines that rest on the ledger alone.
fn tallied(told: &[Told]) -> Vec<Line> {
    // No TaskSpec is kept any more.
    let ledger = Source::Memory(MemoryLog::new("gw_1").store().clone());
    let mut tally = Tally::new(ledger, None);
    for (sequence, (name, kind, sender, payload)) in (1..).zip(told) {
        let stream = match *name {
            ROUTE => format!("phase:{ROUTE}"),
            id => format!("task:{id}:attempt:1"),
        };
        let wire = json!({"type": kind, "sender": sender, "payload": payload,
            "stream": {"stream_id": stream, "correlation_id": "corr_1"}});
        let entry = Entry {
            sequence,
            consensus_timestamp: "2026-02-18T19:38:05.000000000Z".to_owned(),
            running_hash: RunningHash::genesis("gw_1"),
            wire: wire.to_string(),
        };
        tally.take(&entry).unwrap();
    }
    let policies = PolicySet::new(br#"{"routes": {}}"#, &BTreeMap::new(), References::default()).unwrap();
    tally.lines(&policies)
}

/// The lines that fail, and what is said of the first.
fn check(told: &[Told]) -> String {
    let failing: Vec<String> = tallied(told)
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.wrong.is_empty())
        .map(|(n, line)| format!("{} {}", [1, 3, 4, 5, 6, 7][n], line.wrong.join("; ")))
        .collect();
    failing.join(" | ")
}

/// What each line rests on.
fn rests(told: &[Told]) -> Vec<String> {
    tallied(told).into_iter().map(|line| line.rests_on).collect()
}

const ALL: &str = "G0 safety";

#[test]
fn one_of_a_kind_is_not_called_many() {
    let mention = created("hs_00000001", json!({"message_id": "1"}));
    let told = [mention, decided("hs_00000001", "allowed", "G0 safety D4"), passed("G0")];
    let rests = rests(&told).join(" | ");
    assert!(rests.contains("1 route, 1 gate passed in order"), "{rests}");
    assert!(rests.contains("| 1 mention accepted"), "{rests}");
}

#[test]
fn a_ledger_in_order_conforms() {
    let mut told = vec![created("hs_00000001", json!({})), decided("hs_00000001", "allowed", ALL)];
    told.extend(["G0", "G1", "G2", "G3", "G4"].map(passed));
    told.push(went_live());
    told.push(created("hs_00000002", json!({"mode": "live"})));
    told.push(decided("hs_00000002", "needs_approval", ALL));
    told.push(decided("hs_00000002", "allowed", ALL));
    told.push((ROUTE, "promotion.evidence", "runner:bench", json!({"handoff_id": "hs_00000001"})));
    // What was refused broke every rule there is, and nothing came of it.
    told.push(created("hs_00000003", json!({"mode": "live", "message_id": "1"})));
    told.push((
        "hs_00000003",
        "gate.decided",
        "system",
        json!({"decision": "denied", "codes": ["X"], "gates": []}),
    ));
    assert_eq!(check(&told), "");
}

#[test]
fn each_line_fails_for_its_own_reason() {
    let delegation = json!({"policy_ref": "p", "envelope_hash": "h", "principal": "user:main",
        "delegate_agent": "router", "risk_classification": "read", "authorization_ref": null});
    let delegated = |name: &str, value: Json| {
        let mut delegation = delegation.clone();
        delegation[name] = value;
        created("hs_00000001", json!({"delegation": delegation}))
    };
    let id = "hs_00000001";
    let cases: Vec<(Vec<Told>, &str)> = vec![
        (
            vec![created(id, json!({})), decided(id, "allowed", "safety")],
            "1 `hs_00000001` was accepted without passing G0, entry 2",
        ),
        (vec![decided(id, "allowed", ALL)], "1 entry 1 decides what was never created"),
        (
            vec![created(id, json!({"task_spec_digest": null})), decided(id, "allowed", ALL)],
            "1 `hs_00000001` has no digest of its TaskSpec",
        ),
        (
            vec![(ROUTE, "promotion.evidence", "agent:sage", json!({"handoff_id": id}))],
            "3 desk.v1: an agent vouched for `hs_00000001`, entry 1",
        ),
        (vec![passed("G1")], "4 desk.v1: G1 was passed before G0, entry 1"),
        (vec![went_live()], "4 desk.v1: it went live without all gates, entry 1"),
        (
            vec![created(id, json!({"mode": "live"})), decided(id, "allowed", ALL)],
            "4 `hs_00000001` was allowed in live while its route was not, entry 2",
        ),
        (
            vec![created(id, json!({})), decided(id, "allowed", "G0")],
            "5 `hs_00000001` was accepted without a rollback plan, entry 2",
        ),
        (
            vec![delegated("principal", json!("user:main")), decided(id, "allowed", "G0 safety D1 D3")],
            "6 `hs_00000001` was accepted without passing D2 envelope",
        ),
        (
            vec![delegated("envelope_hash", Json::Null), decided(id, "allowed", "G0 safety D1 D2 D3")],
            "6 the audit of `hs_00000001` has no envelope_hash",
        ),
        (
            vec![
                delegated("risk_classification", json!("sensitive")),
                decided(id, "allowed", "G0 safety D1 D2 D3"),
            ],
            "6 the audit of `hs_00000001` has no authorization_ref",
        ),
        (
            vec![created(id, json!({"message_id": "1"})), decided(id, "allowed", ALL)],
            "7 `hs_00000001` was accepted without passing D4, entry 2",
        ),
        (
            vec![
                created(id, json!({"message_id": "1"})),
                decided(id, "allowed", "G0 safety D4"),
                created("hs_00000002", json!({"message_id": "1"})),
                decided("hs_00000002", "allowed", "G0 safety D4"),
            ],
            "7 message 1 was spent on `hs_00000001` and on `hs_00000002`",
        ),
    ];
    for (told, expected) in cases {
        assert_eq!(check(&told), expected);
    }
}

#[test]
fn gates_that_a_rollback_or_another_definition_took_must_be_earned_again() {
    let rolled_back = || (ROUTE, "rollback.executed", "system", json!({}));
    let reset = || (ROUTE, "promotion.reset", "system", json!({}));
    let mut told: Vec<Told> = ["G0", "G1", "G2", "G3", "G4"].map(passed).into();
    told.push(rolled_back());
    told.push(passed("G4"));
    assert_eq!(check(&told), "4 desk.v1: G4 was passed before G3, entry 7");
    told.truncate(5);
    told.push(reset());
    told.push(passed("G1"));
    assert_eq!(check(&told), "4 desk.v1: G1 was passed before G0, entry 7");
    told.truncate(5);
    told.push(("desk.v1", "promotion.decided", "system", json!({"gate": "G4", "outcome": "passed"})));
    assert_eq!(check(&told), "4 desk.v1: G4 was not passed by a person, entry 6");
}
