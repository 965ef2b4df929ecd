//! The card: what it promises, and to whom.

use handoffd::a2a::{CARD_SCHEMA, CallerCard, Card, Method, Version, etag};
use handoffd::callers::Role;
use serde_json::{Value as Json, json};

use super::stage::golden;

const CARD: Card<'_> = Card { base_url: "https://gateway.example", version: "0.1.0", push: true, ai: true };

fn faults(card: &Json) -> Vec<String> {
    let schema: Json = serde_json::from_str(CARD_SCHEMA).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    validator.iter_errors(card).map(|error| error.instance_path().to_string()).collect()
}

#[test]
fn a_card_keeps_to_its_schema_whatever_is_configured() {
    for (push, ai) in [(false, false), (false, true), (true, false), (true, true)] {
        for base_url in ["http://127.0.0.1:7420", "https://gateway.example/", "https://x.example/a2a"] {
            let card = Card { base_url, push, ai, ..CARD };
            assert_eq!(faults(&card.to_json()), Vec::<String>::new());
            for role in Role::ALL {
                assert_eq!(
                    faults(&card.extended(&CallerCard { role, agent_id: Some("a1") })),
                    Vec::<String>::new()
                );
            }
            let rpc = card.to_json()["url"].as_str().unwrap().to_owned();
            assert_eq!(rpc, format!("{}/rpc", base_url.trim_end_matches('/')));
        }
    }
}

#[test]
fn the_schema_misses_every_member_that_clients_need() {
    let card = CARD.to_json();
    for member in [
        "name",
        "version",
        "description",
        "methods",
        "endpoints",
        "url",
        "preferredTransport",
        "protocolVersion",
        "supportedInterfaces",
        "capabilities",
        "skills",
        "securitySchemes",
        "security",
        "securityRequirements",
    ] {
        let mut less = card.clone();
        less.as_object_mut().unwrap().shift_remove(member).unwrap();
        assert_eq!(faults(&less), [""], "{member}");
    }
    let mut other = card;
    other["methods"] = json!(["SendMessage"]);
    assert_eq!(faults(&other), ["/methods/0"]);
}

#[test]
fn a_card_lists_the_slash_names_of_what_is_served() {
    let methods = |card: Card<'_>| card.to_json()["methods"].clone();
    let names = |keep: fn(Method) -> bool| -> Json {
        Method::ALL
            .into_iter()
            .filter(|method| keep(*method))
            .filter_map(|method| method.name(Version::V0_3))
            .collect()
    };
    assert_eq!(methods(CARD), names(|_| true));
    assert_eq!(methods(Card { ai: false, ..CARD }), names(|method| !method.is_ai()));
    let without_push = methods(Card { push: false, ai: false, ..CARD });
    assert_eq!(
        without_push,
        json!([
            "message/send",
            "message/stream",
            "tasks/get",
            "tasks/cancel",
            "tasks/resubscribe",
            "agent/getAuthenticatedExtendedCard"
        ])
    );
}

#[test]
fn a_card_is_known_by_its_etag() {
    let tag = etag(&CARD.to_json());
    assert!(tag.starts_with("\"sha256:") && tag.ends_with('"'));
    assert_eq!(tag, etag(&CARD.to_json()));
    assert_ne!(tag, etag(&Card { version: "0.1.1", ..CARD }.to_json()));
    assert_ne!(tag, etag(&Card { push: false, ..CARD }.to_json()));
}

#[test]
fn the_extended_card_says_what_the_role_may_do() {
    let may = |role| {
        let card = CARD.extended(&CallerCard { role, agent_id: None });
        let params = card["capabilities"]["extensions"][0]["params"].clone();
        assert_eq!(params["role"], role.as_str());
        params["may"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let has = |role, word: &str| may(role).iter().any(|known| known == word);
    assert!(has(Role::Orchestrator, "submit") && !has(Role::Orchestrator, "approve"));
    assert!(has(Role::Operator, "approve") && !has(Role::Operator, "submit"));
    assert!(has(Role::Agent, "report-event") && !has(Role::Auditor, "report-event"));
    // The card that everybody reads says nothing of anybody.
    assert_eq!(CARD.to_json()["capabilities"].get("extensions"), None);
}

#[test]
fn the_cards_are_what_clients_have_seen() {
    golden("card.json", &CARD.to_json());
    let caller = CallerCard { role: Role::Orchestrator, agent_id: Some("decision-router") };
    golden("extended-card.json", &CARD.extended(&caller));
}
