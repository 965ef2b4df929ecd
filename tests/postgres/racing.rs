//! The same thing asked of all replicas at the same instant: one winner, and for the others the answer of one machine.

use std::sync::{Arc, Barrier};

use serde_json::{Value as Json, json};

use crate::cluster::Cluster;
use crate::replicas::{Replica, all_agree, fleet};
use crate::specs::{code, mention, plain, sensitive};
use crate::wire::Request;

/// What the three ask for at once; how many of them may have it, and what the others are told.
struct Round {
    specs: [Json; 3],
    losers: &'static str,
}

/// The same request to all.
fn the_same(n: usize) -> Round {
    let spec = plain(&format!("same{n:05}"));
    Round { specs: [spec.clone(), spec.clone(), spec], losers: "replayed" }
}

/// One handoffId under three keys.
fn one_id(n: usize) -> Round {
    let specs = [0, 1, 2].map(|who| {
        let mut spec = plain(&format!("id{n:05}"));
        spec["audit"]["idempotencyKey"] = format!("idem_id_{n:05}_{who}").into();
        spec
    });
    Round { specs, losers: "A2A_HANDOFF_REUSED" }
}

/// One key for three contents.
fn one_key(n: usize) -> Round {
    let specs = [0, 1, 2].map(|who| {
        let mut spec = plain(&format!("key{n:05}x{who}"));
        spec["audit"]["idempotencyKey"] = format!("idem_key_{n:05}").into();
        spec
    });
    Round { specs, losers: "A2A_IDEMPOTENCY_CONFLICT" }
}

/// One message that three handoffs want to spend.
fn one_message(n: usize) -> Round {
    let specs = [0, 1, 2].map(|who| mention(&format!("msg{n:05}x{who}"), &format!("14733926290{n:08}")));
    Round { specs, losers: "POLICY_MENTION_DUPLICATE" }
}

/// One grant of one use that three handoffs want.
fn one_grant(n: usize, replica: &Replica, operator: &str) -> Round {
    let expires = crate::specs::now().plus_seconds(3600).to_string();
    let terms = json!({
        "principal": "user:main",
        "agents": ["crypto-sage", "blockchain-operator"],
        "operations": ["*"],
        "modes": ["simulated"],
        "expiresAt": expires,
    });
    let spec = sensitive("probe", "authz_probe");
    let mut terms = terms;
    terms["operations"] = json!([spec["intent"]["operation"]]);
    terms["agents"] = json!([spec["target"]["agentId"], spec["source"]["agentId"]]);
    let request = Request::new("POST", "/v1/authorizations").token(operator).json(terms.to_string());
    let made = replica.connection().ask(&request).unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let grant = made.json()["authorizationRef"].as_str().unwrap().to_owned();
    let specs = [0, 1, 2].map(|who| sensitive(&format!("grant{n:05}x{who}"), &grant));
    Round { specs, losers: "POLICY_AUTHORIZATION_SPENT" }
}

#[test]
fn of_three_that_ask_for_the_same_at_once_one_has_it() {
    let cluster = Cluster::shared();
    let fleet = fleet(&cluster.url(&cluster.database()), 3);
    let rita = fleet[0].operator("rita");
    let phase = Request::new("PUT", "/v1/mentions/phase")
        .token(&rita)
        .json(json!({"phase": "gated-read", "reason": "the race"}).to_string());
    // Made on another replica, the token counts here as soon as it is seen.
    crate::cluster::until(|| fleet[1].connection().ask(&phase).is_some_and(|reply| reply.status == 200));
    let rounds: Vec<Round> = (0..crate::short_or_long(60, 10_000))
        .map(|n| match n % 5 {
            0 => the_same(n),
            1 => one_id(n),
            2 => one_key(n),
            3 => one_message(n),
            _ => one_grant(n, &fleet[0], &rita),
        })
        .collect();
    let (rounds, at_once) = (Arc::new(rounds), Arc::new(Barrier::new(3)));
    let askers: Vec<_> = fleet
        .iter()
        .enumerate()
        .map(|(who, replica)| {
            let (rounds, at_once, mut connection) = (rounds.clone(), at_once.clone(), replica.connection());
            std::thread::spawn(move || -> Vec<Json> {
                let ask = |round: &Round| {
                    at_once.wait();
                    connection.post("/v1/handoffs", &round.specs[who].to_string()).unwrap().json()
                };
                rounds.iter().map(ask).collect()
            })
        })
        .collect();
    let answers: Vec<Vec<Json>> = askers.into_iter().map(|asker| asker.join().unwrap()).collect();
    for (n, round) in rounds.iter().enumerate() {
        let decisions: Vec<&Json> = answers.iter().map(|answers| &answers[n]).collect();
        let won = |decision: &&&Json| decision["decision"] == "allowed" && decision["replayed"] == false;
        assert_eq!(decisions.iter().filter(won).count(), 1, "round {n}: {decisions:#?}");
        for decision in decisions.iter().filter(|decision| !won(decision)) {
            if round.losers == "replayed" {
                assert_eq!((&decision["decision"], &decision["replayed"]), (&"allowed".into(), &true.into()));
                let winner = decisions.iter().find(won).unwrap();
                assert_eq!(decision["ledger"], winner["ledger"], "the same entry");
            } else {
                assert_eq!(code(decision), round.losers, "round {n}: {decision}");
            }
        }
    }
    let events = all_agree(&fleet);
    let allowed = events.iter().filter(|event| {
        event["type"] == "gate.decided" && event.pointer("/payload/decision") == Some(&"allowed".into())
    });
    assert_eq!(allowed.count(), rounds.len(), "one each");
}
