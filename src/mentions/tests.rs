//! Phases, what they let through, what takes them back, and what is counted.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::contract::{Finding, RiskClass, Word as _};
use crate::gates::Code;
use crate::json::{Bounds, Document, read};
use crate::limits;
use crate::proof::Digest;
use crate::wire::Kind;
use crate::wire::tests::{Ledger, Told};

const START: &str = "2026-02-18T19:00:00Z";

fn moved(ledger: &mut Ledger, sender: &str, from: Phase, to: Phase, code: Option<&str>) -> Told {
    let changed = MentionChanged {
        code: code.map(str::to_owned),
        from,
        reason: "a week without a loop".to_owned(),
        to,
    };
    ledger.own(Kind::MentionChanged, sender, |payload| changed.write(payload))
}

fn observation(n: usize) -> MentionObserved {
    MentionObserved {
        codes: Vec::new(),
        content_digest: Some(Digest::of(b"content")),
        handoff_id: format!("hs_mention_{n:06}"),
        message_id: Some(format!("{:018}", 1_473_395_000_000_000_001 + n as u64)),
        phase: Some(Phase::LogOnly),
        risk_classification: Some(RiskClass::Read),
        would_be: "allowed".to_owned(),
    }
}

fn seen(ledger: &mut Ledger, observed: &MentionObserved) -> Told {
    ledger.own(Kind::MentionObserved, "system", |payload| observed.write(payload))
}

fn marked(ledger: &mut Ledger, n: usize) -> Told {
    let marked = MentionMarked {
        handoff_id: format!("hs_mention_{n:06}"),
        message_id: None,
        reason: Some("a joke".to_owned()),
    };
    ledger.own(Kind::MentionMarked, "human:rita", |payload| marked.write(payload))
}

fn rollout_of(facts: &[Told]) -> Rollout {
    let mut rollout = Rollout::default();
    for told in facts {
        rollout.take(&told.fact()).unwrap();
    }
    rollout
}

#[test]
fn a_phase_lets_through_what_it_is_for() {
    let let_through = |phase: Phase| -> Vec<&str> {
        let passes = |(_, class): &&(&str, RiskClass)| phase.lets_through(*class);
        RiskClass::WORDS.iter().filter(passes).map(|(word, _)| *word).collect()
    };
    assert_eq!(let_through(Phase::LogOnly), Vec::<&str>::new());
    assert_eq!(let_through(Phase::GatedRead), ["read", "diagnostic"]);
    assert_eq!(let_through(Phase::GatedLive), ["read", "diagnostic", "sensitive", "live"]);
}

#[test]
fn an_operator_goes_up_one_step_at_a_time_and_down_at_will() {
    let check = |from: &str, to: &str, expected: &str| {
        let (from, to): (Phase, Phase) = (from.parse().unwrap(), to.parse().unwrap());
        let answer = from.may_move(to);
        if let Err(fault) = answer {
            assert!(!fault.hint().is_empty() && !fault.to_string().is_empty());
        }
        assert_eq!(answer.map_or_else(PhaseFault::code, |()| "ok"), expected, "{from} to {to}");
    };
    check("log-only", "log-only", "MENTION_PHASE_SAME");
    check("log-only", "gated-read", "ok");
    check("log-only", "gated-live", "MENTION_PHASE_SKIPPED");
    check("gated-read", "log-only", "ok");
    check("gated-read", "gated-live", "ok");
    check("gated-live", "gated-read", "ok");
    check("gated-live", "log-only", "ok");
    check("gated-live", "gated-live", "MENTION_PHASE_SAME");
}

#[test]
fn a_violation_in_gated_live_takes_the_phase_back_a_step() {
    let reason = |code: Code| (code.gate().id(), code.as_str());
    let check = |phase, reasons: &[Code], verified, replay, expected: Option<(Phase, &str)>| {
        let reasons = reasons.iter().copied().map(reason);
        assert_eq!(falls_back(phase, reasons, verified, replay), expected);
    };
    let read = Phase::GatedRead;
    // One of each gate from D1 to D4.
    for code in [Code::AgentDenied, Code::ScopeExceeded, Code::AuthorizationSpent, Code::MentionLoop] {
        check(Phase::GatedLive, &[code], true, false, Some((read, code.as_str())));
        check(Phase::GatedLive, &[code], false, false, None);
        check(Phase::GatedLive, &[code], true, true, None);
        check(Phase::GatedRead, &[code], true, false, None);
        check(Phase::LogOnly, &[code], true, false, None);
    }
    // Other gates have other remedies, and a mention that is let through takes nothing back.
    check(Phase::GatedLive, &[Code::RouteUnknown, Code::StageNotReached, Code::Frozen], true, false, None);
    check(Phase::GatedLive, &[], true, false, None);
    let both = [Code::Frozen, Code::MentionExpired, Code::MentionDuplicate];
    check(Phase::GatedLive, &both, true, false, Some((read, "POLICY_MENTION_EXPIRED")));
}

#[test]
fn the_gates_that_take_the_phase_back_are_those_of_a_delegation() {
    let taking: std::collections::BTreeSet<_> = Code::ALL
        .iter()
        .map(|code| (code.gate().id(), code.as_str()))
        .filter(|reason| falls_back(Phase::GatedLive, [*reason], true, false).is_some())
        .map(|(gate, _)| gate)
        .collect();
    assert_eq!(taking.into_iter().collect::<Vec<_>>(), ["D1", "D2", "D3", "D4"]);
}

#[test]
fn the_phase_is_what_the_ledger_says_with_who_and_why() {
    let mut ledger = Ledger::from(START);
    let up = moved(&mut ledger, "human:rita", Phase::LogOnly, Phase::GatedRead, None);
    let live = moved(&mut ledger, "human:bo", Phase::GatedRead, Phase::GatedLive, None);
    let code = "POLICY_MENTION_LOOP";
    let fell = moved(&mut ledger, "system", Phase::GatedLive, Phase::GatedRead, Some(code));
    assert_eq!(Rollout::default().phase(), Phase::LogOnly);
    assert_eq!(Rollout::default().moved(), None);
    let rollout = rollout_of(&[up.clone(), live.clone()]);
    assert_eq!(rollout.phase(), Phase::GatedLive);
    let by = rollout.moved().unwrap();
    assert_eq!((by.by.as_deref(), by.code.as_deref(), by.sequence), (Some("bo"), None, 2));
    let rollout = rollout_of(&[up, live, fell]);
    assert_eq!(rollout.phase(), Phase::GatedRead);
    let by = rollout.moved().unwrap();
    assert_eq!((by.by.as_deref(), by.code.as_deref(), by.from), (None, Some(code), Phase::GatedLive));
}

#[test]
fn an_entry_that_raises_the_phase_unduly_is_not_taken() {
    let mut ledger = Ledger::from(START);
    let mut rollout = Rollout::default();
    let mut refused = |told: Told, why: &str| {
        assert_eq!(rollout.take(&told.fact()).unwrap_err().why, why);
        assert_eq!(rollout.phase(), Phase::LogOnly);
    };
    let skips = moved(&mut ledger, "human:rita", Phase::LogOnly, Phase::GatedLive, None);
    refused(skips, "the phase moves one step up at a time, or down");
    let elsewhere = moved(&mut ledger, "human:rita", Phase::GatedRead, Phase::GatedLive, None);
    refused(elsewhere, "mentions were in another phase before");
    let by_itself = moved(&mut ledger, "system", Phase::LogOnly, Phase::GatedRead, None);
    refused(by_itself, "no person raised the phase");
}

#[test]
fn every_mention_is_counted_once_for_what_became_of_it() {
    let mut ledger = Ledger::from(START);
    let counted = |ledger: &mut Ledger, would_be: &str, codes: &[&str]| {
        let codes = codes.iter().map(|code| (*code).to_owned()).collect();
        let rollout = rollout_of(&[seen(
            ledger,
            &MentionObserved { codes, would_be: would_be.to_owned(), ..observation(1) },
        )]);
        let Counters { candidates, would_allow, loops_stopped, duplicates_stopped, expired, false_positives } =
            *rollout.total();
        assert_eq!(rollout.in_phase(), rollout.total());
        [candidates, would_allow, loops_stopped, duplicates_stopped, expired, false_positives]
    };
    let mut check = |would_be: &str, codes: &[&str], expected: [u64; 6]| {
        assert_eq!(counted(&mut ledger, would_be, codes), expected, "{would_be} {codes:?}");
    };
    check("allowed", &[], [1, 1, 0, 0, 0, 0]);
    check("needs_approval", &[], [1, 1, 0, 0, 0, 0]);
    check("denied", &["POLICY_TASK_DENIED"], [1, 0, 0, 0, 0, 0]);
    check("denied", &["POLICY_MENTION_LOOP"], [1, 0, 1, 0, 0, 0]);
    check("denied", &["POLICY_LOOP_DETECTED", "POLICY_MENTION_LOOP"], [1, 0, 1, 0, 0, 0]);
    check("denied", &["POLICY_MENTION_DUPLICATE"], [1, 0, 0, 1, 0, 0]);
    check("expired", &["POLICY_MENTION_EXPIRED"], [1, 0, 0, 0, 1, 0]);
    check("denied", &["POLICY_MENTION_DUPLICATE", "POLICY_MENTION_EXPIRED"], [1, 0, 0, 1, 1, 0]);
}

/// A code that is counted by a name that no gate gives would never be counted.
#[test]
fn the_codes_that_are_counted_exist() {
    let counted = include_str!("counters.rs");
    let codes: Vec<_> = counted.split('"').filter(|word| word.starts_with("POLICY_")).collect();
    assert_eq!(codes.len(), 4);
    for code in codes {
        assert!(Code::ALL.iter().any(|other| other.as_str() == code), "{code}");
    }
}

#[test]
fn the_counters_of_a_phase_begin_with_it() {
    let mut ledger = Ledger::from(START);
    let first = seen(&mut ledger, &observation(1));
    let up = moved(&mut ledger, "human:rita", Phase::LogOnly, Phase::GatedRead, None);
    let second = seen(&mut ledger, &observation(2));
    let rollout = rollout_of(&[first, up, second]);
    assert_eq!((rollout.total().candidates, rollout.in_phase().candidates), (2, 1));
}

#[test]
fn a_message_that_only_the_phase_held_back_casts_a_shadow() {
    let (same, other) = (Digest::of(b"content"), Digest::of(b"other content"));
    let check = |change: fn(&mut MentionObserved), expected: [Shadow; 2]| {
        let mut observed = observation(1);
        change(&mut observed);
        let rollout = rollout_of(&[seen(&mut Ledger::from(START), &observed)]);
        let message = observation(1).message_id.unwrap();
        assert_eq!([same, other].map(|digest| rollout.shadow(&message, digest)), expected);
        assert_eq!(rollout.shadow("999999999", same), Shadow::First);
    };
    let (casts, none) = ([Shadow::Same, Shadow::Duplicate], [Shadow::First, Shadow::First]);
    check(|_| {}, casts);
    check(|observed| observed.would_be = "needs_approval".to_owned(), casts);
    check(|observed| observed.would_be = "denied".to_owned(), none);
    check(|observed| observed.would_be = "expired".to_owned(), none);
    check(|observed| observed.message_id = None, none);
    // What a phase let through has a claim of its own, for ever.
    check(|observed| observed.phase = Some(Phase::GatedRead), none);
    let sensitive = |observed: &mut MentionObserved| {
        (observed.phase, observed.risk_classification) = (Some(Phase::GatedRead), Some(RiskClass::Sensitive));
    };
    check(sensitive, casts);
}

#[test]
fn the_first_shadow_of_a_message_stands() {
    let mut ledger = Ledger::from(START);
    let second = MentionObserved { content_digest: Some(Digest::of(b"other")), ..observation(1) };
    let facts = [seen(&mut ledger, &observation(1)), seen(&mut ledger, &second)];
    let rollout = rollout_of(&facts);
    let message = observation(1).message_id.unwrap();
    assert_eq!(rollout.shadow(&message, Digest::of(b"content")), Shadow::Same);
    assert_eq!(rollout.shadow(&message, Digest::of(b"other")), Shadow::Duplicate);
}

#[test]
fn the_newest_shadows_and_marks_are_kept_and_no_more() {
    let mut ledger = Ledger::from(START);
    let mut rollout = Rollout::default();
    let told = seen(&mut ledger, &observation(0));
    for n in 0..=limits::SHADOW_CLAIMS_MAX {
        let told = told.clone().numbered(n as u64).with(|payload| {
            payload["message_id"] = json!(observation(n).message_id);
        });
        rollout.take(&told.fact()).unwrap();
    }
    assert_eq!(rollout.shadows(), limits::SHADOW_CLAIMS_MAX);
    let shadow = |n: usize| rollout.shadow(&observation(n).message_id.unwrap(), Digest::of(b"x"));
    assert_eq!(shadow(0), Shadow::First);
    assert_eq!((shadow(1), shadow(limits::SHADOW_CLAIMS_MAX)), (Shadow::Duplicate, Shadow::Duplicate));
    let told = marked(&mut ledger, 0);
    for n in 0..=limits::MARKED_MENTIONS_MAX {
        let told = told.clone().numbered(n as u64).with(|payload| {
            payload["handoff_id"] = json!(observation(n).handoff_id);
        });
        rollout.take(&told.fact()).unwrap();
    }
    assert!(rollout.may_mark(&observation(0).handoff_id).is_ok());
    assert!(rollout.may_mark(&observation(1).handoff_id).is_err());
}

#[test]
fn a_false_positive_is_counted_once() {
    let mut ledger = Ledger::from(START);
    let facts = [marked(&mut ledger, 1), marked(&mut ledger, 2), marked(&mut ledger, 1)];
    let rollout = rollout_of(&facts);
    assert_eq!(rollout.total().false_positives, 2);
    assert_eq!(rollout.may_mark("hs_mention_000003"), Ok(()));
    let fault = rollout.may_mark("hs_mention_000001").unwrap_err();
    assert_eq!(fault.code(), "MENTION_MARKED_ALREADY");
    assert_eq!(fault.to_string(), "the mention of `hs_mention_000001` was marked as a false positive before");
}

fn wrong<T: std::fmt::Debug>(
    body: &str,
    ask: impl FnOnce(&Document<'_>) -> Result<T, Vec<Finding>>,
) -> Vec<String> {
    let bounds = Bounds { bytes_max: 64 * 1024, levels_max: 8 };
    let Err(findings) = ask(&read(body.as_bytes(), bounds).unwrap()) else { return Vec::new() };
    assert!(findings.iter().all(|finding| finding.hint.is_some()), "{findings:?}");
    let mut places: Vec<_> = findings.into_iter().map(|finding| finding.pointer).collect();
    places.dedup();
    places
}

#[test]
fn what_an_operator_asks_for_is_read_whole_or_every_fault_is_named() {
    let phase = |body: &str, expected: &[&str]| assert_eq!(wrong(body, PhaseAsk::read), expected, "{body}");
    phase(r#"{"phase": "gated-read", "reason": "a quiet week"}"#, &[]);
    phase(r#"{"phase": "live", "reason": "a quiet week"}"#, &["/phase"]);
    phase(r#"{"phase": "log-only", "reason": " "}"#, &["/reason"]);
    phase(r#"{"to": "log-only"}"#, &["/phase", "/reason", "/to"]);
    let mark = |body: &str, expected: &[&str]| {
        assert_eq!(wrong(body, FalsePositiveAsk::read), expected, "{body}");
    };
    mark(r#"{"reason": "it was a quotation"}"#, &[]);
    mark(r#"{"reason": "it was a quotation", "handoffId": "hs_mention_000001"}"#, &[]);
    mark(r#"{"reason": "it was a quotation", "handoffId": "mention_000001"}"#, &["/handoffId"]);
    mark(r#"{"handoffId": "hs_mention_000001"}"#, &["/reason"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is written, by whomever: the phase rises by one step at most, by a person's hand, and reading what was
    /// taken again gives the same.
    #[test]
    fn the_phase_never_rises_by_more_than_one_step(
        moves in prop::collection::vec((0..3usize, 0..3usize, any::<bool>()), 0..40),
    ) {
        let mut ledger = Ledger::from(START);
        let (mut rollout, mut taken) = (Rollout::default(), Vec::new());
        for (from, to, human) in moves {
            let before = rollout.phase();
            let sender = if human { "human:rita" } else { "system" };
            let told = moved(&mut ledger, sender, Phase::ALL[from], Phase::ALL[to], None);
            let answer = rollout.take(&told.fact());
            let after = rollout.phase();
            prop_assert!(after <= before || (before.up() == Some(after) && human));
            match answer {
                Ok(()) => {
                    prop_assert_eq!(after, Phase::ALL[to]);
                    taken.push(told);
                }
                Err(_) => prop_assert_eq!(after, before),
            }
        }
        prop_assert!(rollout_of(&taken) == rollout);
    }
}
