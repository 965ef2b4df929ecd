//! Grants and approvals, as the ledger's events make them.

mod approvals;
mod grants;

use super::*;
use crate::contract::Finding;
use crate::json::{Bounds, Document, read};
use crate::timestamp::Timestamp;
use crate::wire::Sender;

const BOUNDS: Bounds = Bounds { bytes_max: 256 * 1024, levels_max: 8 };

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn person(name: &str, principal: Option<&str>) -> Person {
    Person::of(Sender::Human(name), principal).unwrap()
}

/// Where it is wrong, each place once.
fn wrong<T: std::fmt::Debug>(
    body: &str,
    ask: impl FnOnce(&Document<'_>) -> Result<T, Vec<Finding>>,
) -> Vec<String> {
    let document = read(body.as_bytes(), BOUNDS).unwrap();
    let Err(findings) = ask(&document) else { return Vec::new() };
    for finding in &findings {
        assert!(finding.hint.as_deref().is_some_and(|hint| !hint.is_empty()), "{finding:?}");
        assert!(!finding.message.ends_with('.'), "{finding:?}");
    }
    let mut places: Vec<_> = findings.into_iter().map(|finding| finding.pointer).collect();
    places.dedup();
    places
}

#[test]
fn nobody_but_a_person_is_taken_for_one() {
    assert_eq!(person("rita", Some("user:rita")).name(), "rita");
    for sender in [Sender::System, Sender::Agent("rita"), Sender::Runner("rita")] {
        assert_eq!(Person::of(sender, None), None, "{sender:?}");
    }
}

#[test]
fn two_tokens_of_one_principal_are_one_person() {
    let rita = person("rita", Some("user:rita"));
    for (other, same) in [
        (person("rita", None), true),
        (person("rita-phone", Some("user:rita")), true),
        (person("user:rita", None), true),
        (person("bo", Some("rita")), true),
        (person("Rita", None), false),
        (person("bo", Some("user:bo")), false),
        (person("bo", None), false),
    ] {
        assert_eq!((rita.is(&other), other.is(&rita)), (same, same), "{other:?}");
    }
}

#[test]
fn every_fault_has_a_code_of_its_own_words_and_a_way_on() {
    let (name, id, until) = ("authz_1".to_owned(), "user:main".to_owned(), at("2026-02-18T19:00:00Z"));
    let grants = [
        GrantFault::NotHuman,
        GrantFault::Own { as_what: "principal", id: id.clone() },
        GrantFault::Full,
        GrantFault::Unknown { name: name.clone() },
        GrantFault::Revoked { name, at: until },
    ];
    let approvals = [
        ApprovalFault::NotHuman,
        ApprovalFault::NotWaiting { handoff_id: "hs_waits_0001".to_owned() },
        ApprovalFault::Expired { until },
        ApprovalFault::Own { as_what: "principal", id },
        ApprovalFault::Twice { name: "rita".to_owned() },
        ApprovalFault::Full,
    ];
    let grants = grants.iter().map(|fault| (fault.code(), fault.to_string(), fault.hint()));
    let approvals = approvals.iter().map(|fault| (fault.code(), fault.to_string(), fault.hint()));
    let mut codes = std::collections::BTreeSet::new();
    for (code, words, hint) in grants.chain(approvals) {
        assert!(codes.insert(code), "{code} twice");
        assert!(words.starts_with(|c: char| !c.is_uppercase()) && !words.ends_with('.'), "{words}");
        assert!(!hint.is_empty() && !hint.ends_with('.'), "{hint}");
    }
    assert_eq!(codes.len(), 11);
}
