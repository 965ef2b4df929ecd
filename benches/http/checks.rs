//! Before it counts: a server must refuse what it says that it checks, with the right code, and a durable one must remember.
//! Each TaskSpec here is bad in one way, and its envelope is signed again where it is to be the way.

use serde_json::{Value as Json, json};

use super::load::specs::{NUMBER, delegated, direct, sealed, sealed_for};
use super::load::{Request, ask};

/// How much of the rules a server knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Knows {
    /// What may go where, and what a person's policy file, the TaskSpec's lists and the envelope's scope allow.
    Policy,
    /// Also who calls, times, files, hash and signature, risk and mentions.
    Everything,
}

/// It refuses what nobody may do, and says why.
pub(crate) fn refuses(address: &str, knows: Knows, asked: impl Fn(&str) -> Request) {
    for (code, needed, spec) in bad() {
        if needed > knows {
            continue;
        }
        let mut request = asked(&spec.to_string());
        request.renew();
        let (status, answer) = ask(address, &request);
        request.hold(status, answer.as_bytes(), true);
        assert!(answer.contains(code), "no {code} in {answer}");
    }
}

fn bad() -> Vec<(&'static str, Knows, Json)> {
    let own =
        |pointer: &str, value: Json| put(serde_json::from_str(&direct("simulated")).unwrap(), pointer, value);
    let asked = |pointer: &str, value: Json| put(delegated(), pointer, value);
    let after = |pointer: &str, value: Json| put(sealed(delegated()), pointer, value);
    let (scope, envelope) = ("/authorship/envelope/scope/tasks", "/authorship/envelope");
    // Hex of the right length, and of nobody's key.
    let forged = json!("0f".repeat(32));
    let swap = asked("/intent/operation", json!("swap.jupiter"));
    let swap = put(swap, "/authorship/delegationPolicy/allowTasks", json!(["swap.jupiter"]));
    use Knows::{Everything, Policy};
    vec![
        ("A2A_ROUTE_UNKNOWN", Policy, own("/routing/routeKey", json!("nowhere.v1"))),
        ("A2A_ROUTE_TARGET_MISMATCH", Policy, own("/target/agentId", json!("stranger"))),
        ("A2A_ROUTE_CAPABILITY_MISMATCH", Policy, own("/target/capability", json!("cooking"))),
        ("A2A_SOURCE_MISMATCH", Everything, own("/source/agentId", json!("somebody-else"))),
        ("EXECUTION_SCHEMA_INVALID", Everything, own("/intent/operation", json!("make.coffee"))),
        ("POLICY_ROLLBACK_PLAN_MISSING", Everything, own("/rollback/planRef", json!("docs/no-such-plan.md"))),
        // There is such a file everywhere.
        ("POLICY_ROLLBACK_PLAN_MISSING", Everything, own("/rollback/planRef", json!("/etc/passwd"))),
        ("POLICY_TASK_DENIED", Policy, sealed(asked("/intent/operation", json!("transaction.read")))),
        ("POLICY_SCOPE_EXCEEDED", Policy, sealed(asked(scope, json!(["positions.read"])))),
        (
            "POLICY_ALLOWLIST_EXCEEDED",
            Policy,
            sealed(asked(
                "/authorship/delegationPolicy/allowAgents",
                json!(["blockchain-operator", "stranger"]),
            )),
        ),
        ("A2A_SIGNATURE_INVALID", Everything, after(&format!("{envelope}/proof/signature"), forged)),
        (
            "POLICY_ENVELOPE_HASH_MISMATCH",
            Everything,
            after(scope, json!(["balance.read", "positions.read"])),
        ),
        ("POLICY_ENVELOPE_EXPIRED", Everything, sealed_for(delegated(), -600, -300)),
        (
            "POLICY_DELEGATE_MISMATCH",
            Everything,
            sealed(asked("/source/sessionId", json!("agent:main:other"))),
        ),
        ("POLICY_RISK_UNDERSTATED", Everything, sealed(put(swap, scope, json!(["swap.jupiter"])))),
        (
            "POLICY_MENTION_LOOP",
            Everything,
            sealed(asked("/authorship/mentionDelegation/targetBotId", json!("decision-router"))),
        ),
    ]
}

fn put(mut spec: Json, pointer: &str, value: Json) -> Json {
    let place = spec.pointer_mut(pointer).unwrap_or_else(|| panic!("there is no {pointer}"));
    assert_ne!(*place, value, "{pointer}");
    *place = value;
    spec
}

/// It gives a decision again, and takes neither the same key nor the same message for something else.
pub(crate) fn remembers(address: &str, requests: &[Request], asked: impl Fn(&str) -> Request) {
    for request in requests {
        let mut request = request.clone();
        request.renew();
        assert_eq!(ask(address, &request).0, 201);
        let (status, answer) = ask(address, &request);
        let body: Json = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!((status, &body["replayed"]), (200, &json!(true)), "{answer}");
        let (status, answer) = ask(address, &request.with("Resposta ok=true", "Resposta ok=nada"));
        assert!(status == 409 && answer.contains("A2A_IDEMPOTENCY_CONFLICT"), "{status} {answer}");
    }
    // A message that is always the same, in handoffs that are new.
    let message = format!("9{}", &NUMBER[1..]);
    let spec = sealed(put(delegated(), "/authorship/mentionDelegation/messageId", json!(message)));
    let mut request = asked(&spec.to_string());
    for (wanted, holds) in [(201, "\"allowed\""), (403, "POLICY_MENTION_DUPLICATE")] {
        request.renew();
        let (status, answer) = ask(address, &request);
        assert!(status == wanted && answer.contains(holds), "{status} {answer}");
    }
}
