//! The rollout of mentions over HTTP: phases, what they let through, what is counted, and one winner for a message.

use serde_json::{Value as Json, json};

use super::delegated::{House, codes, mention, signed};
use super::wire::{Reply, Request};

impl House {
    fn phase(&self, phase: &str) -> Reply {
        let body = json!({"phase": phase, "reason": "looked at the counters"}).to_string();
        self.daemon.send(&Request::new("PUT", "/v1/mentions/phase").token(&self.rita).json(body))
    }

    fn counters(&self, part: &str) -> Json {
        self.daemon.get("/v1/mentions/metrics").json()[part].clone()
    }

    fn marked(&self, message_id: &str, body: Json) -> Reply {
        self.daemon.post_as(&self.rita, &format!("/v1/mentions/{message_id}/false-positive"), body)
    }
}

fn counted(candidates: u64, would_allow: u64, duplicates: u64, false_positives: u64) -> Json {
    json!({"candidates": candidates, "wouldAllow": would_allow, "loopsStopped": 0, "duplicatesStopped": duplicates,
        "expired": 0, "falsePositives": false_positives})
}

const FIRST: &str = "1473395000000000101";
const SECOND: &str = "1473395000000000102";

#[test]
fn the_phase_goes_up_one_step_at_a_time_and_down_at_will() {
    let house = House::new();
    let at =
        |reply: Reply| (reply.status, reply.json()["phase"].as_str().unwrap_or(&reply.code()).to_owned());
    assert_eq!(house.daemon.get("/v1/mentions/phase").json(), json!({"phase": "log-only", "moved": null}));
    let refused = |code: &str| (409, code.to_owned());
    assert_eq!(at(house.phase("gated-live")), refused("MENTION_PHASE_SKIPPED"));
    assert_eq!(at(house.phase("log-only")), refused("MENTION_PHASE_SAME"));
    assert_eq!(at(house.phase("gated-read")), (200, "gated-read".to_owned()));
    assert_eq!(at(house.phase("gated-live")), (200, "gated-live".to_owned()));
    let moved = house.daemon.get("/v1/mentions/phase").json()["moved"].clone();
    assert_eq!(
        (&moved["from"], &moved["by"], &moved["code"]),
        (&json!("gated-read"), &json!("rita"), &json!(null))
    );
    assert_eq!(at(house.phase("log-only")), (200, "log-only".to_owned()));
    let bad = house.phase("everything");
    assert_eq!(
        (bad.status, bad.code().as_str(), bad.json()["pointer"].as_str()),
        (422, "ACT_INVALID", Some("/phase"))
    );
}

#[test]
fn log_only_records_what_a_mention_would_have_been_and_lets_nothing_through() {
    let house = House::new();
    let first = signed(mention("log_0001", FIRST), |_| {});
    assert_eq!(house.codes(&first), ["POLICY_MENTION_PHASE"]);
    // The sender tries again, which is no second mention; and another handoff comes from the same message.
    assert_eq!(house.codes(&first), ["POLICY_MENTION_PHASE"]);
    assert_eq!(house.codes(&signed(mention("log_0002", FIRST), |_| {})), ["POLICY_MENTION_PHASE"]);
    let denied =
        signed(mention("log_0003", SECOND), |spec| spec["rollback"]["planRef"] = "docs/none.md".into());
    assert_eq!(house.codes(&denied), ["POLICY_MENTION_PHASE", "POLICY_ROLLBACK_PLAN_MISSING"]);
    assert_eq!(house.counters("total"), counted(3, 1, 1, 0));

    let page = house.daemon.get("/v1/mentions?limit=2").json();
    let shown = |row: &Json| (row["messageId"].clone(), row["wouldBe"].clone(), row["codes"].clone());
    let rows = page["mentions"].as_array().unwrap();
    assert_eq!(shown(&rows[0]), (json!(SECOND), json!("denied"), json!(["POLICY_ROLLBACK_PLAN_MISSING"])));
    assert_eq!(shown(&rows[1]), (json!(FIRST), json!("denied"), json!(["POLICY_MENTION_DUPLICATE"])));
    let next = page["next"].as_str().unwrap();
    let rest = house.daemon.get(&format!("/v1/mentions?limit=2&cursor={next}")).json();
    assert_eq!(shown(&rest["mentions"][0]), (json!(FIRST), json!("allowed"), json!([])));
    assert_eq!((&rest["mentions"][0]["phase"], &rest["next"]), (&json!("log-only"), &json!(null)));
    assert_eq!(house.daemon.metric("handoffd_mentions_total{counter=\"candidates\"}"), Some(3.0));
    assert_eq!(house.daemon.metric("handoffd_mentions_total{counter=\"duplicates_stopped\"}"), Some(1.0));
}

#[test]
fn gated_read_lets_reading_through_once_for_each_message() {
    let house = House::new();
    assert_eq!(house.codes(&signed(mention("read_0001", FIRST), |_| {})), ["POLICY_MENTION_PHASE"]);
    assert_eq!(house.phase("gated-read").status, 200);
    // What was only recorded has not used its message.
    let allowed = house.daemon.submit(&signed(mention("read_0002", FIRST), |_| {}));
    assert_eq!(allowed.status, 201, "{allowed:?}");
    assert_eq!(house.codes(&signed(mention("read_0003", FIRST), |_| {})), ["POLICY_MENTION_DUPLICATE"]);
    assert_eq!(house.counters("inPhase"), counted(2, 1, 1, 0));
    assert_eq!(house.counters("total"), counted(3, 2, 1, 0));
    // Work that needs a person waits for the next phase.
    let sensitive = signed(mention("read_0004", SECOND), |spec| {
        spec["authorship"]["risk"] = json!({"classification": "sensitive", "requiresConfirmation": true,
            "authorizationRef": "authz_01KHSA7E5V0000000000000004"});
    });
    let refused = house.codes(&sensitive);
    assert!(refused.contains(&"POLICY_MENTION_PHASE".to_owned()), "{refused:?}");
}

#[test]
fn a_violation_in_gated_live_takes_the_phase_back_a_step_by_itself() {
    let house = House::new();
    assert_eq!((house.phase("gated-read").status, house.phase("gated-live").status), (200, 200));
    let phase = || house.daemon.get("/v1/mentions/phase").json();
    // Anybody can make up a TaskSpec; without a proof that verifies it says nothing about those who are trusted.
    let mut forged = signed(mention("fall_0001", FIRST), |_| {});
    forged["authorship"]["envelope"]["proof"]["signature"] = json!("0".repeat(64));
    assert_eq!(house.codes(&forged), ["A2A_SIGNATURE_INVALID"]);
    assert_eq!(phase()["phase"], "gated-live");
    // The same TaskSpec once more is no violation.
    let good = signed(mention("fall_0002", FIRST), |_| {});
    assert_eq!(house.daemon.submit(&good).status, 201);
    assert_eq!(house.daemon.submit(&good).json()["replayed"], true);
    assert_eq!(phase()["phase"], "gated-live");
    // The message once more, for other work, is.
    assert_eq!(house.codes(&signed(mention("fall_0003", FIRST), |_| {})), ["POLICY_MENTION_DUPLICATE"]);
    let fallen = phase();
    assert_eq!(
        (&fallen["phase"], &fallen["moved"]["code"]),
        (&json!("gated-read"), &json!("POLICY_MENTION_DUPLICATE"))
    );
    // Only from there does it fall: a person goes on from here.
    assert_eq!(house.codes(&signed(mention("fall_0004", FIRST), |_| {})), ["POLICY_MENTION_DUPLICATE"]);
    assert_eq!(phase()["phase"], "gated-read");
}

#[test]
fn one_of_many_handoffs_wins_a_message_and_a_restart_changes_nothing() {
    let mut house = House::new();
    assert_eq!(house.phase("gated-read").status, 200);
    let specs: Vec<Json> = (0..64).map(|n| signed(mention(&format!("race_{n:04}"), FIRST), |_| {})).collect();
    let daemon = &house.daemon;
    let decided: Vec<Json> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            specs.iter().map(|spec| scope.spawn(move || daemon.submit(spec).json())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let won = |decisions: &[Json]| -> Vec<usize> {
        (0..decisions.len()).filter(|n| decisions[*n]["decision"] == "allowed").collect()
    };
    let winners = won(&decided);
    assert_eq!(winners.len(), 1);
    for (n, decision) in decided.iter().enumerate().filter(|(n, _)| !winners.contains(n)) {
        assert_eq!(codes(decision), ["POLICY_MENTION_DUPLICATE"], "{n}");
    }
    house.daemon.signal("TERM");
    house.daemon.wait();
    house.daemon.restart_after_stop();
    assert_eq!(house.daemon.get("/v1/mentions/phase").json()["phase"], "gated-read");
    let again: Vec<Json> = specs.iter().map(|spec| house.daemon.submit(spec).json()).collect();
    assert_eq!(won(&again), winners);
    assert_eq!(again[winners[0]]["replayed"], true);
}

#[test]
fn an_operator_marks_a_mention_as_none_once() {
    let house = House::new();
    let why = || json!({"reason": "it was a joke"});
    assert_eq!(house.marked(FIRST, why()).status, 404);
    house.codes(&signed(mention("joke_0001", FIRST), |_| {}));
    let listed = || house.daemon.get("/v1/mentions").json()["mentions"][0]["falsePositive"].clone();
    assert_eq!(listed(), false);
    let marked = house.marked(FIRST, why());
    assert_eq!(
        (marked.status, &marked.json()["handoffId"]),
        (200, &json!("hs_20260218_joke_0001")),
        "{marked:?}"
    );
    let again = house.marked(FIRST, why());
    assert_eq!((again.status, again.code().as_str()), (409, "MENTION_MARKED_ALREADY"));
    assert_eq!(house.counters("total"), counted(1, 1, 0, 1));
    assert_eq!(listed(), true);

    // A message that led to several is named with the handoff that is meant.
    house.codes(&signed(mention("joke_0002", SECOND), |_| {}));
    house.codes(&signed(mention("joke_0003", SECOND), |_| {}));
    let which = house.marked(SECOND, why());
    assert_eq!((which.status, which.code().as_str()), (409, "MENTION_AMBIGUOUS"));
    assert_eq!(which.json()["handoffIds"], json!(["hs_20260218_joke_0003", "hs_20260218_joke_0002"]));
    let named = |handoff: &str| house.marked(SECOND, json!({"reason": "a joke", "handoffId": handoff}));
    assert_eq!(named("hs_20260218_joke_0002").status, 200);
    assert_eq!(named("hs_20260218_joke_0001").status, 404, "it came from another message");
    assert_eq!(house.counters("total")["falsePositives"], 2);
}
