//! Moving the mention phase, and marking what was no mention.

use serde_json::json;

use super::super::door::Visit;
use super::super::facts::Facts;
use super::{Input, Plan, needed};
use crate::callers::Act;
use crate::http::{Ask, Kind, Problem};
use crate::json::printable;
use crate::mentions::{Phase, PhaseFault};

fn base(visit: &Visit) -> Plan {
    Plan {
        act: Act::MoveMentionPhase,
        title: String::new(),
        section: "mentions",
        facts: Vec::new(),
        hindrance: None,
        happens: Vec::new(),
        steps: Vec::new(),
        documents: Vec::new(),
        inputs: vec![Input::reason(visit, true)],
        carried: Vec::new(),
        button: "Yes",
        is_dangerous: false,
        back: "/console/mentions".to_owned(),
        ask: Ask::of(""),
        next: "/console/mentions".to_owned(),
        told: |_| String::new(),
    }
}

pub(super) async fn phase(visit: &Visit) -> Result<Plan, Problem> {
    let wanted = needed(visit, "phase")?;
    let wanted: Phase = wanted.parse().map_err(|_| {
        let phases = Phase::ALL.map(Phase::as_str).join(", ");
        Problem::new(Kind::ActInvalid, format!("there is no phase `{}`", printable(wanted))).hint(phases)
    })?;
    let current = visit.ask(Ask::of("getMentionPhase")).await?;
    let current = Facts::of(&current, visit.now).text("phase");
    let fault = current.parse::<Phase>().ok().and_then(|current| current.may_move(wanted).err());
    let hindrance = fault.map(|fault| {
        let kind = match fault {
            PhaseFault::Same(_) => Kind::MentionPhaseSame,
            PhaseFault::Skips { .. } => Kind::MentionPhaseSkipped,
        };
        Problem::new(kind, fault.to_string()).hint(fault.hint())
    });
    let happens = match wanted {
        Phase::LogOnly => "Mentions are recorded with what they would have been, and nothing is allowed.",
        Phase::GatedRead => {
            "Mentions that ask for read or diagnostic work are allowed where every gate passes; everything else is recorded only."
        }
        Phase::GatedLive => {
            "Mentions are allowed where every gate passes. Any refusal of a mention whose proof verified drops the phase by one at once."
        }
    };
    Ok(Plan {
        title: format!("Move mentions to {wanted}"),
        facts: vec![("From", current), ("To", wanted.to_string())],
        hindrance,
        happens: vec![happens.to_owned()],
        carried: vec![("phase", wanted.to_string())],
        button: "Yes, move it",
        is_dangerous: wanted != Phase::LogOnly,
        ask: Ask::of("moveMentionPhase")
            .body(json!({"phase": wanted.as_str(), "reason": visit.fields.text("reason")})),
        told: |done| format!("Mentions are in {} now.", done.text("phase")),
        ..base(visit)
    })
}

pub(super) fn mark(visit: &Visit) -> Result<Plan, Problem> {
    let (message, handoff) = (needed(visit, "message")?, needed(visit, "handoff")?);
    Ok(Plan {
        title: "Mark a false positive".to_owned(),
        facts: vec![("Message", message.to_owned()), ("Handoff", handoff.to_owned())],
        happens: vec![
            "It is counted as a message that was no mention, or meant no work. It is not undone.".to_owned(),
        ],
        carried: vec![("message", message.to_owned()), ("handoff", handoff.to_owned())],
        button: "Yes, mark it",
        ask: Ask::of("markMention")
            .at("message", message)
            .body(json!({"reason": visit.fields.text("reason"), "handoffId": handoff})),
        told: |done| format!("{} is marked as a false positive.", done.text("messageId")),
        ..base(visit)
    })
}
