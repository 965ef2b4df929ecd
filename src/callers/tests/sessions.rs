//! Sessions: for whom, for how long, and never longer than the token behind them.

use super::*;

fn caller(name: &str, role: Role, number: u64) -> (Roster, Caller) {
    let (token, _) = made(name, standing(role), number);
    let caller = token.caller().clone();
    (roster_of([token]), caller)
}

fn random(number: u8) -> [u8; 32] {
    [number; 32]
}

#[test]
fn only_those_who_may_look_get_a_session_or_a_link() {
    for role in Role::ALL {
        let (_, caller) = caller("somebody", role, 1);
        let sessions = Sessions::default();
        let may = matches!(role, Role::Operator | Role::Auditor | Role::Admin);
        assert_eq!(sessions.begin(&caller, &random(1), now()).is_some(), may, "{role}");
        assert_eq!(sessions.offer(&caller, &random(2), now()).is_some(), may, "{role}");
    }
}

#[test]
fn a_session_ends_when_it_is_unused_and_in_any_case_after_a_while() {
    let (roster, caller) = caller("rita", Role::Operator, 1);
    let sessions = Sessions::default();
    let secret = sessions.begin(&caller, &random(1), now()).unwrap();
    let holds = |seconds: i64, look: Look| {
        sessions.find(secret.expose(), &roster, now().plus_seconds(seconds), look).is_some()
    };
    let idle = limits::SESSION_IDLE_S;
    assert!(holds(idle - 1, Look::Person));
    // A page that is left open does not keep it alive; a person does.
    assert!(holds(2 * idle - 2, Look::Page));
    assert!(!holds(2 * idle - 1, Look::Person));
    assert!(!holds(0, Look::Person), "what is over stays over");

    let secret = sessions.begin(&caller, &random(2), now()).unwrap();
    let mut at = 0;
    while at + 60 < limits::SESSION_S {
        at += 60;
        let found = sessions.find(secret.expose(), &roster, now().plus_seconds(at), Look::Person);
        assert!(found.is_some(), "{at}");
    }
    let end = now().plus_seconds(limits::SESSION_S);
    assert!(sessions.find(secret.expose(), &roster, end, Look::Person).is_none());
}

#[test]
fn a_session_is_over_when_its_token_is() {
    let (roster, caller) = caller("rita", Role::Operator, 1);
    let sessions = Sessions::default();
    let secret = sessions.begin(&caller, &random(1), now()).unwrap();
    let (link, _) = sessions.offer(&caller, &random(2), now()).unwrap();
    assert!(sessions.find(secret.expose(), &roster, now(), Look::Person).is_some());
    let (revoked, _) = roster.revoked("rita", now()).unwrap();
    assert!(sessions.find(secret.expose(), &revoked, now(), Look::Person).is_none());
    assert!(sessions.follow(link.expose(), &revoked, now()).is_none());
    // A new token of the same name does not bring it back.
    let (again, _) = made("rita", standing(Role::Operator), 2);
    assert!(sessions.find(secret.expose(), &revoked.with(again).unwrap(), now(), Look::Person).is_none());
}

/// Tokens are edited in their file, too.
#[test]
fn a_session_is_what_its_token_is_now() {
    let (token, _) = made("rita", standing(Role::Operator), 1);
    let before = token.caller().clone();
    let changed = |role: Role, principal: Option<&str>| {
        let standing = match principal {
            Some(_) => Standing::of(role, None, principal).unwrap(),
            None => standing(role),
        };
        roster_of([Token::stored(before.name().clone(), standing, token.hash, now(), None, None)])
    };
    let sessions = Sessions::default();
    let secret = sessions.begin(&before, &random(1), now()).unwrap();
    let mut links = (2..6).map(|number| sessions.offer(&before, &random(number), now()).unwrap().0);
    let mut look = |roster: &Roster| {
        let session = sessions.find(secret.expose(), roster, now(), Look::Person).map(|found| found.caller);
        (session, sessions.follow(links.next().unwrap().expose(), roster, now()))
    };
    let tied = changed(Role::Operator, Some("user:main"));
    for found in <[_; 2]>::from(look(&tied)) {
        assert_eq!(found.unwrap().standing().principal(), Some("user:main"));
    }
    for found in <[_; 2]>::from(look(&changed(Role::Auditor, None))) {
        assert_eq!(found.unwrap().role(), Role::Auditor);
    }
    // Whoever may not look at pages any more has no session any more, whatever the token is later.
    assert_eq!(look(&changed(Role::Agent, None)), (None, None));
    assert_eq!(look(&changed(Role::Operator, None)).0, None);
}

#[test]
fn a_link_is_followed_once_and_soon() {
    let (roster, caller) = caller("ada", Role::Auditor, 1);
    let sessions = Sessions::default();
    let (link, until) = sessions.offer(&caller, &random(1), now()).unwrap();
    assert_eq!(until, now().plus_seconds(limits::SESSION_LINK_S));
    assert_eq!(sessions.follow(link.expose(), &roster, now()), Some(caller.clone()));
    assert_eq!(sessions.follow(link.expose(), &roster, now()), None);
    let (link, until) = sessions.offer(&caller, &random(2), now()).unwrap();
    assert_eq!(sessions.follow(link.expose(), &roster, until), None);
    assert_eq!(sessions.follow("", &roster, now()), None);
}

#[test]
fn the_word_of_a_form_belongs_to_one_session_and_is_not_its_secret() {
    let (roster, caller) = caller("rita", Role::Operator, 1);
    let sessions = Sessions::default();
    let mut words = HashSet::new();
    for number in 1..=3 {
        let secret = sessions.begin(&caller, &random(number), now()).unwrap();
        let found = sessions.find(secret.expose(), &roster, now(), Look::Person).unwrap();
        assert!(!found.form_word.contains(secret.expose()));
        words.insert(found.form_word);
    }
    assert_eq!(words.len(), 3);
}

#[test]
fn one_token_has_so_many_sessions_and_the_idlest_makes_room() {
    let (roster, caller) = caller("rita", Role::Operator, 1);
    let sessions = Sessions::default();
    let begin =
        |number: u8| sessions.begin(&caller, &random(number), now().plus_seconds(i64::from(number))).unwrap();
    let count = u8::try_from(limits::SESSIONS_OF_ONE_TOKEN_MAX).unwrap();
    let all: Vec<_> = (0..=count).map(begin).collect();
    let holds = |n: usize| sessions.find(all[n].expose(), &roster, now(), Look::Page).is_some();
    assert!(!holds(0) && (1..all.len()).all(holds));
    sessions.end(all[1].expose());
    assert!(!holds(1) && holds(2));
}
