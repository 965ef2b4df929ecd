//! What a freeze stops, for how long, and what it takes to lift it.

use proptest::prelude::*;

use super::*;
use crate::contract::Word as _;
use crate::json::{Bounds, read};
use crate::wire::tests::{Ledger, Told};

const START: &str = "2026-02-18T19:00:00Z";
const ROUTE: &str = "crypto-sage.execution-plane.v1";

fn set(ledger: &mut Ledger, scope: &FreezeScope, sender: &str, set_by: Option<&str>) -> Told {
    let FreezeScope { route_key, mode } = scope.clone();
    let set =
        FreezeSet { mode, reason: "incident 12".to_owned(), route_key, set_by: set_by.map(str::to_owned) };
    ledger.own(Kind::FreezeSet, sender, |payload| set.write(payload))
}

fn lift(ledger: &mut Ledger, scope: &FreezeScope) -> Told {
    let FreezeScope { route_key, mode } = scope.clone();
    let lifted = FreezeLifted { mode, reason: "mended".to_owned(), route_key };
    ledger.own(Kind::FreezeLifted, "human:rita", |payload| lifted.write(payload))
}

fn frozen(scopes: &[FreezeScope]) -> Freezes {
    let (mut ledger, mut freezes) = (Ledger::from(START), Freezes::default());
    for scope in scopes {
        freezes.take(&set(&mut ledger, scope, "human:rita", None).fact()).unwrap();
    }
    freezes
}

fn in_mode(mode: Mode) -> FreezeScope {
    FreezeScope { mode: Some(mode), ..FreezeScope::route(ROUTE) }
}

#[test]
fn a_freeze_stops_what_it_names_and_nothing_else() {
    let check = |scopes: &[FreezeScope], route: &str, mode: Mode, expected: Option<&str>| {
        let freezes = frozen(scopes);
        let (route, mode) = (Some(route), Some(mode));
        let halted = freezes.halts(route, mode).map(|freeze| freeze.scope.to_string());
        assert_eq!(halted.as_deref(), expected, "{scopes:?}");
    };
    check(&[], ROUTE, Mode::Live, None);
    check(&[FreezeScope::ALL], ROUTE, Mode::Dev, Some("everything"));
    check(&[FreezeScope::mode(Mode::Live)], ROUTE, Mode::Live, Some("mode live"));
    check(&[FreezeScope::mode(Mode::Live)], ROUTE, Mode::Simulated, None);
    check(&[FreezeScope::route(ROUTE)], ROUTE, Mode::Dev, Some("route `crypto-sage.execution-plane.v1`"));
    check(&[FreezeScope::route(ROUTE)], "another.route.v1", Mode::Dev, None);
    let both = Some("route `crypto-sage.execution-plane.v1` in mode live");
    check(&[in_mode(Mode::Live)], ROUTE, Mode::Live, both);
    check(&[in_mode(Mode::Live)], ROUTE, Mode::Dev, None);
    check(&[in_mode(Mode::Live)], "another.route.v1", Mode::Live, None);
    // The widest one is named.
    let several = [FreezeScope::route(ROUTE), FreezeScope::mode(Mode::Live), FreezeScope::ALL];
    check(&several, ROUTE, Mode::Live, Some("everything"));
    check(&several[..2], ROUTE, Mode::Live, Some("mode live"));
}

#[test]
fn what_is_not_known_of_a_handoff_is_not_what_stops_it() {
    let stopped = |scope: &FreezeScope| {
        let freezes = frozen(std::slice::from_ref(scope));
        let halts = |route, mode| freezes.halts(route, mode).is_some();
        [halts(None, None), halts(Some(ROUTE), None), halts(None, Some(Mode::Live))]
    };
    assert_eq!(stopped(&FreezeScope::ALL), [true, true, true]);
    assert_eq!(stopped(&FreezeScope::route(ROUTE)), [false, true, false]);
    assert_eq!(stopped(&FreezeScope::mode(Mode::Live)), [false, false, true]);
    assert_eq!(stopped(&in_mode(Mode::Live)), [false, false, false]);
}

#[test]
fn a_freeze_says_who_set_it_when_why_and_from_where_it_holds() {
    let mut ledger = Ledger::from(START);
    let mut freezes = Freezes::default();
    freezes.take(&set(&mut ledger, &FreezeScope::ALL, "human:rita", None).fact()).unwrap();
    let since = ledger.now();
    let by_an_administrator = set(&mut ledger, &FreezeScope::route(ROUTE), "system", Some("local-admin"));
    freezes.take(&by_an_administrator.fact()).unwrap();
    // Set again by somebody else, it has held since the first time.
    freezes.take(&set(&mut ledger, &FreezeScope::ALL, "human:bo", None).fact()).unwrap();
    let freeze = freezes.find(&FreezeScope::ALL).unwrap();
    assert_eq!((freeze.by.as_str(), freeze.reason.as_str()), ("rita", "incident 12"));
    assert_eq!((freeze.at, freeze.from_sequence), (since, 1));
    assert_eq!(freezes.find(&FreezeScope::route(ROUTE)).unwrap().by, "local-admin");
    assert_eq!(freezes.all().count(), 2);
}

#[test]
fn lifting_names_exactly_what_was_frozen() {
    let (route, live) = (FreezeScope::route(ROUTE), FreezeScope::mode(Mode::Live));
    let mut freezes = frozen(&[route.clone(), live.clone()]);
    assert_eq!(freezes.may_lift(&route).unwrap().scope, route);
    let fault = freezes.may_lift(&FreezeScope::ALL).unwrap_err();
    assert_eq!(fault.code(), "FREEZE_NOT_SET");
    assert_eq!(
        fault.to_string(),
        "everything is not frozen by itself; frozen: mode live, route `crypto-sage.execution-plane.v1`"
    );
    let mut ledger = Ledger::from(START);
    freezes.take(&lift(&mut ledger, &route).fact()).unwrap();
    assert_eq!(freezes.halts(Some(ROUTE), Some(Mode::Dev)), None);
    assert!(freezes.halts(Some(ROUTE), Some(Mode::Live)).is_some());
    let again = lift(&mut ledger, &route);
    assert_eq!(freezes.take(&again.fact()).unwrap_err().why, "it lifts what was not frozen");
    freezes.take(&lift(&mut ledger, &live).fact()).unwrap();
    let fault = freezes.may_lift(&live).unwrap_err();
    assert_eq!(fault.to_string(), "mode live is not frozen by itself; frozen: nothing");
}

#[test]
fn a_freeze_is_asked_for_in_one_way_only() {
    let check = |body: &str, expected: Result<&str, &[&str]>| {
        let bounds = Bounds { bytes_max: 4096, levels_max: 8 };
        let answer = FreezeAsk::read(&read(body.as_bytes(), bounds).unwrap());
        let answer = answer.map(|ask| ask.scope.to_string()).map_err(|findings| {
            assert!(findings.iter().all(|finding| finding.hint.is_some()), "{findings:?}");
            findings.into_iter().map(|finding| finding.pointer).collect::<Vec<_>>()
        });
        let expected = expected.map(str::to_owned);
        assert_eq!(
            answer,
            expected.map_err(|places| places.iter().map(|at| (*at).to_owned()).collect()),
            "{body}"
        );
    };
    check(r#"{"scope": "all", "reason": "x"}"#, Ok("everything"));
    check(r#"{"scope": "mode", "mode": "live", "reason": "x"}"#, Ok("mode live"));
    check(r#"{"scope": "route", "routeKey": "route.v1", "reason": "x"}"#, Ok("route `route.v1`"));
    check(r#"{"scope": "all", "mode": "live", "reason": "x"}"#, Err(&["/mode"]));
    check(r#"{"scope": "all", "routeKey": "route.v1", "reason": "x"}"#, Err(&["/routeKey"]));
    check(r#"{"scope": "mode", "reason": "x"}"#, Err(&["/mode"]));
    check(r#"{"scope": "route", "reason": "x"}"#, Err(&["/routeKey"]));
    check(r#"{"scope": "mode", "routeKey": "route.v1", "reason": "x"}"#, Err(&["/mode", "/routeKey"]));
    check(r#"{"scope": "everything", "reason": "x"}"#, Err(&["/scope"]));
    check(r#"{"scope": "all"}"#, Err(&["/reason"]));
    check(r#"{"scope": "all", "reason": "\n"}"#, Err(&["/reason"]));
    // All of it at once: what the schema says, and what the members say to each other.
    check(r#"{"scope": "route"}"#, Err(&["/reason", "/routeKey"]));
    check(r#"{"scope": "mode", "mode": "lvie"}"#, Err(&["/mode", "/reason"]));
    check(r#"{"scope": "everything", "mode": "live"}"#, Err(&["/reason", "/scope"]));
}

#[test]
fn a_kill_switch_with_a_mistyped_route_is_refused_with_the_one_that_was_meant() {
    let routes = [ROUTE, "treasury.plane.v1"];
    let check = |scope: FreezeScope, expected: Option<&str>| {
        let ask = FreezeAsk { scope, reason: "x".to_owned() };
        let hint = ask.names_one_of(routes.into_iter()).err().and_then(|finding| finding.hint);
        assert_eq!(hint.as_deref(), expected);
    };
    check(FreezeScope::route(ROUTE), None);
    check(FreezeScope::ALL, None);
    check(FreezeScope::mode(Mode::Live), None);
    let meant = Some("did you mean `crypto-sage.execution-plane.v1`");
    check(FreezeScope::route("crypto-sage.exection-plane.v1"), meant);
    check(FreezeScope::route("quite another name"), Some("GET /v1/routes lists them"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is set and lifted in which order, what is stopped is what a list of pairs says.
    #[test]
    fn freezes_are_what_was_set_and_not_lifted(
        acts in prop::collection::vec((any::<bool>(), 0..3usize, 0..4usize), 0..40),
    ) {
        let routes = [None, Some(ROUTE), Some("treasury.plane.v1")];
        let mut ledger = Ledger::from(START);
        let (mut freezes, mut taken, mut model) = (Freezes::default(), Vec::new(), Vec::new());
        for (sets, route, mode) in acts {
            let mode = Mode::WORDS.get(mode).map(|(_, mode)| *mode);
            let scope = FreezeScope { route_key: routes[route].map(str::to_owned), mode };
            let known = model.contains(&scope);
            prop_assert_eq!(freezes.may_lift(&scope).is_ok(), known);
            let told = if sets {
                set(&mut ledger, &scope, "human:rita", None)
            } else {
                lift(&mut ledger, &scope)
            };
            prop_assert_eq!(freezes.take(&told.fact()).is_ok(), sets || known);
            if sets || known {
                taken.push(told);
            }
            model.retain(|other| *other != scope);
            if sets {
                model.push(scope);
            }
            for route in [ROUTE, "treasury.plane.v1", "another.route.v1"] {
                for (_, mode) in Mode::WORDS {
                    let stopped = model.iter().any(|scope| {
                        scope.route_key.as_deref().is_none_or(|key| key == route)
                            && scope.mode.is_none_or(|other| other == *mode)
                    });
                    prop_assert_eq!(freezes.halts(Some(route), Some(*mode)).is_some(), stopped);
                }
            }
        }
        let mut again = Freezes::default();
        for told in &taken {
            again.take(&told.fact()).unwrap();
        }
        prop_assert_eq!(again, freezes);
    }
}
