//! What waits for a person, who may answer, and what an answer comes to.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::contract::Mode;
use crate::limits;
use crate::proof::Digest;
use crate::wire::Kind;
use crate::wire::tests::{Ledger, Told};

const START: &str = "2026-02-18T19:00:00Z";
const DIGEST: &str = "sha256:7777777777777777777777777777777777777777777777777777777777777777";

fn stream(n: u8) -> String {
    format!("task:hs_waits_{n:04}:attempt:2")
}

fn id(n: u8) -> String {
    format!("hs_waits_{n:04}")
}

fn created(ledger: &mut Ledger, n: u8) -> Told {
    ledger.tell(Kind::TaskCreated, "system", &stream(n), |payload| {
        payload.count("attempt", 2);
        payload.text("content_digest", DIGEST);
        payload.object("delegation", |payload| {
            payload.text_or_null("authorization_ref", None);
            payload.text_or_null("channel", None);
            payload.text("delegate_agent", "decision-router");
            payload.text_or_null("envelope_hash", None);
            payload.text_or_null("policy_ref", None);
            payload.text("principal", "user:main");
            payload.text("risk_classification", "read");
        });
        payload.text("handoff_id", &id(n));
        payload.text_or_null("idempotency_key", None);
        payload.text_or_null("intent_hash", None);
        payload.text_or_null("message_id", None);
        payload.text("mode", "live");
        payload.text("operation", "transfer");
        payload.text_or_null("parent_handoff_id", None);
        payload.text("route_key", "crypto-sage.execution-plane.v1");
        payload.text("source_agent", "decision-router");
        payload.text("target_agent", "crypto-sage");
        payload.text("task_spec_digest", DIGEST);
    })
}

fn asked(ledger: &mut Ledger, n: u8, approvers: Option<u8>, seconds: Option<i64>) -> Told {
    let expires_at = seconds.map(|seconds| ledger.now().plus_seconds(seconds));
    let requested = ApprovalRequested { approvers, expires_at };
    ledger.tell(Kind::ApprovalRequested, "system", &stream(n), |payload| requested.write(payload))
}

fn yes(ledger: &mut Ledger, n: u8, person: &Person, remaining: u8) -> Told {
    let granted = ApprovalGranted {
        principal: person.principal().map(str::to_owned),
        reason: Some("looked at it".to_owned()),
        remaining: Some(remaining),
        task_spec_digest: Digest::parse(DIGEST).unwrap(),
    };
    let sender = format!("human:{}", person.name());
    ledger.tell(Kind::ApprovalGranted, &sender, &stream(n), |payload| granted.write(payload))
}

fn no(ledger: &mut Ledger, n: u8, sender: &str, code: &str) -> Told {
    let rejected = ApprovalRejected { code: code.to_owned(), reason: None };
    ledger.tell(Kind::ApprovalRejected, sender, &stream(n), |payload| rejected.write(payload))
}

fn inbox_of(facts: &[Told]) -> Inbox {
    let mut inbox = Inbox::default();
    for told in facts {
        inbox.take(&told.fact()).unwrap();
    }
    inbox
}

/// One handoff that waits for so many people.
fn one_waits(needed: u8) -> (Ledger, Inbox) {
    let mut ledger = Ledger::from(START);
    let facts = [created(&mut ledger, 1), asked(&mut ledger, 1, Some(needed), Some(900))];
    let inbox = inbox_of(&facts);
    (ledger, inbox)
}

fn code<T>(answer: Result<T, ApprovalFault>) -> &'static str {
    match answer {
        Ok(_) => "ok",
        Err(fault) => {
            assert!(!fault.hint().is_empty() && !fault.to_string().is_empty());
            fault.code()
        }
    }
}

#[test]
fn what_waits_is_known_with_all_that_it_takes_to_answer() {
    let (ledger, inbox) = one_waits(2);
    let waiting = inbox.find(&id(1)).unwrap();
    assert_eq!(&*waiting.handoff_id, id(1));
    assert_eq!((waiting.attempt, waiting.needed, waiting.missing()), (2, 2, 2));
    assert_eq!(waiting.task_spec_digest.to_string(), DIGEST);
    assert_eq!(waiting.route_key.as_deref(), Some("crypto-sage.execution-plane.v1"));
    assert_eq!(waiting.source.as_deref(), Some("decision-router"));
    assert_eq!(waiting.target.as_deref(), Some("crypto-sage"));
    assert_eq!(waiting.principal.as_deref(), Some("user:main"));
    assert_eq!(waiting.asked_at, ledger.now());
    assert_eq!(code(inbox.find("hs_unknown_1")), "APPROVAL_NOT_WAITING");
}

#[test]
fn only_the_attempt_that_waits_is_settled_or_approved() {
    let (mut ledger, mut inbox) = one_waits(1);
    let other = format!("task:{}:attempt:3", id(1));
    let told = [
        ledger
            .tell(Kind::TaskRejected, "system", &other, |payload| payload.texts("codes", &["POLICY_FROZEN"])),
        ledger.tell(Kind::TaskAvailable, "system", &other, |_| {}),
        ledger.tell(Kind::TaskCancelled, "human:rita", &other, |payload| payload.text("reason", "x")),
        ledger.tell(Kind::ApprovalRejected, "human:rita", &other, |p| p.text("code", APPROVAL_REJECTED)),
    ];
    for told in told {
        inbox.take(&told.fact()).unwrap();
        assert!(inbox.find(&id(1)).is_ok(), "{:?}", told.fact().kind);
    }
    let granted = ApprovalGranted {
        principal: None,
        reason: None,
        remaining: Some(0),
        task_spec_digest: Digest::parse(DIGEST).unwrap(),
    };
    let told = ledger.tell(Kind::ApprovalGranted, "human:rita", &other, |payload| granted.write(payload));
    assert!(inbox.take(&told.fact()).is_err());
    let own = ledger
        .tell(Kind::TaskRejected, "system", &stream(1), |payload| payload.texts("codes", &["POLICY_FROZEN"]));
    inbox.take(&own.fact()).unwrap();
    assert_eq!(code(inbox.find(&id(1))), "APPROVAL_NOT_WAITING");
}

#[test]
fn nobody_approves_their_own_and_everybody_may_stop_it() {
    let (ledger, inbox) = one_waits(1);
    let waiting = inbox.find(&id(1)).unwrap();
    let check = |person: Person, expected: &str| {
        let say = |answer| code(may_decide(&person, (waiting, &[]), answer, ledger.now(), None));
        assert_eq!(say(Answer::Approve), expected, "{person:?}");
        assert_eq!(say(Answer::Reject), "ok", "{person:?}");
    };
    check(person("rita", None), "ok");
    check(person("rita", Some("user:rita")), "ok");
    check(person("rita", Some("user:main")), "APPROVAL_OWN");
    check(person("user:main", None), "APPROVAL_OWN");
    check(person("decision-router", None), "APPROVAL_OWN");
    check(person("rita", Some("decision-router")), "APPROVAL_OWN");
    check(person("crypto-sage", None), "APPROVAL_OWN");
    check(person("rita", Some("crypto-sage")), "APPROVAL_OWN");
}

#[test]
fn an_answer_counts_until_its_time_is_over_or_the_ledger_was_restored() {
    let (ledger, inbox) = one_waits(1);
    let waiting = inbox.find(&id(1)).unwrap();
    let rita = person("rita", None);
    let check = |at: Timestamp, since: Option<Timestamp>, expected: &str| {
        for answer in [Answer::Approve, Answer::Reject] {
            assert_eq!(code(may_decide(&rita, (waiting, &[]), answer, at, since)), expected);
        }
        assert_eq!(inbox.over(at, since).count(), usize::from(expected != "ok"));
    };
    let just_before = at("2026-02-18T19:15:00.999999999Z");
    assert_eq!(waiting.until, at("2026-02-18T19:15:01Z"));
    check(just_before, None, "ok");
    check(waiting.until, None, "APPROVAL_EXPIRED");
    check(just_before, Some(ledger.now()), "ok");
    check(just_before, Some(ledger.now().plus_nanosecond()), "APPROVAL_EXPIRED");
}

#[test]
fn a_route_that_asks_for_two_people_gets_two() {
    let (mut ledger, mut inbox) = one_waits(2);
    let (rita, bo) = (person("rita", Some("user:rita")), person("bo", None));
    let waiting = inbox.find(&id(1)).unwrap();
    assert_eq!(waiting.after_yes(&rita, 2), 1);
    inbox.take(&yes(&mut ledger, 1, &rita, 1).fact()).unwrap();

    let waiting = inbox.find(&id(1)).unwrap().clone();
    let say = |person: &Person, answer| code(may_decide(person, (&waiting, &[]), answer, ledger.now(), None));
    assert_eq!((waiting.missing(), waiting.after_yes(&rita, 2), waiting.after_yes(&bo, 2)), (1, 1, 0));
    assert_eq!(say(&rita, Answer::Approve), "APPROVAL_TWICE");
    assert_eq!(say(&person("rita-phone", Some("user:rita")), Answer::Approve), "APPROVAL_TWICE");
    assert_eq!(say(&rita, Answer::Reject), "ok");
    assert_eq!(say(&bo, Answer::Approve), "ok");

    // The same yes again, from whichever of her tokens, is not a second one.
    let phone = person("rita-phone", Some("user:rita"));
    for again in [yes(&mut ledger, 1, &rita, 0), yes(&mut ledger, 1, &phone, 0)] {
        assert_eq!(inbox.take(&again.fact()).unwrap_err().why, "the same person said yes before");
        assert_eq!(inbox.find(&id(1)).unwrap().missing(), 1);
    }
    inbox.take(&yes(&mut ledger, 1, &bo, 0).fact()).unwrap();
    let waiting = inbox.find(&id(1)).unwrap();
    assert_eq!(waiting.missing(), 0);
    let third = person("ines", None);
    assert_eq!(
        code(may_decide(&third, (waiting, &[]), Answer::Approve, ledger.now(), None)),
        "APPROVAL_NOT_WAITING"
    );
}

#[test]
fn a_yes_is_to_one_taskspec_and_from_a_person() {
    let (mut ledger, mut inbox) = one_waits(1);
    let rita = person("rita", None);
    let other = yes(&mut ledger, 1, &rita, 0).with(|payload| {
        payload["task_spec_digest"] = json!(Digest::of(b"another amount").to_string());
    });
    assert_eq!(inbox.take(&other.fact()).unwrap_err().why, "it is a yes to another TaskSpec");
    let agent = yes(&mut ledger, 1, &rita, 0).from("agent:crypto-sage");
    assert_eq!(inbox.take(&agent.fact()).unwrap_err().why, "no person said it");
    let elsewhere = yes(&mut ledger, 2, &rita, 0);
    assert_eq!(inbox.take(&elsewhere.fact()).unwrap_err().why, "it does not wait");
    assert_eq!(inbox.find(&id(1)).unwrap().missing(), 1);
    inbox.take(&yes(&mut ledger, 1, &rita, 0).fact()).unwrap();
    assert_eq!(inbox.find(&id(1)).unwrap().missing(), 0);
}

#[test]
fn what_is_settled_no_longer_waits() {
    type End = fn(&mut Ledger) -> Told;
    let ends: [(&str, End); 5] = [
        ("rejected", |ledger| no(ledger, 1, "human:rita", APPROVAL_REJECTED)),
        ("expired", |ledger| no(ledger, 1, "system", APPROVAL_EXPIRED)),
        ("allowed", |ledger| ledger.tell(Kind::TaskAvailable, "system", &stream(1), |_| {})),
        ("cancelled", |ledger| {
            ledger.tell(Kind::TaskCancelled, "human:rita", &stream(1), |payload| {
                payload.text("reason", "no longer needed");
            })
        }),
        ("another one is", |ledger| ledger.tell(Kind::TaskAvailable, "system", &stream(2), |_| {})),
    ];
    for (what, end) in ends {
        let (mut ledger, mut inbox) = one_waits(1);
        inbox.take(&end(&mut ledger).fact()).unwrap();
        let still = usize::from(what == "another one is");
        assert_eq!((inbox.count(), inbox.by_end().count()), (still, still), "{what}");
    }
}

#[test]
fn a_request_belongs_to_the_handoff_that_was_created_before_it() {
    let mut ledger = Ledger::from(START);
    let mut inbox = Inbox::default();
    let alone = asked(&mut ledger, 1, None, None);
    assert_eq!(inbox.take(&alone.fact()).unwrap_err().why, "nothing was created before it");
    inbox.take(&created(&mut ledger, 1).fact()).unwrap();
    let other = asked(&mut ledger, 2, None, None);
    assert_eq!(inbox.take(&other.fact()).unwrap_err().why, "nothing was created before it");
    assert_eq!(inbox.count(), 0);
    inbox.take(&created(&mut ledger, 3).fact()).unwrap();
    inbox.take(&asked(&mut ledger, 3, None, None).fact()).unwrap();
    let waiting = inbox.find(&id(3)).unwrap();
    assert_eq!(waiting.needed, 1);
    assert_eq!(waiting.until, ledger.now().plus_seconds(limits::APPROVAL_WAIT_S));
}

#[test]
fn what_ends_first_is_listed_first() {
    let mut ledger = Ledger::from(START);
    let mut inbox = Inbox::default();
    for (n, seconds) in [(1, 300), (2, 100), (3, 200)] {
        inbox.take(&created(&mut ledger, n).fact()).unwrap();
        inbox.take(&asked(&mut ledger, n, None, Some(seconds)).fact()).unwrap();
    }
    let listed: Vec<_> = inbox.by_end().map(|waiting| waiting.handoff_id.to_string()).collect();
    assert_eq!(listed, [id(2), id(3), id(1)]);
    let late = inbox.find(&id(3)).unwrap().until;
    let over: Vec<_> = inbox.over(late, None).map(|waiting| waiting.handoff_id.to_string()).collect();
    assert_eq!(over, [id(2), id(3)]);
}

#[test]
fn the_inbox_takes_no_more_than_it_can_keep() {
    let (mut ledger, mut inbox) = (Ledger::from(START), Inbox::default());
    let (task, request) = (created(&mut ledger, 1), asked(&mut ledger, 1, None, Some(900)));
    for n in 0..limits::WAITING_APPROVALS_MAX {
        assert_eq!(code(inbox.room()), "ok");
        let name = format!("task:hs_flood_{n:06}:attempt:1");
        inbox.take(&task.clone().within(&name).fact()).unwrap();
        inbox.take(&request.clone().within(&name).fact()).unwrap();
    }
    assert_eq!(code(inbox.room()), "APPROVAL_FULL");
    let settled = ledger.tell(Kind::TaskAvailable, "system", "task:hs_flood_000000:attempt:1", |_| {});
    inbox.take(&settled.fact()).unwrap();
    assert_eq!(code(inbox.room()), "ok");
}

#[test]
fn one_persons_grant_stands_in_for_one_person_and_never_for_two() {
    for (mode, covered, approvers, needed) in [
        (Mode::Dev, false, 2, 0),
        (Mode::Simulated, false, 1, 0),
        (Mode::Simulated, true, 2, 0),
        (Mode::Live, false, 1, 1),
        (Mode::Live, true, 1, 0),
        (Mode::Live, false, 2, 2),
        (Mode::Live, true, 2, 2),
        // A route always asks for somebody.
        (Mode::Live, false, 0, 1),
    ] {
        assert_eq!(people_needed(mode, covered, approvers), needed, "{mode:?} {covered} {approvers}");
    }
}

#[test]
fn an_answer_is_read_whole_or_every_fault_is_named() {
    let check =
        |body: &str, expected: &[&str]| assert_eq!(wrong(body, ApprovalAsk::read), expected, "{body}");
    check(r#"{"decision": "approve", "reason": "checked the amount"}"#, &[]);
    check(r#"{"decision": "reject", "reason": "too much"}"#, &[]);
    check(r#"{"decision": "yes", "reason": "x"}"#, &["/decision"]);
    check(r#"{"decision": "approve"}"#, &["/reason"]);
    check(r#"{"decision": "approve", "reason": ""}"#, &["/reason"]);
    check(r#"{"decision": "approve", "reason": "  "}"#, &["/reason"]);
    check(r#"{"reason": 1, "handoffId": "hs_1"}"#, &["/decision", "/handoffId", "/reason"]);
    let long = |chars: usize| json!({"decision": "approve", "reason": "é".repeat(chars)}).to_string();
    check(&long(limits::REASON_CHARS_MAX), &[]);
    check(&long(limits::REASON_CHARS_MAX + 1), &["/reason"]);
    let text = r#"{"decision": "reject", "reason": "too much"}"#;
    let ask = ApprovalAsk::read(&read(text.as_bytes(), BOUNDS).unwrap()).unwrap();
    assert_eq!((ask.answer.as_str(), ask.reason.as_str()), ("reject", "too much"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// People answer in any order; what is allowed had as many different people as were asked for, none of them with a
    /// part in it, and reading the events again gives the same inbox.
    #[test]
    fn nothing_is_allowed_with_fewer_people_than_were_asked_for(
        asks in prop::collection::vec((0..3u8, 1..=2u8), 1..4),
        answers in prop::collection::vec((0..3u8, 0..5usize, any::<bool>(), 0..400i64), 0..30),
    ) {
        let people = [
            person("rita", Some("user:rita")),
            person("rita-phone", Some("user:rita")),
            person("bo", None),
            person("crypto-sage", None),
            person("main", Some("user:main")),
        ];
        let (mut ledger, mut inbox, mut written) = (Ledger::from(START), Inbox::default(), Vec::new());
        let mut needed = BTreeMap::new();
        let mut tell = |inbox: &mut Inbox, told: Told| {
            inbox.take(&told.fact()).unwrap();
            written.push(told);
        };
        for (n, approvers) in asks {
            if needed.insert(n, approvers).is_none() {
                tell(&mut inbox, created(&mut ledger, n));
                tell(&mut inbox, asked(&mut ledger, n, Some(approvers), Some(900)));
            } else {
                needed.insert(n, inbox.find(&id(n)).unwrap().needed);
            }
        }
        let mut yeses = BTreeMap::<u8, std::collections::BTreeSet<&str>>::new();
        for (n, who, approves, seconds) in answers {
            ledger.pass_seconds(seconds);
            let person = &people[who];
            let Ok(waiting) = inbox.find(&id(n)).cloned() else { continue };
            let answer = if approves { Answer::Approve } else { Answer::Reject };
            let now = ledger.now();
            if may_decide(person, (&waiting, &[]), answer, now, None).is_err() {
                continue;
            }
            prop_assert!(now < waiting.until);
            if !approves {
                tell(&mut inbox, no(&mut ledger, n, &format!("human:{}", person.name()), APPROVAL_REJECTED));
                continue;
            }
            let remaining = waiting.after_yes(person, waiting.needed);
            tell(&mut inbox, yes(&mut ledger, n, person, remaining));
            prop_assert_eq!(inbox.find(&id(n)).unwrap().missing(), remaining);
            // By the human being, not by the token.
            yeses.entry(n).or_default().insert(person.principal().unwrap_or(person.name()));
            if remaining == 0 {
                let said: Vec<_> = yeses[&n].iter().copied().collect();
                prop_assert_eq!(said.len(), usize::from(needed[&n]));
                prop_assert!(said.iter().all(|name| ["user:rita", "bo"].contains(name)), "{:?}", said);
                tell(&mut inbox, ledger.tell(Kind::TaskAvailable, "system", &stream(n), |_| {}));
            }
        }
        prop_assert!(inbox_of(&written) == inbox);
    }
}
