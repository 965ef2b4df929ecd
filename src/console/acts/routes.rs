//! Promoting a route, and taking it back.

use serde_json::{Value as Json, json};

use super::super::changes::fields_changed;
use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::form::encoded;
use super::{Input, Plan, Step, needed};
use crate::callers::Act;
use crate::http::{Ask, Kind, Problem};
use crate::promotion::PromotionGate;

fn base(key: &str, facts: &Facts<'_>) -> Plan {
    Plan {
        act: Act::Promote,
        title: String::new(),
        section: "routes",
        facts: vec![
            ("Route", key.to_owned()),
            ("Stage", facts.text("stage")),
            ("Last gate passed", facts.or("lastGatePassed", "none")),
            ("Blocked", if facts.truth("blocked") { "yes" } else { "no" }.to_owned()),
        ],
        hindrance: None,
        happens: Vec::new(),
        steps: Vec::new(),
        documents: Vec::new(),
        inputs: Vec::new(),
        carried: vec![("key", key.to_owned())],
        button: "Yes",
        is_dangerous: false,
        back: format!("/console/routes/{}", encoded(key)),
        ask: Ask::of(""),
        next: format!("/console/routes/{}", encoded(key)),
        told: |_| String::new(),
    }
}

async fn route(visit: &Visit) -> Result<(String, Json), Problem> {
    let key = needed(visit, "key")?;
    Ok((key.to_owned(), visit.ask(Ask::of("getRoute").at("key", key)).await?))
}

pub(super) async fn gate(visit: &Visit) -> Result<Plan, Problem> {
    let (key, json) = route(visit).await?;
    let facts = Facts::of(&json, visit.now);
    let gate: PromotionGate = needed(visit, "gate")?.parse().map_err(|_| Problem::not_found("gate"))?;
    let mut body = json!({});
    let mut inputs = vec![Input::reason(visit, false)];
    let mut happens = vec![format!(
        "{gate} ({}) is evaluated from what the ledger has, and recorded as passed or failed, with why.",
        gate.title()
    )];
    match gate {
        PromotionGate::G1 => {
            happens.push("The agents of the route are asked whether they are there.".to_owned())
        }
        PromotionGate::G3 => {
            happens.push(
                "What you attach below is evidence in your name that an authorized run worked end to end."
                    .to_owned(),
            );
            inputs.extend([
                Input::line(
                    visit,
                    "handoffId",
                    "Handoff",
                    "The handoffId of the run; the evidence belongs to it.",
                ),
                Input::line(visit, "runId", "Run id", "Of the run, wherever it was made."),
                Input::line(visit, "traceId", "Trace id", "A W3C trace id: 32 hex digits."),
                Input::line(visit, "report", "Report", "Where the report is, or what it says."),
            ]);
        }
        PromotionGate::G4 => {
            happens.push("You approve the route for live work by name. If its rollback plan resolves and its dry run succeeds, it is live in canary at once: one live handoff at a time.".to_owned());
        }
        PromotionGate::G0 | PromotionGate::G2 => {}
    }
    if let Some(members) = body.as_object_mut() {
        for name in ["handoffId", "reason"] {
            if let Some(value) = visit.fields.get(name) {
                members.insert(name.to_owned(), value.into());
            }
        }
        let mut evidence = json!({});
        for name in ["runId", "traceId", "report"] {
            if let (Some(value), Some(members)) = (visit.fields.get(name), evidence.as_object_mut()) {
                members.insert(name.to_owned(), value.into());
            }
        }
        if evidence.as_object().is_some_and(|members| !members.is_empty()) {
            members.insert("evidence".to_owned(), evidence);
        }
    }
    if facts.is("nextGate", gate.as_str()) {
        for missing in facts.each("missing") {
            happens.push(format!("As things stand, this is missing: {}.", missing.text("what")));
        }
    }
    let mut plan = base(&key, &facts);
    plan.carried.push(("gate", gate.as_str().to_owned()));
    let title = match gate {
        PromotionGate::G4 => format!("Promote {key} to live (G4)"),
        _ => format!("Evaluate {gate} of {key}"),
    };
    Ok(Plan {
        title,
        hindrance: not_now(&facts, gate),
        happens,
        inputs,
        button: if gate == PromotionGate::G4 { "Yes, approve it for live" } else { "Yes, evaluate it" },
        is_dangerous: gate == PromotionGate::G4,
        ask: Ask::of("decideGate").at("key", &key).at("gate", gate.as_str()).body(body),
        told: |done| {
            let (gate, status) = (done.text("gate"), done.text("status"));
            let missing: Vec<String> = done.each("missing").iter().map(|one| one.text("what")).collect();
            match missing.as_slice() {
                [] => format!("{gate} {status}; the route is {}.", done.text("stage")),
                missing => format!("{gate} {status}: {}.", missing.join("; ")),
            }
        },
        ..plan
    })
}

/// Why it is not this gate's turn.
fn not_now(route: &Facts<'_>, gate: PromotionGate) -> Option<Problem> {
    if route.truth("blocked") {
        let problem = Problem::new(Kind::RouteBlocked, "the route is blocked");
        return Some(problem.hint("an operator unblocks it first"));
    }
    match route.text("nextGate").parse::<PromotionGate>() {
        Ok(next) if gate <= next && !route.is("stage", "live") => None,
        Ok(next) => Some(
            Problem::new(Kind::RouteGateOutOfOrder, format!("the next gate of this route is {next}"))
                .hint("gates are passed in order, and none is skipped"),
        ),
        Err(_) => Some(
            Problem::new(Kind::RouteGateOutOfOrder, "the route has passed every gate")
                .hint("roll it back to start again"),
        ),
    }
}

pub(super) async fn rollback(visit: &Visit) -> Result<Plan, Problem> {
    let (key, json) = route(visit).await?;
    let facts = Facts::of(&json, visit.now);
    let block = visit.fields.get("block").is_some();
    let dry = json!({"reason": "a dry run in the console", "block": block, "dryRun": true});
    let shown = visit.ask(Ask::of("rollBackRoute").at("key", &key).body(dry)).await?;
    let shown = Facts::of(&shown, visit.now);
    let happens = rolls_back(&facts, &shown);
    let mut plan = base(&key, &facts);
    if block {
        plan.carried.push(("block", "yes".to_owned()));
    }
    Ok(Plan {
        title: format!("Roll back {key}"),
        happens,
        steps: steps(&shown),
        inputs: vec![Input::reason(visit, true)],
        button: if block { "Yes, roll it back and block it" } else { "Yes, roll it back" },
        is_dangerous: true,
        ask: Ask::of("rollBackRoute")
            .at("key", &key)
            .body(json!({"reason": visit.fields.text("reason"), "block": block})),
        told: |done| format!("Rolled back: the route is {}.", done.text("stage")),
        ..plan
    })
}

pub(super) async fn block(visit: &Visit) -> Result<Plan, Problem> {
    let (key, json) = route(visit).await?;
    let facts = Facts::of(&json, visit.now);
    let dry = json!({"reason": "a dry run in the console", "block": true, "dryRun": true});
    let shown = visit.ask(Ask::of("rollBackRoute").at("key", &key).body(dry)).await?;
    let shown = Facts::of(&shown, visit.now);
    let mut happens = vec!["The route is rolled back, too.".to_owned()];
    happens.extend(rolls_back(&facts, &shown));
    Ok(Plan {
        title: format!("Block {key}"),
        happens,
        steps: steps(&shown),
        inputs: vec![Input::reason(visit, true)],
        button: "Yes, block it",
        is_dangerous: true,
        ask: Ask::of("blockRoute").at("key", &key).body(json!({"reason": visit.fields.text("reason")})),
        told: |done| format!("Blocked: the route is {}.", done.text("stage")),
        ..base(&key, &facts)
    })
}

/// What a rollback comes to, from its dry run.
fn rolls_back(route: &Facts<'_>, dry: &Facts<'_>) -> Vec<String> {
    let (from, to) = (route.text("stage"), dry.text("stage"));
    let mut happens = vec![match from == to {
        true => format!("The route stays in {from}."),
        false => format!("The route goes from {from} to {to}."),
    }];
    match dry.each("gatesLost").iter().map(|gate| gate.text("")).collect::<Vec<_>>().as_slice() {
        [] => happens.push("No gate is lost: none that a rollback takes back was passed.".to_owned()),
        [one] => happens.push(format!("{one} must be earned again.")),
        [rest @ .., last] => happens.push(format!("{} and {last} must be earned again.", rest.join(", "))),
    }
    if dry.has("restored") {
        happens.push("The definition before this one is in force again, instead of what the routing table says, until somebody lets the table count again.".to_owned());
        let changed = fields_changed(route.at("definition").json(), dry.at("restored").json());
        happens.extend(changed.into_iter().map(|change| format!("{change}.")));
    }
    happens.push(match (route.truth("blocked"), dry.truth("blocked")) {
        (true, _) => "It stays blocked: nothing passes until an operator unblocks it.".to_owned(),
        (false, true) => "It is blocked as well: nothing passes until an operator unblocks it.".to_owned(),
        (false, false) => "It is not blocked: what its stage lets through goes on.".to_owned(),
    });
    happens.push(match dry.each("rolledBack").as_slice() {
        [] => "No live handoff is in flight.".to_owned(),
        [_] => "The one live handoff in flight is marked as rolled back.".to_owned(),
        list => format!("{} live handoffs in flight are marked as rolled back.", list.len()),
    });
    happens
}

pub(super) async fn unblock(visit: &Visit) -> Result<Plan, Problem> {
    let (key, json) = route(visit).await?;
    let facts = Facts::of(&json, visit.now);
    let what = visit.fields.get("what").unwrap_or("block");
    let (is_blocked, is_pinned) = (facts.truth("blocked"), facts.has("pin"));
    let hindrance = match what {
        "block" if !is_blocked => Some("the route is not blocked"),
        "pin" if !is_pinned => Some("the routing table counts already"),
        "both" if !is_blocked && !is_pinned => Some("the route is not blocked, and the routing table counts"),
        "block" | "pin" | "both" => None,
        _ => return Err(Problem::new(Kind::ActInvalid, "`what` is block, pin or both")),
    };
    let hindrance = hindrance.map(|why| Problem::new(Kind::RouteNotBlocked, why));
    let happens = match what {
        "pin" => "The routing table counts again instead of the definition that a rollback restored.",
        "both" => {
            "The route is opened, and the routing table counts again instead of the definition that a rollback restored."
        }
        _ => "Handoffs on the route are decided again. Gates that were lost stay lost.",
    };
    let mut plan = base(&key, &facts);
    plan.carried.push(("what", what.to_owned()));
    Ok(Plan {
        title: match what {
            "pin" => format!("Let the routing table count for {key}"),
            _ => format!("Unblock {key}"),
        },
        hindrance,
        happens: vec![happens.to_owned()],
        inputs: vec![Input::reason(visit, true)],
        button: "Yes, lift it",
        ask: Ask::of("unblockRoute")
            .at("key", &key)
            .body(json!({"reason": visit.fields.text("reason"), "what": what})),
        told: |done| format!("Lifted: the route is {}.", done.text("stage")),
        ..plan
    })
}

fn steps(shown: &Facts<'_>) -> Vec<Step> {
    let words = |step: &str| match step {
        "demote" => "Demote the route".to_owned(),
        "block" => "Block the route".to_owned(),
        "restore" => "Restore the definition before".to_owned(),
        "mark" => "Mark what is in flight as rolled back".to_owned(),
        other => other.replace('_', " "),
    };
    let step = |step: &Facts<'_>| Step {
        what: words(&step.text("step")),
        outcome: step.text("outcome"),
        why: step.text("why"),
    };
    shown.each("steps").iter().map(step).collect()
}
