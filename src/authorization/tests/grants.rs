//! What a grant carries, how often, for how long, and who may make it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::contract::Mode;
use crate::gates::Code;
use crate::limits;
use crate::policy::AgentNames;
use crate::proof::Digest;
use crate::wire::tests::{Ledger, Told};
use crate::wire::{Kind, Ulid};

const START: &str = "2026-02-18T19:00:00Z";

fn terms() -> Terms {
    Terms {
        agents: vec!["crypto-sage".to_owned(), "crypto-sage-dr".to_owned()],
        channels: vec!["discord:channel:1473392629055098942".to_owned()],
        expires_at: at("2026-02-18T20:00:00Z"),
        intent_hash: Some(Digest::of(b"transfer 0.05 SOL")),
        modes: vec![Mode::Simulated, Mode::Live],
        operations: vec!["transfer".to_owned()],
        principal: "user:main".to_owned(),
        route_key: Some("crypto-sage.execution-plane.v1".to_owned()),
        uses: 2,
    }
}

fn reference(n: u8) -> AuthorizationRef {
    AuthorizationRef::new(1_771_441_200_000 + u64::from(n), [n; 10])
}

fn make(ledger: &mut Ledger, n: u8, terms: &Terms) -> Told {
    let rita = Some("user:rita");
    ledger.own(Kind::AuthorizationCreated, "human:rita", |payload| terms.write(reference(n), rita, payload))
}

fn spend(ledger: &mut Ledger, n: u8, remaining: u32) -> Told {
    let used =
        GrantUsed { authorization_ref: reference(n), handoff_id: "hs_use_00000001".to_owned(), remaining };
    ledger.own(Kind::AuthorizationUsed, "system", |payload| used.write(payload))
}

fn revoke(ledger: &mut Ledger, n: u8, reason: Option<&str>) -> Told {
    let reason = reason.map(str::to_owned);
    let revoked = GrantRevoked { authorization_ref: reference(n), reason };
    ledger.own(Kind::AuthorizationRevoked, "human:bo", |payload| revoked.write(payload))
}

static NO_ALIASES: LazyLock<AgentNames> = LazyLock::new(AgentNames::default);
static SOURCE_IS_RITA: LazyLock<AgentNames> =
    LazyLock::new(|| aliases("decision-router", &["other", "rita"]));
static FALLBACK_IS_RITA: LazyLock<AgentNames> = LazyLock::new(|| aliases("crypto-sage-dr", &["rita"]));
static TARGET_IS_RITA: LazyLock<AgentNames> = LazyLock::new(|| aliases("crypto-sage", &["user:rita"]));

fn aliases(primary: &str, aliases: &[&str]) -> AgentNames {
    let route = json!({"capability": "work", "primaryAgentId": primary, "aliases": aliases});
    AgentNames::of(std::iter::once(&serde_json::from_value(route).unwrap()))
}

/// A handoff that the grant of `terms` carries, at half past seven.
fn fitting(authorization_ref: &str) -> Use<'_> {
    Use {
        authorization_ref,
        principal: Some("user:main"),
        source_agent: "decision-router",
        target_agent: "crypto-sage",
        names: &NO_ALIASES,
        fallback_agent: None,
        operation: "transfer",
        channel: Some("discord:channel:1473392629055098942"),
        mode: Mode::Live,
        route_key: "crypto-sage.execution-plane.v1",
        intent_hash: Digest::of(b"transfer 0.05 SOL"),
        at: at("2026-02-18T19:30:00Z"),
    }
}

fn book_of(facts: &[Told]) -> GrantBook {
    let mut book = GrantBook::default();
    for told in facts {
        book.take(&told.fact()).unwrap();
    }
    book
}

/// `remaining`, or the codes and where they point.
fn said(answer: Result<u32, Vec<GrantRefusal>>) -> String {
    match answer {
        Ok(remaining) => remaining.to_string(),
        Err(refusals) => {
            for refusal in &refusals {
                assert!(!refusal.message.is_empty() && !refusal.hint.is_empty(), "{refusal:?}");
            }
            let said: Vec<_> =
                refusals.iter().map(|refusal| format!("{:?} {}", refusal.code, refusal.path)).collect();
            said.join(", ")
        }
    }
}

#[test]
fn a_grant_carries_what_it_names_and_nothing_else() {
    let book = book_of(&[make(&mut Ledger::from(START), 1, &terms())]);
    let name = reference(1).to_string();
    let check = |change: fn(&mut Use<'_>), expected: &str| {
        let mut act = fitting(&name);
        change(&mut act);
        assert_eq!(said(book.covers(&act, None)), expected);
    };
    check(|_| {}, "1");
    check(|act| act.target_agent = "crypto-sage-dr", "1");
    check(|act| act.mode = Mode::Simulated, "1");
    check(|act| act.principal = Some("user:other"), "Scope /authorship/envelope/principal/id");
    check(|act| act.principal = Some("User:main"), "Scope /authorship/envelope/principal/id");
    check(|act| act.principal = None, "Scope /authorship/mode");
    check(|act| act.target_agent = "stranger", "Scope /target/agentId");
    check(|act| act.source_agent = "rita", "Scope /source/agentId");
    check(|act| act.source_agent = "user:rita", "Scope /source/agentId");
    check(|act| act.names = &SOURCE_IS_RITA, "Scope /source/agentId");
    check(|act| act.names = &TARGET_IS_RITA, "Scope /target/agentId");
    check(|act| act.fallback_agent = Some("crypto-sage-dr"), "1");
    check(|act| act.fallback_agent = Some("stranger"), "Scope /routing/fallbackAgentId");
    check(
        |act| (act.fallback_agent, act.names) = (Some("crypto-sage-dr"), &FALLBACK_IS_RITA),
        "Scope /routing/fallbackAgentId",
    );
    check(|act| act.names = &FALLBACK_IS_RITA, "1");
    check(|act| act.operation = "transfer.all", "Scope /intent/operation");
    check(|act| act.channel = None, "Scope /authorship/mentionDelegation/channel");
    check(
        |act| act.channel = Some("discord:channel:1111111111"),
        "Scope /authorship/mentionDelegation/channel",
    );
    check(|act| act.mode = Mode::Dev, "Scope /mode");
    check(|act| act.route_key = "another.route.v1", "Scope /routing/routeKey");
    check(|act| act.intent_hash = Digest::of(b"transfer 5000 SOL"), "Scope /intent");
    check(
        |act| (act.operation, act.mode) = ("swap.jupiter", Mode::Dev),
        "Scope /intent/operation, Scope /mode",
    );
}

#[test]
fn what_a_grant_leaves_open_is_open_and_an_empty_list_is_closed() {
    let check = |change: fn(&mut Terms), act: fn(&mut Use<'_>), expected: &str| {
        let mut terms = terms();
        change(&mut terms);
        let book = book_of(&[make(&mut Ledger::from(START), 1, &terms)]);
        let name = reference(1).to_string();
        let mut asked = fitting(&name);
        act(&mut asked);
        assert_eq!(said(book.covers(&asked, None)), expected);
    };
    check(|terms| terms.channels.clear(), |act| act.channel = None, "1");
    check(|terms| terms.channels.clear(), |act| act.channel = Some("discord:thread:123456"), "1");
    check(|terms| terms.route_key = None, |act| act.route_key = "another.route.v1", "1");
    check(|terms| terms.intent_hash = None, |act| act.intent_hash = Digest::of(b"anything"), "1");
    check(|terms| terms.agents.clear(), |_| {}, "Scope /target/agentId");
    check(|terms| terms.operations.clear(), |_| {}, "Scope /intent/operation");
    // Whoever made it goes by the name of the target: the rule for approvals, once more where it counts.
    check(
        |terms| terms.agents.push("rita".to_owned()),
        |act| act.target_agent = "rita",
        "Scope /target/agentId",
    );
}

#[test]
fn a_grant_ends_at_its_expiry_when_it_is_revoked_and_when_it_is_used_up() {
    let mut ledger = Ledger::from(START);
    let made = make(&mut ledger, 1, &terms());
    let name = reference(1).to_string();
    let when = |time: &str| Use { at: at(time), ..fitting(&name) };
    const REFERENCE: &str = "/authorship/risk/authorizationRef";

    let fresh = book_of(std::slice::from_ref(&made));
    assert_eq!(said(fresh.covers(&when("2026-02-18T19:59:59.999999999Z"), None)), "1");
    assert_eq!(said(fresh.covers(&when("2026-02-18T20:00:00Z"), None)), format!("Expired {REFERENCE}"));

    let (first, second) = (spend(&mut ledger, 1, 1), spend(&mut ledger, 1, 0));
    let used = book_of(&[made.clone(), first.clone()]);
    assert_eq!(said(used.covers(&fitting(&name), None)), "0");
    let spent = book_of(&[made.clone(), first, second]);
    assert_eq!(said(spent.covers(&fitting(&name), None)), format!("Spent {REFERENCE}"));

    let revoked = book_of(&[made, revoke(&mut ledger, 1, Some("no longer needed"))]);
    assert_eq!(said(revoked.covers(&fitting(&name), None)), format!("Revoked {REFERENCE}"));

    // Every reason at once: a grant that is also not for this is no mere matter of time.
    let late = Use { operation: "swap.jupiter", ..when("2026-02-18T21:00:00Z") };
    assert_eq!(
        said(spent.covers(&late, None)),
        format!("Expired {REFERENCE}, Spent {REFERENCE}, Scope /intent/operation")
    );
}

#[test]
fn a_name_that_no_operator_made_is_unknown() {
    let book = book_of(&[make(&mut Ledger::from(START), 1, &terms())]);
    let (mine, lower) = (reference(1).to_string(), reference(1).to_string().to_lowercase());
    assert_eq!(said(book.covers(&fitting(&mine), None)), "1");
    for name in ["authz_20260218_user-main_009", &lower, &reference(2).to_string(), ""] {
        assert_eq!(said(book.covers(&fitting(name), None)), "Unknown /authorship/risk/authorizationRef");
    }
}

#[test]
fn grants_from_before_a_restored_epoch_are_void() {
    let mut ledger = Ledger::from(START);
    let book = book_of(&[make(&mut ledger, 1, &terms())]);
    let name = reference(1).to_string();
    let made_at = ledger.now();
    assert_eq!(said(book.covers(&fitting(&name), Some(made_at))), "1");
    let after = Some(made_at.plus_nanosecond());
    assert_eq!(said(book.covers(&fitting(&name), after)), "Expired /authorship/risk/authorizationRef");
    assert_eq!(book.find(&name).unwrap().standing(made_at, after), GrantStanding::Expired);
}

#[test]
fn every_code_of_a_grant_is_one_that_answers_have() {
    for code in GrantCode::ALL {
        assert_eq!(Code::from(code).as_str(), code.as_str());
        assert_eq!(Code::from(code).is_expiry(), code == GrantCode::Expired);
    }
}

#[test]
fn an_event_that_would_widen_a_grant_is_not_taken() {
    let mut ledger = Ledger::from(START);
    let made = make(&mut ledger, 1, &terms());
    let used = spend(&mut ledger, 1, 1);
    let book = book_of(&[made.clone(), used.clone()]);
    let refused = |told: &Told, why: &str| {
        let mut after = book.clone();
        let fault = after.take(&told.fact()).unwrap_err();
        assert_eq!(fault.why, why);
        after
    };
    // Made again, it would be whole again.
    assert_eq!(refused(&make(&mut ledger, 1, &terms()), "there is a grant of that name already"), book);
    let nobody = make(&mut ledger, 2, &terms());
    assert_eq!(refused(&nobody.clone().from("agent:crypto-sage"), "no person made this grant"), book);
    let narrowed = nobody.with(|payload| payload["only_on"] = json!("sundays"));
    assert_eq!(refused(&narrowed, "its payload is not ours"), book);
    assert_eq!(refused(&spend(&mut ledger, 3, 1), "there is no such grant"), book);
    assert_eq!(refused(&revoke(&mut ledger, 3, None), "there is no such grant"), book);
    // Used all the same: what the ledger says was used is gone, whatever it says is left.
    let miscounted = refused(&spend(&mut ledger, 1, 7), "its uses do not add up");
    assert_eq!(miscounted.find(&reference(1).to_string()).unwrap().remaining(), 0);
    let mut over = miscounted;
    let fault = over.take(&spend(&mut ledger, 1, 0).fact()).unwrap_err();
    assert_eq!(fault.why, "it was used more often than it may be");
    assert_eq!(fault.to_string(), format!("entry {}, authorization.used: {}", fault.sequence, fault.why));
}

#[test]
fn a_grant_says_how_it_stands_and_is_revoked_once() {
    let mut ledger = Ledger::from(START);
    let (one, two) = (make(&mut ledger, 1, &terms()), make(&mut ledger, 2, &terms()));
    let revoked = revoke(&mut ledger, 1, None);
    let book = book_of(&[one, two, revoked]);
    let newest: Vec<_> = book.newest_first().map(|held| held.grant.authorization_ref).collect();
    assert_eq!(newest, [reference(2), reference(1)]);
    let now = at("2026-02-18T19:30:00Z");
    let standing = |n: u8, now| book.find(&reference(n).to_string()).unwrap().standing(now, None).as_str();
    assert_eq!((standing(1, now), standing(2, now)), ("revoked", "in_force"));
    assert_eq!(standing(2, at("2026-02-18T20:00:00Z")), "expired");
    assert_eq!(book.may_revoke(&reference(2).to_string()), Ok(reference(2)));
    assert_eq!(book.may_revoke(&reference(1).to_string()).unwrap_err().code(), "AUTHORIZATION_REVOKED");
    assert_eq!(book.may_revoke("authz_1").unwrap_err().code(), "AUTHORIZATION_UNKNOWN");
    assert_eq!(book.find(&reference(1).to_string()).unwrap().grant.made_by.name(), "rita");
}

#[test]
fn a_grant_is_forgotten_long_after_it_ended_and_never_before() {
    let mut ledger = Ledger::from(START);
    let first = make(&mut ledger, 1, &terms());
    ledger.pass_seconds(limits::GRANT_KEPT_S - 1);
    let mut book = book_of(&[first, make(&mut ledger, 2, &terms())]);
    assert_eq!(book.count(), 2);
    book.take(&make(&mut ledger, 3, &terms()).fact()).unwrap();
    let kept: Vec<_> = book.newest_first().map(|held| held.grant.authorization_ref).collect();
    assert_eq!(kept, [reference(3), reference(2)]);
    const { assert!(limits::GRANT_KEPT_S > limits::GRANT_S_MAX) };
}

#[test]
fn the_book_has_room_until_it_is_full_and_again_when_the_oldest_go() {
    let mut ledger = Ledger::from(START);
    let (mut book, first) = (GrantBook::default(), make(&mut ledger, 0, &terms()));
    let made_at = ledger.now();
    for n in 0..limits::GRANTS_MAX {
        assert_eq!(book.room(made_at), Ok(()));
        let told = first.clone().with(|payload| {
            let mut random = [0; 10];
            random[..8].copy_from_slice(&(n as u64).to_be_bytes());
            payload["authorization_ref"] = json!(format!("authz_{}", Ulid::new(1, random)));
        });
        book.take(&told.fact()).unwrap();
    }
    assert_eq!(book.room(made_at), Err(GrantFault::Full));
    let later = made_at.plus_seconds(limits::GRANT_KEPT_S);
    assert_eq!(book.room(later), Err(GrantFault::Full));
    assert_eq!(book.room(later.plus_nanosecond()), Ok(()));
    // A copy shares all of it, and a change in one is not seen in the other.
    let before = book.clone();
    let name = book.newest_first().next().unwrap().grant.authorization_ref;
    let used =
        spend(&mut ledger, 0, 1).with(|payload| payload["authorization_ref"] = json!(name.to_string()));
    book.take(&used.fact()).unwrap();
    assert_eq!(before.find(&name.to_string()).unwrap().used, 0);
    assert_eq!(book.find(&name.to_string()).unwrap().used, 1);
}

fn body() -> Json {
    json!({
        "principal": "user:main",
        "agents": ["crypto-sage"],
        "operations": ["transfer"],
        "modes": ["live"],
        "channels": ["discord:channel:1473392629055098942"],
        "routeKey": "crypto-sage.execution-plane.v1",
        "expiresAt": "2026-02-18T20:00:00Z",
        "uses": 3,
        "intentHash": Digest::of(b"x").to_string(),
    })
}

#[test]
fn a_request_for_a_grant_is_read_whole_or_every_fault_is_named() {
    let now = at(START);
    let check = |pointer: &str, value: Json, expected: &[&str]| {
        let mut body = body();
        let name = pointer.trim_start_matches('/');
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        } else {
            body[name] = value;
        }
        assert_eq!(wrong(&body.to_string(), |document| grant_ask(document, now, None)), expected, "{body}");
    };
    check("/principal", json!("user:main"), &[]);
    check("/principal", Json::Null, &["/principal"]);
    check("/principal", json!(""), &["/principal"]);
    check("/agents", json!([]), &["/agents"]);
    check("/agents", json!(["crypto-sage", "crypto-sage"]), &["/agents"]);
    check("/agents", json!(["x"]), &["/agents/0"]);
    check("/agents", json!((0..32).map(|n| format!("agent-{n}")).collect::<Vec<_>>()), &[]);
    check("/agents", json!((0..33).map(|n| format!("agent-{n}")).collect::<Vec<_>>()), &["/agents"]);
    check("/operations", json!([]), &["/operations"]);
    check("/operations", json!(["ab"]), &["/operations/0"]);
    check("/modes", json!(["dev", "simulated", "live"]), &[]);
    check("/modes", json!(["prod"]), &["/modes/0"]);
    check("/channels", Json::Null, &[]);
    check("/channels", json!([]), &["/channels"]);
    check("/channels", json!(["discord:channel:*"]), &["/channels/0"]);
    check("/routeKey", Json::Null, &[]);
    check("/routeKey", json!("short"), &["/routeKey"]);
    check("/expiresAt", json!("2026-02-18T19:00:00Z"), &["/expiresAt"]);
    check("/expiresAt", json!("2026-02-18T19:00:00.000000001Z"), &[]);
    check("/expiresAt", json!("2026-03-20T19:00:00Z"), &[]);
    check("/expiresAt", json!("2026-03-20T19:00:01Z"), &["/expiresAt"]);
    check("/expiresAt", json!("tomorrow"), &["/expiresAt"]);
    check("/expiresAt", Json::Null, &["/expiresAt"]);
    check("/uses", Json::Null, &[]);
    check("/uses", json!(1.0), &[]);
    check("/uses", json!(0), &["/uses"]);
    check("/uses", json!(1000), &[]);
    check("/uses", json!(1001), &["/uses"]);
    check("/intentHash", Json::Null, &[]);
    check("/intentHash", json!("sha256:AB"), &["/intentHash"]);
    check("/intent", json!("x"), &["/intent"]);
    let several = json!({"principal": "user:main", "agents": [], "operations": ["ab"], "modes": ["live"]});
    let places = wrong(&several.to_string(), |document| grant_ask(document, now, None));
    assert_eq!(places, ["/agents", "/expiresAt", "/operations/0"]);
}

#[test]
fn a_grant_is_for_one_use_unless_it_says_otherwise() {
    let mut body = body();
    let uses = |body: &Json| {
        let text = body.to_string();
        let document = read(text.as_bytes(), BOUNDS).unwrap();
        grant_ask(&document, at(START), None).unwrap().uses
    };
    assert_eq!(uses(&body), 3);
    body.as_object_mut().unwrap().remove("uses");
    assert_eq!(uses(&body), 1);
}

#[test]
fn a_grant_that_an_entry_of_the_ledger_has_no_room_for_is_not_made() {
    let now = at(START);
    let of_chars = |name: &str| {
        let mut body = body();
        body["operations"] = (0..32).map(|n| format!("{n:02}{}", name.repeat(126))).collect();
        body["agents"] = (0..32).map(|n| format!("{n:02}{}", "a".repeat(62))).collect();
        wrong(&body.to_string(), |document| grant_ask(document, now, None))
    };
    assert_eq!(of_chars("a"), Vec::<String>::new());
    assert_eq!(of_chars("é"), [""]);

    // What is let pass also fits with the longest names around it.
    let mut body = body();
    body["operations"] = (0..32).map(|n| format!("{n:02}{}", "a".repeat(126))).collect();
    let text = body.to_string();
    let terms = grant_ask(&read(text.as_bytes(), BOUNDS).unwrap(), now, None).unwrap();
    let (sender, topic) = (format!("human:{}", "n".repeat(64)), format!("project:{}", "t".repeat(128)));
    Ledger::from(START).tell(Kind::AuthorizationCreated, &sender, &topic, |payload| {
        terms.write(reference(1), None, payload);
    });
}

#[test]
fn nobody_makes_a_grant_that_is_their_own() {
    let check = |person: Person, expected: Result<(), &str>| {
        let answer = may_make(&person, &terms());
        assert_eq!(answer.as_ref().map_err(GrantFault::code).copied(), expected, "{person:?}");
    };
    check(person("rita", None), Ok(()));
    check(person("rita", Some("user:rita")), Ok(()));
    check(person("rita", Some("user:main")), Err("AUTHORIZATION_OWN"));
    check(person("user:main", None), Err("AUTHORIZATION_OWN"));
    check(person("crypto-sage", None), Err("AUTHORIZATION_OWN"));
    check(person("rita", Some("crypto-sage-dr")), Err("AUTHORIZATION_OWN"));
    check(person("decision-router", None), Ok(()));
}

/// What may happen to grants; numbers say which, and how much of the time passes.
#[derive(Debug, Clone)]
enum Act {
    Make {
        n: u8,
        uses: u32,
    },
    MakeAgain {
        n: u8,
    },
    Use {
        n: u8,
    },
    Revoke {
        n: u8,
    },
    /// The ledger is read anew.
    Restart,
    Wait {
        seconds: i64,
    },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => (0..4u8, 1..4u32).prop_map(|(n, uses)| Act::Make { n, uses }),
        1 => (0..4u8).prop_map(|n| Act::MakeAgain { n }),
        6 => (0..4u8).prop_map(|n| Act::Use { n }),
        1 => (0..4u8).prop_map(|n| Act::Revoke { n }),
        1 => Just(Act::Restart),
        1 => (0..1200i64).prop_map(|seconds| Act::Wait { seconds }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// A sequencer that asks, then writes: whatever comes in which order, nothing is allowed more often than a person
    /// said, or after the end, and the book is what its events make of it.
    #[test]
    fn a_grant_is_never_used_more_often_than_it_says(acts in prop::collection::vec(act(), 1..60)) {
        let mut ledger = Ledger::from(START);
        let (mut book, mut written) = (GrantBook::default(), Vec::<Told>::new());
        // By number: what it may be used, what it was, and whether it was revoked.
        let mut model = BTreeMap::<u8, (u32, u32, bool)>::new();
        for act in acts {
            match act {
                Act::Make { n, uses } => if let std::collections::btree_map::Entry::Vacant(free) = model.entry(n) {
                    free.insert((uses, 0, false));
                    let told = make(&mut ledger, n, &Terms { uses, ..terms() });
                    book.take(&told.fact()).unwrap();
                    written.push(told);
                },
                Act::MakeAgain { n } => if model.contains_key(&n) {
                    let told = make(&mut ledger, n, &Terms { uses: 1000, ..terms() });
                    prop_assert!(book.take(&told.fact()).is_err());
                },
                Act::Use { n } => {
                    let name = reference(n).to_string();
                    let now = ledger.now();
                    let answer = book.covers(&Use { at: now, ..fitting(&name) }, None);
                    let may = model.get(&n).is_some_and(|(uses, used, revoked)| used < uses && !revoked);
                    prop_assert_eq!(answer.is_ok(), may && now < terms().expires_at);
                    if let Ok(remaining) = answer {
                        let told = spend(&mut ledger, n, remaining);
                        book.take(&told.fact()).unwrap();
                        written.push(told);
                        model.entry(n).and_modify(|(_, used, _)| *used += 1);
                    }
                }
                Act::Revoke { n } => if book.may_revoke(&reference(n).to_string()).is_ok() {
                    let told = revoke(&mut ledger, n, None);
                    book.take(&told.fact()).unwrap();
                    written.push(told);
                    model.entry(n).and_modify(|(_, _, revoked)| *revoked = true);
                },
                Act::Restart => {
                    let again = book_of(&written);
                    prop_assert!(again == book);
                    book = again;
                }
                Act::Wait { seconds } => ledger.pass_seconds(seconds),
            }
        }
        for (n, (uses, used, _)) in model {
            let held = book.find(&reference(n).to_string()).unwrap();
            prop_assert_eq!((held.grant.terms.uses, held.used), (uses, used));
            prop_assert!(held.used <= uses);
        }
        prop_assert!(book_of(&written) == book);
    }

    /// The same events in any order at all, as no ledger would have them: a grant that is there was not made wider.
    #[test]
    fn events_in_any_order_never_leave_more_uses_than_were_given(
        events in prop::collection::vec((0..3u8, 0..3u8, 0..5u32), 0..40),
    ) {
        let mut ledger = Ledger::from(START);
        let mut book = GrantBook::default();
        for (what, n, remaining) in events {
            let before = book.find(&reference(n).to_string()).map(Held::remaining);
            let told = match what {
                0 => make(&mut ledger, n, &terms()),
                1 => spend(&mut ledger, n, remaining),
                _ => revoke(&mut ledger, n, None),
            };
            let _ = book.take(&told.fact());
            if let (Some(before), Some(after)) = (before, book.find(&reference(n).to_string())) {
                prop_assert!(after.remaining() <= before);
                prop_assert!(what != 1 || before == 0 || after.remaining() < before);
            }
        }
    }
}
