//! One agent by all its names: who counts as an end of a handoff, and who may look at it.

use serde_json::{Value as Json, json};

use super::approvals::live;
use super::delegated::{House, codes, mention, sensitive, signed};
use super::harness::{ROUTER, spec, write};
use super::route::{Agent, KEY, Scene};
use super::signing::from_now;

/// Another route with the same primary as [`KEY`], under which it has another alias.
const SIDE: &str = "crypto-sage.side.v1";
/// What the primary is called there.
const SIDE_NAME: &str = "sage-of-the-side";

fn with_side_names(table: &mut Json) {
    let side = |primary: &str, alias: &str| json!({"capability": "side", "primaryAgentId": primary, "aliases": [alias]});
    table["routes"][SIDE] = side("crypto-sage", SIDE_NAME);
    table["routes"]["fallback.side.v1"] = side("crypto-sage-dr", "dr-of-the-side");
    table["routes"]["router.side.v1"] = side(ROUTER, "router-of-the-side");
}

/// A route whose agents all have another name on another route.
fn scene(settings: &str, change: impl FnOnce(&mut Json)) -> (Agent, Scene) {
    let agent = Agent::answering("200 OK");
    let scene = Scene::with(settings, |route| {
        route["probeUrl"] = agent.url().into();
        change(route);
    });
    let path = scene.daemon.path("policies/routes.json");
    let mut table: Json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    with_side_names(&mut table);
    write(&path, table.to_string());
    assert_eq!(scene.daemon.post("/v1/reload", "").status, 200);
    (agent, scene)
}

#[test]
fn two_aliases_of_one_primary_on_two_routes_are_one_agent() {
    let house = House::prepared(|policy, table| {
        policy["allowAgents"] = json!(["*"]);
        with_side_names(table);
    });
    let up = json!({"phase": "gated-read", "reason": "drill"}).to_string();
    let request = super::wire::Request::new("PUT", "/v1/mentions/phase").token(&house.rita).json(up);
    assert_eq!(house.daemon.send(&request).status, 200);
    let from = |name: &str, message: &str, source: &str| {
        signed(mention(name, message), |spec| {
            spec["source"]["agentId"] = source.into();
            spec["authorship"]["envelope"]["delegateAgent"] = json!({"agentId": source});
            spec["authorship"]["mentionDelegation"]["originBotId"] = source.into();
        })
    };
    let check = |spec: &Json, expected: &[&str]| {
        let decided = house.daemon.submit(spec).json();
        assert_eq!(codes(&decided), expected, "{decided}");
    };
    check(&from("names_0001", "1473395000000000101", ROUTER), &[]);
    check(&from("names_0002", "1473395000000000102", "crypto-sage"), &["POLICY_MENTION_LOOP"]);
    check(&from("names_0003", "1473395000000000103", SIDE_NAME), &["POLICY_MENTION_LOOP"]);
    // And nobody makes a grant for it who goes by the other one.
    let grant = |token: &str| {
        let terms = json!({"principal": "user:main", "agents": ["blockchain-operator"], "operations": ["transfer"],
            "modes": ["simulated"], "expiresAt": from_now(600)});
        let made = house.daemon.post_as(token, "/v1/authorizations", terms);
        made.json()["authorizationRef"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
    };
    let used = |name: &str, maker: &str| signed(sensitive(name, &grant(maker)), |_| {});
    check(&used("names_0004", &house.daemon.token("bo", "operator", None)), &[]);
    let own = house.daemon.token(SIDE_NAME, "operator", None);
    check(&used("names_0005", &own), &["POLICY_AUTHORIZATION_SCOPE"]);
}

#[test]
fn nobody_approves_work_that_they_do_under_another_name() {
    let (_agent, scene) = scene("", |_| {});
    scene.go_live();
    let mut work = live("other_0001");
    work["target"]["agentId"] = "blockchain-operator".into();
    let waits = scene.daemon.post_as(&scene.router, "/v1/handoffs", &work);
    assert_eq!(waits.status, 202, "{waits:?}");
    for name in ["blockchain-operator", "crypto-sage", SIDE_NAME, "router-of-the-side"] {
        let token = scene.daemon.token(name, "operator", None);
        let own = scene.answer(&token, &work, "approve");
        assert_eq!((own.status, own.code().as_str()), (403, "APPROVAL_OWN"), "{name}");
    }
    let approved = scene.answer(&scene.rita, &work, "approve");
    assert_eq!(approved.json()["decision"], "allowed", "{approved:?}");
}
