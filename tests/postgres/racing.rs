//! The same thing asked of all replicas at the same instant: one winner, and for the others the answer of one machine.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value as Json, json};

use crate::cluster::{Cluster, until};
use crate::replicas::{Connection, Replica, all_agree, fleet};
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
fn one_grant(n: usize, operator: &str, connection: &mut Connection) -> Round {
    let spec = sensitive("probe", "authz_probe");
    let terms = json!({
        "principal": "user:main",
        "agents": [spec["target"]["agentId"], spec["source"]["agentId"]],
        "operations": [spec["intent"]["operation"]],
        "modes": ["simulated"],
        "expiresAt": crate::specs::now().plus_seconds(3600).to_string(),
    });
    let request = Request::new("POST", "/v1/authorizations").token(operator).json(terms.to_string());
    let made = connection.ask(&request).unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let grant = made.json()["authorizationRef"].as_str().unwrap().to_owned();
    let specs = [0, 1, 2].map(|who| sensitive(&format!("grant{n:05}x{who}"), &grant));
    Round { specs, losers: "POLICY_AUTHORIZATION_SPENT" }
}

const KINDS: usize = 5;

fn round(n: usize, operator: &str, connection: &mut Connection) -> Round {
    match n % KINDS {
        0 => the_same(n),
        1 => one_id(n),
        2 => one_key(n),
        3 => one_message(n),
        _ => one_grant(n, operator, connection),
    }
}

/// Asks all three before it waits for any of them, and looks at what they say.
fn run(n: usize, round: &Round, connections: &mut [Connection]) {
    // Another one is the first each time.
    let order = [n % 3, (n + 1) % 3, (n + 2) % 3];
    let requests: Vec<Request> = connections
        .iter()
        .zip(&round.specs)
        .map(|(connection, spec)| connection.to_post("/v1/handoffs", &spec.to_string()))
        .collect();
    for who in order {
        connections[who].send(&requests[who]).unwrap();
    }
    let decisions: Vec<Json> = connections.iter_mut().map(|one| one.hear().unwrap().json()).collect();
    let won = |decision: &&Json| decision["decision"] == "allowed" && decision["replayed"] == false;
    assert_eq!(decisions.iter().filter(won).count(), 1, "round {n}: {decisions:#?}");
    let winner = decisions.iter().find(won).unwrap();
    for decision in decisions.iter().filter(|decision| !won(decision)) {
        if round.losers == "replayed" {
            assert_eq!((&decision["decision"], &decision["replayed"]), (&"allowed".into(), &true.into()));
            assert_eq!(decision["ledger"], winner["ledger"], "the same entry");
        } else {
            assert_eq!(code(decision), round.losers, "round {n}: {decision}");
        }
    }
}

/// In the long form, ten thousand keys of each kind.
#[test]
fn of_three_that_ask_for_the_same_at_once_one_has_it() {
    const LANES: usize = 6;
    let cluster = Cluster::shared();
    let fleet = fleet(&cluster.url(&cluster.database()), 3);
    let rita = fleet[0].operator("rita");
    let phase = Request::new("PUT", "/v1/mentions/phase")
        .token(&rita)
        .json(json!({"phase": "gated-read", "reason": "the race"}).to_string());
    // Made on another replica, the token counts here as soon as it is seen.
    until(|| fleet[1].connection().ask(&phase).is_some_and(|reply| reply.status == 200));
    let (rounds, next) = (crate::short_or_long(20, 10_000) * KINDS, AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                let mut connections: Vec<Connection> = fleet.iter().map(Replica::connection).collect();
                loop {
                    let n = next.fetch_add(1, Ordering::AcqRel);
                    if n >= rounds {
                        return;
                    }
                    run(n, &round(n, &rita, &mut connections[0]), &mut connections);
                }
            });
        }
    });
    let events = all_agree(&fleet);
    let allowed = events.iter().filter(|event| {
        event["type"] == "gate.decided" && event.pointer("/payload/decision") == Some(&"allowed".into())
    });
    assert_eq!(allowed.count(), rounds, "one each");
}
