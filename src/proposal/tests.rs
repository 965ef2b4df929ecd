//! What waits, what an answer does to it, and what can no longer be answered.

use super::*;
use crate::json::{Bounds, read};
use crate::wire::tests::{Ledger, Told};

const START: &str = "2026-02-18T19:00:00Z";

/// The digest of a set that is called so.
fn set(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

fn propose(ledger: &mut Ledger, name: &str, over: &str) -> Told {
    let proposed = PolicyProposed { digest: set(name), previous_digest: set(over) };
    ledger.own(Kind::PolicyProposed, "system", |payload| proposed.write(payload))
}

fn answer(ledger: &mut Ledger, kind: Kind, name: &str) -> Told {
    let answered = PolicyAnswered { digest: set(name), reason: "looked at it".to_owned() };
    ledger.own(kind, "human:rita", |payload| answered.write(payload))
}

/// What is said of `asked` after a history such as `propose b over a, reject b`, with `in_force` in force.
fn check(history: &str, asked: &str, in_force: &str, expected: &str) {
    let (mut ledger, mut proposals) = (Ledger::from(START), Proposals::default());
    for step in history.split(", ").filter(|step| !step.is_empty()) {
        let words: Vec<&str> = step.split(' ').collect();
        let told = match words[..] {
            ["propose", name, "over", other] => propose(&mut ledger, name, other),
            ["approve", name] => answer(&mut ledger, Kind::PolicyApproved, name),
            ["reject", name] => answer(&mut ledger, Kind::PolicyRejected, name),
            _ => panic!("{step}"),
        };
        proposals.take(&told.fact()).unwrap();
    }
    let found = match proposals.may_answer(set(asked), Some(&set(in_force).to_string())) {
        Ok(proposal) => format!("waits since entry {}", proposal.sequence),
        Err(fault) => fault.code().to_owned(),
    };
    assert_eq!(found, expected, "{history}: {asked} over {in_force}");
}

#[test]
fn what_was_proposed_over_the_set_in_force_waits_until_it_is_answered() {
    check("", "b", "a", "POLICY_NOT_WAITING");
    check("propose b over a", "b", "a", "waits since entry 1");
    check("propose b over a", "c", "a", "POLICY_NOT_WAITING");
    check("propose b over a, reject b", "b", "a", "POLICY_REJECTED");
    check("propose b over a, approve b", "b", "a", "POLICY_NOT_WAITING");
    check("propose b over a, approve b", "b", "b", "POLICY_NOT_WAITING");
    // Proposed again, it waits again.
    check("propose b over a, reject b, propose b over a", "b", "a", "waits since entry 3");
    // Two gateways that share a ledger may have different files.
    check("propose b over a, propose c over a", "b", "a", "waits since entry 1");
    check("propose b over a, propose c over a, reject c", "b", "a", "waits since entry 1");
}

#[test]
fn a_proposal_is_void_once_another_set_is_in_force() {
    check("propose c over a", "c", "b", "POLICY_NOT_WAITING");
    check("propose c over a, propose d over b", "c", "a", "POLICY_NOT_WAITING");
    check("propose c over a, propose c over b", "c", "b", "waits since entry 2");
}

#[test]
fn only_so_many_are_remembered_the_newest() {
    let mut history: Vec<String> =
        (0..=limits::PROPOSALS_KEPT_MAX).map(|n| format!("propose s{n} over a")).collect();
    check(&history.join(", "), "s0", "a", "POLICY_NOT_WAITING");
    check(&history.join(", "), "s1", "a", "waits since entry 2");
    history.push("propose s1 over a".to_owned());
    check(&history.join(", "), "s2", "a", &format!("waits since entry {}", 3));
}

#[test]
fn whoever_is_no_person_rejects_nothing() {
    let mut ledger = Ledger::from(START);
    let mut proposals = Proposals::default();
    proposals.take(&propose(&mut ledger, "b", "a").fact()).unwrap();
    let told = answer(&mut ledger, Kind::PolicyRejected, "b").from("system");
    assert!(proposals.take(&told.fact()).is_err());
    let told = answer(&mut ledger, Kind::PolicyRejected, "b").with(|payload| payload["reason"] = 7.into());
    assert!(proposals.take(&told.fact()).is_err());
}

#[test]
fn an_answer_says_to_what_and_why() {
    let digest = set("b");
    let check = |change: &dyn Fn(&mut serde_json::Value), expected: &str| {
        let mut body = serde_json::json!({"digest": digest, "decision": "approve", "reason": "reviewed"});
        change(&mut body);
        let text = body.to_string();
        let document = read(text.as_bytes(), Bounds { bytes_max: 4096, levels_max: 8 }).unwrap();
        let found = match ProposalAsk::read(&document) {
            Ok(ask) => format!("{:?} {}", ask.decision, ask.digest == digest),
            Err(findings) => {
                findings.iter().map(|finding| finding.pointer.as_str()).collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(found, expected, "{text}");
    };
    check(&|_| {}, "Approve true");
    check(&|body| body["decision"] = "reject".into(), "Reject true");
    check(&|body| body["decision"] = "perhaps".into(), "/decision");
    check(&|body| body["digest"] = "sha256:00".into(), "/digest");
    check(&|body| body["digest"] = digest.to_string().to_uppercase().into(), "/digest");
    check(&|body| body["reason"] = " ".into(), "/reason");
    check(&|body| body["reason"] = "é".repeat(501).into(), "/reason");
    check(&|body| drop(body.as_object_mut().unwrap().remove("digest")), "/digest");
    check(&|body| body["digst"] = "x".into(), "/digst");
}
