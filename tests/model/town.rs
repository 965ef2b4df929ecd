//! The small town that histories play in: few names, so that they meet again and again.

use handoffd::timestamp::Timestamp;
use serde_json::{Value as Json, json};

use crate::chance::Chance;
use crate::gates::{KeyFacts, Rules, hex, sha256, signed_part};
use crate::model::Model;

pub(crate) const AGENTS: [&str; 6] = ["router", "worker", "worker-dr", "helper", "hand", "stranger"];
pub(crate) const ROUTES: [&str; 3] = ["orders.plain.v1", "orders.plane.v1", "orders.side.v1"];
pub(crate) const OPERATIONS: [&str; 3] = ["order.read", "order.place", "ledger.close"];
pub(crate) const CHANNELS: [&str; 2] = ["discord:channel:111111", "discord:thread:222222"];
pub(crate) const PRINCIPALS: [&str; 2] = ["user:ann", "user:bob"];
const POLICIES: [&str; 2] = ["policies/delegation/one.json", "policies/delegation/two.json"];
const CLASSES: [&str; 4] = ["read", "diagnostic", "sensitive", "live"];
const ORDER: &str = "schemas/order.schema.v1.json";
const ENVELOPE: &str = "schemas/envelope.schema.v1.json";

/// The files that TaskSpecs may refer to, beside the plan.
pub(crate) fn schemas() -> [(&'static str, Json); 3] {
    let order = json!({
        "type": "object",
        "required": ["amount"],
        "properties": {"amount": {"type": "integer", "minimum": 0, "maximum": 1000}},
    });
    let envelope = json!({"type": "object", "required": ["intent"], "properties": {"intent": order}});
    [(ORDER, order.clone()), (ENVELOPE, envelope), ("schemas/order.schema.json", order)]
}

/// Policies and keys, as an operator might have them.
pub(crate) fn rules(chance: &mut Chance, now: Timestamp) -> Rules {
    let mut rules = Rules::default();
    for key in ROUTES {
        if chance.percent(97) {
            rules.routes.insert(key.to_owned(), route(chance, key));
        }
    }
    for path in POLICIES {
        if chance.percent(97) {
            rules.policies.insert(path.to_owned(), policy(chance));
        }
    }
    let keys = [
        ("ann-1", "user:ann", "envelope", "hmac-sha256-v1"),
        ("ann-2", "user:ann", "envelope", "ed25519-v1"),
        ("bob-1", "user:bob", "envelope", "hmac-sha256-v1"),
        ("ann-3", "user:ann", "request", "hmac-sha256-v1"),
        ("sign-key-1", "worker", "dispatch", "hmac-sha256-v1"),
    ];
    for (n, (id, owner, purpose, algorithm)) in keys.into_iter().enumerate() {
        if chance.percent(4) {
            continue;
        }
        let from = chance.percent(4).then(|| now.plus_seconds(60));
        let until = chance.percent(12).then(|| now.plus_seconds(*chance.one(&[90, 400, 1200])));
        let secret = [u8::try_from(n).unwrap() + 1; 32];
        let (id, owner) = (id.to_owned(), owner.to_owned());
        rules.keys.push(KeyFacts { id, owner, purpose, algorithm, secret, from, until });
    }
    rules
}

fn route(chance: &mut Chance, key: &str) -> Json {
    let plane = key == ROUTES[1];
    let mut route = json!({
        "capability": if chance.percent(94) { "orders" } else { "other-orders" },
        "primaryAgentId": *chance.one(&["worker", "worker", "worker", "worker", "worker", "worker", "helper", "worker-dr"]),
        "probeUrl": "http://127.0.0.1:1/",
        "rollbackPlanRef": "docs/plan.md",
    });
    if chance.percent(60) {
        route["aliases"] = chance
            .one(&[json!(["helper"]), json!(["hand"]), json!(["helper", "hand"]), json!(["spare"])])
            .clone();
    }
    if chance.percent(70) && route["primaryAgentId"] != "worker-dr" {
        route["fallbackAgentId"] = json!("worker-dr");
    }
    if chance.percent(75) {
        route["stage"] = json!("simulated");
    }
    if chance.percent(25) {
        route["approvers"] = json!(2);
    }
    if plane {
        route["profile"] = json!("execution-plane.v1");
        if chance.percent(80) {
            route["signingKeyId"] = json!(*chance.one(&["sign-key-1", "sign-key-1", "sign-key-1", "ann-1"]));
        }
    }
    if chance.percent(7) {
        route["requireSignature"] = json!(chance.percent(50));
    }
    route
}

fn policy(chance: &mut Chance) -> Json {
    let mut policy = json!({
        "policyVersion": "1.0",
        "principals": chance.one(&[json!(["user:ann"]), json!(["user:*"]), json!(["user:*"]), json!(PRINCIPALS)]),
        "allowAgents": chance.one(&[json!(["work*", "helper", "hand"]), json!(["*"]), json!(["worker", "worker-dr", "helper"])]),
        "allowChannels": chance.one(&[json!(["discord:*"]), json!(CHANNELS), json!(["discord:channel:*", CHANNELS[1]]), json!([CHANNELS[0]])]),
        "allowTasks": chance.one(&[json!(["order.*"]), json!(["*"]), json!(["*"]), json!(OPERATIONS)]),
        "allowWithoutChannel": chance.percent(88),
    });
    if chance.percent(40) {
        policy["maxTtlSeconds"] = json!(900);
    }
    if chance.percent(25) {
        policy["riskFloor"] =
            chance.one(&[json!({"order.place": "sensitive"}), json!({"order.*": "diagnostic"})]).clone();
    }
    if chance.percent(12) {
        policy["requireBinding"] = chance.one(&[json!(["sensitive", "live"]), json!(CLASSES)]).clone();
    }
    policy
}

/// A TaskSpec that the rules may well let pass, then perhaps made worse.
pub(crate) fn spec(chance: &mut Chance, model: &Model, number: &mut usize, now: Timestamp) -> Json {
    let rules = model.rules();
    *number += 1;
    let n = *number;
    let key = *chance.one(&ROUTES);
    let plane = key == ROUTES[1];
    let any = |name: &str| rules.routes.get(key).map_or(Json::Null, |route| route[name].clone());
    let aliases = [0, 1].map(|n| any("aliases")[n].clone());
    let targets: Vec<String> = [any("primaryAgentId"), any("fallbackAgentId")]
        .iter()
        .chain(&aliases)
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    let target = targets.first().map_or("worker".to_owned(), |_| chance.one(&targets).clone());
    let mode = *chance.one(&["dev", "simulated", "simulated", "live", "live"]);
    let ahead = |seconds: i64| now.plus_seconds(seconds).to_string();
    let mut source = "router".to_owned();
    let mut cycle = format!("corr_cycle_{}", chance.below(3));
    let mut parent = None;
    if chance.percent(25) {
        // A handoff that leads on from another one.
        let leads: Vec<_> = model.handoffs.iter().filter(|(_, known)| known.accepted.is_some()).collect();
        if !leads.is_empty() {
            let (id, known) = chance.one(&leads);
            (parent, cycle) = (Some((*id).clone()), known.cycle.clone());
            source = known.target.clone().unwrap_or(source);
        }
    }
    let fallback = any("fallbackAgentId").as_str().filter(|_| chance.percent(20)).map(str::to_owned);
    let operation = *chance.one(&OPERATIONS);
    let mut spec = json!({
        "taskSpecVersion": "1.0",
        "handoffId": format!("hs_{n:08}"),
        "correlationId": cycle,
        "createdAt": ahead(-1),
        "source": {"agentId": source, "sessionId": "session-1"},
        "target": {"agentId": target, "capability": any("capability").as_str().unwrap_or("orders")},
        "routing": {"strategy": "direct", "routeKey": key},
        "mode": mode,
        "intent": {
            "operation": operation,
            "inputSchemaRef": if plane { ENVELOPE } else { ORDER },
            "input": {"amount": chance.below(3)},
        },
        "acceptance": {"doneWhen": ["it is done"]},
        "safety": {"e2eActor": "human", "requiresHumanApproval": mode == "live"},
        "rollback": {"required": true, "planRef": "docs/plan.md"},
        "audit": {"requestId": format!("req-{n:06}"), "idempotencyKey": format!("key-{n:06}")},
    });
    if let Some(parent) = parent {
        spec["parentHandoffId"] = json!(parent);
    }
    if chance.percent(20) {
        review(chance, &mut spec);
    }
    if let Some(fallback) = &fallback {
        spec["routing"]["fallbackAgentId"] = json!(fallback);
    }
    if chance.percent(60) {
        delegate(chance, model, &mut spec, now);
    }
    for _ in 0..*chance.one(&[0, 0, 0, 0, 0, 1, 1, 2]) {
        worsen(chance, &mut spec, now);
    }
    if spec.pointer("/authorship/envelope").is_some() {
        sign(chance, &rules, &mut spec);
    }
    if chance.percent(8) {
        worsen(chance, &mut spec, now);
    }
    spec
}

/// Makes it one of version 1.1, whose members are looked at and never acted on.
fn review(chance: &mut Chance, spec: &mut Json) {
    spec["taskSpecVersion"] = json!("1.1");
    spec["loop_id"] = json!("loop_abcdef01");
    spec["proposed_by"] = json!("helper");
    spec["risk_profile"] = json!(*chance.one(&["low", "medium", "high", "critical"]));
    spec["review_depth"] = json!(1 + chance.below(10));
    spec["review_feedback_required"] = json!(chance.percent(50));
    spec["auto_approve_window"] = json!(*chance.one(&[0, 60, 86_400]));
    if chance.percent(50) {
        spec["review_reason"] = json!("somebody asked for it");
    }
    // Mostly they are as they should be; each of these is near to that.
    if chance.percent(30) {
        let (name, value) = chance
            .one(&[
                ("loop_id", json!("loop_abcdef0")),
                ("loop_id", json!("loop_ABCDEF01")),
                ("loop_id", json!(format!("loop_{}", "a".repeat(64)))),
                ("loop_id", json!(format!("loop_{}", "a".repeat(65)))),
                ("risk_profile", json!("severe")),
                ("review_depth", json!(0)),
                ("review_depth", json!(10.0)),
                ("review_depth", json!(11)),
                ("review_feedback_required", json!("yes")),
                ("auto_approve_window", json!(-1)),
                ("auto_approve_window", json!(86_401)),
                ("auto_approve_window", json!(1.5)),
                ("review_reason", json!("x".repeat(1_000))),
                ("review_reason", json!("x".repeat(1_001))),
                ("taskSpecVersion", json!("1.0")),
                ("taskSpecVersion", json!("1.2")),
            ])
            .clone();
        spec[name] = value;
    }
}

/// Puts it in a principal's name, by a mention perhaps.
fn delegate(chance: &mut Chance, model: &Model, spec: &mut Json, now: Timestamp) {
    let (source, target) = (spec["source"]["agentId"].clone(), spec["target"]["agentId"].clone());
    let operation = spec["intent"]["operation"].clone();
    let channel = *chance.one(&CHANNELS);
    let class = *chance.one(&["read", "read", "diagnostic", "diagnostic", "sensitive", "live"]);
    let policy = *chance.one(&POLICIES);
    let mut agents = vec![target.clone()];
    agents.extend(spec["routing"].get("fallbackAgentId").cloned());
    let mut risk = json!({"classification": class});
    if matches!(class, "sensitive" | "live") || chance.percent(30) {
        let grants: Vec<&String> = model.grants.keys().collect();
        let named = if grants.is_empty() || chance.percent(10) {
            "authz_nobody_made_this".to_owned()
        } else {
            (*chance.one(&grants)).clone()
        };
        risk["requiresConfirmation"] = json!(true);
        risk["authorizationRef"] = json!(named);
    }
    let seconds = *chance.one(&[60, 300, 900, 900, 900, 1000]);
    spec["authorship"] = json!({
        "mode": "delegated-human-proxy",
        "delegationPolicy": {
            "policyRef": policy,
            "allowAgents": agents,
            "allowChannels": [channel],
            "allowTasks": [operation],
        },
        "envelope": {
            "principal": {"id": *chance.one(&["user:ann", "user:ann", "user:bob"])},
            "delegateAgent": {"agentId": source},
            "scope": {"agents": agents, "channels": [channel], "tasks": [operation]},
            "ttl": {
                "issuedAt": now.plus_seconds(-5).to_string(),
                "expiresAt": now.plus_seconds(seconds - 5).to_string(),
            },
        },
        "risk": risk,
    });
    spec["audit"]["delegation"] = json!({
        "policyRef": policy,
        "riskClassification": class,
        "authorizationRef": risk.get("authorizationRef"),
    });
    let gated = chance.percent(55);
    if gated {
        spec["authorship"]["mentionDelegationMode"] = json!("gated");
        spec["authorship"]["mentionDelegation"] = json!({
            "channel": channel,
            "messageId": format!("{:06}", 100_000 + chance.below(40)),
            "originBotId": source,
            "targetBotId": target,
            "observedAt": now.plus_seconds(-2).to_string(),
            "ttlSeconds": *chance.one(&[30, 300, 3600, 3600]),
            "dedupeBy": "messageId",
        });
    }
    if chance.percent(60) {
        let mut binding = json!({"handoffId": spec["handoffId"], "intentHash": sha256(&spec["intent"])});
        if gated {
            binding["messageId"] = spec["authorship"]["mentionDelegation"]["messageId"].clone();
            binding["channel"] = json!(channel);
        }
        spec["authorship"]["envelope"]["binding"] = binding;
    }
}

/// Signs as the principal would, with a key that may be there or not.
fn sign(chance: &mut Chance, rules: &Rules, spec: &mut Json) {
    let Some(envelope) = spec.pointer("/authorship/envelope").filter(|envelope| envelope.is_object()) else {
        return;
    };
    let principal = envelope.pointer("/principal/id").and_then(Json::as_str).unwrap_or_default();
    let own: Vec<&KeyFacts> =
        rules.keys.iter().filter(|key| key.owner == principal && key.purpose == "envelope").collect();
    let fallback = KeyFacts {
        id: "gone-1".to_owned(),
        owner: principal.to_owned(),
        purpose: "envelope",
        algorithm: "hmac-sha256-v1",
        secret: [99; 32],
        from: None,
        until: None,
    };
    let key = if own.is_empty() { &fallback } else { *chance.one(&own) };
    let signed = signed_part(envelope);
    let hash = format!("sha256:{}", hex(&<sha2::Sha256 as sha2::Digest>::digest(&signed)));
    let mut proof = json!({"algorithm": key.algorithm, "signature": key.sign(&signed), "hash": hash});
    if chance.percent(60) {
        proof["keyId"] = json!(key.id);
    }
    if let Some(envelope) = spec.pointer_mut("/authorship/envelope").and_then(Json::as_object_mut) {
        envelope.insert("proof".to_owned(), proof);
    }
    if let Some(stated) = spec.pointer_mut("/audit/delegation").and_then(Json::as_object_mut) {
        stated.insert("envelopeHash".to_owned(), json!(hash));
    }
}

/// Every member of it, as a JSON pointer.
fn members(value: &Json, at: &str, found: &mut Vec<String>) {
    if let Some(object) = value.as_object() {
        for (name, member) in object {
            let path = format!("{at}/{name}");
            found.push(path.clone());
            members(member, &path, found);
        }
    }
}

/// Changes one member: to another that is sometimes right, to one that never is, or to none.
pub(crate) fn worsen(chance: &mut Chance, spec: &mut Json, now: Timestamp) {
    let mut all = Vec::new();
    members(spec, "", &mut all);
    let path = chance.one(&all).clone();
    // The amount's own form is for the schema of inputs to say.
    let (block, name) = path.rsplit_once('/').unwrap();
    let parent = if block.is_empty() { &mut *spec } else { spec.pointer_mut(block).unwrap() };
    let object = parent.as_object_mut().unwrap();
    let name = name.to_owned();
    match chance.below(10) {
        0 => drop(object.remove(&name)),
        1 => drop(object.insert(name, json!(7))),
        2 => drop(object.insert(name, json!("x".repeat(*chance.one(&[0, 1, 5, 400]))))),
        3 => drop(object.insert("spare".to_owned(), json!(true))),
        _ => {
            if let Some(other) = another(chance, &name, now) {
                object.insert(name, other);
            }
        }
    }
}

/// Another value for a member of that name.
fn another(chance: &mut Chance, name: &str, now: Timestamp) -> Option<Json> {
    let value = match name {
        "agentId" | "originBotId" | "targetBotId" | "fallbackAgentId" => json!(*chance.one(&AGENTS)),
        "routeKey" => json!(*chance.one(&["orders.plain.v1", "orders.plane.v1", "orders.none.v1"])),
        "capability" => json!(*chance.one(&["orders", "other-orders"])),
        "mode" => json!(*chance.one(&["dev", "simulated", "live", "direct", "delegated-human-proxy"])),
        "mentionDelegationMode" => json!(*chance.one(&["gated", "disabled"])),
        "handoffId" | "parentHandoffId" => json!(format!("hs_{:08}", 1 + chance.below(40))),
        "idempotencyKey" => json!(*chance.one(&["key-000001", "key-000005", "key-00", "key-000009"])),
        "requestId" => json!(*chance.one(&["req", "req-1", "req 000001"])),
        "correlationId" => json!(*chance.one(&["corr_cycle_0", "corr_cycle_1", "corr cycle"])),
        "messageId" => json!(format!("{:06}", 100_000 + chance.below(20))),
        "channel" => json!(*chance.one(&[CHANNELS[0], CHANNELS[1], "discord:channel:333333", "slack:1"])),
        "operation" => json!(*chance.one(&OPERATIONS)),
        "inputSchemaRef" => json!(*chance.one(&[
            ORDER,
            ENVELOPE,
            "schemas/order.schema.json",
            "schemas/none.schema.v1.json",
            "../schemas/order.schema.v1.json",
            "/schemas/order.schema.v1.json",
            "docs/plan.md"
        ])),
        "planRef" => json!(*chance.one(&["docs/none.md", "../docs/plan.md", "schemas/none.json"])),
        "amount" => json!(*chance.one(&[0, 1000, 1001, -1])),
        "e2eActor" => json!(*chance.one(&["human", "authorized-harness", "worker"])),
        "required" | "requiresHumanApproval" | "allowExternalSideEffects" | "requiresConfirmation" => {
            json!(chance.percent(50))
        }
        "safety" => {
            json!({"e2eActor": "human", "requiresHumanApproval": true, "allowExternalSideEffects": true})
        }
        "policyRef" => json!(*chance.one(&[POLICIES[0], POLICIES[1], "policies/delegation/none.json"])),
        "allowAgents" | "agents" => json!([*chance.one(&AGENTS), *chance.one(&AGENTS)]),
        "allowTasks" | "tasks" => chance.one(&[json!(OPERATIONS), json!(["*"]), json!([])]).clone(),
        "allowChannels" | "channels" => {
            chance.one(&[json!(CHANNELS), json!([CHANNELS[1]]), json!([])]).clone()
        }
        "id" => json!(*chance.one(&["user:ann", "user:bob", "user:eve"])),
        "sessionId" => json!(*chance.one(&["session-1", "session-2"])),
        "createdAt" | "issuedAt" | "expiresAt" | "observedAt" => {
            let seconds = *chance.one(&[-4000, -300, -1, 0, 1, 119, 120, 121, 300, 4000]);
            json!(now.plus_seconds(seconds).to_string())
        }
        "ttlSeconds" => chance.one(&[json!(5), json!(60.0), json!(3601), json!(4), json!(5.5)]).clone(),
        "classification" | "riskClassification" => json!(*chance.one(&CLASSES)),
        "authorizationRef" => chance.one(&[Json::Null, json!("authz_nobody_made_this"), json!("ab")]).clone(),
        "algorithm" => json!(*chance.one(&["hmac-sha256-v1", "ed25519-v1", "none"])),
        "signature" | "hash" | "envelopeHash" | "intentHash" => json!(format!("sha256:{}", "0".repeat(64))),
        "keyId" => json!(*chance.one(&["ann-1", "ann-2", "ann-3", "bob-1", "none-1"])),
        "delegation" => json!({"decision": "allowed"}),
        "binding" => json!({}),
        "strategy" => json!("capability"),
        "taskSpecVersion" => json!(*chance.one(&["1.0", "1.1", "1.2"])),
        _ => return None,
    };
    Some(value)
}
